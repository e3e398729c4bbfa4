"""What a case writes is known before it is submitted; what cannot fit is skipped with the sums, and nothing is queued."""

from __future__ import annotations

import os
import re
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import data_left
from samples import case, make_night
from test_reframe_checks import assert_no_rate, copy_of_site, needs_two_cores, reframe, use_built_kernels

from iogauge import nightly, preflight, quota, terminal
from iogauge.judge import skipped as skipped_verdict
from iogauge.measurement import Measurement
from iogauge.preflight import Left, NotSeenHere, Preflight, Volume, look, refusal, what_is_left
from iogauge.quota import Quota, in_units
from iogauge.report import render
from iogauge.series import fingerprint
from iogauge.sites import FileSystem

GIB = 1 << 30

#: The CLAIX study: 5 steps of 4,194,304 particles a rank, 48 ranks a node, on a quota of 250 GB.
CLAIX_BYTES_A_RANK = 5 * 4194304 * 32
CLAIX_QUOTA = 250 * 10**9
LFS_QUOTA = """\
Disk quotas for usr alice (uid 1001):
     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace
        /hpcwork 23592960       0 244140625       -   12345       0 1000000       -
"""


def volume(free: int) -> Volume:
    return Volume("/hpcwork/alice", "lustre", "mgs:/work", "/hpcwork", 10 << 50, free)


def file_system(**changes: Any) -> FileSystem:
    return FileSystem.model_validate(
        {"type": "lustre", "path": "/hpcwork/alice", "quota": "lfs quota /hpcwork", **changes}
    )


@pytest.fixture
def claix(monkeypatch):
    """A Lustre with 1 PiB free and, for one user, 250 GB of quota, 22.5 GiB of it used."""
    monkeypatch.setattr(preflight, "look", lambda *_, **__: volume(1 << 50))
    monkeypatch.setattr(quota, "run_briefly", lambda command: (0, LFS_QUOTA, ""))


def test_the_384_and_768_rank_cases_of_the_claix_study_are_refused_before_anything_is_submitted(claix):
    run_of_reframe = Preflight()
    said = {}
    for nodes in (1, 2, 4, 8, 16):
        needed = CLAIX_BYTES_A_RANK * nodes * 48
        terms = f"{nodes}x48 ranks x 5 steps x 128 MiB"
        said[nodes * 48] = run_of_reframe.begin(f"case {nodes}", needed, terms, "hpcwork", file_system(), here=False)
    assert [ranks for ranks, text in said.items() if not text] == [48, 96, 192]
    assert said[384] == (
        "writes 240.0 GiB (8x48 ranks x 5 steps x 128 MiB), 210.3 GiB are left of the 232.8 GiB quota of hpcwork "
        "for user alice"
    )
    assert said[768].startswith("writes 480.0 GiB (16x48 ranks x 5 steps x 128 MiB), 210.3 GiB are left")


def test_free_space_is_told_too_and_first():
    left = Left(volume(GIB), (Quota("user alice", 2 * GIB, 3 * GIB),))
    assert refusal(GIB, "", "work", left) == ""
    assert refusal(4 * GIB, "4 x 1", "work", left) == (
        "writes 4.0 GiB (4 x 1), 1.0 GiB are free in work (/hpcwork/alice), 2.0 GiB are left of the 3.0 GiB quota of work "
        "for user alice"
    )
    assert refusal(1 << 60, "", "work", Left(None)) == "", "what cannot be seen is the job's to guard"


@pytest.mark.parametrize(
    ("changes", "here", "reason"),
    [
        ({"type": "beeond", "path": "$IOGAUGE_NO_BEEOND_HERE"}, True, "can only be told in a job"),
        ({"type": "beeond", "path": "${IOGAUGE_NO_BEEOND_HERE}/x"}, False, "can only be told in a job"),
        ({"type": "local", "path": "/tmp"}, False, "each compute node has its own"),
        ({"type": "memory", "path": "/dev/shm"}, False, "each compute node has its own"),
        ({"type": "lustre", "path": "/"}, True, "is mounted as"),
        ({"type": "other", "path": "/no/such/folder"}, True, "No such file or directory"),
        ({"type": "other", "path": "/proc/self/mounts"}, True, "is no folder that can be written"),
    ],
)
def test_what_cannot_be_seen_from_here_is_left_to_the_job(changes, here, reason):
    with pytest.raises(NotSeenHere, match=re.escape(reason)):
        look(file_system(**changes), jobs_run_here=here)
    assert what_is_left("x", file_system(**changes), jobs_run_here=here) == Left(None)


def test_what_is_seen_is_what_df_sees(tmp_path, monkeypatch):
    monkeypatch.setenv("A_PLACE", str(tmp_path))
    seen = look(file_system(type="other", path="$A_PLACE"), jobs_run_here=False)
    assert seen.path == str(tmp_path)
    assert tmp_path.is_relative_to(seen.mount_point)
    assert 0 < seen.free <= seen.size


def test_a_quota_that_cannot_be_known_is_said_once_and_skips_nothing(monkeypatch):
    monkeypatch.setattr(preflight, "look", lambda *_, **__: volume(1 << 50))
    said: list[str] = []
    now = [0.0]
    run_of_reframe = Preflight(tell=said.append, clock=lambda: now[0])
    for name in ("a", "b", "asked again"):
        assert run_of_reframe.begin(name, GIB, "", "hpcwork", file_system(quota="no-such-lfs quota"), here=False) == ""
        run_of_reframe.end(name)
        now[0] += preflight.FRESH_SECONDS
    assert len(said) == 1
    assert said[0].startswith("hpcwork: the quota is not known: no-such-lfs quota: it ended with exit code 127")
    assert what_is_left("work", file_system(quota=None), jobs_run_here=False).notes == (
        "work: no quota command is configured, only the free space is looked at",
    )


def test_an_answer_is_kept_while_cases_are_at_work_and_asked_again_when_it_is_old_and_none_is(monkeypatch):
    """A running case's own data must not be counted as used: they are removed before the next one needs the space."""
    free = [10 * GIB]
    asked = []
    now = [0.0]

    def seen(*_: Any, **__: Any) -> Volume:
        asked.append(now[0])
        return volume(free[0])

    monkeypatch.setattr(preflight, "look", seen)
    run_of_reframe = Preflight(clock=lambda: now[0])
    target = file_system(quota=None)

    def begins(case: str) -> bool:
        return run_of_reframe.begin(case, 8 * GIB, "", "work", target, here=False) == ""

    assert begins("first")
    now[0], free[0] = 10_000, 2 * GIB
    assert begins("second"), "the first is still at work: what it has written will be gone"
    run_of_reframe.end("first")
    run_of_reframe.end("second")
    free[0] = 1 * GIB
    assert not begins("third"), "others have taken the space for good"
    assert asked == [0.0, 10_000]
    free[0] = 9 * GIB
    assert not begins("fourth"), "ten minutes have not passed"
    now[0] += preflight.FRESH_SECONDS
    assert begins("fifth")


# --- in ReFrame -------------------------------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A copy of what a site has, to change."""
    return copy_of_site(tmp_path)


def configure(site: Path, *changes: tuple[str, str]) -> None:
    config = site / "site_configs" / "local.py"
    text = config.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    config.write_text(text, encoding="utf-8")


def test_a_dry_run_asks_nobody(site, tmp_path):
    configure(site, ('"path": str(scratch)', f'"path": str(scratch), "quota": "touch {tmp_path}/asked; echo 0"'))
    name = "ParticlesCheck %nodes=1 %ranks_per_node=1 %file_system=disk %locality=CC %dimensions=1 %selection=full"
    done, _ = reframe(site, "--dry-run", name=name)
    assert "ParticlesCheck" in done.stdout
    assert not (tmp_path / "asked").exists()


def test_a_night_with_the_cases_of_the_study_shows_what_was_skipped_and_why(site, kernels, tmp_path, monkeypatch):
    """``lfs quota`` is a stand-in that prints what the real one would."""
    use_built_kernels(site, kernels)
    (tmp_path / "lfs.txt").write_text(LFS_QUOTA)
    configure(
        site,
        ('"path": str(scratch)', f'"path": str(scratch), "quota": "cat {tmp_path}/lfs.txt"'),
        ('"path": "/dev/shm"', '"path": "/dev/shm", "quota": "no-such-tool"'),
        ('"nodes": [1]', '"nodes": [8, 16]'),
        ("[ranks for ranks in (1, 2) if ranks <= cores]", "[48]"),
    )
    monkeypatch.setattr(nightly, "checkout", lambda: site)
    monkeypatch.setenv("IOGAUGE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IOGAUGE_SCRATCH", str(tmp_path))
    options = [
        "-n",
        "ParticlesCheck.*disk%locality=CC%dimensions=1%selection=full$|FormatsCheck.*memory%storage=chunked$",
    ]
    options += [
        "-S",
        "ParticlesCheck.particles=4194304",
        "-S",
        "ParticlesCheck.steps=5",
        "-S",
        "FormatsCheck.repeats=1",
    ]
    night, folder = nightly.run_night("local", "nightly", options=options)
    skipped = sorted((case.judgement for case in night.cases if not case.judgement.rows), key=lambda j: j.reasons)
    assert [judgement.verdict for judgement in skipped] == ["skipped", "skipped"]
    assert skipped[0].reasons[0].startswith("writes 240.0 GiB (8x48 ranks x 5 steps x 128.0 MiB), ")
    assert skipped[1].reasons[0].startswith("writes 480.0 GiB (16x48 ranks x 5 steps x 128.0 MiB), ")
    quota_of_alice = "210.3 GiB are left of the 232.8 GiB quota of disk for user alice"
    assert all(judgement.reasons[0].endswith(quota_of_alice) for judgement in skipped)
    assert not [path for path in folder.rglob("rfm_job.sh") if "ParticlesCheck" in str(path)], (
        "a job script was written"
    )
    assert [note.partition(": no-such")[0] for note in night.notes] == ["memory: the quota is not known"]
    assert night.counts["skipped"] == 2
    assert "2 skipped" in terminal.counts_line(night)
    page = render(night)
    assert page.count(quota_of_alice) == 4, "in what to look at, and in the table of all series"
    assert "the quota is not known: no-such-tool" in page


def test_skipped_cases_alone_are_a_night_without_a_measurement():
    left_out = case("write").model_copy(update={"judgement": skipped_verdict("writes too much"), "name": "Large"})
    assert make_night(case("write"), left_out).exit_code == 0
    assert make_night(left_out).exit_code == 2


# --- the sums themselves ----------------------------------------------------------------------------------------------

#: The shapes of files that the checks' sums tell apart; sizes that do not divide well. All of the full suite was looked at
#: in this way, at these sizes and at the default ones: the most was 97 % of what was said.
EXTREMES = (
    ("ParticlesCheck", "locality=CC%dimensions=1%selection=full"),
    ("ParticlesModesCheck", "mode=append"),
    ("ParticlesModesCheck", "mode=unlimited-gzip"),
    ("SegmentsCheck", "access=array-chunked"),
    ("BlocksCheck", "access=file-per-process%halo=1"),
    ("TilesCheck", "representation=rank2-step-chunked-collective"),
    ("MetadataCheck", "place=shared-with-bytes"),
    ("MetadataCheck", "place=hdf5-file-per-process"),
)
ODD = {
    "particles": 100000,
    "block_bytes": 4194304,
    "transfer_bytes": 65536,
    "size": "33x17x5",
    "TilesCheck.steps": 6,
    "TilesCheck.arrays": 20,
    "TilesCheck.rows": 16,
    "TilesCheck.columns": 16,
    "objects": 500,
}


def watch(most: dict[str, int], ended: threading.Event) -> None:
    """The most bytes that were below each case's folder at once, as far as looking often can tell."""
    while not ended.is_set():
        for folder in Path("/dev/shm").glob("iogauge-case.*"):
            total = 0
            for where, _, names in os.walk(folder):
                for name in names:
                    with suppress(OSError):  # removed meanwhile
                        total += Path(where, name).stat().st_blocks * 512
            most[str(folder)] = max(total, most.get(str(folder), 0))
        time.sleep(0.01)


#: A stand-in for lfs: it has what was asked for, but in the files of tiles.
LFS = """\
#!/bin/bash
case "$*" in
    setstripe*) exit ;;
    *.h5) [[ $PWD == *TilesCheck* ]] && count=2 || count=4
          printf 'lmm_stripe_count:  %s\\nlmm_stripe_size:   1048576\\nlmm_pattern:       raid0\\n' $count ;;
    *) echo 'stripe_count:  4 stripe_size:   1048576 pattern:       raid0 stripe_offset: -1' ;;
esac
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, kernels: Path) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The extremes, run on memory that passes for a Lustre; their entries in ReFrame's report, and what was seen there."""
    folder = tmp_path_factory.mktemp("extremes")
    copy = copy_of_site(folder)
    use_built_kernels(copy, kernels)
    layout = '"layout": {"stripe_count": 4, "stripe_size": "1M"}, "guard": {"mounted_as": []}'
    configure(copy, ('{"type": "memory", "path": "/dev/shm"}', f'{{"type": "lustre", "path": "/dev/shm", {layout}}}'))
    (folder / "lfs").write_text(LFS)
    (folder / "lfs").chmod(0o755)
    names = "|".join(f"{check}.*ranks_per_node=2%.*memory%{pattern}$" for check, pattern in EXTREMES)
    settings = [word for name, value in ODD.items() for word in ("-S", f"{name}={value}")]
    most: dict[str, int] = {}
    ended = threading.Event()
    watcher = threading.Thread(target=watch, args=(most, ended))
    watcher.start()
    try:
        options = ("-r", "-S", "repeats=1", "-S", "warmup=0", *settings, "-n", names)
        done, entries = reframe(copy, *options, PATH=f"{folder}:{os.environ['PATH']}")
    finally:
        ended.set()
        watcher.join()
    assert len(entries) == len(EXTREMES), (done.stdout, [entry["display_name"] for entry in entries])
    return entries, most


def stage_of(entry: dict[str, Any]) -> Path:
    return Path((entry["result"] == "pass" and entry["outputdir"]) or entry["stagedir"])


@needs_two_cores
def test_no_case_writes_more_than_it_said_and_none_says_much_more(ran):
    entries, most = ran
    for entry in entries:
        assert entry["measurements"], entry["fail_reason"]
        script = (stage_of(entry) / "rfm_job.sh").read_text(encoding="utf-8")
        said = int(re.search(r'iogauge_case_folder memory "/dev/shm" (\d+)', script)[1])
        written = max(record["file_bytes"] for record in entry["measurements"])
        seen = most.get((stage_of(entry) / "case_folder.txt").read_text(encoding="utf-8").splitlines()[0], 0)
        assert max(written, seen) <= said, (entry["display_name"], written, seen, said)
        if "Metadata" not in entry["display_name"]:  # counted by the object, a block each
            assert said < 1.3 * written + 4 * (1 << 20), (entry["display_name"], in_units(said), in_units(written))


@needs_two_cores
def test_the_layout_of_a_file_of_every_kernel_is_in_the_report_and_another_one_than_asked_for_is_invalid(ran):
    """``lfs`` is a stand-in; the files that it was asked for are the kernels' own, kept empty."""
    entries, _ = ran
    for entry in entries:
        stage = stage_of(entry)
        assert (stage / "layout_folder.txt").exists()
        assert (stage / "layout_file.txt").exists() == ("Metadata" not in entry["display_name"])
        if "TilesCheck" in entry["display_name"]:
            assert (entry["verdict"], entry["fail_phase"]) == ("invalid", "sanity")
            assert (
                "a data file has 2 stripes of 1 MiB, 4 stripes of 1 MiB was asked for (stripe count 4, not 2)"
                in entry["fail_reason"]
            )
            assert_no_rate(entry)
        else:
            assert entry["judgement"]["layout"].endswith("4 stripes of 1 MiB (as asked for)"), entry["display_name"]
            volume = (stage / "file_system.txt").read_text(encoding="utf-8").strip() + " 4 stripes of 1 MiB"
            first = Measurement.model_validate(entry["measurements"][0])
            assert entry["judgement"]["rows"][0]["fingerprint"] == fingerprint(first, volume), (
                "another layout, other bands"
            )
        assert data_left(stage) == []
