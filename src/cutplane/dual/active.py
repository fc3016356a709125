"""The variables that take part, and what is needed to bring the others back.

A variable at a bound whose multiplier estimate stayed positive for ``history`` iterations
will probably end there: it leaves the problem. Its row of K is a column that nobody updates
from then on; ``Absent`` remembers s and β of that moment. To bring a row back, s
is corrected by the rows whose β has changed since.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .problem import DualProblem


@dataclass(frozen=True)
class Absent:
    """Rows that left the problem together.

    Attributes
    ----------
    rows : ndarray of int
    s : ndarray
        Kβ of these rows when they left.
    beta : ndarray
        β of all variables at that moment.
    """

    rows: np.ndarray
    s: np.ndarray
    beta: np.ndarray


@dataclass(frozen=True)
class ActiveSet:
    """The variables that take part, in ascending order.

    Attributes
    ----------
    variables, rows : ndarray of int
        Numbers in the whole problem. A row takes part if one of its variables does.
    columns : ndarray of int
        Of each variable: the place of its row among ``rows``.
    linear, lower, upper : ndarray
        Of the problem, for these variables.
    """

    variables: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @staticmethod
    def of(problem: DualProblem, variables: np.ndarray) -> ActiveSet:
        if problem.row_of is None:
            rows, columns = variables, np.arange(len(variables))
        else:
            rows, columns = np.unique(problem.row_of[variables], return_inverse=True)
        return ActiveSet(
            variables,
            rows,
            columns,
            problem.linear[variables],
            problem.lower[variables],
            problem.upper[variables],
        )

    def __len__(self) -> int:
        """Number of variables."""
        return len(self.variables)


def row_sums(problem: DualProblem, beta: np.ndarray, rows: int) -> np.ndarray:
    """β summed over the variables of each row."""
    if problem.row_of is None:
        return beta
    return np.bincount(problem.row_of, beta, minlength=rows)
