"""The layout of HDF5 files, from what the program ``h5layout`` prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from iogauge.commands import Unreadable, run_briefly
from iogauge.errors import Refusal
from iogauge.fingerprint.counted import Extents
from iogauge.fingerprint.model import Layout

#: Beside the kernels.
PROGRAM = "h5layout"


def read_layout(program: Path, file: Path) -> tuple[Layout, Extents]:
    """The layout of an HDF5 file and where its datasets' bytes lie. Raises :class:`Refusal` for what cannot be read."""
    try:
        code, out, err = run_briefly([str(program), str(file)])
    except (Unreadable, OSError) as error:
        raise Refusal(f"{program.name} {file.name}: {error}") from error
    if code != 0:
        raise Refusal(f"{program.name} {file.name}: {err.strip() or f'ended with exit code {code}'}")
    return layout_of(out)


def layout_of(text: str) -> tuple[Layout, Extents]:
    """The same from what the program printed."""
    try:
        document = json.loads(text)
        if document.pop("schema") != "iogauge.layout/1":
            raise ValueError("another schema")
        document.pop("hdf5")
        objects, extents = {}, []
        for fields in document.pop("objects"):
            name = fields.pop("name")
            chunks = fields.pop("chunks", None)
            objects[f"/{name}"] = fields | _chunks(chunks)
            extents += _extents(fields, chunks)
        return Layout(**document, objects=objects), _joined(extents)
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise Refusal(f"{PROGRAM}: not what it prints: {error}") from error


def _chunks(chunks: list[list[int]] | None) -> dict[str, int]:
    if chunks is None:
        return {}
    first = {"first_chunk": min(address for address, _ in chunks)} if chunks else {}
    return {"chunks": len(chunks)} | first


def _extents(fields: Mapping[str, Any], chunks: list[list[int]] | None) -> list[tuple[int, int]]:
    if chunks:
        return [(address, address + size) for address, size in chunks]
    offset = fields.get("offset")
    return [] if offset is None else [(offset, offset + fields["stored_bytes"])]


def _joined(extents: list[tuple[int, int]]) -> Extents:
    """In order, those that touch as one."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(extents):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found
