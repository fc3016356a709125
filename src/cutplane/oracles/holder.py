"""Some of the rows of the data, on a worker: answers what the oracle elsewhere asks.

A holder has consecutive parts of the data, and for the problem at hand the scores of its rows at
several points, in slots, and their coefficients. All it is asked is named, and done by the same
code as where all rows are in one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..data import BlockedMatrix
from ..data.partitions import FolderShare, PartitionShare
from ..data.sums import SumPlan
from ..exec import SerialExecutor, make_executor
from ..exec.cluster import worker_memory, worker_threads
from ..exec.orders import play
from ..risks import Risk, Scores, Targets
from .products import RowProducts
from .row_passes import RowPasses


@dataclass(frozen=True)
class Slot:
    """Stands for the scores of a point, or the coefficients, of all rows wherever they are."""

    number: int


COEF = Slot(-1)


class Source(Protocol):
    """Where rows come from."""

    def open(self) -> BlockedMatrix:
        """The rows of one holder, in blocks."""
        ...


@dataclass(frozen=True)
class Task:
    """A problem on the rows of one holder.

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


@dataclass(frozen=True)
class RowTask:
    """The risk on the rows of one holder, if it is a sum over rows.

    Attributes
    ----------
    labels, weights : ndarray
        Of its rows.
    total : float
        Of all weights.
    slices : sequence of slice
        Its rows in chunks.
    """

    labels: np.ndarray
    weights: np.ndarray
    total: float
    slices: Sequence[slice]


def _writable(array: np.ndarray) -> np.ndarray:
    """What came over the network may be read-only, for which loops would be compiled again."""
    return array if array.flags.writeable else array.copy()


class RowsHolder:
    """Holds some of the rows.

    Parameters
    ----------
    plan : SumPlan
        Which parts.
    source : Source, optional
        Where they come from; they may also be brought.
    """

    def __init__(self, plan: SumPlan, source: Source | None = None) -> None:
        self._plan = plan
        self._slots: dict[int, np.ndarray] = {}
        if source is not None:
            self.load(source)

    def play(self, orders: Sequence[tuple[Any, ...]]) -> tuple[list[Any], float]:
        """Do what is ordered, one after the other; the answers, and the seconds it took."""
        return play(self, orders, self._resolved)

    def _resolved(self, argument: Any) -> Any:
        if isinstance(argument, Slot):
            return self._array(argument.number)
        if isinstance(argument, Scores):
            slot: Any = argument.values
            return Scores(self._array(slot.number), argument.bias)
        return _writable(argument) if isinstance(argument, np.ndarray) else argument

    def _array(self, number: int) -> np.ndarray:
        if number == COEF.number:
            return self._passes.coef
        if number not in self._slots:
            self._slots[number] = self._passes.new_scores()
        return self._slots[number]

    # -- orders ---------------------------------------------------------------

    def load(self, source: Source) -> None:
        """Take rows."""
        limit = worker_memory()
        if isinstance(source, FolderShare) and limit is not None:
            # Pages of files count as memory of a worker, which is ended beyond its limit.
            source = source.within(limit // 2)
        self._matrix = source.open()
        self._executor = make_executor(worker_threads(), self._matrix.numbers)

    def begin(self, task: Task) -> None:
        """A problem begins."""
        self._slots = {}
        self._products = RowProducts(
            self._matrix, task.shape, task.constant, self._executor, task.updates, self._plan
        )

    def begin_rows(self, risk: Risk, light: bool, task: RowTask) -> None:
        """A problem begins whose risk is a sum over rows."""
        targets = Targets(_writable(task.labels), _writable(task.weights), task.total)
        executor = SerialExecutor() if light else self._executor
        self._passes = RowPasses(targets, risk, task.slices, executor)

    def scores(self, w: np.ndarray, out: np.ndarray) -> None:
        """Move the scores of a point to w."""
        self._products.scores(w, out)

    def product(self, w: np.ndarray) -> list[np.ndarray]:
        """X·w, for whoever asks."""
        out = np.empty((len(self._matrix), *w.shape[1:]))
        self._products.scores(w, out)
        return [out]

    def bounded(self, w: np.ndarray, scores: np.ndarray, errors: np.ndarray) -> None:
        """Move the scores of a point to w, and bound their rounding."""
        self._products.bounded(w, scores, errors)

    def precise(
        self, w: np.ndarray, bias: float, high: np.ndarray, low: np.ndarray, errors: np.ndarray
    ) -> None:
        """The same in twice the digits."""
        self._products.precise(w, bias, high, low, errors)

    def bounded_product(self, arguments: tuple[np.ndarray]) -> list[np.ndarray]:
        """X·w and bounds on its rounding, for whoever asks."""
        (w,) = arguments
        outs = np.empty((2, len(self._matrix), *w.shape[1:]))
        self._products.bounded(_writable(w), *outs)
        return [outs]

    def precise_product(self, arguments: tuple[np.ndarray, float]) -> list[np.ndarray]:
        """The same in twice the digits."""
        w, bias = arguments
        outs = np.empty((3, len(self._matrix), *w.shape[1:]))
        self._products.precise(_writable(w), bias, *outs)
        return [outs]

    def plain_product(self, w: np.ndarray) -> list[np.ndarray]:
        """X·w without constant feature, whatever the problem is."""
        out = np.empty((len(self._matrix), *w.shape[1:]))
        self._matrix.scores(w, out, self._executor)
        return [out]

    def squared_norms(self) -> list[np.ndarray]:
        """|x_i|² of every row."""
        return [self._matrix.squared_norms(self._executor)]

    def gradients(self, coef: np.ndarray) -> list[np.ndarray]:
        """Xᵀ·coef, one sum for each node of the plan."""
        return list(self._products.gradients(coef))

    def sums(self) -> list[tuple[int, np.ndarray]]:
        """What the next gradients build on, for whoever has the coefficients."""
        return [self._products.sums()]

    def restore_sums(self, state: tuple[np.ndarray, int, np.ndarray]) -> None:
        """Be as after gradients with coefficients that led to these sums."""
        self._products.restore_sums(*state)

    def start_anew(self) -> None:
        """The next gradients are computed from all rows."""
        self._products.start_anew()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._passes, name)


def hold_partitions(
    plan: SumPlan, features: int, outputs: int, pieces: Sequence[Any]
) -> RowsHolder:
    """A holder of partitions that are tasks themselves."""
    return RowsHolder(plan, PartitionShare(pieces, features, outputs))
