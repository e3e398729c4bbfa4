"""What a case costs in wall time beyond a job that does nothing, of the same size, on the same partition.

Both are run by ReFrame one after the other in turns; the times are ReFrame's own, from setup to the end of the clean-up. With
Slurm, ReFrame looks for the end of a job every one to three seconds, so that one pair says little: the median of several does.

Example: python bench/case_overhead.py --site minicluster --nodes 2 --ranks-per-node 2 --file-system shared
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles

import click

CHECKOUT = Path(__file__).resolve().parents[1]

FLOOR = """
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class FloorCheck(rfm.RunOnlyRegressionTest):
    valid_systems = ["{partition}"]
    valid_prog_environs = ["*"]
    executable = "true"
    num_tasks = {ranks}
    num_tasks_per_node = {ranks_per_node}
    sanity_patterns = sn.assert_true(1)
"""


@click.command(help=__doc__)
@click.option("--site", default="local", show_default=True)
@click.option(
    "--partition", default="local:default", show_default=True, help="SYSTEM:PARTITION where the floor is measured"
)
@click.option("--nodes", default=1, show_default=True)
@click.option("--ranks-per-node", default=1, show_default=True)
@click.option("--file-system", default="disk", show_default=True)
@click.option("--pairs", default=7, show_default=True)
def main(site: str, partition: str, nodes: int, ranks_per_node: int, file_system: str, pairs: int) -> None:
    case = (
        f"ParticlesCheck.*nodes={nodes}%ranks_per_node={ranks_per_node}%file_system={file_system}"
        "%locality=CC%dimensions=1%selection=full"
    )
    with tempfile.TemporaryDirectory() as folder:
        floor = Path(folder) / "floor.py"
        floor.write_text(FLOOR.format(partition=partition, ranks=nodes * ranks_per_node, ranks_per_node=ranks_per_node))
        report = Path(folder) / "report.json"
        command = [
            Path(sys.executable).parent / "reframe",
            "-C",
            CHECKOUT / "site_configs" / f"{site}.py",
            "--system",
            site,
        ]
        command += ["-c", CHECKOUT / "reframe_checks" / "particles.py", "-c", floor, "--prefix", folder]
        command += ["--report-file", report, "-n", case, "-n", "FloorCheck", "--repeat", pairs, "-r"]
        command += ["--exec-policy", "serial", "-S", "particles=1024", "-S", "repeats=1", "-S", "warmup=0"]
        done = subprocess.run(
            [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if not report.exists():
            sys.exit(done.stdout[-2000:])
        entries = [e for e in json.loads(report.read_text())["runs"][0]["testcases"] if not e["fixture"]]
    floors = [entry["time_total"] for entry in entries if entry["name"].startswith("FloorCheck")]
    cases = [entry for entry in entries if not entry["name"].startswith("FloorCheck")]
    if len(cases) != pairs or len(floors) != pairs or any(not entry["measurements"] for entry in cases):
        sys.exit(f"not {pairs} of each ran; ReFrame said:\n{done.stdout[-2000:]}")
    totals = [entry["time_total"] for entry in cases]
    kernel = [_kernel_seconds(entry["measurements"]) for entry in cases]
    for name, seconds in (
        ("a job that does nothing", floors),
        ("a case", totals),
        ("of it, writing and reading", kernel),
    ):
        low, _, high = quantiles(seconds, n=4)
        print(f"{name:28} {median(seconds):6.2f} s  [{low:.2f}, {high:.2f}]")
    print(f"{'a case costs':28} {median(totals) - median(floors):6.2f} s more")


def _kernel_seconds(measurements: list[dict[str, object]]) -> float:
    repeats = [repeat for record in measurements for repeat in record["repeats"]]  # type: ignore[attr-defined]
    return sum(repeat["total_seconds"] for repeat in repeats)


if __name__ == "__main__":
    main()
