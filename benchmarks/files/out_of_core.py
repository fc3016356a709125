"""Training on data larger than memory: peak memory, and time per pass against the disk's."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from cutplane import write_dataset

from ..measure import child
from ..report import Report, at_most
from .disk import free_bytes, workspace
from .splice_sites import FEATURES, splice_chunks

ROWS = 2_800_000  # 6.3 GB
MEMORY = 2_000_000_000
KEPT = 1_000_000_000  # bytes of features kept between passes; the rest of MEMORY is for all else
PER_PASS = 1.5  # a pass may take so many times the disk's own time
MEAN_C = 1000.0

SPLICE_ROWS = 15_000_000  # as in the paper
PAPER_SECONDS = (671, 3087)
ROOM_LEFT = 10_000_000_000
HOURS = 6 * 3600.0


def run(report: Report) -> None:
    """Run the section: fits of data of 6.3 GB with 2 GB of memory."""
    rows = min(ROWS, report.settings.source.rows or ROWS)
    label = f"{rows} rows, {MEMORY / 1e9:g} GB"
    with report.attempt(label):
        _case(report, rows, np.float32, MEMORY, label)


def run_splice(report: Report) -> None:
    """Run the section: the paper's largest problem with as many rows as fit on the disk."""
    room = max(0, int((free_bytes() - ROOM_LEFT) * 0.9)) // _row_bytes(np.int8)
    rows = min(SPLICE_ROWS, report.settings.source.rows or SPLICE_ROWS, room)
    label = f"{rows} rows"
    with report.attempt(label):
        _case(report, rows, np.int8, None, label)


def _row_bytes(dtype: type) -> int:
    return FEATURES * np.dtype(dtype).itemsize + 8


def _case(report: Report, rows: int, dtype: type, memory: int | None, label: str) -> None:
    size = rows * _row_bytes(dtype)
    if size * 1.1 > free_bytes():
        report.skip(f"{label}: the disk has no room for {size / 1e9:.1f} GB")
        return
    with workspace() as folder:
        place = folder / "splice.cut"
        begin, cpu = time.perf_counter(), time.process_time()
        size = write_dataset(place, splice_chunks(rows, dtype), dtype=dtype).nbytes
        written = time.perf_counter() - begin, time.process_time() - cpu
        report.say(f"{label}: {size / 1e9:.2f} GB written in {written[0]:.0f} s")
        answer = child(_arguments(place, rows, memory), seconds=HOURS)
    case = {
        "what": label,
        "rows": rows,
        "features": FEATURES,
        "bytes": size,
        "dtype": np.dtype(dtype).name,
        "C": MEAN_C / rows,
        "memory_bytes": memory,
        "write_seconds": written[0],
        "write_cpu_seconds": written[1],
        "paper_seconds": PAPER_SECONDS if memory is None else None,
        **answer,
    }
    report.say(
        f"{label}: {answer['n_iter']} iterations, {answer['seconds']:.0f} s, "
        f"{answer['pass_seconds']:.1f} s per pass, disk {answer['disk_seconds']}"
    )
    disk = sum(answer["disk_seconds"]) / len(answer["disk_seconds"])
    claim = f"a pass ≤ {PER_PASS:g} times reading the files from beginning to end"
    checks = [
        at_most("relative gap ≤ 1e-3", answer["relative_gap"], 1e-3, "certificate"),
        at_most(claim, answer["pass_seconds"], PER_PASS * disk),
    ]
    if memory is not None:
        checks.append(at_most("peak memory ≤ 2 GB", answer["peak_bytes"], memory))
    report.add(case, checks, label)


def _arguments(place: Path, rows: int, memory: int | None) -> list[str]:
    arguments = ["dataset", str(place), repr(MEAN_C / rows)]
    if memory is not None:
        arguments += ["--kept", str(KEPT), "--anonymous", str(memory)]
    return arguments
