"""The process that measures, and the one that clears up after it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import shutil
import signal
import sys
import traceback
from datetime import datetime, timezone
from typing import NoReturn

from iogauge.errors import InputError
from iogauge.night import write_whole
from operations import DataDiffer, Plan, measure_all
from records import measurements_of, table
from stores import FORMATS

BAD_INPUT, BAD_DATA = 2, 3
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def complain(message: object) -> None:
    """To stderr, in the kernels' form."""
    print(f"formats: error: {message}", file=sys.stderr, flush=True)


def work(plan: Plan) -> NoReturn:
    """In the child: run, and end at once, whatever threads and open files the libraries have.

    The signals stay blocked here; the parent answers them.
    """
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    code = 1
    try:
        run(plan)
        sys.stdout.flush()
        code = 0
    except DataDiffer as error:
        complain(error)
        code = BAD_DATA
    except (InputError, OSError, ImportError) as error:
        complain(error)
        code = BAD_INPUT
    except BaseException as error:  # a mistake of ours: where it is, and in a line for the one who reads the verdict
        traceback.print_exc()
        complain(f"{type(error).__name__}: {error}")
    finally:
        sys.stderr.flush()
        os._exit(code)


def supervise(plan: Plan) -> int:
    """Run :func:`work` in a child, and remove what it made, however it ends.

    Only when all its threads are gone does nothing make files any more: so the child is killed first, then the folder,
    which is ours because we made it, is removed.
    """
    child = 0
    ours = False

    def remove() -> None:
        if ours:
            shutil.rmtree(plan.folder, ignore_errors=True)

    def stopped(number_: int, _: object) -> NoReturn:
        if child:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):  # it may have ended just now
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        remove()
        signal.signal(number_, signal.SIG_DFL)
        os.kill(os.getpid(), number_)
        os._exit(128 + number_)

    for each in SIGNALS:
        signal.signal(each, stopped)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until it is known what there is to remove and to kill
    if plan.writes:
        try:
            plan.folder.mkdir()
        except OSError as error:
            raise InputError(f"{error.strerror}", key=str(plan.folder)) from error
        ours = True
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        work(plan)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    status = os.waitpid(child, 0)[1]
    child = 0
    code = os.waitstatus_to_exitcode(status)
    if code != 0 or not plan.keep:
        remove()
    if code < 0:
        complain(f"the measuring process was ended by {signal.Signals(-code).name}")
        return BAD_INPUT
    return code


def run(plan: Plan) -> None:
    """Measure, and tell."""
    started = datetime.now(timezone.utc).replace(microsecond=0)
    for interface in plan.formats:
        importlib.import_module(FORMATS[interface].package)
    gc.collect()
    gc.freeze()  # the libraries stay: what gc.collect() looks at from here on is the measured calls' own
    measurements = measurements_of(plan, measure_all(plan), started)
    records = "".join(m.model_dump_json(by_alias=True) + "\n" for m in measurements)
    print("\n".join(table(plan, measurements)))
    if plan.json is None:
        print(records, end="")
    else:
        write_whole(plan.json, records)
