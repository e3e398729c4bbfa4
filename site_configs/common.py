"""What all site configurations share: where things go and what ReFrame logs."""

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]

#: Everything generated: nights, scratch of the embedded default site. IOGAUGE_HOME moves it.
HOME = Path(os.environ.get("IOGAUGE_HOME", CHECKOUT / ".iogauge"))

GENERAL = [{"check_search_path": [str(CHECKOUT / "reframe_checks")], "remote_detect": False}]

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
