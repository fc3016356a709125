"""Megabytes of svmlight text per second, with and without queries, against other readers.

CPU seconds are compared, because they do not depend on other work of the machine. The file is in
the page cache. A slow peer reads only the beginning of a file.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cutplane import dump_svmlight

from ..report import Report, at_least
from .disk import workspace
from .readers import PEERS, Reader, missing, ours

FASTER = 10.0  # one thread should be so many times as fast as scikit-learn
FULL = 500_000_000
QUICK = 1_000_000
# Bytes for each peer, which take it about ten seconds.
PEER_BYTES = {"scikit-learn": 60_000_000, "xgboost": 150_000_000, "polars": 60_000_000}
QID_BYTES = {"scikit-learn": 30_000_000}
ROWS_PER_QUERY = 50


def run(report: Report) -> None:
    """Run the section."""
    size = QUICK if report.settings.quick else FULL
    for name, least in (("aclimdb", size), ("covtype", 0)):
        data = report.load(name)
        if data is None:
            continue
        with report.attempt(name), workspace() as folder:
            once = folder / "once.svm"
            dump_svmlight(data.X.astype(np.float64), data.y, once)
            for qid in (False, True):
                path = folder / "text.svm"
                _repeat(once, path, least, qid)
                label = f"{name}, {path.stat().st_size / 1e6:.0f} MB" + ", qid" * qid
                with report.attempt(label):
                    _case(report, path, qid, label)


def _repeat(once: Path, path: Path, least: int, qid: bool) -> None:
    """Write the lines of ``once`` again and again to ``path``, at least ``least`` bytes."""
    lines = once.read_bytes().splitlines(keepends=True)
    row = written = 0
    with open(path, "wb") as out:
        while written < max(least, 1):
            for line in lines:
                if qid:
                    label, rest = line.split(b" ", 1) if b" " in line else (line.strip(), b"\n")
                    line = b"%s qid:%d %s" % (label, row // ROWS_PER_QUERY, rest)
                written += out.write(line)
                row += 1


def _case(report: Report, path: Path, qid: bool, label: str) -> None:
    entries = [
        _measured(report, "cutplane, 1 thread", ours(1), path, qid),
        _measured(report, "cutplane, 2 threads", ours(2), path, qid),
    ]
    for name, reader in _peers(report):
        limit = PEER_BYTES[name]
        if qid:
            limit = QID_BYTES.get(name, limit)
        part = _beginning(path, limit)
        try:
            entries.append(_measured(report, name, reader, part, qid))
        except Exception as error:  # a peer that cannot read the file is a result, too
            report.skip(f"{name} on {label}: {type(error).__name__}")
    checks = [
        at_least(
            f"one thread ≥ {FASTER:g} times {entry['name']}",
            entries[0]["mb_per_cpu_second"],
            FASTER * entry["mb_per_cpu_second"],
        )
        for entry in entries
        if entry["name"] == "scikit-learn"
    ]
    case = {"what": label, "bytes": path.stat().st_size, "qid": qid, "readers": entries}
    report.add(case, checks, label)


def _peers(report: Report) -> Iterator[tuple[str, Reader]]:
    for name, reader in PEERS.items():
        if missing(name):
            report.skip(f"{name} is not installed")
        else:
            yield name, reader


def _beginning(path: Path, limit: int) -> Path:
    if path.stat().st_size <= limit:
        return path
    part = path.with_name("part.svm")
    with open(path, "rb") as source:
        content = source.read(limit)
    part.write_bytes(content[: content.rindex(b"\n") + 1])
    return part


def _measured(report: Report, name: str, read: Reader, path: Path, qid: bool) -> dict:
    few = path.with_name("few.svm")
    with open(path, "rb") as source:
        few.write_bytes(b"".join(source.readline() for _ in range(50)))
    read(few, qid)  # imports and compiles
    size = path.stat().st_size
    path.read_bytes()  # into the page cache
    repeats = min(3, report.settings.repeats)  # the same for small and large files
    wall, cpu = [], []
    for _ in range(repeats):
        begin, used = time.perf_counter(), time.process_time()
        result = read(path, qid)
        wall.append(time.perf_counter() - begin)
        cpu.append(time.process_time() - used)
        del result
    report.say(f"{name}: {size / 1e6 / min(cpu):.1f} MB per CPU second")
    return {
        "name": name,
        "megabytes": size / 1e6,
        "seconds": wall,
        "cpu_seconds": cpu,
        "mb_per_second": size / 1e6 / min(wall),
        "mb_per_cpu_second": size / 1e6 / min(cpu),
    }
