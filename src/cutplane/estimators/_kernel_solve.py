"""From rows and a kernel to results: what all kernel machines share.

A fit is a ``KernelSession``: one data set, one executor, one or more problems on
some of its rows that share the time limit and react to the same interrupt.
"""

from __future__ import annotations

import dataclasses
import logging
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from .. import _interrupts
from ..dual import (
    DualIteration,
    DualPoint,
    DualProblem,
    DualSettings,
    DualSolver,
    WholeSolver,
)
from ..dual.whole import ALL_AT_ONCE
from ..exec import Executor
from ..kernels import (
    CallableMatrix,
    Kernel,
    KernelMatrix,
    PrecomputedMatrix,
    ProductMatrix,
    training_points,
)
from ..kernels.points import Points
from ..report.dual_progress import dual_progress
from ..result import Iteration, SolveResult, Status
from ._callbacks import WARN_LEVEL
from ._warnings import warn_unless_converged
from .checkpoint import CheckpointFile, Known

logger = logging.getLogger("cutplane")

# Beyond this, rounding of a kernel in single precision would show in the objective.
SINGLE_TOL = 1e-4
SINGLE_BOUND = 1e2
# Powers of ten between the ranges of features that are on unlike scales.
FAR_APART = 2.0
# A relative gap that is told even if the rule asked for does not mind it.
LARGE_GAP = 0.01
# All problems of a fit take their values from one matrix if it is this small.
ONE_MATRIX = 2500


class KernelSession:
    """Solves problems on some rows of one data set.

    Attributes
    ----------
    results : list of SolveResult
        Of the problems solved so far.
    settings : DualSettings
    indefinite : bool
        Whether the kernel turned out not to be positive semidefinite.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix
        Rows, or the kernel values of a precomputed kernel.
    executor : Executor
    settings : DualSettings
        The time limit is for all problems together.
    bound : float
        The largest |β| that may occur.
    verbose : int
    callback : callable or None
    free_bias : bool
        Whether all problems have a bias and coefficients that sum to 0, so that a linear kernel
        may be moved.
    checkpoint : CheckpointFile or None
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        executor: Executor,
        *,
        settings: DualSettings,
        bound: float,
        verbose: int,
        callback: Callable[[Iteration], bool | None] | None,
        free_bias: bool = False,
        checkpoint: CheckpointFile | None = None,
    ) -> None:
        self._kernel = kernel
        self._X = X
        self._executor = executor
        self._settings = self.settings = settings
        self._verbose = verbose
        self._callback = callback
        self._checkpoint = checkpoint
        self._points: Points | None = None
        self._exact: Points | None = None  # the same in double precision
        self._values: np.ndarray | None = None
        self._room: np.ndarray | None = None
        self._groups: list[np.ndarray] = []
        self._places: list[np.ndarray] = []  # rows of the groups in the values
        self._spent = 0.0
        if kernel.name == "precomputed":
            self._values = X
        elif kernel.function is None:
            single = settings.tol >= SINGLE_TOL and bound <= SINGLE_BOUND
            single &= X.shape[0] > ALL_AT_ONCE
            self._exact = training_points(kernel, X, single=False, centre=free_bias)
            self._points = self._exact
            if single:
                self._points = training_points(kernel, X, single=True, centre=free_bias)
        self.results: list[SolveResult] = []
        self.ended: Status | None = None
        self.indefinite = False

    def split(self, groups: list[np.ndarray]) -> None:
        """Several problems will be solved, each on some of these groups of rows.

        All kernel values are computed once if they are few, those of a group side by side.
        """
        self._groups = self._places = groups
        rows = self._X.shape[0]
        few = rows <= ONE_MATRIX and rows * rows * 8 <= self._settings.cache_bytes
        if self._values is not None or not few:
            return
        if self._exact is None:
            self._values = self._matrix(None).whole()
            return
        points = self._exact.take(np.concatenate(groups))
        self._values = ProductMatrix(self._kernel, points, None, self._executor).whole()
        self._places = np.split(np.arange(rows), np.cumsum([len(group) for group in groups])[:-1])

    def _matrix(self, which: tuple[int, ...] | None) -> KernelMatrix:
        """Of all rows, or of those of some groups."""
        if self._values is not None:
            whole = PrecomputedMatrix(self._values)
            if which is None:
                return whole
            rows = np.concatenate([self._places[k] for k in which])
            return whole.square(rows, self._room_for(len(rows)))
        if self._points is not None:
            return self._product(self._points, which)
        assert self._kernel.function is not None
        X = self._X if which is None else self._X[self._rows(which)]
        return CallableMatrix(self._kernel.function, X)

    def _rows(self, which: tuple[int, ...]) -> np.ndarray:
        return np.concatenate([self._groups[k] for k in which])

    def _product(self, points: Points, which: tuple[int, ...] | None) -> ProductMatrix:
        points = points if which is None else points.take(self._rows(which))
        return ProductMatrix(self._kernel, points, None, self._executor)

    def _solver(
        self,
        problem: DualProblem,
        which: tuple[int, ...] | None,
        settings: DualSettings,
        observe: Callable[[DualIteration], bool],
    ) -> WholeSolver | DualSolver:
        definite = self._kernel.definite
        exact = None if self._exact is None else self._product(self._exact, which)
        if not WholeSolver.suits(problem, settings):
            matrix = self._matrix(which)
            return DualSolver(matrix, problem, settings, self._executor, observe, definite, exact)
        if self._values is not None and which is not None:
            values, rows = self._values, np.concatenate([self._places[k] for k in which])
        else:
            whole = exact if exact is not None and self._values is None else self._matrix(which)
            values, rows = whole.whole(), np.arange(len(problem))
        return WholeSolver(values, rows, problem, settings, observe, definite, exact)

    def unlike_scales(self) -> str:
        """Which features are on other scales than most, in a sentence; empty if none is."""
        if self._exact is None:
            return ""
        X = self._X
        if scipy.sparse.issparse(X):
            scales = abs(X).max(axis=0).toarray().reshape(-1)
        else:
            scales = np.max(X, axis=0, initial=-np.inf) - np.min(X, axis=0, initial=np.inf)
        scales = np.asarray(scales, dtype=np.float64)
        some = scales[scales > 0.0]
        if not len(some):
            return ""
        usual = float(np.median(some))
        apart = np.flatnonzero(np.abs(np.log10(np.maximum(scales, 1e-300) / usual)) > FAR_APART)
        apart = apart[scales[apart] > 0.0]
        remedy = "scale the features, for example with sklearn.preprocessing.StandardScaler"
        if len(apart):
            names = ", ".join(f"{k} (range {scales[k]:.2g})" for k in apart[:5])
            more = f" and {len(apart) - 5} more" if len(apart) > 5 else ""
            which = "feature" if len(apart) == 1 else "features"
            others = f"the others (about {usual:.2g})"
            return f"{which} {names}{more} and {others} are on unlike scales: {remedy}"
        if self._kernel.name != "rbf" and not 10.0**-FAR_APART < usual < 10.0**FAR_APART:
            return f"the features have ranges of about {usual:.2g}: {remedy}"
        return ""

    def interrupt(self) -> None:
        """The user wants no more: the remaining problems get a single iteration each."""
        self.ended = Status.INTERRUPTED
        _interrupts.settled()

    def _room_for(self, rows: int) -> np.ndarray:
        """Room for the kernel values of a problem, used again by the next one."""
        if self._room is None or len(self._room) < rows * rows:
            assert self._values is not None
            self._room = np.empty(rows * rows, dtype=self._values.dtype)
        return self._room

    @_interrupts.kept()
    def solve(
        self,
        label: str,
        problem: DualProblem,
        *,
        which: tuple[int, ...] | None = None,
        start: np.ndarray | None = None,
        on_iteration: Callable[[Callable[[], DualPoint]], bool] | None = None,
        last: bool = True,
    ) -> SolveResult:
        """Solve a problem on the rows of some groups, in this order, or on all rows.

        After an interrupt or a callback's stop, or beyond the time limit, the remaining
        problems get a single iteration each, so that the model is complete. ``on_iteration`` is
        called with a function that gives the point reached; a true answer stops. ``last`` says
        whether no other problem follows.
        """
        settings, checkpoint = self._settings, self._checkpoint
        if checkpoint is not None:
            known = checkpoint.begin(problem.digest(), lambda result: self._done(problem, result))
            for w in (known.start, None if known.result is None else known.result.w):
                if w is not None and w.shape != (len(problem),):
                    raise checkpoint.damaged(ValueError("a result has another length"))
            if known.result is not None:
                self.results.append(known.result)
                return known.result
            start = self._known_start(known, len(problem), start)
        if self.ended or settings.time_limit < np.inf:
            limit = 0.0 if self.ended else max(0.0, settings.time_limit - self._spent)
            settings = dataclasses.replace(settings, time_limit=limit)
        with dual_progress(self._verbose, label, settings) as show:

            def observe(record: DualIteration) -> bool:
                show(record)
                stop = False
                if checkpoint is not None and checkpoint.due():
                    checkpoint.record(_state(solver.point().beta, record))
                if self._callback is not None:
                    stop = bool(self._callback(dataclasses.replace(record, problem=label)))
                stop |= on_iteration is not None and on_iteration(solver.point)
                _interrupts.check()
                return stop

            solver = self._solver(problem, which, settings, observe)
            result = solver.run(start)
        self.indefinite |= solver.indefinite
        self._spent += result.timings["total"]
        if self.ended is None and result.status in (Status.INTERRUPTED, Status.STOPPED):
            self.ended = result.status
            if result.status is Status.INTERRUPTED:
                _interrupts.settled()
        elif self.ended is not None and result.status is not Status.CONVERGED:
            result = dataclasses.replace(result, status=self.ended)
        self.results.append(result)
        if checkpoint is not None:
            checkpoint.record(_state(result.w, result.trace[-1]))
            checkpoint.end(result, last)
        logger.info(
            "%s: %s after %d iterations and %.2f s, %s",
            label,
            result.status.reason,
            result.n_iter,
            result.timings["total"],
            result.certificate,
        )
        return result

    def _done(self, problem: DualProblem, result: SolveResult) -> bool:
        """Whether a result of another run is good enough for this one, or cannot become better.

        If not, it is where this one starts. Of a function nobody knows whether it is the same one,
        so that its certificate is computed anew; of a violation no result tells.
        """
        settings, certificate = self._settings, result.certificate
        if self._kernel.function is not None:
            return False
        if result.status is Status.MAX_ITER:
            return settings.max_iter is not None and result.n_iter >= settings.max_iter
        if result.status is Status.NUMERICALLY_LIMITED:
            return True
        return settings.stopping != "kkt" and settings.reached(
            np.inf, certificate.gap, certificate.primal, problem.mass
        )

    def _known_start(
        self, known: Known, variables: int, start: np.ndarray | None
    ) -> np.ndarray | None:
        """The point that a checkpoint knows, else ``start``."""
        assert self._checkpoint is not None
        if known.state is None:
            return start if known.start is None else known.start
        beta = known.state.get("beta")
        if not (
            isinstance(beta, np.ndarray)
            and beta.shape == (variables,)
            and beta.dtype == np.float64
            and np.all(np.isfinite(beta))
        ):
            raise self._checkpoint.damaged(ValueError("the dual point is missing"))
        return beta


def _state(beta: np.ndarray, record: Iteration) -> dict[str, Any]:
    """What a checkpoint keeps: where the solver is, and what is known of it."""
    known = {name: float(getattr(record, name)) for name in ("primal", "dual")}
    return {"beta": beta, "n_iter": record.number, **known}


def warn_of_results(name: str, session: KernelSession, level: int = WARN_LEVEL) -> None:
    """Warn of an indefinite kernel, and of the worst result above the tolerance.

    To be called by ``fit`` itself, so that the warning shows the caller's line.
    """
    if session.indefinite:
        warnings.warn(
            f"{name}: the kernel is not positive semidefinite, so the problem is not convex: the "
            "model is a stationary point and its certificate is withheld",
            UserWarning,
            stacklevel=level,
        )
    results = session.results
    if any(result.status is Status.NUMERICALLY_LIMITED for result in results):
        scales = session.unlike_scales()
        if scales:
            warnings.warn(f"{name}: {scales}", ConvergenceWarning, stacklevel=level)
    reached = (r.certificate.relative_gap for r in results if r.status is Status.CONVERGED)
    worst = max(reached, default=0.0)
    if session.settings.stopping == "kkt" and LARGE_GAP < worst < np.inf:
        warnings.warn(
            f"{name}: the optimality conditions hold to tol={session.settings.tol:g}, which "
            f"stopping='kkt' asks for, but the relative gap is {worst:.2g}: lower tol, or "
            "leave stopping out to stop by the gap",
            ConvergenceWarning,
            stacklevel=level,
        )
    warn_unless_converged(name, results, level + 1)
