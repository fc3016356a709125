"""Labels as outputs: two classes, or several with a cost for every confusion.

Binary: Ψ(x, ±1) = ±x/2, Δ = 1 for the wrong class: the hinge loss.
Multiclass: Ψ(x, y) is x in the y-th of K parts, Δ(y, z) = cost[y, z]; with cost 1 for all
confusions it is Crammer & Singer's loss.

Inputs are vectors, dense or sparse, or the rows of a matrix. All methods work on many
examples at once. With a kernel an input is its only part, and the coefficients are those that x
has in Ψ: ±1/2, or 1 for the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from .part_scores import PartScores
from .problem import Problem


def input_matrix(X: Any) -> Any:
    """Inputs as rows of a matrix."""
    if scipy.sparse.issparse(X):
        return scipy.sparse.csr_array(X)
    if len(X) and scipy.sparse.issparse(X[0]):
        return scipy.sparse.csr_array(scipy.sparse.vstack([x.reshape(1, -1) for x in X], "csr"))
    return np.asarray(X, dtype=np.float64)


def one_part(X: Any) -> tuple[Any, np.ndarray]:
    """Inputs as their own only parts, and how many each has."""
    matrix = input_matrix(X)
    return matrix, np.ones(matrix.shape[0], dtype=np.int64)


def input_products(X: Any, w: Any, outputs: int) -> np.ndarray:
    """Scores of the inputs, (inputs, outputs), from w or from those of their parts.

    Not by BLAS, whose threads would stand in the way of ours.
    """
    if isinstance(w, PartScores):
        return w.parts
    X = input_matrix(X)
    w = w.reshape(outputs, -1).T
    return X @ w if scipy.sparse.issparse(X) else np.einsum("ij,jk->ik", X, w)


class _Labels(Problem):
    """Outputs that are labels."""

    releases_gil = True
    classes: np.ndarray | None

    def parts_batch(self, X: Any) -> tuple[Any, np.ndarray]:
        """x itself."""
        return one_part(X)

    def _codes(self, Y: Sequence[Any]) -> np.ndarray:
        assert self.classes is not None
        labels = np.asarray(Y)
        codes = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
        unknown = self.classes[codes] != labels
        if np.any(unknown):
            raise ValueError(f"label {labels[np.argmax(unknown)]} was not seen in training")
        return codes


class BinaryProblem(_Labels):
    """Two classes with the hinge loss.

    Parameters
    ----------
    classes : array-like of two labels, optional
        The negative and the positive one. None: those that occur, in order.
    """

    def __init__(self, classes: Any = None) -> None:
        self.classes = None if classes is None else np.asarray(classes)

    def prepare(self, X: Any, Y: Any) -> BinaryProblem:
        """With the classes that occur."""
        classes = np.unique(Y) if self.classes is None else self.classes
        if len(classes) != 2:
            raise ValueError(f"BinaryProblem needs two classes, got {len(classes)}")
        return BinaryProblem(classes)

    def joint_feature_batch(self, X: Any, Y: Any) -> Any:
        """±x/2."""
        sign = self._codes(Y) - 0.5
        X = input_matrix(X)
        if scipy.sparse.issparse(X):
            return scipy.sparse.diags_array(sign) @ X
        return sign[:, None] * X

    def part_coefficients_batch(self, X: Any, Y: Any) -> np.ndarray:
        """±1/2."""
        return self._codes(Y)[:, None] - 0.5

    def loss_batch(self, Y: Any, Z: Any) -> np.ndarray:
        """1 for the wrong class."""
        return (self._codes(Y) != self._codes(Z)).astype(np.float64)

    def most_violated_batch(self, X: Any, Y: Any, w: Any) -> Any:
        """The other class where the margin is below 1."""
        assert self.classes is not None
        codes = self._codes(Y)
        flip = (2 * codes - 1) * input_products(X, w, 1)[:, 0] < 1.0
        return self.classes[np.where(flip, 1 - codes, codes)]

    most_violated_slack_batch = most_violated_batch

    def predict_batch(self, X: Any, w: Any) -> Any:
        """The sign of <w, x>."""
        assert self.classes is not None
        return self.classes[(input_products(X, w, 1)[:, 0] > 0.0).astype(np.int64)]


class MulticlassProblem(_Labels):
    """Several classes with a cost for every confusion.

    Parameters
    ----------
    cost : array-like, shape (n_classes, n_classes), optional
        Cost of predicting the class of the column where that of the row is true; ≥ 0, and
        0 on the diagonal. None: 1 for every confusion.
    classes : array-like, optional
        Labels in the order of ``cost``, increasing. None: those that occur.
    """

    def __init__(self, cost: Any = None, classes: Any = None) -> None:
        self.cost = None if cost is None else np.asarray(cost, dtype=np.float64)
        self.classes = None if classes is None else np.asarray(classes)

    def prepare(self, X: Any, Y: Any) -> MulticlassProblem:
        """With the classes that occur, and the cost of each confusion."""
        classes = np.unique(Y) if self.classes is None else self.classes
        K = len(classes)
        if K < 2:
            raise ValueError(f"at least two classes are needed, got {K}")
        if np.any(classes[1:] <= classes[:-1]):
            raise ValueError("classes must be different and in increasing order")
        cost = 1.0 - np.eye(K) if self.cost is None else self.cost
        if cost.shape != (K, K):
            raise ValueError(f"cost must be of shape ({K}, {K}), got {cost.shape}")
        if not np.all(np.isfinite(cost) & (cost >= 0.0)) or np.any(np.diagonal(cost)):
            raise ValueError("cost must hold finite numbers ≥ 0, and 0 on the diagonal")
        return MulticlassProblem(cost, classes)

    def joint_feature_batch(self, X: Any, Y: Any) -> Any:
        """x in the part of its class."""
        assert self.classes is not None
        codes = self._codes(Y)
        X = input_matrix(X)
        rows, features = X.shape
        if not scipy.sparse.issparse(X):
            starts = np.arange(rows + 1, dtype=np.int64) * features
            indices, values = np.tile(np.arange(features), rows), X.reshape(-1)
        else:
            starts, indices, values = X.indptr, X.indices, X.data
        indices = indices + np.repeat(codes * features, np.diff(starts))
        shape = (rows, features * len(self.classes))
        return scipy.sparse.csr_array((values, indices, starts), shape=shape)

    def part_coefficients_batch(self, X: Any, Y: Any) -> np.ndarray:
        """1 for the class."""
        assert self.classes is not None
        return np.eye(len(self.classes))[self._codes(Y)]

    def loss_batch(self, Y: Any, Z: Any) -> np.ndarray:
        """The cost of the confusion."""
        assert self.cost is not None
        return self.cost[self._codes(Y), self._codes(Z)]

    def _violations(self, X: Any, Y: Any, w: Any, slack: bool) -> Any:
        assert self.cost is not None and self.classes is not None
        codes = self._codes(Y)
        scores = self._scores(X, w)
        margin = scores - scores[np.arange(len(codes)), codes][:, None]
        cost = self.cost[codes]
        return self.classes[np.argmax(cost * (1.0 + margin) if slack else cost + margin, axis=1)]

    def most_violated_batch(self, X: Any, Y: Any, w: Any) -> Any:
        """argmax of cost + score."""
        return self._violations(X, Y, w, slack=False)

    def most_violated_slack_batch(self, X: Any, Y: Any, w: Any) -> Any:
        """argmax of cost·(1 + margin)."""
        return self._violations(X, Y, w, slack=True)

    def predict_batch(self, X: Any, w: Any) -> Any:
        """The class of highest score."""
        assert self.classes is not None
        return self.classes[np.argmax(self._scores(X, w), axis=1)]

    def _scores(self, X: Any, w: Any) -> np.ndarray:
        assert self.classes is not None
        return input_products(X, w, len(self.classes))
