"""What all site configurations share: where things go, what is logged, who is charged, sizes for a cluster."""

import os
import shutil
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]

#: Everything generated: nights, scratch of the embedded default site. IOGAUGE_HOME moves it.
HOME = Path(os.environ.get("IOGAUGE_HOME", CHECKOUT / ".iogauge"))

# Modules are loaded as they are listed: ReFrame looks for none that are in the way, and puts no others into the script.
GENERAL = [
    {
        "check_search_path": [str(CHECKOUT / "reframe_checks")],
        "remote_detect": False,
        "resolve_module_conflicts": False,
    }
]

LOGGING = [
    {
        "level": "debug",
        "handlers": [
            {"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"},
            {
                "type": "file",
                "name": "reframe.log",
                "level": "debug2",
                "format": "[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s",
                "append": False,
            },
        ],
        "handlers_perflog": [
            {
                "type": "filelog",
                "prefix": "%(check_system)s/%(check_partition)s",
                "level": "info",
                "format": (
                    "%(check_job_completion_time)s|iogauge %(check_suite_version)s|%(check_display_name)s|"
                    "%(check_environ)s|%(check_band_key)s|%(check_band_status)s|%(check_verdict)s|"
                    "%(check_result)s|%(check_perfvalues)s"
                ),
                "format_perfvars": "%(check_perf_var)s=%(check_perf_value)s %(check_perf_unit)s|",
                "append": True,
            }
        ],
    }
]

#: Sizes that occupy a cluster's nodes for minutes; the checks' own are a laptop's. Bytes are a rank's.
CLUSTER_OPTIONS = {
    "blocks": {"size": "256x256x128", "repeats": 5, "time_limit": "30m"},  # 64 MiB
    "formats": {"arrays": 64, "rows": 1024, "columns": 1024, "time_limit": "30m"},  # 256 MiB
    "metadata": {"objects": 500, "repeats": 5, "time_limit": "30m"},
    "particles": {"particles": 1 << 20, "steps": 4, "repeats": 5, "time_limit": "30m"},  # 128 MiB
    "segments": {"block_bytes": 64 << 20, "transfer_bytes": 4 << 20, "repeats": 5, "time_limit": "30m"},
    "tiles": {"steps": 8, "rows": 512, "columns": 512, "repeats": 5, "time_limit": "30m"},  # 64 MiB
}


#: Open MPI refuses to start as root, and copies between ranks by a call that containers forbid, unless told.
#: Other MPI libraries ignore these.
OPEN_MPI = [["OMPI_MCA_btl_vader_single_copy_mechanism", "none"]]
if os.geteuid() == 0:
    OPEN_MPI += [["OMPI_ALLOW_RUN_AS_ROOT", "1"], ["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"]]


def darshan() -> dict[str, str]:
    """Darshan's runtimes of this machine, for an environment's extras: the library in ``IOGAUGE_DARSHAN``, else that of
    the darshan-config in PATH. It has to be built for the MPI and HDF5 that the kernels use; without, cases run without.
    ``IOGAUGE_DARSHAN_SERIAL`` names one without MPI, for programs in Python.
    """
    config = shutil.which("darshan-config")
    beside = Path(config).resolve().parents[1] / "lib" / "libdarshan.so" if config else None
    library = os.environ.get("IOGAUGE_DARSHAN", str(beside) if beside and beside.exists() else "")
    named = {"darshan": library, "darshan_serial": os.environ.get("IOGAUGE_DARSHAN_SERIAL", "")}
    return {name: path for name, path in named.items() if path}


def kernels() -> dict[str, str]:
    """Kernels that are built already, for an environment's extras: the folder in ``IOGAUGE_KERNELS``; without, each run builds
    them. They have to be those of this checkout, and of the environment's MPI and HDF5.
    """
    folder = os.environ.get("IOGAUGE_KERNELS", "")
    return {"kernels": folder} if folder else {}


def account(option: str = "--account=", *, required: bool = False) -> list[str]:
    """The scheduler's option that says whom jobs are charged to: ``IOGAUGE_ACCOUNT``, which no configuration knows.

    Ends the program with exit code 2 when it is required and not set.
    """
    name = os.environ.get("IOGAUGE_ACCOUNT", "")
    if name:
        return [f"{option}{name}"]
    if required:
        print(
            "iogauge: error: IOGAUGE_ACCOUNT is not set: export the project that jobs are charged to", file=sys.stderr
        )
        raise SystemExit(2)
    return []
