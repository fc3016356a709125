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
from typing import Any, ClassVar

import numpy as np

from ..data import BlockedMatrix
from ..data.partitions import FolderShare, MemoryShare, PartitionShare
from ..data.sums import SumPlan
from ..exec import Executor, SerialExecutor, make_executor
from ..objective.linear import MOST_UPDATES, RowProducts
from ..objective.score_risk import RowPasses
from ..risks import Risk, Scores, Targets
from .orders import Each, Means, Order
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


def _writable(array: np.ndarray) -> np.ndarray:
    """What came over the network may be read-only, for which loops would be compiled again."""
    return array if array.flags.writeable else array.copy()


# -- the worker's side --------------------------------------------------------


class RowsOnWorker:
    """Some of the rows, and a problem on them. Its methods are what orders ask for.

    Parameters
    ----------
    plan : SumPlan
        Which parts, and how sums over their blocks are added up.
    matrix : BlockedMatrix
    threads : int
    """

    _products: RowProducts
    _passes: RowPasses | None = None  # if the risk of the problem is a sum over rows

    def __init__(self, plan: SumPlan, matrix: BlockedMatrix, threads: int) -> None:
        self._plan = plan
        self._matrix = matrix
        self._executor = make_executor(threads, matrix.n_stored)
        self._slots: dict[int, np.ndarray] = {}

    def begin(self, shape: tuple[int, ...], constant: float, updates: bool) -> None:
        """A problem begins: the shape of w, and whether gradients are brought up to date."""
        self._slots, self._passes = {}, None
        self._products = RowProducts(
            self._matrix, shape, constant, self._executor, updates, self._plan
        )

    def begin_rows(
        self,
        risk: Risk,
        light: bool,
        labels: np.ndarray,
        weights: np.ndarray,
        total: float,
        slices: Sequence[slice],
    ) -> None:
        """The risk of the problem is a sum over rows.

        Labels and weights are those of the worker's rows, ``total`` is the sum of all weights, and
        slices are the worker's rows in chunks. ``light``: a pass is worth one thread only.
        """
        targets = Targets(_writable(labels), _writable(weights), total)
        executor = SerialExecutor() if light else self._executor
        self._passes = RowPasses(targets, risk, slices, executor)

    @property
    def passes(self) -> RowPasses:
        """Passes over the scores."""
        assert self._passes is not None
        return self._passes

    def found(self, argument: Any) -> Any:
        """An argument of a pass, with arrays in place of slots."""
        if isinstance(argument, Slot):
            if argument == COEF:
                return self.passes.coef
            if argument.number not in self._slots:
                self._slots[argument.number] = self.passes.new_scores()
            return self._slots[argument.number]
        if isinstance(argument, Scores):
            return Scores(self.found(argument.values), argument.bias)
        return _writable(argument) if isinstance(argument, np.ndarray) else argument

    def move_scores(self, w: np.ndarray, bias: float, into: tuple[Slot, ...]) -> None:
        """Move scores to w: one slot; with bounds on rounding two, in twice the digits three."""
        self._score(w, bias, [self.found(slot) for slot in into])

    def send_scores(self, w: np.ndarray, bias: float, count: int) -> np.ndarray:
        """The same numbers, ``count`` for each score, sent to whoever asks."""
        outs = np.empty((count, len(self._matrix), *w.shape[1:]))
        self._score(w, bias, list(outs))
        return outs

    def _score(self, w: np.ndarray, bias: float, outs: Sequence[np.ndarray]) -> None:
        if len(outs) == 1:
            self._products.scores(_writable(w), *outs)
        else:
            self._products.bounded(_writable(w), *outs, bias=bias)

    def plain_product(self, w: np.ndarray) -> np.ndarray:
        """X·w without constant feature, whatever the problem is."""
        out = np.empty((len(self._matrix), *w.shape[1:]))
        self._matrix.scores(_writable(w), out, self._executor)
        return out

    def squared_norms(self) -> np.ndarray:
        """|x_i|² of every row."""
        return self._matrix.squared_norms(self._executor)

    def gradients(self, coef: Slot | np.ndarray) -> list[np.ndarray]:
        """Xᵀ·coef, one sum for each node of the worker's plan."""
        self._products.gradient(self.found(coef))
        return list(self._products.node_sums)

    def start_anew(self) -> None:
        """The next gradients are computed from all rows."""
        self._products.start_anew()

    def copy(self) -> tuple[Any, ...]:
        """Scores of points, coefficients, and what the next gradient builds on.

        That is all that answers depend on besides the rows and the problem.
        """
        slots = {number: array.copy() for number, array in self._slots.items()}
        coef = None if self._passes is None else self._passes.coef.copy()
        return slots, coef, self._products.sums()

    def restore(self, slots: dict[int, np.ndarray], coef: np.ndarray | None, sums: Any) -> None:
        """Return to a state."""
        self._slots = {number: np.array(array) for number, array in slots.items()}
        if coef is not None:
            self.passes.coef[...] = coef
        if sums is not None:
            self._products.restore_sums(*sums)


def hold_rows(
    means: Means, plan: SumPlan, source: FolderShare | MemoryShare | PartitionShare
) -> RowsOnWorker:
    """Hold rows from memory or from a folder."""
    if isinstance(source, FolderShare) and means.memory is not None:
        # Pages of files count as memory of a worker, which is ended beyond its limit.
        source = source.within(means.memory // 2)
    return RowsOnWorker(plan, source.open(), means.threads)


def hold_partitions(means: Means, plan: SumPlan, features: int, outputs: int) -> RowsOnWorker:
    """Hold partitions that are results of Dask futures."""
    return hold_rows(means, plan, PartitionShare(means.inputs, features, outputs))


class Pass(Order):
    """A pass over the scores: its function is a method of ``RowPasses``."""

    def run(self, rows: RowsOnWorker) -> Any:
        return self.function(rows.passes, *map(rows.found, self.arguments))


# -- the client's side --------------------------------------------------------


@dataclass(eq=False)
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

    whole: ClassVar[None] = None

    crew: Workers
    plans: Sequence[SumPlan]
    bounds: np.ndarray
    shape: tuple[int, int]
    n_stored: int
    digest: Callable[[], bytes]

    def __post_init__(self) -> None:
        self.blocks = range(len(self.bounds) - 1)
        self.part_rows: list[int] = self.bounds[self.plans[0].edges].tolist()
        self._base = len(self.crew.log)

    def __len__(self) -> int:
        """Number of rows."""
        return self.shape[0]

    def worker_rows(self) -> list[slice]:
        """The rows of each worker."""
        return [slice(self.part_rows[plan.first], self.part_rows[plan.last]) for plan in self.plans]

    def scores(self, w: np.ndarray, out: np.ndarray, executor: Executor) -> None:
        """out = X·w, in one round."""
        np.concatenate(self.crew.ask(Order(RowsOnWorker.plain_product, w)), out=out)

    def squared_norms(self, executor: Executor) -> np.ndarray:
        """|x_i|² of every row, in one round."""
        return np.concatenate(self.crew.ask(Order(RowsOnWorker.squared_norms)))

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
        self._crew.post(Order(RowsOnWorker.begin, shape, constant, updates, lasting=True))
        self._crew.keep()

    def scores(self, w: np.ndarray, out: Any) -> None:
        self._score(w, 0.0, (out,))

    def bounded(self, w: np.ndarray, *outs: Any, bias: float = 0.0) -> None:
        self._score(w, bias, outs)

    def _score(self, w: np.ndarray, bias: float, outs: tuple[Any, ...]) -> None:
        """Into slots, where the rows are, or into arrays here."""
        if isinstance(outs[0], Slot):
            self._slots |= set(outs)
            self._crew.post(Order(RowsOnWorker.move_scores, w, bias, outs, lasting=True))
            self._note(w.nbytes)
            return
        answers = self._crew.ask(Order(RowsOnWorker.send_scores, w, bias, len(outs)))
        for k, out in enumerate(outs):
            np.concatenate([answer[k] for answer in answers], out=out)

    def gradient(self, coef: Any) -> np.ndarray:
        if isinstance(coef, Slot):
            return self._crew.sum(self._gradients_of(coef))
        if self._gradients > MOST_UPDATES:  # this one is computed from all rows
            self.start_anew(forget=True)
        self._gradients += 1
        if self._updates:
            coef = coef.copy()  # the log keeps them, and the array is used again
        own = [self._gradients_of(coef[rows]) for rows in self._matrix.worker_rows()]
        gradient = self._crew.sum(Each(own))
        if self._updates:
            self._note(coef.nbytes)
        return gradient

    def _gradients_of(self, coef: Slot | np.ndarray) -> Order:
        # With updates the next ones build on it.
        return Order(RowsOnWorker.gradients, coef, lasting=self._updates, summed=True)

    def _note(self, size: int) -> None:
        """So many bytes go to the log; a copy of the state takes its place if that is smaller."""
        self._logged += size
        held = 8 * len(self._matrix) * (len(self._slots) + 1)
        if self._logged > max(LOG_BYTES, held):
            states = self._crew.ask(Order(RowsOnWorker.copy))
            self._crew.forget()
            restore = [Order(RowsOnWorker.restore, *state, lasting=True) for state in states]
            self._crew.log.append(Each(restore))
            self._logged = 0

    def start_anew(self, forget: bool = False) -> None:
        self._gradients = 0
        if forget:
            self._logged = 0
            self._slots.clear()
            self._crew.forget()
        self._crew.post(Order(RowsOnWorker.start_anew, lasting=True))


def _change(method: Callable[..., None]) -> Callable[..., None]:
    """A pass that writes scores or coefficients, which goes with the next round."""

    def post(passes: RemotePasses, *arguments: Any) -> None:
        passes._crew.post(Pass(method, *arguments, lasting=True))

    return post


def _by_chunk(method: Callable[..., Any]) -> Callable[..., list[Any]]:
    """A pass whose answers come by chunk, in one round."""

    def gather(passes: RemotePasses, *arguments: Any) -> list[Any]:
        return passes._crew.gather(Pass(method, *arguments))

    return gather


class RemotePasses(RowPasses):
    """Passes over the scores of rows that are elsewhere, the same as those of ``RowPasses``.

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
            Order(
                RowsOnWorker.begin_rows,
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
                lasting=True,
            )
            for rows in matrix.worker_rows()
        ]
        self._crew.post(Each(orders))
        self._crew.keep()

    def new_scores(self) -> Slot:
        self._slots += 1
        return Slot(self._slots)

    def set_coef(self, coef: np.ndarray) -> None:
        own = [coef[rows] for rows in self._matrix.worker_rows()]
        self._crew.post(Each([Pass(RowPasses.set_coef, some, lasting=True) for some in own]))

    blend = _change(RowPasses.blend)
    value = _by_chunk(RowPasses.value)
    upper = _by_chunk(RowPasses.upper)
    line_slopes = _by_chunk(RowPasses.line_slopes)
    bias_slopes = _by_chunk(RowPasses.bias_slopes)
    fill = _change(RowPasses.fill)
    offset = _by_chunk(RowPasses.offset)
    weigh = _by_chunk(RowPasses.weigh)
    scale = _change(RowPasses.scale)
    slope = _by_chunk(RowPasses.slope)
