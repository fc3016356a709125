"""Several labels at once, with weights for pairs of them.

    <w, Ψ(x, y)> = Σ_k y_k·<W_k, x> + Σ_{j<k} y_j·y_k·P_jk,    y ∈ {0, 1}^L

The loss is the number of wrong labels. w holds W (L, features), then P for the pairs (0, 1),
(0, 2), …, (L − 2, L − 1). Without pairs every label is decided alone; with them, and for slack
rescaling, all 2^L subsets are looked at, by compiled code. With a kernel <W_k, x> becomes f_k(x).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ..loops import subsets
from .multiclass import input_matrix, input_products, one_part
from .part_scores import PartScores
from .problem import Problem

# A look at all subsets takes a tenth of a millisecond per example here, twice that with one more.
MOST_LABELS = 16


class MultilabelProblem(Problem):
    """Outputs are sets of labels: vectors of zeros and ones, the rows of an indicator matrix.

    Inputs are vectors, dense or sparse, or the rows of a matrix.

    Parameters
    ----------
    pairwise : bool, default=True
        Whether every pair of labels has a weight that counts if both are there. Inference is
        exact and takes time and memory of 2^labels: up to 16 labels. Without, labels only share C,
        and there may be any number of them.
    labels : int, optional
        How many there are; by default as many as the outputs have.

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

    releases_gil = True

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

    # -- what a problem has -----------------------------------------------------------

    def joint_feature_batch(self, X: Any, Y: Any) -> Any:
        """x in the parts of the labels that are there, and the pairs of these."""
        chosen = self._check(Y)
        X = scipy.sparse.csr_array(input_matrix(X))
        features = X.shape[1]
        # Row i of X as often as it has labels, each time moved to the label's part.
        row, label = np.nonzero(chosen)
        parts = X[row]
        ends = np.concatenate([[0], np.cumsum(np.sum(chosen, axis=1))])
        starts = parts.indptr[ends].astype(np.int64)
        indices = parts.indices + np.repeat(label * features, np.diff(parts.indptr))
        shape = (X.shape[0], features * chosen.shape[1])
        whole = scipy.sparse.csr_array((parts.data, indices, starts), shape=shape)
        if not self.pairwise:
            return whole
        both = self.plain_feature_batch(X, chosen)
        return scipy.sparse.csr_array(scipy.sparse.hstack([whole, both], "csr"))

    def parts_batch(self, X: Any) -> tuple[Any, np.ndarray]:
        """x itself."""
        return one_part(X)

    def part_coefficients_batch(self, X: Any, Y: Any) -> np.ndarray:
        """1 for the labels that are there."""
        return self._check(Y).astype(np.float64)

    def plain_feature_batch(self, X: Any, Y: Any) -> Any:
        """The pairs of labels that are there; none without ``pairwise``."""
        chosen = self._check(Y)
        first, second = np.triu_indices(chosen.shape[1] if self.pairwise else 0, 1)
        return scipy.sparse.csr_array((chosen[:, first] * chosen[:, second]).astype(np.float64))

    def loss_batch(self, Y: Any, Z: Any) -> np.ndarray:
        """The number of wrong labels."""
        return np.sum(self._check(Y) != self._check(Z), axis=1).astype(np.float64)

    def most_violated_batch(self, X: Any, Y: Any, w: Any) -> np.ndarray:
        """A wrong label adds 1 to its score, so the best subset is wanted once more."""
        truth = self._check(Y)
        return self._best(self._unary(X, w) + (1.0 - 2.0 * truth), w)

    def most_violated_slack_batch(self, X: Any, Y: Any, w: Any) -> np.ndarray:
        """By a look at all subsets."""
        truth = self._check(Y)
        labels = truth.shape[1]
        _check_few(labels, "rescaling='margin' has no such limit without pairs")
        codes = truth @ (1 << np.arange(labels))
        pairs = self._pairs(w)
        found = np.empty(len(truth), dtype=np.int64)
        subsets.best_rescaled(self._unary(X, w), pairs, codes, np.empty(len(pairs)), found)
        return _bits(found, labels)

    def predict_batch(self, X: Any, w: Any) -> np.ndarray:
        """The subset of highest score."""
        return self._best(self._unary(X, w), w)

    # -- parts ------------------------------------------------------------------------

    def _check(self, Y: Any) -> np.ndarray:
        return _indicators(Y, self.labels)

    def _unary(self, X: Any, w: Any) -> np.ndarray:
        assert self.labels is not None
        own = w if isinstance(w, PartScores) else w[: len(w) - self._pair_count()]
        return np.ascontiguousarray(input_products(X, own, self.labels))

    def _pair_count(self) -> int:
        assert self.labels is not None
        return self.pairwise * (self.labels * (self.labels - 1) // 2)

    def _pairs(self, w: Any) -> np.ndarray:
        """What the pairs within every subset add."""
        labels = self.labels
        assert labels is not None
        table = np.zeros(1 << labels)
        if not self.pairwise:
            return table
        weights = np.zeros((labels, labels))
        flat = w.w if isinstance(w, PartScores) else w
        weights[np.triu_indices(labels, 1)] = flat[len(flat) - self._pair_count() :]
        for k in range(labels):
            sums = np.zeros(1)  # of label k with the labels before it
            for j in range(k):
                sums = np.concatenate([sums, sums + weights[j, k]])
            table[1 << k : 2 << k] = table[: 1 << k] + sums
        return table

    def _best(self, unary: np.ndarray, w: Any) -> np.ndarray:
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
