"""A mistake in a site's configuration is named by file, line, key and what is allowed."""

from __future__ import annotations

import copy

import pytest

from iogauge.errors import InputError
from iogauge.nightly import read_site_configuration
from iogauge.sites import read_site

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
            "allowed: exclusive, guard, layout, path",
        ),
        (lambda e: e["file_systems"]["scratch"].pop("path"), "file_systems.scratch.path", "missing"),
        (lambda e: e["file_systems"]["scratch"].update(path=""), "file_systems.scratch.path", "at least 1"),
        (lambda e: e["file_systems"]["scratch"].update(path="/x; $(rm -rf /)"), "path", "not"),
        (lambda e: e.update(file_systems={}), "file_systems", "at least 1"),
        (lambda e: e.update(nodes=[0]), "nodes.0", "greater than 0"),
        (lambda e: e.update(nodes=["two"]), "nodes.0", "integer"),
        (lambda e: e.update(ranks_per_node=4), "ranks_per_node", "tuple"),
        (lambda e: e.update(rank_per_node=[4]), "rank_per_node", "allowed: file_systems, netcdf, nodes, oversubscribe"),
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
    with pytest.raises(InputError, match="there are: local"):
        read_site_configuration("nowhere")
