"""What the tests of clusters of processes share."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from cutplane.cluster import workers

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A worker of a busy machine is not taken for one that cannot be reached."""
    monkeypatch.setattr(workers, "CONNECT", 60.0)


@pytest.fixture(scope="module")
def faults():
    """The module of the benchmarks, which are not installed."""
    sys.path.insert(0, str(ROOT))
    try:
        yield importlib.import_module("benchmarks.cluster.fault_runs")
    finally:
        sys.path.remove(str(ROOT))
