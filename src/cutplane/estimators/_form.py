"""How points of the solver and linear models correspond."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ModelForm:
    """Shape of a fit: how many problems, and where their bias is.

    Attributes
    ----------
    problems : int
        Problems solved one after the other.
    outputs : int or None
        Scores per row of the joint problem; None where a problem has one.
    constant : float
        Value of the constant feature behind a regularised bias; 0 for none.
    free_bias : bool
    """

    problems: int
    outputs: int | None
    constant: float
    free_bias: bool

    def model(self, points: list[tuple[np.ndarray, float]]) -> tuple[np.ndarray, np.ndarray]:
        """``coef_`` and ``intercept_`` of solved problems."""
        coefs, intercepts = [], []
        for w, bias in points:
            rows = w.T.reshape(-1, w.shape[0])  # one row per output
            if self.constant:
                intercepts.append(self.constant * rows[:, -1])
                rows = rows[:, :-1]
            else:
                intercepts.append(np.full(len(rows), bias))
            coefs.append(rows)
        return np.ascontiguousarray(np.vstack(coefs)), np.concatenate(intercepts)

    def point(self, coef: np.ndarray, intercept: np.ndarray, k: int) -> np.ndarray | None:
        """The solver's point of problem k; None if the model has another shape."""
        outputs = self.outputs or 1
        if coef.shape[0] != outputs * self.problems:
            return None
        rows = coef[k * outputs : (k + 1) * outputs]
        if self.constant:
            bias = intercept[k * outputs : (k + 1) * outputs, None] / self.constant
            rows = np.hstack([rows, bias])
        return np.ascontiguousarray(rows.T if self.outputs else rows[0])
