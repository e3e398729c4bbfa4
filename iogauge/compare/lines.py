"""What a comparison keeps while it goes on: a record a line, each there in whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from iogauge.errors import Refusal

Record = TypeVar("Record", bound=BaseModel)


def append(path: Path, record: BaseModel) -> None:
    """Add a record to ``path``, and have it on disk before anything else is begun."""
    line = record.model_dump_json(by_alias=True) + "\n"
    with path.open("ab", buffering=0) as file:
        file.write(line.encode())
        os.fsync(file.fileno())


def read_lines(path: Path, model: type[Record]) -> list[Record]:
    """The records in ``path``, none if it does not exist. A last line that a killed job left unfinished is left out.

    Raises :class:`Refusal` for any other line that is no such record.
    """
    if not path.exists():
        return []
    lines = path.read_bytes().decode(errors="replace").split("\n")
    found = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            found.append(model.model_validate_json(line))
        except ValidationError as error:
            raise Refusal(f"{path.name}: line {number}: not of a comparison: {error.errors()[0]['msg']}") from error
    return found


def read_latest(path: Path, model: type[Record], key: Callable[[Record], Hashable]) -> list[Record]:
    """The records in ``path``, of those with one key the last: what failed is asked again when a comparison goes on."""
    return list({key(record): record for record in read_lines(path, model)}.values())
