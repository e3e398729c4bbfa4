"""The command ``iogauge compare``."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from iogauge import arms, nightly
from iogauge.command import answers, at_history, new_console, progress_bar
from iogauge.compare.plan import (
    AND,
    ARMS_VARIABLE,
    COMPARE,
    LEFT,
    LOGS_FOLDER,
    PLAN_FILE,
    POINT_VARIABLE,
    Plan,
    point_of,
)
from iogauge.compare.result import Comparison, of_folder
from iogauge.compare.shown import print_comparison
from iogauge.errors import InputError, Refusal
from iogauge.history.comparisons import record, step_of
from iogauge.history.database import History
from iogauge.night import build_failure

#: Where the suite is.
CHECK = "upgrade.py"

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


class _Point(click.ParamType[str]):
    """``4x2``: nodes, and ranks on each."""

    name = "NODESxRANKS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not re.fullmatch(r"[1-9]\d{0,5}x[1-9]\d{0,5}", str(value)):
            self.fail(f"{value!r}; nodes and ranks per node such as 4x2 are expected", param, ctx)
        return str(value)


#: What an earlier comparison has settled.
_SETTLED = {"only", "libver", "margin", "repeats", "seed", "point"}


@click.command("compare")
@click.argument("arm_a")
@click.argument("arm_b")
@click.option("--site", default="local", show_default=True, help="site_configs/SITE.py, which says where it runs")
@click.option("--file-system", help="of the site; default: all, one after the other")
@click.option("--partition", help="of the site; default: all that have the file system")
@click.option("--point", type=_Point(), help="of the site's axes, as 4x2; default: the largest")
@click.option("--only", default="", metavar="TEXT", help="only patterns with this in their names")
@click.option(
    "--libver",
    type=click.Choice(("earliest", "v18", "v110", "latest")),
    default="earliest",
    show_default=True,
    help="the oldest HDF5 that must be able to read the files",
)
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
    "--resume",
    "earlier",
    metavar="FOLDER",
    help="go on with a comparison that is not decided, as it was asked for; 'latest': the last of the two arms",
)
@click.option("--json", "as_json", is_flag=True, help="print the results as JSON")
@at_history
@click.option("--verbose", is_flag=True, help="show what ReFrame prints")
@click.pass_context
@answers
def compare_command(
    context: click.Context,
    arm_a: str,
    arm_b: str,
    site: str,
    file_system: str | None,
    partition: str | None,
    point: str | None,
    only: str,
    libver: str,
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
      iogauge compare hdf5-1.10.8-openmpi hdf5-1.14.5-openmpi
      iogauge compare default hdf5-1.14.5-openmpi --file-system memory --only particles --margin 10% --time-limit 5m

    Exit codes: 0 nothing is slower; 1 something is, or a file cannot be read by the other; 2 there is no verdict, or time was
    up before anything was decided.
    """
    resumed: Path | None = None
    if earlier:
        _check_settled(context)
        resumed, plan = _earlier(earlier, (site, arm_a, arm_b), file_system, partition)
        file_system, partition, point = plan.file_system, plan.partition, f"{plan.nodes}x{plan.ranks_per_node}"
    _check_place(site, file_system, partition, point)
    with _ended_by_signals():
        check_arms(site, (arm_a, arm_b))
    console = new_console()
    variables: dict[str, object] = {
        "margin": margin,
        "time_limit_minutes": time_limit,
        "repeats": repeats,
        "only": "" if resumed else only,
        "libver": "" if resumed else libver,
        "seed": seed or 0,
        "resume": resumed or "",
        "darshan": "" if darshan else "0",
    }
    pair = f"{arm_a}{AND}{arm_b}"
    os.environ |= {ARMS_VARIABLE: pair, POINT_VARIABLE: point or ""}
    where = re.escape(file_system) if file_system else "[^%]*"
    options = ["-n", rf"UpgradeCheck.*%file_system={where}\s*%arms={re.escape(pair)}$"]
    options += [word for name, value in variables.items() if value for word in ("-S", f"UpgradeCheck.{name}={value}")]
    options += ["--system", f"{site}:{partition}"] if partition else []
    cause = ""
    with progress_bar(console, f"{arm_a} and {arm_b} on {site}", verbose=verbose) as progress:
        try:
            folder = nightly.run_apart(site, COMPARE, progress, options, check=CHECK)
        except InputError as error:
            folder, cause = nightly.home() / COMPARE, error.message
            if error.file is None or folder not in error.file.parents:
                raise  # it has not begun: what lies there is another one's
    with nightly.Stop():  # what is there is written whole
        left, broken = _left(folder, cause)
        if not left:
            raise InputError("; ".join(broken) or cause or "no case of the two arms ran", file=folder / "reframe.log")
        found = [_keep(*one) for one in left]
        untold = [_tell_history(one, location) for one, _ in found]
    if as_json:
        click.echo(json.dumps([one.model_dump(mode="json", by_alias=True) for one, _ in found], indent=1))
    else:
        for one, kept in found:
            print_comparison(console, one)
            console.print(f"report  {kept / 'index.html'}", soft_wrap=True)
    for problem in dict.fromkeys(filter(None, [*broken, *untold])):
        click.echo(f"iogauge: {problem}", err=True)
    return 2 if broken else exit_code([one for one, _ in found])


def exit_code(found: Sequence[Comparison]) -> int:
    """Of several file systems: what could not be compared goes before what is slower, and that before what is not decided."""
    if any(one.stopped == "broken" for one in found):
        return 2
    codes = {one.exit_code for one in found}
    return 1 if 1 in codes else max(codes)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Other signals end what goes on as Ctrl-C does."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    previous = [signal.signal(number, signal.default_int_handler) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, previous, strict=True):
            signal.signal(number, handler)


def _check_settled(context: click.Context) -> None:
    """Raises :class:`InputError` for what cannot be asked for anew."""
    for name in sorted(_SETTLED):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError("--resume goes on with what was asked for then; leave it out", key=f"--{name}")


def _check_place(site: str, file_system: str | None, partition: str | None, point: str | None) -> None:
    """Raises :class:`InputError` for what the site does not have, with what it has."""
    models = nightly.read_site_configuration(site)
    if partition is not None and partition not in models:
        raise InputError(f"site {site} has no {partition}; it has {', '.join(models)}", key="--partition")
    chosen = [model for name, model in models.items() if partition in (None, name)]
    names = list(dict.fromkeys(name for model in chosen for name in model.file_systems))
    if file_system is not None and file_system not in names:
        of = f"site {site}" if partition is None else f"partition {partition} of site {site}"
        raise InputError(f"{of} has no {file_system}; it has {', '.join(names)}", key="--file-system")
    wanted = names if file_system is None else [file_system]
    if point and not any(point_of(model, name, point) for model in chosen for name in wanted):
        axes = {
            f"{nodes}x{ranks}"
            for model in chosen
            for name in wanted
            if name in model.file_systems
            for nodes, ranks in itertools.product(*model.axes_of(name))
        }
        raise InputError(f"{point} is not on the site's axes there; allowed: {', '.join(sorted(axes))}", key="--point")


def check_arms(site: str, names: tuple[str, str]) -> None:
    """Load the modules of all, then build the kernels of those that are no environs. Raises :class:`InputError` with what
    there is."""
    if names[0] == names[1]:
        raise InputError(f"{names[0]} twice; two arms are compared", key="ARM_B")
    meant = [arms.resolve(name, site) for name in names]
    try:
        for arm in meant:
            arms.check_modules(arm)
        for arm in meant:
            if arm.kind != "environ":
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


def _earlier(
    name: str, asked: tuple[str, str, str], file_system: str | None, partition: str | None
) -> tuple[Path, Plan]:
    """The folder and the plan of a comparison of that site and arms that is not decided. Raises :class:`InputError`."""
    folders = sorted(path.parent for path in _kept().glob("*/" + PLAN_FILE)) if name == "latest" else [Path(name)]
    site, *names = asked
    for folder in reversed(folders):
        plan = _plan_in(folder)
        mine = plan.site == site and [arm.name for arm in plan.arms] == names
        there = file_system in (None, plan.file_system) and partition in (None, plan.partition)
        kept = folder / COMPARISON_FILE
        decided = kept.exists() and Comparison.load(kept).stopped == "decided"
        if mine and there and not decided:
            return folder.resolve(), plan
        if name != "latest":
            was = f"of {' and '.join(arm.name for arm in plan.arms)} on {plan.file_system} of {plan.site}"
            raise InputError(f"is a comparison {was}{', and decided' * decided}", file=folder, key="--resume")
    raise InputError(
        f"there is no comparison of {' and '.join(names)} yet that is not decided", file=_kept(), key="--resume"
    )


def _plan_in(folder: Path) -> Plan:
    try:
        return Plan.model_validate_json((folder / PLAN_FILE).read_bytes())
    except (OSError, ValueError) as problem:
        raise InputError(f"has no {PLAN_FILE} of a comparison", file=folder, key="--resume") from problem


def _left(folder: Path, cause: str) -> tuple[list[tuple[Comparison, Path]], list[str]]:
    """The comparisons of a run with where their files are, interrupted ones too; and why others have left nothing.

    ``cause``: why ReFrame did not come to its end.
    """
    report = folder / "reframe.json"
    runs = json.loads(report.read_bytes())["runs"] if report.exists() else []
    cases = [case for run in runs for case in run["testcases"]]
    found, problems, seen = [], [], set()
    for case in cases:
        stage = Path(case["stagedir"] or folder)
        why = case["fail_reason"] or case.get("skip_reason") or ""
        if case.get("comparison"):
            found.append((Comparison.model_validate(case["comparison"]), left_by(case)))
            seen.add(stage)
        elif (stage / PLAN_FILE).exists():
            found.append((of_folder(stage, stopped="interrupted", problem=cause or why), stage))
            seen.add(stage)
        elif case["fail_phase"] == "compile_wait":
            problems.append(f"{case['environ']} in {case['partition']}: {build_failure(case)}")
        elif why or cause:
            problems.append(f"{case['display_name']} in {case['partition']}: {why or cause}")
    for stage in sorted({path.parent for path in (folder / "reframe" / "stage").rglob(PLAN_FILE)} - seen):
        found.append((of_folder(stage, stopped="interrupted", problem=cause), stage))
    return found, problems


def left_by(case: dict[str, Any]) -> Path:
    """Where its files are: ReFrame moves those of a test that passed, and leaves those of one that failed."""
    stage, output = (Path(case[name] or ".") for name in ("stagedir", "outputdir"))
    return stage if (stage / PLAN_FILE).exists() else output


def _keep(comparison: Comparison, stage: Path) -> tuple[Comparison, Path]:
    """Copy what a comparison leaves in ``stage`` to where the next one does not remove it."""
    from iogauge.report.comparison import write_page  # with matplotlib, which takes a second to load

    began = comparison.started or datetime.now(timezone.utc)
    kept = _kept() / "-".join(filter(None, (f"{began:%Y%m%dT%H%M%SZ}", comparison.partition, comparison.file_system)))
    kept.mkdir(parents=True, exist_ok=True)
    for name in LEFT:
        if (stage / name).exists():
            shutil.copyfile(stage / name, kept / name)
    if (stage / LOGS_FOLDER).is_dir():
        shutil.copytree(stage / LOGS_FOLDER, kept / LOGS_FOLDER, dirs_exist_ok=True)
    comparison.save(kept / COMPARISON_FILE)
    write_page(comparison, kept / "index.html")
    return comparison, kept
