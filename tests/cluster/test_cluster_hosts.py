"""Hosts with scheduler and workers begun by Dask's own commands, one cut off in the middle."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks" / "cluster" / "hosts.py").is_file(), reason="no benchmarks folder here"
)


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--loopback"]], ids=["namespaces", "loopback"])
def test_a_host_is_cut_off(options):
    """Without permission for namespaces, both hosts are loopback addresses."""
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.cluster.hosts", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert answer.returncode == 0, answer.stderr
    facts = json.loads(answer.stdout)
    assert facts["same"] and facts["losses"] == 1
    assert facts["primal"] == facts["expected_primal"]
