"""Rows on workers: a linear model's passes over the data as rounds.

A worker holds consecutive parts of the rows. For the current problem it also holds the scores of
its rows at several points, one slot per point, and the coefficients of its rows. It computes with
the same code as a fit on one machine. The answers come by chunk of rows or by node of the tree of
sums. The client adds them in the same order as a fit on one machine does, so the bits agree.

The client's log of lasting orders has a w for each move of a point. When the log takes more memory
than the workers' scores and coefficients, and more than LOG_BYTES, the client asks the workers for
a copy of scores, coefficients and sums, and puts this copy in place of the log. So the log takes at
most about twice the larger of the two limits.
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
from ..risks import Risk, Targets
from .orders import Each, Means, Order
from .workers import Workers

# When the log holds so many bytes of w and of coefficients, a copy of the workers' state may take
# its place. The copy costs a round whose answers are as large as the state. With half of this
# limit, the copies come twice as often; with twice of it, the client needs twice the memory.
LOG_BYTES = 1 << 28


@dataclass(frozen=True)
class Slot:
    """Names arrays on the workers: the scores of all rows at a point, or their coefficients."""

    number: int


COEF = Slot(-1)


def _writable(array: np.ndarray) -> np.ndarray:
    """The array, copied if it is read-only, as arrays from the network may be.

    For read-only arrays numba would compile the loops again.
    """
    return array if array.flags.writeable else array.copy()


# -- the worker's side --------------------------------------------------------


class RowsOnWorker:
    """Some of the rows, and the current problem on them. Orders call its methods.

    Parameters
    ----------
    plan : SumPlan
        The parts of this worker, and how to add sums over their blocks.
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
        """Begin a problem.

        ``shape`` is the shape of w. With ``updates`` a gradient starts from the last gradient and
        recomputes only rows whose coefficients have changed.
        """
        self._slots, self._passes = {}, None
        self._products = RowProducts(
            self._matrix, shape, constant, self._executor, updates, self._plan
        )

    def begin_rows(
        self,
        outputs: int | None,
        light: bool,
        labels: np.ndarray,
        weights: np.ndarray,
        total: float,
        slices: Sequence[slice],
    ) -> None:
        """Prepare passes over the scores, for a risk that is a sum over rows.

        ``labels`` and ``weights`` belong to this worker's rows, ``total`` is the sum of the weights
        of all rows, and ``slices`` are the chunks of this worker's rows. With ``light`` a pass is
        so short that one thread does it.
        """
        targets = Targets(_writable(labels), _writable(weights), total)
        executor = SerialExecutor() if light else self._executor
        shape = (len(weights),) if outputs is None else (len(weights), outputs)
        self._passes = RowPasses(targets, shape, slices, executor)

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
        if isinstance(argument, tuple):
            return tuple(map(self.found, argument))
        return _writable(argument) if isinstance(argument, np.ndarray) else argument

    def set_coef(self, coef: np.ndarray) -> None:
        """Set the coefficients to the given ones."""
        self.passes.set_coef(coef)

    def move_scores(self, w: np.ndarray, bias: float, into: tuple[Slot, ...]) -> None:
        """Compute the scores at w.

        With one slot: the scores. With two: also bounds on their rounding errors. With three: in
        twice the digits.
        """
        self._score(w, bias, [self.found(slot) for slot in into])

    def send_scores(self, w: np.ndarray, bias: float, count: int) -> np.ndarray:
        """As ``move_scores`` with ``count`` slots, but return the numbers to the client."""
        outs = np.empty((count, len(self._matrix), *w.shape[1:]))
        self._score(w, bias, list(outs))
        return outs

    def _score(self, w: np.ndarray, bias: float, outs: Sequence[np.ndarray]) -> None:
        if len(outs) == 1:
            self._products.scores(_writable(w), *outs)
        else:
            self._products.bounded(_writable(w), *outs, bias=bias)

    def plain_product(self, w: np.ndarray) -> np.ndarray:
        """X·w without the constant feature. This needs no problem."""
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
        """Compute the next gradient from all rows, not from the last gradient."""
        self._products.start_anew()

    def copy(self) -> tuple[Any, ...]:
        """Scores of points, coefficients, and the sums from which the next gradient starts.

        Besides the rows and the problem, answers depend on nothing else.
        """
        slots = {number: array.copy() for number, array in self._slots.items()}
        coef = None if self._passes is None else self._passes.coef.copy()
        return slots, coef, self._products.sums()

    def restore(self, slots: dict[int, np.ndarray], coef: np.ndarray | None, sums: Any) -> None:
        """Take the state that ``copy`` returned."""
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
        # Dask kills a worker that exceeds its memory limit, and mapped pages of files count.
        source = source.within(means.memory // 2)
    return RowsOnWorker(plan, source.open(), means.threads)


def hold_partitions(means: Means, plan: SumPlan, features: int, outputs: int) -> RowsOnWorker:
    """Hold partitions that are results of Dask futures."""
    return hold_rows(means, plan, PartitionShare(means.inputs, features, outputs))


class Pass(Order):
    """An order for a pass over the scores. Its arguments are those of ``RowPasses.run``."""

    def run(self, rows: RowsOnWorker) -> Any:
        return rows.passes.run(self.function, *map(rows.found, self.arguments))


# -- the client's side --------------------------------------------------------


@dataclass(eq=False)
class RemoteMatrix:
    """A design matrix whose rows are on workers.

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
        Workers that hold the rows already.
    plans : sequence of SumPlan
        The parts of each worker.
    bounds : ndarray
        Rows at which blocks begin, and the end.
    shape, n_stored
        See the attributes.
    digest : callable
        Returns a fingerprint of the data.
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
        """Begin a problem; returns its products with the rows."""
        self.crew.forget(self._base)
        return RemoteProducts(self, shape, constant, updates)

    def passes(
        self, targets: Targets, risk: Risk, slices: Sequence[slice], light: bool
    ) -> RemotePasses:
        """Passes over the scores, if the risk of the current problem is a sum over rows."""
        return RemotePasses(self, targets, risk.outputs, slices, light)


class RemoteProducts:
    """Products with rows that are on workers.

    Parameters
    ----------
    matrix : RemoteMatrix
    shape : tuple of int
        Shape of w, with the constant feature.
    constant : float
    updates : bool
        Whether a gradient starts from the last gradient and recomputes only rows whose coefficients
        have changed.
    """

    def __init__(
        self, matrix: RemoteMatrix, shape: tuple[int, ...], constant: float, updates: bool
    ) -> None:
        self.shape = shape
        self._crew = matrix.crew
        self._matrix = matrix
        self._updates = updates
        self._slots: set[Slot] = set()
        self._gradients = 0  # since the last gradient that was computed from all rows
        self._logged = 0  # bytes of arrays in the log
        self._crew.vector_bytes = 8 * int(np.prod(shape))
        self._crew.post(Order(RowsOnWorker.begin, shape, constant, updates, lasting=True))
        self._crew.keep()

    def scores(self, w: np.ndarray, out: Any) -> None:
        self._score(w, 0.0, (out,))

    def bounded(self, w: np.ndarray, *outs: Any, bias: float = 0.0) -> None:
        self._score(w, bias, outs)

    def _score(self, w: np.ndarray, bias: float, outs: tuple[Any, ...]) -> None:
        """Compute scores into slots on the workers, or into arrays of this process."""
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
        if self._gradients > MOST_UPDATES:  # too many rounding errors: start from all rows
            self.start_anew(forget=True)
        self._gradients += 1
        if self._updates:
            coef = coef.copy()  # the log keeps the coefficients, and the caller reuses the array
        own = [self._gradients_of(coef[rows]) for rows in self._matrix.worker_rows()]
        gradient = self._crew.sum(Each(own))
        if self._updates:
            self._note(coef.nbytes)
        return gradient

    def _gradients_of(self, coef: Slot | np.ndarray) -> Order:
        # With updates the next gradient starts from this one, so the order must be in the log.
        return Order(RowsOnWorker.gradients, coef, lasting=self._updates, summed=True)

    def _note(self, size: int) -> None:
        """Count bytes that go to the log. If the log gets too large, replace it by a state."""
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


class RemotePasses(RowPasses):
    """The passes of ``RowPasses``, over the scores of rows that are on workers.

    Parameters
    ----------
    matrix : RemoteMatrix
        A matrix on which a problem has begun.
    targets : Targets
    outputs : int or None
        Scores per row; None for one number.
    slices : sequence of slice
        All rows, in chunks.
    light : bool
        Whether a pass is so short that one thread does it.
    """

    coef = COEF

    def __init__(
        self,
        matrix: RemoteMatrix,
        targets: Targets,
        outputs: int | None,
        slices: Sequence[slice],
        light: bool,
    ) -> None:
        self._crew = matrix.crew
        self._matrix = matrix
        self._slots = 0
        orders = [
            Order(
                RowsOnWorker.begin_rows,
                outputs,
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
        orders = [Order(RowsOnWorker.set_coef, some, lasting=True) for some in own]
        self._crew.post(Each(orders))

    def run(self, function: Callable[..., Any], arrays: Sequence[Any], *others: Any) -> list[Any]:
        """As for rows in this process, in a round of its own."""
        return self._crew.gather(Pass(function, arrays, *others))

    def change(self, function: Callable[..., Any], arrays: Sequence[Any], *others: Any) -> Any:
        """As for rows in this process. The order is sent with the next round."""
        self._crew.post(Pass(function, arrays, *others, lasting=True))
