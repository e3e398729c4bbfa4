"""The Spack environments as they are committed: pinned, site-neutral where they say so, and each lock made from its yaml."""

from __future__ import annotations

import ast
import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from iogauge.validation import read_yaml

DEFINITION = Path(__file__).resolve().parents[1] / "spack_env"
YAML = sorted(DEFINITION.rglob("*.yaml"))
RECIPES = sorted(DEFINITION.glob("repo/spack_repo/iogauge/packages/*/package.py"))
STACKS = sorted(DEFINITION.glob("stacks/*.yaml"))
SITES = sorted(path.parent for path in DEFINITION.glob("sites/*/packages.yaml"))
ENVIRONMENTS = sorted(path.parent for path in DEFINITION.glob("envs/*/*/spack.yaml"))
LOCKS = sorted(DEFINITION.glob("envs/*/*/spack.lock"))


def name_of(path: Path) -> str:
    return str(path.relative_to(DEFINITION))


def document(path: Path) -> Any:
    return read_yaml(path)[0]


def expand(entries: list[Any], definitions: dict[str, list[Any]]) -> list[str]:
    """The specs of a list of Spack: names of definitions and matrices resolved."""
    specs = []
    for entry in entries:
        if isinstance(entry, str):
            name = entry.removeprefix("$")
            specs += expand(definitions[name], definitions) if entry.startswith("$") else [entry]
        else:
            rows = [expand(list(row), definitions) for row in entry["matrix"]]
            specs += [" ".join(parts) for parts in itertools.product(*rows)]
    return specs


def specs_of(environment: Path) -> list[str]:
    stack = document(DEFINITION / "stacks" / f"{environment.name}.yaml")
    definitions = {name: list(entries) for part in stack["definitions"] for name, entries in part.items()}
    return expand(document(environment / "spack.yaml")["spack"]["specs"], definitions)


def words(spec: str) -> set[str]:
    """What a spec says, whatever the order of its switches and dependencies."""
    return set(re.findall(r"\^?[a-z0-9-]+@[^\s+~^]+|[+~][a-z0-9_-]+", spec))


@pytest.mark.parametrize("file", YAML, ids=name_of)
def test_every_file_is_yaml_whose_keys_stand_once(file: Path) -> None:
    assert document(file)


def test_spack_and_its_packages_are_pinned_to_a_tag_and_its_commit() -> None:
    versions = document(DEFINITION / "versions.yaml")
    assert versions["spack"]["tag"] == f"v{versions['spack']['version']}"
    for pin in (versions["spack"], versions["packages"]):
        assert re.fullmatch("[0-9a-f]{40}", pin["commit"])
        assert pin["git"].startswith("https://")


@pytest.mark.parametrize("file", RECIPES, ids=lambda path: path.parent.name)
def test_every_recipe_is_python_and_its_versions_are_pinned(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    assert [each.name.lower() for each in classes] == [file.parent.name.replace("_", "")]
    calls = [node.value for node in classes[0].body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    versions = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "version"]
    bases = {base.id for base in classes[0].bases if isinstance(base, ast.Name)}
    assert versions or any(base.startswith("Upstream") for base in bases)  # which has them
    bundle = "BundlePackage" in bases
    for version in versions:
        pinned = {keyword.arg for keyword in version.keywords} & {"commit", "sha256"}
        # The kernels' commit stands in the stacks.
        assert pinned or bundle or file.parent.name == "iogauge_kernels"


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=name_of)
def test_every_spec_of_a_stack_is_pinned_and_so_is_its_hdf5(environment: Path) -> None:
    if environment.parent.name == "dev":
        return
    for spec in specs_of(environment):
        root = spec.split()[0]
        assert "@" in root or root.startswith("iogauge-arm"), spec
        if not root.startswith("darshan-util"):
            assert re.search(r"(^|\s\^)hdf5@\d+\.\d+\.\d+", spec), spec
        for commit in re.findall(r"iogauge-kernels@(\S+)", spec):
            assert re.fullmatch(r"git\.[0-9a-f]{40}=\d+\.\d+\.\d+", commit)


@pytest.mark.parametrize("stack", STACKS, ids=name_of)
def test_a_stack_names_no_site_no_path_and_no_mpi(stack: Path) -> None:
    text = "\n".join(
        line for line in stack.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")
    )
    assert not re.search(r"(openmpi|mpich|intel|gcc|[ \"]/[a-z])", text)


@pytest.mark.parametrize("site", SITES, ids=name_of)
def test_every_site_requires_its_mpi_and_a_target(site: Path) -> None:
    packages = document(site / "packages.yaml")["packages"]
    assert packages["mpi"]["require"]
    assert any("target=" in rule for rule in packages["all"]["require"])
    assert "buildable" not in packages.get("hdf5", {})


@pytest.mark.parametrize("lock", LOCKS, ids=name_of)
def test_a_lock_was_made_from_its_yaml(lock: Path) -> None:
    roots = [root["spec"] for root in json.loads(lock.read_text(encoding="utf-8"))["roots"]]
    wanted = specs_of(lock.parent)
    assert len(roots) == len(wanted)
    assert sorted(map(sorted, map(words, roots))) == sorted(map(sorted, map(words, wanted)))


@pytest.mark.parametrize("lock", LOCKS, ids=name_of)
def test_a_lock_was_made_with_the_recipes_that_stand_here_and_one_hdf5_a_root(lock: Path) -> None:
    content = json.loads(lock.read_text(encoding="utf-8"))
    specs = content["concrete_specs"]
    for root in content["roots"]:
        seen, waiting = set(), [root["hash"]]
        while waiting:
            hash_ = waiting.pop()
            if hash_ not in seen:
                seen.add(hash_)
                waiting += [
                    dependency["hash"]
                    for dependency in specs[hash_].get("dependencies", ())
                    if set(dependency["parameters"]["deptypes"]) & {"link", "run"}
                ]
        hdf5 = [specs[hash_] for hash_ in seen if specs[hash_]["name"] == "hdf5"]
        assert len(hdf5) <= 1
        assert all(spec["parameters"]["shared"] and spec["parameters"]["mpi"] for spec in hdf5)
    own = {spec["name"] for spec in specs.values() if spec["namespace"] == "iogauge"}
    assert own <= {recipe.parent.name.replace("_", "-") for recipe in RECIPES}


@pytest.mark.parametrize("lock", LOCKS, ids=name_of)
def test_a_lock_has_no_paths_but_those_of_the_sites_externals(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    packages = document(DEFINITION / "sites" / lock.parent.parent.name / "packages.yaml")["packages"]
    allowed = set()
    for entry in packages.values():
        for external in entry.get("externals", ()):
            compilers = external.get("extra_attributes", {}).get("compilers", {})
            allowed |= {external.get("prefix"), *compilers.values()}
    assert set(re.findall(r'"(/[^"]*)"', text)) <= allowed
