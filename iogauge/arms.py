"""The arms of a comparison: one HDF5 and one MPI each, with the same kernels built for it, and the proof that it is so.

An arm comes from ``scripts/hdf5-arms``, from a view of a Spack stack, from a prefix, or is an environment of a site's
configuration. Nothing that a file says of it is believed before its kernels have run: which HDF5 they load is looked up
in the process.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from iogauge import nightly
from iogauge.adapters.kernel import read_records
from iogauge.commands import run_whole
from iogauge.errors import InputError, Refusal
from iogauge.fingerprint.counted import COUNTER
from iogauge.fingerprint.layouts import PROGRAM as LAYOUT_PROGRAM
from iogauge.hdf5_arms import ARMS, CannotBeHad, DebianArm, header_version, installed
from iogauge.site_check import LAUNCHER_PROGRAMS
from iogauge.sites import read_environ
from iogauge.spack import ARMS_FILE, ENVIRONMENTS, Choice, read_arm, read_environment

#: What a build makes.
KERNELS = ("blocks", "metadata", "particles", "segments", "tiles")

#: Below the folder of the arms: kernels by the hash of all that they were made from.
BUILT = "kernels"
BUILT_FILE = "kernels.json"

#: The same for every arm. netCDF would bring an HDF5 of its own.
BUILD_OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_TESTING=OFF",
    "-DIOGAUGE_NETCDF=OFF",
    "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
)

#: A library whose name begins so is of this MPI.
_MPI_LIBRARIES = {"libmpich.so": "mpich", "libmpi.so.12": "mpich", "libmpi.so.20": "openmpi", "libmpi.so.40": "openmpi"}
#: So begins what an MPI says that it is.
_MPI_VOICES = {"Open MPI": "openmpi", "MPICH": "mpich", "MVAPICH": "mpich", "Intel(R) MPI": "mpich"}

#: Long enough for a kernel to say what it is; a launcher that hangs must not hold everything.
PROOF_SECONDS = 120

Text = Annotated[str, Field(min_length=1)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Arm(_Record):
    """``hdf5`` and ``mpi`` (``openmpi`` or ``mpich``, by its binary interface) are what it is said to be; ``None``: not said.

    ``launcher`` is a command, empty where processes are started without one. ``prefix`` is HDF5's; ``programs`` is where
    kernels are that were built for it elsewhere (a Spack view's ``bin``); ``variables``, and ``load``, lines of the shell that
    load its modules, are its environment; ``cflags`` are added where its kernels are compiled; ``darshan`` is the runtime to
    preload, empty without one; ``flags`` are those that HDF5 was configured with.
    """

    name: Text
    kind: Literal["hdf5-arms", "spack", "prefix", "environ"]
    hdf5: Text | None
    mpi: Text | None
    prefix: Path | None
    compiler: Text | None
    launcher: str
    programs: Path | None = None
    load: tuple[Text, ...] = ()
    variables: dict[str, str] = {}
    cflags: tuple[str, ...] = ()
    darshan: str = ""
    flags: tuple[str, ...] = ()

    def command(self, *words: str | Path) -> list[str]:
        """A command line as it runs in this arm: with its modules loaded."""
        line = [str(word) for word in words]
        if not self.load:
            return line
        return ["bash", "-lc", f"{' && '.join(self.load)} && exec {shlex.join(line)}"]

    def environment(self) -> dict[str, str]:
        """The variables of its programs."""
        # Root may start Open MPI, and ranks may share cores, while it is only looked at. Other MPI libraries ignore these.
        open_mpi = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
        if os.geteuid() == 0:
            open_mpi |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return {**os.environ, **open_mpi, **self.variables}


class Kernels(_Record):
    """Kernels of an arm: where they are, and what they were compiled with; ``None``: built elsewhere, not known."""

    folder: Path
    flags: tuple[str, ...] | None


class Proof(_Record):
    """What an arm's kernels really are, as they said while they ran."""

    arm: Arm
    kernels: Kernels
    hdf5: Text
    library: Path
    library_sha256: Text
    mpi: Text
    sources: Text
    compiler: Text


# --- where arms come from ---------------------------------------------------------------------------------------------


def of_debian(made: DebianArm) -> Arm:
    """One of ``scripts/hdf5-arms``."""
    return Arm(
        name=made.name,
        kind="hdf5-arms",
        hdf5=made.hdf5,
        mpi=made.mpi,
        prefix=made.prefix,
        compiler=str(made.compiler),
        launcher=str(made.launcher),
        darshan=_darshan_of(made.prefix),
        flags=made.flags,
    )


def _darshan_of(prefix: Path) -> str:
    """A runtime that was installed beside the HDF5 that it was built for."""
    library = prefix / "lib" / "libdarshan.so"
    return str(library) if library.is_file() else ""


def of_spack(site: str, choice: Choice) -> Arm:
    """A view of an installed stack: its kernels, and the launcher of its MPI. Raises :class:`InputError`."""
    found = read_arm(nightly.home(), site, choice)
    if found.hdf5 is None:
        raise InputError(f"{choice}: no HDF5 is in its view {found.view}; an arm of a stack with HDF5 is expected")
    missing = [name for name in KERNELS if found.program(name) is None]
    if missing:
        raise InputError(
            f"{choice}: not in {found.view}/bin: {', '.join(missing)}; the stack has to hold iogauge's kernels"
        )
    mpi = found.mpi.partition("@")[0]
    prefixes = {spec.name: spec.prefix for spec in found.specs}
    launchers = [path for path in (found.view, prefixes.get(mpi)) if path and (path / "bin" / "mpirun").is_file()]
    return Arm(
        name=str(choice),
        kind="spack",
        hdf5=found.hdf5,
        mpi=mpi if mpi in _MPI_VOICES.values() else None,
        prefix=prefixes.get("hdf5"),
        compiler=None,
        launcher=str(launchers[0] / "bin" / "mpirun") if launchers else "mpirun",
        programs=found.view / "bin",
        darshan=str(found.darshan or ""),
    )


def of_prefix(prefix: Path) -> Arm:
    """A parallel HDF5 that somebody installed, with the compiler wrapper and launcher of its MPI: those in its own ``bin``,
    or those in ``PATH``. Raises :class:`InputError`."""
    prefix = prefix.absolute()
    try:
        hdf5 = header_version(prefix / "include")
    except CannotBeHad as reason:
        raise InputError(f"no prefix of HDF5: {reason}", file=prefix) from None
    configured = (prefix / "include" / "H5pubconf.h").read_text(encoding="utf-8", errors="replace")
    if not re.search(r"^#define H5_HAVE_PARALLEL\b", configured, re.MULTILINE):
        raise InputError(f"HDF5 {hdf5} there is not a parallel one; one built with MPI is expected", file=prefix)
    library = _library_of(prefix)
    mpi = _mpi_of(library)
    programs = {}
    for name in ("mpicc", "mpirun"):
        own = prefix / "bin" / name
        candidates = [str(own) if own.is_file() else None, mpi and shutil.which(f"{name}.{mpi}"), shutil.which(name)]
        programs[name] = next((path for path in candidates if path), None)
    if programs["mpicc"] is None or programs["mpirun"] is None:
        missing = ", ".join(name for name, path in programs.items() if path is None)
        raise InputError(
            f"neither there nor in PATH: {missing} of the {mpi or 'MPI'} that {library} needs", file=prefix
        )
    return Arm(
        name=str(prefix),
        kind="prefix",
        hdf5=hdf5,
        mpi=mpi,
        prefix=prefix,
        compiler=programs["mpicc"],
        launcher=programs["mpirun"],
        darshan=_darshan_of(prefix),
    )


def _library_of(prefix: Path) -> Path:
    for folder in ("lib", "lib64"):
        if (prefix / folder / "libhdf5.so").exists():
            return (prefix / folder / "libhdf5.so").resolve()
    raise InputError("neither lib nor lib64 has libhdf5.so; a shared HDF5 is expected", file=prefix)


def _mpi_of(library: Path) -> str | None:
    """The MPI that a library was linked with."""
    said = subprocess.run(["ldd", library], capture_output=True, text=True, check=False).stdout
    names = re.findall(r"^\s*(\S+) =>", said, re.MULTILINE)
    return next((mpi for name in names for start, mpi in _MPI_LIBRARIES.items() if name.startswith(start)), None)


class _Used(NamedTuple):
    """An environment of a site's configuration, the first partition that uses it, and the system's kind of modules."""

    environ: dict[str, Any]
    partition: dict[str, Any]
    modules_system: str


def _environs(site: str) -> dict[str, _Used]:
    configuration = nightly.read_configuration(site)
    systems = configuration["systems"]
    names = {system["name"] for system in systems}
    found = {}
    for environ in configuration.get("environments", ()):
        targets = environ.get("target_systems", ["*"])
        if "*" not in targets and not names & {target.partition(":")[0] for target in targets}:
            continue
        users = [
            _Used(environ, partition, system.get("modules_system", "nomod"))
            for system in systems
            for partition in system["partitions"]
            if environ["name"] in partition.get("environs", ())
        ]
        if users:
            found[environ["name"]] = users[0]
    return found


def _load(modules_system: str, level: Mapping[str, Any]) -> list[str]:
    """The lines that ReFrame writes into a job for a partition or an environment. Raises :class:`InputError`."""
    lines = list(level.get("prepare_cmds", ()))
    modules = level.get("modules", ())
    if modules:
        from reframe.core.exceptions import ConfigError  # half a second to load, and few environments have modules
        from reframe.core.modules import ModulesSystem

        try:
            backend = ModulesSystem.create(modules_system, validate=False)
            for module in modules:
                lines += backend.emit_load_commands(**({"name": module} if isinstance(module, str) else module))
        except (ConfigError, TypeError) as problem:
            raise InputError(f"modules of {level['name']}: {problem}", key="modules") from problem
    return lines


def of_environ(site: str, name: str) -> Arm:
    """An environment of a site's configuration; where it chooses a Spack arm, that one. Raises :class:`InputError`."""
    environ, partition, system = _environs(site)[name]
    file = nightly.checkout() / "site_configs" / f"{site}.py"
    extras = read_environ(name, environ.get("extras", {}), file=file)
    # As in a job of ReFrame's: the partition's first.
    load = tuple(line for level in (partition, environ) for line in _load(system, level))
    variables = {key: str(value) for level in (partition, environ) for key, value in level.get("env_vars", ())}
    if extras.spack is not None:
        arm = of_spack(site, extras.spack)
        return arm.model_copy(update={"name": name, "load": load, "variables": variables})
    return Arm(
        name=name,
        kind="environ",
        hdf5=None,
        mpi=None,
        prefix=None,
        compiler=environ.get("cc", "cc"),
        launcher=" ".join(LAUNCHER_PROGRAMS.get(partition["launcher"], (partition["launcher"],))),
        programs=extras.kernels,
        load=load,
        variables=variables,
        cflags=tuple(environ.get("cflags", ())),
        darshan=extras.darshan,
    )


def known(site: str) -> Iterator[str]:
    """The names of the arms that are here, without prefixes."""
    yield from (arm.name for arm in installed(nightly.home() / ARMS))
    yield from _environs(site)
    for file in sorted((nightly.home() / ENVIRONMENTS / site).glob(f"*/{ARMS_FILE}")):
        yield from (
            f"{file.parent.name}/{arm}" for arm in read_environment(nightly.home(), site, file.parent.name).arms
        )


def resolve(name: str, site: str = "local") -> Arm:
    """The arm of that name: one of ``scripts/hdf5-arms``, an environment of the site, ``STACK/ARM`` of Spack, or a folder.

    Raises :class:`InputError`, which lists the arms that there are.
    """
    for made in installed(nightly.home() / ARMS):
        if made.name == name:
            return of_debian(made)
    if name in _environs(site):
        return of_environ(site, name)
    if Path(name).is_dir():
        return of_prefix(Path(name))
    stack, slash, arm = name.partition("/")
    if slash and (nightly.home() / ENVIRONMENTS / site / stack / ARMS_FILE).exists():
        try:
            return of_spack(site, Choice(stack=stack, arm=arm))
        except ValidationError:
            pass  # no name of an arm: told below
    raise InputError(
        f"no arm {name!r}; there are: {', '.join(known(site))}; or the prefix of an HDF5. scripts/hdf5-arms makes some",
        key="ARM",
    )


def check_modules(arm: Arm) -> None:
    """Raises :class:`Refusal` where the modules of an arm cannot be loaded here, with what was said of them."""
    if not arm.load:
        return
    done = run_whole(arm.command("true"), arm.environment())
    if done.returncode:
        said, _, _ = done.stderr.strip().partition("\n\n")  # advice follows
        why = " ".join(said.split()) or f"exit code {done.returncode}"
        raise Refusal(f"arm {arm.name}: its modules cannot be loaded: {' && '.join(arm.load)}: {why}")


# --- kernels of an arm ------------------------------------------------------------------------------------------------


def build(arm: Arm) -> Kernels:
    """The project's kernels for an arm, and what takes their fingerprint, built out of tree and kept by the hash of their
    sources and of the arm; or those that the arm brings along. Raises :class:`Refusal` with the compiler's last words."""
    if arm.programs is not None:
        return Kernels(folder=arm.programs, flags=flags_of(arm.programs))
    sources = nightly.checkout() / "kernels"
    parent = (nightly.home() / ARMS / BUILT).resolve()
    parent.mkdir(parents=True, exist_ok=True)
    folder = parent / _digest(arm, sources)[:16]
    with FileLock(parent / f"{folder.name}.lock"):
        if not (folder / BUILT_FILE).exists():
            _build_aside(arm, sources, folder)
    return Kernels(folder=folder, flags=flags_of(folder))


def _digest(arm: Arm, sources: Path) -> str:
    """Of all that a build depends on: a package that is upgraded under its prefix is another one."""
    digest = hashlib.sha256()
    files = [file for pattern in ("CMakeLists.txt", "*.cmake", "*.[ch]") for file in sources.rglob(pattern)]
    for file in sorted(file for file in files if "tests" not in file.relative_to(sources).parts):
        digest.update(f"{file.relative_to(sources)}\n".encode() + file.read_bytes())
    library = _library_of(arm.prefix).stat() if arm.prefix else None
    parts = (arm.model_dump_json(), library and (library.st_size, library.st_mtime_ns), BUILD_OPTIONS)
    digest.update(repr(parts).encode())
    return digest.hexdigest()


def _build_aside(arm: Arm, sources: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".building-", dir=folder.parent) as name:
        build, made = Path(name) / "build", Path(name) / "made"
        configure: list[str | Path] = [
            "cmake",
            "-S",
            sources,
            "-B",
            build,
            f"-DCMAKE_C_COMPILER={arm.compiler}",
            *BUILD_OPTIONS,
        ]
        if arm.prefix is not None:
            configure.append(f"-DHDF5_ROOT={arm.prefix}")
        if arm.cflags:
            configure.append(f"-DCMAKE_C_FLAGS={' '.join(arm.cflags)}")
        for command in (configure, ["cmake", "--build", build, "--parallel", "2"]):
            done = run_whole(arm.command(*command), arm.environment())
            if done.returncode:
                said = [line for line in done.stderr.splitlines() if line.strip()][-3:]
                raise Refusal(f"arm {arm.name}: its kernels could not be built: {' / '.join(said)}")
        made.mkdir()
        for program in (*KERNELS, COUNTER, LAYOUT_PROGRAM):
            shutil.copy2(build / program, made)
        flags = compiler_flags(json.loads((build / "compile_commands.json").read_bytes()))
        (made / BUILT_FILE).write_text(json.dumps({"arm": arm.name, "flags": flags}) + "\n", encoding="utf-8")
        made.rename(folder)


def flags_of(folder: Path) -> tuple[str, ...] | None:
    """What the kernels in ``folder``, a build's or one of :func:`build`, were compiled with; ``None``: not known."""
    if (folder / BUILT_FILE).exists():
        return tuple(json.loads((folder / BUILT_FILE).read_bytes())["flags"])
    commands = folder / "compile_commands.json"
    return tuple(compiler_flags(json.loads(commands.read_bytes()))) if commands.exists() else None


def compiler_flags(commands: list[dict[str, str]]) -> list[str]:
    """What changes the code of the kernels, of CMake's ``compile_commands.json``: no paths, and no definitions that HDF5's
    compiler wrapper hands on (``_FORTIFY_SOURCE`` and the like are, ``IOGAUGE_*`` say what is built in)."""
    found: dict[str, None] = {}
    for entry in commands:
        if Path(entry["file"]).stem not in KERNELS:
            continue
        for word in shlex.split(entry["command"]):
            if re.match(r"-(O|f|m|std=|g|DIOGAUGE_HAVE|D_FORTIFY_SOURCE)", word):
                found[word] = None
    return sorted(found)


# --- the proof --------------------------------------------------------------------------------------------------------


def prove(arm: Arm) -> Proof:
    """Build the arm's kernels where there are none, run one on two ranks, and see what it is. Raises :class:`Refusal`."""
    kernels = build(arm)
    with tempfile.TemporaryDirectory(prefix="iogauge-arm-") as name:
        launch = [*shlex.split(arm.launcher), "-n", "2"] if arm.launcher else []
        return look(arm, kernels, launch, Path(name))


def look(arm: Arm, kernels: Kernels, launch: Sequence[str], folder: Path) -> Proof:
    """Run one of an arm's kernels, started by ``launch``, in the empty ``folder``. Raises :class:`Refusal`."""
    return _judged(arm, kernels, folder, _run(arm, kernels, launch, folder))


def _run(arm: Arm, kernels: Kernels, launch: Sequence[str], folder: Path) -> Any:
    """One small run, in which the dynamic linker says what it loads; returns the record of its write."""
    (folder / "data").mkdir()
    records = folder / "records.jsonl"
    options: list[str | Path] = [
        "--dir",
        folder / "data",
        "--particles",
        "64",
        "--repeats",
        "1",
        "--warmup",
        "0",
        "--json",
        records,
    ]
    linker = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(folder / "linker"), "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    try:
        done = subprocess.run(
            arm.command(*launch, kernels.folder / "particles", *options),
            env={**arm.environment(), **linker},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROOF_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise Refusal(f"arm {arm.name}: its launcher {arm.launcher} is not there") from None
    except subprocess.TimeoutExpired:
        raise Refusal(f"arm {arm.name}: {arm.launcher} did not end in {PROOF_SECONDS} s; is it of its MPI?") from None
    if done.returncode:
        said = re.findall(r"^particles: error: (.*)$", done.stderr, re.MULTILINE)
        if any("the launcher started" in line for line in said):
            raise Refusal(f"arm {arm.name}: its launcher {arm.launcher} does not fit its MPI: {said[0]}")
        last = [line.strip() for line in done.stderr.splitlines() if line.strip(" -")][-2:]
        raise Refusal(f"arm {arm.name}: its kernels do not run with {arm.launcher}: {' / '.join(said[:1] or last)}")
    try:
        return read_records(records)[0]
    except Refusal as refusal:
        raise Refusal(f"arm {arm.name}: {refusal}") from None


def _loaded(folder: Path, pid: int) -> list[Path]:
    """The HDF5 libraries that a process loaded, as its dynamic linker told."""
    said = (folder / f"linker.{pid}").read_text(encoding="utf-8", errors="replace")
    found = re.findall(r"calling init: (/\S*/libhdf5(?:_(?:openmpi|mpich|serial))?\.so\S*)", said)
    return list(dict.fromkeys(Path(path).resolve() for path in found))


def _judged(arm: Arm, kernels: Kernels, folder: Path, record: Any) -> Proof:
    software = record.software
    try:
        libraries = _loaded(folder, record.placement[0].pid)
    except OSError:
        raise Refusal(f"arm {arm.name}: which HDF5 it loads cannot be seen: the dynamic linker said nothing") from None
    if len(libraries) != 1:
        what = ", ".join(map(str, libraries)) or "none; a shared library is expected"
        raise Refusal(f"arm {arm.name}: its kernels load {len(libraries)} HDF5 libraries: {what}")
    library = libraries[0]
    if arm.hdf5 is not None and software.hdf5 != arm.hdf5:
        raise Refusal(f"arm {arm.name} says HDF5 {arm.hdf5}; its kernels loaded {software.hdf5} from {library}")
    if arm.prefix is not None and library != _library_of(arm.prefix):
        raise Refusal(f"arm {arm.name} is in {arm.prefix}; its kernels loaded HDF5 {software.hdf5} from {library}")
    mpi = next((name for start, name in _MPI_VOICES.items() if software.mpi.startswith(start)), None)
    if arm.mpi is not None and mpi != arm.mpi:
        raise Refusal(f"arm {arm.name} says {arm.mpi}; its kernels run with {software.mpi}")
    return Proof(
        arm=arm,
        kernels=kernels,
        hdf5=software.hdf5,
        library=library,
        library_sha256=hashlib.sha256(library.read_bytes()).hexdigest(),
        mpi=software.mpi,
        sources=software.kernels,
        compiler=software.compiler,
    )


def check_comparable(one: Proof, other: Proof) -> None:
    """What two arms may differ in is HDF5 and MPI. Raises :class:`Refusal` for anything else, and for no difference."""
    names = f"arms {one.arm.name} and {other.arm.name}"
    if (one.library_sha256, one.mpi) == (other.library_sha256, other.mpi):
        raise Refusal(f"{names} are the same build: HDF5 {one.hdf5}, {one.library}, with {one.mpi}")
    if one.sources != other.sources:
        raise Refusal(f"{names} differ in the kernels' sources: {one.sources} and {other.sources}, by their hashes")
    if one.compiler != other.compiler:
        raise Refusal(f"{names} differ in the compiler: {one.compiler} and {other.compiler}")
    if one.kernels.flags is not None and other.kernels.flags is not None:
        own, others = set(one.kernels.flags), set(other.kernels.flags)
        if own != others:
            only = [f"{' '.join(sorted(a - b)) or 'no other'}" for a, b in ((own, others), (others, own))]
            raise Refusal(f"{names} differ in the compiler's flags: {only[0]} and {only[1]}")
