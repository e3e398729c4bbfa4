"""The facts of the machine: the mount that a folder lies on, and the load over a run."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import psutil
import pytest
from conftest import needs_root

from iogauge import machine


def test_a_file_system_that_does_not_answer_is_left_out_and_not_waited_for(tmp_path, monkeypatch):
    hanging = tmp_path / "stat"
    hanging.write_text("#!/bin/sh\nsleep 60\n")
    hanging.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("iogauge.commands.ANSWER_SECONDS", 0.2)
    assert machine.look({"here": Path("/")}, machine.LoadMeter().read()).mounts == ()
    hanging.unlink()
    assert machine.look({"here": Path("/"), "gone": tmp_path / "none"}, machine.LoadMeter().read()).mounts


def test_the_facts_are_those_that_other_programs_give():
    found = machine.look({"here": Path("/")}, machine.LoadMeter().read())
    assert found.host == os.uname().nodename
    assert found.kernel == os.uname().release
    assert found.logical_processors == os.cpu_count()
    assert 1 <= found.cores <= found.logical_processors
    kib = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    assert found.memory_bytes == int(kib.split()[1]) * 1024
    assert found.processor
    assert [mount.file_system for mount in found.mounts] == ["here"]


def test_a_file_system_that_is_not_here_is_left_out(tmp_path):
    found = machine.look({"gone": tmp_path / "gone"}, machine.LoadMeter().read())
    assert found.mounts == ()


def test_the_mount_is_the_one_that_findmnt_names(tmp_path):
    asked = subprocess.run(
        ["findmnt", "--noheadings", "--raw", "--output", "FSTYPE,TARGET", "--target", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode != 0:
        pytest.skip("needs a mounted root folder, which a chroot has not")
    found = machine.mount_of("here", tmp_path)
    assert [found.type, found.mount_point] == asked.stdout.split()


@needs_root
def test_the_innermost_mount_counts_with_its_options_and_a_blank_in_its_name(tmp_path):
    point = tmp_path / "my disk"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "noatime,size=2M", "some-source", point], check=True)
    try:
        (point / "below").mkdir()
        found = machine.mount_of("mine", point / "below")
        link = tmp_path / "link"
        link.symlink_to(point / "below")
        through_link = machine.mount_of("mine", link)
    finally:
        subprocess.run(["umount", point], check=True)
    assert (found.type, found.source, found.mount_point) == ("tmpfs", "some-source", str(point))
    assert {"rw", "noatime", "size=2048k"} <= set(found.options.split(","))
    assert found.size_bytes == 2 << 20
    assert (through_link.type, through_link.mount_point) == ("tmpfs", str(point))


def test_a_path_that_does_not_exist_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        machine.mount_of("gone", tmp_path / "gone")


def test_the_stolen_part_of_the_processor_time_is_over_the_run_alone(monkeypatch):
    ticks = psutil.cpu_times()
    first = ticks._replace(**{**dict.fromkeys(ticks._fields, 0.0), "user": 900.0, "steal": 100.0})
    monkeypatch.setattr(machine.psutil, "cpu_times", lambda: first)
    meter = machine.LoadMeter()
    monkeypatch.setattr(machine.psutil, "cpu_times", lambda: first._replace(user=960.0, idle=20.0, steal=120.0))
    assert meter.read().steal_fraction == pytest.approx(0.2)
    monkeypatch.setattr(machine.psutil, "cpu_times", lambda: first)
    assert meter.read().steal_fraction == 0.0


def test_the_load_is_read_at_both_ends(monkeypatch):
    loads = iter([(0.25, 9, 9), (1.5, 9, 9)])
    monkeypatch.setattr(machine.os, "getloadavg", lambda: next(loads))
    found = machine.LoadMeter().read()
    assert (found.before, found.after) == (0.25, 1.5)


def test_the_meter_reads_the_real_clock_ticks():
    meter = machine.LoadMeter()
    threading.Event().wait(0.05)
    assert 0.0 <= meter.read().steal_fraction <= 1.0
