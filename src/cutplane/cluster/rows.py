"""Rows on workers: a linear model's passes over the data as rounds.

A worker holds consecutive parts of the rows, and for the problem at hand the scores of its rows at
several points, in slots, and their coefficients. What is computed there is computed by the same
code as where all rows are in one place. Answers come by chunk of rows or by node of the tree of
sums, and are added up in the order in which they are added where all rows are in one place.

The log of lasting orders has a w for every point that was moved to. Once it takes more memory than
what the workers hold of the problem besides the rows, and at least LOG_BYTES, a copy of that takes
its place: the client's memory is bounded by about twice the larger of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from ..data import BlockedMatrix
from ..data.partitions import FolderShare, PartitionShare
from ..data.sums import SumPlan
from ..exec import Executor, SerialExecutor, make_executor
from ..objective.linear import MOST_UPDATES, RowProducts
from ..objective.score_risk import RowPasses
from ..risks import Risk, Scores, Targets
from .orders import Change, Each, Hold, Means, Order
from .workers import Workers

# Bytes of w and of coefficients that the log has before a copy of the workers' state may take its
# place. That costs a round whose answers are as large as the state: with half as much it comes
# twice as often, twice as much is as much more memory of the client.
LOG_BYTES = 1 << 28


@dataclass(frozen=True)
class Slot:
    """Stands for the scores of a point, or the coefficients, of all rows wherever they are."""

    number: int


COEF = Slot(-1)


class Source(Protocol):
    """Where rows come from."""

    def open(self) -> BlockedMatrix:
        """The rows of one worker, in blocks."""
        ...


def _writable(array: np.ndarray) -> np.ndarray:
    """What came over the network may be read-only, for which loops would be compiled again."""
    return array if array.flags.writeable else array.copy()


# -- the worker's side --------------------------------------------------------


class RowsOnWorker:
    """Some of the rows, and a problem on them.

    Attributes
    ----------
    matrix : BlockedMatrix
    executor : Executor
        The worker's threads.
    products : RowProducts
        Of the problem.
    passes : RowPasses
        If its risk is a sum over rows.

    Parameters
    ----------
    plan : SumPlan
        Which parts, and how sums over their blocks are added up.
    matrix
        The same.
    threads : int
    """

    products: RowProducts
    passes: RowPasses | None = None

    def __init__(self, plan: SumPlan, matrix: BlockedMatrix, threads: int) -> None:
        self._plan = plan
        self.matrix = matrix
        self.executor = make_executor(threads, matrix.n_stored)
        self._slots: dict[int, np.ndarray] = {}

    def begin(self, shape: tuple[int, ...], constant: float, updates: bool) -> None:
        """A problem begins."""
        self._slots, self.passes = {}, None
        self.products = RowProducts(
            self.matrix, shape, constant, self.executor, updates, self._plan
        )

    @property
    def rows(self) -> RowPasses:
        """Passes over the scores."""
        assert self.passes is not None
        return self.passes

    def array(self, slot: Slot) -> np.ndarray:
        """What a slot stands for."""
        if slot == COEF:
            return self.rows.coef
        if slot.number not in self._slots:
            self._slots[slot.number] = self.rows.new_scores()
        return self._slots[slot.number]

    def found(self, argument: Any) -> Any:
        """An argument of a pass, with arrays in place of slots."""
        if isinstance(argument, Slot):
            return self.array(argument)
        if isinstance(argument, Scores):
            return Scores(self.found(argument.values), argument.bias)
        return _writable(argument) if isinstance(argument, np.ndarray) else argument

    def score(self, w: np.ndarray, bias: float, outs: Sequence[np.ndarray]) -> None:
        """X·w, with bounds on rounding if there are two arrays, precise if there are three."""
        w = _writable(w)
        if len(outs) == 1:
            self.products.scores(w, *outs)
        else:
            self.products.bounded(w, *outs, bias=bias)

    def copy(self) -> State:
        """All that answers depend on besides the rows and the problem."""
        slots = {number: array.copy() for number, array in self._slots.items()}
        coef = None if self.passes is None else self.passes.coef.copy()
        return State(slots, coef, self.products.sums())

    def restore(self, state: State) -> None:
        """Return to a state."""
        self._slots = {number: np.array(array) for number, array in state.slots.items()}
        if state.coef is not None:
            self.rows.coef[...] = state.coef
        if state.sums is not None:
            self.products.restore_sums(*state.sums)


@dataclass(frozen=True)
class State:
    """A copy of what a worker holds of a problem.

    Attributes
    ----------
    slots : dict
        Scores of points.
    coef : ndarray or None
    sums : tuple or None
        What the next gradient builds on.
    """

    slots: dict[int, np.ndarray]
    coef: np.ndarray | None
    sums: Any


# -- orders: rows and problems ------------------------------------------------


@dataclass(frozen=True)
class HoldRows(Hold):
    """Hold rows from memory or from a folder."""

    plan: SumPlan
    source: Source

    def make(self, means: Means) -> RowsOnWorker:
        source = self.source
        if isinstance(source, FolderShare) and means.memory is not None:
            # Pages of files count as memory of a worker, which is ended beyond its limit.
            source = source.within(means.memory // 2)
        return RowsOnWorker(self.plan, source.open(), means.threads)


@dataclass(frozen=True)
class HoldPartitions(Hold):
    """Hold partitions that are results of Dask futures."""

    plan: SumPlan
    features: int
    outputs: int

    def make(self, means: Means) -> RowsOnWorker:
        share = PartitionShare(means.inputs, self.features, self.outputs)
        return RowsOnWorker(self.plan, share.open(), means.threads)


@dataclass(frozen=True)
class BeginProblem(Change):
    """A problem begins.

    Attributes
    ----------
    shape : tuple of int
        Of w, the constant feature included.
    constant : float
    updates : bool
        Whether gradients are brought up to date.
    """

    shape: tuple[int, ...]
    constant: float
    updates: bool

    def run(self, rows: RowsOnWorker) -> None:
        rows.begin(self.shape, self.constant, self.updates)


@dataclass(frozen=True)
class BeginRows(Change):
    """The risk of the problem is a sum over rows.

    Attributes
    ----------
    risk : Risk
    light : bool
        Whether a pass over scores is not worth more than one thread.
    labels, weights : ndarray
        Of the worker's rows.
    total : float
        Of all weights.
    slices : sequence of slice
        The worker's rows in chunks.
    """

    risk: Risk
    light: bool
    labels: np.ndarray
    weights: np.ndarray
    total: float
    slices: Sequence[slice]

    def run(self, rows: RowsOnWorker) -> None:
        targets = Targets(_writable(self.labels), _writable(self.weights), self.total)
        executor = SerialExecutor() if self.light else rows.executor
        rows.passes = RowPasses(targets, self.risk, self.slices, executor)


@dataclass(frozen=True)
class CopyState(Order):
    """Send a copy of what is held."""

    def run(self, rows: RowsOnWorker) -> State:
        return rows.copy()


@dataclass(frozen=True)
class RestoreState(Change):
    """Return to such a copy."""

    state: State

    def run(self, rows: RowsOnWorker) -> None:
        rows.restore(self.state)


# -- orders: products ---------------------------------------------------------


@dataclass(frozen=True)
class MoveScores(Change):
    """Move scores to w: one slot; with bounds on rounding two, in twice the digits three."""

    w: np.ndarray
    bias: float
    into: tuple[Slot, ...]

    def run(self, rows: RowsOnWorker) -> None:
        rows.score(self.w, self.bias, [rows.array(slot) for slot in self.into])


@dataclass(frozen=True)
class SendScores(Order):
    """The same numbers, ``count`` for each score, sent to whoever asks."""

    w: np.ndarray
    bias: float
    count: int

    def run(self, rows: RowsOnWorker) -> np.ndarray:
        outs = np.empty((self.count, len(rows.matrix), *self.w.shape[1:]))
        rows.score(self.w, self.bias, list(outs))
        return outs


@dataclass(frozen=True)
class PlainProduct(Order):
    """X·w without constant feature, whatever the problem is."""

    w: np.ndarray

    def run(self, rows: RowsOnWorker) -> np.ndarray:
        out = np.empty((len(rows.matrix), *self.w.shape[1:]))
        rows.matrix.scores(_writable(self.w), out, rows.executor)
        return out


@dataclass(frozen=True)
class SquaredNorms(Order):
    """|x_i|² of every row."""

    def run(self, rows: RowsOnWorker) -> np.ndarray:
        return rows.matrix.squared_norms(rows.executor)


@dataclass(frozen=True)
class Gradients(Order):
    """Xᵀ·coef, one sum for each node of the worker's plan."""

    coef: Slot | np.ndarray
    updates: bool
    summed = True

    @property
    def lasting(self) -> bool:
        """The next ones build on it."""
        return self.updates

    def run(self, rows: RowsOnWorker) -> list[np.ndarray]:
        rows.products.gradient(rows.found(self.coef))
        return list(rows.products.node_sums)


@dataclass(frozen=True)
class StartAnew(Change):
    """The next gradients are computed from all rows."""

    def run(self, rows: RowsOnWorker) -> None:
        rows.products.start_anew()


# -- orders: passes over scores -----------------------------------------------


class Pass(Order):
    """A pass over the scores, whose arguments are the fields of the order.

    Attributes
    ----------
    method : callable
        Of ``RowPasses``, which says what the answer is.
    """

    method: ClassVar[Callable[..., Any]]

    def run(self, rows: RowsOnWorker) -> Any:
        arguments = [rows.found(argument) for argument in vars(self).values()]
        return type(self).method(rows.rows, *arguments)


class ChangingPass(Pass, Change):
    """A pass that writes scores or coefficients."""


@dataclass(frozen=True)
class Blend(ChangingPass):
    """Scores at start + k(end − start)."""

    start: Slot
    end: Slot
    k: float
    into: Slot
    method = RowPasses.blend


@dataclass(frozen=True)
class Value(Pass):
    """Σ weight·loss, by chunk."""

    at: Scores
    method = RowPasses.value


@dataclass(frozen=True)
class Upper(Pass):
    """At least Σ weight·loss, of scores that are off by ``errors`` at most, by chunk."""

    at: Scores
    low: Slot | None
    errors: Slot
    method = RowPasses.upper


@dataclass(frozen=True)
class LineSlopes(Pass):
    """Derivatives in k at start + k(end − start), for several k, by chunk."""

    start: Scores
    end: Scores
    steps: np.ndarray
    method = RowPasses.line_slopes


@dataclass(frozen=True)
class BiasSlopes(Pass):
    """Derivatives in the bias, at several, by chunk."""

    scores: Slot
    biases: np.ndarray
    method = RowPasses.bias_slopes


@dataclass(frozen=True)
class Fill(ChangingPass):
    """Fill in coefficients: ``1 − part`` of those at the bias ``low``, ``part`` of the other's."""

    scores: Slot
    low: float
    high: float
    part: float
    method = RowPasses.fill


@dataclass(frozen=True)
class SetCoef(ChangingPass):
    """Take coefficients from elsewhere."""

    coef: np.ndarray
    method = RowPasses.set_coef


class Offset(Pass):
    """Offset of the plane with the coefficients, by chunk."""

    method = RowPasses.offset


class Weigh(Pass):
    """Sums of the positive and of minus the negative coefficients, by chunk."""

    method = RowPasses.weigh


@dataclass(frozen=True)
class Scale(ChangingPass):
    """Multiply the coefficients of one sign."""

    sign: float
    factor: float
    method = RowPasses.scale


@dataclass(frozen=True)
class Slope(Pass):
    """Derivative from start to end of the plane with the coefficients, by chunk."""

    start: Slot
    end: Slot
    method = RowPasses.slope


# -- the client's side --------------------------------------------------------


class RemoteMatrix:
    """A design matrix whose rows are held by workers.

    Attributes
    ----------
    crew : Workers
    shape : tuple of int
    n_stored : int
        Stored values.
    part_rows : list of int
        Rows at which parts begin, and the end.
    blocks : range
        Numbers of the blocks.

    Parameters
    ----------
    crew : Workers
        They hold the rows already.
    plans : sequence of SumPlan
        The parts of each worker.
    bounds : ndarray
        Rows at which blocks begin, and the end.
    shape, n_stored
        The same.
    digest : callable
        Gives a fingerprint of the data.
    """

    whole = None

    def __init__(
        self,
        crew: Workers,
        plans: Sequence[SumPlan],
        bounds: np.ndarray,
        shape: tuple[int, int],
        n_stored: int,
        digest: Callable[[], bytes],
    ) -> None:
        self.crew = crew
        self.plans = plans
        self.shape = shape
        self.n_stored = n_stored
        self.blocks = range(len(bounds) - 1)
        self.part_rows: list[int] = bounds[plans[0].edges].tolist()
        self._digest = digest
        self._base = len(crew.log)

    def __len__(self) -> int:
        """Number of rows."""
        return self.shape[0]

    def digest(self) -> bytes:
        """A fingerprint of the data."""
        return self._digest()

    def worker_rows(self) -> list[slice]:
        """The rows of each worker."""
        return [slice(self.part_rows[plan.first], self.part_rows[plan.last]) for plan in self.plans]

    def scores(self, w: np.ndarray, out: np.ndarray, executor: Executor) -> None:
        """out = X·w, in one round."""
        np.concatenate(self.crew.ask(PlainProduct(w)), out=out)

    def squared_norms(self, executor: Executor) -> np.ndarray:
        """|x_i|² of every row, in one round."""
        return np.concatenate(self.crew.ask(SquaredNorms()))

    def products(self, shape: tuple[int, ...], constant: float, updates: bool) -> RemoteProducts:
        """A problem begins: its products."""
        self.crew.forget(self._base)
        return RemoteProducts(self, shape, constant, updates)

    def passes(
        self, targets: Targets, risk: Risk, slices: Sequence[slice], light: bool
    ) -> RemotePasses:
        """The risk of the problem that has begun is a sum over rows: its passes."""
        return RemotePasses(self, targets, risk, slices, light)


class RemoteProducts:
    """Products with rows that are elsewhere.

    Parameters
    ----------
    matrix : RemoteMatrix
    shape : tuple of int
        Of w, the constant feature included.
    constant : float
    updates : bool
        Whether gradients are brought up to date.
    """

    def __init__(
        self, matrix: RemoteMatrix, shape: tuple[int, ...], constant: float, updates: bool
    ) -> None:
        self._crew = matrix.crew
        self._matrix = matrix
        self._updates = updates
        self._slots: set[Slot] = set()
        self._gradients = 0  # since all were computed anew
        self._logged = 0  # bytes of arrays in the log
        self._crew.vector_bytes = 8 * int(np.prod(shape))
        self._crew.post(BeginProblem(shape, constant, updates))
        self._crew.keep()

    def scores(self, w: np.ndarray, out: Any) -> None:
        self._score(w, 0.0, (out,))

    def bounded(self, w: np.ndarray, *outs: Any, bias: float = 0.0) -> None:
        self._score(w, bias, outs)

    def _score(self, w: np.ndarray, bias: float, outs: tuple[Any, ...]) -> None:
        """Into slots, where the rows are, or into arrays here."""
        if isinstance(outs[0], Slot):
            self._slots |= set(outs)
            self._crew.post(MoveScores(w, bias, outs))
            self._note(w.nbytes)
            return
        answers = self._crew.ask(SendScores(w, bias, len(outs)))
        for k, out in enumerate(outs):
            np.concatenate([answer[k] for answer in answers], out=out)

    def gradient(self, coef: Any) -> np.ndarray:
        if isinstance(coef, Slot):
            order: Order = Gradients(coef, self._updates)
        else:
            if self._gradients > MOST_UPDATES:  # this one is computed from all rows
                self.start_anew(forget=True)
            self._gradients += 1
            # The log keeps them, and the array is used again.
            coef = coef.copy() if self._updates else coef
            order = Each(
                [Gradients(coef[rows], self._updates) for rows in self._matrix.worker_rows()]
            )
        gradient = self._crew.sum(order)
        if not isinstance(coef, Slot) and self._updates:
            self._note(coef.nbytes)
        return gradient

    def _note(self, size: int) -> None:
        """So many bytes go to the log; a copy of the state takes its place if that is smaller."""
        self._logged += size
        held = 8 * len(self._matrix) * (len(self._slots) + 1)
        if self._logged > max(LOG_BYTES, held):
            states = self._crew.ask(CopyState())
            self._crew.forget()
            self._crew.log.append(Each([RestoreState(state) for state in states]))
            self._logged = 0

    def start_anew(self, forget: bool = False) -> None:
        self._gradients = 0
        if forget:
            self._logged = 0
            self._slots.clear()
            self._crew.forget()
        self._crew.post(StartAnew())


class RemotePasses(RowPasses):
    """Passes over the scores of rows that are elsewhere.

    Parameters
    ----------
    matrix : RemoteMatrix
        On which a problem has begun.
    targets : Targets
    risk : Risk
    slices : sequence of slice
        All rows, in chunks.
    light : bool
        Whether a pass is not worth more than one thread.
    """

    coef = COEF

    def __init__(
        self,
        matrix: RemoteMatrix,
        targets: Targets,
        risk: Risk,
        slices: Sequence[slice],
        light: bool,
    ) -> None:
        self._crew = matrix.crew
        self._matrix = matrix
        self._slots = 0
        orders = [
            BeginRows(
                risk,
                light,
                targets.labels[rows],
                targets.weights[rows],
                targets.total,
                [
                    slice(chunk.start - rows.start, chunk.stop - rows.start)
                    for chunk in slices
                    if rows.start <= chunk.start and chunk.stop <= rows.stop
                ],
            )
            for rows in matrix.worker_rows()
        ]
        self._crew.post(Each(orders))
        self._crew.keep()

    def new_scores(self) -> Slot:
        self._slots += 1
        return Slot(self._slots)

    def blend(self, start: Slot, end: Slot, k: float, into: Slot) -> None:
        self._crew.post(Blend(start, end, k, into))

    def value(self, at: Scores) -> list[float]:
        return self._crew.gather(Value(at))

    def upper(self, at: Scores, low: Any, errors: Any) -> list[float]:
        return self._crew.gather(Upper(at, low, errors))

    def line_slopes(self, start: Scores, end: Scores, steps: np.ndarray) -> list[np.ndarray]:
        return self._crew.gather(LineSlopes(start, end, steps))

    def bias_slopes(self, scores: Slot, biases: np.ndarray) -> list[np.ndarray]:
        return self._crew.gather(BiasSlopes(scores, biases))

    def fill(self, scores: Slot, low: float, high: float, part: float) -> None:
        self._crew.post(Fill(scores, low, high, part))

    def set_coef(self, coef: np.ndarray) -> None:
        self._crew.post(Each([SetCoef(coef[rows]) for rows in self._matrix.worker_rows()]))

    def offset(self) -> list[float]:
        return self._crew.gather(Offset())

    def weigh(self) -> list[np.ndarray]:
        return self._crew.gather(Weigh())

    def scale(self, sign: float, factor: float) -> None:
        self._crew.post(Scale(sign, factor))

    def slope(self, start: Slot, end: Slot) -> list[float]:
        return self._crew.gather(Slope(start, end))
