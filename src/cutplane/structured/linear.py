"""A user's problem with linear scores.

Let z_i be the output that a pass of inference finds for example i. It has the row
Ψ(x_i, z_i) − Ψ(x_i, y_i) and the offset Δ(y_i, z_i), and its loss is

    offset_i + <row_i, w>,

or 0 for the truth. A cut is a sum of rows and offsets over the examples, with any output for each
example. The highest cut at w has the most violated outputs. The outputs of the last passes are
kept. They give cuts without inference. They also show whether inference is exact: it is not, if an
answer is less violated than a known output.

Rows are summed by chunk of examples, and the sums of chunks along the tree of ``data.sums``. This
process or a worker of a cluster computes a ``Share`` of a cut from the chunks that it holds, and
the sum of the shares has the same bits, however the chunks are divided. Chunks depend on the number
of examples alone.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from ..data.sums import Node, SumPlan, add_nodes
from ..exec import Executor
from ..loops.bounded import MANY
from ..loops.bounded import ROUNDING as UNIT
from ..objective import Cut, Line, Point
from ..objective.structured import JointModel
from . import rows
from .examples import ROUNDING, Chunk, Examples, Inference, RowAnswers

# Largest number of stored values in the cache of outputs.
CACHE_NUMBERS = 1 << 26
# A chunk's outputs in a checkpoint: rows and offsets.
Stored = tuple[rows.Rows, np.ndarray]


def plan_for(chunks: int, first: int = 0, last: int | None = None) -> SumPlan:
    """The plan for sums over the chunks ``first`` to ``last`` − 1 of all ``chunks``."""
    return SumPlan(np.arange(chunks + 1), first, chunks if last is None else last)


@dataclass(frozen=True)
class Share:
    """The contribution of some consecutive chunks to a cut.

    Attributes
    ----------
    planes : list of ndarray
        Sums of rows, one for each node of the plan.
    offsets, risks : list of float
        One entry per chunk.
    errors : list of float
        For each chunk, a bound on how much rounding has reduced the risk.
    below : int or None
        The first example whose new output is less violated than an output known before.
    n_stored : int
        Values stored in the new outputs.
    answers : list or None
        The new outputs by chunk, if the client wants a copy of them.
    """

    planes: list[np.ndarray]
    offsets: list[float]
    risks: list[float]
    errors: list[float] = field(default_factory=list)
    below: int | None = None
    n_stored: int = 0
    answers: list[Stored] | None = None


class ChunksHere:
    """Chunks in this process, and their outputs of the last passes.

    Parameters
    ----------
    inference : Inference
        Inference for these chunks.
    plan : SumPlan, optional
        Needed if these are only some of all chunks.
    """

    def __init__(self, inference: Inference, plan: SumPlan | None = None) -> None:
        self._inference = inference
        self._plan = plan or plan_for(len(inference.chunks))
        self._passes: deque[list[RowAnswers]] = deque()

    def infer(self, w: np.ndarray, most: int, keep: bool, executor: Executor) -> list[Share]:
        """A pass of inference. Before it, forget all but the last ``most`` passes.

        The cut is the highest one from the new outputs and the kept outputs.
        """
        self._trim(most)
        chunks = self._inference.chunks
        answers = self._inference.call_each(Chunk.row_answers, [(w,)] * len(chunks), executor)
        below: list[int] = []
        chosen, errors = [], []
        for k, answer in enumerate(answers):
            one = _highest([answer, *(kept[k] for kept in self._passes)], w)
            slack = ROUNDING * (1.0 + answer.offsets + rows.sizes(answer.rows) * np.linalg.norm(w))
            less = answer.values(w) < one[0] - slack
            if less.any():
                below.append(chunks[k].numbers[int(np.argmax(less))])
            chosen.append(one)
            errors.append(0.0 if answer.errors is None else float(answer.errors.sum()))
        if keep:
            self._passes.append(answers)
        share = self._share(
            chosen,
            errors=errors,
            below=below[0] if below else None,
            n_stored=sum(answer.rows.nnz for answer in answers),
        )
        return [share]

    def cut(self, w: np.ndarray, most: int) -> list[Share]:
        """The highest cut at w from the last ``most`` passes."""
        self._trim(most)
        chunks = range(len(self._inference.chunks))
        return [self._share(_highest([kept[k] for kept in self._passes], w) for k in chunks)]

    def _share(self, chosen: Iterable[_Highest], **facts: Any) -> Share:
        planes: list[np.ndarray] = []
        offsets, risks = [], []
        for (values, plane, offset), merges in zip(chosen, self._plan.merges, strict=True):
            planes.append(plane)
            offsets.append(offset)
            risks.append(float(values.sum()))
            for _ in range(merges):
                planes[-2] += planes[-1]
                planes.pop()
        return Share(planes, offsets, risks, **facts)

    def _trim(self, most: int) -> None:
        while len(self._passes) > most:
            self._passes.popleft()

    def add(self, answers: Sequence[Stored], most: int) -> None:
        """Keep the outputs of a pass that ran on workers, and of ``most`` passes before it."""
        self._trim(most)
        self._passes.append([RowAnswers(*kept) for kept in answers])

    def state(self, most: int) -> list[list[Stored]]:
        """The last ``most`` passes, by chunk."""
        self._trim(most)
        return [[(kept.rows, kept.offsets) for kept in answers] for answers in self._passes]

    def restore(self, state: Sequence[Sequence[Stored]]) -> None:
        """Return to a state."""
        self._passes.clear()
        for number, answers in enumerate(state):
            self.add(answers, number)


# The largest losses of the examples of a chunk, and the sums of their rows and offsets.
_Highest = tuple[np.ndarray, np.ndarray, float]


def _highest(known: Sequence[RowAnswers], w: np.ndarray) -> _Highest:
    """The most violated of several outputs per example of a chunk, the truth among them."""
    values = np.stack([np.zeros(len(known[0].offsets)), *(a.values(w) for a in known)])
    # Among equally violated outputs take the first, but not the truth: the truth has the row 0, so
    # another output gives a steeper cut.
    best = values[1:].argmax(axis=0)
    best[values.max(axis=0) > values[1:].max(axis=0)] = -1
    plane = np.zeros(len(w))
    offset = 0.0
    for number, answers in enumerate(known):
        mine = best == number
        if mine.any():
            plane += answers.rows.T @ mine
            offset += float(answers.offsets[mine].sum())
    return values.max(axis=0), plane, offset


class LinearExamples(JointModel):
    """All examples of a problem whose model is a vector w.

    Attributes
    ----------
    dimension : int
        Of w.
    crew : Workers or None
        The workers that run the inference.

    Parameters
    ----------
    examples : Examples
    cache_size : int
        Number of passes whose outputs are kept.
    """

    has_scores = False

    def __init__(self, examples: Examples, cache_size: int) -> None:
        self.examples = examples
        self.dimension = examples.dimension
        self.count = examples.count
        # A large number, so that threads are used if the inference allows it.
        self.numbers = 1 << 40 if examples.threads else self.dimension
        self.crew: Any = None
        self._chunks = examples.inference.chunks
        self._cache_size = cache_size
        self._kept = 0
        self._holders: Any = ChunksHere(examples.inference)  # replaced by ``send``

    def send(self, crew: Any, holders: Any) -> None:
        """Send the chunks to the workers of a cluster, which then run the inference."""
        self._holders = holders
        self.crew = crew

    def digest(self) -> bytes:
        """A fingerprint of problem and data. If they cannot be pickled, it is new every time."""
        import joblib

        try:
            return joblib.hash(self.examples.identity).encode()
        except Exception:  # pickling may call the user's code, which may raise anything
            return os.urandom(16)

    # -- as the oracle sees it ------------------------------------------------

    def new_point(self, w: np.ndarray) -> Point:
        return Point(w, np.zeros(0), coef=np.zeros(self.dimension))

    def score(self, w: np.ndarray, scores: np.ndarray, executor: Executor) -> None:
        """Does nothing, because the user's inference starts from w and has no scores."""

    def infer(self, point: Point, executor: Executor) -> None:
        """A pass of inference. If a known output is more violated than the answer, it is used."""
        keep = self._cache_size > 0
        shares = self._holders.infer(point.w, self._kept, keep, executor)
        for share in shares:
            self.examples.note(share.below)
        point.coef[...] = self._plane(shares) / self.count
        point.offset = _sum([share.offsets for share in shares]) / self.count
        point.risk = _sum([share.risks for share in shares]) / self.count
        point.error = _sum([share.errors for share in shares]) / self.count
        size = sum(share.n_stored for share in shares)
        self._kept = min(self._kept + keep, self._cache_size, CACHE_NUMBERS // max(1, size))

    def upper(self, point: Point, executor: Executor) -> float:
        """The risk, rounded up by the bounds that the last inference at the point returned."""
        return (point.risk + point.error) * (1.0 + (MANY + self.count) * UNIT)

    def _plane(self, shares: Sequence[Share]) -> np.ndarray:
        planes = [plane for share in shares for plane in share.planes]
        return add_nodes(dict(zip(self._nodes(shares), planes, strict=True)), len(self._chunks))

    def _nodes(self, shares: Sequence[Share]) -> list[Node]:
        """The nodes of all shares: for each share, the runs of chunks that its sums are over."""
        last = itertools.accumulate(len(share.offsets) for share in shares)
        edges = itertools.pairwise([0, *last])
        return [node for a, b in edges for node in plan_for(len(self._chunks), a, b).nodes]

    def slopes(self, line: Line, executor: Executor) -> Callable[[Point], float]:
        way = line.end.w - line.start.w
        return lambda point: float(np.einsum("i,i->", point.coef, way))

    def plane(self, point: Point, executor: Executor) -> np.ndarray:
        return point.coef.copy()

    # -- the cache ------------------------------------------------------------

    def cheap_cut(self, w: np.ndarray) -> Cut | None:
        """The highest cut at w from the kept answers."""
        if self._kept < 2:  # a single pass only gives the cut that the bundle has already
            return None
        shares = self._holders.cut(w, self._kept)
        offset = _sum([share.offsets for share in shares])
        return Cut(self._plane(shares) / self.count, offset / self.count)

    def state(self) -> dict[str, Any]:
        """The cache of outputs, and whether inference turned out not to be exact."""
        return {
            "nonmaximal": self.examples.nonmaximal,
            "cache": self._holders.state(self._kept),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Return to a state."""
        cache = [[(scipy.sparse.csr_array(m), offsets) for m, offsets in k] for k in state["cache"]]
        expected = [(len(chunk), self.dimension) for chunk in self._chunks]
        if any([matrix.shape for matrix, _ in kept] != expected for kept in cache):
            raise ValueError("kept outputs are of other examples")
        for matrix, offsets in itertools.chain(*cache):
            for numbers in (matrix.data, offsets):
                if numbers.dtype != np.float64 or not np.isfinite(numbers).all():
                    raise ValueError("kept outputs are not finite numbers")
            if offsets.shape != matrix.shape[:1]:
                raise ValueError("kept outputs do not have a loss each")
        self.examples.nonmaximal = state["nonmaximal"]
        self._holders.restore(cache)
        self._kept = len(cache)


def _sum(parts: Sequence[Sequence[float]]) -> float:
    """The sum over chunks, in their order."""
    return sum(itertools.chain(*parts))
