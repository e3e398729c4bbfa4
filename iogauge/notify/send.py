"""Where messages go, and sending them through Apprise. The URLs of targets hold passwords: they are never shown."""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from iogauge import nightly
from iogauge.errors import InputError
from iogauge.notify.message import Message

#: Targets, separated by blanks.
TARGETS_VARIABLE = "IOGAUGE_NOTIFY"

#: Of these the host is an address; of others it may be a token.
_HOST_IS_ADDRESS = re.compile(r"^(mailtos?|jsons?|xmls?|forms?)$")

#: Shorter pieces of a URL are words.
_LEAST_SECRET = 4


@dataclass(frozen=True)
class Target:
    """``where`` says how it was named, for messages: a file's line, or the number of an option."""

    where: str
    url: str = field(repr=False)

    @property
    def service(self) -> Any:
        """Apprise's service. Raises :class:`InputError` for what is no URL of it."""
        import apprise  # a hundred services: only when something is told

        asset = apprise.AppriseAsset(app_id="iogauge", app_desc="iogauge", app_url="")
        with _quiet():
            service = apprise.Apprise.instantiate(self.url, asset=asset)
        if service is None:
            raise InputError("no URL that Apprise knows, such as mailto://... or json://...", key=self.where)
        return service

    def __str__(self) -> str:
        return f"{self.service.service_name} ({self.where})"


def default_file() -> Path:
    """Where targets are kept."""
    return nightly.home() / "notify.urls"


def targets(given: Sequence[str], file: Path | None) -> tuple[Target, ...]:
    """Those of ``--to`` and ``--targets``; without them those of the environment; without these those of the default file.

    Each once. Raises :class:`InputError` for a file that others may read, and for what is no URL of Apprise.
    """
    found = [Target(f"--to {number}", url) for number, url in enumerate(given, start=1)]
    found += _in_file(file) if file is not None else []
    if not found:
        words = os.environ.get(TARGETS_VARIABLE, "").split()
        found = [Target(f"{TARGETS_VARIABLE} {number}", url) for number, url in enumerate(words, start=1)]
    if not found and file is None and default_file().exists():
        found = _in_file(default_file())
    for target in found:
        _ = target.service  # raises
    return tuple({target.url: target for target in reversed(found)}.values())[::-1]


def _in_file(path: Path) -> list[Target]:
    """A URL a line; lines that begin with # are comments."""
    mode = path.stat().st_mode
    if stat.S_IMODE(mode) & 0o077:
        raise InputError(
            f"its passwords can be read by others (mode {stat.S_IMODE(mode):o}); chmod 600 {path}", file=path
        )
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise InputError("no text in UTF-8; a URL a line is expected", file=path) from None
    numbered = [(number, line.strip()) for number, line in enumerate(lines, start=1)]
    found = [Target(f"{path}:{number}", line) for number, line in numbered if line and not line.startswith("#")]
    if not found:
        raise InputError("no target in it; a URL a line is expected", file=path)
    return found


def deliver(target: Target, message: Message) -> str:
    """Send it. Returns why it could not be delivered, without anything secret; empty: it was."""
    service = target.service
    html = _likes_html(service)
    with _quiet() as said:
        try:
            delivered = service.notify(
                title=message.subject,
                body=message.html if html else message.text,
                body_format="html" if html else "text",
                notify_type=message.severity,
            )
        except Exception as problem:  # a service's own; whatever it is, it was not delivered, and may name the URL
            delivered = False
            said.append(f"{type(problem).__name__}: {problem}")
    return "" if delivered else _without_secrets("; ".join(dict.fromkeys(said)) or "no reason given", target.url)


def _likes_html(service: Any) -> bool:
    """Is HTML the form that the service is made for, as mail is?"""
    formats = service.notify_format
    first = formats[0] if isinstance(formats, (tuple, list)) else formats
    return str(getattr(first, "value", first)) == "html"


@contextmanager
def _quiet() -> Iterator[list[str]]:
    """Keep Apprise's log to ourselves: URLs are in it. Of it, what tells why something failed."""
    said: list[str] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = " ".join(record.getMessage().split())
            if record.levelno >= logging.WARNING or text.startswith("Socket Exception"):
                said.append(text)

    logger, keeper = logging.getLogger("apprise"), Keeper(logging.DEBUG)
    before = logger.level, logger.propagate
    logger.addHandler(keeper)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield said
    finally:
        logger.removeHandler(keeper)
        logger.setLevel(before[0])
        logger.propagate = before[1]


def _without_secrets(text: str, url: str) -> str:
    """Every piece of the URL that may be secret is left out."""
    parts = urlsplit(url)
    pieces = [url, parts.username, parts.password, *parts.path.split("/"), parts.query]
    pieces += [value for _, value in parse_qsl(parts.query)]
    if not _HOST_IS_ADDRESS.match(parts.scheme):
        pieces += [parts.netloc, *re.split(r"[@:]", parts.netloc)]
    secret = {form for piece in pieces if piece for form in (piece, unquote(piece)) if len(form) >= _LEAST_SECRET}
    for piece in sorted(secret, key=len, reverse=True):
        text = text.replace(piece, "***")
    return text
