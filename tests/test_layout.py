"""A file's layout is set as the site asks, read back from folder and data file, and a different one is never measured.

Lustre, BeeGFS and GPFS are not here: in these tests ``lfs``, ``beegfs-ctl``, ``beegfs`` and ``mmlsattr`` are STAND-INS, which
record their arguments and print what the real ones print; the sources are named beside each output.
"""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest
from conftest import CHECKOUT

from iogauge.layout import Layout, read_back, read_beegfs, read_gpfs, read_lustre, verdict

SCRIPT = CHECKOUT / "reframe_checks" / "src" / "case_folder.sh"
MIB = 1 << 20

# lfs getstripe of a file and -d of a folder with plain layouts (Lustre manual, "Retrieving File Layout/Striping Information";
# lustreapi's printing in liblustreapi_layout.c and liblustreapi.c).
LUSTRE_FILE = """\
{path}
lmm_stripe_count:  {count}
lmm_stripe_size:   1048576
lmm_pattern:       raid0
lmm_layout_gen:    0
lmm_stripe_offset: 3
lmm_pool:          flash
\tobdidx\t\t objid\t\t objid\t\t group
\t     3\t             2\t          0x2\t             0
\t     1\t             3\t          0x3\t             0
"""
LUSTRE_FOLDER = (
    "stripe_count:  {count} stripe_size:   1048576 pattern:       raid0 stripe_offset: -1 pool:          flash\n"
)
LUSTRE_OLD_FOLDER = "/scratch/a\nstripe_count:   1 stripe_size:    65536 stripe_offset:  -1\n"
# The same with a progressive layout: Data-on-MDT, then one stripe, then all (Lustre manual, "PFL"; file as one sees it after
# a small write: the last component is not yet made).
PFL_FILE = """\
/mnt/testfs/file
  lcm_layout_gen:    3
  lcm_mirror_count:  1
  lcm_entry_count:   3
    lcme_id:             1
    lcme_mirror_id:      0
    lcme_flags:          init
    lcme_extent.e_start: 0
    lcme_extent.e_end:   1048576
      lmm_stripe_count:  0
      lmm_stripe_size:   1048576
      lmm_pattern:       mdt
      lmm_layout_gen:    0
      lmm_stripe_offset: 0

    lcme_id:             2
    lcme_mirror_id:      0
    lcme_flags:          init
    lcme_extent.e_start: 1048576
    lcme_extent.e_end:   67108864
      lmm_stripe_count:  1
      lmm_stripe_size:   1048576
      lmm_pattern:       raid0
      lmm_layout_gen:    0
      lmm_stripe_offset: 5
      lmm_objects:
      - 0: { l_ost_idx: 5, l_fid: [0x100050000:0x2:0x0] }

    lcme_id:             3
    lcme_mirror_id:      0
    lcme_flags:          0
    lcme_extent.e_start: 67108864
    lcme_extent.e_end:   EOF
      lmm_stripe_count:  -1
      lmm_stripe_size:   4194304
      lmm_pattern:       raid0
      lmm_layout_gen:    0
      lmm_stripe_offset: -1
"""
PFL_FOLDER = """\
  lcm_layout_gen:    0
  lcm_mirror_count:  1
  lcm_entry_count:   2
    lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 0
    lcme_extent.e_end:   104857600
      stripe_count:  1       stripe_size:   1048576       pattern:       raid0       stripe_offset: -1

    lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 104857600
    lcme_extent.e_end:   EOF
      stripe_count:  4       stripe_size:   1048576       pattern:       raid0       stripe_offset: -1
"""
# beegfs-ctl --getentryinfo of a file (BeeGFS 7.4 documentation, "Deep Inspection"), beegfs entry info --retro of a folder
# (BeeGFS 8 documentation, "Striping").
BEEGFS_FILE = """\
Entry type: file
EntryID: 0-5D285750-1
Metadata node: node1.beeg.local [ID: 1]
Stripe pattern details:
+ Type: RAID0
+ Chunksize: 512K
+ Number of storage targets: desired: 4; actual: {actual}
+ Storage targets:
  + 1 @ node1.beeg.local [ID: 1]
  + 2 @ node2.beeg.local [ID: 2]
"""
BEEGFS_FOLDER = """\
Entry type: directory
EntryID: root
Metadata buddy group: 1
Current primary metadata node: node_meta_2 [ID: 2]
Stripe pattern details:
+ Type: RAID0
+ Chunksize: 512K
+ Number of storage targets: desired: 4
+ Storage Pool: 1  (default)
"""
# mmlsattr -L (IBM Storage Scale, mmlsattr command), and the block size, which stat tells.
GPFS_FILE = """\
file name:            1GB.dat
metadata replication: 2 max 2
data replication:     1 max 2
immutable:            no
appendOnly:           no
flags:
storage pool name:    DATA
fileset name:         csg
snapshot name:
creation time:        Wed Mar  9 10:08:00 2022
Misc attributes:      ARCHIVE
Encrypted:            no
block size: 4194304
"""

PLAIN = Layout(stripe_count=4, stripe_size="1M", pool="flash")
PFL = Layout(
    components=[
        {"end": "1M", "mdt": True},
        {"end": "64M", "stripe_count": 1, "stripe_size": "1M"},
        {"end": "EOF", "stripe_count": -1, "stripe_size": "4M"},
    ]
)
CHUNKS = Layout(targets=4, chunk_size="512K")
DEFAULT = Layout()


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (read_lustre, LUSTRE_FILE.format(path="/a", count=4), "4 stripes of 1 MiB in pool flash"),
        (read_lustre, LUSTRE_FOLDER.format(count=-1), "all stripes of 1 MiB in pool flash"),
        (read_lustre, LUSTRE_OLD_FOLDER, "1 stripe of 64 KiB"),
        (
            read_lustre,
            PFL_FILE,
            "to 1 MiB: on an MDT; to 64 MiB: 1 stripe of 1 MiB; to EOF: all stripes of 4 MiB",
        ),
        (read_lustre, PFL_FOLDER, "to 100 MiB: 1 stripe of 1 MiB; to EOF: 4 stripes of 1 MiB"),
        (read_beegfs, BEEGFS_FILE.format(actual=2), "2 targets of 512 KiB"),
        (read_beegfs, BEEGFS_FOLDER, "4 targets of 512 KiB"),
        (read_gpfs, GPFS_FILE, "pool DATA, replication 1, fileset csg, blocks of 4 MiB"),
        (read_gpfs, "no tool: mmlsattr is not in PATH here\nblock size: 4096\n", "blocks of 4 KiB"),
        (read_lustre, "no tool: lfs is not in PATH here\n", "not known (lfs is not in PATH here)"),
        (read_beegfs, "Communication error\n", "not known (Communication error)"),
    ],
)
def test_what_the_tools_print_is_told_in_words(read, text, words):
    assert str(read(text)) == words


@pytest.mark.parametrize(
    ("layout", "arguments"),
    [
        (DEFAULT, []),
        (PLAIN, ["-c", "4", "-S", "1048576", "-p", "flash"]),
        (Layout(stripe_count=-1), ["-c", "-1"]),
        (
            PFL,
            [
                "-E",
                "1048576",
                "-L",
                "mdt",
                "-E",
                "67108864",
                "-c",
                "1",
                "-S",
                "1048576",
                "-E",
                "-1",
                "-c",
                "-1",
                "-S",
                "4194304",
            ],
        ),
        (CHUNKS, ["4", "524288"]),
        (Layout(chunk_size="1M"), ["", "1048576"]),
    ],
)
def test_the_arguments_for_the_tools_follow_from_the_configuration(layout, arguments):
    assert layout.arguments() == arguments


@pytest.mark.parametrize(
    ("asked", "read", "folder", "file"),
    [
        (PLAIN, read_lustre, LUSTRE_FOLDER.format(count=4), LUSTRE_FILE.format(path="/a", count=4)),
        (Layout(stripe_count=-1), read_lustre, LUSTRE_FOLDER.format(count=-1), LUSTRE_FILE.format(path="/a", count=16)),
        (PFL, read_lustre, PFL_FILE, PFL_FILE),
        (CHUNKS, read_beegfs, BEEGFS_FOLDER, BEEGFS_FILE.format(actual=4)),
        (DEFAULT, read_lustre, LUSTRE_OLD_FOLDER, PFL_FILE),
        (DEFAULT, read_lustre, "no tool: lfs\n", "no tool: lfs\n"),
        (DEFAULT, read_gpfs, GPFS_FILE, GPFS_FILE),
    ],
)
def test_a_layout_as_asked_for_or_any_default_is_recorded_and_fine(asked, read, folder, file):
    words, problems = verdict(asked, read(folder), read(file))
    assert problems == []
    assert words.endswith("(as asked for)" if asked.system else "(default)")


@pytest.mark.parametrize(
    ("asked", "read", "folder", "file", "words"),
    [
        (
            PLAIN,
            read_lustre,
            LUSTRE_FOLDER.format(count=4),
            LUSTRE_FILE.format(path="/a", count=2),
            "a data file has 2 stripes of 1 MiB in pool flash, 4 stripes of 1 MiB in pool flash was asked for "
            "(stripe count 4, not 2)",
        ),
        (
            PLAIN,
            read_lustre,
            LUSTRE_FOLDER.format(count=1),
            LUSTRE_FILE.format(path="/a", count=4),
            "the case's folder has 1 stripe of 1 MiB in pool flash, 4 stripes",
        ),
        (PLAIN, read_lustre, PFL_FOLDER, PFL_FOLDER, "one component, not 2"),
        (Layout(pool="disk"), read_lustre, LUSTRE_FOLDER.format(count=4), "", "pool disk, not flash"),
        (PFL, read_lustre, PFL_FOLDER, PFL_FOLDER, "components end at 1 MiB, 64 MiB, EOF, not at 100 MiB, EOF"),
        (
            PFL,
            read_lustre,
            PFL_FILE.replace("pattern:       mdt", "pattern: raid0"),
            PFL_FILE,
            "component 1: on an MDT",
        ),
        (
            PFL,
            read_lustre,
            PFL_FILE,
            PFL_FILE.replace("4194304", "65536"),
            "component 3: stripe size 4194304, not 65536",
        ),
        (CHUNKS, read_beegfs, BEEGFS_FOLDER, BEEGFS_FILE.format(actual=2), "targets 4, not 2"),
        (PLAIN, read_lustre, "lfs: timed out\n", "", "the layout of the case's folder is not known (lfs: timed out)"),
    ],
)
def test_another_layout_than_asked_for_is_told_with_both(asked, read, folder, file, words):
    _, problems = verdict(asked, read(folder), read(file))
    assert any(words in problem for problem in problems), problems


# --- in the job -------------------------------------------------------------------------------------------------------


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder for stand-ins, in PATH; what they were called with goes to calls.txt."""
    folder = tmp_path / "stand-ins"
    folder.mkdir()
    return folder


def stand_in(tools: Path, name: str, body: str) -> None:
    path = tools / name
    path.write_text(f'#!/bin/bash\nprintf "%s\\n" "{name} $*" >> "{tools}/calls.txt"\n{body}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def job(tmp_path: Path, tools: Path, type_: str, asked: Layout) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """A job whose kernel leaves a file; returns what it said, and the stand-ins' calls with the folder's name cut."""
    (tmp_path / "target").mkdir()
    (tmp_path / "stage").mkdir()
    arguments = " ".join(f"'{argument}'" for argument in asked.arguments())
    script = f"""
        cd '{tmp_path}/stage' && . '{SCRIPT}' && iogauge_case_folder fs '{tmp_path}/target' 1 || exit
        iogauge_layout {type_} {arguments}
        echo kernel && touch "$IOGAUGE_CASE_DIR/data.h5"
        iogauge_data_file_layout {type_}
    """
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    calls = (tools / "calls.txt").read_text().splitlines() if (tools / "calls.txt").exists() else []
    names = [*(tmp_path / "stage").glob("case_folder.txt")]
    folder = names[0].read_text().splitlines()[0] if names else "?"
    assert not list((tmp_path / "target").iterdir()), "the case left something"
    mount = subprocess.run(["df", "--output=target", tmp_path], capture_output=True, text=True, check=True)
    return done, [c.replace(folder, "DIR").replace(mount.stdout.split()[-1] + " ", "MOUNT ") for c in calls]


def printing(folder: str, file: str) -> str:
    """Prints one text for a folder, which is the last argument, and another for a file."""
    return f"[ -d \"${{@: -1}}\" ] && cat <<'EOF' || cat <<'EOT'\n{folder}EOF\n{file}EOT\n"


def test_lustre_stripes_are_set_before_a_file_is_there_and_read_back_from_folder_and_file(tmp_path, tools):
    stand_in(tools, "lfs", printing(LUSTRE_FOLDER.format(count=4), LUSTRE_FILE.format(path="data.h5", count=4)))
    done, calls = job(tmp_path, tools, "lustre", PLAIN)
    assert done.returncode == 0, done.stderr
    assert calls == [
        "lfs setstripe -c 4 -S 1048576 -p flash DIR",
        "lfs getstripe -d DIR",
        "lfs getstripe -d DIR/data.h5",
    ]
    words, problems = verdict(PLAIN, *read_back("lustre", tmp_path / "stage"))
    assert (words, problems) == ("4 stripes of 1 MiB in pool flash (as asked for)", [])


def test_stripes_that_a_hint_has_changed_are_found_in_the_data_file(tmp_path, tools):
    """ROMIO's striping_factor makes the file with stripes of its own, whatever the folder has."""
    stand_in(tools, "lfs", printing(LUSTRE_FOLDER.format(count=4), LUSTRE_FILE.format(path="data.h5", count=1)))
    job(tmp_path, tools, "lustre", PLAIN)
    _, problems = verdict(PLAIN, *read_back("lustre", tmp_path / "stage"))
    assert len(problems) == 1
    assert "a data file has 1 stripe" in problems[0]


def test_at_the_sites_default_nothing_is_set_and_what_was_in_effect_is_recorded(tmp_path, tools):
    stand_in(tools, "lfs", printing(PFL_FOLDER, PFL_FILE))
    _, calls = job(tmp_path, tools, "lustre", DEFAULT)
    assert calls == ["lfs getstripe -d DIR", "lfs getstripe -d DIR/data.h5"]
    words, problems = verdict(DEFAULT, *read_back("lustre", tmp_path / "stage"))
    assert words.startswith(
        "folder to 100 MiB: 1 stripe of 1 MiB; to EOF: 4 stripes of 1 MiB, data file to 1 MiB: on an MDT"
    )
    assert problems == []


@pytest.mark.parametrize(
    ("tool", "calls"),
    [
        (
            "beegfs-ctl",
            [
                "beegfs-ctl --setpattern --mount=MOUNT --numtargets=4 --chunksize=524288 DIR",
                "beegfs-ctl --getentryinfo --mount=MOUNT DIR",
                "beegfs-ctl --getentryinfo --mount=MOUNT DIR/data.h5",
            ],
        ),
        (
            "beegfs",
            [
                "beegfs entry set --num-targets=4 --chunk-size=524288 DIR",
                "beegfs entry info --retro DIR",
                "beegfs entry info --retro DIR/data.h5",
            ],
        ),
    ],
)
def test_beegfs_patterns_are_set_and_read_back_with_the_tool_of_either_version(tmp_path, tools, tool, calls):
    stand_in(tools, tool, printing(BEEGFS_FOLDER, BEEGFS_FILE.format(actual=4)))
    done, called = job(tmp_path, tools, "beeond", CHUNKS)
    assert done.returncode == 0, done.stderr
    assert called == calls
    assert verdict(CHUNKS, *read_back("beeond", tmp_path / "stage")) == ("4 targets of 512 KiB (as asked for)", [])


def test_of_gpfs_pool_replication_and_block_size_are_recorded(tmp_path, tools):
    stand_in(tools, "mmlsattr", printing(GPFS_FILE, GPFS_FILE))
    _, calls = job(tmp_path, tools, "gpfs", DEFAULT)
    assert calls == ["mmlsattr -L DIR", "mmlsattr -L DIR/data.h5"]
    words, _ = verdict(DEFAULT, *read_back("gpfs", tmp_path / "stage"))
    assert "pool DATA, replication 1, fileset csg, blocks of 4 MiB" in words


@pytest.mark.parametrize(
    ("type_", "asked", "reason"),
    [
        ("lustre", PLAIN, "a layout was asked for, and lfs is not in PATH here"),
        ("beeond", CHUNKS, "a layout was asked for, and beegfs is not in PATH here"),
    ],
)
def test_a_layout_that_cannot_be_set_ends_the_job_before_the_kernel(tmp_path, tools, type_, asked, reason):
    done, _ = job(tmp_path, tools, type_, asked)
    assert done.returncode == 2
    assert f"iogauge: guard: {reason}" in done.stderr
    assert "kernel" not in done.stdout


def test_a_tool_that_refuses_ends_the_job_with_its_own_words(tmp_path, tools):
    stand_in(tools, "lfs", 'echo "error: setstripe: bad pool" >&2; exit 1')
    done, _ = job(tmp_path, tools, "lustre", PLAIN)
    assert done.returncode == 2
    assert "the layout could not be set: lfs setstripe -c 4 -S 1048576 -p flash" in done.stderr
    assert "error: setstripe: bad pool" in done.stderr
    assert "kernel" not in done.stdout


def test_without_a_tool_and_without_a_wish_the_case_runs_and_says_that_nothing_is_known(tmp_path, tools):
    done, _ = job(tmp_path, tools, "lustre", DEFAULT)
    assert done.returncode == 0
    words, problems = verdict(DEFAULT, *read_back("lustre", tmp_path / "stage"))
    assert words == "not known (lfs is not in PATH here) (default)"
    assert problems == []
