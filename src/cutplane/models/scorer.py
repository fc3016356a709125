"""Predictions of a linear model straight from its file, without an estimator.

An estimator needs scikit-learn, and to import that takes longer than to predict most files. A
linear model only needs X·coef + intercept. If a file is unusual in any way, ``read_scorer`` returns
None, and the caller uses ``load_model``, which can explain what is wrong.
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
    """The numbers for predictions of a linear model; attributes are named as in the estimator.

    Attributes
    ----------
    estimator : str
        Name of the class.
    coef_ : ndarray, shape (n_outputs, n_features)
    intercept_ : ndarray, shape (n_outputs,)
    classes_ : ndarray
        Empty if the model is no classifier.
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
        """Number of features of a row."""
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
        """Labels if the model is a classifier, scores otherwise."""
        scores = self.decision_function(X)
        if self.estimator not in CLASSIFIERS:
            return scores
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best]


def read_scorer(path: Any, defaults: Callable[[str], dict[str, Any]]) -> LinearScorer | None:
    """The scorer of a file; None if the caller must use ``load_model``.

    Parameters
    ----------
    path : path
    defaults : callable
        Returns the parameters of the estimator with a given name, with their defaults. If the file
        has other parameters, it is from another version.
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
