"""Measurements: facts about the machine, time of compiling, repeated runs, memory, processes."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import json
import math
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "llvmlite",
    "scikit-learn",
    "scikit-learn-intelex",
    "liblinear-official",
    "liblinear-multicore",
    "snapml",
    "skglm",
    "dlib",
    "rehline",
    "statsmodels",
    "lightgbm",
    "xgboost",
    "polars",
    "pyarrow",
    "matplotlib",
)
CHILD_SECONDS = 1800.0


# -- the machine ----------------------------------------------------------------------


def machine_facts() -> dict[str, Any]:
    """Processor, memory, system, versions and how busy the machine is."""
    return {
        "processor": _processor(),
        "cores": usable_cores(),
        "memory_gb": _memory_gb(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": _versions(),
        "commit": _commit(),
        "load_average": load_average(),
    }


def now() -> str:
    """The present time in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def usable_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_average() -> float | None:
    """The load of the last minute. If it is above the number of our threads, others worked too."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _versions() -> dict[str, str]:
    import cutplane

    found = {"cutplane": cutplane.__version__}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _commit() -> str | None:
    """The commit of this checkout, with a mark if files differ from it."""
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


# -- compiling ------------------------------------------------------------------------


class CompileWatch:
    """Measures the seconds in which numba compiles or loads compiled code inside ``with``."""

    def __init__(self) -> None:
        from numba.core import event

        self._timer = event.TimingListener()
        self._listening = event.install_listener("numba:compiler_lock", self._timer)

    @property
    def seconds(self) -> float:
        return self._timer.duration if self._timer.done else 0.0

    def __enter__(self) -> CompileWatch:
        self._listening.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._listening.__exit__(*error)


# -- repeated runs --------------------------------------------------------------------


def spread(values: Sequence[float]) -> dict[str, Any]:
    """The best, the median and all of repeated measurements."""
    return {
        "best": min(values),
        "median": statistics.median(values),
        "runs": list(values),
    }


# -- memory ---------------------------------------------------------------------------


def _status_bytes(key: str) -> int | None:
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    return None


def resident_bytes() -> int | None:
    """Memory of this process now, or None if the system does not tell."""
    return _status_bytes("VmRSS")


def peak_bytes() -> int | None:
    """The largest memory of this process so far, or since ``reset_peak``."""
    return _status_bytes("VmHWM")


def reset_peak() -> bool:
    """Measure the peak from now on. Returns False if the system does not allow that."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def release_free_memory() -> None:
    """Give free memory back to the system, so that only memory in use is resident."""
    import ctypes
    import gc

    gc.collect()
    with contextlib.suppress(AttributeError, OSError):  # another C library than GNU's
        ctypes.CDLL(None).malloc_trim(0)


# -- child processes ------------------------------------------------------------------


def child(
    arguments: Sequence[str],
    environment: dict[str, str] | None = None,
    seconds: float = CHILD_SECONDS,
    package: Path | None = None,
) -> dict[str, Any]:
    """Run ``python -m benchmarks.probes`` with these arguments, and return its last line, JSON.

    If the child's alarm has ended it, TimeoutError is raised.
    The child imports the same cutplane as this process, or that of the folder ``package``.
    """
    import cutplane

    places = [str(ROOT), str(package or Path(cutplane.__file__).resolve().parents[1])]
    if os.environ.get("PYTHONPATH"):
        places.append(os.environ["PYTHONPATH"])
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.probes", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places), **(environment or {})},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    if answer.returncode == -signal.SIGALRM:
        raise TimeoutError(f"probe {arguments[0]}: its time was up")
    if answer.returncode != 0:
        raise RuntimeError(f"probe {arguments[0]} failed:\n{answer.stderr}")
    return json.loads(answer.stdout.splitlines()[-1])


def fresh_cache() -> tempfile.TemporaryDirectory[str]:
    """An empty folder for numba's cache."""
    return tempfile.TemporaryDirectory(prefix="cutplane-cold-")


def memory_speed(threads: int, megabytes: int = 256) -> float:
    """Bytes per second with which threads read an array larger than the caches; best of five."""
    from cutplane.exec import SerialExecutor, ThreadExecutor

    numbers = np.ones(megabytes << 17)
    pieces = np.array_split(numbers, 16)
    best = math.inf
    with SerialExecutor() if threads == 1 else ThreadExecutor(threads) as executor:
        for _ in range(5):
            begin = time.perf_counter()
            executor.run(lambda k: float(pieces[k].sum()), len(pieces))
            best = min(best, time.perf_counter() - begin)
    return numbers.nbytes / best
