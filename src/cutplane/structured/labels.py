"""Labels as outputs: two classes, several with a cost for every confusion, or sets of labels.

    Binary:      score(x, ±1) = ±f(x)/2,  Δ = 1 for the wrong class: the hinge loss
    Multiclass:  score(x, y) = f_y(x),  Δ(y, z) = cost[y, z]; with cost 1: Crammer & Singer's loss
    Multilabel:  score(x, y) = Σ_k y_k·f_k(x) + Σ_{j<k} y_j·y_k·P_jk,  y ∈ {0, 1}^L,
                 Δ = number of wrong labels

Inputs are vectors, dense or sparse, or the rows of a matrix. The only part of an input is the input
itself. All methods work on many examples at once. Without pairs P, inference decides every label
alone. With pairs, and for slack rescaling, compiled code looks at all 2^L subsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from ..loops import subsets
from .problem import Problem, Scores

# With so many labels, all subsets take a tenth of a millisecond per example; each further label
# doubles the time.
MOST_LABELS = 16


class _Vectors(Problem):
    """Inputs that are vectors."""

    releases_gil = True

    def parts_batch(self, X: Any) -> tuple[Any, np.ndarray]:
        """The only part of x is x itself."""
        if not scipy.sparse.issparse(X) and len(X) and scipy.sparse.issparse(X[0]):
            X = scipy.sparse.vstack([x.reshape(1, -1) for x in X], "csr")
        X = scipy.sparse.csr_array(X) if scipy.sparse.issparse(X) else np.asarray(X, np.float64)
        return X, np.ones(X.shape[0], dtype=np.int64)


class _Classes(_Vectors):
    """Outputs that are classes."""

    classes: Any  # ndarray once ``prepare`` has been called

    def _codes(self, Y: Sequence[Any]) -> np.ndarray:
        labels = np.asarray(Y)
        codes = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
        unknown = self.classes[codes] != labels
        if np.any(unknown):
            raise ValueError(f"label {labels[np.argmax(unknown)]} was not seen in training")
        return codes


class BinaryProblem(_Classes):
    """Two classes with the hinge loss.

    Parameters
    ----------
    classes : array-like of two labels, optional
        The negative and the positive label. None: the labels that occur, in order.
    """

    def __init__(self, classes: Any = None) -> None:
        self.classes = None if classes is None else np.asarray(classes)

    def prepare(self, X: Any, Y: Any) -> BinaryProblem:
        """With the classes that occur."""
        classes = np.unique(Y) if self.classes is None else self.classes
        if len(classes) != 2:
            raise ValueError(f"BinaryProblem needs two classes, got {len(classes)}")
        return BinaryProblem(classes)

    def part_coefficients_batch(self, X: Any, Y: Any) -> np.ndarray:
        """±1/2."""
        return self._codes(Y)[:, None] - 0.5

    def loss_batch(self, Y: Any, Z: Any) -> np.ndarray:
        """1 for the wrong class."""
        return (self._codes(Y) != self._codes(Z)).astype(np.float64)

    def most_violated_batch(self, X: Any, Y: Any, scores: Scores) -> Any:
        """The other class where the margin is below 1."""
        codes = self._codes(Y)
        flip = (2 * codes - 1) * scores.parts[:, 0] < 1.0
        return self.classes[np.where(flip, 1 - codes, codes)]

    most_violated_slack_batch = most_violated_batch

    def predict_batch(self, X: Any, scores: Scores) -> Any:
        """The sign of f(x)."""
        return self.classes[(scores.parts[:, 0] > 0.0).astype(np.int64)]


class MulticlassProblem(_Classes):
    """Several classes with a cost for every confusion.

    Parameters
    ----------
    cost : array-like, shape (n_classes, n_classes), optional
        ``cost[i, j]`` is the cost of predicting class j if class i is true; ≥ 0, and 0 on the
        diagonal. None: 1 for every confusion.
    classes : array-like, optional
        Labels in the order of ``cost``, increasing. None: the labels that occur.
    """

    def __init__(self, cost: Any = None, classes: Any = None) -> None:
        self.cost: Any = None if cost is None else np.asarray(cost, dtype=np.float64)
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

    def part_coefficients_batch(self, X: Any, Y: Any) -> np.ndarray:
        """1 for the class."""
        return np.eye(len(self.classes))[self._codes(Y)]

    def loss_batch(self, Y: Any, Z: Any) -> np.ndarray:
        """The cost of the confusion."""
        return self.cost[self._codes(Y), self._codes(Z)]

    def _violations(self, Y: Any, scores: Scores, slack: bool) -> Any:
        codes = self._codes(Y)
        margin = scores.parts - scores.parts[np.arange(len(codes)), codes][:, None]
        cost = self.cost[codes]
        return self.classes[np.argmax(cost * (1.0 + margin) if slack else cost + margin, axis=1)]

    def most_violated_batch(self, X: Any, Y: Any, scores: Scores) -> Any:
        """argmax of cost + score."""
        return self._violations(Y, scores, slack=False)

    def most_violated_slack_batch(self, X: Any, Y: Any, scores: Scores) -> Any:
        """argmax of cost·(1 + margin)."""
        return self._violations(Y, scores, slack=True)

    def predict_batch(self, X: Any, scores: Scores) -> Any:
        """The class of highest score."""
        return self.classes[np.argmax(scores.parts, axis=1)]


class MultilabelProblem(_Vectors):
    """Outputs are sets of labels: vectors of zeros and ones, the rows of an indicator matrix.

    Inputs are vectors, dense or sparse, or the rows of a matrix.

    Parameters
    ----------
    pairwise : bool, default=True
        Whether every pair of labels has a weight, which counts if an output has both labels.
        Inference is exact, and its time and memory grow with 2^labels, so there may be at most 16
        labels. Without pairs, labels only share C, and there may be any number of labels.
    labels : int, optional
        Number of labels; by default as many as the outputs have.

    Examples
    --------
    >>> import numpy as np
    >>> from cutplane import StructuredSVM
    >>> from cutplane.structured import MultilabelProblem
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, -1.0]])
    >>> Y = np.array([[1, 0], [0, 1], [1, 1], [0, 0]])
    >>> model = StructuredSVM(MultilabelProblem()).fit(X, Y)
    >>> model.predict([[2.0, 2.0]])
    array([[1, 1]])
    """

    def __init__(self, pairwise: bool = True, labels: int | None = None) -> None:
        self.pairwise = pairwise
        self.labels = labels

    def prepare(self, X: Any, Y: Any) -> MultilabelProblem:
        """With as many labels as the outputs have."""
        found = _indicators(Y, None).shape[1]
        if self.labels is not None and self.labels != found:
            raise ValueError(f"outputs have {found} labels, but MultilabelProblem {self.labels}")
        if self.pairwise:
            _check_few(found, "pairwise=False looks at each label alone")
        return MultilabelProblem(self.pairwise, found)

    def part_coefficients_batch(self, X: Any, Y: Any) -> np.ndarray:
        """1 for the labels that are there."""
        return _indicators(Y, self.labels).astype(np.float64)

    def plain_feature_batch(self, X: Any, Y: Any) -> Any:
        """The pairs of labels that are there: (0, 1), (0, 2), …; none without ``pairwise``."""
        chosen = _indicators(Y, self.labels)
        first, second = np.triu_indices(chosen.shape[1] if self.pairwise else 0, 1)
        return scipy.sparse.csr_array((chosen[:, first] * chosen[:, second]).astype(np.float64))

    def loss_batch(self, Y: Any, Z: Any) -> np.ndarray:
        """The number of wrong labels."""
        wrong = _indicators(Y, self.labels) != _indicators(Z, self.labels)
        return np.sum(wrong, axis=1).astype(np.float64)

    def most_violated_batch(self, X: Any, Y: Any, scores: Scores) -> np.ndarray:
        """The best subset, after each wrong label's score has been increased by its loss, 1."""
        truth = _indicators(Y, self.labels)
        return self._best(scores.parts + (1.0 - 2.0 * truth), scores.w)

    def most_violated_slack_batch(self, X: Any, Y: Any, scores: Scores) -> np.ndarray:
        """The most violated subset, found among all subsets."""
        truth = _indicators(Y, self.labels)
        labels = truth.shape[1]
        _check_few(labels, "rescaling='margin' has no such limit without pairs")
        codes = truth @ (1 << np.arange(labels))
        pairs = self._pairs(scores.w)
        found = np.empty(len(truth), dtype=np.int64)
        unary = np.array(scores.parts)
        subsets.best_rescaled(unary, pairs, codes, np.empty(len(pairs)), found)
        return _bits(found, labels)

    def predict_batch(self, X: Any, scores: Scores) -> np.ndarray:
        """The subset of highest score."""
        return self._best(np.array(scores.parts), scores.w)

    def _pairs(self, w: np.ndarray) -> np.ndarray:
        """For every subset of the labels, the sum of the scores of its pairs."""
        labels = self.labels
        assert labels is not None
        table = np.zeros(1 << labels)
        if not self.pairwise:
            return table
        weights = np.zeros((labels, labels))
        weights[np.triu_indices(labels, 1)] = w
        for k in range(labels):
            sums = np.zeros(1)  # of label k with the labels before it
            for j in range(k):
                sums = np.concatenate([sums, sums + weights[j, k]])
            table[1 << k : 2 << k] = table[: 1 << k] + sums
        return table

    def _best(self, unary: np.ndarray, w: np.ndarray) -> np.ndarray:
        if not self.pairwise:
            return (unary > 0.0).astype(np.int64)
        pairs = self._pairs(w)
        found = np.empty(len(unary), dtype=np.int64)
        subsets.best(unary, pairs, np.empty(len(pairs)), found)
        return _bits(found, unary.shape[1])


def _bits(codes: np.ndarray, labels: int) -> np.ndarray:
    return (codes[:, None] >> np.arange(labels)) & 1


def _check_few(labels: int, remedy: str) -> None:
    if labels > MOST_LABELS:
        raise ValueError(
            "exact inference looks at all subsets of the labels, which is done for up to "
            f"{MOST_LABELS} of them, not for {labels}; {remedy}, or write a Problem with "
            "inference of your own, and exact = False if it is approximate"
        )


def _indicators(Y: Any, labels: int | None) -> np.ndarray:
    """Outputs as an indicator matrix."""
    if scipy.sparse.issparse(Y):
        Y = Y.toarray()
    try:
        matrix = np.asarray([y.toarray()[0] if scipy.sparse.issparse(y) else y for y in Y])
    except ValueError as error:
        raise ValueError(f"outputs must have the same number of labels: {error}") from None
    if matrix.ndim != 2 or not np.all((matrix == 0) | (matrix == 1)):
        raise ValueError(
            "outputs must be vectors of zeros and ones, one per label; sets of names become such "
            "with scikit-learn's MultiLabelBinarizer"
        )
    if labels is not None and matrix.shape[1] != labels:
        raise ValueError(f"outputs must have {labels} labels, got {matrix.shape[1]}")
    return matrix.astype(np.int64)
