"""Two arms side by side: the test that is valid at every look, the driver in the job, and what comes of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from conftest import PATIENCE_SECONDS
from samples import record

from iogauge.arms import Arm as AnyArm
from iogauge.arms import Kernels, Proof
from iogauge.compare import runs as of_runs
from iogauge.compare.driver import Driver, main
from iogauge.compare.plan import Arm, Pattern, Plan
from iogauge.compare.result import Comparison, in_words, next_steps, of_folder, summarise
from iogauge.compare.sequential import anytime_p, fortune, interval, judge
from iogauge.errors import InputError, Refusal

SPIKY, GAUSS = "spiky", "gauss"


def pairs_of(noise: str, count: int, seed: int, *, ratio: float = 1.0) -> np.ndarray:
    """Log ratios of two arms with the same noise; spiky: one run in ten loses half its rate or more."""
    random = np.random.default_rng(seed)

    def arm() -> np.ndarray:
        rates = 0.06 * random.standard_normal(count)
        return rates - (random.random(count) < 0.1) * random.exponential(0.7, count) if noise == SPIKY else rates

    return np.log(ratio) + arm() - arm()


@pytest.mark.parametrize("noise", [GAUSS, SPIKY])
def test_equal_arms_are_rarely_told_apart_however_often_one_looks(noise: str) -> None:
    tries = 400
    # The evidence is a running maximum: this looks after every one of 40 pairs. Both sides at 2.5 %.
    found = sum(min(anytime_p(d), anytime_p(-d)) <= 0.025 for d in (pairs_of(noise, 40, seed) for seed in range(tries)))
    assert found <= 0.05 * tries


@pytest.mark.parametrize(("ratio", "most_pairs"), [(0.9, 18), (0.8, 9)])
def test_a_slowdown_is_proven_in_few_pairs(ratio: float, most_pairs: int) -> None:
    # The sigma of a log ratio is 0.085, as that of pairs on a shared file system; power 0.9.
    found = [
        judge({"a": pairs_of(GAUSS, most_pairs, seed, ratio=ratio)}, margin=0.05)["a"].finding for seed in range(60)
    ]
    assert found.count("slower") >= 0.9 * len(found)


def test_what_is_slower_by_more_than_the_margin_is_never_called_not_slower() -> None:
    found = [judge({"a": pairs_of(SPIKY, 30, seed, ratio=0.94)}, margin=0.05)["a"].finding for seed in range(100)]
    assert found.count("not slower") <= 5


def test_equal_and_steady_arms_are_proven_not_slower() -> None:
    outcome = judge({"a": pairs_of(GAUSS, 40, 1)}, margin=0.05)["a"]
    assert outcome.finding == "not slower"
    assert outcome.provable <= 0.05


def test_the_interval_holds_the_true_ratio() -> None:
    held = [
        low <= np.log(0.9) <= high
        for low, high in (interval(pairs_of(SPIKY, 25, seed, ratio=0.9), 0.05) for seed in range(100))
    ]
    assert sum(held) >= 95


def test_the_interval_holds_just_the_ratios_that_are_not_refuted() -> None:
    d = pairs_of(GAUSS, 20, 3, ratio=0.9)
    low, high = interval(d, 0.05)
    for inside, outside in ((low + 0.001, low - 0.001), (high - 0.001, high + 0.001)):
        assert min(anytime_p(d, inside), anytime_p(-d, -inside)) > 0.025
        assert min(anytime_p(d, outside), anytime_p(-d, -outside)) <= 0.025


def test_one_pair_proves_nothing_and_none_is_no_error() -> None:
    assert interval([], 0.05) == (-np.inf, np.inf)
    assert interval([-5.0], 0.05) == (-np.inf, np.inf)
    assert anytime_p([]) == 1
    assert judge({"a": [-5.0]}, margin=0.05)["a"].finding == "undecided"


def test_one_awful_pair_does_not_undo_the_others() -> None:
    slow = [-0.2, -0.21, -0.19, -0.2, -0.22, -0.2, -0.21, -0.2, -0.19, -0.2, -0.2, -0.21]
    assert judge({"a": slow}, margin=0.05)["a"].finding == "slower"
    assert judge({"a": [*slow[:6], 3.0, *slow[6:]]}, margin=0.05)["a"].finding == "slower"


def test_many_patterns_need_more_evidence_each() -> None:
    d = [-0.2] * 8
    assert judge({"a": d}, margin=0.05)["a"].finding == "slower"
    many = {"a": d} | {str(n): pairs_of(GAUSS, 8, n) for n in range(20)}
    assert judge(many, margin=0.05)["a"].finding == "undecided"


def test_holm_takes_the_second_when_the_first_is_certain() -> None:
    # 7 pairs are not enough for one of four hypotheses by Bonferroni's limit, and are when another is certain.
    certain = [-0.3] * 30
    d = [-0.3] * 7
    alpha = 3.5 * anytime_p(np.negative(d))
    assert judge({"b": d, "c": [0.1, -0.1]}, margin=0.05, alpha=alpha)["b"].finding == "undecided"
    assert judge({"b": d, "c": certain}, margin=0.05, alpha=alpha)["b"].finding == "slower"


def test_the_interval_never_says_less_than_the_finding() -> None:
    certain = {f"other {number}": pairs_of(GAUSS, 80, number) for number in range(8)}
    for ratio, word in ((0.9, "slower"), (1.1, "faster"), (1.0, "not slower")):
        said = set()
        for seed in range(12):
            found = judge({**certain, "a": pairs_of(GAUSS, 30, 100 + seed, ratio=ratio)}, margin=0.08)["a"]
            said.add(found.finding)
            if found.finding == word:
                assert {"slower": found.highest <= 1, "faster": found.lowest >= 1}.get(word, found.provable <= 0.08)
        assert word in said


def test_the_fortune_is_fair_in_each_step() -> None:
    # A bet on a deviation and on its opposite, each with the same probability, must not gain: the mean stays 1.
    for size in (0.001, 0.1, 3.0):
        both = np.exp([fortune([size])[0], fortune([-size])[0]])
        assert both.mean() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"margin": 0.0}, "margin"), ({"margin": 1.0}, "margin"), ({"margin": 0.1, "alpha": 1.5}, "alpha")],
)
def test_margins_and_alphas_outside_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        judge({"a": [0.1]}, **arguments)
    with pytest.raises(ValueError, match="finite"):
        judge({"a": [float("nan")]}, margin=0.1)


# --- The driver, with a program in the kernels' place that writes their records -------------------------------------------

KERNEL = textwrap.dedent(
    """\
    #!{python}
    import json, os, pathlib, random, sys, time
    options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    arm = pathlib.Path(sys.argv[0]).parent
    (pathlib.Path(options["--dir"]) / "data").write_bytes(b"x" * 1000)
    if (arm / "fail").exists():
        sys.exit("out of luck")
    if (arm / "fail-to-read").exists() and options.get("--operation") == "read":
        sys.exit("particles: error: rank 1: particles: error: rank 0: data: Input/output error")
    if (arm / "hang").exists():
        time.sleep(600)
    count = len(list((arm / "runs").glob("*")))
    (arm / "runs" / str(count)).touch()
    records = json.loads((arm / "records.json").read_text())
    noise = 1 + 0.02 * random.Random(f"{{arm}} {{count}}").random()
    for one in records:
        for repeat in one["repeats"]:
            for name in ("open", "transfer", "flush", "close", "total"):
                repeat[f"{{name}}_seconds"] *= noise
            repeat["least"] = {{name: 0.0 for name in repeat["least"]}}
    pathlib.Path(options["--json"]).write_text("".join(json.dumps(one) + "\\n" for one in records))
    """
)


def make_arm(folder: Path, *records: dict[str, object]) -> Path:
    folder.mkdir()
    (folder / "runs").mkdir()
    (folder / "records.json").write_text(json.dumps(records))
    for kernel in ("particles", "tiles"):
        (folder / kernel).write_text(KERNEL.format(python=sys.executable))
        (folder / kernel).chmod(0o755)
    return folder


def make_plan(tmp_path: Path, *, slower: float = 1.0, patterns: int = 1, **changes: object) -> Plan:
    of_b = changes.pop("records_of_b", None) or [
        record("write", slower=slower, count=1),
        record("read", slower=slower, count=1),
    ]
    first = make_arm(tmp_path / "a", record("write", count=1), record("read", count=1))
    second = make_arm(tmp_path / "b", *of_b)  # type: ignore[misc]
    arms = [Arm(name=path.name, programs=path, launch=("env",), hdf5="1.10.8") for path in (first, second)]
    names = [("CC", "particles"), ("tiles", "tiles")][:patterns]
    return Plan.model_validate(
        {
            "site": "local",
            "file_system": "disk",
            "arms": arms,
            "patterns": [Pattern(name=name, kernel=kernel) for name, kernel in names],
            "seed": 1,
            "time_limit_seconds": 60,
            "ranks": 2,
            "exchange": False,
            "count": False,
            "prove": False,
            **changes,
        }
    )


def drive(plan: Plan, tmp_path: Path) -> Driver:
    case = tmp_path / "case"
    case.mkdir(exist_ok=True)
    driver = Driver(plan, case, tmp_path / "runs.jsonl", lambda line: None)
    driver.go()
    return driver


def shown(plan: Plan, driver: Driver, **changes: object) -> Comparison:
    return summarise(plan, driver.runs, **{"stopped": "decided", **changes})  # type: ignore[arg-type]


def test_a_slower_arm_is_found_and_the_comparison_stops_early(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, slower=1.25)
    driver = drive(plan, tmp_path)
    comparison = shown(plan, driver)
    assert [result.observed.finding for result in comparison.results] == ["slower", "slower"]
    assert 5 <= len(comparison.results[0].first) <= 12
    assert comparison.results[0].observed.ratio < 0.9
    assert comparison.exit_code == 1
    assert "slower" in next_steps(comparison)
    assert list((tmp_path / "case").iterdir()) == []


def test_equal_arms_end_as_not_slower_and_the_exit_code_is_zero(tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    comparison = shown(plan, drive(plan, tmp_path))
    assert {result.observed.finding for result in comparison.results} == {"not slower"}
    assert comparison.exit_code == 0
    assert "the upgrade can go ahead" in next_steps(comparison)
    assert in_words(comparison.results[0].observed).startswith("not slower by more than")


def test_the_order_of_the_arms_is_drawn_and_the_same_from_the_same_seed(tmp_path: Path) -> None:
    orders = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        plan = make_plan(tmp_path / name, patterns=2, slower=2.0)
        driver = drive(plan, tmp_path / name)
        orders.append([(run.pattern, run.pair, run.arm) for run in driver.runs if run.pair >= 0][:24])
    assert orders[0] == orders[1]
    first = Counter(arm for pattern, pair, arm in orders[0][::2])
    assert set(first) == {"a", "b"}


def test_warm_up_runs_are_kept_and_never_counted(tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    driver = drive(plan, tmp_path)
    assert [(run.arm, run.pair) for run in driver.runs[:2]] == [("a", -1), ("b", -1)]
    counted = len(shown(plan, driver).results[0].first)
    assert counted == (len(driver.runs) - 2) / 2


def test_it_ends_when_the_time_is_up_with_the_margin_that_is_proven(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, time_limit_seconds=1.5, margin=0.0001)
    driver = drive(plan, tmp_path)
    comparison = shown(plan, driver, stopped="time")
    assert {result.observed.finding for result in comparison.results} <= {"undecided", "faster", "slower"}
    assert driver.longest["CC"] < 1.5


def test_started_again_it_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    drive(plan, tmp_path)
    path = tmp_path / "runs.jsonl"
    lines = path.read_text().splitlines()
    # Killed within its fourth pair: one arm is there, of the other only a part of a line.
    path.write_text("\n".join(lines[:9]) + "\n" + lines[9][:100])
    kept = of_runs.read_runs(path)
    assert len(kept) == 9
    path.write_text("\n".join(lines[:9]) + "\n")
    driver = drive(plan, tmp_path)
    assert driver.runs[:9] == kept
    assert shown(plan, driver).exit_code == 0
    pairs = of_runs.whole_pairs(driver.runs, "CC", ["a", "b"])
    assert all(one.pair == other.pair for one, other in pairs)


def test_what_failed_beside_the_pairs_is_asked_again_when_it_goes_on(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, exchange=True, time_limit_seconds=0.01)
    plan.save(tmp_path / "plan.json")
    (tmp_path / "b" / "fail-to-read").touch()
    drive(plan, tmp_path)
    failed = of_folder(tmp_path, stopped="time")
    said = "exit code 1: rank 0: data: Input/output error"
    assert [(one.reader, one.problem) for one in failed.exchanges] == [("a", ""), ("b", said)] * 2
    (tmp_path / "b" / "fail-to-read").unlink()
    drive(plan, tmp_path)
    mended = of_folder(tmp_path, stopped="time")
    assert [(one.writer, one.reader, one.problem) for one in mended.exchanges] == [
        (writer, reader, "") for writer in "ab" for reader in "ab"
    ]


def test_a_line_that_is_no_run_is_refused_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_text('{"pattern": "CC"}\n')
    with pytest.raises(Refusal, match="line 1: not of a comparison"):
        of_runs.read_runs(tmp_path / "runs.jsonl")


def test_a_failing_arm_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    (tmp_path / "b" / "fail").touch()
    with pytest.raises(Refusal, match="arm b, CC: exit code 1: out of luck"):
        drive(plan, tmp_path)
    assert list((tmp_path / "case").iterdir()) == []


def test_an_arm_that_hangs_is_ended(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, run_seconds=1.0)
    (tmp_path / "b" / "hang").touch()
    with pytest.raises(Refusal, match="arm b, CC: not ended within 1 s"):
        drive(plan, tmp_path)
    assert list((tmp_path / "case").iterdir()) == []


def test_an_arm_that_loads_another_hdf5_than_it_says_is_refused(tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    arm = plan.arms[1].model_copy(update={"hdf5": "1.14.5"})
    with pytest.raises(Refusal, match=r"arm b is said to have HDF5 1\.14\.5, and loads 1\.10\.8"):
        drive(plan.model_copy(update={"arms": (plan.arms[0], arm)}), tmp_path)


def test_arms_of_different_work_give_no_verdict(tmp_path: Path) -> None:
    others = [record("write", count=1), record("read", count=1)]
    for other in others:
        other["software"] = {**other["software"], "kernels": "000000000000"}
    plan = make_plan(tmp_path, records_of_b=others)
    with pytest.raises(Refusal, match=r"the kernels' source differs: .* in arm a, 000000000000 in arm b"):
        drive(plan, tmp_path)
    comparison = summarise(plan, of_runs.read_runs(tmp_path / "runs.jsonl"), stopped="time")
    assert comparison.stopped == "broken"
    assert comparison.results == ()
    assert comparison.exit_code == 2
    assert "no verdict" in next_steps(comparison)


def test_ranks_on_one_core_give_no_verdict_though_both_arms_are_alike(tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    one_core = [{"rank": rank, "host": "n1", "pid": 100 + rank, "cpus": [0], "cores": [0]} for rank in (0, 1)]
    for arm in ("a", "b"):
        records = [record(operation, count=1, placement=one_core) for operation in ("write", "read")]
        (tmp_path / arm / "records.json").write_text(json.dumps(records))
    with pytest.raises(Refusal, match=r"arm a, CC: 2 ranks \(0-1\) share core 0 of n1"):
        drive(plan, tmp_path)
    drive(plan.model_copy(update={"oversubscribe": True}), tmp_path)


def test_ranks_on_other_nodes_than_asked_for_give_no_verdict(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, nodes=2)
    with pytest.raises(Refusal, match=r"arm a, CC: 2 ranks run on 1 hosts \(n1\), 2 were asked for"):
        drive(plan, tmp_path)
    with pytest.raises(ValueError, match="3 cannot be spread evenly over 2 nodes"):
        Plan.model_validate({**plan.model_dump(by_alias=True), "ranks": 3})


def moved(tmp_path: Path, *arms: str) -> None:
    """From now on these run on another host."""
    for arm in arms:
        path = tmp_path / arm / "records.json"
        path.write_text(path.read_text().replace('"n1"', '"n2"'))


def test_taken_up_again_on_another_node_it_goes_on(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, patterns=1)
    drive(plan, tmp_path)
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(path.read_text().splitlines()[:9]) + "\n")
    moved(tmp_path, "a", "b")
    comparison = shown(plan, drive(plan, tmp_path))
    assert comparison.exit_code == 0
    assert comparison.hosts == {"n1": 2, "n2": 2}
    assert comparison.placement == "2 ranks on 2 cores of 1 host"


def test_arms_on_different_nodes_are_no_pair(tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    moved(tmp_path, "b")
    with pytest.raises(Refusal, match=r"hosts differs: .*n1.*n2.*, pair 1"):
        drive(plan, tmp_path)


def test_the_same_arm_twice_and_a_pattern_twice_are_refused(tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    fields = plan.model_dump(by_alias=True)
    with pytest.raises(ValueError, match="'a' twice; two arms are compared"):
        Plan.model_validate({**fields, "arms": [fields["arms"][0]] * 2})
    with pytest.raises(ValueError, match="'CC' twice"):
        Plan.model_validate({**fields, "patterns": fields["patterns"] * 2})


def test_cancelled_as_a_scheduler_does_it_keeps_its_pairs_and_leaves_no_file(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, margin=0.0001)
    plan.save(tmp_path / "plan.json")
    (tmp_path / "case").mkdir()
    path = tmp_path / "runs.jsonl"
    command = [sys.executable, "-m", "iogauge.compare.driver", tmp_path / "plan.json", tmp_path / "case", path]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stdout is not None
    for line in process.stdout:
        if "pair 3" in line:
            process.send_signal(signal.SIGTERM)
            break
    process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 128 + signal.SIGTERM
    assert len(of_runs.whole_pairs(of_runs.read_runs(path), "CC", ["a", "b"])) >= 2
    assert list((tmp_path / "case").iterdir()) == []


def test_a_file_system_that_goes_away_is_named_in_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plan = make_plan(tmp_path)
    plan.save(tmp_path / "plan.json")
    gone = tmp_path / "gone"
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        assert main([str(tmp_path / "plan.json"), str(gone), str(tmp_path / "runs.jsonl")]) == 1
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert capfd.readouterr().err == f"compare: error: {gone}/run: No such file or directory\n"


def test_an_arm_that_was_built_anew_in_between_is_refused(tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    driver = drive(plan, tmp_path)
    software = driver.runs[0].main[0].software
    said = AnyArm(name="a", kind="prefix", hdf5=None, mpi=None, prefix=None, compiler=None, launcher="")
    proof = Proof(
        arm=said,
        kernels=Kernels(folder=tmp_path, flags=None),
        hdf5=software.hdf5 or "",
        library=tmp_path,
        library_sha256="0",
        mpi=software.mpi or "",
        sources=software.kernels or "",
        compiler=software.compiler or "",
    )
    driver.check_goes_on(proof)
    with pytest.raises(
        Refusal, match=r"arm a is another build than before: .* and are 1\.14\.5, .*; start a new comparison"
    ):
        driver.check_goes_on(proof.model_copy(update={"hdf5": "1.14.5"}))


def test_a_comparison_is_kept_and_what_is_none_is_refused(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, slower=1.25)
    comparison = shown(plan, drive(plan, tmp_path))
    comparison.save(tmp_path / "comparison.json")
    assert Comparison.load(tmp_path / "comparison.json") == comparison
    (tmp_path / "comparison.json").write_text("{}")
    with pytest.raises(InputError, match="no record of a comparison"):
        Comparison.load(tmp_path / "comparison.json")
