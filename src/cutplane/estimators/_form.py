"""How points of the solver and linear models correspond."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

# A constant feature this much larger than any row: the regularisation of its weight is nothing,
# and the reduced problem can still tell the features apart from it.
NEARLY_FREE = 1e5


@dataclass(frozen=True)
class NearlyFreeBias:
    """Unregularised biases b, one per class, as weights of a very large constant feature s.

    The objective then is F_s = F + |b|²/2s² ≥ F. How far a lower bound on F_s can be above
    the least F: let (W, b) minimise F, and p and q be the classes of the largest and the smallest
    b, which differ by D. F ≤ f, that of any point, so |W|² ≤ 2f, and every row x of class q has a
    loss ≥ D − √2·|W|·|x|, of Crammer and Singer or multinomial. Class q has a share π of the
    weights, so that

        D ≤ f/(Cπ) + 2√f·max|x|,

    and with the mean of the smallest and the largest b moved to 0

        min F_s ≤ min F + K·D²/8s².

    A class without weight has b → −∞ in F; for Crammer and Singer b_p − (1 + D + 2√f·max|x|) does
    as well.

    Attributes
    ----------
    classes : int
        K.
    smallest_share : float
        The least π > 0.
    empty_class : bool
        Whether a class has no weight.
    row_norm : float
        max|x|.
    """

    classes: int
    smallest_share: float
    empty_class: bool
    row_norm: float

    @property
    def constant(self) -> float:
        """s."""
        return NEARLY_FREE * (self.row_norm or 1.0)

    def slack(self, primal: float, C: float) -> float:
        """K·D²/8s² from the objective of a point."""
        reach = 2.0 * math.sqrt(primal) * self.row_norm
        spread = primal / (C * self.smallest_share) + reach
        if self.empty_class:
            spread += 1.0 + spread + reach
        return self.classes * spread**2 / (8.0 * self.constant**2)


@dataclass(frozen=True)
class ModelForm:
    """How many problems a linear model has, and how they model the bias.

    Attributes
    ----------
    problems : int
    outputs : int or None
        Scores per row of the joint problem; None where a problem has one.
    constant : float
        Value of the constant feature behind a regularised bias; 0 for none.
    free_bias : bool
    nearly_free : NearlyFreeBias or None
        If the constant feature stands for an unregularised bias.
    """

    problems: int
    outputs: int | None
    constant: float
    free_bias: bool
    nearly_free: NearlyFreeBias | None = None

    def model(self, points: list[tuple[Any, float]]) -> tuple[Any, np.ndarray]:
        """``coef_`` and ``intercept_`` of solved problems.

        A w is an array, with a column per output if there are several, or the sparse matrix that
        ``sparse_point`` made of one. If one is sparse, so is ``coef_``.
        """
        coefs, intercepts = [], []
        sparse = False
        for w, bias in points:
            if scipy.sparse.issparse(w):
                rows, sparse = w, True
            else:
                rows = w.T.reshape(-1, w.shape[0])  # one row per output
            if self.constant:
                last = rows[:, [-1]]
                last = last.toarray() if scipy.sparse.issparse(last) else last
                intercepts.append(self.constant * last[:, 0])
                rows = rows[:, :-1]
            else:
                intercepts.append(np.full(rows.shape[0], bias))
            coefs.append(rows)
        if sparse:
            csr = [scipy.sparse.csr_matrix(rows) for rows in coefs]
            return scipy.sparse.vstack(csr, format="csr"), np.concatenate(intercepts)
        return np.ascontiguousarray(np.vstack(coefs)), np.concatenate(intercepts)

    def point(self, coef: Any, intercept: np.ndarray, k: int) -> np.ndarray | None:
        """The solver's point of problem k; None if the model has another shape."""
        outputs = self.outputs or 1
        if coef.shape[0] != outputs * self.problems:
            return None
        rows = coef[k * outputs : (k + 1) * outputs]
        if scipy.sparse.issparse(rows):
            rows = rows.toarray()
        if self.constant:
            bias = intercept[k * outputs : (k + 1) * outputs, None] / self.constant
            rows = np.hstack([rows, bias])
        return np.ascontiguousarray(rows.T if self.outputs else rows[0])


class Starts(Sequence[np.ndarray | None]):
    """The points of a model, by problem, made when they are needed: see ``ModelForm.point``."""

    def __init__(self, form: ModelForm, coef: Any, intercept: np.ndarray) -> None:
        self._form, self._model = form, (coef, intercept)

    def __len__(self) -> int:
        return self._form.problems

    def __getitem__(self, k: Any) -> Any:
        if not 0 <= k < len(self):
            raise IndexError(k)
        return self._form.point(*self._model, k)


def sparse_point(w: np.ndarray) -> Any:
    """A w without its zeros: a CSR matrix with a row per output."""
    return scipy.sparse.csr_matrix(w.T if w.ndim > 1 else w[None, :])
