"""The one fit path: an estimator declares problems, ``solve`` solves them.

    rows     = open_rows(self, X, y, ...)            _rows.py: checked rows, wherever they are
    problems = ...                                   one, or one per class or pair of classes
    fitted   = solve(problems, settings, executor)   warm start, checkpoint, progress, interrupt,
                                                     time limit and log: here and nowhere else
    store_results(self, fitted.results)
    warn_of(settings, problems[0], fitted.results)

``Estimator._solve`` (_base.py) does the last three steps for an estimator. A ``Problem`` is one
objective ½|w|² + C·(sum of losses) on its data. It chooses its solver: its method ``solver`` gets a
``Run`` (settings, C, executor, remaining time, start) and returns a ``Ready``, a solver that can
start. The other methods of ``Problem`` have defaults that suit every solver derived from
``IterativeSolver``. Problems of this package:

    RowProblem       a sum of losses over rows: auto, dcd, sgd, pegasos, ocas, cpa  (_problems.py)
    ListwiseProblem  a measure of all scores: ocas, cpa                             (_problems.py)
    JointProblem     structured outputs: ocas, cpa, with cheap cuts                 (_problems.py)
    CutBasisProblem  cuts in a kernel's space, exact or from samples                (_sampled.py)
    KernelProblem    the dual of a kernel machine                                     (_kernel.py)
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .. import _interrupts
from ..exec import Executor
from ..objective import Cut, Point
from ..reporting.compiling import tell_of_compiling
from ..reporting.line import Line
from ..reporting.progress import showing
from ..result import Certificate, Iteration, SolveResult, Status
from ..solvers import Observer, StopRule
from .checkpoint import Checkpoint, CheckpointFile, Known

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def _with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        return method


logger = logging.getLogger("cutplane")

tell_of_compiling()  # whichever step of a fit it is that compiles

STOPPING = ("relative", "absolute", "epsilon")
# Solvers that work in passes over all rows. Clusters can run these solvers, and checkpoints can
# store their state. With a cluster or a checkpoint, auto means ocas.
IN_PASSES = ("auto", "ocas", "cpa")
ADVICE = {
    Status.MAX_ITER: " Raise max_iter, or tol if this is close enough.",
    Status.TIME_LIMIT: " Raise time_limit, or tol if this is close enough.",
    Status.NUMERICALLY_LIMITED: " Bring the features to similar scales, or lower C.",
}


@dataclass(frozen=True)
class Settings:
    """The checked parameters that all estimators have.

    Attributes
    ----------
    name : str
        Name of the estimator, for warnings and checkpoints.
    C : float
        1 for estimators without the parameter.
    solver : str
    tol : float
        In the unit of ``stopping``.
    stopping : {'relative', 'absolute', 'epsilon', 'kkt'}
    max_iter : int or None
        None for no limit.
    time_limit : float
        Seconds, for all problems together.
    verbose : int
    callback : callable or None
        The user's callback, called after every iteration.
    warm_start : bool
    checkpoint : Checkpoint or None
    random_state : int, RandomState or None
    parameters : dict
        All parameters of the estimator, for the checkpoint.
    """

    name: str
    C: float
    solver: str
    tol: float
    stopping: str
    max_iter: int | None
    time_limit: float
    verbose: int
    callback: Callable[[Iteration], bool | None] | None
    warm_start: bool
    checkpoint: Checkpoint | None
    random_state: Any
    parameters: dict[str, Any]

    def stop(self, seconds: float) -> StopRule:
        """The stopping rule of a problem that may take ``seconds``."""
        rule = {self.stopping: self.tol} if self.stopping in STOPPING else {}
        return StopRule(**rule, max_iter=self.max_iter, time_limit=seconds)


def random_of(random_state: Any) -> np.random.RandomState:
    """The random generator that a parameter ``random_state`` stands for."""
    try:
        return check_random_state(random_state)
    except ValueError as error:
        raise ValueError(f"random_state: {error}") from error


def seeds(random_state: Any, count: int) -> list[int]:
    """One seed per problem. All are drawn now, so results do not depend on the order of solving."""
    return random_of(random_state).randint(2**31 - 1, size=count).tolist()


@dataclass(frozen=True)
class Memory:
    """What a warm start keeps of a solved problem.

    Attributes
    ----------
    C : float
        C of the solved problem.
    dual_point : ndarray, Mixtures or None
        The dual solution, if the solver has one: a number per row, divided by C; for kernel
        machines β itself; for chains mixtures of labellings.
    cuts : tuple of Cut
        The cuts that are active at the solution. They are valid only for the same risk and data.
    digest : bytes
        A fingerprint of this risk and data; empty if all that is kept is valid for others, too.
    point : Point or None
        The solution with its scores, if the solver has them, for a next fit on the same data.
    """

    C: float
    dual_point: Any
    cuts: tuple[Cut, ...] = ()
    digest: bytes = b""
    point: Point | None = None


@dataclass(frozen=True)
class Start:
    """Where a problem starts; each attribute may be missing.

    Attributes
    ----------
    w : ndarray or None
        A primal start, in the shape of a result's ``w``.
    memory : Memory or None
        What an earlier fit has kept.
    dual_point : ndarray or None
        The user's dual start, a number per row, divided by C.
    """

    w: np.ndarray | None = None
    memory: Memory | None = None
    dual_point: np.ndarray | None = None


@dataclass(frozen=True)
class Run:
    """All that a problem needs to make its solver.

    Attributes
    ----------
    settings : Settings
    C : float
        The user's C of this run.
    executor : Executor
    stop : StopRule
        The stopping rule, with the remaining time.
    observe : callable
        Called with every iteration. If it returns a true value, the run stops.
    watched : bool
        Whether a callback needs the point of every iteration.
    rng : callable
        Returns a new random generator for this problem, with a seed from the generator of the fit.
    start : ndarray or None
        Where to start, in the shape of a result's ``w``.
    memory : Memory or None
        What an earlier fit has kept, if it is valid for this risk and data.
    digest : bytes
        A fingerprint of data and problem, for the next memory.
    dual_point : ndarray or None
        The user's start, a number per row, divided by C.
    on_path : bool
        Whether the same problem is solved for several C, one after the other.
    file : CheckpointFile or None
        The checkpoint to which the state is written.
    state : dict or None
        The state from the checkpoint, from which the solver continues.
    """

    settings: Settings
    C: float
    executor: Executor
    stop: StopRule
    observe: Observer
    watched: bool
    rng: Callable[[], np.random.Generator]
    start: np.ndarray | None
    memory: Memory | None
    digest: bytes
    dual_point: np.ndarray | None
    on_path: bool
    file: CheckpointFile | None
    state: dict[str, Any] | None


@dataclass(frozen=True)
class Ready:
    """A solver, and the arguments for its ``run``: a start, and cuts if the solver takes cuts."""

    solver: Any
    start: np.ndarray | None = None
    more: tuple[Any, ...] = ()


class Problem(ABC):
    """One objective on its data.

    Attributes
    ----------
    label : str
        For progress and logs.
    total : float
        The factor n in C·n·(mean risk): the sum of the weights.
    work : int
        Cost of a pass over the data, in units of reading a stored number. It decides about threads.
    crew : Workers or None
        The workers that hold the data; None without a cluster.
    """

    label: str
    total: float = 1.0
    work: int = 0
    crew: Any = None

    @abstractmethod
    def solver(self, run: Run) -> Ready:
        """The solver of this problem, ready to start."""

    def digest(self) -> bytes:
        """A fingerprint of the problem without its data."""
        return b""

    def data_digest(self) -> bytes:
        """A fingerprint of the data."""
        return b""

    def fit_key(self, settings: Settings) -> str:
        """All that determines the iterations of a fit, besides data and problems."""
        return f"{settings.solver}, C = {settings.C!r}"

    def done(self, result: SolveResult, run: Settings, C: float) -> bool:
        """Whether a result of an earlier run meets the tolerance, or cannot be improved."""
        certificate, stop = result.certificate, run.stop(np.inf)
        if stop.converged(certificate.primal, certificate.dual, C * self.total):
            return True
        if result.status is Status.NUMERICALLY_LIMITED:
            return True
        return stop.max_iter is not None and result.n_iter >= stop.max_iter

    def line(self, settings: Settings) -> Line:
        """The line of progress."""
        target = settings.tol if settings.stopping == "relative" else None
        note = None if self.crew is None else self.crew.note
        return Line(self.label, target or None, note)

    def point(self, solver: Any) -> tuple[np.ndarray, float]:
        """w and bias of the result, if the solver stopped now."""
        return solver.best.w, solver.best.bias

    def state(self, w: Callable[[], np.ndarray], record: Iteration) -> dict[str, Any] | None:
        """The state for a checkpoint; None if the solver stores its state itself."""
        return None

    def memory(self, solver: Any, result: SolveResult, run: Run) -> Memory:
        """What a warm start keeps."""
        return Memory(run.C, solver.dual_point(), solver.active_cuts(), run.digest)

    def finish(self, solver: Any, result: SolveResult) -> SolveResult:
        """The result to store, from the solver's result."""
        return result

    def cautions(self, settings: Settings, results: list[SolveResult]) -> Iterator[Warning]:
        """Warnings about a fit, besides the one about its gap."""
        yield from ()


class Lazy(Sequence[Any]):
    """A sequence that makes each entry when it is needed, because all together may be large."""

    def __init__(self, count: int, make: Callable[[int], Any]) -> None:
        self._count = count
        self._make = lru_cache(maxsize=1)(make)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, k: Any) -> Any:
        if not 0 <= k < self._count:
            raise IndexError(k)
        return self._make(k)


@dataclass
class Fitted:
    """The result of ``solve``: an entry per problem; on a path, for each C an entry per problem."""

    results: list[SolveResult]
    memories: dict[int, Memory]


Attributes = Callable[[list[tuple[np.ndarray, float]]], dict[str, Any]]


def solve(
    problems: Sequence[Problem],
    settings: Settings,
    executor: Executor,
    *,
    Cs: Sequence[float] | None = None,
    starts: Callable[[int], Start] | None = None,
    tasks: FitTasks | None = None,
    attributes: Attributes | None = None,
    complete: bool = True,
) -> Fitted:
    """Solve problems, one after the other.

    After an interrupt, after a callback's stop, or beyond the time limit, the remaining problems
    get a single iteration each, so that the model is complete.

    Parameters
    ----------
    problems : sequence of Problem
    settings : Settings
    executor : Executor
    Cs : sequence of float, optional
        Solve all problems for each of these C, not for the C of the settings. Each C starts from
        the solutions for the C before. There must be no checkpoint.
    starts : callable, optional
        Takes the number of a problem; returns where the problem starts.
    tasks : FitTasks, optional
        scikit-learn's callbacks.
    attributes : callable, optional
        Returns the fitted attributes, from w and bias of the first problems; for ``tasks``.
    complete : bool, default=True
        Whether an interrupt ends the fit with a complete model. If not, it is raised.
    """
    count, data, file = len(problems), b"", None
    if Cs is None and (settings.checkpoint is not None or settings.warm_start):
        data = problems[0].data_digest()
    if Cs is None and settings.checkpoint is not None:
        key, parameters = problems[0].fit_key(settings), settings.parameters
        file = CheckpointFile(settings.checkpoint, settings.name, parameters, key, data)
    fit = _Fit(problems, settings, executor, Cs, tasks, attributes, data, file)
    while len(fit.results) < (1 if Cs is None else len(Cs)) * count:
        if fit.ended is Status.INTERRUPTED and not complete:
            raise KeyboardInterrupt
        number = len(fit.results)
        before = number - count
        try:
            if before >= 0:
                start = Start(fit.results[before].w, fit.memories.get(before))
            else:
                start = Start() if starts is None else starts(number)
            with _interrupts.kept(), fit.problem(number, start):
                if fit.ready is not None:
                    # ``run`` catches interrupts, and the result is stored at once, so that an
                    # interrupt cannot lose it.
                    fit.results.append(fit.ready.solver.run(fit.ready.start, *fit.ready.more))
            fit.memories.pop(before, None)
        except KeyboardInterrupt:  # between two problems; within a problem the solver catches it
            if not fit.results or fit.ended:
                raise
            fit.ended = Status.INTERRUPTED
            _interrupts.handled()
    if fit.ended is Status.INTERRUPTED and not complete:
        raise KeyboardInterrupt
    return Fitted(fit.results, fit.memories)


@dataclass
class _Fit:
    """The state of a call of ``solve``, with the parameters of the same names.

    Attributes
    ----------
    results : list of SolveResult
        Results of the problems solved so far.
    memories : dict of int to Memory
    ended : Status or None
        INTERRUPTED or STOPPED, if the user has ended the fit.
    """

    problems: Sequence[Problem]
    settings: Settings
    executor: Executor
    Cs: Sequence[float] | None
    tasks: FitTasks | None
    attributes: Attributes | None
    data: bytes  # digest of the data, if it is needed
    file: CheckpointFile | None
    results: list[SolveResult] = field(default_factory=list)
    memories: dict[int, Memory] = field(default_factory=dict)
    ended: Status | None = None
    spent: float = 0.0  # seconds, of the time limit
    ready: Ready | None = None  # the solver of the current problem
    random: np.random.RandomState | None = None  # of the fit, if a solver has asked for one

    @contextlib.contextmanager
    def problem(self, number: int, start: Start) -> Iterator[None]:
        """What comes before and after the run of the next problem's solver, ``ready``.

        Within the context the caller runs this solver and appends its result. ``ready`` is None if
        a checkpoint has the result, which is appended here.
        """
        settings, self.ready = self.settings, None
        problem = self.problems[number % len(self.problems)]
        C = settings.C if self.Cs is None else float(self.Cs[number // len(self.problems)])
        known = Known()
        if self.file is not None:
            known = self.file.begin(problem.digest(), lambda r: problem.done(r, settings, C))
        if self.tasks is not None:
            self.tasks.begin_problem(problem.label)
        if known.result is not None:
            self.results.append(known.result)
            yield
        else:
            began, left = time.perf_counter(), settings.time_limit - self.spent
            # Workers that were lost while rows were loaded count for the first problem.
            crew = problem.crew
            before = crew.timings.as_dict() if crew is not None and self.results else {}
            # Save what can be saved: a fit may have hundreds of problems that take 0.1 ms each.
            loud = settings.verbose > 0
            # Without a digest, as on a path, the memory is known to belong to this problem.
            digest = self.data + problem.digest() if self.data else b""
            memory = start.memory
            if memory is not None and memory.digest and memory.digest != digest:
                memory = None
            with showing(1, problem.line(settings)) if loud else contextlib.nullcontext() as show:
                run = Run(
                    settings=settings,
                    C=C,
                    executor=self.executor,
                    stop=settings.stop(0.0 if self.ended else max(0.0, left)),
                    observe=partial(self._observe, problem, show),
                    watched=settings.callback is not None or self.tasks is not None,
                    rng=self._rng,
                    start=start.w if known.start is None else known.start,
                    memory=memory,
                    digest=digest,
                    dual_point=start.dual_point,
                    on_path=self.Cs is not None,
                    file=self.file,
                    state=known.state,
                )
                self.ready = problem.solver(run)
                yield
            self.spent += time.perf_counter() - began
            self._end(number, problem, self.ready.solver, run, before)
            self.ready = None  # the solver refers to this object; end the cycle to free both
        if self.tasks is not None:
            self.tasks.end_problem()

    def _rng(self) -> np.random.Generator:
        if self.random is None:
            self.random = random_of(self.settings.random_state)
        return np.random.default_rng(self.random.randint(2**31 - 1))

    def _observe(
        self, problem: Problem, show: Callable[[Iteration], None] | None, record: Iteration
    ) -> bool:
        """Pass an iteration to progress, checkpoint and callbacks; returns whether to stop."""
        assert self.ready is not None
        callback, solver, stops = self.settings.callback, self.ready.solver, False
        if show is not None:
            show(record)
        if self.file is not None and self.file.due():
            self._record(problem, lambda: problem.point(solver)[0], record)
        if callback is not None:
            stops = bool(callback(dataclasses.replace(record, problem=problem.label)))
        if self.tasks is not None:
            assert self.attributes is not None
            done, attributes = [(r.w, r.bias) for r in self.results], self.attributes
            stops |= self.tasks.iteration(lambda: attributes([*done, problem.point(solver)]))
        _interrupts.check()
        return stops

    def _end(
        self, number: int, problem: Problem, solver: Any, run: Run, before: dict[str, float]
    ) -> None:
        """Finish the last result, log it, and keep what a checkpoint or a warm start needs.

        ``before`` has the timings of the cluster's workers at the beginning of the problem.
        """
        result = self.results[-1]
        if problem.crew is not None:
            now = problem.crew.timings.as_dict()
            spent = {name: value - before.get(name, 0.0) for name, value in now.items()}
            result = dataclasses.replace(result, timings={**result.timings, **spent})
        result = problem.finish(solver, result)
        if self.ended is None and result.status in (Status.INTERRUPTED, Status.STOPPED):
            self.ended = result.status
            if result.status is Status.INTERRUPTED:
                _interrupts.handled()
        elif self.ended is not None and result.status is not Status.CONVERGED:
            result = dataclasses.replace(result, status=self.ended)
        self.results[-1] = result
        logger.info(
            "%s: %s after %d iterations and %.2f s, %s",
            problem.label,
            result.status.reason,
            result.n_iter,
            result.timings["total"],
            result.certificate,
        )
        if self.file is not None:
            if result.trace:
                self._record(problem, lambda: result.w, result.trace[-1])
            self.file.end(result, last=number == len(self.problems) - 1)
        if self.settings.warm_start or self.Cs is not None:
            self.memories[number] = problem.memory(solver, result, run)

    def _record(self, problem: Problem, w: Callable[[], np.ndarray], record: Iteration) -> None:
        """Store the state of a solver that does not store it itself."""
        state = problem.state(w, record)
        if state is not None and self.file is not None:
            self.file.record(state)


# -- what is stored ---------------------------------------------------------------------------


def store_results(model: Any, results: list[SolveResult]) -> None:
    """Set the attributes that describe a fit, of the same types for one problem and for many."""
    model.results_ = results
    model.certificates_ = [result.certificate for result in results]
    model.certificate_ = sum_of(model.certificates_)
    model.n_iter_ = max(result.n_iter for result in results)


def divided(certificate: Certificate, by: float) -> Certificate:
    """The certificate of the objective divided by a number."""
    return dataclasses.replace(
        certificate, primal=certificate.primal / by, dual=certificate.dual / by
    )


# From the strongest to the weakest.
KINDS = ("exact", "conditional", "estimated", "withheld")


def sum_of(certificates: list[Certificate]) -> Certificate:
    """The certificate of the sum of all objectives. Its kind is the weakest of their kinds."""
    if len(certificates) == 1:
        return certificates[0]
    primal = float(sum(certificate.primal for certificate in certificates))
    dual = float(sum(certificate.dual for certificate in certificates))
    kind = max((certificate.kind for certificate in certificates), key=KINDS.index)
    return type(certificates[0])(primal, dual, kind)


# -- warnings -----------------------------------------------------------------------------------

# A warning skips frames in these files: our own, and the decorators around ``fit``.
OWN_FILES = (
    str(Path(__file__).parent.parent),
    str(Path(sys.modules["sklearn"].__file__).parent),  # type: ignore[arg-type]
    contextlib.__file__,
)


def warn(warning: Warning) -> None:
    """Warn, and point at the line of the user's code that has called this package."""
    frame, level = sys._getframe(1), 2
    own = (*OWN_FILES, "<")
    while frame.f_back is not None and frame.f_code.co_filename.startswith(own):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)


def warn_of(settings: Settings, problem: Problem | None, results: list[SolveResult]) -> None:
    """Give the warnings of a fit: those of its problems, and one for the largest gap above tol.

    There is no warning if the user's callback has ended the fit.
    """
    for caution in () if problem is None else problem.cautions(settings, results):
        warn(caution)
    worst = max(
        (r for r in results if r.status not in (Status.CONVERGED, Status.STOPPED)),
        key=lambda r: r.certificate.relative_gap,
        default=None,
    )
    if worst is not None:
        warn(
            ConvergenceWarning(
                f"{settings.name} {worst.status.reason} after {worst.n_iter} iterations, above "
                f"tol: {_distance(worst.certificate)}.{ADVICE.get(worst.status, '')}"
            )
        )


def _distance(certificate: Certificate) -> str:
    if not certificate.gap < np.inf:
        return "how far the model is from the optimum is not known"
    known = "is estimated to be" if certificate.kind == "estimated" else "is at most"
    condition = ", if the kernel is positive semidefinite"
    return (
        f"the objective {certificate.primal:.6g} {known} {certificate.gap:.3g} above the "
        f"optimum (relative gap {certificate.relative_gap:.2g})"
        f"{condition if certificate.kind == 'conditional' else ''}"
    )


# -- scikit-learn's callbacks -------------------------------------------------------------------
# Only this section and the imports use ``sklearn.callback``, which is experimental since 1.9.


def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator for ``fit``: support scikit-learn's callbacks, and lose no interrupt."""
    return _with_callbacks(_interrupts.kept()(method))


class FitTasks:
    """The tree of tasks that callbacks see: fit → one problem per class → iterations.

    Parameters
    ----------
    estimator : estimator
    X, y : the training data as the user gave them
    problems : int
        Number of problems that one fit solves.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, problems: int) -> None:
        self._fit = {"estimator": estimator, "X": X, "y": y}
        self._root = estimator._init_callback_context(max_subtasks=problems)
        self._root.call_on_fit_task_begin(**self._fit)

    def begin_problem(self, label: str) -> None:
        """A problem starts; its iterations follow."""
        self._problem = self._root.subcontext(task_name=label, max_subtasks=None)
        self._problem.call_on_fit_task_begin(**self._fit)

    def iteration(self, attributes: Callable[[], dict[str, Any]]) -> bool:
        """An iteration ended. ``attributes`` gives the fitted attributes as of now.

        Returns whether a callback asks to stop.
        """
        task = self._problem.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(**self._fit)
        return task.call_on_fit_task_end(**self._fit, reconstruction_attributes=attributes)

    def end_problem(self) -> None:
        """A problem is solved."""
        self._problem.call_on_fit_task_end(**self._fit)

    def end(self) -> None:
        """The fit is done."""
        self._root.call_on_fit_task_end(**self._fit, reconstruction_attributes={})
