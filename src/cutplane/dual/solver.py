"""Decomposition (Joachims 1998): optimise a few variables at a time, the others held fixed.

    repeat
        g = Kβ + c; stop if max g over what may fall − min g over what may grow ≤ tol
        W = working set of q variables          (working_set)
        rows of W                               (cache; the missing ones as one product of matrices)
        minimise over β_W                       (pairwise steps on the q × q block of K)
        s = Kβ follows: s += Σ_W Δβ_i K_i       (one pass over q rows)
        leave out variables that stay at bounds (active)
    bring all variables back and check again.

With large q the inner problem is solved to a part of the violation only, by many
cheap steps of pairs: the kernel rows, which dominate the time, come in large blocks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..exec import Executor
from ..kernels import NEGATIVE, KernelMatrix, has_negative_eigenvalue
from ..loops import decomposition as loops
from ..result import SolveResult, Status
from .active import Absent, ActiveSet, row_sums
from .cache import RowCache
from .problem import DualProblem, best_bias
from .records import DualCertificate, DualIteration, DualSettings
from .working_set import steepest

logger = logging.getLogger("cutplane")

Observer = Callable[[DualIteration], bool | None]

LARGE_SET = 512  # a working set worth a product of matrices
MIDDLE_SET = 256  # where all rows fit in the cache anyway, and few steps are wanted on each
ALL_AT_ONCE = 500  # problems of so many variables are one working set
MIDDLE = 2500  # up to so many variables rows are cheap
EXACT_SET = 64  # working sets up to this size are solved (almost) exactly
CHUNK = 4096  # columns of s that a thread updates at a time
PART = 0.1  # of the violation: how far the others are solved
STEPS_PER_VARIABLE = 50  # most inner steps of an iteration
# Iterations without progress that prove the limit of precision: so many times all variables.
STALL = 30
LONGEST_STALL = 3000
SAMPLE = 160  # rows on which a kernel is tested for a negative eigenvalue


@dataclass(frozen=True)
class _State:
    """Where the solver is; replaced as a whole, so that an interrupt cannot split it."""

    beta: np.ndarray  # of all variables
    s: np.ndarray  # Kβ of the active rows
    value: float  # ½βᵀKβ + cᵀβ
    active: ActiveSet
    absent: tuple[Absent, ...] = ()


class DualSolver:
    """One run of the decomposition solver.

    Parameters
    ----------
    matrix : KernelMatrix
    problem : DualProblem
    settings : DualSettings
    executor : Executor
    observer : callable, optional
        Gets a DualIteration now and then; a true answer stops the run.
    definite : bool or None
        What is known of the kernel; False withholds the certificate, None has the solver look.

    Attributes
    ----------
    beta : ndarray
        The variables, as of the last complete iteration.
    indefinite : bool
        Whether the kernel is not positive semidefinite, as far as is known.
    """

    def __init__(
        self,
        matrix: KernelMatrix,
        problem: DualProblem,
        settings: DualSettings,
        executor: Executor,
        observer: Observer | None = None,
        definite: bool | None = True,
    ) -> None:
        self._matrix = matrix
        self._problem = problem
        self._settings = settings
        self._executor = executor
        self._observer = observer
        self._definite = definite
        self.indefinite = definite is False
        self._started = time.perf_counter()
        self._seconds = {"rows": 0.0, "inner": 0.0, "update": 0.0, "restore": 0.0}
        self._cache = RowCache(matrix, settings.cache_bytes)
        self._diagonal = matrix.diagonal
        self._size = self._set_size()
        self._trace: list[DualIteration] = []
        self._iterations = 0
        self._primal = np.inf  # best so far
        self._least_curvature = np.inf
        self._state: _State | None = None

    def _set_size(self) -> int:
        """Of the working sets: even, not more than rows fit, or all variables."""
        size = self._settings.working_set_size
        count, fits = len(self._problem), self._cache.capacity
        if size is None and count <= ALL_AT_ONCE:
            size = count
        elif size is None:
            size = MIDDLE_SET if count <= MIDDLE else LARGE_SET
        if size >= count and fits == self._matrix.columns:
            return count
        size = min(size, fits, count)
        return max(2, size - size % 2)

    @property
    def beta(self) -> np.ndarray:
        assert self._state is not None
        return self._state.beta

    # -- the loop ---------------------------------------------------------------------

    def run(self, start: np.ndarray | None = None) -> SolveResult:
        """Minimise, from ``start`` (default: the simplest feasible point).

        The result's ``w`` holds β.
        """
        try:
            status = self._iterate(start)
        except KeyboardInterrupt:
            if self._state is None:  # not even the first point is known
                raise
            status = Status.INTERRUPTED
        return self._result(status)

    def _iterate(self, start: np.ndarray | None) -> Status:
        self._state = self._first_state(start)
        previous = np.empty(0, dtype=np.int64)
        history = np.zeros(len(self._state.active), dtype=np.int64)
        seen = np.empty(4)
        stalled, least = 0, np.inf
        patience = min(STALL * -(-len(self._problem) // self._size), LONGEST_STALL)
        while True:
            state = self._state
            active = state.active
            beta = state.beta[active.variables]
            g = state.s[active.columns] + active.linear
            loops.extremes(g, beta, active.lower, active.upper, seen)
            violation = max(0.0, seen[1] - seen[0])
            bias = -seen[2] / seen[3] if seen[3] else _middle(-seen[1], -seen[0])
            solved = not violation > self._settings.tol
            if solved and state.absent:
                self._restore()
                previous, history = previous[:0], np.zeros(len(self._problem), dtype=np.int64)
                continue
            if solved:
                if not self._trace:
                    self._record(state, violation, bias, g, beta)
                return Status.CONVERGED
            chosen = self._choose(g, beta, previous)
            self._state = self._optimise(chosen, g, beta, violation)
            gained = state.value - self._state.value
            if gained > 1e-15 * abs(state.value) or violation < 0.5 * least:
                stalled, least = 0, violation
            else:
                stalled += 1
            self._iterations += 1
            status = self._record(state, violation, bias, g, beta)
            if status is None and stalled >= patience:
                status = Status.NUMERICALLY_LIMITED
            if status is not None:
                return status
            previous = chosen
            if self._settings.shrinking and self._size < len(self._problem):
                loops.count_positive(g, beta, active.lower, active.upper, bias, history)
                previous, history = self._shrink(previous, history)

    def _choose(self, g: np.ndarray, beta: np.ndarray, previous: np.ndarray) -> np.ndarray:
        """The working set, as numbers of active variables."""
        assert self._state is not None
        active = self._state.active
        if self._size > 2:
            return steepest(g, beta, active.lower, active.upper, self._size, previous)
        i = int(np.argmin(np.where(beta < active.upper, g, np.inf)))
        row = self._rows(active.rows[active.columns[[i]]])[0]
        j = loops.second_order_partner(
            g,
            beta,
            active.lower,
            self._cache.slots[row],
            active.columns,
            self._diagonal[active.rows],
            i,
        )
        return np.array([i, j])

    def _optimise(
        self, chosen: np.ndarray, g: np.ndarray, beta: np.ndarray, violation: float
    ) -> _State:
        """Minimise over the chosen variables."""
        state = self._state
        assert state is not None
        active = state.active
        columns = active.columns[chosen]
        if self._problem.row_of is None:
            rows, place = active.rows[columns], np.arange(len(chosen))
        else:
            rows, place = np.unique(active.rows[columns], return_inverse=True)
        slots = self._rows(rows)
        begin = time.perf_counter()
        K = self._square(slots[place], columns)
        point, slope = beta[chosen], g[chosen]
        seen = np.empty(2)
        loops.pairwise_steps(
            K,
            self._diagonal[active.rows[columns]],
            slope,
            point,
            active.lower[chosen],
            active.upper[chosen],
            self._inner_tol(len(chosen), violation),
            STEPS_PER_VARIABLE * max(len(chosen), EXACT_SET) if len(chosen) > 2 else 1,
            seen,
        )
        self._least_curvature = min(self._least_curvature, seen[1])
        middle = time.perf_counter()
        self._seconds["inner"] += middle - begin
        change = point - beta[chosen]
        # Exact for a quadratic: the mean of the slopes at both ends.
        value = state.value + 0.5 * float(change @ (g[chosen] + slope))
        self._step = float(np.max(np.abs(change), initial=0.0))
        whole = state.beta.copy()
        whole[active.variables[chosen]] = point
        if len(chosen) == len(state.s) == len(self._problem):
            s = np.empty_like(state.s)
            s[columns] = slope - active.linear[chosen]
        else:
            s = state.s.copy()
            moved = np.bincount(place, change, minlength=len(rows))
            self._add(slots[moved != 0.0], moved[moved != 0.0], s)
        self._seconds["update"] += time.perf_counter() - middle
        return replace(state, beta=whole, s=s, value=value)

    def _inner_tol(self, size: int, violation: float) -> float:
        """How far a working set is solved: exactly if that is cheap, or if there is no other."""
        if size == 2:
            return 0.0
        if size <= EXACT_SET:
            return 0.1 * self._settings.tol
        part = 0.0 if size == len(self._problem) else PART * violation
        return max(part, 0.5 * self._settings.tol)

    def _square(self, slots: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The block of K of the working set."""
        rows = self._cache.slots
        if len(columns) == len(rows) == rows.shape[1] and np.array_equal(slots, columns):
            return rows
        K = np.empty((len(columns), len(columns)), dtype=rows.dtype)
        loops.gather_square(rows, slots, columns, K)
        return K

    # -- rows -------------------------------------------------------------------------

    def _rows(self, rows: np.ndarray) -> np.ndarray:
        begin = time.perf_counter()
        slots = self._cache.fetch(rows)
        self._seconds["rows"] += time.perf_counter() - begin
        return slots

    def _add(self, slots: np.ndarray, coef: np.ndarray, s: np.ndarray) -> None:
        """s += Σ coef·rows in the slots."""
        rows = self._cache.slots

        def chunk(k: int) -> None:
            first = k * CHUNK
            loops.add_rows(rows, slots, coef, first, min(first + CHUNK, len(s)), s)

        self._executor.run(chunk, -(-len(s) // CHUNK))

    def _add_products(self, coef: np.ndarray, s: np.ndarray) -> None:
        """s += Σ_i coef_i K_i over all rows i with a coefficient, in blocks that fit the cache."""
        rows = np.flatnonzero(coef)
        block = max(1, min(self._cache.capacity, LARGE_SET))
        for first in range(0, len(rows), block):
            some = rows[first : first + block]
            self._add(self._rows(some), coef[some], s)

    def _first_state(self, start: np.ndarray | None) -> _State:
        problem = self._problem
        beta = problem.start() if start is None else problem.repaired(start)
        active = ActiveSet.of(problem, np.arange(len(problem)))
        s = np.zeros(self._matrix.columns)
        sums = row_sums(problem, beta, self._matrix.columns)
        if np.any(sums):
            self._add_products(sums, s)
        value = 0.5 * float(sums @ s) + float(problem.linear @ beta)
        return _State(beta, s, value, active)

    # -- shrinking --------------------------------------------------------------------

    def _history(self) -> int:
        if self._settings.history is not None:
            return self._settings.history
        return 100 if self._size < EXACT_SET else 20

    def _shrink(self, previous: np.ndarray, history: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Leave out the variables whose time has come, if they are worth the effort."""
        state = self._state
        assert state is not None
        active = state.active
        leaving = history >= self._history()
        leaving[previous] = False
        if 10 * np.count_nonzero(leaving) < len(active):
            return previous, history
        smaller = ActiveSet.of(self._problem, active.variables[~leaving])
        remain = np.isin(active.rows, smaller.rows, assume_unique=True)
        keep = np.flatnonzero(remain)
        gone = Absent(active.rows[~remain], state.s[~remain], state.beta)
        self._cache.restrict(self._matrix.restricted(smaller.rows), keep)
        self._state = replace(state, s=state.s[keep], active=smaller, absent=(*state.absent, gone))
        number = np.cumsum(~leaving) - 1
        return number[previous], history[~leaving]

    def _restore(self) -> None:
        """Bring all variables back, with their s."""
        begin = time.perf_counter()
        state = self._state
        assert state is not None
        problem, rows = self._problem, self._matrix.columns
        s = np.empty(rows)
        s[state.active.rows] = state.s
        for gone in state.absent:
            values = gone.s.copy()
            self._cache.reset(self._matrix.restricted(gone.rows))
            self._add_products(row_sums(problem, state.beta - gone.beta, rows), values)
            s[gone.rows] = values
        self._cache.reset(self._matrix)
        everything = ActiveSet.of(problem, np.arange(len(problem)))
        self._state = _State(state.beta, s, state.value, everything)
        self._seconds["restore"] += time.perf_counter() - begin

    # -- reports ----------------------------------------------------------------------

    def _record(
        self, state: _State, violation: float, bias: float, g: np.ndarray, beta: np.ndarray
    ) -> Status | None:
        """Tell of the iteration from ``state`` on, and ask whether it was the last."""
        settings = self._settings
        seconds = time.perf_counter() - self._started
        limit = None
        if settings.max_iter is not None and self._iterations >= settings.max_iter:
            limit = Status.MAX_ITER
        elif seconds >= settings.time_limit:
            limit = Status.TIME_LIMIT
        if (
            self._iterations * self._size // EXACT_SET
            == ((self._iterations - 1) * self._size // EXACT_SET)
            and limit is None
        ):
            return None
        trial = np.inf
        if not state.absent:
            active = state.active
            gap = loops.gap_at(g, beta, active.lower, active.upper, bias)
            trial = gap - state.value
        self._primal = min(self._primal, trial)
        record = DualIteration(
            number=self._iterations,
            primal=self._primal,
            dual=-state.value,
            trial=trial,
            step=getattr(self, "_step", 0.0),
            cuts=self._size,
            seconds=seconds,
            violation=violation,
            active=len(state.active),
        )
        self._trace.append(record)
        logger.debug(
            "iteration %d: violation %.2e, %d active variables, dual %.8g",
            record.number,
            violation,
            record.active,
            record.dual,
        )
        stopped = self._observer is not None and bool(self._observer(record))
        return Status.STOPPED if stopped and limit is None else limit

    def _result(self, status: Status) -> SolveResult:
        assert self._state is not None
        if self._state.absent:
            self._restore()
        state = self._state
        g = state.s[state.active.columns] + self._problem.linear
        bias = best_bias(self._problem, g)
        gap = max(0.0, loops.gap_at(g, state.beta, self._problem.lower, self._problem.upper, bias))
        # Anew from s: the running sum has gathered rounding.
        sums = row_sums(self._problem, state.beta, len(state.s))
        dual = -(0.5 * float(sums @ state.s) + float(self._problem.linear @ state.beta))
        self._look_for_negative_curvature(state.beta)
        certificate = DualCertificate(dual + gap, dual)
        if self.indefinite:
            certificate = DualCertificate(dual + gap, -np.inf, "withheld")
        return SolveResult(
            w=state.beta,
            bias=bias,
            status=status,
            certificate=certificate,
            n_iter=max(1, self._iterations),
            trace=tuple(self._trace),
            timings={**self._seconds, "total": time.perf_counter() - self._started},
        )

    def _look_for_negative_curvature(self, beta: np.ndarray) -> None:
        """Test a kernel of which nothing is known on the pairs met and on some of its rows."""
        if self._definite is not None or self.indefinite:
            return
        rows = np.unique(self._problem.rows[beta != 0.0])
        if len(rows) < 2:
            rows = np.arange(self._matrix.columns)
        rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE)).astype(np.int64)]
        negative = has_negative_eigenvalue(self._matrix, rows)
        self.indefinite = negative or self._least_curvature < -NEGATIVE


def _middle(low: float, high: float) -> float:
    """Between two numbers one of which may be infinite."""
    if not np.isfinite(low):
        return float(high) if np.isfinite(high) else 0.0
    return 0.5 * float(low + high) if np.isfinite(high) else float(low)
