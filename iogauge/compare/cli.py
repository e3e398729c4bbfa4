"""The command ``iogauge compare``."""

from __future__ import annotations

import json
import os
import re
import shutil
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click

from iogauge import arms, nightly
from iogauge.command import answers, at_history, new_console, progress_bar
from iogauge.compare.plan import AND, ARMS_VARIABLE, COMPARE, LEFT, LOGS_FOLDER, PLAN_FILE, RUNS_FILE
from iogauge.compare.result import Comparison, of_folder
from iogauge.compare.shown import print_comparison
from iogauge.errors import InputError, Refusal
from iogauge.history.comparisons import record, step_of
from iogauge.history.database import History

COMPARISON_FILE = "comparison.json"


class _Percent(click.ParamType[float]):
    """``5%`` or ``0.05``: a fraction."""

    name = "PERCENT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text, fraction = str(value), 0.0
        with suppress(ValueError):
            fraction = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        if not 0 < fraction < 1:
            self.fail(f"{text!r}; a part of the rate such as 5% or 0.05 is expected", param, ctx)
        return fraction


class _Minutes(click.ParamType[float]):
    """``90s``, ``15m`` or ``1h30m``, in minutes."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value)
        found = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", text)
        minutes = 0.0
        if found:
            hours, whole, seconds = (int(part or 0) for part in found.groups())
            minutes = 60 * hours + whole + seconds / 60
        if minutes <= 0:
            self.fail(f"{text!r}; a time such as 90s, 15m or 1h30m is expected", param, ctx)
        return minutes


@click.command("compare")
@click.argument("arm_a")
@click.argument("arm_b")
@click.option("--site", default="local", show_default=True, help="site_configs/SITE.py, which says where it runs")
@click.option("--file-system", help="of the site; default: all, one after the other")
@click.option("--only", default="", metavar="TEXT", help="only patterns with this in their names")
@click.option(
    "--margin", type=_Percent(), default="5%", show_default=True, help="not slower by more than this is enough"
)
@click.option("--time-limit", type=_Minutes(), default="15m", show_default=True, help="of each file system")
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True, help="of a run; the best counts")
@click.option("--seed", type=click.IntRange(1), help="draws the order; default: a new one, which is recorded")
@click.option(
    "--darshan/--no-darshan", default=True, help="each arm once under Darshan, too, where both have it (the default)"
)
@click.option(
    "--resume", "earlier", metavar="FOLDER", help="go on with an interrupted comparison; 'latest' is the last one"
)
@click.option("--json", "as_json", is_flag=True, help="print the results as JSON")
@at_history
@click.option("--verbose", is_flag=True, help="show what ReFrame prints")
@answers
def compare_command(
    arm_a: str,
    arm_b: str,
    site: str,
    file_system: str | None,
    only: str,
    margin: float,
    time_limit: float,
    repeats: int,
    seed: int | None,
    darshan: bool,
    earlier: str | None,
    as_json: bool,
    location: str | None,
    verbose: bool,
) -> int:
    """Is ARM_B slower than ARM_A? Runs of both in turn, in one allocation, until that is decided.

    An arm is an environ of the site, one of scripts/hdf5-arms, STACK/ARM of Spack, or the prefix of an HDF5; iogauge arms
    lists them.

    \b
    Examples:
      iogauge compare hdf5-1.10.8-openmpi hdf5-1.14.6-openmpi
      iogauge compare default hdf5-1.14.6-openmpi --file-system memory --only particles --margin 10% --time-limit 5m

    Exit codes: 0 nothing is slower; 1 something is, or a file cannot be read by the other; 2 there is no verdict.
    """
    resumed = _earlier(earlier) if earlier else ""
    _check_arms(site, (arm_a, arm_b), file_system)
    console = new_console()
    variables: dict[str, object] = {
        "margin": margin,
        "time_limit_minutes": time_limit,
        "repeats": repeats,
        "only": only,
        "seed": seed or 0,
        "resume": resumed,
        "darshan": "" if darshan else "0",
    }
    pair = f"{arm_a}{AND}{arm_b}"
    os.environ[ARMS_VARIABLE] = pair
    options = ["-n", rf"UpgradeCheck.*%file_system={file_system or '[^%]*'}\s*%arms={re.escape(pair)}$"]
    options += [word for name, value in variables.items() if value for word in ("-S", f"UpgradeCheck.{name}={value}")]
    problem = ""
    with progress_bar(console, f"{arm_a} and {arm_b} on {site}", verbose=verbose) as progress:
        try:
            folder = nightly.run_apart(site, COMPARE, progress, options)
        except InputError as error:
            folder, problem = nightly.home() / COMPARE, str(error)
    found = [_keep(*one) for one in _finished(folder) or _interrupted(folder, problem)]
    if not found:
        raise InputError(problem or "no case of the two arms ran", file=folder / "reframe.log")
    problems = list(dict.fromkeys(filter(None, (_tell_history(one, location) for one, _ in found))))
    if as_json:
        click.echo(json.dumps([one.model_dump(mode="json", by_alias=True) for one, _ in found], indent=1))
    else:
        for one, kept in found:
            print_comparison(console, one)
            console.print(f"report  {kept / 'index.html'}", soft_wrap=True)
    for problem in problems:
        click.echo(f"iogauge: {problem}", err=True)
    return max(one.exit_code for one, _ in found)


def _check_arms(site: str, names: tuple[str, str], file_system: str | None) -> None:
    """Build the kernels of arms that are no environs. Raises :class:`InputError` with what there is."""
    if names[0] == names[1]:
        raise InputError(f"{names[0]} twice; two arms are compared", key="ARM_B")
    systems = [name for model in nightly.read_site_configuration(site).values() for name in model.file_systems]
    if file_system is not None and file_system not in systems:
        raise InputError(
            f"site {site} has no {file_system}; it has {', '.join(dict.fromkeys(systems))}", key="--file-system"
        )
    for name in names:
        arm = arms.resolve(name, site)
        if arm.kind != "environ":
            try:
                arms.build(arm)
            except Refusal as refusal:
                raise InputError(str(refusal)) from refusal


def _tell_history(comparison: Comparison, location: str | None) -> str:
    """The nights after the upgrade are expected to show what was measured. What went wrong, or nothing."""
    step = step_of(comparison)
    if step is None:
        return ""
    try:
        record(History(location), step)
    except InputError as problem:
        return f"the nights will not know of it: {problem}"
    return ""


def _kept() -> Path:
    return nightly.home() / "comparisons"


def _earlier(name: str) -> Path:
    if name != "latest":
        folder = Path(name)
    else:
        folders = sorted(_kept().glob("*/" + PLAN_FILE))
        if not folders:
            raise InputError("there is no comparison yet", file=_kept(), key="--resume")
        folder = folders[-1].parent
    if not (folder / RUNS_FILE).exists():
        raise InputError(f"has no {RUNS_FILE} of a comparison", file=folder, key="--resume")
    return folder.resolve()


def _finished(folder: Path) -> list[tuple[Comparison, Path]]:
    """The comparisons in ReFrame's report, with where their files are."""
    report = folder / "reframe.json"
    if not report.exists():
        return []
    cases = [case for run in json.loads(report.read_bytes())["runs"] for case in run["testcases"]]
    return [(Comparison.model_validate(case["comparison"]), left_by(case)) for case in cases if case.get("comparison")]


def left_by(case: dict[str, Any]) -> Path:
    """Where its files are: ReFrame moves those of a test that passed, and leaves those of one that failed."""
    stage, output = (Path(case[name] or ".") for name in ("stagedir", "outputdir"))
    return stage if (stage / PLAN_FILE).exists() else output


def _interrupted(folder: Path, problem: str) -> list[tuple[Comparison, Path]]:
    """What an interrupted run has left in its stage folders."""
    stages = sorted(path.parent for path in folder.rglob(PLAN_FILE))
    return [(of_folder(stage, stopped="interrupted", problem=problem), stage) for stage in stages]


def _keep(comparison: Comparison, stage: Path) -> tuple[Comparison, Path]:
    """Copy what a comparison leaves in ``stage`` to where the next one does not remove it."""
    from iogauge.report.comparison import write_page  # with matplotlib, which takes a second to load

    began = comparison.started or datetime.now(timezone.utc)
    kept = _kept() / f"{began:%Y%m%dT%H%M%SZ}-{comparison.file_system}"
    kept.mkdir(parents=True, exist_ok=True)
    for name in LEFT:
        if (stage / name).exists():
            shutil.copyfile(stage / name, kept / name)
    if (stage / LOGS_FOLDER).is_dir():
        shutil.copytree(stage / LOGS_FOLDER, kept / LOGS_FOLDER, dirs_exist_ok=True)
    comparison.save(kept / COMPARISON_FILE)
    write_page(comparison, kept / "index.html")
    return comparison, kept
