"""Which variants ReFrame makes of a site's axes, and how a site's options reach the jobs: listings and dry runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import golden
import pytest
from conftest import CHECKOUT, PATIENCE_SECONDS

from iogauge.nightly import read_site_configuration

#: More would take ReFrame longer than 15 s to list on a slow machine: it needs 3 to 5 ms for one.
MOST_VARIANTS = 2500

#: Checks that run a program which others wrote.
UPSTREAM = (
    "BenchioCheck",
    "FileFormatComparisonCheck",
    "H5benchCheck",
    "H5benchSerialCheck",
    "H5perfCheck",
    "H5perfSerialCheck",
    "Hdf5IotestCheck",
    "IorCheck",
)


def reframe(configuration: Path, work: Path, *arguments: str, checks: str = "") -> Any:
    """Run ReFrame with stand-ins for what a cluster has."""
    command = [Path(sys.executable).parent / "reframe", "-C", configuration, "-c", CHECKOUT / "reframe_checks" / checks]
    path = f"{golden.HERE / 'stand_ins'}:{os.environ['PATH']}"
    environment = {**os.environ, **golden.ENVIRONMENT, "PATH": path, "IOGAUGE_HOME": str(work)}
    command += ["--prefix", work, *arguments]
    return subprocess.run(
        [*map(str, command)],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )


def listed(done: Any) -> list[dict[str, str]]:
    """The variants in a listing: parameter to value, and ``check``."""
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("- ")]
    return [{"check": line.split()[1], **dict(re.findall(r"%([\w.]+)=(\S+)", line))} for line in lines]


def test_a_site_with_four_file_systems_and_the_studys_axes_is_listed_without_the_whole_product(tmp_path):
    """30 points on 4 file systems: what stands for its kernel everywhere, the rest at two points."""
    (site,) = read_site_configuration("claix18").values()
    everything = listed(reframe(CHECKOUT / "site_configs" / "claix18.py", tmp_path, "-l", "-t", "^full$"))
    assert len(everything) < MOST_VARIANTS
    # Of upstream benchmarks that are not here there is one variant each (test_upstream_checks.py).
    variants = [v for v in everything if v["check"] not in UPSTREAM]
    points = [(nodes, ranks) for nodes in site.nodes for ranks in site.ranks_per_node]
    assert (len(points), len(site.file_systems)) == (30, 4)
    at: Counter[tuple[str, tuple[int, int]]] = Counter()
    for variant in variants:
        at[variant["file_system"], (int(variant["nodes"]), int(variant["ranks_per_node"]))] += 1
    serial = [v for v in variants if v["check"] in ("FormatsCheck", "H5perfSerialBesideCheck")]
    assert {(v["nodes"], v["ranks_per_node"]) for v in serial} == {("1", "1")}
    patterns = at["hpcwork", (16, 48)]
    for file_system in site.file_systems:
        assert {point: at[file_system, point] for point in points} == {
            point: patterns if point in ((1, 48), (16, 48)) else 6 for point in points
        }
    assert patterns > 90
    assert len(variants) == 4 * (2 * patterns + 28 * 6) + len(serial)
    assert len(variants) < 30 * 4 * patterns / 5, "the rule saves more than four fifths of the product"


def site_with(tmp_path: Path, extras: str) -> Path:
    """The local site with more in its extras."""
    text = (CHECKOUT / "site_configs" / "local.py").read_text()
    line = '"netcdf": netcdf,'
    assert line in text
    (tmp_path / "common.py").write_text((CHECKOUT / "site_configs" / "common.py").read_text())
    path = tmp_path / "local.py"
    path.write_text(text.replace(line, f"{line} {extras}").replace('"nodes": [1]', '"nodes": [1, 2, 3]'))
    return path


ONE = r"ParticlesCheck.*%nodes=1\b.*ranks_per_node=1\b.*file_system=memory.*CC.*dimensions=1.*full$"


def job_of(configuration: Path, work: Path, *arguments: str) -> str:
    """The job script of a dry run of one case."""
    done = reframe(configuration, work, "--dry-run", "-n", ONE, *arguments, checks="particles.py")
    assert done.returncode == 0, done.stdout + done.stderr
    (script,) = work.glob("stage/*/*/*/ParticlesCheck*/rfm_job.sh")
    return script.read_text()


def test_a_sites_options_are_the_checks_defaults_and_the_command_line_wins(tmp_path):
    extras = '"options": {"particles": {"particles": 4096, "steps": 3, "time_limit": "1h"}, "segments": {"rounds": 2}},'
    site = site_with(tmp_path, extras)
    job = job_of(site, tmp_path, "-S", "ParticlesCheck.particles=262144")
    assert "--particles 262144 " in job, "-S wins, though the value is the check's own"
    assert "--steps 3 " in job
    assert "--repeats 7 " in job


def test_a_site_leaves_baselines_out_and_names_kernels_that_are_installed(tmp_path):
    site = site_with(tmp_path, '"options": {"particles": {"with_baselines": False}},')
    site.write_text(site.read_text().replace("common.darshan()", '{"kernels": "/sw/iogauge/bin"}'))
    job = job_of(site, tmp_path)
    assert "--baseline" not in job
    assert "mpirun -np 1 /sw/iogauge/bin/particles " in job


def test_launcher_options_name_the_jobs_numbers(tmp_path):
    site = site_with(tmp_path, '"cpus_per_node": 6, "launcher_options": ["--a={ranks_per_node}x{cpus_per_rank}"],')
    assert "mpirun -np 1 --a=1x6 " in job_of(site, tmp_path)


def test_the_nightly_suite_runs_where_the_site_says(tmp_path):
    site = site_with(tmp_path, '"points": [[3, 1]], "nightly_points": [[1, 1], [3, 1]],')
    nights = listed(reframe(site, tmp_path, "-l", "-t", "^nightly$", checks="particles.py"))
    assert {(v["nodes"], v["ranks_per_node"]) for v in nights} == {("1", "1"), ("3", "1")}
    assert {v["check"] for v in nights if v["nodes"] == "1"} == {"ParticlesCheck"}
    assert {v["locality"] for v in nights if v["nodes"] == "1"} == {"CC"}
    assert {v["locality"] for v in nights if v["nodes"] == "3" and "locality" in v} == {"CC", "CI", "IC", "II"}
    assert {v["file_system"] for v in nights} == {"disk", "memory"}


def test_a_file_system_can_be_left_to_the_full_suite(tmp_path):
    site = site_with(tmp_path, "")
    site.write_text(site.read_text().replace('"type": "memory",', '"type": "memory", "nightly": False,'))
    nights = listed(reframe(site, tmp_path, "-l", "-t", "^nightly$", checks="particles.py"))
    assert {v["file_system"] for v in nights} == {"disk"}
    assert {v["file_system"] for v in listed(reframe(site, tmp_path, "-l", checks="particles.py"))} == {
        "disk",
        "memory",
    }


@pytest.mark.parametrize(
    ("extras", "key"),
    [
        ('"options": {"particle": {"steps": 3}},', "options.particle: unknown key; allowed: benchio, blocks"),
        ('"options": {"particles": {"step": 3}},', "options.particles.step: unknown key; allowed: alignment"),
        ('"options": {"particles": {"steps": 3.5}},', "options.particles.steps: Input should be a valid integer"),
    ],
)
def test_a_wrong_option_ends_reframe_with_exit_code_2_and_the_line(tmp_path, extras, key):
    site = site_with(tmp_path, extras)
    done = reframe(site, tmp_path, "-l", checks="particles.py")
    line = next(number for number, text in enumerate(site.read_text().splitlines(), 1) if '"options"' in text)
    assert done.returncode == 2
    assert f"local.py:{line}: {key}" in done.stdout + done.stderr


def test_partitions_of_a_system_cannot_have_different_options(tmp_path):
    site = site_with(tmp_path, '"options": {"particles": {"steps": 3}},')
    site.write_text(
        site.read_text()
        + 'other = {**site_configuration["systems"][0]["partitions"][0], "name": "other"}\n'
        + 'other["extras"] = {**other["extras"], "options": {}}\n'
        + 'site_configuration["systems"][0]["partitions"].append(other)\n'
    )
    done = reframe(site, tmp_path, "-l", checks="particles.py")
    assert done.returncode == 2
    assert "options: the partitions of a system must have the same options" in done.stdout + done.stderr
