"""The mini-cluster of scripts/minicluster: a real Slurm with four nodes on one machine, for trying everything out."""

import os
import sys
from pathlib import Path

import common  # ReFrame finds it beside this file
