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
from ..data.sums import SumPlan, add_nodes, share_parts
from ..exec import Executor, make_executor
from ..exec.orders import Order, Recipe, Worker, play
from ..loops import vectors
from ..oracles import Cut, Line, Point
from ..oracles.holder import Slot
from ..oracles.rounds import Rounds
from .chain import ChainExamples, ChainShape, Chunks, LabelledChains, upper


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
class Place:
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
    """

    def __init__(self, plan: SumPlan) -> None:
        self._plan = plan
        self._places: dict[int, Place] = {}

    def play(self, orders: Sequence[tuple[Any, ...]]) -> tuple[list[Any], float]:
        """Do what is ordered, one after the other; the answers, and the seconds it took."""
        return play(self, orders)

    def load(self, share: ChainShare) -> None:
        """Take sequences."""
        from ..exec.cluster import worker_threads

        self._examples = share.open(self._plan)
        self._plain = dataclasses.replace(share.shape, features=0)
        self._executor = make_executor(worker_threads(), self._examples.numbers)

    def _place(self, slot: Slot) -> Place:
        if slot.number not in self._places:
            point = self._examples.new_point(np.empty(0))
            plain = np.zeros(self._plain.dimension)
            self._places[slot.number] = Place(point.scores, point.coef, plain)
        return self._places[slot.number]

    def place(self, w: np.ndarray, slot: Slot) -> None:
        """Move a point to w."""
        place = self._place(slot)
        self._examples.score(w, place.scores, self._executor)
        place.plain[...] = w[len(w) - len(place.plain) :]
        place.stale = True

    def blend(self, start: Slot, end: Slot, k: float, into: Slot) -> None:
        """Move a point to start + k(end − start)."""
        a, b, place = self._place(start), self._place(end), self._place(into)
        vectors.blend(a.plain, b.plain, k, place.plain)
        rows = [part.reshape(-1) for part in (a.scores, b.scores, place.scores)]
        edges = self._examples.matrix.bounds * self._examples.shape.labels

        def part(number: int) -> None:
            here = slice(edges[number], edges[number + 1])
            vectors.blend(rows[0][here], rows[1][here], k, rows[2][here])

        self._executor.run(part, len(edges) - 1)
        place.stale = True

    def copy(self, point: Slot, into: Slot) -> None:
        """Move a point to another one."""
        other, place = self._place(point), self._place(into)
        place.scores[...], place.path[...] = other.scores, other.path
        place.plain[...], place.stale = other.plain, other.stale

    def infer(self, slot: Slot) -> list[np.ndarray]:
        """Viterbi's algorithm with the loss added: risk and offset by chunk."""
        place = self._place(slot)
        weights = self._plain.unpack(place.plain)
        place.stale = False
        return self._examples.chains.inferred(place.scores, weights, place.path, self._executor)

    def roundings(self, w: np.ndarray, slot: Slot) -> list[float]:
        """At most what rounding takes off the risk at w by chunk."""
        return self._examples.roundings(w, self._place(slot).scores, self._executor)

    def _path(self, slot: Slot) -> np.ndarray:
        """The most violated labelling; it has to be found again on a worker that is new."""
        if self._place(slot).stale:
            self.infer(slot)
        return self._place(slot).path

    def slope(self, point: Slot, start: Slot, end: Slot) -> list[float]:
        """The derivative of the plane at a point, from start to end, by chunk."""
        a, b = self._place(start), self._place(end)
        return self._examples.chains.slope(
            a.scores,
            b.scores,
            self._plain.unpack(b.plain - a.plain),
            self._path(point),
            self._executor,
        )

    def planes(self, slot: Slot) -> list[np.ndarray]:
        """The plane at a point, of the nodes of the plan."""
        return self._examples.planes(self._path(slot), self._executor)


class ChainsOnCluster:
    """All training sequences of a chain, on the workers of a cluster; a ``JointModel``.

    A point's ``scores`` stand for what the workers have of it.

    Attributes
    ----------
    crew : Crew

    Parameters
    ----------
    examples : ChainExamples
        All of them, in parts.
    crew : Crew
        With nobody hired yet.
    workers : sequence of Worker
    """

    def __init__(self, examples: ChainExamples, crew: Any, workers: Sequence[Worker]) -> None:
        self.crew = crew
        self.dimension = examples.dimension
        self.count = examples.count
        self.numbers = examples.numbers
        self._digest = examples.digest
        self._weight = examples.chains.weight
        edges = examples.plan.edges
        tokens = np.diff(examples.matrix.bounds[edges]).tolist()
        runs = share_parts(tokens, [worker.threads for worker in workers])
        plans = [SumPlan(edges, first, last) for first, last in runs]
        self._nodes = [node for plan in plans for node in plan.nodes]
        self._parts = len(edges) - 1
        shares = [_share(examples, plan) for plan in plans]
        crew.hire([Recipe(ChainsOnWorker, (plan,)) for plan in plans], workers[: len(plans)])
        crew.round([Order("load", shares=shares, lasting=True)])
        self._rounds = Rounds(crew)
        self._rounds.set_base(len(crew.log))
        self._slots = 0

    def digest(self) -> bytes:
        """Identifies the data, the labels and the loss."""
        return self._digest()

    def new_point(self, w: np.ndarray) -> Point:
        self._slots += 1
        return Point(w, Slot(self._slots))  # type: ignore[arg-type]

    def score(self, w: np.ndarray, scores: Any, executor: Executor) -> None:
        """The emissions: one product X·W, where the tokens are."""
        self._rounds.post("place", w, scores)

    def blend_scores(self, start: Point, end: Point, k: float, into: Point) -> None:
        """Move what the workers have of a point to start + k(end − start)."""
        self._rounds.post("blend", start.scores, end.scores, k, into.scores)

    def copy_scores(self, point: Point, into: Point) -> None:
        """Move what the workers have of a point to another one."""
        self._rounds.post("copy", point.scores, into.scores)

    def begin_anew(self) -> None:
        """No point before matters any more."""
        self._rounds.begin()

    def infer(self, point: Point, executor: Executor) -> None:
        """One round."""
        parts = self._rounds.ask("infer", point.scores)
        point.risk, point.offset = map(float, np.sum(parts, axis=0))

    def upper(self, point: Point, executor: Executor) -> float:
        """One more round, for the errors of the emissions."""
        return upper(point.risk, self._rounds.ask("roundings", point.w, point.scores), self._weight)

    def slopes(self, line: Line, executor: Executor) -> Callable[[Point], float]:
        start, end = line.start.scores, line.end.scores
        return lambda point: sum(self._rounds.ask("slope", point.scores, start, end))

    def plane(self, point: Point, executor: Executor) -> np.ndarray:
        """Sums of features over the wrong tokens, one or a few vectors from each worker."""
        sums = self._rounds.ask("planes", point.scores)
        total = add_nodes(dict(zip(self._nodes, sums, strict=True)), self._parts)
        return np.array(total)

    def cheap_cut(self, w: np.ndarray) -> Cut | None:
        """None, as where all sequences are in one place."""
        return None

    def state(self) -> dict[str, Any]:
        """Nothing: the answers depend on w alone."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to do."""


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
