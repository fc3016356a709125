"""Fitted estimators of every kind, and what they predict."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.datasets import load_digits

from cutplane import (
    SVC,
    SVR,
    ChainTagger,
    CholeskyFeatures,
    LinearSVC,
    LinearSVR,
    MeasureSVC,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    SampledCutSVC,
    StructuredSVM,
)
from cutplane.structured import BinaryProblem, MulticlassProblem

METHODS = ("predict", "decision_function", "predict_proba", "score_samples", "transform")


@dataclass(eq=False)
class Case:
    """An estimator with its data."""

    make: Callable[[], Any]
    X: Any
    y: Any

    def fitted(self) -> Any:
        """The same object every time."""
        return _fitted(self)


@cache
def _fitted(case: Case) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return case.make().fit(case.X, case.y)


_rng = np.random.default_rng(0)
X = _rng.normal(size=(90, 6))
y = np.where(X[:, 0] + 0.5 * _rng.normal(size=90) > 0, "yes", "no")
three = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])
sparse = scipy.sparse.csr_matrix(np.where(np.abs(X) > 0.8, X, 0.0))
digits, digit = (values[:200] for values in load_digits(return_X_y=True))
sequences = [_rng.normal(size=(length, 5)) for length in (3, 1, 6, 4, 0, 5)]
tags = [np.array(["N", "V", "A"])[_rng.integers(0, 3, len(rows))] for rows in sequences]

CASES = {
    "linear": Case(LinearSVC, X, y),
    "linear multiclass": Case(lambda: LinearSVC(class_weight={0: 2.0, 2: 0.5}), X, three),
    "linear joint": Case(lambda: LinearSVC(multi_class="crammer_singer"), X, three),
    "linear sparse": Case(lambda: LinearSVC(loss="logistic", random_state=3), sparse, y == "yes"),
    "linear many features": Case(lambda: LinearSVC(C=0.01), np.tile(X, 60), three * 2.0),
    "linear regression": Case(LinearSVR, X, X[:, 0] ** 2),
    "quantiles": Case(lambda: LinearSVR(loss="quantile", quantile=[0.2, 0.7]), sparse, X[:, 0]),
    "measure": Case(lambda: MeasureSVC("f1"), X, y),
    "measure at k": Case(lambda: MeasureSVC("precision_at_k", k=5, C=0.1), X, y),
    "rank": Case(RankSVM, X, X[:, 0].round(1)),
    "ordinal": Case(OrdinalSVC, X, three),
    "rbf": Case(SVC, X, y),
    "rbf float32 columns": Case(SVC, np.asfortranarray(X, dtype=np.float32), y),
    "rbf sparse": Case(lambda: SVC(C=3, gamma=0.1), scipy.sparse.csr_array(sparse), y),
    "poly one-vs-one": Case(lambda: SVC(kernel="poly", degree=2, coef0=1.0), X, three),
    "linear kernel one-vs-rest": Case(lambda: SVC(kernel="linear", multi_class="ovr"), X, three),
    "pairs": Case(lambda: SVC(decision_function_shape="ovo", gamma=0.3), digits, digit),
    "ties": Case(lambda: SVC(break_ties=True, class_weight="balanced"), X, three),
    "sigmoid": Case(lambda: SVC(kernel="sigmoid", gamma=0.01), X, y),
    "calibrated": Case(lambda: SVC(calibrate="isotonic", cv=3), X, three),
    "precomputed": Case(lambda: SVC(kernel="precomputed"), X @ X.T, y),
    "regression": Case(lambda: SVR(C=3), X, X[:, 0] ** 2),
    "one class": Case(lambda: OneClassSVM(nu=0.2), X, None),
    "sampled": Case(lambda: SampledCutSVC(sample_size=30, random_state=0), X, three),
    "sampled, two classes": Case(lambda: SampledCutSVC(method="exact"), sparse, y),
    "features": Case(lambda: CholeskyFeatures(n_components=9, random_state=0), X, None),
    "chain": Case(lambda: ChainTagger(C=1), sequences, tags),
    "chain order 2": Case(lambda: ChainTagger(C=1, order=2, boundaries=True), sequences, tags),
    "chain rbf": Case(lambda: ChainTagger(C=1, kernel="rbf"), sequences, tags),
    "chain poly order 2": Case(
        lambda: ChainTagger(
            C=5, kernel="poly", degree=2, order=2, method="linear", sample_size=5, max_basis=4
        ),
        sequences,
        tags,
    ),
    "structured": Case(lambda: StructuredSVM(MulticlassProblem()), X, three),
    "structured rbf": Case(lambda: StructuredSVM(MulticlassProblem(), kernel="rbf"), X, three),
    "structured binary": Case(lambda: StructuredSVM(BinaryProblem(["no", "yes"])), X, y),
}


def predictions(model: Any, X: Any) -> list[Any]:
    """All that a model says of some rows."""
    answers = [getattr(model, name)(X) for name in METHODS if hasattr(model, name)]
    return [item for answer in answers for item in (answer if type(answer) is list else [answer])]


def assert_same_bits(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert type(a) is type(b) and a.shape == b.shape and a.dtype.kind == b.dtype.kind
        np.testing.assert_array_equal(a, b)
