"""One message of all that is new: a subject with the worst first, and a body as text and as HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from jinja2 import Environment, PackageLoader

from iogauge.notify.changes import KINDS, Change, Kind, Told
from iogauge.plain import one_line
from iogauge.tonight import Tonight

#: Of one kind no more are written out.
MOST_OF_A_KIND = 10

SUBJECT_CHARACTERS = 110
TEXT_CHARACTERS = 400

TITLES: dict[Kind, str] = {
    "whole file system": "SLOWER: A WHOLE FILE SYSTEM",
    "slower": "SLOWER",
    "regressed": "BELOW ITS BAND",
    "invalid": "INVALID",
    "no night": "NOT MEASURED",
    "ended": "ENDED",
}

#: Of one change, and of several of a kind.
_SUBJECTS: dict[Kind, tuple[str, str]] = {
    "whole file system": ("{text}", "all of {names} slower"),
    "slower": ("{name} {text}", "{count} series slower{scopes}"),
    "regressed": ("{name} below its band", "{count} series below their bands"),
    "invalid": ("{name} invalid", "{count} invalid"),
    "no night": ("{text}", "{text}"),
    "ended": ("over: {name} {text}", "{count} alarms over"),
}


@dataclass(frozen=True)
class Message:
    """What is sent. ``severity`` is Apprise's kind of message."""

    subject: str
    text: str
    html: str
    severity: Literal["failure", "warning", "success", "info"]


@dataclass(frozen=True)
class Group:
    """The changes of one kind, and how many more there are."""

    kind: Kind
    title: str
    changes: tuple[Change, ...]
    more: int


def compose(changes: Sequence[Change], told: Told, tonight: Tonight, link: str = "") -> Message:
    """The message of ``changes``, at least one; ``told`` is what will have been told with it."""
    groups = tuple(_groups(changes, tonight))
    values = {
        "headline": subject(changes, tonight),
        "groups": groups,
        "night": f"site {tonight.site}, night of {tonight.date}",
        "standing": _standing(changes, told),
        "link": link,
        "more": f"iogauge status --site {tonight.site}; iogauge show KEY --site {tonight.site}",
    }
    return Message(
        subject=subject(changes, tonight),
        text=_templates().get_template("message.txt.j2").render(values).strip() + "\n",
        html=_templates().get_template("message.html.j2").render(values),
        severity=_severity(changes[0].kind),
    )


def test_message(site: str) -> Message:
    """What ``--test`` sends."""
    text = f"This is a test of iogauge notify, site {site}. Nothing has happened."
    return Message(f"iogauge {site}: a test", f"{text}\n", f"<p>{text}</p>", "info")


def subject(changes: Sequence[Change], tonight: Tonight) -> str:
    """``iogauge SITE: what is worst; what else there is``."""
    parts = []
    for kind in KINDS:
        mine = [change for change in changes if change.kind == kind]
        if mine:
            form = _SUBJECTS[kind][len(mine) > 1]
            scopes = _scopes(mine, tonight)
            values = {"name": mine[0].name, "text": _brief(mine[0].text)}
            values["names"] = ", ".join(change.name for change in mine)
            parts.append(form.format(count=len(mine), scopes=f" ({'; '.join(scopes)})" if scopes else "", **values))
    return one_line(f"iogauge {tonight.site}: {'; '.join(parts)}", SUBJECT_CHARACTERS)


def _brief(text: str) -> str:
    """Without what came with it, and other details."""
    return re.split(r"; | \(|, since ", text)[0]


def _scopes(changes: Sequence[Change], tonight: Tonight) -> tuple[str, ...]:
    """What the file systems say of series that are slower."""
    names = {change.name for change in changes if change.kind == "slower"}
    scopes = [one.scope for one in tonight.file_systems if one.scope is not None]
    return tuple(one_line(scope.text) for scope in scopes if names & set(scope.keys) and len(scope.keys) > 1)


def _groups(changes: Sequence[Change], tonight: Tonight) -> Iterator[Group]:
    for kind in KINDS:
        mine = [
            change.model_copy(update={"name": one_line(change.name), "text": one_line(change.text, TEXT_CHARACTERS)})
            for change in changes
            if change.kind == kind
        ]
        if mine:
            title = ": ".join([TITLES[kind], *filter(None, ["; ".join(_scopes(mine, tonight))])])
            yield Group(kind, title, tuple(mine[:MOST_OF_A_KIND]), max(len(mine) - MOST_OF_A_KIND, 0))


def _standing(changes: Sequence[Change], told: Told) -> str:
    """What was told before and goes on."""
    new = {change.name for change in changes}
    old = [alarm for alarm in told.alarms if alarm.name not in new and not alarm.known]
    known = sum(alarm.known for alarm in told.alarms)
    words = [f"{len(old)} alarms in all go on" if old else "", f"{known} are acknowledged" if known else ""]
    words.append(f"{len(told.muted)} are muted" if told.muted else "")
    return ", ".join(filter(None, words))


def _severity(worst: Kind) -> Literal["failure", "warning", "success"]:
    if worst == "ended":
        return "success"
    return "warning" if worst in ("invalid", "no night") else "failure"


def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("iogauge.notify", "."),
        autoescape=lambda name: name is not None and ".html" in name,
        trim_blocks=True,
        lstrip_blocks=True,
    )
