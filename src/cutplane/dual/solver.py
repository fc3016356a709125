"""Decomposition (Joachims 1998): optimise a few variables at a time, the others held fixed.

    repeat
        g = Kβ + c; stop if the gap is small enough, or the violation
            max g over what may fall − min g over what may grow
        W = working set of q variables          (working_set)
        rows of W                               (cache; the missing ones as one product of matrices)
        minimise over β_W                       (pairwise steps on the q × q block of K)
        s = Kβ follows: s += Σ_W Δβ_i K_i       (one pass over q rows)
        leave out variables that stay at bounds (active)
    bring all variables back and check again; verify: s anew in double precision, then the gap.

Terms of the gap of variables that are left out are 0 if they are rightly so: until all are
back the gap of the others is taken for it. Where single precision does not do, the run goes on in
double precision.

With large q the inner problem is solved to a part of the violation only, by many
cheap steps of pairs: the kernel rows, which dominate the time, come in large blocks.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace

import numpy as np

from ..exec import Executor
from ..kernels import KernelMatrix
from ..loops import decomposition as loops
from ..result import SolveResult, Status
from .active import Absent, ActiveSet, row_sums
from .cache import RowCache
from .curvature import Definiteness, definiteness, looks_indefinite
from .interior import factor_columns, factor_of, interior_point
from .pace import Pace
from .problem import DualProblem
from .records import DualIteration, DualPoint, DualSettings, Observer, certificate_of
from .verify import Sums, Verified, balanced, stretched, verify
from .whole import ALL_AT_ONCE
from .working_set import steepest

logger = logging.getLogger("cutplane")

LARGE_SET = 512  # a working set worth a product of matrices
MIDDLE_SET = 256  # where all rows fit in the cache anyway, and few steps are wanted on each
MIDDLE = 2500  # up to so many variables rows are cheap
SET_STEPS = 500  # what an iteration costs besides its steps of pairs, in such steps
EXACT_SET = 64  # working sets up to this size are solved (almost) exactly
CHUNK = 4096  # columns of s that a thread updates at a time
PART = 0.1  # of the violation: how far the others are solved
STEPS_PER_VARIABLE = 50  # most inner steps of an iteration
HURRY = 0.5  # seconds to verify, at most, after an interrupt
NEAR = 10.0  # times the gap that is enough: from there on the best bias is worth its sort
LEAST_PART = 1e-3  # of the violation that an inner problem leaves, at least
# Points that were thought good enough and were not: of so many the last is the limit of precision.
MOST_FAILURES = 20
# Iterations without progress that prove the limit of precision: so many times all variables.
STALL = 30
LONGEST_STALL = 3000


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
    exact : KernelMatrix, optional
        The same in double precision, if ``matrix`` is not.

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
        exact: KernelMatrix | None = None,
    ) -> None:
        self._matrix = matrix
        self._exact = matrix if exact is None else exact
        self._single = exact is not None and matrix.dtype == np.float32
        self._problem = problem
        self._settings = settings
        self._executor = executor
        self._observer = observer
        self._definite = definite
        self.indefinite = definite is False
        self._started = time.perf_counter()
        self._seconds = {"rows": 0.0, "inner": 0.0, "update": 0.0, "shrink": 0.0, "restore": 0.0}
        self._seconds["verify"] = 0.0
        self._cache = RowCache(matrix, settings.cache_bytes)
        self._diagonal = matrix.diagonal
        self._size = self._set_size()
        self._trace: list[DualIteration] = []
        self._iterations = 0
        self._primal = np.inf  # best so far
        self._least_curvature = np.inf
        self._state: _State | None = None
        self._mass = problem.mass
        self._pace = Pace(len(problem), factor_columns(self._exact), settings.max_iter)
        self._part = 1.0  # of the tolerance that is to be kept before a point is verified
        self._failures = 0
        self._known: Definiteness | None = None
        self._verified: Verified | None = None  # of the state

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

    def point(self) -> DualPoint:
        """Where the solver is now."""
        state = self._state
        assert state is not None
        active, seen = state.active, np.empty(4)
        g = state.s[active.columns] + active.linear
        loops.extremes(g, state.beta[active.variables], active.lower, active.upper, seen)
        sums = row_sums(self._problem, state.beta, self._matrix.columns)
        return DualPoint(state.beta, _bias(seen) - self._exact.offset(sums, 0.0).value)

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
        self._known = definiteness(self._definite, lambda: self._exact)
        self._state = self._first_state(start)
        previous = np.empty(0, dtype=np.int64)
        history = np.zeros(len(self._state.active), dtype=np.int64)
        seen = np.empty(4)
        stalled, least, hopeless = 0, np.inf, False
        patience = min(STALL * -(-len(self._problem) // self._size), LONGEST_STALL)
        settings = self._settings
        by_violation = settings.stopping == "kkt"
        while True:
            state = self._state
            active = state.active
            beta = state.beta[active.variables]
            g = state.s[active.columns] + active.linear
            loops.extremes(g, beta, active.lower, active.upper, seen)
            violation = max(0.0, seen[1] - seen[0])
            bias = _bias(seen)
            settled = not violation > (self._part * settings.tol if by_violation else 0.0)
            gap = self._gap(g, beta, bias) if self._due() or settled else np.inf
            stuck = stalled >= patience or not violation > 0.0
            hopeless = hopeless or (gap < np.inf and self._pace.hopeless(gap))
            stuck |= hopeless  # also once all variables are back
            primal = gap - state.value
            reached = settings.reached(violation, gap, primal, self._mass, self._part)
            if np.isnan(gap) or reached or stuck:
                if state.absent:
                    self._restore()
                    previous, history = previous[:0], np.zeros(len(self._problem), dtype=np.int64)
                    stalled = 0
                    continue
                if not self._trace:
                    self._record(state, violation, gap)
                status = self._conclude(stuck or bool(np.isnan(gap)))
                if status is not None:
                    return status
                stalled, least = 0, np.inf
                continue
            if self._pace.slow():
                status = self._conclude(False) if self._jump() else None
                if status is not None:
                    return status
                previous, history = previous[:0], np.zeros(len(self._problem), dtype=np.int64)
                continue
            chosen = self._choose(g, beta, previous)
            goal = self._goal(violation, gap, primal)
            self._state = self._optimise(chosen, g, beta, violation, goal)
            gained = state.value - self._state.value
            if gained > 1e-15 * abs(state.value) or violation < 0.5 * least:
                stalled, least = 0, violation
            else:
                stalled += 1
            told = self._due()
            self._iterations += 1
            if told or self._limit() is not None:
                gap = gap if told else self._gap(g, beta, bias)
                status = self._record(state, violation, gap)
                if status is not None:
                    return status
            previous = chosen
            if settings.shrinking and self._size < len(self._problem):
                loops.count_positive(g, beta, active.lower, active.upper, bias, history)
                previous, history = self._shrink(previous, history)

    def _jump(self) -> bool:
        """Go where the interior point method leads, if that is better."""
        assert self._state is not None and self._known is not None
        if self._state.absent:
            self._restore()
        if self._known.kind == "withheld":
            return False
        settings = self._settings
        factor = factor_of(self._exact, settings.cache_bytes)
        if factor is None:
            return False
        beta = interior_point(factor, self._problem, self._started + settings.time_limit)
        self._pace.tried()
        if beta is None:
            return False
        state = self._first_state(balanced(self._problem, beta))
        if not state.value < self._state.value:
            return False
        self._state = state
        return True

    def _due(self) -> bool:
        """Whether this iteration is looked at and told of: of small sets not every one is."""
        now, size = self._iterations, self._size
        return now == 0 or (now + 1) * size // EXACT_SET != now * size // EXACT_SET

    def _gap(self, g: np.ndarray, beta: np.ndarray, bias: float) -> float:
        """Of the active variables; near the end with the best bias."""
        state, problem = self._state, self._problem
        assert state is not None
        active, settings = state.active, self._settings
        gap = float(loops.gap_at(g, beta, active.lower, active.upper, bias))
        if state.absent or settings.stopping == "kkt":
            return gap
        enough = settings.enough(gap - state.value, self._mass)
        if self._part * enough < gap <= NEAR * enough:
            best = loops.best_bias(g, problem.lower, problem.upper, problem.total)
            gap = min(gap, float(loops.gap_at(g, beta, problem.lower, problem.upper, best)))
        return gap

    def _goal(self, violation: float, gap: float, primal: float) -> float:
        """The violation at which the run should end."""
        settings = self._settings
        if settings.stopping == "kkt":
            return settings.tol
        if not np.isfinite(gap):
            return LEAST_PART * violation
        enough = self._part * settings.enough(primal, self._mass)
        return violation * min(1.0, max(LEAST_PART, enough / max(gap, 1e-300)))

    def _conclude(self, stuck: bool) -> Status | None:
        """Verify a point that seems good enough, or cannot be made better; None to go on."""
        settings = self._settings
        found = self._verify()
        if not np.isfinite(found.gap):
            return Status.NUMERICALLY_LIMITED
        if found.good(settings, self._mass) or self._stretch(found):
            return Status.CONVERGED
        if self._single:
            logger.debug("single precision does not do: on in double precision")
            self._matrix, self._single = self._exact, False
            del self._cache  # its memory is wanted
            self._cache = RowCache(self._matrix, settings.cache_bytes)
            self._diagonal = self._matrix.diagonal
            self._size = self._set_size()
            return None
        self._failures += 1
        self._part *= 0.5
        if stuck or found.lost(settings, self._mass) or self._failures >= MOST_FAILURES:
            return Status.NUMERICALLY_LIMITED
        return None

    def _stretch(self, found: Verified) -> bool:
        """Move to a longer point if that one is good enough."""
        state, settings = self._state, self._settings
        assert state is not None
        if found.slack <= 0.5 * settings.enough(found.primal, self._mass):
            return False
        longer = stretched(self._problem, state.beta, found)
        if longer is None:
            return False
        self._state = replace(state, beta=longer)
        if self._verify().good(settings, self._mass):
            return True
        self._state, self._verified = state, found
        return False

    def _verify(self) -> Verified:
        """s of all rows anew, in double precision, and what is certain of it."""
        begin = time.perf_counter()
        state, problem, rows = self._state, self._problem, self._matrix.columns
        assert state is not None and self._known is not None
        beta = balanced(problem, state.beta)
        sums = row_sums(problem, beta, rows)
        used = np.flatnonzero(sums)
        careful = self._exact.careful_sums(sums)
        if careful is not None:
            s = careful[0]
        elif not self._single and not state.absent:
            s = np.zeros(rows)
            self._add_products(sums, s)  # rows in the cache need not be computed again
        else:
            s = self._exact.combine(used, sums[used])
        if state.absent:
            self._cache.reset(self._matrix)
        everything = ActiveSet.of(problem, np.arange(len(problem)))
        computed = Sums(s, len(used), error=None if careful is None else careful[1])
        found = verify(self._exact, problem, beta, computed, self._known.lift)
        if careful is None and found.slack > 0.5 * self._settings.enough(found.primal, self._mass):
            closer = self._closer_sums(sums)
            if closer is not None:
                s = closer.s
                found = verify(self._exact, problem, beta, closer, self._known.lift)
        value = 0.5 * float(sums @ s) + float(problem.linear @ beta)
        self._state = _State(beta, s, value, everything)
        self._verified = found
        self._seconds["verify"] += time.perf_counter() - begin
        return self._verified

    def _closer_sums(self, sums: np.ndarray) -> Sums | None:
        """s again with closer bounds on its rounding, from all values; None if they are many."""
        rows = len(sums)
        if 8 * rows * rows > self._settings.cache_bytes or self._exact.dtype != np.float64:
            return None
        s, sizes = np.empty(rows), np.empty(rows)
        loops.sums_with_sizes(self._exact.whole(), np.arange(rows), sums, s, sizes)
        return Sums(s, loops.SOME + rows // loops.SOME, sizes)

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
        self, chosen: np.ndarray, g: np.ndarray, beta: np.ndarray, violation: float, goal: float
    ) -> _State:
        """Minimise over the chosen variables, on the way to a violation of ``goal``."""
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
        point, slope = beta[chosen], g[chosen]
        seen = np.empty(2)
        steps = loops.pairwise_steps(
            self._cache.slots,
            slots[place],
            columns,
            self._diagonal[active.rows[columns]],
            slope,
            point,
            active.lower[chosen],
            active.upper[chosen],
            self._inner_tol(len(chosen), violation, goal),
            STEPS_PER_VARIABLE * max(len(chosen), EXACT_SET) if len(chosen) > 2 else 1,
            seen,
        )
        self._pace.add(max(steps, SET_STEPS) if len(chosen) > 2 else steps, SET_STEPS)
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

    def _inner_tol(self, size: int, violation: float, goal: float) -> float:
        """How far a working set is solved: exactly if that is cheap, or if there is no other."""
        if size == 2:
            return 0.0
        if size <= EXACT_SET:
            return 0.1 * goal
        part = 0.0 if size == len(self._problem) else PART * violation
        return max(part, 0.5 * goal)

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
        begin = time.perf_counter()
        smaller = ActiveSet.of(self._problem, active.variables[~leaving])
        remain = np.isin(active.rows, smaller.rows, assume_unique=True)
        keep = np.flatnonzero(remain)
        gone = Absent(active.rows[~remain], state.s[~remain], state.beta)
        self._cache.restrict(self._matrix.restricted(smaller.rows), keep, smaller.rows)
        self._state = replace(state, s=state.s[keep], active=smaller, absent=(*state.absent, gone))
        number = np.cumsum(~leaving) - 1
        self._seconds["shrink"] += time.perf_counter() - begin
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

    def _seconds_to_verify(self) -> float:
        """A guess, from the kernel values so far."""
        assert self._state is not None
        values = self._matrix.columns * np.count_nonzero(self._state.beta)
        return self._seconds["rows"] * values / max(1, self._cache.computed_values)

    # -- reports ----------------------------------------------------------------------

    def _limit(self) -> Status | None:
        """Whether the user wants no more."""
        settings = self._settings
        if settings.max_iter is not None and self._iterations >= settings.max_iter:
            return Status.MAX_ITER
        if time.perf_counter() - self._started >= settings.time_limit:
            return Status.TIME_LIMIT
        return None

    def _record(self, state: _State, violation: float, gap: float) -> Status | None:
        """Tell of the iteration from ``state`` on, and ask whether it was the last."""
        limit = self._limit()
        record = self._iteration(state, violation, gap)
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

    def _iteration(self, state: _State, violation: float, gap: float) -> DualIteration:
        trial = np.inf if state.absent else gap - state.value
        self._primal = min(self._primal, trial)
        return DualIteration(
            number=max(1, self._iterations),
            primal=self._primal,
            dual=-state.value,
            trial=trial,
            step=getattr(self, "_step", 0.0),
            cuts=self._size,
            seconds=time.perf_counter() - self._started,
            violation=violation,
            active=len(state.active),
        )

    def _result(self, status: Status) -> SolveResult:
        problem, found = self._problem, self._verified
        assert self._state is not None and self._known is not None
        if status is Status.INTERRUPTED:
            self._cache.reset(self._matrix)  # perhaps in the midst of a change
        if not self._trace:
            self._trace.append(self._iteration(self._state, np.inf, np.inf))
        if status is Status.INTERRUPTED and self._seconds_to_verify() > HURRY:
            found = None
            bias, certificate = self.point().bias, certificate_of(np.inf, -np.inf, "withheld")
        else:
            found = self._verify() if status is not Status.CONVERGED or found is None else found
            bias, kind = found.bias, self._known.kind
            if kind == "conditional" and looks_indefinite(
                self._exact, problem, self._state.beta, self._least_curvature
            ):
                kind = "withheld"
            self.indefinite = kind == "withheld"
            certificate = certificate_of(found.primal, found.dual, kind)
        state = self._state
        return SolveResult(
            w=state.beta,
            bias=bias,
            status=status,
            certificate=certificate,
            n_iter=max(1, self._iterations),
            trace=tuple(self._trace),
            timings={**self._seconds, "total": time.perf_counter() - self._started},
        )


def _bias(seen: np.ndarray) -> float:
    """The bias by the free variables, else between the extremes, one of which may be infinite."""
    if seen[3]:
        return -float(seen[2]) / float(seen[3])
    low, high = -float(seen[1]), -float(seen[0])
    if not np.isfinite(low):
        return float(high) if np.isfinite(high) else 0.0
    return 0.5 * float(low + high) if np.isfinite(high) else float(low)
