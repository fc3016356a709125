"""The methods and measures of section ``quality``: ours, the plain hinge SVM, ridge regression.

A parameter C multiplies the mean loss for all SVMs; ridge regression has its own α.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

from cutplane import LinearSVC, MeasureSVC, OrdinalSVC, RankSVM
from cutplane.metrics import ndcg_score, prbep, precision_at_k, recall_at_k, swapped_pairs
from cutplane.risks.thresholds import fit_thresholds

from ..datasets import DataSet
from .selection import Answer, Measure, Method, Predictor
from .solvers import K

HINGE, TUNED, RIDGE = "hinge SVM", "hinge SVM, tuned threshold", "ridge regression"
BALANCED, PER_CLASS, JOINT = "hinge SVM, balanced", "hinge SVM per class", "Crammer–Singer SVM"


# -- measures -------------------------------------------------------------------------


def f1(y: np.ndarray, qid: np.ndarray | None, answer: Answer) -> float:
    predicted, positive = answer.labels > 0, y > 0
    return float(2.0 * np.sum(predicted & positive) / max(1, predicted.sum() + positive.sum()))


def _at(name: str, value: Any) -> Measure:
    """A measure whose k is a multiple of the number of positive rows."""

    def measured(y: np.ndarray, qid: np.ndarray | None, answer: Answer) -> float:
        k = max(1, round(K[name] * int(np.sum(y > 0))))
        return value(y, answer.scores, k)

    return Measure(name, measured)


ROC_AREA = Measure("roc_auc", lambda y, qid, a: float(roc_auc_score(y, a.scores)))
F1 = Measure("f1", f1)
PRECISION = _at("precision_at_k", precision_at_k)
RECALL = _at("recall_at_k", recall_at_k)
BREAK_EVEN = Measure("prbep", lambda y, qid, a: prbep(y, a.scores))
NDCG = Measure("NDCG@10", lambda y, qid, a: ndcg_score(y, a.scores, qid=qid, k=10))
SWAPPED = Measure(
    "swapped pairs", lambda y, qid, a: swapped_pairs(y, a.scores, qid=qid), larger_is_better=False
)
ABSOLUTE = Measure(
    "MAE in ranks", lambda y, qid, a: float(np.mean(np.abs(y - a.labels))), larger_is_better=False
)
ACCURACY = Measure("accuracy", lambda y, qid, a: float(np.mean(y == a.labels)))


# -- two classes ----------------------------------------------------------------------


def measure_svm(measure: str, grid: tuple[float, ...], seconds: float) -> Method:
    """``MeasureSVC``. For F1 also with a tuned threshold, as the hinge SVM has it."""
    name = f"MeasureSVC {measure}"
    more = {"k": K[measure]} if measure in ("precision_at_k", "recall_at_k") else {}

    def fit(train: DataSet, vali: DataSet, C: float) -> dict[str, Predictor]:
        model = MeasureSVC(measure, C=C / len(train.y), time_limit=seconds, **more)
        model.fit(train.X, train.y)
        found = {name: classifier(model)}
        if measure == "f1":
            found[f"{name}, tuned threshold"] = tuned_f1(model, vali)
        return found

    return Method(grid, fit)


def hinge(
    grid: tuple[float, ...],
    seconds: float,
    *,
    balanced: bool = False,
    tuned: bool = False,
    above: float = 0.0,
) -> Method:
    """The plain SVM for y > above. If ``balanced``, both classes have the same weight.

    If classes overlap and one of them is rare, w = 0 may be the optimum of the plain SVM.
    """

    def fit(train: DataSet, vali: DataSet, C: float) -> dict[str, Predictor]:
        weight = "balanced" if balanced else None
        model = LinearSVC(C=C / len(train.y), class_weight=weight, time_limit=seconds)
        model.fit(train.X, np.where(train.y > above, 1.0, -1.0))
        found = {BALANCED if balanced else HINGE: classifier(model)}
        if tuned:
            found[TUNED] = tuned_f1(model, vali)
        return found

    return Method(grid, fit)


def classifier(model: Any, threshold: float = 0.0) -> Predictor:
    def predict(X: Any) -> Answer:
        scores = model.decision_function(X) - threshold
        return Answer(scores, np.where(scores > 0.0, 1.0, -1.0))

    return predict


def tuned_f1(model: Any, vali: DataSet) -> Predictor:
    """The threshold with the best F1 on the validation rows."""
    scores = model.decision_function(vali.X)
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(vali.y[order] > 0)
    taken = np.arange(1, len(order) + 1)
    values = 2.0 * hits / (taken + hits[-1])
    ranked = scores[order]
    last = np.append(ranked[1:] < ranked[:-1], True)  # equal scores are taken together
    best = int(np.argmax(np.where(last, values, -1.0)))
    below = ranked[best + 1] if best + 1 < len(ranked) else ranked[best] - 1.0
    return classifier(model, 0.5 * (ranked[best] + below))


# -- rankings and ordered classes -----------------------------------------------------


def rank_svm(grid: tuple[float, ...], seconds: float, weighting: str = "pairs") -> Method:
    name = "RankSVM" + (", queries alike" if weighting == "queries" else "")

    def fit(train: DataSet, vali: DataSet, C: float) -> dict[str, Predictor]:
        model = RankSVM(C / len(train.y), weighting=weighting, time_limit=seconds)
        more = {} if train.qid is None else {"qid": train.qid}
        model.fit(train.X, train.y, **more)
        return {name: scorer(model)}

    return Method(grid, fit)


def scorer(model: Any) -> Predictor:
    def predict(X: Any) -> Answer:
        scores = model.predict(X)
        return Answer(scores, scores)

    return predict


def ordinal_svm(grid: tuple[float, ...], seconds: float) -> Method:
    """``OrdinalSVC`` with both criteria for its thresholds, for which w is the same."""

    def fit(train: DataSet, vali: DataSet, C: float) -> dict[str, Predictor]:
        model = OrdinalSVC(C / len(train.y), time_limit=seconds).fit(train.X, train.y)
        ranks = np.searchsorted(model.classes_, train.y)
        scores, ones = model.score_samples(train.X), np.ones(len(train.y))
        exact = fit_thresholds(scores, ranks, ones, len(model.classes_), "zero_one")
        return {
            "OrdinalSVC": _cut(model, model.thresholds_),
            "OrdinalSVC, criterion zero_one": _cut(model, exact),
        }

    return Method(grid, fit)


def _cut(model: Any, thresholds: np.ndarray) -> Predictor:
    def predict(X: Any) -> Answer:
        scores = model.score_samples(X)
        return Answer(scores, model.classes_[np.searchsorted(thresholds, scores, side="left")])

    return predict


def hinge_of_classes(grid: tuple[float, ...], seconds: float, *, joint: bool = False) -> Method:
    """The plain SVM, one class against the rest, or all classes jointly.

    The predicted classes are its only order of the rows.
    """
    kind = "crammer_singer" if joint else "ovr"

    def fit(train: DataSet, vali: DataSet, C: float) -> dict[str, Predictor]:
        model = LinearSVC(C=C / len(train.y), multi_class=kind, time_limit=seconds)
        model.fit(train.X, train.y)

        def predict(X: Any) -> Answer:
            labels = model.predict(X)
            return Answer(labels.astype(np.float64), labels)

        return {JOINT if joint else PER_CLASS: predict}

    return Method(grid, fit)


def ridge(grid: tuple[float, ...]) -> Method:
    """Ridge regression on the targets. Predicted ranks are the nearest ones."""

    def fit(train: DataSet, vali: DataSet, alpha: float) -> dict[str, Predictor]:
        X = train.X.astype(np.float64)
        model = Ridge(alpha=alpha).fit(X, train.y.astype(np.float64))
        low, high = float(train.y.min()), float(train.y.max())

        def predict(X: Any) -> Answer:
            scores = model.predict(X)
            return Answer(scores, np.clip(np.rint(scores), low, high))

        return {RIDGE: predict}

    return Method(grid, fit)
