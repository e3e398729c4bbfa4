"""The I/O fingerprint: what became otherwise is told in words, defects are found in one run, what was not counted is named."""

from __future__ import annotations

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import CHECKOUT, MPI_ENVIRONMENT, needs_mpich, run_mpi
from ruamel.yaml import YAML
from test_darshan_runs import runtime

from iogauge import arms
from iogauge.cli import main
from iogauge.darshan.preload import configuration, files_of_case, variables
from iogauge.errors import InputError, Refusal
from iogauge.fingerprint import text
from iogauge.fingerprint.cases import CASES, FOLDER, kept_at
from iogauge.fingerprint.check import layers_for
from iogauge.fingerprint.counted import files_of, plain_name, read_processes
from iogauge.fingerprint.darshan import as_darshan_tells, from_logs
from iogauge.fingerprint.differences import KINDS, differences
from iogauge.fingerprint.layouts import layout_of
from iogauge.fingerprint.model import Calls, File, Fingerprint, Layout, Object, Spread, bin_of, calls_of
from iogauge.fingerprint.record import Build, record
from iogauge.fingerprint.repeated import same_every_time

REFERENCES = CHECKOUT / "reference_values"
MIB = 1 << 20


# --- without a run ----------------------------------------------------------------------------------------------------


def moves(*sizes: tuple[int, int], offset: int = 0) -> Calls:
    """By one rank: (size, how often)."""
    return calls_of([[(offset, size, times) for size, times in sizes]], moves=True, placed=True)


def numbered(number: int) -> Calls:
    return Calls(calls=Spread.of([number]))


def print_of(write: dict[str, Calls], *, read: dict[str, Calls] | None = None, **fields) -> Fingerprint:
    files = {"case0-file0.h5": File(bytes=MIB, calls={"write": write, "read": read or {}})}
    return Fingerprint(
        **{
            "source": "counter",
            "kernel": "particles",
            "pattern": "CC",
            "ranks": 1,
            "hdf5": "1.10.8",
            "mpi": "Open MPI v4.1.4",
            "runs": 1,
            "units": {"step": 5, "dataset": 8},
            "files": files,
            **fields,
        }
    )


def texts(before: Fingerprint, after: Fingerprint) -> list[str]:
    return [finding.text for finding in differences(before, after)]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, {"fsync": numbered(5)}, "fsync: 0 became 5 (one a step)"),
        ({"fsync": numbered(1)}, {"fsync": numbered(11)}, "fsync: 1 became 11 (2 more a step)"),
        (
            {"pwrite, data": moves((8 * MIB, 1))},
            {"pwrite, data": moves((4096, 2048))},
            "one 8 MiB data write became 2048 of 4 KiB",
        ),
        (
            {"pwrite, metadata": moves((272, 32))},
            {"pwrite, metadata": moves((272, 72))},
            "4 metadata writes a dataset became 9; 8704 bytes became 19584",
        ),
        (
            {"pwrite, metadata": moves((272, 31))},
            {"pwrite, metadata": moves((272, 32))},
            "metadata writes: 31 became 32; 8432 bytes became 8704",
        ),
        (
            {"pwrite, data": moves((65536, 3))},
            {"pwrite, data": moves((65536, 2), (32768, 2))},
            "one 64 KiB data write became 2 of 32 KiB",
        ),
        (
            {"pwrite, data": moves((65536, 3))},
            {"pwrite, data": moves((65536, 3), (100, 1))},
            "data writes: 3 became 4: one of 100 bytes more",
        ),
        (
            {"MPI_File_write_at_all": moves((65536, 16))},
            {"MPI_File_write_at": moves((65536, 16))},
            "collective writes became independent: 16 collective and 0 independent became 0 collective and 16 independent"
            " MPI-IO writes",
        ),
        (
            {"pwrite, data": moves((65536, 8))},
            {"pwrite, data": moves((65536, 8), offset=2048)},
            "8 of 8 data writes that begin at a multiple of 1 MiB became 0",
        ),
        (
            {"pwrite, data": moves((4096, 2))},
            {"pwritev, data": moves((4096, 2))},
            "pwrite became pwritev (2 data writes)",
        ),
        ({"lseek": numbered(4)}, {"lseek": numbered(9)}, "lseek: 4 became 9"),
        ({"open": numbered(1)}, {"open": numbered(1), "open, failed": numbered(1)}, "failed open: 0 became 1"),
    ],
)
def test_a_change_is_told_in_words_with_its_numbers(before, after, said):
    assert texts(print_of(before), print_of(after)) == [said]
    assert texts(print_of(before), print_of(before)) == texts(print_of(after), print_of(after)) == []


def test_what_is_seen_twice_on_its_way_down_is_told_once():
    before = print_of({"pwrite, data": moves((65536, 1)), "MPI_File_write_at": moves((65536, 1))})
    after = print_of({"pwrite, data": moves((32768, 2)), "MPI_File_write_at": moves((32768, 2))})
    assert texts(before, after) == ["one 64 KiB data write became 2 of 32 KiB"]
    only_below = print_of({"pwrite, data": moves((32768, 2)), "MPI_File_write_at": moves((65536, 1))})
    assert texts(before, only_below) == texts(before, after)
    assert texts(only_below, after) == ["one 64 KiB independent MPI-IO write became 2 of 32 KiB"]


def test_a_share_that_wanders_between_ranks_is_told():
    shared = {"pwrite, data": calls_of([[(0, 4096, 2)], [(8192, 4096, 2)]], moves=True, placed=True)}
    alone = {"pwrite, data": calls_of([[(0, 4096, 2), (8192, 4096, 2)], []], moves=True, placed=True)}
    assert texts(print_of(shared, ranks=2), print_of(alone, ranks=2)) == [
        "data writes are shared otherwise: 4 (2 a rank) became 4 (0 to 4 a rank)"
    ]


def dataset(offset: int, **fields) -> Object:
    return Object(kind="dataset", layout="contiguous", offset=offset, stored_bytes=100, **fields)


def laid_out(**objects: Object) -> Fingerprint:
    return print_of({}, layouts={"case0-file0.h5": Layout(superblock_version=0, objects=objects)})


def test_a_dataset_that_is_no_longer_aligned_is_named_before_those_that_only_moved():
    before = laid_out(x=dataset(MIB), y=dataset(2 * MIB), z=dataset(3 * MIB))
    after = laid_out(x=dataset(MIB), y=dataset(2 * MIB + 2048), z=dataset(4 * MIB))
    assert texts(before, after) == [
        f"dataset y: offset no longer aligned to 1 MiB: {2 * MIB} became {2 * MIB + 2048}",
        f"dataset z lies elsewhere: {3 * MIB} became {4 * MIB}",
    ]


def test_datasets_that_only_happened_to_lie_well_are_not_called_aligned():
    before = laid_out(x=dataset(2104), y=dataset(4096), z=dataset(9000))
    after = laid_out(x=dataset(2104), y=dataset(4100), z=dataset(9004))
    assert texts(before, after) == ["2 datasets (y and 1 more) lie elsewhere: 4096 became 4100"]


def test_the_same_change_of_many_objects_is_told_once():
    before = laid_out(x=dataset(8, header_bytes=272), y=dataset(9, header_bytes=272), g=Object(kind="group"))
    after = laid_out(
        x=dataset(8, header_bytes=288), y=dataset(9, header_bytes=288), g=Object(kind="group"), h=Object(kind="group")
    )
    assert texts(before, after) == [
        "object h is new",
        "2 datasets (x and 1 more): bytes of the object header: 272 became 288",
    ]


def test_reads_while_a_file_is_written_and_calls_while_it_is_read_are_told_as_such():
    before = print_of({"pread": moves((8, 1))}, read={"pread": moves((8, 1)), "lseek": numbered(1)})
    after = print_of({"pread": moves((8, 2))}, read={"pread": moves((8, 2)), "lseek": numbered(2)})
    assert texts(before, after) == [
        "reads: 1 became 2: one of 8 bytes more (in the file opened to be written)",
        "reads: 1 became 2: one of 8 bytes more",
        "lseek: 1 became 2 (in the file opened to be read)",
    ]


def test_what_matters_most_comes_first():
    before = print_of(
        {"MPI_File_write_at_all": moves((9, 4)), "lseek": numbered(1)}, read={"pread, metadata": moves((8, 1))}
    )
    after = print_of(
        {"MPI_File_write_at": moves((9, 4)), "lseek": numbered(2), "fsync": numbered(5)},
        read={"pread, metadata": moves((8, 2))},
    )
    kinds = [finding.kind for finding in differences(before, after)]
    assert kinds == ["collective", "sync", "metadata", "calls"] == sorted(kinds, key=KINDS.index)


def test_different_cases_are_not_compared():
    with pytest.raises(InputError, match=r"ranks: not of the same case: 1 in one, 2 in the other"):
        differences(print_of({}), print_of({}, ranks=2))
    with pytest.raises(InputError, match=r"options: not of the same case: --steps 1 in one, --steps 2"):
        differences(print_of({}, options=("--steps", "1")), print_of({}, options=("--steps", "2")))


def test_only_what_is_the_same_every_time_is_compared():
    first = print_of({"fsync": numbered(1), "fcntl lock": numbered(3), "pwrite": moves((10, 1))})
    second = print_of({"fsync": numbered(1), "fcntl lock": numbered(4), "pwrite": moves((5, 2)), "lseek": numbered(1)})
    kept = same_every_time([first, second])
    where = "files/case0-file0.h5/calls/write"
    assert {f"{where}/fcntl lock/calls", f"{where}/lseek", f"{where}/pwrite/calls"} <= {*kept.not_deterministic}
    assert kept.files["case0-file0.h5"].calls["write"]["fsync"] == numbered(1)
    assert kept.runs == 2
    assert texts(kept, second) == texts(kept, first) == []
    assert texts(kept, print_of({"fsync": numbered(2), "fcntl lock": numbered(9)})) == ["fsync: 1 became 2"]


def test_numbers_stay_where_only_the_ranks_shares_of_them_wander():
    runs = [
        print_of({"fcntl lock": Calls(calls=Spread.of(each))}, ranks=2) for each in ([3, 1], [2, 2])
    ]  # four each time
    kept = same_every_time(runs)
    assert kept.files["case0-file0.h5"].calls["write"]["fcntl lock"].calls == Spread(total=4)
    assert kept.not_deterministic == ("files/case0-file0.h5/calls/write/fcntl lock/calls of each rank",)


def test_runs_of_different_libraries_are_not_taken_together():
    with pytest.raises(Refusal, match=r"differ in hdf5: 1\.10\.8, 1\.14\.6"):
        same_every_time([print_of({}), print_of({}, hdf5="1.14.6")])


def test_the_text_is_read_as_it_was_written_and_the_same_each_time(tmp_path):
    spread = Calls(calls=Spread.of([1, 16]), bytes=Spread.of([5, 5]), sizes={5: 2}, bins={"0_100": 2})
    one = print_of({"pwrite, data": spread}, layouts=laid_out(x=dataset(8, extent=(3, 4))).layouts)
    path = tmp_path / "one.yaml"
    text.save(one, path)
    assert text.read(path) == one
    assert text.to_text(text.read(path)) == path.read_text()
    assert "calls: 17 (1 to 16 a rank), bytes: 10 (5 a rank), sizes: {5: 2}" in path.read_text()


def test_a_mistake_in_a_file_is_told_with_its_line(tmp_path):
    path = tmp_path / "one.yaml"
    text.save(print_of({"fsync": numbered(1)}), path)
    path.write_text(path.read_text().replace("1 (1 a rank)", "one"))
    with pytest.raises(InputError, match=r"one\.yaml:\d+: files\..*calls: a number such as '32', '32 \(16 a rank\)'"):
        text.read(path)


def test_sizes_are_in_darshans_bins():
    assert [bin_of(size) for size in (0, 100, 101, 1024, 1025, MIB, MIB + 1)] == [
        *("0_100", "0_100", "100_1K", "100_1K", "1K_10K", "100K_1M", "1M_4M")
    ]


def left(folder: Path, rank: int, ranks: int, **fields) -> None:
    document = {
        "schema": "iogauge.calls/1",
        "rank": rank,
        "ranks": ranks,
        "host": "n1",
        "finalized": True,
        "lost": 0,
        "files": [
            {"name": "case-case0-file0.h5", "bytes": 100},
            {"name": "case-case0-file0.h5.locktest.0", "bytes": 0},
        ],
        "calls": [[0, "write", "pwrite", False, 10, 20, 1], [1, "write", "pwrite", False, 0, 1, 1]],
        **fields,
    }
    (folder / f"rank{rank}-n1-{os.getpid()}{len(list(folder.iterdir()))}.json").write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        ([{}, {}], "rank 2 of 3 left no counts: it was killed, or could not be preloaded"),
        ([{}, {"finalized": False}, {}], "rank 1 of 3 ended before MPI_Finalize"),
        ([{}, {}, {"lost": 7}], "7 calls were not counted: too many different accesses; take a smaller case"),
        ([{}, {"rank": 0, "ranks": 1}, {}], "2 processes say that they are rank 0: does the launcher belong to"),
        ([], "the counter was in no process: the program is linked statically"),
    ],
)
def test_counts_that_are_not_of_all_ranks_are_refused(tmp_path, ranks, message):
    for rank, fields in enumerate(ranks):
        left(tmp_path, **{"rank": rank, "ranks": 3, **fields})
    with pytest.raises(Refusal, match=message):
        read_processes(tmp_path, 3)


def test_half_a_file_of_counts_is_refused_by_its_name(tmp_path):
    (tmp_path / "rank0-n1-5.json").write_text('{"schema": "iogauge.calls/1", "rank": 0, ')
    with pytest.raises(Refusal, match=r"rank0-n1-5\.json: not what the counter writes"):
        read_processes(tmp_path, 1)


def test_writes_are_told_apart_by_where_hdf5_has_the_datasets(tmp_path):
    places = [[0, "write", "pwrite", False, offset, 20, 1] for offset in (10, 100, 95, 140)]
    names = ("case-case0-file0.h5", "case-case0-file0.h5.locktest.0", "case-case0-file0.h5-2378321675-331.lock")
    left(tmp_path, 0, 1, calls=places, files=[{"name": name, "bytes": 1} for name in names])
    files = files_of(read_processes(tmp_path, 1), "case", {"case-case0-file0.h5": [(100, 120), (130, 160)]})
    assert list(files) == ["case0-file0.h5"]
    kinds = files["case0-file0.h5"].calls["write"]
    assert {name: one.calls.total for name, one in kinds.items()} == {
        "pwrite, both": 1,
        "pwrite, data": 2,
        "pwrite, metadata": 1,
    }


def test_names_lose_what_changes_from_run_to_run():
    assert plain_name("yy-case0-file0-rank17.dat", "yy") == "case0-file0-rank*.dat"


def test_what_h5layout_does_not_print_is_refused():
    with pytest.raises(Refusal, match="h5layout: not what it prints"):
        layout_of('{"schema": "iogauge.layout/2"}')


def test_another_mpis_calls_below_mpi_io_are_not_held_against_it():
    kept, found = print_of({"pwrite": moves((4, 1))}), print_of({"pwrite": moves((2, 2))}, mpi="Open MPI v5.0.3")
    assert differences(kept, found, layers_for(kept, found)) == ()
    assert differences(kept, found)
    romio = found.model_copy(update={"mpi": kept.mpi, "environment": {"OMPI_MCA_io": "romio321"}})
    assert "posix" not in layers_for(kept, romio)


def test_a_darshan_log_is_compared_by_what_both_tell():
    logs = CHECKOUT / "tests" / "darshan_logs"
    found = from_logs([logs / "kernel_posix.darshan"], only="", kernel="particles", pattern="CC", hdf5=None)
    assert found.source == "darshan"
    calls = found.files["all files"].calls["any"]
    assert calls["write"].calls.total == sum(calls["write"].bins.values())
    mine = print_of(
        {"pwrite, data": moves((5, calls["write"].calls.total + 1)), "ftruncate": numbered(3)}, ranks=found.ranks
    )
    told = texts(found, mine)
    assert any(line.startswith("writes: ") for line in told)
    assert not any("ftruncate" in line for line in told)


def kept_files() -> list[Path]:
    return sorted((REFERENCES / FOLDER).rglob("*.yaml"))


def test_what_is_kept_lies_in_its_place_in_its_normal_form_and_of_todays_cases():
    assert kept_files()
    for path in kept_files():
        kept = Fingerprint.model_validate(YAML(typ="safe").load(path))
        assert kept_at(REFERENCES, kept) == path
        assert text.to_text(kept) == path.read_text(), path
        assert CASES[kept.case] == kept.options


# --- with runs --------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _mpi(monkeypatch):
    for name, value in MPI_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


OPTIONS = ("--particles", "16384", "--steps", "2", "--alignment", "64K")


def taken(
    kernels: Path,
    folder: Path,
    *options: str,
    ranks: int = 2,
    preload: tuple[Path, ...] = (),
    kernel: str = "particles",
) -> Fingerprint:
    """In one run."""
    build = Build.at(kernels, preload=[*map(str, preload)])
    return record(build, kernel, "CC", options or OPTIONS, ranks=ranks, folders=[folder], runs=1)


@pytest.fixture(scope="module")
def good(kernels, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in MPI_ENVIRONMENT.items():
            patch.setenv(name, value)
        return taken(kernels, tmp_path_factory.mktemp("good"))


def test_the_counter_counts_what_the_kernel_says_it_moved(good):
    calls = good.files["case0-file0.h5"].calls
    logical = 2 * 2 * 16384 * 32
    assert calls["write"]["pwrite, data"].bytes == Spread(total=logical, least=logical // 2, most=logical // 2)
    assert sum(c.bytes.total for kind, c in calls["read"].items() if kind in ("pread, data", "pread, both")) >= logical
    assert calls["write"]["pwrite, data"].aligned[4096] == calls["write"]["pwrite, data"].calls.total == 32
    assert calls["write"]["fsync"].calls.total == calls["write"]["MPI_File_sync"].calls.total == 2
    assert good.units == {"step": 2, "dataset": 16}
    assert all(o.offset % 65536 == 0 for o in good.layouts["case0-file0.h5"].datasets.values())


def test_names_and_storage_make_no_difference(good, kernels, tmp_path):
    memory = Path("/dev/shm")
    again = taken(kernels, memory if os.access(memory, os.W_OK) else tmp_path)
    assert differences(good, again) == ()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("FAULT_FSYNC=8", ["fsync: 2 became 6 (one more a step and rank)"]),
        ("FAULT_SPLIT=1", ["2 data writes of 64 KiB became 4 of 32 KiB"]),
        ("FAULT_UNALIGNED=3", ["dataset /Timestep_0/z: offset no longer aligned to 64 KiB: 393216 became 395264"]),
    ],
)
def test_a_planted_defect_is_found_in_one_run_and_named(good, kernels, faults, tmp_path, monkeypatch, fault, said):
    monkeypatch.setenv(*fault.split("="))
    found = texts(good, taken(kernels, tmp_path, preload=(faults,)))
    assert found[: len(said)] == said
    assert len(found) == len(said) or "UNALIGNED" in fault
    assert list(tmp_path.iterdir()) == []


def test_an_arms_kernels_run_with_its_launcher_and_variables(good, kernels, tmp_path, monkeypatch):
    monkeypatch.setattr("iogauge.arms.build", lambda arm: arms.Kernels(folder=kernels, flags=None))
    chosen = {"hdf5": None, "mpi": None, "prefix": None, "compiler": None}
    arm = arms.Arm(
        name="a", kind="prefix", launcher="mpirun", variables={**MPI_ENVIRONMENT, "OMPI_MCA_io": "ompio"}, **chosen
    )
    found = record(Build.of(arm), "particles", "CC", OPTIONS, ranks=2, folders=[tmp_path], runs=1)
    assert found.environment == {"OMPI_MCA_io": "ompio"}
    assert differences(good, found) == ()


def test_collective_transfers_that_are_asked_for_independently_are_told(kernels, tmp_path):
    case = ("--particles", "1024", "--steps", "1", "--interface", "mpiio")
    together = taken(kernels, tmp_path, *case, "--collective", "yes")
    alone = taken(kernels, tmp_path, *case)
    alone = alone.model_copy(update={"options": together.options})
    assert differences(together, alone)[0].text.startswith("collective writes became independent: 16 collective and 0")


@pytest.mark.skipif(not runtime(), reason="needs Darshan's runtime: IOGAUGE_DARSHAN or darshan-config in PATH")
@pytest.mark.parametrize(
    "case",
    [
        "particles/CI-collective",
        "segments/interleaved-collective",
        "tiles/chunked",
        "metadata/hdf5",
        "blocks/collective",
    ],
)
def test_darshan_saw_the_same_as_the_counter(case, kernels, tmp_path):
    kernel, options = case.partition("/")[0], CASES[case]
    counted = taken(kernels, tmp_path, *options, kernel=kernel)
    data = tmp_path / "iogauge-case.data"
    data.mkdir()
    (tmp_path / "darshan.conf").write_text(configuration("/iogauge-case[.]"))
    environment = (f"{name}={value}" for name, value in variables(runtime(), str(tmp_path)).items())
    done = run_mpi(2, "env", *environment, kernels / kernel, "--dir", data, "--repeats", "1", "--warmup", "0", *options)
    assert done.returncode == 0, done.stderr
    log = from_logs([tmp_path / "darshan.log"], only=files_of_case(), kernel=kernel, pattern="CC", hdf5=None)
    assert differences(counted, log) == ()
    both = [as_darshan_tells(one).files["all files"].calls["any"] for one in (counted, log)]
    assert both[0].keys() == both[1].keys() >= {"open", "read", "write", "fsync", "MPI_File_open"}
    assert both[1]["write"].bytes.total > 0


@pytest.mark.cluster
def test_ranks_on_several_nodes_of_slurm_leave_the_same_fingerprint(good, kernels, minicluster, monkeypatch):
    for name, value in {**minicluster.environment(), "OMPI_MCA_mpi_yield_when_idle": "1"}.items():
        monkeypatch.setenv(name, value)
    build = Build.at(kernels, "srun -N 2 -n {ranks} --overcommit")
    found = record(build, "particles", "CC", OPTIONS, ranks=2, folders=[minicluster.shared], runs=1)
    assert differences(good, found) == ()


@needs_mpich
def test_mpich_is_counted_with_a_counter_of_its_own(tmp_path):
    sources = sorted((CHECKOUT / "kernels" / "fingerprint").glob("*_calls.c"))
    program = tmp_path / "program.c"
    program.write_text(
        "#include <mpi.h>\nint main(int c, char **v) { MPI_File f; int r; double d[2] = {0}; MPI_Init(&c, &v);\n"
        "MPI_Comm_rank(MPI_COMM_WORLD, &r); MPI_File_open(MPI_COMM_WORLD, v[1], MPI_MODE_CREATE | MPI_MODE_RDWR,\n"
        "MPI_INFO_NULL, &f); MPI_File_write_at_all(f, 16 * r, d, 2, MPI_DOUBLE, MPI_STATUS_IGNORE);\n"
        "MPI_File_iwrite_at(f, 16 * r, d, 1, MPI_DOUBLE, &(MPI_Request){0}); MPI_File_close(&f); MPI_Finalize(); }\n"
    )
    counter, folder = tmp_path / "libcounter.so", CHECKOUT / "kernels" / "fingerprint"
    for command in (
        ["mpicc.mpich", "-shared", "-fPIC", "-o", counter, folder / "counts.c", *sources, "-ldl", "-pthread"],
        ["mpicc.mpich", "-w", "-o", tmp_path / "program", program],
    ):
        subprocess.run([*map(str, command)], check=True)
    case, counts = tmp_path / "case", tmp_path / "counts"
    case.mkdir()
    counts.mkdir()
    names = (f"LD_PRELOAD={counter}", f"IOGAUGE_FINGERPRINT_CASE={case}", f"IOGAUGE_FINGERPRINT_TO={counts}")
    done = run_mpi(2, "env", *names, tmp_path / "program", f"ufs:{case}/data", launcher="mpirun.mpich")
    assert done.returncode == 0, done.stderr
    calls = files_of(read_processes(counts, 2), "case", {})["data"].calls["write"]
    assert calls["MPI_File_write_at_all"].bytes == Spread.of([16, 16])
    assert calls["MPI_File_iwrite_at"].bytes == Spread.of([8, 8])
    assert sum(c.bytes.total for name, c in calls.items() if name.startswith("pwrite") or name == "write") >= 32


@pytest.fixture
def build_of(tmp_path, kernels):
    """A build folder with the counter, and a program in a kernel's place."""

    def made(source: str, *flags: str) -> Path:
        folder = tmp_path / "build"
        folder.mkdir()
        (folder / "libiogauge_fingerprint.so").symlink_to(kernels / "libiogauge_fingerprint.so")
        (tmp_path / "particles.c").write_text(source)
        done = subprocess.run(
            ["mpicc", *flags, "-o", folder / "particles", tmp_path / "particles.c"], capture_output=True, check=False
        )
        if done.returncode != 0:
            pytest.skip(f"needs a static libc: {done.stderr.decode()[-200:]}")
        return folder

    return made


def test_a_static_program_is_refused_before_it_runs(tmp_path, kernels):
    folder = tmp_path / "build"
    folder.mkdir()
    (folder / "libiogauge_fingerprint.so").symlink_to(kernels / "libiogauge_fingerprint.so")
    source = tmp_path / "particles.c"
    source.write_text("int main(void) { return 0; }\n")
    done = subprocess.run(["cc", "-static", "-o", folder / "particles", source], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("needs a static libc")
    with pytest.raises(InputError, match="is linked statically, so that nothing can be preloaded"):
        taken(folder, tmp_path)


def test_a_launcher_that_does_not_hand_the_preload_on_is_named(tmp_path, kernels):
    launcher = tmp_path / "launcher"
    launcher.write_text('#!/bin/sh\nshift\nwhile [ "${1#LD_PRELOAD=}" = "$1" ]; do shift; done\nshift\nexec env "$@"\n')
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    build = Build.at(kernels, f"{shlex.quote(str(launcher))} -np {{ranks}}")
    with pytest.raises(Refusal, match="the counter was in no process"):
        record(build, "particles", "CC", ("--particles", "100"), ranks=1, folders=[tmp_path], runs=1)


def test_a_rank_that_dies_is_told_with_what_the_kernel_said_and_nothing_stays(tmp_path, build_of):
    dies = "#include <mpi.h>\n#include <signal.h>\nint main(int c, char **v) { int r; MPI_Init(&c, &v); "
    dies += "MPI_Comm_rank(MPI_COMM_WORLD, &r); if (r == 1) raise(SIGKILL); MPI_Finalize(); return 0; }\n"
    data = tmp_path / "data"
    data.mkdir()
    with pytest.raises(Refusal, match=r"the kernel ended with exit code \d+"):
        taken(build_of(dies), data)
    assert list(data.iterdir()) == []


def test_many_threads_are_counted_to_the_last_call(tmp_path, build_of, kernels):
    source = tmp_path / "threads.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <pthread.h>\n#include <unistd.h>\nstatic int fd;\n"
        "static void *work(void *n) { for (int i = 0; i < 5000; i++) pwrite(fd, n, 1, i); return n; }\n"
        "int main(int c, char **v) { pthread_t t[8]; fd = open(v[c - 1], O_RDWR | O_CREAT, 0666);\n"
        "for (int i = 0; i < 8; i++) pthread_create(&t[i], 0, work, v); for (int i = 0; i < 8; i++) pthread_join(t[i], 0);\n"
        "close(fd); return 0; }\n"
    )
    subprocess.run(["cc", "-w", "-o", tmp_path / "threads", source, "-pthread"], check=True)
    case, counts = tmp_path / "case", tmp_path / "counts"
    case.mkdir()
    counts.mkdir()
    environment = {
        "LD_PRELOAD": str(kernels / "libiogauge_fingerprint.so"),
        "IOGAUGE_FINGERPRINT_CASE": str(case),
        "IOGAUGE_FINGERPRINT_TO": str(counts),
    }
    subprocess.run([tmp_path / "threads", "case//./data"], cwd=tmp_path, env=os.environ | environment, check=True)
    calls = files_of(read_processes(counts, 1), "case", {})["data"].calls["write"]
    assert (calls["pwrite"].calls.total, calls["pwrite"].bytes.total) == (40000, 40000)
    assert calls["open to create"].calls.total == calls["close"].calls.total == 1


# --- the command ------------------------------------------------------------------------------------------------------


def run(*words: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["fingerprint", *map(str, words)])
    return done.exit_code, done.output


def test_the_command_says_the_same_different_and_could_not(tmp_path, good):
    one, two, other = (tmp_path / f"{name}.yaml" for name in ("one", "two", "other"))
    text.save(good, one)
    calls = good.files["case0-file0.h5"].calls
    synced = File(calls={**calls, "write": calls["write"] | {"fsync": Calls(calls=Spread.of([3, 3]))}})
    text.save(good.model_copy(update={"files": {"case0-file0.h5": synced}}), two)
    text.save(good.model_copy(update={"ranks": 3}), other)
    assert run("compare", one, one) == (0, f"HDF5 {good.hdf5}, {good.mpi} → HDF5 {good.hdf5}, {good.mpi}: the same\n")
    code, said = run("compare", one, two)
    assert (code, "sync  fsync: 2 became 6 (one more a step and rank)" in said) == (1, True)
    assert run("compare", one, other)[0] == 2
    code, said = run("show", one)
    assert (code, "dataset /Timestep_0/z: " in said) == (0, True)


def test_check_says_when_nothing_is_kept_for_the_version_at_hand(tmp_path, kernels, monkeypatch, good):
    monkeypatch.setattr("iogauge.nightly.checkout", lambda: tmp_path)
    case = ("check", "particles/CI", "--kernels", kernels, "--dir", tmp_path, "--ranks", "1")
    code, said = run(*case)
    assert (code, f"none is committed for HDF5 {good.hdf5}, {good.mpi} on 1 rank; there is nothing" in said) == (
        2,
        True,
    )
    code, said = run("record", *case[1:], "--runs", "1", "--keep")
    assert (code, "1 runs, 0 numbers not the same every time" in said) == (0, True)
    assert run(*case) == (0, f"particles/CI, HDF5 {good.hdf5}, {good.mpi}: the same\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("check", "particles/none", "--kernels", "{kernels}"),
            "CASE: 'particles/none' is no case; there are particles/CC",
        ),
        (
            ("record", "particles", "--kernels", "{kernels}", "--", "--steps", "2"),
            "'particles': KERNEL/PATTERN is expected",
        ),
        (
            ("record", "particles/CC"),
            "--kernels: missing; the kernels' build folder",
        ),
        (("record", "particles/CC", "--kernels", "/nowhere"), "/nowhere: no such folder"),
        (("record", "particles/CC", "--kernels", "{checkout}"), "has no libiogauge_fingerprint.so: build the kernels"),
        (("record", "nothing/x", "--kernels", "{kernels}", "--", "--steps", "2"), "there is no kernel 'nothing'"),
        (
            ("record", "particles/x", "--kernels", "{kernels}", "--", "--steps", "many"),
            "particles: error: --steps many: not a number",
        ),
        (
            ("record", "particles/CC", "--kernels", "{kernels}", "--launcher", "nolauncher"),
            "--launcher: the launcher nolauncher cannot be started: No such file",
        ),
    ],
)
def test_bad_input_is_named(kernels, words, message, monkeypatch):
    monkeypatch.delenv("IOGAUGE_KERNELS", raising=False)
    code, said = run(*(word.format(kernels=kernels, checkout=CHECKOUT) for word in words))
    assert (code, message in said) == (2, True), said


def test_a_run_that_is_told_to_end_leaves_nothing(tmp_path, kernels):
    case = ("fingerprint", "record", "particles/x", "--kernels", kernels, "--dir", tmp_path)
    command = [*case, "--", "--particles", "1000", "--steps", "2", "--compute-seconds", "60"]
    script = "from iogauge.cli import main; main()"
    process = subprocess.Popen([sys.executable, "-c", script, *map(str, command)], stdout=subprocess.DEVNULL)
    try:
        for _ in range(200):
            if any(tmp_path.rglob("*.h5")):
                break
            signal.sigtimedwait([], 0.1)
        assert any(tmp_path.rglob("*.h5"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 128 + signal.SIGTERM
    finally:
        process.kill()
    assert list(tmp_path.iterdir()) == []
