"""Cases really run under Darshan, by ReFrame: what the log must have, and what happens when it does not."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import CHECKOUT, run_mpi
from test_reframe_checks import (
    CC_MEMORY,
    SMALL,
    assert_no_rate,
    copy_of_site,
    needs_two_cores,
    one,
    reframe,
    use_built_kernels,
)

from iogauge.adapters.kernel import read_records
from iogauge.darshan.log import read_log
from iogauge.darshan.preload import configuration, files_in_case_folder, files_of_case, hdf5_of_h5py, variables
from iogauge.darshan.profile import Profile, profile
from iogauge.errors import Refusal


def runtime() -> str:
    """The library to preload: IOGAUGE_DARSHAN, or beside darshan-config; empty: none."""
    config = shutil.which("darshan-config")
    beside = Path(config).resolve().parents[1] / "lib" / "libdarshan.so" if config else None
    return os.environ.get("IOGAUGE_DARSHAN") or (str(beside) if beside and beside.exists() else "")


needs_runtime = pytest.mark.skipif(
    not runtime(), reason="needs Darshan's runtime: IOGAUGE_DARSHAN (its libdarshan.so) or darshan-config in PATH"
)

ONE_RANK = CC_MEMORY.format(ranks=1, fs="memory")


@pytest.fixture
def site(tmp_path, kernels):
    copy = copy_of_site(tmp_path)
    use_built_kernels(copy, kernels)
    return copy


def profiled(folder: Path, kernels: Path, ranks: int, kernel: str, *options: str, lines: str = "") -> Profile:
    """A kernel under Darshan, and what is made of its log."""
    data = folder / "iogauge-case.data"
    data.mkdir(parents=True)
    (folder / "darshan.conf").write_text(configuration("/iogauge-case[.]") + lines)
    environment = (f"{name}={value}" for name, value in variables(runtime(), str(folder)).items())
    records = folder / "records.jsonl"
    command = ["env", *environment, kernels / kernel, "--dir", data, "--json", records, *options]
    done = run_mpi(ranks, *command)
    assert done.returncode == 0, done.stderr
    summary = read_log(folder / "darshan.log", only=files_of_case())
    return profile("darshan.log", summary, read_records(records))


PARTICLES = ("particles", "--particles", "16384", "--steps", "2", "--repeats", "2", "--warmup", "0")


@needs_runtime
@needs_two_cores
def test_a_case_is_run_under_darshan_by_default_where_there_is_a_runtime(site):
    two_ranks = CC_MEMORY.format(ranks=2, fs="memory")
    done, entries = reframe(site, "-r", *SMALL, name=two_ranks, IOGAUGE_DARSHAN=runtime())
    assert done.returncode in (0, 1), done.stdout
    entry = one(entries)
    assert (entry["profiled"], entry["darshan_flags"]) == (True, "")
    found = Profile.model_validate(entry["judgement"]["profile"])
    assert found.summary.ranks == 2, "as many as the case has"
    moved = found.summary.layers["H5D"]
    assert moved.bytes_written == moved.bytes_read == 2 * 2 * 2 * 65536 * 32
    assert found.witness.agrees
    assert [(cost.operation, len(cost.pairs)) for cost in found.overhead] == [("write", 2), ("read", 2)]
    script = next((site.parent / "run").rglob("rfm_job.sh")).read_text()
    measured = next(line for line in script.splitlines() if "--baseline" in line)
    assert "LD_PRELOAD" not in measured, "what is measured is not slowed down"
    stage = Path(entry["outputdir"] if entry["result"] == "pass" else entry["stagedir"])
    assert (stage / "darshan.log").stat().st_size > 0, "the log is kept"
    assert not Path((stage / "case_folder.txt").read_text().strip()).exists()


@needs_runtime
@pytest.mark.skipif(shutil.which("ior") is None, reason="needs ior in PATH (Spack: ior +hdf5)")
def test_an_upstream_benchmark_is_run_once_more_under_darshan_with_a_log_for_each_of_its_programs(site):
    name = "IorCheck %nodes=1 %ranks_per_node=1 %file_system=memory %access=shared"
    sizes = ("-S", "repeats=1", "-S", "IorCheck.block_bytes=4194304")
    _, entries = reframe(site, "-r", *sizes, name=name, IOGAUGE_DARSHAN=runtime())
    entry = one(entries)
    found = Profile.model_validate(entry["judgement"]["profile"])
    assert found.log == "launch-9.darshan launch-10.darshan"
    moved = found.summary.layers["H5D"]
    assert (moved.bytes_written, moved.bytes_read) == (4 << 20, 4 << 20), (
        "of HDF5's file alone, and not of the baselines'"
    )
    assert "bytes-disagree" not in {finding.rule for finding in found.findings}
    script = next((site.parent / "run").rglob("rfm_job.sh")).read_text().splitlines()
    launched = [line for line in script if line.startswith("iogauge_launch")]
    assert [number for number, line in enumerate(launched) if "LD_PRELOAD" in line] == [9, 10]
    assert all(line.index("mpirun") < line.index("LD_PRELOAD") for line in launched[9:]), "the launcher has no preload"


def test_without_a_runtime_there_is_no_darshan_and_to_ask_for_it_is_skipped_with_the_reason(site):
    done, entries = reframe(site, "-r", *SMALL, "-S", "darshan=1", name=ONE_RANK, IOGAUGE_DARSHAN="")
    assert done.returncode == 0, done.stdout
    reason = (
        "darshan=1: environment default names no runtime of Darshan (extras, 'darshan'), and no Spack arm that has one"
    )
    assert one(entries)["skip_reason"] == reason
    _, entries = reframe(site, "--dry-run", name=ONE_RANK, IOGAUGE_DARSHAN="")
    assert one(entries)["profiled"] is False


def test_a_runtime_that_is_no_path_ends_reframe_with_exit_code_2(site):
    done, _ = reframe(site, "--dry-run", name=ONE_RANK, IOGAUGE_DARSHAN="$(rm -rf x)")
    assert done.returncode == 2
    assert "environments.default.extras.darshan: a path with variables, or 'linked', is allowed" in done.stderr
    assert "not '$(rm -rf x)'" in done.stderr


@needs_runtime
def test_a_log_without_hdf5_makes_the_case_invalid(site):
    disabled = {"IOGAUGE_DARSHAN": runtime(), "DARSHAN_MOD_DISABLE": "H5F,H5D"}
    done, entries = reframe(site, "-r", *SMALL, name=ONE_RANK, **disabled)
    assert done.returncode == 1
    entry = one(entries)
    assert (entry["verdict"], entry["fail_phase"]) == ("invalid", "sanity")
    assert "has no H5F records of the case's files, only of MPI-IO, POSIX" in entry["fail_reason"]
    assert_no_rate(entry)


def test_a_library_that_counts_nothing_makes_the_case_invalid(site, tmp_path):
    library = tmp_path / "empty.so"
    subprocess.run(["cc", "-shared", "-o", library, "-x", "c", "/dev/null"], check=True)
    _, entries = reframe(site, "-r", *SMALL, name=ONE_RANK, IOGAUGE_DARSHAN=str(library))
    assert one(entries)["verdict"] == "invalid"
    assert "Darshan left no log: darshan.log does not exist" in one(entries)["fail_reason"]


def test_a_library_that_is_not_there_is_refused_before_anything_is_written(site):
    _, entries = reframe(site, "-r", *SMALL, name=ONE_RANK, IOGAUGE_DARSHAN="/no/such/libdarshan.so")
    assert "Darshan: there is no library /no/such/libdarshan.so here" in one(entries)["fail_reason"]


def test_a_static_program_is_refused_with_what_to_do(tmp_path):
    source, program, library = tmp_path / "p.c", tmp_path / "p", tmp_path / "libdarshan.so"
    source.write_text("int main(void) { return 0; }\n")
    library.touch()
    if subprocess.run(["cc", "-static", "-o", program, source], capture_output=True, check=False).returncode:
        pytest.skip("needs a static libc")
    done = guarded(library, program)
    assert done.returncode == 2
    assert f"{program} is linked statically" in done.stderr
    assert "darshan: linked" in done.stderr


def guarded(library: Path, program: Path) -> subprocess.CompletedProcess[str]:
    """What the job does before it preloads ``library`` into ``program``."""
    guard = f'. {CHECKOUT}/reframe_checks/src/case_folder.sh; iogauge_darshan "{library}" {program}'
    return subprocess.run(["bash", "-c", guard], capture_output=True, text=True, check=False)


@pytest.mark.skipif(shutil.which("h5cc") is None, reason="needs h5cc")
def test_a_program_that_hides_its_hdf5_from_darshan_is_refused_with_what_to_do(tmp_path):
    source, library = tmp_path / "p.c", tmp_path / "libdarshan.so"
    source.write_text('#include <hdf5.h>\nint main(void) { return H5Fcreate("f", 0, 0, 0) < 0; }\n')
    library.touch()
    for how, hides in (("-noshlib", True), ("-shlib", False)):
        program = tmp_path / f"p{how}"
        command = ["h5cc", how, "-o", program, source]
        if subprocess.run(command, capture_output=True, check=False, cwd=tmp_path).returncode:
            pytest.skip(f"needs HDF5's library for h5cc {how}")
        done = guarded(library, program)
        assert (done.returncode == 2) == hides, done.stderr
        assert (f"{program} has HDF5 linked statically" in done.stderr) == hides
        assert ("build it with HDF5's shared library (h5pcc -shlib)" in done.stderr) == hides


@pytest.mark.skipif(
    not os.environ.get("IOGAUGE_DARSHAN_SERIAL"),
    reason="needs a Darshan runtime without MPI, for a serial HDF5: IOGAUGE_DARSHAN_SERIAL (its libdarshan.so)",
)
def test_hdf5_in_python_is_seen_by_a_serial_runtime_before_h5pys_own_library(tmp_path):
    case = tmp_path / "iogauge-case.x" / "darshan"
    case.mkdir(parents=True)
    (tmp_path / "darshan.conf").write_text(configuration("/iogauge-case[.]", program="python"))
    sizes = {"FILE_NAME": "arrays", "NUMBER_DATASETS": 2, "NUMBER_ELEMENTS": [64, 64]}
    (tmp_path / "formats.yaml").write_text(json.dumps(sizes))
    libraries = f"{os.environ['IOGAUGE_DARSHAN_SERIAL']}:{hdf5_of_h5py()}"
    command = [sys.executable, CHECKOUT / "kernels" / "formats", "--config", tmp_path / "formats.yaml", "--dir", case]
    command += ["--formats", "hdf5", "--repeats", "1", "--warmup", "0", "--json", tmp_path / "darshan.jsonl"]
    environment = {**os.environ, **variables(libraries, str(tmp_path), mpi=False)}
    subprocess.run([*map(str, command)], env=environment, check=True, capture_output=True)
    summary = read_log(tmp_path / "darshan.log", only=files_in_case_folder("darshan/.*"), needs=("H5F", "H5D"))
    found = profile("darshan.log", summary, read_records(tmp_path / "darshan.jsonl"))
    assert summary.layers["H5D"].bytes_written == 2 * 64 * 64 * 4
    assert found.witness.agrees, found.witness.text
    assert found.flags == ()


@needs_runtime
def test_what_the_kernel_does_outside_of_its_clock_is_in_no_count(tmp_path, kernels):
    """It looks at the page cache, syncs and drops it between write and read."""
    posix = profiled(tmp_path, kernels, 1, *PARTICLES, "--interface", "posix").summary.layers["POSIX"]
    assert (posix["FSYNCS"], posix["MMAPS"]) == (2, 0)
    assert posix.bytes_written == posix.bytes_read == 2 * 2 * 16384 * 32


@needs_runtime
def test_collective_transfers_that_hdf5_breaks_up_are_diagnosed(tmp_path, kernels):
    """HDF5 1.10 converts parts of a compound one by one, and does not say that it does so independently."""
    broken = profiled(tmp_path / "CI", kernels, 2, *PARTICLES, "--collective", "yes", "--locality", "CI")
    if broken.summary.layers["MPI-IO"]["COLL_WRITES"]:
        pytest.skip("needs an HDF5 that converts types without collective transfers, as 1.10 does")
    assert "independent-instead-of-collective" in {f.rule for f in broken.findings}
    whole = profiled(tmp_path / "CC", kernels, 2, *PARTICLES, "--collective", "yes")
    assert "independent-instead-of-collective" not in {f.rule for f in whole.findings}


@needs_runtime
def test_a_log_without_room_for_all_datasets_is_refused_as_partial(tmp_path, kernels):
    with pytest.raises(Refusal, match="it is partial, no memory was left for all records of H5D"):
        profiled(tmp_path, kernels, 1, *PARTICLES, lines="MAX_RECORDS 2 H5D\n")


@needs_runtime
@pytest.mark.parametrize("options", [("--interface", "posix"), ("--interface", "mpiio"), ("--interface", "hdf5")])
def test_the_second_witness_agrees_and_contradicts_a_clock_that_is_wrong(tmp_path, kernels, options):
    found = profiled(tmp_path, kernels, 2, *PARTICLES, *options)
    assert found.witness.agrees, found.witness.text
    assert found.flags == ()
    lines = []
    for line in (tmp_path / "records.jsonl").read_text().splitlines():
        fields = json.loads(line)
        for repeat in fields["repeats"]:
            for times in (repeat, repeat["least"]):
                times |= {name: value * 100 for name, value in times.items() if name.endswith("_seconds")}
        lines.append(json.dumps(fields) + "\n")
    lying = profile("darshan.log", found.summary, read_records("".join(lines)))
    assert lying.witness.agrees is False
    assert "Darshan disagrees" in lying.flags[0]


@needs_runtime
def test_a_log_can_be_read_by_its_owner_only_and_once_more_by_us(tmp_path, kernels):
    profiled(tmp_path, kernels, 1, *PARTICLES)
    log = tmp_path / "darshan.log"
    assert stat.S_IMODE(log.stat().st_mode) == 0o400
    log.chmod(0o600)
    log.write_bytes(log.read_bytes()[:-200])
    with pytest.raises(Refusal, match=r"darshan\.log cannot be read"):
        read_log(log)
