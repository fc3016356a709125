"""Decomposition (Joachims 1998): optimise a few variables at a time, the others held fixed.

    repeat
        g = Kβ + c; stop if the gap is small enough, or the violation
            max g over what may fall − min g over what may grow
        W = working set of q variables
        rows of W                               (cache; the missing ones as one product of matrices)
        minimise over β_W                       (pairwise steps on the q × q block of K)
        s = Kβ follows: s += Σ_W Δβ_i K_i       (one pass over q rows)
        leave out variables that stay at bounds (shrinking)
    bring all variables back and check again; verify: s anew in double precision, then the gap.

Small problems are the case of a working set of all variables: nothing is chosen or left out, and
s follows from the steps themselves. With large q the inner problem is solved to a part of the
violation only, by many cheap steps of pairs: the kernel rows, which dominate the time, come in
large blocks.

Working sets are the steepest feasible direction (Joachims 1998, Zoutendijk 1970): the q/2 variables
with the least g that may grow and the q/2 with the largest g that may fall. Of large sets half is
kept from the set before, the newest half, lest variables come and go (Wen et al. 2018,
ThunderSVM): their rows are at hand anyway. A set of two is chosen by second order (Fan, Chen, Lin
2005).

Shrinking: a variable at a bound whose multiplier estimate stayed positive for ``history``
iterations will probably end there: it leaves the problem. Its row of K is a column that nobody
updates from then on; ``Absent`` remembers s and β of that moment. To bring a row back, s is
corrected by the rows whose β has changed since. Terms of the gap of variables that are left out are
0 if they are rightly so: until all are back the gap of the others is taken for it.

Where single precision does not do, the run goes on in double precision. Where pairs creep, the
interior point method has its turn (``interior``).
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...exec import Executor
from ...kernels import KernelMatrix
from ...kernels.definite import Definiteness, definiteness, looks_indefinite
from ...loops import decomposition as loops
from ...result import DualIteration, SolveResult, Status
from .interior import SLOW, Pace, factor_columns, factor_of, interior_point
from .problem import (
    DualProblem,
    DualSettings,
    Observer,
    Verified,
    certificate_of,
    linear_sums,
    stretched,
    verify,
)

logger = logging.getLogger("cutplane")

PARTS = ("rows", "inner", "update", "shrink", "restore", "verify")  # whose seconds are told
# Up to MIDDLE variables all rows are cheap and stay in the cache, so that sets may be large: fewer
# rounds. Measured on five sets of 1,500 to 2,400 rows, C = 1 and 1,000: sets of 512 take 0.7 to 2
# times as long, sets of 256 take 0.75 to 2.1 times, all variables at once 0.6 to 4 times.
MIDDLE, MIDDLE_SET = 2500, 1000
LARGE_SET = 512  # a working set worth a product of matrices
KEEP_FROM = 64  # smaller sets are chosen afresh every time
SET_STEPS = 500  # what an iteration costs besides its steps of pairs, in such steps
STEPS_PER_VARIABLE = 50  # most steps of an inner problem; one that takes more creeps
EXACT_SET = 64  # working sets up to this size are solved (almost) exactly
FEWEST_ROWS = 2  # in the cache: a pair cannot do with less
NO_VALUES = np.empty((0, 0))  # where rows are computed one at a time
CHUNK = 4096  # columns of s that a thread updates at a time
PART = 0.1  # of the violation: how far the others are solved
DOUBLE_COST = 3.0  # a kernel value in double precision, against single precision
HURRY = 0.5  # seconds to verify, at most, after an interrupt
# Points that were thought good enough and were not: of so many the last is the limit of precision.
MOST_FAILURES = 20
# Iterations without progress that prove the limit of precision: so many times all variables.
STALL = 30
LONGEST_STALL = 3000


@dataclass
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
    history : ndarray of int
        Iterations for which the multiplier estimate of a variable at a bound was positive.
    previous : ndarray of int
        The working set before, as numbers of these variables.
    """

    variables: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    history: np.ndarray
    previous: np.ndarray

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
            history=np.zeros(len(variables), dtype=np.int64),
            previous=np.empty(0, dtype=np.int64),
        )


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
class _State:
    """Where the solver is; replaced as a whole, so that an interrupt cannot split it."""

    beta: np.ndarray  # of all variables
    s: np.ndarray  # Kβ of the active rows
    value: float  # ½βᵀKβ + cᵀβ
    active: ActiveSet
    absent: tuple[Absent, ...] = ()
    step: float = 0.0  # the largest change of a variable that led here


class RowCache:
    """Rows of the kernel matrix under a budget of bytes: those used last.

    All rows lie in one array of slots. When a row is needed and no slot is free, the row that was
    used least recently goes. When the solver leaves columns out, the rows kept are compacted in
    place and the bytes gained become new slots.

    Parameters
    ----------
    matrix : KernelMatrix
    budget : float
        Bytes for the rows. At least two rows are kept whatever it says.
    """

    def __init__(self, matrix: KernelMatrix, budget: float) -> None:
        self.matrix = matrix
        self._rows = len(matrix.diagonal)
        slots = int(budget // (matrix.dtype.itemsize * max(1, matrix.columns)))
        slots = min(max(slots, FEWEST_ROWS), self._rows)
        self._numbers = slots * matrix.columns
        self._flat = np.empty(0, dtype=matrix.dtype)
        self._clock = 0
        self.computed = 0  # rows, since the beginning
        self.computed_values = 0
        self.reset(matrix)

    def fetch(self, rows: np.ndarray, compute: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """The slots of distinct rows, which count as used, and which of the rows were missing.

        The missing ones are computed in one block; without ``compute`` their slots are −1.
        """
        self._clock += 1
        slots = self._slot_of[rows]
        self._stamp[slots[slots >= 0]] = self._clock
        new = np.flatnonzero(slots < 0)
        if compute and len(new):
            missing = rows[new]
            taken = np.arange(len(missing))
            if len(missing) < len(self._stamp):  # least recently used, none that this fetch needs
                taken = np.sort(np.argpartition(self._stamp, len(missing) - 1)[: len(missing)])
            self._slot_of[self._row_in[taken][self._row_in[taken] >= 0]] = -1
            self._row_in[taken] = -1  # nothing is promised before the values are there
            self.matrix.fill(missing, taken, self.slots)
            self._row_in[taken] = missing
            self._slot_of[missing] = taken
            self._stamp[taken] = self._clock
            self.computed += len(missing)
            self.computed_values += len(missing) * self.matrix.columns
            slots[new] = taken
        return slots, new

    def restrict(self, matrix: KernelMatrix, keep: np.ndarray, rows: np.ndarray) -> None:
        """Keep these columns only, and of the cached rows those that may be asked for again.

        Parameters
        ----------
        matrix : KernelMatrix
            The kernel of what is left.
        keep : ndarray of int
            Columns, ascending.
        rows : ndarray of int
            Rows of the variables that are left.
        """
        if len(self._flat) == 0:  # the rows are not its own
            self.reset(matrix)
            return
        wanted = np.zeros(self._rows + 1, dtype=bool)  # the last is for empty slots
        wanted[rows] = True
        used = np.flatnonzero(wanted[self._row_in])
        held, stamps = self._row_in[used], self._stamp[used]
        loops.compact_rows(self._flat, used, self.matrix.columns, keep)
        self.reset(matrix)
        self._row_in[: len(held)] = held
        self._stamp[: len(held)] = stamps
        self._slot_of[held] = np.arange(len(held))

    def reset(self, matrix: KernelMatrix) -> None:
        """Forget all rows, for a matrix with other columns. Rows that it stores are used there."""
        self.matrix = matrix
        if matrix.values is not None:
            self._flat = np.empty(0, dtype=matrix.dtype)
            self.slots = matrix.values
            self._row_in = self._slot_of = np.arange(self._rows)
        else:
            if len(self._flat) == 0:
                self._flat = np.empty(self._numbers, dtype=matrix.dtype)
            width = matrix.columns
            count = min(len(self._flat) // max(1, width), self._rows)
            self.slots = self._flat[: count * width].reshape(count, width)
            self._row_in, self._slot_of = np.full(count, -1), np.full(self._rows, -1)
        self._stamp = np.zeros(len(self.slots), dtype=np.int64)


def solve_small(
    matrix: KernelMatrix,
    rows: np.ndarray,
    points: tuple[Any, ...] | None,
    room: np.ndarray | None,
    problem: DualProblem,
    settings: DualSettings,
    beta: np.ndarray,
) -> tuple[int, Verified]:
    """Solve a problem of few variables, from ``beta``, which is changed, and verify the point.

    This is a ``DualSolver`` with a working set of all variables, without observer and limits.

    Parameters
    ----------
    matrix : KernelMatrix
        In double precision; it says how exact the values are.
    rows : ndarray of int
        The row of the matrix of every variable.
    points : tuple or None
        ``matrix.compiled()`` where rows of values are computed when a step needs them: most
        variables stay at a bound, and nobody needs theirs. If they do not fit into ``room``, all
        values are computed.
    room : ndarray or None
        Where rows of the variables are put; None if the matrix has just these rows.

    Returns
    -------
    rounds : int
    verified : Verified
    """
    c, lower, upper, count = problem.linear, problem.lower, problem.upper, len(beta)
    diagonal, g = matrix.diagonal[rows], c.copy()
    used = np.flatnonzero(beta)
    if points is not None and room is not None and len(used) > len(room):
        points = room = None
    values = NO_VALUES if points is not None else matrix.whole()
    K, place = (values, np.arange(count)) if room is None else (room, np.full(count, -1))
    if len(used):
        if room is not None:
            some = matrix.rows(used) if points is not None else values[rows[used, None], rows]
            K[: len(used)], place[used] = some, np.arange(len(used))
        g += _exact_sums(matrix, K, place, rows, beta)[0]
    marks = np.empty((3, count), dtype=np.int64)
    rounds, steps_left = 0, STEPS_PER_VARIABLE * max(count, EXACT_SET)
    while steps_left > 0:
        violation, _, gap = loops.assess(g, beta, lower, upper, True)
        target = gap, gap - 0.5 * float(beta @ (g + c)), problem.mass
        if not violation > 0.0 or settings.reached(violation, *target):
            break
        tol = 0.5 * settings.goal(violation, *target)
        box = diagonal, g, beta, lower, upper
        steps, *_ = loops.pairwise_steps(
            values, rows, rows, points, K, place, *box, tol, steps_left, *marks
        )
        if points is not None and np.count_nonzero(place >= 0) + 2 > len(K):
            K, place, points = matrix.whole(), np.arange(count), None
        steps_left -= max(1, steps)
        rounds += 1
    lack = loops.balance(beta, lower, upper, problem.total)
    s, error = _exact_sums(matrix, K, place, rows, beta)
    return rounds, verify(matrix, rows, problem, beta, lack, s, error)


def _exact_sums(
    matrix: KernelMatrix, K: np.ndarray, place: np.ndarray, rows: np.ndarray, beta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Σ_j beta_j·K[place_j], and how far each value is off at most; variable j has row rows_j."""
    s, sizes, *parts = np.zeros((4, K.shape[1]))
    loops.sums_with_sizes(K, place, beta, s, sizes, *parts)
    depth = loops.SOME + len(beta) // loops.SOME
    return s, matrix.sum_errors(beta, depth, sizes, rows)


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
        What the kernel's form says; False withholds the certificate, None has the solver look.
    exact : KernelMatrix, optional
        The same in double precision, if ``matrix`` is not, or knows less of its rounding.

    Attributes
    ----------
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
        self._exact = matrix if exact is None else exact
        self._single = self._exact is not matrix and matrix.dtype == np.float32
        self._problem = problem
        self._settings = settings
        self._executor = executor
        self._observer = observer
        self.indefinite = definite is False
        self._started = time.perf_counter()
        self._seconds = dict.fromkeys(PARTS, 0.0)
        self._trace: list[DualIteration] = []
        self._iterations = 0
        self._primal = np.inf  # best so far
        self._least_curvature = np.inf
        self._state: _State | None = None
        self._steps = 0  # of pairs
        self._work = 0  # the same, with what they have cost besides
        self._pace: Pace | None = None  # of a run that is not done soon
        self._part = 1.0  # of the tolerance that is to be kept before a point is verified
        self._failures = 0
        self._known: Definiteness | None = None
        if definite is not None:
            self._known = Definiteness("exact" if definite else "withheld")
        self._verified: Verified | None = None  # of the state
        self._room = np.empty(0)  # for the values of a working set
        self._idle = 1.0  # part of the rows new in the last set whose variables did not move
        self._use(matrix)

    def _use(self, matrix: KernelMatrix) -> None:
        """Work with this matrix; the working sets are as large as its rows in the cache allow."""
        self._matrix = matrix
        self._cache = RowCache(matrix, self._settings.cache_bytes)
        size, count = self._settings.working_set_size, len(self._problem.linear)
        if size is None:
            size = MIDDLE_SET if count <= MIDDLE else LARGE_SET
        if size < count or len(self._cache.slots) < matrix.columns:
            size = min(size, len(self._cache.slots), count)
            size = max(2, size - size % 2)
        self._size = min(size, count)
        self._rows_before = self._seconds["rows"]

    def point(self) -> tuple[np.ndarray, float]:
        """Where the solver is now: β, and the bias that suits it as far as is known."""
        state = self._state
        assert state is not None
        active = state.active
        g = state.s[active.columns] + active.linear
        beta = state.beta[active.variables]
        bias = loops.assess(g, beta, active.lower, active.upper, True)[1]
        shift = self._exact.moved[0]
        if len(shift):
            bias -= float(shift[self._problem.rows] @ state.beta)
        return state.beta, bias

    # -- the loop ---------------------------------------------------------------------

    def run(self, start: np.ndarray | None = None) -> SolveResult:
        """Minimise, from ``start`` (default: the simplest feasible point).

        The result's ``w`` holds β.
        """
        settings, mass, count = self._settings, self._problem.mass, len(self._problem.linear)
        stalled, least, hopeless = 0, np.inf, False
        patience = min(STALL * -(-count // self._size), LONGEST_STALL)
        status: Status | None = None
        try:
            if self._known is None:
                self._known = definiteness(self._exact)
            self._state = self._first_state(start)
            while status is None:
                state = self._state
                active, beta = state.active, state.beta[state.active.variables]
                g = state.s[active.columns] + active.linear
                # Of small sets not every iteration is told, and worth the best bias.
                now, size = self._iterations, self._size
                told = now == 0 or (now + 1) * size // EXACT_SET != now * size // EXACT_SET
                violation, bias, gap = loops.assess(g, beta, active.lower, active.upper, told)
                target = gap, gap - state.value, mass, self._part
                reached = settings.reached(violation, *target)
                if self._pace is None and self._steps >= SLOW * count:
                    self._pace = Pace(count, factor_columns(self._exact), settings.max_iter)
                if self._pace is not None:  # hopeless also once all variables are back
                    hopeless = hopeless or self._pace.hopeless(self._steps, gap)
                stuck = hopeless or stalled >= patience or not violation > 0.0 or np.isnan(gap)
                if (reached or stuck) and state.absent:
                    self._restore()
                    stalled = 0
                    continue
                if reached or stuck:
                    if not self._trace:
                        self._end_iteration(state, violation, gap)
                    status = self._conclude(stuck)
                    stalled, least = 0, np.inf
                    continue
                if self._pace is not None and self._pace.slow(self._work):
                    if self._jump():
                        status = self._conclude(False)
                    continue
                chosen, goal = self._choose(g, beta), settings.goal(violation, *target)
                self._state = self._optimise(chosen, g, beta, violation, goal)
                gained = state.value - self._state.value
                if gained > 1e-15 * abs(state.value) or violation < 0.5 * least:
                    stalled, least = 0, violation
                else:
                    stalled += 1
                self._iterations += 1
                status = self._end_iteration(state, violation, gap, told)
                active.previous = chosen
                if settings.shrinking and self._size < count and status is None:
                    loops.count_positive(g, beta, active.lower, active.upper, bias, active.history)
                    self._shrink()
        except KeyboardInterrupt:
            if self._state is None:  # not even the first point is known
                raise
            status = Status.INTERRUPTED
        return self._result(status)

    def _choose(self, g: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """The working set: numbers of distinct active variables, the newest last."""
        assert self._state is not None
        active, size = self._state.active, self._size
        if size >= len(g):
            return np.arange(len(g))
        growing = np.where(beta < active.upper, g, np.inf)
        if size == 2:
            i = int(np.argmin(growing))
            slots, _ = self._cache.fetch(active.rows[active.columns[[i]]])
            row = self._cache.slots[slots[0]][active.columns]
            diagonal = self._matrix.diagonal[active.rows[active.columns]]
            curvatures = np.maximum(diagonal[i] + diagonal - 2.0 * row, loops.FLAT)
            gains = np.maximum(g - g[i], 0.0) ** 2 / curvatures
            return np.array([i, np.argmax(np.where(beta > active.lower, gains, 0.0))])
        falling = np.where(beta > active.lower, g, -np.inf)
        least, most = growing.min(), falling.max()
        previous = active.previous
        kept = previous[len(previous) - size // 2 :] if size >= KEEP_FROM else previous[:0]
        growing[kept] = np.inf
        falling[kept] = -np.inf
        half = (size - len(kept)) // 2
        first = np.argpartition(growing, half)[:half]
        first = first[growing[first] < most]
        falling[first] = -np.inf  # a free variable may be on both sides
        second_half = np.argpartition(falling, len(falling) - half)[len(falling) - half :]
        return np.concatenate([kept, first, second_half[falling[second_half] > least]])

    def _optimise(
        self, chosen: np.ndarray, g: np.ndarray, beta: np.ndarray, violation: float, goal: float
    ) -> _State:
        """Minimise over the chosen variables, on the way to a violation of ``goal``."""
        state, count = self._state, len(chosen)
        assert state is not None
        active, every = state.active, count == len(self._problem.linear)
        columns = active.columns[chosen]
        rows, place = active.rows[columns], np.arange(count)
        if self._problem.row_of is not None:
            rows, place = np.unique(rows, return_inverse=True)
        # How far: exactly if that is cheap, or if there is no other set.
        if count <= EXACT_SET:
            tol = 0.1 * goal if count > 2 else 0.0
        else:
            tol = max(0.0 if every else PART * violation, 0.5 * goal)
        begin = time.perf_counter()
        new, block, own = self._values_among(chosen, rows, place)
        fetched = time.perf_counter()
        point, slope = beta[chosen], g[chosen]
        steps, _, curvature = loops.pairwise_steps(
            self._cache.slots,
            own,
            columns,
            None,
            *block,
            self._matrix.diagonal[active.rows[columns]],
            slope,
            point,
            active.lower[chosen],
            active.upper[chosen],
            tol,
            STEPS_PER_VARIABLE * max(count, EXACT_SET) if count > 2 else 1,
            *np.empty((3, count), dtype=np.int64),
        )
        self._steps += max(steps, SET_STEPS) if count > 2 else steps
        self._work += max(steps, SET_STEPS)
        self._least_curvature = min(self._least_curvature, curvature)
        solved = time.perf_counter()
        change = point - beta[chosen]
        # Exact for a quadratic: the mean of the slopes at both ends.
        value = state.value + 0.5 * float(change @ (g[chosen] + slope))
        whole = state.beta.copy()
        whole[active.variables[chosen]] = point
        before = self._seconds["rows"]
        if every and count == len(state.s):
            s = slope - active.linear
        else:
            s = state.s.copy()
            moved = np.bincount(place, change, minlength=len(rows))
            if len(new):
                self._idle = 1.0 - np.count_nonzero(moved[new]) / len(new)
            self._add(rows, moved, s)
        late = self._seconds["rows"] - before
        self._seconds["update"] += time.perf_counter() - solved - late
        self._seconds["rows"] += fetched - begin
        self._seconds["inner"] += solved - fetched
        step = float(np.abs(change).max(initial=0.0))
        return replace(state, beta=whole, s=s, value=value, step=step)

    def _values_among(
        self, chosen: np.ndarray, rows: np.ndarray, place: np.ndarray
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], np.ndarray]:
        """The kernel values of a working set: an array with the line of every variable, and slots.

        Before these, which of the rows the cache lacked. Lines that are −1 are in the slots. Of the
        rows that the cache lacks nothing but the values among the set is computed, if so many
        variables did not move last time that this is less.
        """
        assert self._state is not None
        active, count, cache = self._state.active, len(chosen), self._cache
        every = count == len(self._problem.linear)
        late = not every and count >= KEEP_FROM and count < self._idle * cache.matrix.columns
        slots, new = cache.fetch(rows, not late)
        own = slots[place]
        if every and count == len(rows) and cache.slots.flags.carray:
            return new, (cache.slots, own), own  # the values where they are
        if len(self._room) < count * count or self._room.dtype != cache.slots.dtype:
            self._room = np.empty(count * count, dtype=cache.slots.dtype)
        room = self._room[: count * count].reshape(count, count)
        lines = np.full(len(rows), -1)
        if late and len(new):
            lines[new] = np.arange(len(new))
            among = cache.matrix.restricted(active.columns[chosen])
            among.fill(rows[new], lines[new], room)
            cache.computed_values += len(new) * count
        return new, (room, lines[place]), own

    def _jump(self) -> bool:
        """Go where the interior point method leads, if that is better."""
        assert self._state is not None and self._known is not None and self._pace is not None
        if self._state.absent:
            self._restore()
        settings = self._settings
        factor = None
        if self._known.kind != "withheld":
            factor = factor_of(self._exact, settings.cache_bytes)
        if factor is None:
            return False
        beta = interior_point(factor, self._problem, self._started + settings.time_limit)
        self._pace.tried(self._steps)
        if beta is None:
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            found = self._verify()
            state, self._state = self._state, self._first_state(beta)
            better = self._verify().gap < found.gap
        if not better:  # rounding is in the way
            self._state, self._verified = state, found
        return better

    # -- sums of rows -----------------------------------------------------------------

    def _first_state(self, start: np.ndarray | None) -> _State:
        problem = self._problem
        beta = problem.start(start)
        s = np.zeros(self._matrix.columns)
        sums = problem.row_sums(beta, len(s))
        self._add(np.arange(len(s)), sums, s)
        value = 0.5 * float(sums @ s) + float(problem.linear @ beta)
        return _State(beta, s, value, ActiveSet.of(problem, np.arange(len(beta))))

    def _add(self, rows: np.ndarray, coef: np.ndarray, s: np.ndarray) -> None:
        """s += Σ_k coef_k·K(rows_k) over the coefficients that are not 0, in blocks that fit."""
        used = np.flatnonzero(coef)
        block = max(1, min(len(self._cache.slots), LARGE_SET))
        for first in range(0, len(used), block):
            some = used[first : first + block]
            begin = time.perf_counter()
            slots, _ = self._cache.fetch(rows[some])
            self._seconds["rows"] += time.perf_counter() - begin
            values, own = self._cache.slots, coef[some]

            def chunk(k: int, slots: Any = slots, values: Any = values, own: Any = own) -> None:
                columns = k * CHUNK, min((k + 1) * CHUNK, len(s))
                loops.add_rows(values, slots, own, *columns, s)

            self._executor.run(chunk, -(-len(s) // CHUNK))

    # -- shrinking --------------------------------------------------------------------

    def _shrink(self) -> None:
        """Leave out the variables whose time has come, if they are worth the effort."""
        state = self._state
        assert state is not None
        active, history = state.active, self._settings.history
        if history is None:
            history = 100 if self._size < EXACT_SET else 20
        leaving = active.history >= history
        leaving[active.previous] = False
        if 10 * np.count_nonzero(leaving) < len(leaving):
            return
        begin = time.perf_counter()
        smaller = ActiveSet.of(self._problem, active.variables[~leaving])
        smaller.history = active.history[~leaving]
        smaller.previous = (np.cumsum(~leaving) - 1)[active.previous]
        remain = np.isin(active.rows, smaller.rows, assume_unique=True)
        keep = np.flatnonzero(remain)
        gone = Absent(active.rows[~remain], state.s[~remain], state.beta)
        self._cache.restrict(self._matrix.restricted(smaller.rows), keep, smaller.rows)
        self._state = replace(state, s=state.s[keep], active=smaller, absent=(*state.absent, gone))
        self._seconds["shrink"] += time.perf_counter() - begin

    def _restore(self) -> None:
        """Bring all variables back, with their s.

        If the proof that follows will use rows of all support vectors, and the cache holds them, s
        is computed anew from these. Otherwise s is corrected.
        """
        begin = time.perf_counter()
        state = self._state
        assert state is not None
        problem, rows = self._problem, self._matrix.columns
        sums, every = problem.row_sums(state.beta, rows), np.arange(rows)
        self._cache.reset(self._matrix)
        s = np.zeros(rows)
        used = int(np.count_nonzero(sums))
        if used <= len(self._cache.slots) and not self._proves_all_anew(used):
            self._add(every, sums, s)
        else:
            s[state.active.rows] = state.s
            for gone in state.absent:
                values = gone.s.copy()
                self._cache.reset(self._matrix.restricted(gone.rows))
                self._add(every, problem.row_sums(state.beta - gone.beta, rows), values)
                s[gone.rows] = values
            self._cache.reset(self._matrix)
        everything = ActiveSet.of(problem, np.arange(len(state.beta)))
        self._state = replace(state, s=s, active=everything, absent=())
        self._seconds["restore"] += time.perf_counter() - begin

    # -- the end ----------------------------------------------------------------------

    def _conclude(self, stuck: bool) -> Status | None:
        """Verify a point that seems good enough, or cannot be made better; None to go on."""
        settings, mass = self._settings, self._problem.mass
        found = self._verify()
        if not np.isfinite(found.gap):
            return Status.NUMERICALLY_LIMITED
        if settings.reached(found.violation, found.gap, found.primal, mass):
            return Status.CONVERGED
        state = self._state
        assert state is not None
        if found.slack > 0.5 * settings.enough(found.primal, mass):
            longer = stretched(self._problem, state.beta, found)
            if longer is not None:
                self._state = replace(state, beta=longer)
                better = self._verify()
                if settings.reached(better.violation, better.gap, better.primal, mass):
                    return Status.CONVERGED
                self._state, self._verified = state, found
        if self._single:
            logger.debug("single precision does not do: on in double precision")
            self._single = False
            del self._cache  # its memory is wanted
            self._use(self._exact)
            return None
        self._failures += 1
        self._part *= 0.5
        if stuck or found.lost(settings, mass) or self._failures >= MOST_FAILURES:
            return Status.NUMERICALLY_LIMITED
        return None

    def _verify(self) -> Verified:
        """s of all rows anew, in double precision where that matters, and what is certain of it."""
        begin = time.perf_counter()
        state, problem, exact = self._state, self._problem, self._exact
        assert state is not None and self._known is not None
        active = state.active
        if state.absent:
            self._cache.reset(self._matrix)
            active = ActiveSet.of(problem, np.arange(len(state.beta)))
        rows, lift = problem.rows, self._known.lift
        beta = state.beta.copy()
        lack = loops.balance(beta, problem.lower, problem.upper, problem.total)
        sums = problem.row_sums(beta, self._matrix.columns)
        x = exact.linear_rows
        s, error = self._sums(beta, sums) if x is None else linear_sums(x, sums)
        found = verify(exact, rows, problem, beta, lack, s[rows], error[rows], lift)
        enough = self._settings.enough(found.primal, problem.mass)
        if x is None and found.slack > 0.5 * enough:
            count = len(sums)
            if 8 * count * count <= self._settings.cache_bytes and exact.dtype == np.float64:
                every = np.arange(count)
                s, error = _exact_sums(exact, exact.whole(), every, every, sums)
                found = verify(exact, rows, problem, beta, lack, s[rows], error[rows], lift)
        value = 0.5 * float(sums @ s) + float(problem.linear @ beta)
        self._state = _State(beta, s, value, active, step=state.step)
        self._verified = found
        self._seconds["verify"] += time.perf_counter() - begin
        return found

    def _sums(self, beta: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """s of all rows anew, and how far each value is off at most.

        Rows in the cache need not be computed again. If they are in single precision, that is
        enough for variables at 0 whose margin is larger than the error: they have no loss.
        """
        problem, used = self._problem, np.flatnonzero(sums)
        error = self._exact.sum_errors(sums, len(used))
        if self._proves_all_anew(len(used)):
            return self._exact.combine(used, sums[used]), error
        s = np.zeros(len(sums))
        self._add(np.arange(len(s)), sums, s)
        if self._single:
            matrix, rows = self._matrix, problem.rows
            if matrix.relative and len(used) <= len(self._cache.slots):
                sizes = np.zeros(len(s))
                # Values are off by less than a tenth.
                self._add(np.arange(len(s)), 1.1 * np.abs(sums), sizes)
                rough = loops.UNIT * (len(used) + 8.0 + matrix.amplifications) * sizes
            else:
                rough = matrix.sum_errors(sums, len(used))
            g = s[rows] + problem.linear
            violation, bias, _ = loops.assess(g, beta, problem.lower, problem.upper, True)
            r, margin = g + bias, 2.0 * rough[rows] + violation
            clear = (problem.lower == 0.0) & (r > margin) | (problem.upper == 0.0) & (r < -margin)
            needed = np.unique(rows[~clear | (beta != 0.0)])
            rough[needed] = error[needed]
            s[needed] = self._exact.combine(used, sums[used], needed)
            error = rough
        return s, error

    def _proves_all_anew(self, used: int) -> bool:
        """Whether so many support vectors are too many to begin a proof in single precision."""
        return self._single and 2 * used > self._matrix.columns

    def _proof_seconds(self) -> float:
        """About the time that a proof of this point takes, by that of the kernel values so far."""
        assert self._state is not None
        values = self._matrix.columns * np.count_nonzero(self._state.beta)
        seconds = self._seconds["rows"] - self._rows_before
        seconds *= values / max(1, self._cache.computed_values)
        return float(DOUBLE_COST * seconds if self._single else seconds)

    def _end_iteration(
        self, state: _State, violation: float, gap: float, told: bool = True
    ) -> Status | None:
        """Ask for the limits, and tell of the iteration from ``state`` on if it is ``told``.

        Returns how the run ended, or None if it goes on. The last iteration is always told.
        """
        settings, status, seconds = self._settings, None, time.perf_counter() - self._started
        if settings.max_iter is not None and self._iterations >= settings.max_iter:
            status = Status.MAX_ITER
        elif np.inf > settings.time_limit <= seconds + self._proof_seconds():
            status = Status.TIME_LIMIT
        if status is None and not told:
            return None
        trial = np.inf if state.absent else gap - state.value
        self._primal = min(self._primal, trial)
        record = DualIteration(
            number=max(1, self._iterations),
            primal=self._primal,
            dual=-state.value,
            trial=trial,
            step=0.0 if self._state is None else self._state.step,
            cuts=self._size,
            seconds=seconds,
            violation=violation,
            active=len(state.active.variables),
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
        return Status.STOPPED if stopped and status is None else status

    def _result(self, status: Status) -> SolveResult:
        found, state = self._verified, self._state
        assert state is not None and self._known is not None
        quick = True
        if status is Status.INTERRUPTED:
            self._cache.reset(self._matrix)  # perhaps in the midst of a change
            self._observer = None
            quick = self._proof_seconds() <= HURRY
        if not self._trace:
            self._end_iteration(state, np.inf, np.inf)
        if quick:
            if status is not Status.CONVERGED or found is None:
                found = self._verify()
                state = self._state
                assert state is not None
            bias, kind = found.bias, self._known.kind
            if kind == "conditional":
                support = np.unique(self._problem.rows[state.beta != 0.0])
                if looks_indefinite(self._exact, support, self._least_curvature):
                    kind = "withheld"
            self.indefinite = kind == "withheld"
            certificate = certificate_of(found.primal, found.dual, kind)
        else:
            bias, certificate = self.point()[1], certificate_of(np.inf, -np.inf, "withheld")
        return SolveResult(
            w=state.beta,
            bias=bias,
            status=status,
            certificate=certificate,
            n_iter=max(1, self._iterations),
            trace=tuple(self._trace),
            timings={**self._seconds, "total": time.perf_counter() - self._started},
        )
