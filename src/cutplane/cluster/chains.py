"""Chains on the workers of a cluster: emissions and labellings stay with the tokens.

A worker holds some consecutive parts of the sequences. For every point it holds the emissions of
its tokens, the weights that are not weights of emissions, and the most violated labelling. Orders
move a point to w, or to a place between two other points. The worker answers with risks, slopes and
planes, by chunk or by node of the tree of sums. The client adds the answers in the same order as a
fit on one machine does. If a worker is lost, another worker gets the same sequences and repeats all
moves since the points were last computed from w.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..data.partitions import MemoryShare, travelling
from ..data.sums import SumPlan, share_parts
from ..exec import Executor, make_executor
from ..loops import vectors
from ..objective import Line, Point
from ..objective.structured import JointModel
from ..structured.chain import ChainExamples, LabelledChains, upper
from .orders import Each, Hold, Means, Order
from .rows import Slot
from .workers import Workers


@dataclass
class WorkerPoint:
    """A worker's part of a point.

    Attributes
    ----------
    scores : ndarray
        Emissions of the worker's tokens.
    path : ndarray
        The most violated labelling.
    plain : ndarray
        The weights that are not weights of emissions, flat.
    stale : bool
        Whether ``path`` belongs to another point, so that inference must run again.
    """

    scores: np.ndarray
    path: np.ndarray
    plain: np.ndarray
    stale: bool = field(default=True)


class ChainsOnWorker:
    """Some of the sequences, on a worker. Orders call its methods.

    Parameters
    ----------
    means : Means
    plan : SumPlan
        The parts of this worker, and how to add sums over their blocks.
    tokens : MemoryShare
    chains : LabelledChains
        The sequences of these parts.
    """

    def __init__(
        self, means: Means, plan: SumPlan, tokens: MemoryShare, chains: LabelledChains
    ) -> None:
        self._points: dict[Slot, WorkerPoint] = {}
        # Arrays from the network may be read-only, and numba would compile the loops again for
        # read-only arrays. So these are copied.
        chains.truth, starts = np.array(chains.truth), np.array(chains.starts)
        chains.starts = chains.chunks.starts = starts
        self._examples = ChainExamples(tokens.open(), chains, plan)
        self._plain = dataclasses.replace(chains.shape, features=0)
        self._executor = make_executor(means.threads, self._examples.numbers)

    def _point(self, slot: Slot) -> WorkerPoint:
        """The point that a slot names."""
        if slot not in self._points:
            point = self._examples.new_point(np.empty(0))
            plain = np.zeros(self._plain.dimension)
            self._points[slot] = WorkerPoint(point.scores, point.coef, plain)
        return self._points[slot]

    def move(self, w: np.ndarray, into: Slot) -> None:
        """Move a point to w."""
        point = self._point(into)
        self._examples.score(w, point.scores, self._executor)
        point.plain[...] = w[len(w) - len(point.plain) :]
        point.stale = True

    def blend(self, start: Slot, end: Slot, k: float, into: Slot) -> None:
        """Move a point to start + k(end − start)."""
        a, b, point = map(self._point, (start, end, into))
        vectors.blend(a.plain, b.plain, k, point.plain)
        rows = [some.scores.reshape(-1) for some in (a, b, point)]
        edges = self._examples.matrix.bounds * self._examples.shape.labels

        def part(number: int) -> None:
            here = slice(edges[number], edges[number + 1])
            vectors.blend(rows[0][here], rows[1][here], k, rows[2][here])

        self._executor.run(part, len(edges) - 1)
        point.stale = True

    def copy(self, source: Slot, into: Slot) -> None:
        """Move a point to another one."""
        other, point = self._point(source), self._point(into)
        point.scores[...], point.path[...] = other.scores, other.path
        point.plain[...], point.stale = other.plain, other.stale

    def infer(self, slot: Slot) -> list[np.ndarray]:
        """Find the most violated labelling at a point; returns risk and offset by chunk."""
        point = self._point(slot)
        weights = self._plain.unpack(point.plain)
        point.stale = False
        return self._examples.chains.infer(point.scores, weights, point.path, self._executor)

    def _path(self, slot: Slot) -> np.ndarray:
        """The most violated labelling. A worker that replaces another one must find it again."""
        if self._point(slot).stale:
            self.infer(slot)
        return self._point(slot).path

    def roundings(self, w: np.ndarray, slot: Slot) -> list[float]:
        """By chunk, a bound on how much rounding reduces the risk at w."""
        return self._examples.roundings(w, self._point(slot).scores, self._executor)

    def plane_slope(self, slot: Slot, start: Slot, end: Slot) -> list[float]:
        """The derivative of the plane at a point, from start to end, by chunk."""
        a, b = self._point(start), self._point(end)
        return self._examples.chains.slope(
            a.scores,
            b.scores,
            self._plain.unpack(b.plain - a.plain),
            self._path(slot),
            self._executor,
        )

    def planes(self, slot: Slot) -> list[np.ndarray]:
        """The plane at a point, summed for each node of the plan."""
        return self._examples.planes(self._path(slot), self._executor)


class ChainsOnCluster(JointModel):
    """All training sequences of a chain, on the workers of a cluster.

    A point's ``scores`` are a slot, which names the workers' parts of the point.

    Attributes
    ----------
    crew : Workers

    Parameters
    ----------
    examples : ChainExamples
        All sequences, in parts.
    crew : Workers
        Workers that hold nothing yet.
    """

    def __init__(self, examples: ChainExamples, crew: Workers) -> None:
        self.crew = crew
        workers = crew.checked()
        self.dimension = examples.dimension
        self.count = examples.count
        self.numbers = examples.numbers
        self._digest = examples.digest
        self._weight = examples.chains.weight
        edges = examples.sum.plan.edges
        tokens = np.diff(examples.matrix.bounds[edges]).tolist()
        runs = share_parts(tokens, [worker.threads for worker in workers])
        plans = [SumPlan(edges, first, last) for first, last in runs]
        hold = Each([Hold(ChainsOnWorker, plan, *_share(examples, plan)) for plan in plans])
        crew.vector_bytes = 8 * self.dimension
        crew.start(workers[: len(plans)], hold, plans)
        self._slots = 0

    def digest(self) -> bytes:
        """Identifies the data, the labels and the loss."""
        return self._digest()

    def new_point(self, w: np.ndarray) -> Point:
        self._slots += 1
        return Point(w, Slot(self._slots))  # type: ignore[arg-type]

    def _post(self, method: Callable[..., None], *arguments: Any) -> None:
        self.crew.post(Order(method, *arguments, lasting=True))

    def score(self, w: np.ndarray, scores: Any, executor: Executor) -> None:
        """Have the workers compute the emissions, one product X·W."""
        self._post(ChainsOnWorker.move, w, scores)

    def blend_scores(
        self, start: Point, end: Point, k: float, into: Point, executor: Executor
    ) -> None:
        """Move the workers' parts of a point to start + k(end − start)."""
        self._post(ChainsOnWorker.blend, start.scores, end.scores, k, into.scores)

    def copy_scores(self, point: Point, into: Point) -> None:
        """Move the workers' parts of a point to another point."""
        self._post(ChainsOnWorker.copy, point.scores, into.scores)

    def begin_anew(self) -> None:
        """Earlier points are no longer needed, so their moves are removed from the log."""
        self.crew.forget()

    def infer(self, point: Point, executor: Executor) -> None:
        """Run inference on all workers, in one round."""
        parts = self.crew.gather(Order(ChainsOnWorker.infer, point.scores))
        point.risk, point.offset = map(float, np.sum(parts, axis=0))

    def upper(self, point: Point, executor: Executor) -> float:
        """The risk, rounded up. The rounding errors of the emissions take one more round."""
        roundings = self.crew.gather(Order(ChainsOnWorker.roundings, point.w, point.scores))
        return upper(point.risk, roundings, self._weight)

    def slopes(self, line: Line, executor: Executor) -> Callable[[Point], float]:
        ends = line.start.scores, line.end.scores
        return lambda point: sum(
            self.crew.gather(Order(ChainsOnWorker.plane_slope, point.scores, *ends))
        )

    def plane(self, point: Point, executor: Executor) -> np.ndarray:
        """Sums of features over the wrong tokens, one or a few vectors from each worker."""
        return np.array(self.crew.sum(Order(ChainsOnWorker.planes, point.scores, summed=True)))


def _share(examples: ChainExamples, plan: SumPlan) -> tuple[MemoryShare, LabelledChains]:
    """The tokens and the sequences of some parts."""
    chains, matrix, blocks = examples.chains, examples.matrix, plan.blocks
    chunks = chains.chunks.held(plan)
    truth = chains.truth[matrix.bounds[blocks.start] : matrix.bounds[blocks.stop]]
    own = LabelledChains(
        chunks.starts, truth, chains.shape, chains.loss, chunks=chunks, weight=chains.weight
    )
    return MemoryShare([travelling(matrix.blocks[k]) for k in blocks], matrix.shape[1]), own
