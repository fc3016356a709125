"""Predictions of a linear model straight from its file, without its estimator.

An estimator is one of scikit-learn, whose import takes longer than most files take to predict. A
linear model needs none of it: scores are X·coef + intercept. Whatever is unusual about a file is
left to ``load_model``, which knows what to say about it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import store
from ..data import as_blocks
from ..estimators._attributes import check_stored
from ..exec import make_executor
from ..store.container import WRONG
from ..store.values import Decoder

CLASSIFIERS = ("LinearSVC", "MeasureSVC")
KINDS = (*CLASSIFIERS, "LinearSVR", "RankSVM")  # with one score per row, or one per class


@dataclass
class LinearScorer:
    """What predictions of a linear model are made of; the names are those of the estimator.

    Attributes
    ----------
    estimator : str
        Name of the class.
    coef_ : ndarray, shape (n_outputs, n_features)
    intercept_ : ndarray, shape (n_outputs,)
    classes_ : ndarray
        Empty unless it is a classifier.
    parameters : dict
    feature_names_in_ : ndarray or None
    n_jobs : int or None
    """

    estimator: str
    coef_: np.ndarray
    intercept_: np.ndarray
    classes_: np.ndarray
    parameters: dict[str, Any]
    feature_names_in_: np.ndarray | None = None
    n_jobs: int | None = None

    @property
    def n_features_in_(self) -> int:
        """How many features a row has."""
        return self.coef_.shape[1]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters."""
        return dict(self.parameters)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: shape (n_samples,), or (n_samples, n_classes)."""
        matrix = as_blocks(X, compact=False)
        single = len(self.coef_) == 1
        w = self.coef_[0] if single else np.ascontiguousarray(self.coef_.T)
        scores = np.empty(len(matrix) if single else (len(matrix), w.shape[1]))
        with make_executor(self.n_jobs, matrix.n_stored) as executor:
            matrix.scores(w, scores, executor)
        return scores + (self.intercept_[0] if single else self.intercept_)

    def predict(self, X: Any) -> np.ndarray:
        """Labels of a classifier, scores of others."""
        scores = self.decision_function(X)
        if self.estimator not in CLASSIFIERS:
            return scores
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best]


def read_scorer(path: Any, defaults: Callable[[str], dict[str, Any]]) -> LinearScorer | None:
    """The scorer of a file, or None if ``load_model`` is needed.

    Parameters
    ----------
    path : path
    defaults : callable
        The parameters of an estimator, by its name, and their defaults; others mean a file of
        another version.
    """
    try:
        file = store.read(path)
        content, kind = file.header.content, file.header.kind
        values = content["attributes"]
        if kind not in KINDS or not set(content["parameters"]) <= set(defaults(kind)):
            return None
        if values.get("multilabel_") or "results_" not in values:
            return None
        decode = Decoder(file.arrays).decode
        names = ("coef_", "intercept_", "classes_", "n_features_in_", "feature_names_in_")
        found = {name: decode(values[name]) for name in names if name in values}
        stored = {name: decode(value) for name, value in content["parameters"].items()}
        coef = np.atleast_2d(found["coef_"])
        outputs, width = coef.shape
        intercept = np.atleast_1d(found.get("intercept_", np.zeros(outputs)))
        names_in = found.get("feature_names_in_")
        scorer = LinearScorer(
            kind,
            coef,
            intercept,
            found.get("classes_", np.zeros(0)),
            {**defaults(kind), **stored},
            names_in,
        )
        check_stored(scorer, "coef_", (outputs, found["n_features_in_"]))
        check_stored(scorer, "intercept_", (outputs,))
        labels = (2 if outputs == 1 else outputs) if kind in CLASSIFIERS else 0
        if not (
            coef.size
            and np.isfinite(coef).all()
            and np.isfinite(intercept).all()
            and scorer.classes_.shape == (labels,)
            and (kind in CLASSIFIERS or outputs == 1)
            and (names_in is None or names_in.shape == (width,))
        ):
            return None
    except (*WRONG, OSError):
        return None
    return scorer
