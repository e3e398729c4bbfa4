"""``scripts/hdf5-arms``: several parallel HDF5 on one Debian machine, a prefix for each and for each MPI, without Spack.

Debian's own packages become a prefix of links; newer ones are built from the source packages of newer suites, which APT
fetches and checks by their signed hashes. What cannot be had is named with the reason and left out.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import urlparse

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field

from iogauge.errors import InputError
from iogauge.validation import validate

#: Below the folder of what is generated.
ARMS = "arms"

#: What an arm's prefix says of itself; a folder without it is none.
ARM_FILE = "arm.json"

#: Debian's names of MPI libraries, as in ``mpicc.openmpi``.
MPIS = ("openmpi", "mpich")

#: So begins the origin of an arm that is links to packages.
FROM_PACKAGE = "Debian's package"

#: Where source packages are looked for: the most settled suite that has a fitting one.
SUITES = ("trixie", "forky", "sid", "experimental")

#: What is wanted without being asked: Debian's packages, and the newest two series.
PACKAGES = "packages"
SERIES = (PACKAGES, "1.14", "2")

#: The CMake that HDF5 2 needs, and the one before; an older one is replaced by PyPI's.
CMAKE_OF_2, CMAKE = (3, 26), (3, 18)

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

#: What the kernels use and nothing else. zlib is called differently before 1.14.5 and after.
HDF5_OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DHDF5_ENABLE_PARALLEL=ON",
    "-DHDF5_ENABLE_Z_LIB_SUPPORT=ON",
    "-DHDF5_ENABLE_ZLIB_SUPPORT=ON",
    "-DHDF5_ENABLE_SZIP_SUPPORT=OFF",
    "-DHDF5_BUILD_TOOLS=OFF",
    "-DHDF5_BUILD_HL_LIB=OFF",
    "-DHDF5_BUILD_CPP_LIB=OFF",
    "-DHDF5_BUILD_FORTRAN=OFF",
    "-DHDF5_BUILD_JAVA=OFF",
    "-DHDF5_BUILD_EXAMPLES=OFF",
    "-DBUILD_TESTING=OFF",
    "-DBUILD_STATIC_LIBS=OFF",
    "-DBUILD_SHARED_LIBS=ON",
)

Text = Annotated[str, Field(min_length=1)]


class CannotBeHad(Exception):
    """Why an arm is left out, in words."""


class DebianArm(BaseModel):
    """One HDF5 with one MPI: ``prefix`` holds ``bin/{mpicc,mpirun,h5pcc}``, ``include`` and ``lib``.

    ``flags`` are those that HDF5 was configured with, as far as they are known; ``source`` says where it came from, with the
    SHA-256 of the archive.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^hdf5-[0-9][0-9.]*-[a-z]+$")]
    hdf5: Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)+$")]
    mpi: Text
    prefix: Path
    compiler: Path
    launcher: Path
    flags: tuple[str, ...]
    source: Text


class Found(BaseModel):
    """What ``--json`` prints: the arms that are there, and why the others are not, by name."""

    model_config = ConfigDict(frozen=True)

    arms: tuple[DebianArm, ...]
    left_out: dict[str, str]


def installed(folder: Path) -> list[DebianArm]:
    """The arms below ``folder``, oldest HDF5 first. Raises :class:`InputError` where one is not what it says."""
    found = []
    for file in sorted(folder.glob(f"*/{ARM_FILE}")):
        try:
            document = json.loads(file.read_bytes())
        except (OSError, ValueError) as error:
            raise InputError(
                f"not the description of an arm: {error}; remove {file.parent} to make it anew", file=file
            ) from error
        arm = validate(DebianArm, document, file=file)
        if arm.prefix != file.parent:
            raise InputError(
                f"{arm.prefix} was moved to {file.parent}; it has to be made anew", file=file, key="prefix"
            )
        for program in (arm.compiler, arm.launcher):
            if not os.access(program, os.X_OK):
                raise InputError(f"{program} is no program; remove {arm.prefix} to make it anew", file=file)
        found.append(arm)
    return sorted(found, key=lambda arm: (_numbers(arm.hdf5), MPIS.index(arm.mpi) if arm.mpi in MPIS else len(MPIS)))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def fits(version: str, series: str) -> bool:
    """Is 1.14.5 of the series 1.14? It is; of 1.1 it is not."""
    numbers = _numbers(series)
    return _numbers(version)[: len(numbers)] == numbers


def _run(command: Sequence[str | Path], log: Path, what: str, *, cwd: Path | None = None, **environment: str) -> None:
    """Raises :class:`CannotBeHad` with the last lines that it said."""
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(map(str, command))}\n")
        file.flush()
        done = subprocess.run(
            [*map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env={**os.environ, **environment},
            check=False,
        )
    if done.returncode:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        said = [line for line in lines if re.search(r"\b(error|E:)", line, re.IGNORECASE)] or lines
        raise CannotBeHad(f"{what}: {said[-1].strip()} (all of it: {log})")


# --- Debian's sources -------------------------------------------------------------------------------------------------


def mirror() -> str:
    """The URI of the Debian archive that this machine is configured for; ``IOGAUGE_DEBIAN_MIRROR`` names another one."""
    named = os.environ.get("IOGAUGE_DEBIAN_MIRROR")
    if named:
        return named
    if shutil.which("apt-get") is None:
        raise CannotBeHad("there is no apt-get: sources are taken from Debian's archive")
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    for uri in listed:
        if Path(urlparse(uri).path).name == "debian":
            return uri
    raise CannotBeHad("no Debian mirror is among APT's sources; IOGAUGE_DEBIAN_MIRROR names one")


class Archive:
    """Source packages of newer suites, with lists of their own below ``folder``: the machine's APT stays as it is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._offers: dict[str, list[str]] = {}
        self.failed: dict[str, str] = {}

    def _options(self, suite: str) -> list[str]:
        own = self.folder / suite
        options = {
            "Dir::Etc::sourcelist": own / "sources.list",
            "Dir::Etc::sourceparts": "-",
            "Dir::State::lists": own / "lists",
            "Dir::State::status": "/dev/null",
            "Dir::Cache": own / "cache",
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
        }
        return [word for key, value in options.items() for word in ("-o", f"{key}={value}")]

    def offers(self, suite: str) -> list[str]:
        """The versions of Debian's source package hdf5 in a suite. Raises :class:`CannotBeHad`."""
        if suite in self.failed:
            raise CannotBeHad(self.failed[suite])
        if suite not in self._offers:
            try:
                self._offers[suite] = self._ask(suite)
            except CannotBeHad as reason:
                self.failed[suite] = str(reason)
                raise
        return self._offers[suite]

    def _ask(self, suite: str) -> list[str]:
        own = self.folder / suite
        for name in ("lists/partial", "cache/archives/partial"):
            (own / name).mkdir(parents=True, exist_ok=True)
        signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
        (own / "sources.list").write_text(f"deb-src {signed}{mirror()} {suite} main\n", encoding="utf-8")
        log = own / "log"
        log.unlink(missing_ok=True)
        _run(
            ["apt-get", *self._options(suite), "update", "--error-on=any"],
            log,
            f"the sources of {suite} are not listed",
        )
        command = ["apt-cache", *self._options(suite), "showsrc", "--only-source", "hdf5"]
        shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        return re.findall(r"^Version: (\S+)$", shown, re.MULTILINE)

    def get(self, series: str) -> tuple[str, str, Path]:
        """The newest HDF5 of a series in the most settled suite that really has one: the suite, Debian's version, and the
        archive of its sources. A list can name files that the archive no longer holds. Raises :class:`CannotBeHad`."""
        reasons = []
        for suite in SUITES:
            try:
                versions = [version for version in self.offers(suite) if fits(upstream(version), series)]
                if versions:
                    newest = max(versions, key=lambda version: (_numbers(upstream(version)), version))
                    return suite, newest, self.fetch(suite, newest)
                reasons.append(f"{suite} has none")
            except CannotBeHad as reason:
                reasons.append(str(reason))
        raise CannotBeHad(f"no source package of HDF5 {series}: {'; '.join(dict.fromkeys(reasons))}")

    def fetch(self, suite: str, version: str) -> Path:
        """The archive of that version's sources; APT checks it against the hash in the suite's signed list."""
        own = self.folder / suite
        command = ["apt-get", *self._options(suite), "source", "--download-only", f"hdf5={version}"]
        _run(command, own / "log", f"hdf5 {version} of {suite} cannot be fetched", cwd=own)
        archives = sorted(own.glob(f"hdf5_{version.rpartition('-')[0]}.orig.tar.*"))
        if not archives:
            raise CannotBeHad(f"hdf5 {version} of {suite} has no archive of its sources")
        return archives[0]


def upstream(version: str) -> str:
    """HDF5's own version in Debian's: 1.14.5 in 1.14.5+repack-3."""
    found = re.match(r"(?:\d+:)?(\d+(?:\.\d+)+)", version)
    if found is None:
        raise CannotBeHad(f"{version!r} is no version of HDF5")
    return found[1]


# --- prefixes ---------------------------------------------------------------------------------------------------------


def wrappers(mpi: str) -> dict[str, Path]:
    """The compiler wrapper and the launcher of one of Debian's MPI libraries."""
    found = {name: shutil.which(f"{name}.{mpi}") for name in ("mpicc", "mpirun")}
    missing = [f"{name}.{mpi}" for name, path in found.items() if path is None]
    if missing:
        raise CannotBeHad(f"not in PATH: {', '.join(missing)} (Debian: {mpi}, lib{mpi}-dev)")
    return {name: Path(str(path)) for name, path in found.items()}


def _write_program(path: Path, program: Path) -> None:
    """A wrapper, no link: Open MPI's programs take the folder that they are called in for their own prefix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec {program} "$@"\n', encoding="utf-8")
    path.chmod(0o755)


def _finish(aside: Path, prefix: Path, hdf5: str, mpi: str, flags: Sequence[str], source: str) -> DebianArm:
    """Give what was made aside its programs and its description, and move it to where it belongs: all of it or nothing."""
    for name, program in wrappers(mpi).items():
        _write_program(aside / "bin" / name, program)
    arm = DebianArm(
        name=prefix.name,
        hdf5=hdf5,
        mpi=mpi,
        prefix=prefix,
        compiler=prefix / "bin" / "mpicc",
        launcher=prefix / "bin" / "mpirun",
        flags=tuple(flags),
        source=source,
    )
    (aside / ARM_FILE).write_text(arm.model_dump_json(indent=1) + "\n", encoding="utf-8")
    if prefix.exists():
        shutil.rmtree(prefix)
    aside.rename(prefix)
    return arm


def header_version(include: Path) -> str:
    """The version of the HDF5 whose headers lie in ``include``. Raises :class:`CannotBeHad`."""
    try:
        text = (include / "H5public.h").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise CannotBeHad(f"{include}/H5public.h: {error.strerror}") from error
    numbers = [re.search(rf"#define H5_VERS_{part}\s+(\d+)", text) for part in ("MAJOR", "MINOR", "RELEASE")]
    if not all(numbers):
        raise CannotBeHad(f"{include}/H5public.h names no version")
    return ".".join(number[1] for number in numbers if number)


def from_packages(folder: Path, mpi: str) -> DebianArm:
    """A prefix of links to Debian's own packages of the parallel HDF5."""
    wrapper = shutil.which(f"h5pcc.{mpi}")
    if wrapper is None:
        raise CannotBeHad(f"not in PATH: h5pcc.{mpi} (Debian: libhdf5-{mpi}-dev)")
    wrappers(mpi)
    roots = sorted(Path("/usr/lib").glob(f"*/hdf5/{mpi}"))
    if not roots:
        raise CannotBeHad(f"no /usr/lib/*/hdf5/{mpi} (Debian: libhdf5-{mpi}-dev)")
    version = header_version(roots[0] / "include")
    aside = folder / "building" / "prefix"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    (aside / "include").symlink_to((roots[0] / "include").resolve())
    (aside / "lib").symlink_to(roots[0])
    _write_program(aside / "bin" / "h5pcc", Path(wrapper))
    package = f"libhdf5-{mpi}-dev"
    shown = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False
    )
    source = f"{FROM_PACKAGE} {package} {shown.stdout}".rstrip()
    return _finish(aside, folder / f"hdf5-{version}-{mpi}", version, mpi, (), source)


def cmake(folder: Path, version: str) -> Path:
    """A CMake that is new enough for a version of HDF5: the machine's, or PyPI's in an environment of its own."""
    needed = CMAKE_OF_2 if _numbers(version) >= (2,) else CMAKE
    own = folder / "cmake" / "bin" / "cmake"
    for program in (shutil.which("cmake"), str(own)):
        if program and Path(program).exists():
            said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
            found = re.search(r"version (\d+)\.(\d+)", said)
            if found and (int(found[1]), int(found[2])) >= needed:
                return Path(program)
    log = folder / "cmake.log"
    log.unlink(missing_ok=True)
    what = f"CMake {'.'.join(map(str, needed))} or newer is needed, and pip could not install it"
    _run([sys.executable, "-m", "venv", "--clear", folder / "cmake"], log, what)
    # Version 4 no longer takes what old projects ask for.
    _run([own.parent / "python", "-m", "pip", "install", "--quiet", "cmake>=3.26,<4"], log, what)
    return own


def from_source(
    folder: Path, archive: Archive, series: str, mpi: str, jobs: int, more: Sequence[str] = ()
) -> DebianArm:
    """Build the newest HDF5 of a series aside, and move it to its place when it is whole.

    ``more`` are options for its configuration.
    """
    compiler = wrappers(mpi)["mpicc"]
    suite, debian, source = archive.get(series)
    version = upstream(debian)
    program = cmake(folder, version)
    prefix = folder / f"hdf5-{version}-{mpi}"
    building = folder / "building"
    shutil.rmtree(building, ignore_errors=True)
    (building / "source").mkdir(parents=True)
    log = folder / f"{prefix.name}.log"
    log.unlink(missing_ok=True)
    what = f"HDF5 {version} with {mpi} could not be built"
    _run(["tar", "-xf", source, "-C", building / "source", "--strip-components=1"], log, what)
    configure: list[str | Path] = [
        program,
        "-S",
        building / "source",
        "-B",
        building / "build",
        f"-DCMAKE_INSTALL_PREFIX={prefix}",
    ]
    options = (*HDF5_OPTIONS, *more)
    _run([*configure, *options], log, what, CC=str(compiler))
    _run([program, "--build", building / "build", "--parallel", str(jobs)], log, what)
    stage = building / "stage"
    _run([program, "--install", building / "build"], log, what, DESTDIR=str(stage))
    aside = stage / prefix.relative_to("/")
    built = header_version(aside / "include")
    if built != version:
        raise CannotBeHad(f"{what}: Debian's {debian} holds HDF5 {built}")
    digest = subprocess.run(["sha256sum", source], capture_output=True, text=True, check=True).stdout.split()[0]
    origin = f"Debian's source package hdf5 {debian} of {suite}, {source.name} SHA-256 {digest}, without its patches"
    arm = _finish(aside, prefix, version, mpi, options, origin)
    shutil.rmtree(building)
    return arm


def provide(
    folder: Path,
    series: Sequence[str],
    mpis: Sequence[str],
    jobs: int,
    tell: Callable[[str], None],
    more: Sequence[str] = (),
) -> Found:
    """Every arm that was asked for and can be had; those that are there already are kept. One build at a time, for which
    nobody waits who has what he wants."""
    wanted = list(itertools.product(series, mpis))
    left_out: dict[str, str] = {}
    if not all(_is_there(folder, *one) for one in wanted):
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / "lock"):
            _forget_upgraded(folder)
            archive = Archive(folder / "apt")
            for one, mpi in wanted:
                if _is_there(folder, one, mpi):
                    continue
                name = f"hdf5-{one}-{mpi}"
                try:
                    arm = _make(folder, archive, one, mpi, jobs, tell, more)
                except CannotBeHad as reason:
                    left_out[name] = str(reason)
                    tell(f"{name}: left out: {reason}")
                else:
                    tell(f"{arm.name}: made in {arm.prefix}")
    return Found(arms=tuple(installed(folder)), left_out=left_out)


def _make(
    folder: Path, archive: Archive, one: str, mpi: str, jobs: int, tell: Callable[[str], None], more: Sequence[str]
) -> DebianArm:
    if one == PACKAGES:
        return from_packages(folder, mpi)
    tell(f"hdf5-{one}-{mpi}: building, which takes minutes; the log: {folder}/hdf5-{one}*-{mpi}.log")
    return from_source(folder, archive, one, mpi, jobs, more)


def _is_there(folder: Path, series: str, mpi: str) -> bool:
    return any(
        arm.mpi == mpi and _holds(arm) and (_of_packages(arm) if series == PACKAGES else fits(arm.hdf5, series))
        for arm in installed(folder)
    )


def _of_packages(arm: DebianArm) -> bool:
    return arm.source.startswith(FROM_PACKAGE)


def _holds(arm: DebianArm) -> bool:
    """Links to packages that were upgraded or removed since are no arm any more."""
    try:
        return not _of_packages(arm) or header_version(arm.prefix / "include") == arm.hdf5
    except CannotBeHad:
        return False


def _forget_upgraded(folder: Path) -> None:
    for arm in installed(folder):
        if not _holds(arm):
            shutil.rmtree(arm.prefix)


# --- the command ------------------------------------------------------------------------------------------------------


def _series(text: str) -> str:
    if text != PACKAGES and not re.fullmatch(r"\d+(\.\d+)*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a version, as 1.14 or 1.14.5, nor {PACKAGES}")
    return text


def _jobs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes, 1 or more")
    return int(text)


def _lines(found: Found) -> Iterator[str]:
    for arm in found.arms:
        yield f"{arm.name}  HDF5 {arm.hdf5}  {arm.mpi}  {arm.prefix}"
        yield f"    launcher {arm.launcher}  compiler {arm.compiler}"
        yield f"    flags {' '.join(arm.flags) or 'of the package'}"
        yield f"    {arm.source}"
    for name, reason in found.left_out.items():
        yield f"{name}  left out: {reason}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its text is in ``scripts/hdf5-arms``."""
    parser = argparse.ArgumentParser(prog="scripts/hdf5-arms", allow_abbrev=False)
    parser.add_argument("--folder", type=Path, required=True, help=argparse.SUPPRESS)
    # For a folder of its own: nobody who finds an arm by its name looks for an option that it was built with.
    parser.add_argument("--configure", action="append", default=[], metavar="OPTION", help=argparse.SUPPRESS)
    parser.add_argument("--hdf5", action="append", type=_series, metavar="VERSION")
    parser.add_argument("--mpi", action="append", choices=MPIS)
    parser.add_argument("--jobs", type=_jobs, default=min(2, len(os.sched_getaffinity(0))))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    folder = chosen.folder.resolve()

    def tell(text: str) -> None:
        print(f"iogauge: {text}", file=sys.stderr)

    try:
        if chosen.list:
            found = Found(arms=tuple(installed(folder)), left_out={})
        else:
            found = provide(folder, chosen.hdf5 or SERIES, chosen.mpi or MPIS, chosen.jobs, tell, chosen.configure)
    except InputError as error:
        print(f"iogauge: error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"iogauge: error: {error.filename or folder}: {error.strerror or error}", file=sys.stderr)
        return 2
    if chosen.json:
        print(found.model_dump_json(indent=1))
    else:
        print("\n".join(_lines(found)) or f"no arms in {folder}; scripts/hdf5-arms makes them")
    return 1 if found.left_out else 0


if __name__ == "__main__":
    sys.exit(main())
