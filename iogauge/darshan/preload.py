"""How a kernel is run under Darshan: variables of the program alone, and the runtime's configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

#: Programs are linked with Darshan when they are built, as statically linked ones have to be.
LINKED = "linked"

#: Below the case's stage folder.
LOG_FILE = "darshan.log"
CONFIGURATION_FILE = "darshan.conf"

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


def configuration(folder: str, *, records: int = 0, ranks: int = 1, without: tuple[str, ...] = ()) -> str:
    """The runtime's configuration file: only files whose names match the regular expression ``folder`` are looked at, so that
    neither Darshan's own list of folders that it leaves out (``/dev`` is in it) nor other programs' files matter.

    ``records``: files and datasets of one rank. ``without``: modules that are left out.
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
    return "".join(f"{line}\n" for line in lines)


def variables(library: str, stage: str) -> dict[str, str]:
    """For the kernel's own environment. ``library`` empty: the kernel is linked with Darshan, nothing is preloaded."""
    chosen = {"DARSHAN_LOGFILE": f"{stage}/{LOG_FILE}", "DARSHAN_CONFIG_PATH": f"{stage}/{CONFIGURATION_FILE}"}
    return {**chosen, "LD_PRELOAD": library} if library else chosen


def files_of_case(number: int = 0) -> str:
    """The regular expression for the data files of a kernel's case; 0 is the case itself, the others are its baselines.

    Open MPI's locks and shared memory carry the names of data files too; they are none.
    """
    return rf"-case{number}-file(?!.*(?:\.locktest\.|_cid-))"
