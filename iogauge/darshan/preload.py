"""How a kernel is run under Darshan: variables of the program alone, and the runtime's configuration."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from iogauge.errors import InputError

#: The same for programs without MPI and with a serial HDF5: a runtime that was built without MPI, for such an HDF5.
SERIAL_EXTRA = "darshan_serial"

#: Programs are linked with Darshan when they are built, as statically linked ones have to be.
LINKED = "linked"

#: Below the case's stage folder.
LOG_FILE = "darshan.log"
CONFIGURATION_FILE = "darshan.conf"

#: Set in a job, it keeps the runtime from counting, however it got into a program.
DISABLE = "DARSHAN_DISABLE"

#: Up to so many ranks the log tells them apart in shared files too; it grows with them.
RANKS_APART = 256

#: What Darshan keeps records for by itself: files of a process, of a module.
_DEFAULT_RECORDS = 1024


def _runtime(value: str) -> str:
    if any(character in value for character in '"`\n') or "$(" in value:
        raise ValueError(f"a path with variables, or {LINKED!r}, is allowed; quotes, commands and line breaks are not")
    return value


#: What the environment's extra may say; empty: without.
Runtime = Annotated[str, AfterValidator(_runtime)]


def configuration(
    folder: str, *, records: int = 0, ranks: int = 1, without: tuple[str, ...] = (), program: str = ""
) -> str:
    """The runtime's configuration file: only files whose names match the regular expression ``folder`` are looked at, so that
    neither Darshan's own list of folders that it leaves out (``/dev`` is in it) nor other programs' files matter.

    ``records``: files and datasets of one rank. ``without``: modules that are left out. ``program``: a regular expression for
    its name, where what it starts itself would leave a log too.
    """
    lines = ["NAME_EXCLUDE . *", f"NAME_INCLUDE {folder} *"]
    if ranks <= RANKS_APART:
        lines.append("DISABLE_SHARED_REDUCTION")
    if records > _DEFAULT_RECORDS:
        # MiB: a record of a module takes about a KiB, a name less than 256 bytes; without these lines there are 4 and 1.
        lines += [
            f"MAX_RECORDS {records} POSIX,MPI-IO,H5F,H5D,STDIO",
            f"MODMEM {4 + records * 4 // 1024}",
            f"NAMEMEM {1 + records // 1024}",
        ]
    lines += [f"MOD_DISABLE {','.join(without)}"] * bool(without)
    lines += ["APP_EXCLUDE .", f"APP_INCLUDE {program}"] if program else []
    return "".join(f"{line}\n" for line in lines)


def variables(library: str, stage: str, log: str = LOG_FILE, *, mpi: bool = True) -> dict[str, str]:
    """For the program's own environment. ``library`` empty: it is linked with Darshan, nothing is preloaded."""
    chosen = {"DARSHAN_LOGFILE": f"{stage}/{log}", "DARSHAN_CONFIG_PATH": f"{stage}/{CONFIGURATION_FILE}"}
    chosen |= {} if mpi else {"DARSHAN_ENABLE_NONMPI": "1"}
    return {**chosen, "LD_PRELOAD": library} if library else chosen


def files_in_case_folder(names: str) -> str:
    """The regular expression for data files of a program that runs in the case's folder; ``names`` is one for their names
    there. H5D's records have a dataset's name after the file's and a colon.
    """
    return rf"/iogauge-case\.[^/]+/(?:\./)?(?:{names})(?=:|$)"


def files_of_case(number: int = 0) -> str:
    """The regular expression for the data files of a kernel's case; 0 is the case itself, the others are its baselines.

    Open MPI's locks and shared memory carry the names of data files too; they are none.
    """
    return rf"-case{number}-file(?!.*(?:\.locktest\.|_cid-))"


def calls_by_event_sets(program: Path) -> bool:
    """Does it wait for event sets of HDF5? What it calls with one (H5Fcreate_async) is none that Darshan knows."""
    return b"H5ESwait" in program.read_bytes()


#: Prints the names of all libraries that h5py has loaded.
_LIBRARIES_OF_H5PY = "import h5py; print(open('/proc/self/maps').read())"


def hdf5_of_h5py() -> str:
    """The HDF5 library of this Python's h5py. It has to be preloaded behind the runtime: Python loads it where the runtime,
    whose calls go to the next library that the program itself sees, would not find it.

    Raises :class:`InputError` where there is none.
    """
    done = subprocess.run([sys.executable, "-c", _LIBRARIES_OF_H5PY], capture_output=True, text=True, check=False)
    found = re.findall(r"\S+/libhdf5(?!\S*_(?:hl|cpp|fortran))[^/\s]*\.so\S*", done.stdout)
    if not found:
        raise InputError(
            f"{sys.executable} loads no libhdf5 with h5py: {done.stderr.strip()[-200:] or 'none is mapped'}"
        )
    return str(found[0])
