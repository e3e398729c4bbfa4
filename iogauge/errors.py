"""The two ways in which input is turned down, and where what the operating system refused was to happen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class InputError(Exception):
    """Something a person wrote is wrong: an argument, a site configuration, a band.

    ``str()`` reads ``FILE:LINE: KEY: what is wrong; what is allowed``, as far as these are known.
    Programs answer it with exit code 2, before anything is measured.
    """

    def __init__(
        self,
        message: str,
        *,
        file: Path | str | None = None,
        line: int | None = None,
        key: str | None = None,
    ) -> None:
        self.message = message
        self.file = None if file is None else Path(file)
        self.line = line
        self.key = key
        where = "" if file is None else f"{file}:" + ("" if line is None else f"{line}:")
        super().__init__(" ".join(part for part in (where, key and f"{key}:", message) if part))


class Refusal(Exception):
    """A benchmark's output is no true measurement; ``str()`` says why. No rate is taken from it."""


@contextmanager
def about(path: Path) -> Iterator[None]:
    """An OSError in here names ``path``: that of a full disk names no file, and that of a temporary file one nobody knows."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
