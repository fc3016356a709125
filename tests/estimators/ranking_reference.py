"""What the tests of MeasureSVC, RankSVM and OrdinalSVC compare with.

Pairs are written out, labellings and tables are enumerated, and tiny problems go to another
solver with a slack for every pair, or a constraint for every labelling. Nothing here
shares a line with the package.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from sklearn.svm import SVC

from cutplane import MeasureSVC, OrdinalSVC, RankSVM, Status

MEASURES = ("roc_auc", "f1", "precision_at_k", "recall_at_k", "prbep", "error_rate")
AT_TOP = ("precision_at_k", "recall_at_k", "prbep")
# Sums of many floating point numbers, in another order than the package's own.
ROUNDING = 1e-9


# -- data and estimators --------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """Rows with targets of every kind; read-only, so that no test can spoil another's data.

    Attributes
    ----------
    labels : ndarray of 0 and 1
    levels : ndarray of 0 to 4
    values : ndarray of float64
        All different.
    qid : ndarray of int64
        In no order.
    """

    X: np.ndarray
    labels: np.ndarray
    levels: np.ndarray
    values: np.ndarray
    qid: np.ndarray


@functools.cache
def make_data(
    rows: int = 200,
    features: int = 6,
    *,
    seed: int = 0,
    share: float = 0.25,
    queries: int = 20,
    noise: float = 1.0,
) -> Data:
    """Noisy data: no measure is perfect on it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) + 0.5
    values = X @ rng.normal(size=features) + noise * rng.normal(size=rows)
    labels = (values > np.quantile(values, 1.0 - share)).astype(int)
    levels = np.digitize(values, np.quantile(values, [0.3, 0.5, 0.8, 0.95]))
    data = Data(X, labels, levels, values, rng.integers(0, queries, rows))
    for array in (X, labels, levels, values, data.qid):
        array.flags.writeable = False
    return data


@dataclass(frozen=True)
class Case:
    """An estimator, and what of the data it is fitted to."""

    name: str
    make: Callable[..., Any]
    target: str
    by_query: bool | None = False  # None for one query, given as such

    def y(self, data: Data) -> np.ndarray:
        return getattr(data, self.target)

    def extra(self, data: Data) -> dict[str, np.ndarray]:
        if self.by_query is None:
            return {"qid": np.zeros(len(data.qid), int)}
        return {"qid": data.qid} if self.by_query else {}

    def fit(self, data: Data, X: Any = None, **parameters: Any) -> Any:
        """A new model, fitted; to other rows of features if given.

        C is that of the mean risk: the estimators take it per row.
        """
        if "C" in parameters:
            parameters["C"] /= mass(self.y(data), None, self.extra(data).get("qid"))
        model = self.make(**parameters)
        return model.fit(data.X if X is None else X, self.y(data), **self.extra(data))

    def objective(self, model: Any, data: Data) -> float:
        return objective(model, data.X, self.y(data), **self.extra(data))

    def assert_certified(self, model: Any, data: Data, **options: Any) -> None:
        assert_certified(model, data.X, self.y(data), **self.extra(data), **options)


MEASURE_CASES = [Case(name, functools.partial(MeasureSVC, name), "labels") for name in MEASURES]
RANK_CASES = [
    Case("rank", RankSVM, "levels", by_query=True),
    Case("rank by query", functools.partial(RankSVM, weighting="queries"), "levels", by_query=True),
    Case("rank real", RankSVM, "values", by_query=None),
]
ORDINAL_CASES = [
    Case("ordinal", OrdinalSVC, "levels"),
    Case("ordinal zero_one", functools.partial(OrdinalSVC, criterion="zero_one"), "levels"),
]
CASES = [*MEASURE_CASES, *RANK_CASES, *ORDINAL_CASES]
# One of each kind of risk.
FEW_CASES = [MEASURE_CASES[0], MEASURE_CASES[1], MEASURE_CASES[4], RANK_CASES[1], ORDINAL_CASES[0]]


def case_name(case: Case) -> str:
    return case.name


# -- pairs ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Pairs:
    """All pairs of rows to be ranked, and the share of the risk that each has."""

    above: np.ndarray
    below: np.ndarray
    share: np.ndarray

    def risk(self, scores: np.ndarray) -> float:
        margins = scores[self.above] - scores[self.below]
        return float(self.share @ np.maximum(0.0, 1.0 - margins))

    def swapped(self, scores: np.ndarray) -> float:
        """Share of the pairs in the wrong order, ties counting one half."""
        margins = scores[self.above] - scores[self.below]
        return float(self.share @ ((margins < 0.0) + 0.5 * (margins == 0.0)))


def all_pairs(y, qid=None, weights=None, weighting="pairs") -> Pairs:
    y = np.asarray(y)
    qid = np.zeros(len(y), int) if qid is None else np.asarray(qid)
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    wanted = np.greater.outer(y, y) & np.equal.outer(qid, qid)
    above, below = np.nonzero(wanted & (np.multiply.outer(weights, weights) > 0.0))
    share = weights[above] * weights[below]
    if weighting == "pairs":
        return Pairs(above, below, share / share.sum())
    query = qid[above]
    queries = np.unique(query)
    for q in queries:
        share[query == q] /= share[query == q].sum() * len(queries)
    return Pairs(above, below, share)


# -- measures -------------------------------------------------------------------------


def measure_planes(measure: str, truth: np.ndarray, k: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and offset of the plane of every labelling: the risk is the highest one.

    ``truth`` holds 0 and 1. A labelling of k rows is compared with the best ones of its
    size, the mean of those nearest to it; any other labelling with the truth.
    """
    m, p = len(truth), int(truth.sum())
    every = np.array(list(itertools.product([0, 1], repeat=m)))
    if measure in AT_TOP:
        every = every[every.sum(axis=1) == k]
        best = every[every @ truth == min(k, p)]
        reference = []
        for labelling in every:
            distance = np.abs(best - labelling).sum(axis=1)
            reference.append(best[distance == distance.min()].mean(axis=0))
        hits = every @ truth
        loss = 1.0 - hits / (p if measure == "recall_at_k" else k)
        return (every - np.array(reference)) / m, loss
    hits, size = every @ truth, every.sum(axis=1)
    loss = (every != truth).mean(axis=1) if measure == "error_rate" else 1 - 2 * hits / (p + size)
    return (every - truth) / m, loss


def measure_risk(measure: str, scores: np.ndarray, truth: np.ndarray, k: int | None) -> float:
    """The risk by enumeration of the tables: a true positives and b false ones, the highest."""
    if measure == "roc_auc":
        return all_pairs(truth).risk(scores)
    if measure == "error_rate":
        return float(np.mean(np.maximum(0.0, 1.0 - np.where(truth == 1, 1.0, -1.0) * scores)))
    m, p = len(truth), int(truth.sum())
    high = np.append(0.0, np.cumsum(-np.sort(-scores[truth == 1])))
    wrong = np.append(0.0, np.cumsum(-np.sort(-scores[truth == 0])))
    missed = high[-1] - high
    if measure == "f1":
        a, b = np.arange(p + 1)[:, None], np.arange(m - p + 1)
        return float(np.max(1.0 - 2.0 * a / (p + a + b) + (wrong - missed[:, None]) / m))
    values = []
    for a in range(max(0, k - (m - p)), min(k, p) + 1):
        exchanged = min(k, p) - a
        value = 1.0 - a / (p if measure == "recall_at_k" else k)
        if exchanged:
            value += exchanged / m * (wrong[k - a] / (k - a) - missed[a] / (p - a))
        values.append(value)
    return max(values)


def measure_loss(model: MeasureSVC, X, truth) -> float:
    """One minus the measure on these rows; of rows that tie at the k-th place the worst are taken.

    Whoever ranks may take any of them: the risk bounds the loss of every choice.
    """
    scores = X @ model.coef_[0]
    if model.measure == "roc_auc":
        return all_pairs(truth).swapped(scores)
    if model.measure in AT_TOP:
        order = np.lexsort((truth, -scores))
        hits = truth[order[: model.k_]].sum()
        return 1.0 - hits / (truth.sum() if model.measure == "recall_at_k" else model.k_)
    predicted = scores + model.intercept_[0] > 0.0
    if model.measure == "error_rate":
        return float(np.mean(predicted != truth))
    return 1.0 - 2.0 * np.sum(predicted & (truth == 1)) / (truth.sum() + predicted.sum())


# -- objectives -----------------------------------------------------------------------


def mass(y, weights=None, qid=None) -> float:
    """The sum of the weights, without queries that have no pair: C multiplies a mean risk by it."""
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    if qid is None:
        return float(weights.sum())
    y, qid = np.asarray(y), np.asarray(qid)
    of_query = [(qid == q) & (weights > 0.0) for q in np.unique(qid)]
    return float(sum(weights[rows].sum() for rows in of_query if len(np.unique(y[rows])) > 1))


def objective(model, X, y, qid=None, weights=None) -> float:
    """½|w|² + C·m·risk of a fitted model, by hand from what it has stored."""
    w, C = model.coef_[0], model.C * mass(y, weights, qid)
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    scores, norm = X @ w, 0.5 * float(w @ w)
    if isinstance(model, RankSVM):
        return norm + C * all_pairs(y, qid, weights, model.weighting).risk(scores)
    if isinstance(model, OrdinalSVC):
        ranks = np.searchsorted(model.classes_, y)
        return norm + C * all_pairs(ranks, None, weights).risk(scores)
    truth = (y == model.classes_[1]).astype(int)
    if model.measure == "roc_auc":
        return norm + C * all_pairs(truth, None, weights).risk(scores)
    if model.measure in ("f1", "error_rate"):
        scores = scores + model.intercept_[0]
        scaling = model.intercept_scaling or (1.0 if model.measure == "f1" else np.inf)
        norm += 0.5 * (model.intercept_[0] / scaling) ** 2
    if model.measure == "error_rate":
        losses = np.maximum(0.0, 1.0 - np.where(truth == 1, 1.0, -1.0) * scores)
        return norm + C * float(np.average(losses, weights=weights))
    if weights is not None:
        scores, truth = (np.repeat(array, np.asarray(weights, int)) for array in (scores, truth))
    return norm + C * measure_risk(model.measure, scores, truth, getattr(model, "k_", None))


def assert_certified(model, X, y, qid=None, weights=None, *, known=None, rounding=ROUNDING) -> None:
    """The certificate tells the truth about the stored model.

    Its primal is the objective of ``coef_``; its dual lies below every known objective; its
    gap is within the tolerance if the fit is said to have converged; and the one in units
    of the measure is the same divided by C·m.
    """
    proof, C = model.certificate_, model.C * mass(y, weights, qid)
    value = objective(model, X, y, qid, weights)
    assert np.isfinite([proof.primal, proof.dual]).all()
    assert proof.kind == "exact"
    # A violation near 0 is the difference of two numbers near 1: C times its rounding counts.
    np.testing.assert_allclose(proof.primal, value, rtol=rounding, atol=1e-14 * C)
    assert 0.0 <= proof.dual <= proof.primal
    assert proof.gap == proof.primal - proof.dual
    if model.results_[0].status is Status.CONVERGED:
        scale = {"relative": proof.primal, "absolute": 1.0, "epsilon": C}
        assert proof.gap <= model.tol * scale[model.stopping] * (1.0 + rounding)
    if known is not None:
        assert proof.dual <= known * (1.0 + rounding)
    assert model.risk_certificate_.primal == pytest.approx(proof.primal / C, rel=1e-14)
    assert model.risk_certificate_.dual == pytest.approx(proof.dual / C, rel=1e-14)
    assert model.risk_certificate_.kind == proof.kind


# -- other solvers --------------------------------------------------------------------


def best_for_pairs(X: np.ndarray, pairs: Pairs, C: float) -> float:
    """The optimum of ½|w|² + C·risk by libsvm, which has a dual variable for every pair.

    Each difference of two rows goes in twice, with both signs, so that the bias, which
    libsvm always has, is 0 by symmetry. The answer is its dual, which is far closer to the
    optimum than its primal; that one shows that both are near.
    """
    rows = X[pairs.above] - X[pairs.below]
    solver = SVC(kernel="linear", C=1.0, tol=1e-12)
    solver.fit(
        np.vstack([rows, -rows]),
        np.repeat([1, -1], len(rows)),
        sample_weight=np.tile(0.5 * C * pairs.share, 2),
    )
    w = solver.coef_[0]
    upper = 0.5 * float(w @ w) + C * pairs.risk(X @ w)
    lower = float(np.abs(solver.dual_coef_).sum()) - 0.5 * float(w @ w)
    assert upper - lower <= 1e-5 * upper
    return lower


def best_for_planes(
    X: np.ndarray, coef: np.ndarray, offset: np.ndarray, C: float, free: int = 0
) -> float:
    """The optimum of ½|w|² + C·max(coef·Xw + offset) by a generic solver, SLSQP.

    Its variables are w and a slack for the maximum. The last ``free`` features have
    weights that cost nothing.
    """
    planes = coef @ X
    n, d = planes.shape
    square = np.append(np.ones(d), 0.0)
    square[d - free : d] = 0.0
    linear = np.append(np.zeros(d), 1.0)
    rows = np.hstack([-planes, np.ones((n, 1))])
    found = scipy.optimize.minimize(
        lambda v: 0.5 / C * square @ (v * v) + linear @ v,
        offset.max() * linear,
        jac=lambda v: square * v / C + linear,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: rows @ v - offset, "jac": lambda v: rows},
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    w = found.x[:d]
    return 0.5 * float(square[:d] @ (w * w)) + C * float(np.max(planes @ w + offset))
