"""Small problems: all variables are one working set, and K is there as a whole.

    g = Kβ + c; pairwise steps until max g over what may fall − min g over what may grow ≤ tol

Nothing is chosen, cached or left out: a fit of many such problems, one per pair of classes, spends
its time in the steps.
"""

from __future__ import annotations

import time

import numpy as np

from ..kernels import PrecomputedMatrix
from ..loops import decomposition as loops
from ..result import SolveResult, Status
from .curvature import looks_indefinite
from .problem import DualProblem
from .records import DualCertificate, DualIteration, DualPoint, DualSettings, Observer

ALL_AT_ONCE = 500  # variables
STEPS_PER_VARIABLE = 50  # between two looks at the clock and the observer
STALL = 30  # rounds without progress that prove the limit of precision


class WholeSolver:
    """One run on a problem of few variables.

    Parameters
    ----------
    values : ndarray
        A kernel matrix, possibly of more rows.
    rows : ndarray of int
        The row of each variable in it.
    problem : DualProblem
        Without ``row_of``.
    settings : DualSettings
    observer : callable, optional
        Gets a DualIteration per round; a true answer stops the run.
    definite : bool or None
        What is known of the kernel; False withholds the certificate, None has the solver look.

    Attributes
    ----------
    indefinite : bool
        Whether the kernel is not positive semidefinite, as far as is known.
    """

    @staticmethod
    def suits(problem: DualProblem, settings: DualSettings) -> bool:
        """Whether a problem is small enough and nobody asked for working sets."""
        size = len(problem)
        if problem.row_of is not None or settings.working_set_size is not None:
            return False
        return size <= ALL_AT_ONCE and size * size * 8 <= settings.cache_bytes

    def __init__(
        self,
        values: np.ndarray,
        rows: np.ndarray,
        problem: DualProblem,
        settings: DualSettings,
        observer: Observer | None = None,
        definite: bool | None = True,
    ) -> None:
        self._values = values
        self._rows = rows
        self._problem = problem
        self._settings = settings
        self._observer = observer
        self._definite = definite
        self.indefinite = definite is False
        self._started = time.perf_counter()
        self._seconds = {"inner": 0.0}
        self._trace: list[DualIteration] = []
        self._iterations = 0
        self._primal = np.inf  # best so far
        self._least_curvature = np.inf
        self._numbers = np.empty(5)  # low, high, value, bias, gap
        self._beta = np.empty(0)

    def point(self) -> DualPoint:
        """Where the solver is now."""
        return DualPoint(self._beta.copy(), float(self._numbers[3]))

    def run(self, start: np.ndarray | None = None) -> SolveResult:
        """Minimise, from ``start`` (default: the simplest feasible point).

        The result's ``w`` holds β.
        """
        problem = self._problem
        beta = self._beta = problem.start() if start is None else problem.repaired(start)
        g = problem.linear.copy()
        if start is not None or problem.total != 0.0:
            g += self._values[np.ix_(self._rows, self._rows)] @ beta
        try:
            status = self._iterate(beta, g)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
            self._look(beta, g)
        return self._result(beta, status)

    def _look(self, beta: np.ndarray, g: np.ndarray) -> None:
        problem = self._problem
        loops.assess(
            g, beta, problem.linear, problem.lower, problem.upper, problem.total, self._numbers
        )

    def _iterate(self, beta: np.ndarray, g: np.ndarray) -> Status:
        problem, settings, numbers = self._problem, self._settings, self._numbers
        diagonal = self._values[self._rows, self._rows].astype(np.float64)
        seen = np.empty(2)
        stalled, least = 0, np.inf
        self._look(beta, g)
        while True:
            low, high, value, _, gap = numbers.tolist()
            violation = max(0.0, high - low)
            if not violation > settings.tol:
                if not self._trace:
                    self._record(value, gap, violation)
                return Status.CONVERGED
            if self._iterations:
                status = self._limit(stalled)
                if status is not None:
                    return status
            begin = time.perf_counter()
            loops.pairwise_steps(
                self._values,
                self._rows,
                self._rows,
                diagonal,
                g,
                beta,
                problem.lower,
                problem.upper,
                settings.tol,
                STEPS_PER_VARIABLE * len(beta),
                seen,
            )
            self._iterations += 1
            self._seconds["inner"] += time.perf_counter() - begin
            self._least_curvature = min(self._least_curvature, seen[1])
            self._look(beta, g)
            # Of the state before, as the other solver does.
            stopped = self._record(value, gap, violation)
            if value - numbers[2] > 1e-15 * abs(value) or violation < 0.5 * least:
                stalled, least = 0, violation
            else:
                stalled += 1
            if stopped:
                return Status.STOPPED

    def _limit(self, stalled: int) -> Status | None:
        """Whether this is the end though the tolerance is not reached."""
        settings = self._settings
        if settings.max_iter is not None and self._iterations >= settings.max_iter:
            return Status.MAX_ITER
        if time.perf_counter() - self._started >= settings.time_limit:
            return Status.TIME_LIMIT
        return Status.NUMERICALLY_LIMITED if stalled >= STALL else None

    def _record(self, value: float, gap: float, violation: float) -> bool:
        """Tell of a round; whether the observer wants it to be the last."""
        self._primal = min(self._primal, gap - value)
        record = DualIteration(
            number=max(1, self._iterations),
            primal=self._primal,
            dual=-value,
            trial=gap - value,
            step=0.0,
            cuts=len(self._problem),
            seconds=time.perf_counter() - self._started,
            violation=float(violation),
            active=len(self._problem),
        )
        self._trace.append(record)
        return self._observer is not None and bool(self._observer(record))

    def _result(self, beta: np.ndarray, status: Status) -> SolveResult:
        _, _, value, bias, gap = self._numbers.tolist()
        if self._definite is None:
            values = self._values[np.ix_(self._rows, self._rows)]
            self.indefinite = looks_indefinite(
                PrecomputedMatrix(values), self._problem, beta, self._least_curvature
            )
        certificate = DualCertificate(gap - value, -value)
        if self.indefinite:
            certificate = DualCertificate(gap - value, -np.inf, "withheld")
        return SolveResult(
            w=beta,
            bias=bias,
            status=status,
            certificate=certificate,
            n_iter=max(1, self._iterations),
            trace=tuple(self._trace),
            timings={**self._seconds, "total": time.perf_counter() - self._started},
        )
