"""What the decomposition solver is told and what it tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..result import Certificate, Iteration


@dataclass(frozen=True)
class DualSettings:
    """How to solve.

    Attributes
    ----------
    tol : float
        Where to stop, in the unit of ``stopping``.
    stopping : {'relative', 'absolute', 'epsilon', 'kkt'}
        What must be small: the gap against tol·|primal|, against tol, or against tol times the sum
        of the widths of all boxes; or the violation of the optimality conditions, max g − min g
        over the pairs that may move.
    working_set_size : int or None
        Even; 2 is SMO with second-order selection. None chooses: all variables of small
        problems, otherwise as many as are worth a product of matrices.
    shrinking : bool
        Whether variables that will probably stay at a bound leave the problem for a while.
    history : int or None
        Iterations that a multiplier must have been positive before. None: 100 as in the
        paper for small working sets, fewer for large ones.
    cache_bytes : float
        For rows of the kernel matrix.
    max_iter : int or None
        Working sets, at most.
    time_limit : float
        Seconds.
    """

    tol: float = 1e-3
    stopping: str = "relative"
    working_set_size: int | None = None
    shrinking: bool = True
    history: int | None = None
    cache_bytes: float = 2e8
    max_iter: int | None = None
    time_limit: float = np.inf

    def enough(self, primal: float, mass: float) -> float:
        """The gap that is small enough; ``mass`` is the sum of the widths of all boxes."""
        return self.tol * {"relative": abs(primal), "epsilon": mass}.get(self.stopping, 1.0)

    def reached(
        self, violation: float, gap: float, primal: float, mass: float, part: float = 1.0
    ) -> bool:
        """Whether a part of the tolerance is kept."""
        if not np.isfinite(gap):
            return False
        if self.stopping == "kkt":
            return violation <= part * self.tol
        return gap <= part * self.enough(primal, mass)


@dataclass(frozen=True)
class DualIteration(Iteration):
    """An iteration of the decomposition solver.

    ``cuts`` is the size of the working set, ``trial`` the primal of this iterate as far as
    it is known, ``step`` the largest change of a variable.

    Attributes
    ----------
    violation : float
        Of the optimality conditions, before the iteration, among the active variables.
    active : int
        Variables that take part.
    """

    violation: float = np.inf
    active: int = 0


@dataclass(frozen=True)
class DualPoint:
    """Where a solver is: β of all variables, and the bias that suits it as far as is known."""

    beta: np.ndarray
    bias: float


# Gets an iteration; a true answer stops the run.
Observer = Callable[[DualIteration], bool | None]


@dataclass(frozen=True)
class DualCertificate(Certificate):
    """A certificate whose objective may be negative, as that of the one-class machine is.

    kind is 'conditional' where nothing proves that the kernel is positive semidefinite, and
    'withheld' where it is not, or after an interrupt, where it would have taken more than an
    instant to compute: ``dual`` is −inf and ``gap`` inf then.
    """

    __repr__ = Certificate.__repr__
    __str__ = Certificate.__str__


def certificate_of(primal: float, dual: float, kind: str) -> DualCertificate:
    """A certificate; what is not finite is none."""
    if kind == "withheld" or not np.isfinite(primal - dual):
        return DualCertificate(primal if np.isfinite(primal) else np.inf, -np.inf, "withheld")
    return DualCertificate(primal, dual, kind)
