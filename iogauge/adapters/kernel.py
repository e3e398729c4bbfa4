"""The project's own kernels: one JSON record an operation, alone in a file or as stdout's last lines."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from pydantic import ValidationError

from iogauge.errors import Refusal
from iogauge.measurement import Measurement


def read_records(source: Path | str) -> list[Measurement]:
    """Measurements from a file (``Path``) or a text (``str``), in the order written.

    Raises :class:`Refusal` for whatever is not a complete, consistent, verified set of records: a missing or empty file,
    a truncated line, an unknown schema, numbers that are no numbers, bytes that were not all verified, a record twice
    (several worlds wrote here), a missing main case, repeats of unequal number.
    """
    text = _text_of(source) if isinstance(source, Path) else source
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if not lines:
        raise Refusal("the kernel wrote no record")
    measurements = [_record(number, line) for number, line in enumerate(lines, start=1)]
    _belong_together(measurements)
    return measurements


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Refusal(f"the kernel wrote no record: {path.name} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"{path.name}: {error}") from error


def _reject_constant(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _record(number: int, line: str) -> Measurement:
    try:
        fields = json.loads(line, parse_constant=_reject_constant)
        measurement = Measurement.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Refusal(f"record {number}: {where or 'record'}: {first['msg']}") from error
    except (ValueError, RecursionError) as error:
        raise Refusal(f"record {number}: not JSON: {error}") from error
    for repeat_number, repeat in enumerate(measurement.repeats):
        done, verified = (
            (measurement.operations, repeat.verified_operations)
            if measurement.operations
            else (measurement.logical_bytes, repeat.verified_bytes)
        )
        if repeat.mismatches or verified != done:
            raise Refusal(
                f"record {number}, repeat {repeat_number}: {verified} of {done} "
                f"{'operations' if measurement.operations else 'bytes'} verified, {repeat.mismatches} words differ"
            )
    return measurement


def _belong_together(measurements: list[Measurement]) -> None:
    def name(m: Measurement) -> tuple[str, str, str, str]:
        case = m.sweep.case if m.sweep else {}
        return (m.benchmark, m.operation, json.dumps(m.differs, sort_keys=True), json.dumps(case, sort_keys=True))

    for (benchmark, operation, differs, _), times in Counter(map(name, measurements)).items():
        if times > 1:
            raise Refusal(
                f"{times} records of {benchmark} {operation} {differs}: several worlds ran at once; does the launcher "
                f"belong to the kernel's MPI library?"
            )
    main = {m.operation for m in measurements if m.role == "main"}
    for m in measurements:
        if m.operation not in main:
            raise Refusal(f"a baseline of {m.operation} without its main case")
    first = measurements[0]
    first_of_case: dict[str, Measurement] = {}
    for m in measurements:
        if len(m.repeats) != len(first.repeats):
            raise Refusal("records with unequal numbers of repeats")
        # A sweep that was resumed has cases of several launches; what is compared, a case and its baselines, is of one.
        beside = first_of_case.setdefault(json.dumps(m.sweep.case) if m.sweep else "", m)
        shared = min(m.ranks, beside.ranks)  # fewer ranks: the first ones, with --processes
        if m.placement[:shared] != beside.placement[:shared]:
            raise Refusal("records of different runs: placement differs")
        if (m.benchmark, m.software) != (first.benchmark, first.software):
            raise Refusal("records of different runs: benchmark or software differ")
