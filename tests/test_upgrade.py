"""After an upgrade: two real builds compared through ReFrame, the page, and what the nights after it make of the result."""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from assessed import LAST_NIGHT, keys, site
from click.testing import CliRunner
from conftest import CHECKOUT, MPI_ENVIRONMENT, PATIENCE_SECONDS, in_memory
from filelock import FileLock
from test_darshan_runs import needs_runtime, runtime

from iogauge import arms, cli, hdf5_arms, nightly
from iogauge.assess.expected import WHO, with_expected
from iogauge.compare import suite
from iogauge.compare.cli import exit_code, left_by
from iogauge.compare.driver import Driver
from iogauge.compare.exchange import Exchange
from iogauge.compare.launch import script, script_under_darshan
from iogauge.compare.lines import read_lines
from iogauge.compare.otherwise import Otherwise
from iogauge.compare.plan import LOGS_FOLDER, PLAN_FILE, PROFILED_FILE, RUNS_FILE, Arm, Plan
from iogauge.compare.profiled import Profiled, why_none
from iogauge.compare.result import ArmShown, Comparison, Ratio, Result, next_steps, why
from iogauge.errors import Refusal
from iogauge.history.comparisons import Compared, Step, record, recorded, step_of
from iogauge.history.database import History
from iogauge.measurement import Software
from iogauge.report import comparison as page
from iogauge.report.forest import Axis, axis_of, marks_of
from iogauge.terminal import rate

SLOW = "particles/write/scratch/1x1/CC/hdf5"


def software(hdf5: str) -> Software:
    return Software(hdf5=hdf5, mpi="Open MPI v4.1.4", suite="0.1.0", kernels="abc", compiler="GNU 12")


def ratio(finding: str, value: float, lowest: float | None = None, highest: float | None = None) -> Ratio:
    return Ratio(finding=finding, ratio=value, lowest=lowest, highest=highest, provable=1 - (lowest or 0))  # type: ignore[arg-type]


def compared(**changes: object) -> Comparison:
    results = tuple(
        Result(
            pattern="particles CC",
            series=f"particles/{operation}/CC/hdf5",
            operation=operation,
            unit="MiB/s",
            observed=observed,
            raw=ratio("undecided", 1.01),
            first=(100.0, 110.0, 105.0),
            second=tuple(value * observed.ratio for value in (100.0, 110.0, 105.0)),
        )
        for operation, observed in (
            ("write", ratio("slower", 0.8, 0.74, 0.86)),
            ("read", ratio("not slower", 1.0, 0.97, 1.03)),
        )
    )
    return Comparison(
        site="test",
        file_system="scratch",
        arms=(ArmShown(name="old", software=software("1.14.3")), ArmShown(name="new", software=software("1.14.5"))),
        hosts={"n1": 2},
        started=datetime.datetime(2026, 11, 10, 8, tzinfo=datetime.timezone.utc),
        seed=7,
        margin=0.05,
        alpha=0.05,
        stopped="decided",
        results=results,
    ).model_copy(update=changes)


@pytest.mark.parametrize(
    ("write", "read", "stopped", "code"),
    [
        ("faster", "not slower", "decided", 0),
        ("faster", "undecided", "time", 0),
        ("undecided", "undecided", "time", 2),
        ("faster", "undecided", "interrupted", 2),
        ("slower", "undecided", "interrupted", 1),
        ("faster", "faster", "broken", 2),
    ],
)
def test_the_exit_code_is_0_only_where_something_was_proven(write: str, read: str, stopped: str, code: int) -> None:
    results = zip(compared().results, (write, read), strict=True)
    found = tuple(one.model_copy(update={"observed": ratio(finding, 1.0), "raw": None}) for one, finding in results)
    comparison = compared(results=found, stopped=stopped)
    assert comparison.exit_code == code
    slower, broken = compared(), compared(stopped="broken")
    assert exit_code([slower, comparison]) == (2 if stopped == "broken" else 1)
    assert exit_code([slower, comparison, broken]) == 2


def test_what_is_slower_in_its_transfers_is_not_undecided_besides() -> None:
    slow, well = compared().results
    undecided = ratio("undecided", 0.98, 0.9, 1.1)
    in_transfers = slow.model_copy(update={"observed": undecided, "raw": ratio("slower", 0.8, 0.74, 0.86)})
    words = next_steps(compared(results=(in_transfers, well.model_copy(update={"observed": undecided}))))
    assert "1 of 2 operations is slower; most so particles CC write in its transfers, 20% slower (14% to 26%)" in words
    assert "1 is undecided: at worst, 10% slower is not ruled out." in words


# --- what the nights make of it --------------------------------------------------------------------------------------------


def shifted() -> object:
    """HDF5 1.14.5 came four nights ago, and one series is 20 % slower since."""
    return site({SLOW: "shift"} | dict.fromkeys(keys(["scratch"], 4)[1:], "steady")).assessment


def state_of(assessment: object) -> object:
    return next(one for one in assessment.series if one.key == SLOW)  # type: ignore[attr-defined]


def test_a_slowdown_that_was_measured_before_the_upgrade_is_known_and_no_alarm() -> None:
    assessment = shifted()
    assert state_of(assessment).alarm
    step = step_of(compared())
    assert step is not None
    state = state_of(with_expected(assessment, [step]))
    assert not state.alarm
    assert state.word == "shifted level"
    assert state.move.acknowledged.who == WHO
    assert state.move.acknowledged.why == "measured on 2026-11-10: 20% slower, at most 26% slower"


@pytest.mark.parametrize(
    "change",
    [
        {"file_system": "home"},
        {"versions": {"HDF5": ("1.10.8", "1.14.5")}},
        {"results": {"particles/read/CC/hdf5": Step(ratio=0.8, lowest=0.7)}},
        {"results": {"particles/write/CC/hdf5": Step(ratio=0.97, lowest=0.93)}},
        {"results": {"particles/write/CC/hdf5": Step(ratio=0.8, lowest=None)}},
    ],
    ids=["elsewhere", "another upgrade", "another series", "more than was measured", "nothing was proven"],
)
def test_another_slowdown_than_the_measured_one_stays_an_alarm(change: dict[str, object]) -> None:
    step = step_of(compared())
    assert step is not None
    assert state_of(with_expected(shifted(), [step.model_copy(update=change)])).alarm


def test_more_than_was_measured_is_told_with_what_was() -> None:
    step = Compared(
        site="test",
        file_system="scratch",
        at=1_794_300_000,
        versions={"HDF5": ("1.14.3", "1.14.5")},
        results={"particles/write/CC/hdf5": Step(ratio=0.97, lowest=0.93)},
    )
    state = state_of(with_expected(shifted(), [step]))
    assert state.notes[-1] == "more than iogauge compare measured on 2026-11-10: 3% slower, at most 7% slower"


def test_what_was_compared_is_kept_in_the_history(history: History) -> None:
    step = step_of(compared())
    assert step is not None
    assert step.versions == {"HDF5": ("1.14.3", "1.14.5")}
    record(history, step)
    with history.reading() as connection:
        assert recorded(connection, "test") == [step]
        assert recorded(connection, "other") == []


def test_a_broken_comparison_tells_the_history_nothing() -> None:
    assert step_of(compared(results=(), stopped="broken")) is None
    same = compared().arms[0]
    assert step_of(compared(arms=(same, same.model_copy(update={"name": "new"})))) is None


# --- the page --------------------------------------------------------------------------------------------------------------


def test_the_page_says_what_is_slower_what_differs_and_what_to_do() -> None:
    evil = "</script><b>'"
    shown = compared(
        exchanges=(Exchange(pattern="particles CI", writer="new", reader="old", problem=evil, file_bytes=10),),
        otherwise=(Otherwise(pattern="particles CC", differences=("fsync: 0 became 5 (one a step)",)),),
        profiled=(
            Profiled(
                pattern="particles CC",
                differences=("H5D: flushes 1 became 2",),
                metadata="POSIX 1%, then 2%",
                logs=("1.darshan", "2.darshan"),
            ),
            Profiled(pattern="particles CI", problem="no log"),
        ),
        repeats=3,
        time_limit_seconds=900,
    )
    text = page.render(shown)
    for words in (
        "new is slower than old in 1 of 2 operations",
        "20% slower (14% to 26%)",
        "0.740 to 0.860 after 3 pairs: all of it is below 1",
        "not slower by more than 3%",
        "0.970 to 1.030 after 3 pairs: none of it is below 0.95",
        "margin 5 %, time limit 15 minutes, the best of 3 repeats a run, seed 7",
        "all is decided, after 3 pairs a pattern",
        "H5D: flushes 1 became 2",
        "for information, metadata's part of the time: POSIX 1%, then 2%",
        "particles CI: not told by Darshan: no log",
        "fsync: 0 became 5 (one a step)",
        "Keep the old version as the default",
        "particles CI: old cannot read what new wrote",
        "<b>1.14.3</b>",
        "seed 7",
        "n1 (2 ranks)",
        rate(105.0),
    ):
        assert words in text, words
    assert "<b>'" not in text
    assert re.findall(r"<tr><th scope=.row.>(\S+ \S+) <b>(\w+)", text) == [
        ("particles CC", "write"),
        ("particles CC", "read"),
    ], "the slower one comes first"
    assert "://" not in text.replace("http://www.w3.org", "")


def test_what_lost_most_comes_first_wherever_it_lost_it() -> None:
    write, read = compared().results
    lost = {"observed": ratio("undecided", 0.98), "raw": ratio("slower", 0.6)}
    shown = page.worst_first(compared(results=(write, read.model_copy(update=lost), read)))
    assert [(one.operation, one.observed.finding) for one in shown] == [
        ("read", "undecided"),
        ("write", "slower"),
        ("read", "not slower"),
    ]


@pytest.mark.parametrize("finding", ["slower", "undecided", "not slower", "faster"])
def test_every_finding_has_a_colour_and_a_symbol(finding: str) -> None:
    results = tuple(one.model_copy(update={"observed": ratio(finding, 0.9)}) for one in compared().results)
    text = page.render(compared(results=results))
    (banner,) = re.findall(r'<div class="banner ([\w-]+)">', text)
    style = text[: text.index("</style>")]
    for look in {banner, *re.findall(r'<span class="verdict ([\w-]+)">', text)}:
        assert re.search(rf"\.{look}\b", style), look


@pytest.mark.parametrize(
    ("lowest", "highest", "words"),
    [
        (0.93, 1.05, ["-6 %", "-4 %", "-2 %", "0", "+2 %", "+4 %"]),
        (0.99, 1.01, ["-1 %", "-0.5 %", "0", "+0.5 %", "+1 %"]),
        (0.3, 4.0, ["0.3x", "0.5x", "0.7x", "1", "1.5x", "2x", "3x"]),
        (0.01, 30.0, ["0.01x", "0.1x", "1", "10x"]),
    ],
)
def test_the_axis_has_labels_to_read_however_narrow_it_is(lowest: float, highest: float, words: list[str]) -> None:
    ticks = Axis(lowest, highest).ticks
    assert [tick.text for tick in ticks] == words
    assert all(0 <= tick.at <= 100 for tick in ticks)


def test_the_axis_is_not_stretched_by_what_is_not_known_yet() -> None:
    wild = tuple(one.model_copy(update={"raw": ratio("undecided", 40.0, None, 90.0)}) for one in compared().results)
    axis = axis_of(compared(results=wild))
    assert axis == axis_of(compared())
    assert axis.lowest < 0.74
    assert axis.highest > 1.03
    observed, raw = marks_of(wild[0], axis)
    assert (observed.finding, observed.open_low, observed.open_high) == ("slower", False, False)
    assert (raw.at, raw.low, raw.high, raw.open_low, raw.open_high) == (100, 0, 100, True, True)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (ratio("slower", 0.9, 0.85, 1.01), "judged with all the others (Holm)"),
        (ratio("faster", 1.1, 1.02, None), "1.020 to ? after 1 pair: all of it is above 1"),
        (ratio("undecided", 1.0, 0.9, 1.1), "on both sides of 0.95 and of 1"),
        (ratio("undecided", 0.94, 0.9, 0.97), "on both sides of 0.95"),
        (ratio("undecided", 0.94), "nothing is bounded after 1 pair"),
    ],
)
def test_a_finding_says_why_it_is_so(found: Ratio, words: str) -> None:
    assert why(found, 1, 0.05).endswith(words)


def test_what_darshan_saw_is_a_cause_where_the_counter_saw_nothing() -> None:
    seen = (Profiled(pattern="particles CC", differences=("H5D: flushes 1 became 2",)),)
    assert "The calls of particles CC differ: H5D: flushes 1 became 2;" in next_steps(compared(profiled=seen))
    same = (Profiled(pattern="particles CC"),)
    assert "The calls are the same in both" in next_steps(compared(profiled=same))


def test_without_darshan_the_page_says_in_a_line_what_would_make_it_be() -> None:
    text = page.render(compared(without_darshan="Darshan was not asked: no runtime of it is known for new."))
    assert text.count("no runtime of it is known for new.") == 1


def test_the_page_of_a_broken_comparison_has_no_verdict() -> None:
    text = page.render(compared(results=(), stopped="broken", problem="arms old and new are the same build"))
    assert "No verdict" in text
    assert "the same build" in text
    assert 'class="forest"' not in text


def test_what_a_comparison_left_is_found_where_reframe_left_it(tmp_path: Path) -> None:
    for name in ("passed", "failed"):
        folders = {kind: tmp_path / name / kind for kind in ("stagedir", "outputdir")}
        for folder in folders.values():
            folder.mkdir(parents=True)
        place = folders["outputdir" if name == "passed" else "stagedir"]
        (place / PLAN_FILE).touch()
        assert left_by({kind: str(folder) for kind, folder in folders.items()}) == place


# --- two real builds -------------------------------------------------------------------------------------------------------


def run_compare(tmp_path: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    home = tmp_path / "home"
    (home / hdf5_arms.ARMS).mkdir(parents=True, exist_ok=True)
    built = home / hdf5_arms.ARMS / arms.BUILT
    kept = (nightly.home() / hdf5_arms.ARMS / arms.BUILT).resolve()
    kept.mkdir(parents=True, exist_ok=True)
    if not built.exists():
        built.symlink_to(kept)  # kernels are built once for all tests
    return subprocess.run(
        [str(Path(sys.executable).parent / "iogauge"), "compare", *arguments],
        cwd=CHECKOUT,
        env={**os.environ, **MPI_ENVIRONMENT, "IOGAUGE_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_SECONDS,
        check=False,
    )


@pytest.fixture
def scratch() -> Iterator[Path]:
    """The storage of this test alone: what other tests have in memory meanwhile is not litter of this one."""
    with tempfile.TemporaryDirectory(prefix="iogauge-compare-", dir=in_memory()) as folder:
        yield Path(folder)


def refused(tmp_path: Path, *arguments: str) -> str:
    """What is said of a command that begins nothing; it needs no process of its own."""
    done = CliRunner().invoke(cli.main, ["compare", *arguments], env={"IOGAUGE_HOME": str(tmp_path / "home")})
    assert (done.exit_code, type(done.exception)) == (2, SystemExit), done.output
    assert not (tmp_path / "home" / "compare").exists()
    return done.stderr


def test_two_hdf5_are_compared_by_reframe_and_the_result_is_kept(
    tmp_path: Path, scratch: Path, kernels: Path, second_hdf5: str
) -> None:
    short = ("--file-system", "disk", "--only", "particles CC", "--time-limit", "6s", "--repeats", "1")
    arguments = ("default", second_hdf5, *short, "--seed", "11", "--json")
    done = run_compare(tmp_path, *arguments, IOGAUGE_KERNELS=str(kernels), IOGAUGE_SCRATCH=str(scratch))
    assert done.stdout, done.stderr
    (fields,) = json.loads(done.stdout)
    comparison = Comparison.model_validate(fields)
    assert comparison.stopped in ("time", "decided")
    assert done.returncode == comparison.exit_code
    assert comparison.seed == 11
    assert [one.name for one in comparison.arms] == ["default", second_hdf5]
    versions = [one.software.hdf5 for one in comparison.arms]
    assert versions[0] != versions[1]
    assert versions[1] == arms.resolve(second_hdf5).hdf5
    assert {result.pattern for result in comparison.results} == {"particles CC", "particles CC collective"}
    assert len(comparison.results[0].first) >= 1
    assert not [one.problem for one in comparison.exchanges if one.problem]
    assert {(one.writer, one.reader) for one in comparison.exchanges} == {
        (a, b) for a in ("default", second_hdf5) for b in ("default", second_hdf5)
    }
    assert [one.pattern for one in comparison.otherwise if not one.problem] == [
        "particles CC",
        "particles CC collective",
    ]
    assert [(one.problem, len(one.logs)) for one in comparison.profiled] == [("", 2)] * (2 if runtime() else 0)
    assert bool(comparison.without_darshan) == (not runtime())
    (kept,) = (tmp_path / "home" / "comparisons").iterdir()
    assert {path.name for path in kept.iterdir()} >= {"comparison.json", "runs.jsonl", "plan.json", "index.html"}
    with History(str(tmp_path / "home" / "history.sqlite")).reading() as connection:
        assert len(recorded(connection, "local")) == 1
    assert not list(scratch.iterdir())


@pytest.fixture
def open_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in MPI_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def arm_under(runtime: str, name: str, kernels: Path, folder: Path, *commands: str) -> Arm:
    """An arm whose launcher's scripts are those of the check."""
    folder.mkdir(exist_ok=True)
    guard = CHECKOUT / "reframe_checks" / "src" / "case_folder.sh"
    texts = {
        "launch": script(commands, ("mpirun", "-np", "2")),
        "darshan": script_under_darshan(commands, ("mpirun", "-np", "2"), runtime, guard),
    }
    for kind, text in texts.items():
        (folder / f"{kind}-{name}.sh").write_text(text)
    words = {kind: ("bash", str(folder / f"{kind}-{name}.sh")) for kind in texts}
    return Arm(name=name, programs=kernels, **words)  # type: ignore[arg-type]


def profiles(tmp_path: Path, *both: Arm) -> tuple[Driver, list[Profiled]]:
    """Of the first pattern, by a driver that goes no further."""
    plan = Plan(site="local", file_system="disk", ranks=2, arms=both, patterns=suite.patterns(1)[:1], seed=1)
    case = tmp_path / "iogauge-case.x1"
    case.mkdir()
    driver = Driver(plan, case, tmp_path / RUNS_FILE, lambda line: None)
    assert why_none(plan) == ""
    driver._profile_all()
    assert list(case.iterdir()) == []
    assert driver.runs == [], "no pair is under Darshan"
    return driver, read_lines(tmp_path / PROFILED_FILE, Profiled)


@needs_runtime
@pytest.mark.usefixtures("open_mpi")
def test_each_arm_runs_once_under_darshan_and_what_differs_is_told(tmp_path: Path, kernels: Path) -> None:
    ompio, romio = (
        arm_under(f'"{runtime()}"', name, kernels, tmp_path / "scripts", f"export OMPI_MCA_io={name}")
        for name in ("ompio", "romio321")
    )
    driver, (found,) = profiles(tmp_path, ompio, romio)
    assert found.problem == ""
    assert any(sentence.startswith("POSIX: ") for sentence in found.differences), found.differences
    assert not [sentence for sentence in found.differences if sentence.startswith("H5D")], "they ask for the same"
    logs = [tmp_path / LOGS_FOLDER / name for name in found.logs]
    assert [log.name for log in logs] == ["particles-CC.1-ompio.darshan", "particles-CC.2-romio321.darshan"]
    assert all(log.stat().st_size for log in logs)
    driver._profile_all()
    assert len(read_lines(tmp_path / PROFILED_FILE, Profiled)) == 1, "what is told is not run again"


@pytest.mark.usefixtures("open_mpi")
def test_a_runtime_that_does_not_fit_is_refused_in_words_and_the_comparison_goes_on(
    tmp_path: Path, kernels: Path
) -> None:
    libraries = tmp_path / "lib"
    libraries.mkdir()
    runtime_of_another, other = libraries / "libdarshan.so", libraries / "libmpich.so.99"
    for command in (
        ("-o", other, "-Wl,-soname,libmpich.so.99"),
        ("-o", runtime_of_another, "-Wl,--no-as-needed", other),
    ):
        subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-x", "none", *command], check=True)
    path = f"export LD_LIBRARY_PATH={libraries}"
    both = [arm_under(str(runtime_of_another), name, kernels, tmp_path / "s", path) for name in ("old", "new")]
    _, (found,) = profiles(tmp_path, *both)
    assert found.differences == found.logs == ()
    assert re.match(
        r"arm old: exit code 2: Darshan: \S+/libdarshan.so is built for another MPI: it needs libmpich.so.99, and "
        r"\S+/particles loads libmpi\S*; a runtime that is built for that one is needed",
        found.problem,
    ), found.problem


def test_without_a_runtime_it_is_said_what_would_make_it_be() -> None:
    old, new = (Arm(name=name, programs=Path("/p"), launch=("env",)) for name in ("old", "new"))
    plan = Plan(site="local", file_system="disk", ranks=2, arms=(old, new), patterns=suite.patterns(1)[:1], seed=1)
    assert "no runtime of it is known for old and new." in why_none(plan)
    one = plan.model_copy(update={"arms": (old.model_copy(update={"darshan": ("env",)}), new)})
    assert "no runtime of it is known for new." in why_none(one)
    assert "IOGAUGE_DARSHAN_MPICH" in why_none(one)
    assert why_none(plan.model_copy(update={"profile": False})) == "Darshan was not asked: it was switched off."


def test_an_arm_against_itself_gives_no_verdict(tmp_path: Path, kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in MPI_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    both = [Arm(name=name, programs=kernels, launch=("mpirun", "-np", "2")) for name in ("old", "new")]
    plan = Plan(site="local", file_system="disk", ranks=2, arms=tuple(both), patterns=suite.patterns(1)[:1], seed=1)
    driver = Driver(plan, tmp_path, tmp_path / RUNS_FILE, lambda line: None)
    with pytest.raises(Refusal, match="arms old and new are the same build"):
        driver.go()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("default", "default"), "ARM_B: default twice; two arms are compared"),
        (("default", "hdf5-9"), "no arm 'hdf5-9'; there are: "),
        (("default", "/usr", "--file-system", "tape"), "--file-system: site local has no tape; it has disk, memory"),
        (("default", "/usr", "--partition", "gpu"), "--partition: site local has no gpu; it has default"),
        (("default", "/usr", "--point", "9x9"), "--point: 9x9 is not on the site's axes there; allowed: 1x"),
        (("default", "/usr", "--point", "many"), "nodes and ranks per node such as 4x2 are expected"),
        (("default", "/usr", "--resume", "latest", "--margin", "9%"), "--margin: --resume goes on with what was asked"),
        (("default", "/usr", "--site", "nowhere"), "no site configuration for 'nowhere'"),
        (
            ("default", "/usr", "--resume", "latest"),
            "there is no comparison of default and /usr yet that is not decided",
        ),
    ],
)
def test_what_cannot_be_compared_is_named(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    assert words in refused(tmp_path, *arguments)


def test_one_that_runs_beside_another_is_refused_and_shows_nothing_of_it(tmp_path: Path, second_hdf5: str) -> None:
    home = tmp_path / "home"
    stage = home / "compare" / "reframe" / "stage"
    stage.mkdir(parents=True)
    arms_ = tuple(Arm(name=name, programs=tmp_path, launch=("env",)) for name in ("old", "new"))
    plan = Plan(site="local", file_system="disk", ranks=2, arms=arms_, patterns=suite.patterns(1)[:1], seed=1)
    plan.save(stage / "plan.json")
    (home / "runs").mkdir()
    with FileLock(home / "runs" / "lock"):
        done = run_compare(tmp_path, "default", second_hdf5, "--file-system", "memory")
    assert done.returncode == 2
    assert "another night is running here" in done.stderr
    assert done.stdout.strip() == ""
    assert not (home / "comparisons").exists()


@pytest.mark.parametrize(
    ("margin", "time"), [("0%", "15m"), ("120%", "15m"), ("five", "15m"), ("5%", "0s"), ("5%", "soon")]
)
def test_a_margin_and_a_time_that_are_none_are_refused(tmp_path: Path, margin: str, time: str) -> None:
    assert "is expected" in refused(tmp_path, "default", "/usr", "--margin", margin, "--time-limit", time)


def test_the_history_of_last_night_is_not_touched_by_what_is_expected() -> None:
    assessment = shifted()
    assert with_expected(assessment, []) is assessment
    assert assessment.night == LAST_NIGHT  # type: ignore[attr-defined]
