"""HTML reports: the numbers in them, the page they stand on, and what is refused."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse
from sklearn import metrics
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cutplane
from cutplane import (
    SVC,
    ChainTagger,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    StructuredSVM,
)
from cutplane.cli import main
from cutplane.metrics import ndcg_score, swapped_pairs
from cutplane.reporting.fit_report import Answers, certificate_in_words, write_report
from cutplane.reporting.plots import calibration_bins
from cutplane.result import Certificate
from cutplane.structured import MulticlassProblem

VOID = {"meta", "br", "link", "img", "hr", "input"}
SVG_EMPTY = {"path", "use", "rect", "circle", "line"}
NASTY = '<script>alert("x")</script>&amp; $a$ é 漢字\x00 ' + "long " * 60


class Reader(HTMLParser):
    """Reads a page strictly: tables, tiles, identifiers, references, balance of tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.tags: set[str] = set()
        self.tables: dict[str, list[list[str]]] = {}
        self.headers = 0
        self.images: list[str] = []
        self.text = ""
        self._caption = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.note(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self._row: list[str] = []
        elif tag in ("td", "th", "caption", "dt", "dd"):
            self._cell = ""

    def handle_startendtag(self, tag, attrs):
        self.note(tag, attrs)

    def note(self, tag, attrs):
        self.tags.add(tag)
        values = dict(attrs)
        assert len(values) == len(attrs), "an attribute twice"
        if "id" in values:
            self.ids.append(values["id"])
        for name in ("href", "xlink:href", "src", "action", "data"):
            if name in values:
                self.references.append(values[name])
        self.references += re.findall(r"url\(([^)]*)\)", " ".join(v or "" for v in values.values()))
        assert not any(name.startswith("on") for name in values)
        if values.get("role") == "img":
            self.images.append(values["aria-label"])
        if tag == "th":
            assert values["scope"] in ("row", "col")
            self.headers += 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in ("td", "th"):
            self._row.append(self._cell)
        elif tag == "caption":
            self._caption = self._cell
            self.tables[self._caption] = []
        elif tag == "tr":
            self.tables[self._caption].append(self._row)
        elif tag == "dt":
            self._name = self._cell
        elif tag == "dd":
            self.tables.setdefault("tiles", []).append([self._name, self._cell])

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data
        if self.open and self.open[-1] in ("td", "th", "caption", "dt", "dd"):
            self._cell += data

    @property
    def tiles(self) -> dict[str, str]:
        return dict(self.tables["tiles"])


def read(path) -> Reader:
    """A page that keeps all the rules of this file."""
    text = path.read_text(encoding="utf-8")
    page = Reader(text)
    assert text.startswith("<!doctype html>")
    assert len(page.ids) == len(set(page.ids))
    assert {r[1:] for r in page.references if r.startswith("#")} <= set(page.ids)
    assert all(reference.startswith("#") for reference in page.references)
    assert not page.tags & {"script", "link", "iframe", "img", "object"}
    assert "@import" not in text
    assert text.count("<svg") == len(page.images) == text.count("<figcaption>")
    assert all(page.images)
    assert '<meta name="viewport"' in text
    assert "prefers-color-scheme: dark" in text
    return page


def per_cent(value: float) -> str:
    return f"{100 * value:.2f} %"


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


# -- the certificate in words -------------------------------------------------


@pytest.mark.parametrize(
    ("certificate", "words"),
    [
        (
            Certificate(35.2089, 35.1912),
            "The objective is 35.21; no linear model can have one below 35.19: at most 0.05 % is "
            "left.",
        ),
        (Certificate(2.0, 2.0), "no linear model can have a smaller one: this is the optimum."),
        (Certificate(2.0, 1.0, "estimated"), "likely but not proved"),
        (Certificate(2.0, 1.0, "conditional"), "if the kernel is positive semidefinite"),
        (Certificate(2.0, -math.inf, "withheld"), "there is no certificate"),
        (Certificate(math.inf, -math.inf, "withheld"), "There is no certificate"),
        (Certificate(270155.3, 270028.1), "270,160; no linear model can have one below 270,020"),
        (Certificate(-3.0, -3.5), "below -3.5"),
        (Certificate(0.0, -1e-9), "at most 1e-09 is left"),
    ],
)
def test_words(certificate, words):
    assert words in certificate_in_words(certificate, "linear model")


@pytest.mark.parametrize("gap", [1e-1, 1e-3, 1e-6, 1e-10, 1e-15])
def test_words_claim_no_more_than_the_certificate(gap):
    rng = np.random.default_rng(0)
    for primal in np.exp(rng.uniform(-20, 20, 50)):
        dual = primal * (1 - gap)
        words = certificate_in_words(Certificate(primal, dual), "model")
        above = float(re.search(r"objective is ([^;]*);", words)[1].replace(",", ""))
        below = float(re.search(r"below ([^:]*):", words)[1].replace(",", ""))
        assert above >= primal
        assert below <= dual
        assert above - below <= 1.6 * (primal - dual)


# -- what stands in a report --------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes(cancer, tmp_path, weighted):
    X, y = cancer
    model = LinearSVC(C=0.1, loss="logistic").fit(X, y)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else None
    cutplane.report(model, X, y, tmp_path / "r.html", sample_weight=weight)
    page = read(tmp_path / "r.html")
    guess, scores = model.predict(X), model.decision_function(X)
    options = {"sample_weight": weight}
    brier = metrics.brier_score_loss(y, model.predict_proba(X)[:, 1], **options)
    assert page.tiles == {
        "accuracy": per_cent(metrics.accuracy_score(y, guess, **options)),
        "precision": per_cent(metrics.precision_score(y, guess, **options)),
        "recall": per_cent(metrics.recall_score(y, guess, **options)),
        "F1": per_cent(metrics.f1_score(y, guess, **options)),
        "ROC area": f"{metrics.roc_auc_score(y, scores, **options):.4f}",
        "average precision": f"{metrics.average_precision_score(y, scores, **options):.4f}",
        "Brier score": f"{brier:.4f}",
    }
    [confusion] = [rows for name, rows in page.tables.items() if name.startswith("Confusion")]
    counts = metrics.confusion_matrix(y, guess, **options)
    assert [row[1:] for row in confusion[1:]] == [[f"{v:,.6g}" for v in row] for row in counts]
    assert len(page.images) == 7
    certificate = model.certificate_
    assert f"at most {100 * certificate.relative_gap:.2g} % is left" in page.text
    weights = page.tables["Weights by feature"][1:]
    largest = int(np.argmax(model.coef_[0]))
    assert weights[0] == [f"feature {largest}", f"{model.coef_[0, largest]:.4g}"]
    assert float(weights[-1][1]) == pytest.approx(model.coef_.min(), rel=1e-3)
    assert dict(page.tables["Parameters"])["loss"] == "logistic"


@pytest.mark.parametrize("kind", ["search", "kernel"])
def test_probabilities_of_a_calibrated_model(kind, cancer, tmp_path):
    X, y = cancer
    if kind == "search":
        model = cutplane.LinearSVCCV([0.01, 0.1], calibrate="isotonic", cv=3)
    else:
        model = cutplane.SVC(calibrate="sigmoid", cv=3)
    cutplane.report(model.fit(X, y), X, y, tmp_path / "r.html")
    brier = metrics.brier_score_loss(y, model.predict_proba(X)[:, 1])
    assert read(tmp_path / "r.html").tiles["Brier score"] == f"{brier:.4f}"


def test_calibration_groups_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    values = rng.uniform(size=100)
    positive = rng.uniform(size=100) < values
    shares, means = calibration_curve(positive, values, n_bins=10, strategy="quantile")
    found = calibration_bins(values, positive, 10)
    np.testing.assert_allclose(found, (means, shares, np.full(10, 10)))
    doubled = calibration_bins(values, positive, 10, np.full(100, 2.0))
    np.testing.assert_allclose(doubled, found)


def test_several_classes(tmp_path):
    X, y = load_iris(return_X_y=True)
    names = np.array(["se<to>sa", "versi&color", 'virgin"ica'])[y]
    model = LinearSVC().fit(X, names)
    cutplane.report(model, X, names, tmp_path / "r.html", title="Iris <i>")
    page = read(tmp_path / "r.html")
    guess = model.predict(X)
    table = metrics.precision_recall_fscore_support(names, guess, labels=model.classes_)
    assert page.tables["Classes"][1:] == [
        [name, *(per_cent(table[c][k]) for c in range(3)), f"{table[3][k]}"]
        for k, name in enumerate(model.classes_)
    ]
    assert page.tiles["accuracy"] == per_cent(np.mean(guess == names))
    assert [row[0] for row in page.tables["Problems"][1:]] == list(model.classes_)
    assert "Iris <i>" in page.text
    summed = sum(c.primal for c in model.certificates_)
    assert float(re.search(r"objective is ([\d.]*);", page.text)[1]) == pytest.approx(summed, 1e-3)


def test_many_classes_and_classes_not_trained_on(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 3)
    X = np.eye(60)[y] + 0.4 * rng.normal(size=(180, 60))
    model = LinearSVC().fit(X[y < 58], y[y < 58])
    cutplane.report(model, X, y, tmp_path / "r.html")
    page = read(tmp_path / "r.html")
    assert "6 rows belong to classes that the model was not trained on" in page.text
    assert len(page.tables["The 50 most frequent classes"]) == 51
    guess = model.predict(X)
    counts = metrics.confusion_matrix(y, guess)
    np.fill_diagonal(counts, 0)
    pairs = page.tables["What is confused most"][1:]
    assert int(pairs[0][2]) == counts.max()
    assert all(counts[int(a), int(b)] == int(n) for a, b, n in pairs)
    assert len(page.tables["Problems of largest gap"]) == 21


def test_ranking(tmp_path):
    rng = np.random.default_rng(0)
    qid = np.repeat(rng.permutation(30) + 100, 8)
    X = rng.normal(size=(240, 4))
    y = np.clip(np.round(X[:, 0] + 0.7 * rng.normal(size=240)), 0, 3)
    y[qid == 105] = 0
    model = RankSVM().fit(X, y, qid=qid)
    cutplane.report(model, X, y, tmp_path / "r.html", qid=qid)
    page = read(tmp_path / "r.html")
    scores = model.predict(X)
    assert page.tiles["NDCG@10"] == f"{ndcg_score(y, scores, qid=qid, k=10):.4f}"
    assert page.tiles["swapped pairs"] == per_cent(swapped_pairs(y, scores, qid=qid))
    assert page.tiles["queries"] == "30"
    each = {q: ndcg_score(y[qid == q], scores[qid == q], k=10) for q in np.unique(qid)}
    # scikit-learn's, on the gains, agrees where no scores are tied
    for q in list(each)[:5]:
        own = 2 ** y[qid == q] - 1
        if own.any():
            theirs = metrics.ndcg_score([own], [scores[qid == q]], k=10)
            assert each[q] == pytest.approx(theirs)
    worst = page.tables["The worst queries"][1:]
    assert len(worst) == 10
    assert [float(row[1]) for row in worst] == pytest.approx(
        sorted(value for q, value in each.items() if y[qid == q].any())[:10], abs=1e-4
    )
    for row in worst + page.tables["The best queries"][1:]:
        rows = qid == int(row[0])
        assert float(row[1]) == pytest.approx(each[int(row[0])], abs=1e-4)
        assert row[2] == per_cent(swapped_pairs(y[rows], scores[rows]))
        assert row[3:] == ["8", str(np.count_nonzero(y[rows]))]


def test_numbers(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = LinearSVR(C=10.0).fit(X, y)
    cutplane.report(model, X, y, tmp_path / "r.html")
    page, guess = read(tmp_path / "r.html"), model.predict(X)
    assert page.tiles == {
        "R²": f"{metrics.r2_score(y, guess):.4g}",
        "mean absolute error": f"{metrics.mean_absolute_error(y, guess):.4g}",
        "root mean squared error": f"{metrics.root_mean_squared_error(y, guess):.4g}",
        "median absolute error": f"{metrics.median_absolute_error(y, guess):.4g}",
    }


def test_quantiles(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = LinearSVR(C=10.0, loss="quantile", quantile=[0.1, 0.9]).fit(X, y)
    cutplane.report(model, X, y, tmp_path / "r.html")
    rows = read(tmp_path / "r.html").tables["Quantiles"][1:]
    for (name, below, loss), column in zip(rows, model.predict(X).T, strict=True):
        assert below == per_cent(np.mean(y <= column))
        theirs = metrics.mean_pinball_loss(y, column, alpha=float(name))
        assert float(loss) == pytest.approx(theirs, rel=1e-3)


def test_chains(tmp_path):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 3)) for n in rng.integers(1, 9, 20)]
    y = [np.array(["A", "B", "C"])[rows.argmax(axis=1)] for rows in X]
    model = ChainTagger(C=10).fit(X, y)
    cutplane.report(model, X, y, tmp_path / "a.html")
    page, found = read(tmp_path / "a.html"), model.predict(X)
    tokens, guesses = np.concatenate(y), np.concatenate(found)
    assert page.tiles["right tokens"] == per_cent(metrics.accuracy_score(tokens, guesses))
    right = np.mean([np.array_equal(a, b) for a, b in zip(y, found, strict=True)])
    assert page.tiles["right sequences"] == per_cent(right)
    assert "Largest weights of one tag after another" in page.tables
    # The same rows as one matrix
    qid = np.repeat(np.arange(20), [len(rows) for rows in X])
    cutplane.report(model, np.vstack(X), tokens, tmp_path / "b.html", qid=qid)
    assert read(tmp_path / "b.html").tables["tiles"] == page.tables["tiles"]


def test_chunks_of_a_tagger(tmp_path):
    """Tags such as B-NP stand for chunks; these are counted here by hand."""
    tags = np.array(["B-NP", "I-NP", "B-VP", "O"])
    X = [np.eye(4)[rows] for rows in ([0, 1, 3], [2, 0, 1], [0, 2, 3])]
    y = [tags[rows.argmax(axis=1)] for rows in X]
    model = ChainTagger(C=10).fit(X, y)
    found = model.predict(X)
    assert all(map(np.array_equal, found, y))
    truth = [y[0], np.array(["B-VP", "B-NP", "O"]), y[2]]  # one chunk is too long
    cutplane.report(model, X, truth, tmp_path / "r.html")
    page = read(tmp_path / "r.html")
    assert page.tiles["chunk precision"] == page.tiles["chunk recall"] == per_cent(4 / 5)
    assert page.tiles["chunk F1"] == per_cent(4 / 5)
    assert page.tables["Chunks by type"] == [
        ["type", "precision", "recall", "F1"],
        ["NP", *[per_cent(2 / 3)] * 3],
        ["VP", *[per_cent(1)] * 3],
    ]


def test_grades(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=150), [-1, 0, 1]) + 2
    model = OrdinalSVC().fit(X, y)
    cutplane.report(model, X, y, tmp_path / "r.html")
    page = read(tmp_path / "r.html")
    off = metrics.mean_absolute_error(y, model.predict(X))
    assert page.tiles["mean distance in classes"] == f"{off:.4f}"
    assert page.tiles["swapped pairs"] == per_cent(swapped_pairs(y, model.score_samples(X)))


def test_kernels_and_novelties(cancer, tmp_path):
    X, y = cancer
    model = SVC(gamma=0.03).fit(X, y)
    cutplane.report(model, X, y, tmp_path / "a.html")
    page = read(tmp_path / "a.html")
    assert page.tiles["accuracy"] == per_cent(model.score(X, y))
    assert f"computed from {len(model.support_):,} training rows" in page.text
    novelty = OneClassSVM(gamma=0.03, nu=0.2).fit(X)
    cutplane.report(novelty, X, None, tmp_path / "b.html")
    inside = read(tmp_path / "b.html").tiles["rows inside"]
    assert inside == per_cent(np.mean(novelty.predict(X) == 1))
    truth = np.where(y == 1, 1, -1)
    cutplane.report(novelty, X, truth, tmp_path / "c.html")
    area = metrics.roc_auc_score(truth, novelty.decision_function(X))
    assert read(tmp_path / "c.html").tiles["ROC area"] == f"{area:.4f}"


def test_outputs_of_a_users_own(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = StructuredSVM(MulticlassProblem()).fit(X, y)
    cutplane.report(model, X, y, tmp_path / "r.html")
    assert read(tmp_path / "r.html").tiles["mean loss"] == f"{np.mean(model.predict(X) != y):.4g}"


def test_path_of_several_c(cancer, tmp_path):
    X, y = cancer
    model = LinearSVCCV(Cs=[0.01, 0.1, 1.0], cv=3).fit(X, y)
    cutplane.report(model, X, y, tmp_path / "r.html")
    rows = read(tmp_path / "r.html").tables["Values of C"][1:]
    assert [float(row[0]) for row in rows] == pytest.approx(model.Cs_)
    assert [row[1] for row in rows] == [f"{v:.4f}" for v in model.scores_.mean(axis=0)]


def test_pipeline_names_the_words_of_a_text(tmp_path):
    texts = ["good film", "fine film", "bad film", "awful film"] * 5
    labels = ["up", "up", "down", "down"] * 5
    model = make_pipeline(TfidfVectorizer(), LinearSVC(C=10)).fit(texts, labels)
    cutplane.report(model, texts, labels, tmp_path / "r.html")
    page = read(tmp_path / "r.html")
    words = {row[0] for row in page.tables["Weights by feature"][1:]}
    assert {"good", "fine", "bad", "awful"} <= words
    assert page.tiles["accuracy"] == "100.00 %"


# -- names, sizes -------------------------------------------------------------


def test_any_name_can_be_shown(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.normal(size=(60, 3)), columns=[NASTY, "$\\frac{1}$", "plain"])
    y = np.array([NASTY + "1", NASTY + "2", "$x_{"])[rng.integers(0, 3, 60)]
    model = LinearSVC().fit(X, y)
    cutplane.report(model, X, y, tmp_path / "a.html", title=NASTY)
    read(tmp_path / "a.html")
    two = np.where(X["plain"] > X[NASTY], "$x_{", NASTY)
    cutplane.report(LinearSVC().fit(X, two), X, two, tmp_path / "b.html")
    page = read(tmp_path / "b.html")
    names = [row[0] for row in page.tables["Weights by feature"][1:]]
    assert any(name.startswith('<script>alert("x")</script>&amp; $a$ é 漢字') for name in names)
    assert max(map(len, names)) <= 80


def test_many_rows_make_a_small_page(cancer, tmp_path):
    X, y = cancer
    model = LinearSVC(C=0.1).fit(X, y)
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300_000)
    scores = rng.normal(size=300_000) + truth
    guess = (scores > 0).astype(int)
    write_report(model, Answers(truth, guess, scores), tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size < 500_000
    page = read(tmp_path / "r.html")
    assert page.tiles["ROC area"] == f"{metrics.roc_auc_score(truth, scores):.4f}"


def test_classes_whose_names_begin_alike(tmp_path):
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = LinearSVC(C=10).fit(X, ["abc", "abc", "abcd", "abcd"])
    cutplane.report(model, X[:2], ["abc", "abc"], tmp_path / "r.html")
    page = read(tmp_path / "r.html")
    assert page.tiles["accuracy"] == "100.00 %"
    [confusion] = [rows for name, rows in page.tables.items() if name.startswith("Confusion")]
    assert confusion[1:] == [["abc", "2", "0"], ["abcd", "0", "0"]]


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_few_rows(cancer, tmp_path, rows):
    X, y = cancer
    model = LinearSVC(C=0.1).fit(X, y)
    cutplane.report(model, scipy.sparse.csr_matrix(X[:rows]), y[:rows], tmp_path / "r.html")
    page = read(tmp_path / "r.html")
    assert "ROC area" not in page.tiles  # all of one class
    X, y = load_diabetes(return_X_y=True)
    regressor = LinearSVR(C=10.0).fit(X, y)
    cutplane.report(regressor, X[:rows], y[:rows], tmp_path / "n.html")
    read(tmp_path / "n.html")


def test_unconverged_and_without_certificate(cancer, tmp_path):
    X, y = cancer
    with pytest.warns(UserWarning):
        model = LinearSVC(C=100.0, max_iter=1).fit(X, y)
    cutplane.report(model, X, y, tmp_path / "a.html")
    assert "reached max_iter, after 1 iteration" in read(tmp_path / "a.html").text
    with pytest.warns(UserWarning):
        model = SVC(kernel="sigmoid", gamma=1.0, coef0=-3.0).fit(X[:100], y[:100])
    cutplane.report(model, X, y, tmp_path / "b.html")
    assert "there is no certificate" in read(tmp_path / "b.html").text


# -- what is refused ----------------------------------------------------------


def test_bad_input(cancer, tmp_path):
    X, y = cancer
    target = tmp_path / "r.html"
    model = LinearSVC(C=0.1).fit(X, y)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        cutplane.report(LinearSVC(), X, y, target)
    with pytest.raises(TypeError, match=r"estimator of cutplane .* got StandardScaler"):
        cutplane.report(StandardScaler().fit(X), X, y, target)
    with pytest.raises(ValueError, match="y is missing"):
        cutplane.report(model, X, None, target)
    with pytest.raises(ValueError, match="y must hold one value for each of the 569 rows"):
        cutplane.report(model, X, y[:5], target)
    with pytest.raises(ValueError, match="sample_weight must hold finite numbers"):
        cutplane.report(model, X, y, target, sample_weight=-np.ones(len(y)))
    with pytest.raises(ValueError, match="no rows"):
        cutplane.report(model, X[:0], y[:0], target)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        cutplane.report(model, X, y, tmp_path / "none" / "r.html")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        cutplane.report(model, X, y, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_function_is_not_hidden_by_a_module():
    import cutplane.reporting.plots

    assert callable(cutplane.report)


# -- commands -----------------------------------------------------------------


def test_commands(cancer, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y = cancer
    cutplane.dump_svmlight(X, y, "data.svm")
    assert main(["train", "--quiet", "--report", "fit.html", "data.svm", "model"]) == 0
    assert main(["evaluate", "--report", "eval.html", "data.svm", "model"]) == 0
    printed = capsys.readouterr().out
    fit, evaluation = read(tmp_path / "fit.html"), read(tmp_path / "eval.html")
    assert fit.tiles == evaluation.tiles
    assert "trained on: expect less" in fit.text
    assert "trained on: expect less" not in evaluation.text
    for name in ("accuracy", "precision", "recall", "F1"):
        assert re.search(rf"^{name} +{re.escape(fit.tiles[name])}", printed, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--report", "no/fit.html", "data.svm", "model"], "cannot write no/fit.html"),
        (["train", "--report", "model", "data.svm", "model"], "a file of its own"),
        (["train", "--report", "-", "data.svm", "model"], "a file of its own"),
        (["evaluate", "--report", "r.html", "--predictions", "p", "data.svm"], "about a MODEL"),
    ],
)
def test_commands_refuse(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.svm").write_text("1 1:1\n-1 1:2\n")
    assert main(arguments) != 0
    assert message in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


# -- in a browser -------------------------------------------------------------

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.parametrize("width", [400, 1200])
def test_screenshot(cancer, tmp_path, width):
    """The page is drawn, and is not an empty one."""
    X, y = cancer
    cutplane.report(LinearSVC(C=0.1).fit(X, y), X, y, tmp_path / "r.html")
    subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--window-size={width},3000",
            f"--screenshot={tmp_path / 'r.png'}",
            (tmp_path / "r.html").as_uri(),
        ],
        check=True,
        timeout=120,
    )
    from matplotlib.image import imread

    pixels = imread(tmp_path / "r.png")
    assert pixels.shape[1] == width
    assert pixels.std() > 0.05
