"""The sections that repeat the papers' figures run; the README is drawn from JSON."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]

pytestmark = [
    pytest.mark.skipif(
        not (ROOT / "benchmarks" / "runner.py").is_file(), reason="no benchmarks folder here"
    ),
    pytest.mark.filterwarnings("ignore:numpy.core:DeprecationWarning"),  # snapml's import
]
LIMITS = ["--peer-seconds", "0.1", "--cpa-seconds", "0.1", "--tight-seconds", "0.3"]
CASES = {
    "ocas-curves": 6,
    "ocas-peers": 6,
    "ocas-selection": 8,
    "ocas-scaling": 2,
    "ocas-threads": 1,
    "perf-n": 5,
    "perf-eps": 5,
    "perf-c": 5,
}


def run_sections(load, out: Path, capsys, sections: list[str], *more: str) -> dict[str, dict]:
    """The contents of sections after a run on generated data."""
    arguments = ["--generated", "--rows", "150", "--repeats", "1", *LIMITS, *more]
    for section in sections:
        arguments += ["--section", section]
    status = load("papers").SUITE.main([*arguments, "--out", str(out)])
    assert status == 0, capsys.readouterr().err
    contents = {}
    for section in sections:
        text = (out / f"{section}.json").read_text("utf-8")
        assert str(out) not in text and str(ROOT) not in text
        contents[section] = json.loads(text)
        assert contents[section]["complete"] and not contents[section]["failed"]
        if section != "ocas-threads" or contents[section]["cases"]:  # one core
            assert len(contents[section]["cases"]) == CASES[section], section
        checks = [c for case in contents[section]["cases"] for c in case["checks"]]
        assert all(check["ok"] for check in checks)
    return contents


def look(load, out: Path, contents: dict[str, dict], words: dict[str, str]) -> list[str]:
    """Draw one case of each section, in one format: that takes long; what was drawn."""
    tables, figures, drawing = load("tables"), load("figures"), load("papers.figures")
    one = functools.partial(figures.save, endings=(".svg",))
    files = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "save", one)
        for section, content in contents.items():
            assert words[section] in tables.table(out / f"{section}.json")
            files += figures.draw({**content, "cases": content["cases"][:1]}, out)
    assert all(file.stat().st_size > 1000 for file in files)
    return sorted(file.name for file in files)


def test_figures_of_the_ocas_paper(load, tmp_path: Path, capsys, monkeypatch) -> None:
    few = {"covtype": 1.0, "w8a": 1.0}
    for module in ("curves", "scaling"):
        monkeypatch.setattr(load(f"papers.{module}"), "CASES", few)
    for section in ("ocas-curves", "ocas-peers"):
        monkeypatch.setitem(CASES, section, 2)
    peers = ["--peer", "scikit-learn", "--peer", "SGDClassifier"]
    sections = ["ocas-curves", "ocas-peers", "ocas-scaling"]
    contents = run_sections(load, tmp_path, capsys, sections, *peers)
    for case in contents["ocas-curves"]["cases"]:
        traces = [r["trace"] for r in (*case["runs"], case["auto"])]
        lowest = min(p["objective"] for curve in case["peers"] for p in curve["points"])
        # No point of a peer's curve is below a bound of ours.
        assert all(trace["dual"][-1] <= lowest * (1 + 1e-9) for trace in traces)
        gradient = next(c for c in case["peers"] if c["solver"] == "SGDClassifier")
        passes = [p["passes"] for p in gradient["points"]]
        assert 10 in passes and passes == sorted(passes)
    for case in contents["ocas-peers"]["cases"]:
        names = [r["solver"] for r in case["solvers"]]
        assert names[:4] == ["cutplane auto", "cutplane ocas", "cutplane cpa", "cutplane sgd"]
        assert {"scikit-learn", "SGDClassifier"} <= set(names)
        assert all(r["above"] >= 0.0 and r["reads"] > 0.0 for r in case["solvers"])
        ocas = case["solvers"][1]
        if ocas["status"] == "converged":  # SVM-perf's rule, not the relative gap
            assert ocas["gap"] <= 1e-3 * case["C"] * case["rows"]
    for case in contents["ocas-scaling"]["cases"]:
        rows = [p["rows"] for p in case["curves"][0]["points"]]
        assert rows[0] == 100 and rows == sorted(rows) and rows[-1] <= case["rows"]
    words = {
        "ocas-curves": "default solver",
        "ocas-peers": "above the best known",
        "ocas-scaling": "slope from 1,000 rows",
    }
    drawn = look(load, tmp_path, contents, words)
    assert drawn == ["ocas-figure1.svg", "ocas-figure2.svg", "ocas-figure3.svg"]


def test_figures_of_the_svm_perf_paper(load, tmp_path: Path, capsys, monkeypatch) -> None:
    perf = load("papers.perf")
    monkeypatch.setattr(perf, "DATA", ("a9a", "w8a"))
    monkeypatch.setattr(perf, "EPSILONS", (0.1, 0.01, 1e-3))
    monkeypatch.setattr(perf, "WEIGHTS", (1e1, 1e2, 1e3, 1e4))
    for section in ("perf-n", "perf-eps", "perf-c"):
        monkeypatch.setitem(CASES, section, 2)
    contents = run_sections(load, tmp_path, capsys, ["perf-n", "perf-eps", "perf-c"])
    for case in contents["perf-n"]["cases"]:
        assert case["curves"]["decomposition"][0]["seconds"] > 0.0
        assert case["curves"]["ocas, ordinal regression"][-1]["rows"] == case["rows"]
    for case in contents["perf-eps"]["cases"]:
        for points in case["curves"].values():
            done = [p for p in points if p["status"] == "converged"]
            assert [p["n_iter"] for p in done] == sorted(p["n_iter"] for p in done)
            # The promise of ε: objective at most ε·C above the optimum.
            for p in done:
                assert p["objective"] - case["best_known"] <= p["epsilon"] * case["C"]
    assert {case["measure"] for case in contents["perf-c"]["cases"]} == {"accuracy", "PRBEP"}
    words = {
        "perf-n": "iterations by rows",
        "perf-eps": "against the optimum's, points",
        "perf-c": "against the optimum's, points",
    }
    drawn = look(load, tmp_path, contents, words)
    assert drawn == ["perf-c.svg", "perf-epsilon.svg", "perf-rows.svg"]


def test_model_selection_by_hand(load, monkeypatch) -> None:
    """It takes the C of the best validation area, adds the times, and stops at the budget."""
    selection, datasets = load("papers.selection"), load("datasets")
    data = datasets.Source(rows=250, generated=True).load("w8a")
    split = load("measures.selection").folds(data)[0]
    rng = np.random.default_rng(5)
    good = rng.normal(size=data.X.shape[1])
    rule = np.asarray(split.train.X.T @ split.train.y).ravel()
    fits = [(0.1, good, 1.0), (0.5, rule, 2.0), (1.0, -rule, 4.0)]
    record = selection._choose(split, "a method", iter(fits), 3, 100.0)
    assert record["C"] == 0.5 and record["seconds"] == 7.0 and record["complete"]
    assert record["vali"] == selection._area(split.vali, rule)
    assert record["test"] == selection._area(split.test, rule)
    cut = selection._choose(split, "a method", iter(fits), 3, 2.5)
    assert cut["seconds"] == 3.0 and not cut["complete"] and cut["fits"] == 2


@pytest.mark.slow
def test_all_sections_on_generated_data(load, tmp_path: Path, capsys) -> None:
    contents = run_sections(load, tmp_path, capsys, list(CASES))
    for case in contents["ocas-selection"]["cases"]:
        assert all(0.3 < r["test"] <= 1.0 for r in case["methods"])
    assert load("tables").main([str(tmp_path)]) == 0
    assert (tmp_path / "ocas-selection.svg").stat().st_size > 1000
