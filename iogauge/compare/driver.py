"""In the job: pairs of runs, one of each arm, in an order drawn from the seed, until all is decided or the time is up.

``python -m iogauge.compare.driver PLAN FOLDER RUNS``: the plan, the case's own folder on the file system under test, and the
file to which every run is added. Started again with the same RUNS, it goes on where it was. Exit codes: 0 all is decided or
the time is up; 1 an arm failed; 2 the plan is wrong.
"""

from __future__ import annotations

import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from iogauge import arms, placement
from iogauge.adapters.kernel import read_records
from iogauge.compare.exchange import READERS, Exchange
from iogauge.compare.lines import append, read_lines
from iogauge.compare.otherwise import Otherwise, otherwise
from iogauge.compare.plan import EXCHANGES_FILE, LOGS_FOLDER, OTHERWISE_FILE, PROFILED_FILE, Arm, Pattern, Plan
from iogauge.compare.profiled import RECORDS, Profiled, log_name, profiled, why_none
from iogauge.compare.runs import Run, rates_of, read_runs, whole_pairs
from iogauge.compare.sequential import Outcome, judge
from iogauge.darshan.preload import CONFIGURATION_FILE, configuration
from iogauge.errors import Refusal
from iogauge.measurement import Measurement

#: Fewer pairs cannot prove anything at the usual alpha.
LEAST_PAIRS = 5

_RECORDS = "records.jsonl"


def outcomes(plan: Plan, runs: list[Run]) -> dict[str, Outcome]:
    """What is known of the rates of each pattern. Raises :class:`Refusal` for runs that cannot be compared."""
    names = [arm.name for arm in plan.arms]
    found = {}
    for pattern in plan.patterns:
        for rates in rates_of(whole_pairs(runs, pattern.name, names)):
            found[rates.name] = rates.log_ratios
    return judge(found, margin=plan.margin, alpha=plan.alpha)


def undecided(plan: Plan, runs: list[Run]) -> list[Pattern]:
    """The patterns of which an observed rate is not known yet; the raw ones only explain."""
    names = [arm.name for arm in plan.arms]
    known = outcomes(plan, runs)
    left = []
    for pattern in plan.patterns:
        pairs = whole_pairs(runs, pattern.name, names)
        mine = [known[rates.name] for rates in rates_of(pairs) if rates.metric == "observed"]
        if len(pairs) < LEAST_PAIRS or any(outcome.finding == "undecided" for outcome in mine):
            left.append(pattern)
    return left


class Driver:
    """Runs a plan in ``folder``, whose every file it removes again; ``path`` keeps the runs."""

    def __init__(self, plan: Plan, folder: Path, path: Path, tell: Callable[[str], None] = print) -> None:
        self.plan, self.folder, self.path, self.tell = plan, folder, path, tell
        self.runs = read_runs(path)
        self.longest: dict[str, float] = {}
        self.exchanged = path.with_name(EXCHANGES_FILE)
        self.counted = path.with_name(OTHERWISE_FILE)
        self.seen = path.with_name(PROFILED_FILE)
        self.logs = path.with_name(LOGS_FOLDER).resolve()
        self.process: subprocess.Popen[str] | None = None
        self.signal = 0

    def end(self, number: int, frame: object = None) -> None:
        """A signal: what runs is ended, nothing else is begun, and what is being removed is removed."""
        self.signal = number
        self._kill()

    def _kill(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def go(self) -> None:
        """Until all is decided or the time is up. Raises :class:`Refusal` when an arm fails or is not what it says."""
        if self.plan.prove:
            proofs = [self._proof(arm) for arm in self.plan.arms]
            arms.check_comparable(*proofs)
            for proof in proofs:
                self.check_goes_on(proof)
        for pattern in self.plan.patterns:
            for arm in self.plan.arms:
                if not any(r.pattern == pattern.name and r.arm == arm.name and r.pair < 0 for r in self.runs):
                    self._run(pattern, arm, -1, first=arm is self.plan.arms[0])
        if self.plan.exchange:
            self._exchange_all()
        if self.plan.count:
            self._count_all()
        if not why_none(self.plan):
            self._profile_all()
        end = time.monotonic() + self.plan.time_limit_seconds
        for number, pattern in self._turns():
            if time.monotonic() + self.longest.get(pattern.name, 0.0) > end:
                self.tell("the time is up")
                return
            self._pair(pattern, number)
        self.tell("all is decided")

    def _proof(self, arm: Arm) -> arms.Proof:
        """Which libraries the arm really loads, by a small run on all ranks."""
        said = arms.Arm(
            name=arm.name,
            kind="prefix",
            hdf5=arm.hdf5,
            mpi=arm.mpi,
            prefix=arm.prefix,
            compiler=None,
            launcher=arm.launcher or shlex.join(arm.launch),
            variables=arm.environment,
        )
        kernels = arms.Kernels(folder=arm.programs, flags=arms.flags_of(arm.programs))
        folder = self.folder / "proof"
        folder.mkdir()
        try:
            return arms.look(said, kernels, arm.launch, folder)
        finally:
            shutil.rmtree(folder)

    def check_goes_on(self, proof: arms.Proof) -> None:
        """Earlier runs are of the same build. Raises :class:`Refusal`."""
        for earlier in (run.main[0].software for run in self.runs if run.arm == proof.arm.name):
            then = f"{earlier.hdf5}, {earlier.mpi}, {earlier.kernels}, {earlier.compiler}"
            now = f"{proof.hdf5}, {proof.mpi}, {proof.sources}, {proof.compiler}"
            if then != now:
                raise Refusal(
                    f"arm {proof.arm.name} is another build than before: HDF5, MPI, kernels' sources, compiler were "
                    f"{then}, and are {now}; start a new comparison"
                )

    def _turns(self) -> Iterator[tuple[int, Pattern]]:
        """The next pattern with the number of its next pair: round after round, each in another order."""
        done = {pattern.name: self._next_pair(pattern) for pattern in self.plan.patterns}
        while left := undecided(self.plan, self.runs):
            for pattern in random.Random(f"{self.plan.seed} {min(done.values())}").sample(left, len(left)):
                yield done[pattern.name], pattern
                done[pattern.name] += 1

    def _next_pair(self, pattern: Pattern) -> int:
        return max((run.pair for run in self.runs if run.pattern == pattern.name), default=-1) + 1

    def _pair(self, pattern: Pattern, number: int) -> None:
        arms = list(self.plan.arms)
        # Each pair's order is drawn by itself: the test rests on it.
        if random.Random(f"{self.plan.seed} {pattern.name} {number}").random() < 0.5:
            arms.reverse()
        began = time.monotonic()
        for arm in arms:
            self._run(pattern, arm, number, first=arm is arms[0])
        self.longest[pattern.name] = max(self.longest.get(pattern.name, 0.0), time.monotonic() - began)

    def _run(self, pattern: Pattern, arm: Arm, number: int, *, first: bool) -> None:
        folder = self.folder / "run"
        folder.mkdir()
        try:
            measurements = self._measured(pattern, arm, folder)
        finally:
            shutil.rmtree(folder)
        run = Run(pattern=pattern.name, pair=number, arm=arm.name, first=first, measurements=tuple(measurements))
        check_arm(self.plan, arm, run)
        append(self.path, run)
        self.runs.append(run)
        rates = ", ".join(f"{m.operation} {m.best_observed:.4g} {m.unit}" for m in run.main)
        self.tell(f"{pattern.name}, {'warm-up' if number < 0 else f'pair {number + 1}'}, {arm.name}: {rates}")

    def _measured(self, pattern: Pattern, arm: Arm, folder: Path) -> list[Measurement]:
        who = f"arm {arm.name}, {pattern.name}"
        try:
            return self._launch(pattern, arm, folder, repeats=str(self.plan.repeats))
        except Refusal as refusal:
            raise Refusal(f"{who}: {refusal}") from refusal

    def _count_all(self) -> None:
        """What the arms do otherwise, pattern by pattern: before anything is timed."""
        done = {one.pattern for one in read_lines(self.counted, Otherwise) if not one.problem}
        for pattern in self.plan.patterns:
            if pattern.name not in done and not self.signal:
                one = otherwise(pattern, self.plan.arms, self.plan.ranks, self.folder)
                append(self.counted, one)
                self.tell(f"{pattern.name}: {one.problem or '; '.join(one.differences) or 'the same calls'}")

    def _profile_all(self) -> None:
        """What the arms do otherwise in Darshan's eyes, which no measured pair is under."""
        done = {one.pattern for one in read_lines(self.seen, Profiled) if not one.problem}
        self.logs.mkdir(exist_ok=True)
        # Whatever else the folder's name has in it, a dot stands for.
        only = f"/{re.sub(r'[^A-Za-z0-9_-]', '.', self.folder.resolve().name)}/"
        settings = configuration(only, records=RECORDS, ranks=self.plan.ranks)
        (self.logs / CONFIGURATION_FILE).write_text(settings, encoding="utf-8")
        for pattern in self.plan.patterns:
            if pattern.name not in done and not self.signal:
                one = self._profiled(pattern)
                append(self.seen, one)
                self.tell(f"{pattern.name}, Darshan: {one.problem or '; '.join(one.differences) or 'the same'}")

    def _profiled(self, pattern: Pattern) -> Profiled:
        logs = [self.logs / log_name(pattern, arm, number) for number, arm in enumerate(self.plan.arms, start=1)]
        for arm, log in zip(self.plan.arms, logs, strict=True):
            log.unlink(missing_ok=True)  # of a job that was killed
            folder = self.folder / "darshan"
            folder.mkdir()
            try:
                self._launch(pattern, arm, folder, under=(*arm.darshan, str(self.logs), log.name), repeats="1")
            except Refusal as refusal:
                return Profiled(pattern=pattern.name, problem=f"arm {arm.name}: {refusal}")
            finally:
                shutil.rmtree(folder)
        return profiled(pattern, logs, self.plan.ranks)

    def _exchange_all(self) -> None:
        """Each arm reads the files of each, its own too, which tells a bad file from one that is only strange."""
        known = read_lines(self.exchanged, Exchange)
        done = {(one.pattern, one.writer, one.reader) for one in known if not one.problem}
        for pattern in self.plan.patterns:
            for writer in self.plan.arms:
                asked = {(pattern.name, writer.name, reader.name) for reader in self.plan.arms}
                if pattern.kernel in READERS and not asked <= done:
                    for one in self._exchange(pattern, writer):
                        append(self.exchanged, one)
                        self.tell(f"{one.pattern}: {one.reader} reads {one.writer}: {one.problem or 'all of it'}")

    def _exchange(self, pattern: Pattern, writer: Arm) -> list[Exchange]:
        folder = self.folder / "exchange"
        folder.mkdir()
        try:
            self._launch(pattern, writer, folder, repeats="1", operation="write", keep="yes")
            (folder / _RECORDS).unlink()
            file_bytes = sum(path.stat().st_size for path in folder.iterdir())
            return [self._passed_on(pattern, writer, reader, folder, file_bytes) for reader in self.plan.arms]
        except Refusal as refusal:
            raise Refusal(f"arm {writer.name}, {pattern.name}: {refusal}") from refusal
        finally:
            shutil.rmtree(folder)

    def _passed_on(self, pattern: Pattern, writer: Arm, reader: Arm, folder: Path, file_bytes: int) -> Exchange:
        problem, seconds = "", None
        try:
            read = self._launch(pattern, reader, folder, repeats="1", operation="read", keep="yes")
            seconds = read[0].repeats[0].open_seconds
        except Refusal as refusal:
            problem = str(refusal)
        (folder / _RECORDS).unlink(missing_ok=True)
        return Exchange(
            pattern=pattern.name,
            writer=writer.name,
            reader=reader.name,
            problem=problem,
            file_bytes=file_bytes,
            open_seconds=seconds,
        )

    def _launch(
        self, pattern: Pattern, arm: Arm, folder: Path, under: Sequence[str] = (), **more: str
    ) -> list[Measurement]:
        """The records of one launch; ``under``: words to launch it by, other than the arm's. Raises :class:`Refusal` where
        it has none that are true.
        """
        options = {"dir": str(folder), "json": str(folder / _RECORDS), "warmup": "0", **more}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        command = [*(under or arm.launch), str(arm.programs / pattern.kernel), *pattern.options, *words]
        if not self.signal:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                env={**os.environ, **arm.environment},
                start_new_session=True,
            )
        if self.signal or self.process is None:  # between the two, too
            self._kill()
            sys.exit(128 + self.signal)
        process = self.process
        try:
            _, errors = process.communicate(timeout=self.plan.run_seconds)
        except subprocess.TimeoutExpired:
            self._kill()
            process.wait()
            raise Refusal(f"not ended within {self.plan.run_seconds:g} s") from None
        finally:
            self.process = None
        if self.signal:
            sys.exit(128 + self.signal)
        if process.returncode:
            raise Refusal(f"exit code {process.returncode}: {_said(errors, pattern.kernel)}")
        return read_records(folder / _RECORDS)


def _said(errors: str, kernel: str) -> str:
    """The kernel's own words, else the last ones on stderr."""
    # Ranks that fail at once may begin a line together.
    own = re.findall(rf"^{re.escape(kernel)}: (?:.*{re.escape(kernel)}: )?(?:error: )?(.*)$", errors, re.MULTILINE)
    last = [line.strip().removeprefix("iogauge: guard: ") for line in errors.splitlines() if line.strip(" -")][-3:]
    return own[0] if own else " / ".join(last) or "nothing on stderr"


def check_arm(plan: Plan, arm: Arm, run: Run) -> None:
    """Raises :class:`Refusal` for a run that is not of the HDF5 that the arm says, as the library itself tells, or whose ranks
    are not where they were asked for: both arms with all ranks on one core would be found equal."""
    for m in run.main:
        if arm.hdf5 is not None and m.software.hdf5 != arm.hdf5:
            raise Refusal(f"arm {arm.name} is said to have HDF5 {arm.hdf5}, and loads {m.software.hdf5}")
        if wrong := placement.problems(m, plan.nodes, plan.ranks_per_node, oversubscribe=plan.oversubscribe):
            raise Refusal(f"arm {arm.name}, {run.pattern}: {'; '.join(wrong)}")


def main(arguments: list[str]) -> int:
    """Run the plan; the exit code."""
    plan_file, folder, path = map(Path, arguments)
    try:
        plan = Plan.model_validate_json(plan_file.read_bytes())
    except (OSError, ValidationError) as error:
        print(f"compare: error: {plan_file}: {error}", file=sys.stderr)
        return 2
    try:
        driver = Driver(plan, folder, path, lambda line: print(line, flush=True))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, driver.end)
        driver.go()
    except Refusal as refusal:
        print(f"compare: error: {refusal}", file=sys.stderr)
        return 1
    except OSError as error:  # the file system has gone, or is full: what an arm said of it before says more
        arm = error.__context__ if isinstance(error.__context__, Refusal) else None
        print(f"compare: error: {arm or f'{error.filename}: {error.strerror}'}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
