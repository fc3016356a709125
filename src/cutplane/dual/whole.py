"""Small problems: all variables are one working set, and K is there as a whole.

    g = Kβ + c; pairwise steps until the violation max g over what may fall − min g over what may
    grow is so small that the gap should be, too; g anew, and look at the gap

Nothing is chosen, cached or left out: a fit of many such problems, one per pair of classes, spends
its time in the steps.
"""

from __future__ import annotations

import time

import numpy as np

from ..kernels import KernelMatrix, PrecomputedMatrix
from ..loops import decomposition as loops
from ..result import SolveResult, Status
from .curvature import Definiteness, definiteness, looks_indefinite
from .interior import factor_columns, factor_of, interior_point
from .pace import Pace
from .problem import DualProblem
from .records import DualIteration, DualPoint, DualSettings, Observer, certificate_of
from .verify import Sums, Verified, balanced, stretched, verify

ALL_AT_ONCE = 500  # variables
STEPS_PER_VARIABLE = 50  # between two looks at the clock and the observer
STALL = 30  # rounds without progress that prove the limit of precision
FIRST_PART = 0.01  # of the first violation: how far the first steps go
LEAST_PART, MOST_PART = 0.01, 0.5  # of the violation that later steps leave


class WholeSolver:
    """One run on a problem of few variables.

    Parameters
    ----------
    values : ndarray
        A kernel matrix in double precision, possibly of more rows.
    rows : ndarray of int
        The row of each variable in it.
    problem : DualProblem
        Without ``row_of``.
    settings : DualSettings
    observer : callable, optional
        Gets a DualIteration per round; a true answer stops the run.
    definite : bool or None
        What is known of the kernel; False withholds the certificate, None has the solver look.
    matrix : KernelMatrix, optional
        Where the values of these rows come from: it knows how far they may be off.

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
        matrix: KernelMatrix | None = None,
    ) -> None:
        self._values = values
        self._rows = rows
        self._matrix = matrix
        self._problem = problem
        self._settings = settings
        self._observer = observer
        self._definite = definite
        self._known: Definiteness | None = None
        self.indefinite = definite is False
        self._started = time.perf_counter()
        self._seconds = {"inner": 0.0}
        self._trace: list[DualIteration] = []
        self._iterations = 0
        self._primal = np.inf  # best so far
        self._least_curvature = np.inf
        columns = len(problem) if matrix is None else factor_columns(matrix)
        self._pace = Pace(len(problem), columns, settings.max_iter)
        self._beta = np.empty(0)
        self._last: tuple[np.ndarray, np.ndarray, Verified] | None = None

    def point(self) -> DualPoint:
        """Where the solver is now."""
        beta = self._beta
        return DualPoint(beta, self._verified(beta)[1].bias)

    def run(self, start: np.ndarray | None = None) -> SolveResult:
        """Minimise, from ``start`` (default: the simplest feasible point).

        The result's ``w`` holds β.
        """
        problem = self._problem
        self._known = definiteness(self._definite, self._square)
        self._beta = problem.start() if start is None else problem.repaired(start)
        try:
            status = self._iterate()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        return self._result(status)

    def _square(self) -> PrecomputedMatrix:
        """The values of these rows only."""
        return PrecomputedMatrix(self._values[np.ix_(self._rows, self._rows)])

    def _verified(self, beta: np.ndarray) -> tuple[np.ndarray, Verified]:
        """g of a point, anew, and what is certain of it."""
        if self._last is not None and self._last[0] is beta:
            return self._last[1:]
        if self._matrix is None:
            self._matrix = self._square()
        careful = self._matrix.careful_sums(beta)
        if careful is not None:
            s = careful[0]
            computed = Sums(s, 0, error=careful[1])
        else:
            s, sizes = np.empty(len(beta)), np.empty(len(beta))
            loops.sums_with_sizes(self._values, self._rows, beta, s, sizes)
            computed = Sums(s, loops.SOME + len(beta) // loops.SOME, sizes)
        lift = 0.0 if self._known is None else self._known.lift
        found = verify(self._matrix, self._problem, beta, computed, lift)
        self._last = beta, s + self._problem.linear, found
        return self._last[1:]

    def _iterate(self) -> Status:
        problem, settings = self._problem, self._settings
        diagonal = self._values[self._rows, self._rows].astype(np.float64)
        mass, seen = problem.mass, np.empty(2)
        stalled, least, before = 0, np.inf, -np.inf
        while True:
            beta = self._beta = balanced(problem, self._beta)
            g, found = self._verified(beta)
            violation, gap = found.violation, found.gap
            if not np.isfinite(gap):
                return Status.NUMERICALLY_LIMITED
            stopped = self._iterations > 0 and self._record(found)
            if found.good(settings, mass) or self._stretch(found, mass):
                return Status.CONVERGED
            if stopped:
                return Status.STOPPED
            if self._iterations:
                progress = found.dual - before > 1e-15 * abs(before) or violation < 0.5 * least
                stalled = 0 if progress else stalled + 1
                before, least = max(found.dual, before), min(violation, least)
                status = self._limit(stalled, found, mass)
                if status is not None:
                    return status
            begin = time.perf_counter()
            if self._pace.slow() and self._jump(found):
                self._iterations += 1
                self._seconds["inner"] += time.perf_counter() - begin
                continue
            point = beta.copy()
            steps = loops.pairwise_steps(
                self._values,
                self._rows,
                self._rows,
                diagonal,
                g.copy(),
                point,
                problem.lower,
                problem.upper,
                self._target(found, mass),
                STEPS_PER_VARIABLE * len(beta),
                seen,
            )
            self._pace.add(steps)
            self._beta = point
            self._iterations += 1
            self._seconds["inner"] += time.perf_counter() - begin
            self._least_curvature = min(self._least_curvature, seen[1])

    def _jump(self, found: Verified) -> bool:
        """Go where the interior point method leads, if that is better."""
        settings = self._settings
        matrix = self._square() if self._matrix is None else self._matrix
        factor = factor_of(matrix, settings.cache_bytes)
        if self.indefinite or factor is None:
            return False
        beta = interior_point(factor, self._problem, self._started + settings.time_limit)
        self._pace.tried()
        if beta is None:
            return False
        beta = balanced(self._problem, beta)
        if not self._verified(beta)[1].gap < found.gap:
            return False
        self._beta = beta
        return True

    def _stretch(self, found: Verified, mass: float) -> bool:
        """Move to a longer point if that one is good enough."""
        if found.slack <= 0.5 * self._settings.enough(found.primal, mass):
            return False
        longer = stretched(self._problem, self._beta, found)
        if longer is None or not self._verified(longer)[1].good(self._settings, mass):
            return False
        self._beta = longer
        return True

    def _target(self, found: Verified, mass: float) -> float:
        """The violation down to which steps go: where the gap should be small enough."""
        settings = self._settings
        if settings.stopping == "kkt":
            return settings.tol
        if not self._iterations:
            return FIRST_PART * found.violation
        wanted = 0.5 * max(0.0, settings.enough(found.primal, mass) - found.slack)
        part = wanted / max(found.gap - found.slack, np.finfo(np.float64).tiny)
        return float(np.clip(part, LEAST_PART, MOST_PART)) * found.violation

    def _limit(self, stalled: int, found: Verified, mass: float) -> Status | None:
        """Whether this is the end though the tolerance is not reached."""
        settings = self._settings
        if settings.max_iter is not None and self._iterations >= settings.max_iter:
            return Status.MAX_ITER
        if time.perf_counter() - self._started >= settings.time_limit:
            return Status.TIME_LIMIT
        hopeless = self._pace.hopeless(found.gap) or not found.violation > 0.0
        hopeless |= found.lost(settings, mass)
        return Status.NUMERICALLY_LIMITED if stalled >= STALL or hopeless else None

    def _record(self, found: Verified) -> bool:
        """Tell of a round; whether the observer wants it to be the last."""
        record = self._note(found)
        return self._observer is not None and bool(self._observer(record))

    def _note(self, found: Verified) -> DualIteration:
        self._primal = min(self._primal, found.primal)
        record = DualIteration(
            number=max(1, self._iterations),
            primal=self._primal,
            dual=found.dual,
            trial=found.primal,
            step=0.0,
            cuts=len(self._problem),
            seconds=time.perf_counter() - self._started,
            violation=found.violation,
            active=len(self._problem),
        )
        self._trace.append(record)
        return record

    def _result(self, status: Status) -> SolveResult:
        beta = balanced(self._problem, self._beta)
        assert self._known is not None
        kind = self._known.kind
        if kind == "conditional" and looks_indefinite(
            self._square(), self._problem, beta, self._least_curvature
        ):
            kind = "withheld"
        self.indefinite = kind == "withheld"
        found = self._verified(beta)[1]
        if not self._trace:
            self._note(found)
        return SolveResult(
            w=beta,
            bias=found.bias,
            status=status,
            certificate=certificate_of(found.primal, found.dual, kind),
            n_iter=max(1, self._iterations),
            trace=tuple(self._trace),
            timings={**self._seconds, "total": time.perf_counter() - self._started},
        )
