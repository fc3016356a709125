"""What a solver returns: a point, how it ended, and how far it is from the optimum.

All objectives here are the user's own, ½|w|² + C·Σ loss.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np


class Status(Enum):
    """How a solver ended.

    Attributes
    ----------
    value : str
    reason : str
        The end of the sentence "the solver ...".
    """

    CONVERGED = "converged", "converged"
    MAX_ITER = "max_iter", "reached max_iter"
    TIME_LIMIT = "time_limit", "reached time_limit"
    INTERRUPTED = "interrupted", "was interrupted"
    NUMERICALLY_LIMITED = "numerically_limited", "reached the limit of floating point precision"
    STOPPED = "stopped", "was stopped by a callback"

    reason: str

    def __new__(cls, value: str, reason: str = "") -> Status:
        """A status is known by its value."""
        status = object.__new__(cls)
        status._value_, status.reason = value, reason
        return status


# What a certificate of kind 'conditional' says of itself.
CONDITION = "exact if the kernel is positive semidefinite"


class Bounded:
    """What has an objective, ``primal``, and a lower bound on the optimum, ``dual``."""

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """``primal − dual``, not below 0; inf where one of them is not known."""
        gap = self.primal - self.dual
        return max(0.0, gap) if np.isfinite(gap) else np.inf

    @property
    def relative_gap(self) -> float:
        """``gap / |primal|``, of a primal that may be negative; 0 where the gap is 0."""
        gap = self.gap
        if gap == 0.0:
            return 0.0
        return gap / abs(self.primal) if self.primal != 0.0 and np.isfinite(gap) else np.inf


@dataclass(frozen=True)
class Certificate(Bounded):
    """How far an answer is from the optimum, at most.

    The optimal objective lies between ``dual`` and ``primal``, so the answer is
    at most ``gap`` above it.

    Attributes
    ----------
    primal : float
        Objective of the returned model, rounded up: where rounding can be bounded it is no less
        than that of the stored numbers in exact arithmetic. That of a one-class machine may be
        negative.
    dual : float
        Lower bound on the optimal objective.
    kind : {'exact', 'conditional', 'estimated', 'withheld'}
        'exact': the bound holds. 'conditional': it holds if the kernel is positive semidefinite,
        which is neither proved nor refuted. 'estimated': it holds with high probability.
        'withheld': there is no bound, ``dual`` is −inf and ``gap`` inf, because the kernel is not
        positive semidefinite, or because a number is not finite, or because after an interrupt the
        bound would have taken more than an instant.
    """

    primal: float
    dual: float
    kind: str = "exact"

    def __repr__(self) -> str:
        return (
            f"Certificate(primal={self.primal:.8g}, dual={self.dual:.8g}, gap={self.gap:.3g}, "
            f"relative_gap={self.relative_gap:.3g}, kind={self.kind!r})"
        )

    def __str__(self) -> str:
        return (
            f"primal {self.primal:.8g}, dual {self.dual:.8g}, "
            f"gap {self.gap:.2e} ({100 * self.relative_gap:.2g} %)"
            + (f", {CONDITION}" if self.kind == "conditional" else "")
        )


@dataclass(frozen=True)
class Iteration(Bounded):
    """One iteration of a solver, as callbacks and the trace see it.

    Attributes
    ----------
    number : int
        Counts from 1.
    primal, dual : float
        Best objective so far, and best lower bound so far.
    trial : float
        Objective of the reduced problem's solution, before the line search.
    step : float
        Length of the step from the best point to that solution.
    cuts : int
        Cutting planes kept.
    seconds : float
        Since the solver started.
    problem : str
        Which problem of a fit, e.g. the class in one-vs-rest.
    """

    number: int
    primal: float
    dual: float
    trial: float
    step: float
    cuts: int
    seconds: float
    problem: str = ""


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
class SolveResult:
    """The answer of a solver.

    Attributes
    ----------
    w : ndarray
        The best point found, shape (features,) or (features, outputs).
    bias : float
        Its unregularised bias; 0 if the problem has none.
    status : Status
    certificate : Certificate
    n_iter : int
    trace : tuple of Iteration
    timings : dict of str to float
        Seconds per phase.
    """

    w: np.ndarray = field(repr=False)
    bias: float = field(repr=False)
    status: Status
    certificate: Certificate
    n_iter: int
    trace: tuple[Iteration, ...] = field(repr=False)
    timings: dict[str, float] = field(repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """The status as text: skops knows no enumerations."""
        return {**vars(self), "status": self.status.value}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, status=Status(state["status"]))

    def column(self, name: str) -> np.ndarray:
        """A quantity of every iteration as an array, e.g. ``result.column('gap')``."""
        return np.array([getattr(record, name) for record in self.trace])

    def as_dict(self) -> dict[str, Any]:
        """Everything but the point, in JSON's types."""
        return {
            "status": self.status.value,
            "n_iter": self.n_iter,
            "primal": self.certificate.primal,
            "dual": self.certificate.dual,
            "gap": self.certificate.gap,
            "relative_gap": self.certificate.relative_gap,
            "kind": self.certificate.kind,
            "timings": dict(self.timings),
        }
