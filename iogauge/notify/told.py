"""What each target was told of a site: one file beside the nights, written whole, after the message was delivered."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from iogauge import nightly
from iogauge.errors import InputError
from iogauge.night import replacing
from iogauge.notify.changes import Told

#: So long one waits for another that is telling just now.
WAIT_SECONDS = 300


class Ledger(BaseModel):
    """Targets are known by a digest of their URL under ``salt``: the URL has a password in it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: Literal["iogauge.told/1"] = Field(default="iogauge.told/1", alias="schema")
    salt: str = Field(default_factory=lambda: secrets.token_hex(16))
    targets: dict[str, Told] = {}

    def told(self, url: str) -> Told:
        """What this target was told; nothing, if it is new."""
        return self.targets.get(self._digest(url), Told())

    def with_told(self, url: str, told: Told) -> Ledger:
        """The ledger afterwards."""
        return self.model_copy(update={"targets": {**self.targets, self._digest(url): told}})

    def _digest(self, url: str) -> str:
        return hashlib.blake2b(url.encode(), key=bytes.fromhex(self.salt), digest_size=16).hexdigest()


def path_of(site: str) -> Path:
    """Where the ledger of a site is."""
    return nightly.home() / "told" / f"{site}.json"


def read(path: Path) -> Ledger:
    """Raises :class:`InputError` for what is no ledger."""
    if not path.exists():
        return Ledger()
    try:
        return Ledger.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(
            f"does not say what was told: {first['msg']}; without it all that is wrong now is told again",
            file=path,
            key=".".join(map(str, first["loc"])) or None,
        ) from error


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """One at a time tells, so that nothing is told twice. Raises :class:`InputError` when another one takes too long."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.with_suffix(".lock"))
    try:
        lock.acquire(timeout=WAIT_SECONDS)
    except Timeout:
        raise InputError(f"another notify has been telling for {WAIT_SECONDS} s", file=path) from None
    with lock:
        yield


@contextmanager
def kept_after(path: Path, ledger: Ledger) -> Iterator[None]:
    """The ledger lies ready on the disk before the message goes out, and takes its place when that was delivered."""
    with replacing(path, ledger.model_dump_json(by_alias=True, indent=1), mode=0o600):
        yield
