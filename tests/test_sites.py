"""A mistake in a site's configuration is named by file, line, key and what is allowed."""

from __future__ import annotations

import ast
import copy
import re
from typing import get_args

import pytest
from conftest import CHECKOUT
from pydantic import BaseModel

from iogauge.check_options import CheckOptions
from iogauge.detect import Calendar
from iogauge.errors import InputError
from iogauge.nightly import calendars, read_site_configuration
from iogauge.series import key_of, parts_of
from iogauge.sites import Environ, Partition, Site, arm_of, arms_of, read_site

EXTRAS = {
    "file_systems": {"scratch": {"type": "lustre", "path": "$SCRATCH/iogauge", "request": ["--exclusive"]}},
    "nodes": [1, 2],
    "ranks_per_node": [4],
}

CONFIGURATION = """\
site_configuration = {
    "systems": [{"name": "x", "partitions": [{"name": "p", "extras": {
        "file_systems": {
            "scratch": {"type": "lustre", "path": "/scratch"},
            "home": {
                "type": "nfs",
                "path": "/home",
            },
        },
        "nodes": [1],
        "ranks_per_node": [2],
    }}]}],
}
"""


def test_a_site_says_its_axes_and_file_systems():
    site = read_site(EXTRAS | {"scheduler": "slurm", "launcher": "srun"})
    assert site.nodes == (1, 2)
    assert site.file_systems["scratch"].request == ("--exclusive",)
    assert site.file_systems["scratch"].mounted_as == ("lustre",)
    assert site.file_systems["scratch"].exclusive


@pytest.mark.parametrize(
    ("change", "key", "text"),
    [
        (lambda e: e["file_systems"]["scratch"].update(type="lstre"), "file_systems.scratch.type", "'beeond'"),
        (
            lambda e: e["file_systems"]["scratch"].update(paht="/x"),
            "file_systems.scratch.paht",
            "allowed: exclusive, guard, layout, maintenance, nightly, nodes, path",
        ),
        (lambda e: e["file_systems"]["scratch"].pop("path"), "file_systems.scratch.path", "missing"),
        (lambda e: e["file_systems"]["scratch"].update(path=""), "file_systems.scratch.path", "at least 1"),
        (lambda e: e["file_systems"]["scratch"].update(path="/x; $(rm -rf /)"), "path", "not"),
        (lambda e: e.update(file_systems={}), "file_systems", "at least 1"),
        (lambda e: e.update(nodes=[0]), "nodes.0", "greater than 0"),
        (lambda e: e.update(nodes=["two"]), "nodes.0", "integer"),
        (lambda e: e.update(ranks_per_node=4), "ranks_per_node", "tuple"),
        (lambda e: e.update(rank_per_node=[4]), "rank_per_node", "allowed: cpus_per_node, file_systems,"),
    ],
)
def test_a_mistake_is_named_with_what_is_allowed(change, key, text):
    extras = copy.deepcopy(EXTRAS)
    change(extras)
    with pytest.raises(InputError) as caught:
        read_site(extras)
    assert key in str(caught.value.key)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "line", "text"),
    [
        ('"type": "nfs"', '"type": "nsf"', 6, "file_systems.home.type"),
        ('"path": "/home"', '"paths": "/home"', 7, "file_systems.home.paths"),
        ('"nodes": [1]', '"nodes": [-1]', 10, "nodes.0"),
        ('"type": "nfs"', '"type": nfs', 6, "NameError"),
        ('"type": "nfs",', '"type" "nfs",', None, "site.py"),
    ],
)
def test_the_line_in_the_file_is_named(tmp_path, monkeypatch, old, new, line, text):
    assert old in CONFIGURATION
    (tmp_path / "site_configs").mkdir()
    (tmp_path / "site_configs" / "site.py").write_text(CONFIGURATION.replace(old, new))
    monkeypatch.setattr("iogauge.nightly.checkout", lambda: tmp_path)
    with pytest.raises(InputError) as caught:
        read_site_configuration("site")
    assert text in str(caught.value)
    assert line is None or caught.value.line == line


def test_an_unknown_site_is_answered_with_those_there_are():
    with pytest.raises(InputError, match=r"there are: .*local") as caught:
        read_site_configuration("nowhere")
    assert "common" not in str(caught.value)
    assert "template" not in str(caught.value)


def test_the_days_of_maintenance_are_those_of_all_partitions(tmp_path, monkeypatch):
    text = CONFIGURATION.replace('"path": "/home",', '"path": "/home", "maintenance": {"days_of_month": [1, 15]},')
    other = EXTRAS | {
        "file_systems": {"home": {"type": "nfs", "path": "/home", "maintenance": {"weekdays": ["Sunday"]}}}
    }
    text = text.replace("}]}],\n}", f"}}, {{'name': 'q', 'extras': {other}}}]}}],\n}}")
    (tmp_path / "site_configs").mkdir()
    (tmp_path / "site_configs" / "site.py").write_text(text)
    monkeypatch.setattr("iogauge.nightly.checkout", lambda: tmp_path)
    assert calendars("site") == {"home": Calendar(frozenset({1, 15}), frozenset({6}))}


def with_changes(**changes):
    return copy.deepcopy(EXTRAS) | changes


@pytest.mark.parametrize(
    ("changes", "key", "text"),
    [
        ({"points": [[4, 4]]}, "points", "[4, 4] is not on the axes; allowed: a number of nodes of 1, 2 with"),
        ({"nightly_points": [[1, 5]]}, "nightly_points", "[1, 5] is not on the axes"),
        ({"points": [[1]]}, "points.0.1", "missing"),
        ({"cpus_per_node": 3}, "cpus_per_node", "3 are fewer than 4 ranks per node"),
        ({"launcher_options": ["-ppn {rank}"]}, "launcher_options.0", "{rank} is unknown; allowed: {nodes}, {ranks}"),
        ({"launcher_options": ["-ppn {ranks"]}, "launcher_options.0", "braces"),
        ({"options": {"particle": {}}}, "options.particle", "allowed: benchio, blocks, fft, formats"),
        ({"options": {"particles": {"step": 5}}}, "options.particles.step", "allowed: alignment, fraction, particles"),
        ({"options": {"particles": {"steps": "5"}}}, "options.particles.steps", "integer, not '5'"),
        ({"options": {"particles": {"fraction": 2.0}}}, "options.particles.fraction", "less than or equal to 1"),
        ({"options": {"tiles": {"time_limit": "1:00"}}}, "options.tiles.time_limit", "pattern"),
        ({"options": {"blocks": {"size": "64x64"}}}, "options.blocks.size", "pattern"),
    ],
)
def test_what_contradicts_the_axes_or_is_no_option_is_named(changes, key, text):
    with pytest.raises(InputError) as caught:
        read_site(with_changes(**changes))
    assert caught.value.key == key
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "key", "text"),
    [
        ({"nodes": [3]}, "nodes", "3 is none of the partition's nodes; allowed: 1, 2"),
        ({"ranks_per_node": [1]}, "ranks_per_node", "allowed: 4"),
        ({"target": ""}, "target", "at least 1"),
    ],
)
def test_a_file_system_can_only_narrow_the_axes(changes, key, text):
    extras = copy.deepcopy(EXTRAS)
    extras["file_systems"]["scratch"].update(changes)
    with pytest.raises(InputError) as caught:
        read_site(extras)
    assert caught.value.key == f"file_systems.scratch.{key}"
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("maintenance", "key", "text"),
    [
        ({"days_of_month": [32]}, ".days_of_month.0", "less than or equal to 31, not 32"),
        ({"weekdays": ["Mon"]}, ".weekdays.0", "'Monday', 'Tuesday'"),
        ({"weekday": ["Monday"]}, ".weekday", "allowed: days_of_month, weekdays"),
        ({}, "", "days_of_month (1 to 31), weekdays (Monday to Sunday) or both"),
    ],
)
def test_days_of_maintenance_that_are_none_are_named(maintenance, key, text):
    extras = copy.deepcopy(EXTRAS)
    extras["file_systems"]["scratch"]["maintenance"] = maintenance
    with pytest.raises(InputError) as caught:
        read_site(extras)
    assert caught.value.key == f"file_systems.scratch.maintenance{key}"
    assert text in str(caught.value)


def test_entries_of_one_target_share_it_wholly_or_not_at_all():
    scratch = EXTRAS["file_systems"]["scratch"] | {"target": "lustre"}
    site = read_site(with_changes(file_systems={"a": scratch, "b": scratch, "lustre2": {**scratch, "target": "other"}}))
    assert [site.target_of(name) for name in ("a", "b", "lustre2")] == ["lustre", "lustre", "other"]
    assert read_site(EXTRAS).target_of("scratch") == "scratch"
    with pytest.raises(InputError, match="a and b are one target; all or none are exclusive"):
        read_site(with_changes(file_systems={"a": scratch, "b": scratch | {"exclusive": False}}))


def test_all_patterns_are_tried_at_the_smallest_and_the_largest_point_and_those_that_scale_at_all():
    site = read_site(with_changes(nodes=[4, 1, 2], ranks_per_node=[8, 2]))
    assert site.points_of("scratch") == ((1, 2), (4, 8))
    assert site.nightly_points_of("scratch") == ((1, 2), (4, 8))
    everywhere = [(nodes, ranks) for nodes in (1, 2, 4) for ranks in (2, 8)]
    assert [p for p in everywhere if site.tries("scratch", p, scaling=False)] == [(1, 2), (4, 8)]
    assert all(site.tries("scratch", p, scaling=True) for p in everywhere)
    assert not site.tries("scratch", (3, 2), scaling=True)
    assert not site.tries("elsewhere", (1, 2), scaling=True)


def test_a_site_says_where_all_patterns_and_where_the_nights_are():
    site = read_site(with_changes(nodes=[1, 2, 4], points=[[2, 4]], nightly_points=[[1, 4], [4, 4]]))
    assert site.points_of("scratch") == ((2, 4),)
    assert site.nightly_points_of("scratch") == ((1, 4), (4, 4))
    only = read_site(with_changes(points=[[2, 4]]))
    assert only.nightly_points_of("scratch") == ((2, 4),)


def test_a_nodes_own_disk_has_points_of_its_own():
    file_systems = {
        "scratch": {"type": "lustre", "path": "/x"},
        "disk": {"type": "local", "path": "/tmp", "nodes": [1]},
    }
    site = read_site(
        with_changes(file_systems=file_systems, nodes=[1, 4], ranks_per_node=[2, 8], points=[[1, 8], [4, 8]])
    )
    assert site.points_of("disk") == ((1, 8),)
    assert site.points_of("scratch") == ((1, 8), (4, 8))
    assert not site.tries("disk", (4, 8), scaling=True)
    assert site.tries("disk", (1, 2), scaling=True)
    elsewhere = read_site(with_changes(file_systems=file_systems, nodes=[1, 4], ranks_per_node=[2, 8], points=[[4, 8]]))
    assert elsewhere.points_of("disk") == ((1, 2), (1, 8)), "none of the points is on it: its smallest and its largest"


def test_a_rank_has_its_share_of_the_nodes_cpus():
    assert [read_site(with_changes(cpus_per_node=96)).cpus_per_rank(ranks) for ranks in (48, 32, 5)] == [2, 3, 19]
    assert read_site(EXTRAS).cpus_per_rank(4) == 1


def test_the_line_of_an_option_is_found_where_a_variable_holds_it(tmp_path, monkeypatch):
    text = "volumes = {\n    'particles': {\n        'steps': 0,\n    },\n}\n"
    text += CONFIGURATION.replace('"nodes": [1]', '"options": volumes, "nodes": [1]')
    (tmp_path / "site_configs").mkdir()
    (tmp_path / "site_configs" / "site.py").write_text(text)
    monkeypatch.setattr("iogauge.nightly.checkout", lambda: tmp_path)
    with pytest.raises(InputError) as caught:
        read_site_configuration("site")
    assert (caught.value.key, caught.value.line) == ("options.particles.steps", 3)


def fields_of(model: type[BaseModel]) -> set[str]:
    """All keys that may stand anywhere below."""
    names = set()
    for name, field in model.model_fields.items():
        names.add(name)
        pending = [field.annotation]
        while pending:
            annotation = pending.pop()
            if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                names |= fields_of(annotation)
            pending += get_args(annotation)
    return names


def test_the_template_explains_every_option_and_is_right(monkeypatch):
    monkeypatch.delenv("IOGAUGE_ACCOUNT", raising=False)
    text = (CHECKOUT / "site_configs" / "template.py").read_text()
    names = fields_of(Site) | fields_of(Environ)
    assert {"launcher_options", "stripe_size", "mounted_as", "compression_level"} <= names
    assert not [name for name in names if not re.search(rf"\b{name}\b", text)]
    (site,) = read_site_configuration("template").values()
    assert set(site.file_systems) == {"scratch", "scratch-8", "scratch-pfl", "beeond", "tmp"}


SITES = sorted(p.stem for p in (CHECKOUT / "site_configs").glob("*.py") if p.stem != "common")


@pytest.mark.parametrize("name", SITES)
def test_every_site_is_right(name, monkeypatch):
    monkeypatch.setenv("IOGAUGE_ACCOUNT", "project")
    for site in read_site_configuration(name).values():
        for file_system in site.file_systems:
            assert site.points_of(file_system)
            assert site.nightly_points_of(file_system)


def test_claix_has_the_axes_and_the_volume_of_the_study():
    (site,) = read_site_configuration("claix18").values()
    assert site.nodes == (1, 2, 4, 8, 16)
    assert site.ranks_per_node == (6, 12, 16, 24, 32, 48)
    particles = site.options.of("particles")
    assert (particles["particles"], particles["steps"], particles["repeats"]) == (4194304, 5, 3)
    assert {name: fs.type for name, fs in site.file_systems.items()} == {
        "home": "nfs",
        "work": "nfs",
        "hpcwork": "lustre",
        "beeond": "beeond",
    }


def test_without_the_project_that_is_charged_a_site_stops_with_exit_code_2(monkeypatch, capsys):
    monkeypatch.delenv("IOGAUGE_ACCOUNT", raising=False)
    with pytest.raises(SystemExit) as caught:
        read_site_configuration("perlmutter")
    assert caught.value.code == 2
    assert "IOGAUGE_ACCOUNT is not set" in capsys.readouterr().err


def variables_of_checks() -> dict[str, dict[str, str]]:
    """Kernel to variable and type, as the files in reframe_checks have them, but those of all kernels."""
    found: dict[str, dict[str, str]] = {}
    for path in (CHECKOUT / "reframe_checks").glob("*.py"):
        classes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]
        for one in classes:
            assigned = [node for node in one.body if isinstance(node, ast.Assign)]
            variables = [n for n in assigned if isinstance(n.value, ast.Call) and n.value.func.id == "variable"]
            for kernel in [n.value.value for n in assigned if n.targets[0].id == "kernel"]:
                found.setdefault(kernel, {}).update({n.targets[0].id: n.value.args[0].id for n in variables})
    return found


def test_the_options_are_the_checks_variables_with_their_types():
    common = {"repeats", "warmup", "time_limit"}
    checks = variables_of_checks()
    upstream = ("benchio", "fft", "h5bench", "h5perf", "h5perf_serial", "hdf5_iotest", "ior")
    for name in upstream:  # of all of them, in their mixin
        checks[name] |= {"program": "str", "launch_seconds": "int"}
    for name in ("blocks", "metadata", "particles", "segments", "tiles"):
        checks[name] |= {"with_baselines": "bool"}
    assert "particles" in checks["particles"]
    options = {
        kernel: {
            name: {"integer": "int", "number": "float", "string": "str", "boolean": "bool"}[field["anyOf"][0]["type"]]
            for name, field in one.annotation.model_json_schema()["properties"].items()
            if name not in common
        }
        for kernel, one in CheckOptions.model_fields.items()
    }
    assert options == checks
    assert all(common <= set(one.annotation.model_fields) for one in CheckOptions.model_fields.values())


SITE_WITH_ARMS = (
    Partition("batch", ("gcc", "hdf5-2"), ("scratch", "work")),
    Partition("gpu", ("gcc", "hdf5-2"), ("scratch",)),
    Partition("login", ("system",), ("home",)),
)


@pytest.mark.parametrize(
    ("file_system", "partition", "environ", "arm"),
    [
        ("scratch", "batch", "gcc", ""),
        ("scratch", "batch", "hdf5-2", "hdf5-2"),
        ("scratch", "gpu", "gcc", "gpu"),
        ("scratch", "gpu", "hdf5-2", "gpu+hdf5-2"),
        ("home", "login", "system", ""),
    ],
)
def test_keys_name_the_partition_after_the_first_with_the_file_system_and_the_environ_after_its_first(
    file_system, partition, environ, arm
):
    assert arm_of(file_system, partition, environ, SITE_WITH_ARMS) == arm
    key = key_of("particles", "write", file_system, 2, 16, "CC", "hdf5", arm)
    assert parts_of(key) == ("particles", "write", file_system, 2, 16, "CC", "hdf5", arm)


def test_two_arms_of_one_name_are_refused_with_both():
    alike = (*SITE_WITH_ARMS[:2], Partition("hdf5-2", ("gcc",), ("scratch",)))
    with pytest.raises(
        InputError, match="'gcc' of partition hdf5-2 and 'hdf5-2' of batch are both arm @hdf5-2 of scratch"
    ):
        arms_of("scratch", alike)
    assert set(arms_of("scratch", SITE_WITH_ARMS)) == {"", "hdf5-2", "gpu", "gpu+hdf5-2"}
