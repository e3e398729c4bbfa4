"""Fingerprints as text that reads well in a diff: YAML with a line for each kind of call and each object of HDF5."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from iogauge.errors import InputError
from iogauge.fingerprint.model import Fingerprint
from iogauge.night import write_whole
from iogauge.validation import read_yaml, validate


def to_text(fingerprint: Fingerprint) -> str:
    """The normal form: the same fingerprint is the same text."""
    yaml = YAML()
    yaml.width = 1 << 16
    yaml.default_flow_style = False
    stream = io.StringIO()
    yaml.dump(_laid_out(fingerprint.model_dump(mode="json", by_alias=True, exclude_none=True)), stream)
    return stream.getvalue()


def _laid_out(document: dict[str, Any]) -> CommentedMap:
    whole = CommentedMap({name: value for name, value in document.items() if value not in ({}, [])})
    for file in document["files"].values():
        for access, calls in file["calls"].items():
            file["calls"][access] = CommentedMap({name: _on_one_line(value) for name, value in calls.items()})
    for layout in document["layouts"].values():
        layout["objects"] = CommentedMap({name: _on_one_line(value) for name, value in layout["objects"].items()})
    whole["options"] = _on_one_line(document["options"])
    return whole


def _on_one_line(value: Any) -> Any:
    if isinstance(value, list):
        made: Any = CommentedSeq(value)
    else:
        made = CommentedMap({name: _with_numbers(part) for name, part in value.items()})
    made.fa.set_flow_style()
    return made


def _with_numbers(value: Any) -> Any:
    """Keys that are sizes as numbers, which JSON does not have as keys."""
    if not isinstance(value, dict):
        return value
    return {int(name) if name.isdigit() else name: part for name, part in value.items()}


def read(path: Path) -> Fingerprint:
    """Raises :class:`InputError` with file, line, key and what is allowed."""
    document, locate = read_yaml(path)
    return validate(Fingerprint, document, file=path, locate=locate)


def save(fingerprint: Fingerprint, path: Path) -> None:
    """Write it whole or not at all; folders are made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, to_text(fingerprint))
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=path) from error
