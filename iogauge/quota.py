"""What the quota tools of file systems say, in bytes: the limit that holds, and what is left of it.

Understood, by what is printed and not by the command's name, are ``lfs quota``, ``beegfs-ctl --getquota`` (with and without
``--csv``), BeeGFS 8's ``beegfs quota list-usage``, ``mmlsquota`` (with and without ``-Y``) and ``quota`` of Linux. Anything
else must be one number: the bytes left, or ``unlimited``. Only the standard library is needed, for jobs start this file::

    python -m iogauge.quota FILE_SYSTEM BYTES COMMAND

It says what was found in one line. Exit codes: 0 the bytes fit, 10 too little is left, 11 the limit itself is smaller; with
any other the quota is not known.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote

from iogauge.commands import Unreadable, run_briefly

#: Exit codes; a Python that cannot start has others.
FITS, TOO_LITTLE_LEFT, NEVER_FITS, NOT_KNOWN = 0, 10, 11, 12

_UNITS = "KMGTPE"


@dataclass(frozen=True)
class Quota:
    """What is ``left`` of a ``limit``, in bytes; None: there is no limit, or the limit itself is not told."""

    whose: str
    left: int | None
    limit: int | None = None


def in_units(number: int) -> str:
    """Bytes for people: ``480.0 GiB``."""
    value = float(number)
    for unit in ("bytes", *(f"{letter}iB" for letter in _UNITS)):
        if value < 1024 or unit == "EiB":
            break
        value /= 1024
    return f"{value:.0f} bytes" if unit == "bytes" else f"{value:.1f} {unit}"


def _quota(whose: str, used: int, soft: int, hard: int, *, grace_is_over: bool) -> Quota:
    """The limit that holds: the hard one; the soft one where it is alone, or when the grace period has run out."""
    limit = soft if grace_is_over and soft else hard or soft
    return Quota(whose, max(0, limit - used) if limit else None, limit or None)


def _number(text: str, unit: int = 1) -> int:
    """``88.71 GiB``, ``1.5T``, ``500``; a bare number counts ``unit`` bytes. Raises :class:`Unreadable`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(?:([KMGTPEkmgtpe])(?:i?B)?|B|Bytes?)?", text.strip())
    if match is None:
        raise Unreadable(f"{text!r} is no size")
    letter, plain = match[2], text.strip()[-1:].isdigit()
    factor = 1024 ** (1 + _UNITS.index(letter.upper())) if letter else (unit if plain else 1)
    return round(float(match[1]) * factor) if "." in match[1] else int(match[1]) * factor


def parse(text: str) -> tuple[Quota, ...]:
    """All quotas that hold at once: a user's, a group's, a project's or fileset's. Raises :class:`Unreadable`."""
    words = text.split()
    if len(words) == 1:
        return (_own(words[0]),)
    for sign, read in _READERS:
        if re.search(sign, text):
            return _one_place(read(text))
    raise Unreadable("it printed neither what a known quota tool prints nor one number: " + (_short(text) or "nothing"))


def _own(word: str) -> Quota:
    if word in ("unlimited", "none"):
        return Quota("", None)
    if not word.isdecimal():
        raise Unreadable(f"it printed {word!r}; one number is expected, the bytes left, or 'unlimited'")
    return Quota("", int(word))


def _one_place(found: Iterable[tuple[str, Quota]]) -> tuple[Quota, ...]:
    """Every kind of quota once; several file systems, pools or groups are not all those of the case."""
    quotas: dict[str, Quota] = {}
    for place, quota in found:
        kind = quota.whose.rpartition(" ")[0]  # BeeGFS tells the name alone
        if kind in quotas:
            raise Unreadable(f"it printed several quotas (of {place}, {quota.whose}); let it name the one that counts")
        quotas[kind] = quota
    if not quotas:
        raise Unreadable("it printed a heading and no quota")
    return tuple(quotas.values())


# --- lfs quota, quota -------------------------------------------------------------------------------------------------

_TITLE = re.compile(r"^Disk quotas for (\w+) (\S+) \(\wid \d+\):(.*)$", re.MULTILINE)
_KINDS = {"usr": "user", "grp": "group", "prj": "project", "USR": "user", "GRP": "group", "FILESET": "fileset"}
_NOTES = re.compile(r"^(?:[ugp]id \d+ is using default|Some errors happened|Total allocated).*$", re.MULTILINE)
_EXPIRED = ("none", "expired")


def _disk_quotas(text: str) -> Iterable[tuple[str, Quota]]:
    """Lustre's and Linux's tables are alike: kibibytes used, soft, hard, grace, then files; a long name has its own line."""
    if 'The data in "[]" is inaccurate' in text:
        raise Unreadable("it says itself that its figures are inaccurate")
    _, *parts = _TITLE.split(_NOTES.sub("", text))
    for kind, name, said, table in zip(*[iter(parts)] * 4, strict=True):
        whose = f"{_KINDS.get(kind, kind)} {name}"
        if said.strip() == "none":
            yield "", Quota(whose, None)
        head, *lines = table.strip().splitlines() or [""]
        if lines and "Filesystem" not in head:
            raise Unreadable("its columns have no heading (lfs quota -q); they are needed")
        yield from _rows(whose, " ".join(lines).split())


def _rows(whose: str, words: list[str]) -> Iterable[tuple[str, Quota]]:
    while words:
        place, *numbers = words[:4]
        rest = words[4:]
        if len(numbers) < 3:
            raise Unreadable(f"the line of {place} ends early")
        sizes = [_number(number.rstrip("*"), 1024) for number in numbers]
        grace, rest = _grace(rest)
        files, rest = rest[:3], rest[3:]
        if len(files) == 3:
            _, rest = _grace(rest)
        yield place, _quota(whose, *sizes, grace_is_over=grace in _EXPIRED)
        words = rest


def _grace(words: list[str]) -> tuple[str, list[str]]:
    """The grace column is a dash, a time or a word with Lustre, and left empty by ``quota`` where nothing is exceeded."""
    is_grace = bool(words) and re.fullmatch(r"-|none|expired|\d+days|\d+:\d\d|(?:\d+[wdhms])+", words[0])
    return (words[0], words[1:]) if is_grace else ("", words)


# --- BeeGFS -----------------------------------------------------------------------------------------------------------


_NO_LIMIT = ("unlimited", "-", "∞", str(2**63 - 1))  # the last one: beegfs --raw


def _beegfs_limit(text: str) -> int:
    return 0 if text in _NO_LIMIT else _number(text)


def _beegfs_csv(text: str) -> Iterable[tuple[str, Quota]]:
    pool = ""
    for line in text.splitlines():
        fields = line.split(",")
        if line.startswith("Quota information for storage pool"):
            pool = line.removeprefix("Quota information for ").rstrip(":")
        elif len(fields) == 6 and fields[0] != "name":
            yield pool, _quota(fields[0], _number(fields[2]), 0, _beegfs_limit(fields[3]), grace_is_over=False)


def _beegfs_table(text: str) -> Iterable[tuple[str, Quota]]:
    pool = ""
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if line.startswith("Quota information for storage pool"):
            pool = line.removeprefix("Quota information for ").rstrip(":")
        elif len(fields) == 8 and "id" not in fields and set(fields[0]) != {"-"}:
            used, hard = _number(fields[3]), _beegfs_limit(fields[4])
            yield pool, _quota(fields[0], used, 0, hard, grace_is_over=False)


def _beegfs8(text: str) -> Iterable[tuple[str, Quota]]:
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 6 and fields[2] in ("user", "group"):
            used, _, limit = fields[4].partition("/")
            if "?" in (used, limit):
                raise Unreadable(f"BeeGFS does not tell the quota of {fields[2]} {fields[0]}")
            whose = f"{fields[2]} {fields[0]}"
            yield fields[3], _quota(whose, _number(used), 0, _beegfs_limit(limit), grace_is_over=False)


# --- GPFS -------------------------------------------------------------------------------------------------------------


def _gpfs_fields(text: str) -> Iterable[tuple[str, Quota]]:
    """``-Y``: names in a line HEADER, values percent-encoded, sizes in KiB; what is in doubt counts as used."""
    names: list[str] = []
    for line in text.splitlines():
        fields = line.split(":")
        if "HEADER" in fields:
            names = fields
        elif line.startswith("mmlsquota:") and names:
            row = dict(zip(names, map(unquote, fields), strict=False))
            used = 1024 * (int(row["blockUsage"]) + int(row["blockInDoubt"]))
            soft, hard = 1024 * int(row["blockQuota"]), 1024 * int(row["blockLimit"])
            kind = _KINDS.get(row["quotaType"], row["quotaType"])
            over = row["blockGrace"] == "expired"
            yield row["filesystemName"], _quota(f"{kind} {row['name']}", used, soft, hard, grace_is_over=over)


def _gpfs_table(text: str) -> Iterable[tuple[str, Quota]]:
    title = _TITLE.search(text)
    name = title[2] if title else ""
    heading = re.search(r"^Filesystem type +(\w+) ", text, re.MULTILINE)
    if heading is None or heading[1] not in ("KB", "blocks"):
        raise Unreadable("its sizes are in a unit that is not known; without --block-size they are")
    for line in text.splitlines():
        fields = line.partition("|")[0].split()
        if len(fields) < 4 or fields[1] not in _KINDS:
            continue
        whose = f"{_KINDS[fields[1]]} {name}".strip()
        if fields[2:4] == ["no", "limits"]:
            yield fields[0], Quota(whose, None)
            continue
        used, soft, hard, in_doubt = (_number(field, 1024) for field in fields[2:6])
        over = fields[6:7] == ["expired"]
        yield fields[0], _quota(whose, used + in_doubt, soft, hard, grace_is_over=over)


#: By a sign in the output, the first that is found: GPFS too prints "Disk quotas for" above a table.
_READERS = (
    ("mmlsquota:.*HEADER:", _gpfs_fields),
    ("Block Limits", _gpfs_table),
    ("Disk quotas for", _disk_quotas),
    ("name,id,size,hard,files,hard", _beegfs_csv),
    ("user/group +[|]", _beegfs_table),
    ("NAME +ID +TYPE +POOL +SPACE", _beegfs8),
)


# --- asking -----------------------------------------------------------------------------------------------------------


def _short(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " / ".join(lines[-2:])[:200]


def ask(command: str) -> tuple[Quota, ...]:
    """The quotas that ``command`` prints. Raises :class:`Unreadable`, with what it said instead.

    Its exit code alone tells nothing: ``quota`` ends with 1 where a limit is exceeded.
    """
    code, out, err = run_briefly(command)
    try:
        return parse(out)
    except Unreadable as problem:
        if code == 0:
            raise
        raise Unreadable(
            f"it ended with exit code {code}: {_short(err) or _short(out) or 'without a word'}"
        ) from problem


def refusal(needed: int, quotas: Iterable[Quota], file_system: str) -> str:
    """Which quota is too small for so many bytes, in words; empty: they fit in all of them."""
    short = [quota for quota in quotas if quota.left is not None and quota.left < needed]
    if not short:
        return ""
    quota = min(short, key=lambda quota: quota.left or 0)
    size = f" {in_units(quota.limit)}" if quota.limit else ""
    whose = f" for {quota.whose}" if quota.whose else ""
    return f"{in_units(quota.left or 0)} are left of the{size} quota of {file_system}{whose}"


def summary(quotas: Iterable[Quota]) -> str:
    """What was found, for the record."""
    parts = []
    for quota in quotas:
        limit = f" of {in_units(quota.limit)}" if quota.limit else ""
        left = "no limit" if quota.left is None else f"{in_units(quota.left)} left{limit}"
        parts.append(f"{quota.whose}: {left}" if quota.whose else left)
    return ", ".join(parts)


def main(file_system: str, needed: int, command: str) -> int:
    """For jobs; see above."""
    try:
        quotas = ask(command)
    except Unreadable as problem:
        print(f"not known: {command}: {problem}")
        return NOT_KNOWN
    refused = refusal(needed, quotas, file_system)
    print(refused or summary(quotas))
    if not refused:
        return FITS
    return NEVER_FITS if any(quota.limit is not None and quota.limit < needed for quota in quotas) else TOO_LITTLE_LEFT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
