"""The benchmark of clusters runs, and its model of costs is the sum that it says it is."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks" / "runner.py").is_file(), reason="no benchmarks folder here"
)


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"benchmarks.{name}")


KNOWN = {
    "round": 1e-3, "message": 1e-4, "link": 1e9, "between": 5e8,
    "value": 1e-9, "row": 1e-8, "add": 1e-9, "cut": 2e-9,
}  # fmt: skip


@pytest.mark.parametrize("features", [1e5, 1e6])
def test_predictions_by_hand(load, features):
    """Vectors through the client, and from worker to worker."""
    model = load("cluster.costs")
    work = model.Workload(
        rows=1e6, features=features, values=1e8, workers=4, threads=5, arrays=2.0, rounds=3.0,
        cuts=10.0, latency=2e-3,
    )  # fmt: skip
    found = model.predict(work, model.Constants(**KNOWN))
    assert found["rounds"] == pytest.approx(3 * (2e-3 + 1e-3 + 3e-4))
    assert found["work"] == pytest.approx((0.1 + 0.01) / 20)
    if features == 1e5:
        assert found["down_bytes"] == 4 * 8e5 and found["up_bytes"] == 8 * 8e5
        assert found["network"] == pytest.approx((3.2e6 + 6.4e6) / 1e9)
        assert found["client"] == pytest.approx(1e5 * (8 * 1e-9 + 10 * 2e-9))
    else:
        assert found["down_bytes"] == found["up_bytes"] == 8e6
        assert found["network"] == pytest.approx(16e6 / 1e9 + 2 * 3 * 8e6 / 5e8)
        assert found["client"] == pytest.approx(1e6 * (4 * 1e-9 + 10 * 2e-9))
    parts = ("rounds", "network", "work", "client")
    assert found["seconds"] == pytest.approx(sum(found[name] for name in parts))


def test_constants_of_messages_are_found_again(load):
    """The times of the rounds follow the model exactly."""
    model = load("cluster.costs")
    known = model.Constants(**KNOWN)

    def seconds(workers, features):
        nothing = {"rows": 0.0, "values": 0.0, "threads": 1, "arrays": 1.0, "cuts": 0.0}
        work = model.Workload(features=features, workers=workers, rounds=1.0, **nothing)
        found = model.predict(work, known)
        return found["rounds"] + found["network"]

    empty, full = ({p: seconds(p, features) for p in (1, 2)} for features in (0.0, 1e6))
    found = model.message_constants(empty, full, 8e6)
    assert found == pytest.approx((1e-3, 1e-4, 1e9, 5e8))


def test_constants_of_work_are_found_again(load):
    """From times that follow the rule."""
    model = load("cluster.costs")
    sizes = [(1e8, 1e6, 1), (3e6, 2e4, 2), (5e7, 5e6, 1)]
    runs = [
        {"values": z, "rows": m, "workers": p, "n_iter": 7,
         "work_seconds": 7 * (z * 2e-9 + m * 3e-8) / p}
        for z, m, p in sizes
    ]  # fmt: skip
    assert model.work_constants(runs) == pytest.approx((2e-9, 3e-8))


@pytest.mark.slow
def test_speed_on_generated_data(load, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CUTPLANE_BENCH_CACHE", str(tmp_path))
    speed = load("cluster.speed")
    monkeypatch.setattr(speed, "CASES", speed.CASES[2:3])
    arguments = ["--section", "speed", "--generated", "--rows", "300", "--out", str(tmp_path)]
    assert load("cluster").SUITE.main([*arguments, "--repeats", "1"]) == 0, capsys.readouterr().err
    text = (tmp_path / "speed.json").read_text("utf-8")
    assert str(tmp_path) not in text and str(ROOT) not in text
    (case,) = json.loads(text)["cases"]
    assert case["checks"][0]["ok"]  # the same bits
    assert case["sent_bytes_per_round"] > 0 and case["received_bytes_per_round"] > 0
    assert sum(case["kinds"].values()) == case["rounds"] >= 2 * case["n_iter"]
    parts = ("client", "network", "work")
    rounds = case["rounds"] * sum(case[f"{name}_seconds_per_round"] for name in parts)
    assert rounds + case["load_seconds"] == pytest.approx(case["cluster"]["median"])
