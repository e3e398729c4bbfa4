"""docs/knobs.md is complete: every option of every kernel has a row, and no row is of an option that is not there."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from conftest import CHECKOUT, MPI_ENVIRONMENT

KERNELS = ("particles", "segments", "tiles", "blocks", "metadata")
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in (CHECKOUT / "docs" / "knobs.md").read_text().splitlines()
    if line.startswith("| `")
]


def rows_of(kernel: str) -> set[str]:
    """Options that the table gives to a kernel: named in its cell, or of all but others."""
    found = set()
    for knobs, kernels, *_ in ROWS:
        named = re.findall(r"\w+", kernels)
        if (kernel in named) != ("all" in named):
            found |= set(re.findall(r"`--([a-z-]+)`", knobs))
    return found


def options_of(kernels, kernel: str) -> set[str]:
    done = subprocess.run(
        [kernels / kernel, "--help"], capture_output=True, text=True, check=True, env={**os.environ, **MPI_ENVIRONMENT}
    )
    return set(re.findall(r"^  --([a-z-]+)", done.stdout, re.MULTILINE))


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_table_has_exactly_the_kernels_options(kernels, kernel):
    # What every kernel's parser knows but this one refuses, the table rightly leaves out.
    refused = {"metadata": {"collective", "keep-empty", "operation"}, "tiles": {"file-per-process"}}.get(kernel, set())
    assert rows_of(kernel) == options_of(kernels, kernel) - refused


def test_every_row_has_five_cells_and_no_option_twice_for_a_kernel():
    assert all(len(row) == 5 and all(row) for row in ROWS)
    seen = [(knob, kernels) for knobs, kernels, *_ in ROWS for knob in re.findall(r"`(--[a-z-]+)`", knobs)]
    assert len(seen) == len(set(seen))
