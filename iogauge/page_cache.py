"""How much of a file the page cache holds, and asking the system to let go of it; as ``kernels/common/page_cache.c``."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_CACHESTAT = 451  # the same on every architecture (Linux 6.5)
_NOTHING_TO_BRING_BACK = (errno.EINVAL, errno.ENOSYS, errno.EROFS)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Counts(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")
    )


@contextmanager
def _descriptor(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _by_cachestat(fd: int, length: int) -> int | None:
    extent, counts = _Range(0, length), _Counts()
    told = _libc.syscall(
        ctypes.c_long(_CACHESTAT), ctypes.c_int(fd), ctypes.byref(extent), ctypes.byref(counts), ctypes.c_uint(0)
    )
    return int(counts.cached) if told == 0 else None


def _by_mincore(fd: int, length: int) -> int | None:
    address = _libc.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        return None
    resident = (ctypes.c_ubyte * _pages(length))()
    told = _libc.mincore(address, length, resident)
    _libc.munmap(address, length)
    return sum(byte & 1 for byte in resident) if told == 0 else None


def _pages(length: int) -> int:
    return -(-length // mmap.PAGESIZE)


def cached_fraction(paths: Iterable[Path]) -> float | None:
    """The part of all pages of the files that is in memory on this host; ``None``: not known, or there is no page."""
    resident = total = 0
    for path in paths:
        with _descriptor(path) as fd:
            length = os.fstat(fd).st_size
            if length == 0:
                continue
            found = _by_cachestat(fd, length)
            if found is None:
                found = _by_mincore(fd, length)
        if found is None:
            return None
        resident += found
        total += _pages(length)
    return min(1.0, resident / total) if total else None


def write_back(path: Path) -> None:
    """Bring a file's data to storage (``fsync``); nothing on a file system that has none to bring them to."""
    with _descriptor(path) as fd:
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno not in _NOTHING_TO_BRING_BACK:
                raise


def drop(paths: Iterable[Path]) -> None:
    """Ask the system to forget the files' pages: a request that may be refused; a look afterwards tells."""
    for path in paths:
        write_back(path)
        with _descriptor(path) as fd:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
