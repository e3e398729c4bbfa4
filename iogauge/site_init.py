"""A site's first Spack scope: what ``spack external find`` sees, its known errors mended, and what a person must look at.

``spack external find`` looks at programs. So it gives two MPI libraries of a distribution one prefix, misses one of them,
offers an HDF5 without the MPI that it was built with, takes libraries without headers, and programs of a version manager or
of a home folder. A draft is made of what it found, and of what the MPI compiler wrappers say of themselves, without any of
that.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from iogauge.commands import Unreadable, run_briefly
from iogauge.errors import InputError
from iogauge.spack_setup import BuildError, Setup, clone, pins, run_for_text, spack_root, spack_variables
from iogauge.validation import read_yaml

#: What is asked for: the MPI libraries, and what builds of the stacks need.
MPI_PACKAGES = ("openmpi", "mpich", "mvapich", "cray-mpich", "intel-oneapi-mpi", "hpcx-mpi")
TOOLS = ("autoconf", "automake", "libtool", "m4", "pkgconf", "perl", "gmake", "cmake", "zlib", "openssl", "curl")
PACKAGES = ("gcc", *MPI_PACKAGES, *TOOLS, "hdf5")

#: Libraries that are of use with their headers only: the header, and Debian's package with it.
HEADERS = {
    "zlib": ("zlib.h", "zlib1g-dev"),
    "openssl": ("openssl/ssl.h", "libssl-dev"),
    "curl": ("curl/curl.h", "libcurl4-openssl-dev"),
}

#: Spack may build another version beside: HDF5 2.x needs a newer CMake than many systems have.
STAY_BUILDABLE = ("cmake",)

#: Programs of an MPI library that recipes and jobs call.
MPI_PROGRAMS = (
    "mpicc",
    "mpicxx",
    "mpic++",
    "mpif77",
    "mpif90",
    "mpifort",
    "mpirun",
    "mpiexec",
    "ompi_info",
    "mpichversion",
)

#: What a compiler wrapper says of itself, by package; group 1 is the version.
_WRAPPERS = {
    "openmpi": (("--showme:version",), re.compile(r"\bOpen MPI (\d[\w.]*)")),
    "mpich": (("-v",), re.compile(r"\bfor MPICH version (\d[\w.]*)")),
}

NAME = re.compile(r"[a-z][a-z0-9_-]*")


@dataclass(frozen=True)
class Mpi:
    """An MPI library as its compiler wrapper tells of itself; ``include`` and ``lib`` are its folders, where it names some.
    ``plain``: what is called ``mpicc`` beside the wrapper is the same library's."""

    package: str
    version: str
    wrapper: Path
    plain: bool
    include: Path | None = None
    lib: Path | None = None

    @property
    def spec(self) -> str:
        """``NAME@VERSION``."""
        return f"{self.package}@{self.version}"

    @property
    def prefix(self) -> Path:
        """The folder whose ``bin`` the wrapper is in."""
        return self.wrapper.parent.parent

    def programs(self) -> dict[str, Path]:
        """Plain names to paths: with the wrapper's own ending (``.mpich``), without where there is none."""
        ending = self.wrapper.name.removeprefix("mpicc")
        found = {name: self.wrapper.with_name(name + ending) for name in MPI_PROGRAMS}
        # ompi_info and mpichversion have no endings.
        own = {"openmpi": "ompi_info", "mpich": "mpichversion"}[self.package]
        found[own] = self.wrapper.with_name(own)
        return {name: path for name, path in found.items() if path.exists()}


@dataclass
class Draft:
    """``packages`` is the section of that name. ``shims`` are folders of links by package: link to target. ``mended`` and
    ``look`` are sentences: what was not as ``spack external find`` has it, and what a person must look at."""

    packages: dict[str, Any] = field(default_factory=dict)
    shims: dict[str, dict[str, Path]] = field(default_factory=dict)
    mended: list[str] = field(default_factory=list)
    look: list[str] = field(default_factory=list)


def find_mpis(path: str) -> list[Mpi]:
    """The MPI libraries whose compiler wrappers are in the folders of ``path``; first the one of the ``mpicc`` found first."""
    folders = list(dict.fromkeys(Path(folder) for folder in path.split(os.pathsep) if folder))
    plain = [(folder, _identity(folder / "mpicc")) for folder in folders]
    found: dict[tuple[str, str], Mpi] = {}
    for name in (
        "mpicc.openmpi",
        "mpicc.mpich",
        "mpicc",
    ):  # what mpicc leads to may be changed, as by Debian's alternatives
        for folder, here in plain:
            wrapper = folder / name
            identity = here if name == "mpicc" else _identity(wrapper)
            if identity is not None:
                found.setdefault(identity, Mpi(*identity, wrapper, here == identity, *_folders(wrapper)))
    default = next((identity for _, identity in plain if identity is not None), None)
    return [found[identity] for identity in sorted(found, key=lambda one: one != default)]


def _identity(wrapper: Path) -> tuple[str, str] | None:
    """Package and version, if it is an MPI compiler wrapper that is known."""
    if not (wrapper.is_file() and os.access(wrapper, os.X_OK)):
        return None
    for package, (question, answer) in _WRAPPERS.items():
        if match := answer.search(_said_by(wrapper, *question)):
            return package, match[1]
    return None


def _folders(wrapper: Path) -> tuple[Path | None, Path | None]:
    """Of headers and of libraries, as its command line names them."""
    words = _said_by(wrapper, "-show").split()
    named = ([word[2:] for word in words if word[:2] == option and len(word) > 2] for option in ("-I", "-L"))
    include, lib = (Path(folders[0]) if folders else None for folders in named)
    return include, lib


def _said_by(*command: str | Path) -> str:
    try:
        _, out, err = run_briefly([str(word) for word in command])
    except (Unreadable, OSError):
        return ""
    return out + err


def draft(found: Mapping[str, Any], mpis: Iterable[Mpi], family: str, shims: Path) -> Draft:
    """From ``packages`` as Spack found them: the draft for nodes of the processor ``family``.

    ``mpis`` are the wrappers, the default one first; ``shims`` the folder in which links will be made.
    """
    made = Draft()
    wrappers = list(mpis)
    found_mpis = {name: _externals(found, name) for name in MPI_PACKAGES}
    chosen = {name: list(_kept(name, _externals(found, name), made)) for name in ("gcc", *TOOLS)}
    chosen |= {name: list(_mpi_externals(name, found_mpis, wrappers, shims, made)) for name in MPI_PACKAGES}
    default = wrappers[0].package if wrappers else next((name for name in MPI_PACKAGES if chosen[name]), None)
    made.packages = _general(chosen, default, family, made)
    for name, externals in chosen.items():
        if externals:
            buildable = {} if name in STAY_BUILDABLE else {"buildable": False}
            made.packages[name] = {**buildable, "externals": externals}
    for external in _externals(found, "hdf5"):
        made.mended.append(
            f"{_name(external)} in {external['prefix']} is left out, and hdf5 is not marked as not buildable: Spack builds "
            f"the versions that the stacks pin, and would take this one, of unknown MPI, where none is pinned"
        )
    return made


def _general(chosen: Mapping[str, Any], default: str | None, family: str, made: Draft) -> dict[str, Any]:
    """The entries that are no package: target, providers, and what is required of compilers and MPI."""
    providers = {"mpi": [default]} if default else {}
    providers |= {virtual: [name] for virtual, name in (("zlib-api", "zlib"), ("pkgconfig", "pkgconf")) if chosen[name]}
    packages: dict[str, Any] = {"all": {"require": [f"target={family}"], "providers": providers}}
    made.mended.append(
        f"target={family} is required: Spack would take this machine's own processor, which nodes may not have"
    )
    made.look.append(
        f"target: {family} runs everywhere; a newer level that all nodes have is faster (spack arch --known-targets)"
    )
    if chosen["gcc"]:
        packages |= {language: {"require": ["gcc"]} for language in ("c", "cxx", "fortran")}
        languages = " ".join(str(external["spec"]) for external in chosen["gcc"])
        if "fortran" not in languages:
            made.look.append("gcc has no Fortran compiler here: benchio and HDF5's Fortran interface need gfortran")
    else:
        made.look.append("no gcc was found: load its module and start again, or name the site's compiler")
    if default:
        packages["mpi"] = {"buildable": False, "require": [default]}
        made.mended.append(f"{default} is required as MPI: the entry in providers alone is only a preference")
        made.look.append(f"MPI: is {default} what jobs on the compute nodes are to use, with the site's network?")
    else:
        made.look.append(
            "no MPI was found: load its module and start again, or name it with its prefix; Spack would build one"
        )
    return packages


def _externals(found: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    entry = found.get(name)
    listed = entry.get("externals") if isinstance(entry, Mapping) else None
    return [dict(one) for one in listed or () if isinstance(one, Mapping) and one.get("spec") and one.get("prefix")]


def _name(external: Mapping[str, Any]) -> str:
    """``NAME@VERSION`` without the variants."""
    found = re.match(r"[a-z0-9-]+@=?[\w.-]*\w", str(external["spec"]))
    return found[0] if found else str(external["spec"])


def _kept(name: str, externals: Iterable[dict[str, Any]], made: Draft) -> Iterator[dict[str, Any]]:
    """Compilers and tools that are what they seem, each version once."""
    seen = set()
    for external in externals:
        prefix, version = Path(external["prefix"]), _name(external)
        why = ""
        if prefix.name == "shims":
            why = "a version manager's links, which lead elsewhere for each caller"
        elif prefix.is_relative_to(Path.home()):
            why = "in a home folder"
        elif name in HEADERS and not (prefix / "include" / HEADERS[name][0]).exists():
            header, package = HEADERS[name]
            why = f"without its header {header} (Debian: {package}), so that Spack builds its own"
        elif version in seen:
            why = "the same version as another one"
        if why:
            made.mended.append(f"{version} in {prefix} is left out: {why}")
            continue
        seen.add(version)
        yield {
            key: value for key, value in external.items() if key in ("spec", "prefix", "modules", "extra_attributes")
        }


def _mpi_externals(
    name: str, found: Mapping[str, list[dict[str, Any]]], wrappers: list[Mpi], shims: Path, made: Draft
) -> Iterator[dict[str, Any]]:
    """The MPI libraries of one package: what Spack found, with the prefix that is its own, and what it missed."""
    mine = [mpi for mpi in wrappers if mpi.package == name]
    known = {_name(external) for external in found[name]}
    shared = [str(mpi.prefix) for mpi in wrappers]
    for mpi in mine:
        external: dict[str, Any] = {"spec": mpi.spec, "prefix": str(mpi.prefix)}
        if mpi.spec not in known:
            made.mended.append(f"{mpi.spec} was missed by Spack; its wrapper is {mpi.wrapper}")
        if not mpi.plain or shared.count(str(mpi.prefix)) > 1:
            external["prefix"] = str(shims / name)
            made.shims[name] = _links(mpi)
            made.mended.append(
                f"{mpi.spec} has a prefix of its own, a folder of links ({shims / name}): in {mpi.prefix} there is more than "
                f"one MPI, and mpicc is one of them only"
            )
            made.look.append(f"links: look at {shims / name}; compute nodes have to see it, and what it leads to")
        yield external
    for external in found[name]:
        if _name(external) in {mpi.spec for mpi in mine}:
            continue
        if name in _WRAPPERS:
            wrapper = Path(external["prefix"]) / "bin" / "mpicc"
            made.mended.append(
                f"{_name(external)} in {external['prefix']} is left out: {wrapper} is not its compiler wrapper"
            )
        else:
            yield {"spec": _name(external), "prefix": external["prefix"]}


def _links(mpi: Mpi) -> dict[str, Path]:
    folders = {name: folder for name, folder in (("include", mpi.include), ("lib", mpi.lib)) if folder is not None}
    return {**{f"bin/{name}": path for name, path in mpi.programs().items()}, **folders}


# --- the files --------------------------------------------------------------------------------------------------------


def check_name(name: str) -> None:
    """Raises :class:`InputError` for what is no name of a site."""
    if NAME.fullmatch(name) is None:
        raise InputError(
            "a name of a site is expected: small letters, digits, - and _, beginning with a letter", key=repr(name)
        )
    if name in ("template", "common"):
        raise InputError("is the name of a file that all sites share; choose another one", key=repr(name))


def check_free(checkout: Path, name: str) -> None:
    """Raises :class:`InputError` when the site has a scope or environments already."""
    for path in (checkout / "spack_env" / "sites" / name, checkout / "spack_env" / "envs" / name):
        if path.exists():
            raise InputError("is there already, and nothing is overwritten; remove it first, or edit it", file=path)


def text_of(name: str, made: Draft) -> str:
    """``packages.yaml`` with its sentences as comments."""
    head = [
        f"The site {name}: its compilers, MPI and build tools, drafted by `iogauge site init {name}` from Spack's findings."
    ]
    head += ["What was mended:", *(f"- {sentence}" for sentence in made.mended)]
    head += ["To be looked at:", *(f"- {sentence}" for sentence in made.look)]
    stream = StringIO()
    yaml = YAML()
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump({"packages": made.packages}, stream)
    return "".join(f"# {line}\n" for line in head) + stream.getvalue()


def write(checkout: Path, name: str, made: Draft) -> list[Path]:
    """Write the scope, the environments (as those of ``local``) and a configuration if there is none; whole folders or none.

    Returns what was written. Raises :class:`InputError` when the site is there already, ``OSError`` when it cannot be written.
    """
    check_free(checkout, name)
    written = [_write_folder(checkout / "spack_env" / "sites" / name, _scope(name, made))]
    stacks = sorted((checkout / "spack_env" / "envs" / "local").glob("*/spack.yaml"))
    if stacks:
        texts = {Path(path.parent.name, path.name): _renamed(path, "local", name) for path in stacks}
        written.append(_write_folder(checkout / "spack_env" / "envs" / name, texts))
    configuration = checkout / "site_configs" / f"{name}.py"
    if not configuration.exists():
        text = _renamed(configuration.with_name("template.py"), "template", name)
        with configuration.open("x", encoding="utf-8") as file:
            file.write(text)
        written.append(configuration)
    return written


def _scope(name: str, made: Draft) -> dict[Path, str | Path]:
    links = {Path("shims", package, link): to for package, shim in made.shims.items() for link, to in shim.items()}
    return {Path("packages.yaml"): text_of(name, made), **links}


def _renamed(path: Path, old: str, new: str) -> str:
    """A site's file as another site's: its name in quotes, and its folder among the sites."""
    text = path.read_text(encoding="utf-8")
    return text.replace(f'"{old}"', f'"{new}"').replace(f"/sites/{old}", f"/sites/{new}")


def _write_folder(folder: Path, contents: Mapping[Path, str | Path]) -> Path:
    """A folder of texts and links, made beside its place and moved there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        for relative, content in contents.items():
            path = part / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path):
                path.symlink_to(content)
            else:
                path.write_text(content, encoding="utf-8")
        part.chmod(0o755)
        part.rename(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return folder


# --- the command ------------------------------------------------------------------------------------------------------


def spack_finds(setup: Setup) -> Mapping[str, Any]:
    """``packages`` as ``spack external find`` writes them, into a scope of its own that is thrown away.

    Raises :class:`InputError` when there is no Spack, or none that can look.
    """
    try:
        pinned = pins(setup.definition)
        packages = setup.work / "packages"
        setup.work.mkdir(parents=True, exist_ok=True)
        root = spack_root(setup, pinned["spack"])
        clone(pinned["packages"], os.environ.get("IOGAUGE_SPACK_PACKAGES_GIT") or pinned["packages"]["git"], packages)
    except (InputError, BuildError) as error:
        raise InputError(
            f"no Spack to look with: {error}. Export SPACK_ROOT, the folder of a Spack; or IOGAUGE_SPACK_GIT and "
            f"IOGAUGE_SPACK_PACKAGES_GIT, where it and its packages can be cloned from"
        ) from error
    with tempfile.TemporaryDirectory(prefix="iogauge-site-init.") as scope:
        builtin = packages / "repos" / "spack_repo" / "builtin"
        Path(scope, "repos.yaml").write_text(f"repos:\n  builtin: {json.dumps(str(builtin))}\n", encoding="utf-8")
        command: list[str | Path] = [root / "bin" / "spack", "-C", scope]
        command += ["external", "find", "--scope", "cmd_scope_0", *PACKAGES]
        try:
            run_for_text(command, spack_variables(setup))
        except BuildError as error:
            raise InputError(f"spack external find: {error}", file=root) from error
        return read_found(Path(scope, "packages.yaml"))


def read_found(file: Path) -> Mapping[str, Any]:
    """``packages`` of what ``spack external find`` wrote; no file: it found nothing. Raises :class:`InputError`."""
    if not file.exists():
        return {}
    document, _ = read_yaml(file)
    packages = document.get("packages") if isinstance(document, Mapping) else None
    if not isinstance(packages, Mapping):
        raise InputError("a section packages is expected", file=file, key="packages")
    return packages


def site_init(checkout: Path, work: Path, name: str) -> tuple[Draft, list[Path]]:
    """Draft the site's scope; ``work`` is the folder of what ``scripts/spack-setup`` makes. Returns what it says and wrote.

    Raises :class:`InputError` for a bad name, a site that is there, and without a Spack; then nothing is written.
    """
    check_name(name)
    check_free(checkout, name)
    found = spack_finds(Setup(checkout=checkout, work=work, site=name, stacks=()))
    shims = checkout / "spack_env" / "sites" / name / "shims"
    made = draft(found, find_mpis(os.environ.get("PATH", os.defpath)), platform.machine(), shims)
    return made, write(checkout, name, made)
