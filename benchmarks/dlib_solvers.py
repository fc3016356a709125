"""dlib's linear SVM as a peer, and the rows of a matrix in dlib's types."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from .solvers import Effort, Model, Problem, Solver

# The last data and their rows in dlib's types. The conversion of 30 million pairs takes a minute.
_prepared: list[Any] = []
KEPT_ROWS = 10_000


def dlib_missing() -> str | None:
    """A sentence that says so if dlib is not installed."""
    try:
        importlib.import_module("dlib")
    except ImportError:
        return "dlib is left out: pip install dlib-bin, or dlib, a long source build"
    return None


def dlib_row_of(X: Any) -> Callable[[int], Any]:
    """A function that takes the number of a row and returns the row as dlib's sparse vector."""
    dlib = importlib.import_module("dlib")
    rows = sp.csr_matrix(X, dtype=np.float64)

    def row(i: int) -> Any:
        begin, end = rows.indptr[i : i + 2]
        pairs = zip(rows.indices[begin:end].tolist(), rows.data[begin:end].tolist(), strict=True)
        return dlib.sparse_vector([dlib.pair(j, value) for j, value in pairs])

    return row


def dlib_weights(trained: Any, features: int) -> np.ndarray:
    """w of a trained function, which has pairs of a feature and its weight."""
    w = np.zeros(features)
    for pair in trained.weights:
        if pair.first < features:
            w[pair.first] = pair.second
    return w


class DlibLinear(Solver):
    """dlib's svm_c_trainer_sparse_linear, which is OCAS. It always has a regularised bias.

    Its C multiplies the mean loss. Its ε is the relative gap.
    """

    name = "dlib"

    def missing(self) -> str | None:
        return dlib_missing()

    def solves(self, problem: Problem) -> bool:
        return problem.loss == "hinge" and problem.bias == "regularised"

    def prepare(self, problem: Problem) -> Any:
        data = problem.data
        if _prepared and _prepared[0] is data:
            return _prepared[1]
        dlib = importlib.import_module("dlib")
        row, rows, labels = dlib_row_of(data.X), dlib.sparse_vectors(), dlib.array()
        for i, label in enumerate(data.y.tolist()):
            rows.append(row(i))
            labels.append(label)
        if len(labels) >= KEPT_ROWS:  # not the few that warm it up
            _prepared[:] = data, (rows, labels)
        return rows, labels

    def train(self, problem: Problem, prepared: Any, effort: Effort) -> Any:
        dlib = importlib.import_module("dlib")
        trainer = dlib.svm_c_trainer_sparse_linear()
        trainer.set_c(problem.C * len(problem.data.y))
        trainer.epsilon = effort.tol or 1e-3
        if effort.max_iter is not None:
            trainer.max_iterations = effort.max_iter
        return trainer.train(*prepared)

    def finish(self, problem: Problem, trained: Any) -> tuple[Model, dict[str, Any], Any]:
        dlib = importlib.import_module("dlib")
        at_zero = trained(dlib.sparse_vector([dlib.pair(0, 0.0)]))
        return Model(dlib_weights(trained, problem.data.X.shape[1]), float(at_zero)), {}, None
