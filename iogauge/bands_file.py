"""``reference_values/SITE.yaml`` with other bands in it: what people wrote beside them stays."""

from __future__ import annotations

import difflib
import hashlib
import io
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import CommentMark
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.tokens import CommentToken

from iogauge.bands import SeriesBands, SiteBands, load_site_bands
from iogauge.errors import InputError
from iogauge.night import write_whole


class Proposal(BaseModel):
    """Bands that were fitted to the history and wait to be accepted; ``base`` is a digest of the file as it was then."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: str = Field(default="iogauge.proposal/1", alias="schema")
    site: str
    base: str
    bands: dict[str, SeriesBands]

    @classmethod
    def load(cls, path: Path) -> Proposal:
        """Raises :class:`InputError` where there is none."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            raise InputError("no bands wait to be accepted; iogauge bands fit proposes some", file=path) from None
        except ValidationError as error:
            raise InputError(f"no proposal: {error.errors()[0]['msg']}", file=path) from error

    def save(self, path: Path) -> None:
        """Write it whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, self.model_dump_json(by_alias=True, indent=1))


def read(path: Path) -> str:
    """The text of a band file; empty where there is none yet."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def digest(text: str) -> str:
    """By which a change of the file is noticed."""
    return hashlib.sha256(text.encode()).hexdigest()


def with_bands(path: Path, site: str, bands: Mapping[str, SeriesBands]) -> str:
    """The text of the file with these bands; comments, order and everything else in it stay. Raises :class:`InputError`."""
    load_site_bands.cache_clear()
    load_site_bands(path.parent, site)  # what is wrong is told with its line, before anything is changed
    yaml = YAML()
    yaml.Representer = _Representer
    yaml.preserve_quotes = True
    yaml.width = 4096
    document = yaml.load(read(path)) or CommentedMap(schema="iogauge.bands/1", site=site)
    if not document.get("bands"):
        document["bands"] = CommentedMap()
    for key, value in bands.items():
        entry = document["bands"].setdefault(key, CommentedMap())
        below = _take_comment_below(entry)
        for name, part in _written(value).items():
            entry[name] = _merged(entry.get(name), part)
        _put_comment_below(entry, below)
    text = io.StringIO()
    yaml.dump(document, text)
    SiteBands.model_validate(YAML(typ="safe").load(text.getvalue()))
    return text.getvalue()


class _Representer(RoundTripRepresenter):
    """Bands that were accepted together share their date; in the file each has its own, not an alias to another band's."""

    def ignore_aliases(self, data: Any) -> bool:
        return isinstance(data, date) or super().ignore_aliases(data)


def _merged(old: Any, new: Any) -> Any:
    """``new``, in the place of ``old`` with its style and its comments."""
    if not isinstance(old, CommentedMap) or not isinstance(new, CommentedMap):
        return new
    for name in [name for name in old if name not in new and name != "note"]:
        del old[name]
    for name, value in new.items():
        old[name] = _merged(old.get(name), value)
    return old


def _last(entry: CommentedMap) -> tuple[CommentedMap, str]:
    """Where ruamel keeps what stands below an entry: the last mapping with lines of its own in it, and its last key."""
    name = next(reversed(entry))
    inner = entry[name]
    return _last(inner) if isinstance(inner, CommentedMap) and inner and not inner.fa.flow_style() else (entry, name)


def _take_comment_below(entry: CommentedMap) -> str:
    """Cut the lines of comment below an entry (they are about the next one) from the comment at its end."""
    if not entry:
        return ""
    mapping, name = _last(entry)
    token = (mapping.ca.items.get(name) or [None] * 3)[2]
    end, _, below = ("" if token is None else token.value).partition("\n")
    if token is not None and below:
        token.value = f"{end}\n" if end.strip() else "\n"
    return str(below)


def _put_comment_below(entry: CommentedMap, below: str) -> None:
    if not below:
        return
    # What ends the entry has to be a plain value: ruamel keeps the comment of a value on one line elsewhere.
    provenance = entry["from"]
    provenance["last"] = provenance.pop("last")
    entry["from"] = entry.pop("from")
    mapping, name = _last(entry)
    kept = mapping.ca.items.get(name)
    end = kept[2].value.rstrip("\n") if kept and kept[2] else ""
    mapping.ca.items[name] = [None, None, CommentToken(f"{end}\n{below}", CommentMark(0), None), None]


def _written(bands: SeriesBands) -> CommentedMap:
    written = CommentedMap(bands.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True))
    written["observed"] = _on_one_line(written["observed"])
    provenance = CommentedMap(written["from"])
    for name in ("software", "accepted"):
        if name in provenance:
            provenance[name] = _on_one_line(provenance[name])
    written["from"] = provenance
    return written


def _on_one_line(values: Mapping[str, Any]) -> CommentedMap:
    made = CommentedMap(values)
    made.fa.set_flow_style()
    return made


def difference(path: Path, text: str) -> str:
    """What ``text`` changes in the file, as a unified diff."""
    lines = (read(path).splitlines(keepends=True), text.splitlines(keepends=True))
    return "".join(difflib.unified_diff(*lines, fromfile=str(path), tofile=str(path)))


def accepted(bands: Mapping[str, SeriesBands], who: str, why: str, when: date) -> dict[str, SeriesBands]:
    """The same bands, with who accepted them."""
    note: dict[str, str | date] = {"who": who, "date": when, "why": why}
    return {
        key: one.model_copy(update={"provenance": one.provenance.model_copy(update={"accepted": note})})
        for key, one in bands.items()
    }
