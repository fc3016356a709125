"""Chains on the workers of a cluster: emissions and labellings stay where the tokens are.

A worker holds some consecutive parts of the sequences, and of every point the emissions of its
tokens, the weights besides those of the emissions, and the most violated labelling. It is told to
move a point to w, or between two others, and answers with risks, slopes and planes: by chunk, or by
node of the tree of sums, to be added up in the order in which they are added where all sequences
are in one place. A worker that is lost is replaced by one that gets the same sequences and all
moves since the points were computed anew.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..data.partitions import MemoryShare, travelling
from ..data.sums import SumPlan, share_parts
from ..exec import Executor, make_executor
from ..loops import vectors
from ..objective import Line, Point
from ..objective.structured import JointModel
from ..structured.chain import ChainExamples, ChainShape, Chunks, LabelledChains, upper
from .orders import Change, Each, Hold, Means, Order
from .rows import Slot
from .workers import Worker, Workers


@dataclass(frozen=True)
class ChainShare:
    """Some of the sequences, as they travel.

    Attributes
    ----------
    tokens : MemoryShare
    chunks : Chunks
        Of these sequences.
    truth : ndarray
    shape : ChainShape
    loss : str
    weight : float
        Of a sequence.
    """

    tokens: MemoryShare
    chunks: Chunks
    truth: np.ndarray
    shape: ChainShape
    loss: str
    weight: float

    def open(self, plan: SumPlan) -> ChainExamples:
        """The sequences on a worker."""
        truth = np.array(self.truth)  # what came over the network may be read-only
        chunks = self.chunks
        chunks.starts = np.array(chunks.starts)
        chains = LabelledChains(
            chunks.starts, truth, self.shape, self.loss, chunks=chunks, weight=self.weight
        )
        return ChainExamples(self.tokens.open(), chains, plan)


@dataclass
class WorkerPoint:
    """A point as a worker knows it.

    Attributes
    ----------
    scores : ndarray
        Emissions of its tokens.
    path : ndarray
        The most violated labelling.
    plain : ndarray
        Weights besides those of the emissions, flat.
    stale : bool
        Whether the labelling is that of another point.
    """

    scores: np.ndarray
    path: np.ndarray
    plain: np.ndarray
    stale: bool = field(default=True)


class ChainsOnWorker:
    """Some of the sequences, on a worker.

    Parameters
    ----------
    plan : SumPlan
        Which parts, and how sums over their blocks are added up.
    share : ChainShare
        The sequences.
    threads : int
    """

    def __init__(self, plan: SumPlan, share: ChainShare, threads: int) -> None:
        self.points: dict[int, WorkerPoint] = {}
        self.examples = share.open(plan)
        self.plain = dataclasses.replace(share.shape, features=0)
        self.executor = make_executor(threads, self.examples.numbers)

    def point(self, slot: Slot) -> WorkerPoint:
        """What a slot stands for."""
        if slot.number not in self.points:
            point = self.examples.new_point(np.empty(0))
            plain = np.zeros(self.plain.dimension)
            self.points[slot.number] = WorkerPoint(point.scores, point.coef, plain)
        return self.points[slot.number]

    def infer(self, slot: Slot) -> list[np.ndarray]:
        """Viterbi's algorithm with the loss added: risk and offset by chunk."""
        point = self.point(slot)
        weights = self.plain.unpack(point.plain)
        point.stale = False
        return self.examples.chains.inferred(point.scores, weights, point.path, self.executor)

    def path(self, slot: Slot) -> np.ndarray:
        """The most violated labelling; it has to be found again on a worker that is new."""
        if self.point(slot).stale:
            self.infer(slot)
        return self.point(slot).path


@dataclass(frozen=True)
class HoldChains(Hold):
    """Hold sequences."""

    plan: SumPlan
    share: ChainShare

    def make(self, means: Means) -> ChainsOnWorker:
        return ChainsOnWorker(self.plan, self.share, means.threads)


@dataclass(frozen=True)
class MovePoint(Change):
    """Move a point to w."""

    w: np.ndarray
    into: Slot

    def run(self, chains: ChainsOnWorker) -> None:
        point = chains.point(self.into)
        chains.examples.score(self.w, point.scores, chains.executor)
        point.plain[...] = self.w[len(self.w) - len(point.plain) :]
        point.stale = True


@dataclass(frozen=True)
class BlendPoints(Change):
    """Move a point to start + k(end − start)."""

    start: Slot
    end: Slot
    k: float
    into: Slot

    def run(self, chains: ChainsOnWorker) -> None:
        a, b, point = map(chains.point, (self.start, self.end, self.into))
        vectors.blend(a.plain, b.plain, self.k, point.plain)
        rows = [some.scores.reshape(-1) for some in (a, b, point)]
        edges = chains.examples.matrix.bounds * chains.examples.shape.labels

        def part(number: int) -> None:
            here = slice(edges[number], edges[number + 1])
            vectors.blend(rows[0][here], rows[1][here], self.k, rows[2][here])

        chains.executor.run(part, len(edges) - 1)
        point.stale = True


@dataclass(frozen=True)
class CopyPoint(Change):
    """Move a point to another one."""

    point: Slot
    into: Slot

    def run(self, chains: ChainsOnWorker) -> None:
        other, point = chains.point(self.point), chains.point(self.into)
        point.scores[...], point.path[...] = other.scores, other.path
        point.plain[...], point.stale = other.plain, other.stale


@dataclass(frozen=True)
class Infer(Order):
    """Find the most violated labelling at a point: risk and offset by chunk."""

    point: Slot

    def run(self, chains: ChainsOnWorker) -> list[np.ndarray]:
        return chains.infer(self.point)


@dataclass(frozen=True)
class Roundings(Order):
    """At most what rounding takes off the risk at w by chunk."""

    w: np.ndarray
    point: Slot

    def run(self, chains: ChainsOnWorker) -> list[float]:
        scores = chains.point(self.point).scores
        return chains.examples.roundings(self.w, scores, chains.executor)


@dataclass(frozen=True)
class PlaneSlope(Order):
    """The derivative of the plane at a point, from start to end, by chunk."""

    point: Slot
    start: Slot
    end: Slot

    def run(self, chains: ChainsOnWorker) -> list[float]:
        a, b = chains.point(self.start), chains.point(self.end)
        return chains.examples.chains.slope(
            a.scores,
            b.scores,
            chains.plain.unpack(b.plain - a.plain),
            chains.path(self.point),
            chains.executor,
        )


@dataclass(frozen=True)
class Planes(Order):
    """The plane at a point, of the nodes of the plan."""

    point: Slot
    summed = True

    def run(self, chains: ChainsOnWorker) -> list[np.ndarray]:
        return chains.examples.planes(chains.path(self.point), chains.executor)


class ChainsOnCluster(JointModel):
    """All training sequences of a chain, on the workers of a cluster.

    A point's ``scores`` stand for what the workers have of it.

    Attributes
    ----------
    crew : Workers

    Parameters
    ----------
    examples : ChainExamples
        All of them, in parts.
    crew : Workers
        That hold nothing yet.
    workers : sequence of Worker
    """

    def __init__(self, examples: ChainExamples, crew: Workers, workers: Sequence[Worker]) -> None:
        self.crew = crew
        self.dimension = examples.dimension
        self.count = examples.count
        self._numbers = examples.numbers
        self._digest = examples.digest
        self._weight = examples.chains.weight
        edges = examples.plan.edges
        tokens = np.diff(examples.matrix.bounds[edges]).tolist()
        runs = share_parts(tokens, [worker.threads for worker in workers])
        plans = [SumPlan(edges, first, last) for first, last in runs]
        hold = Each([HoldChains(plan, _share(examples, plan)) for plan in plans])
        crew.vector_bytes = 8 * self.dimension
        crew.start(workers[: len(plans)], hold, plans)
        self._slots = 0

    @property
    def numbers(self) -> int:
        """Work of a pass here, in one place."""
        return self._numbers

    def digest(self) -> bytes:
        """Identifies the data, the labels and the loss."""
        return self._digest()

    def new_point(self, w: np.ndarray) -> Point:
        self._slots += 1
        return Point(w, Slot(self._slots))  # type: ignore[arg-type]

    def score(self, w: np.ndarray, scores: Any, executor: Executor) -> None:
        """The emissions: one product X·W, where the tokens are."""
        self.crew.post(MovePoint(w, scores))

    def blend_scores(
        self, start: Point, end: Point, k: float, into: Point, executor: Executor
    ) -> None:
        """Move what the workers have of a point to start + k(end − start)."""
        self.crew.post(BlendPoints(_slot(start), _slot(end), k, _slot(into)))

    def copy_scores(self, point: Point, into: Point) -> None:
        """Move what the workers have of a point to another one."""
        self.crew.post(CopyPoint(_slot(point), _slot(into)))

    def begin_anew(self) -> None:
        """No point before matters any more."""
        self.crew.forget()

    def infer(self, point: Point, executor: Executor) -> None:
        """One round."""
        parts = self.crew.gather(Infer(_slot(point)))
        point.risk, point.offset = map(float, np.sum(parts, axis=0))

    def upper(self, point: Point, executor: Executor) -> float:
        """One more round, for the errors of the emissions."""
        roundings = self.crew.gather(Roundings(point.w, _slot(point)))
        return upper(point.risk, roundings, self._weight)

    def slopes(self, line: Line, executor: Executor) -> Callable[[Point], float]:
        start, end = _slot(line.start), _slot(line.end)
        return lambda point: sum(self.crew.gather(PlaneSlope(_slot(point), start, end)))

    def plane(self, point: Point, executor: Executor) -> np.ndarray:
        """Sums of features over the wrong tokens, one or a few vectors from each worker."""
        return np.array(self.crew.sum(Planes(_slot(point))))


def _slot(point: Point) -> Slot:
    """What stands for the scores of a point."""
    slot: Any = point.scores
    assert isinstance(slot, Slot)
    return slot


def _share(examples: ChainExamples, plan: SumPlan) -> ChainShare:
    chains, matrix = examples.chains, examples.matrix
    chunks = chains.chunks.held(plan)
    tokens = slice(matrix.bounds[plan.blocks.start], matrix.bounds[plan.blocks.stop])
    return ChainShare(
        MemoryShare([travelling(matrix.blocks[k]) for k in plan.blocks], matrix.shape[1]),
        chunks,
        chains.truth[tokens],
        chains.shape,
        chains.loss,
        chains.weight,
    )
