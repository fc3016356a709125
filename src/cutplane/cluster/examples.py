"""Examples of structured outputs on workers, which run the users' inference for them.

Workers get their chunks of examples once, pickled; one that is lost is replaced by another one
that gets the same chunks and repeats the passes that are kept. Where outputs are small workers
send them along, and cuts from them take no round. The log of orders has a w for each pass that is
kept, and no more.
"""

from __future__ import annotations

import dataclasses
import itertools
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.sums import share_parts
from ..exec import Executor, make_executor, pickled
from ..structured.examples import Chunk, Inference
from ..structured.linear import ChunksHere, Share, Stored, plan_for
from ..structured.problem import take
from .orders import Change, Each, Hold, Means, Order
from .workers import Worker, Workers

# Numbers in the outputs of a pass that workers send here, so that cuts from them take no round.
SENT_NUMBERS = 1 << 20


@dataclass
class ChunksOnWorker:
    """Some of the chunks, on a worker."""

    here: ChunksHere
    executor: Executor


@dataclass(frozen=True)
class HoldChunks(Hold):
    """Hold examples and their problem, pickled.

    Attributes
    ----------
    count, first, last : int
        Number of all chunks, and which of them.
    threads : bool
        Whether the worker's threads can run the inference side by side.
    problem, chunks : ndarray
        Pickled.
    """

    count: int
    first: int
    last: int
    threads: bool
    problem: np.ndarray
    chunks: np.ndarray

    def make(self, means: Means) -> ChunksOnWorker:
        try:
            problem = pickle.loads(self.problem.data)
            chunks: list[Chunk] = pickle.loads(self.chunks.data)
        except Exception as error:
            raise ValueError(
                f"the problem or its examples cannot be unpickled here: {type(error).__name__}: "
                f"{error}; what they are made of must be installed on every worker (a single "
                "module: client.upload_file)"
            ) from error
        for chunk in chunks:
            chunk.problem = problem
        plan = plan_for(self.count, self.first, self.last)
        executor = make_executor(means.threads if self.threads else 1, 1 << 40)
        return ChunksOnWorker(ChunksHere(Inference(chunks, self.threads), plan), executor)


@dataclass(frozen=True)
class InferPass(Order):
    """A pass of inference; if outputs are kept, and not more than ``sent``, they come along."""

    w: np.ndarray
    most: int
    keep: bool
    sent: int

    @property
    def lasting(self) -> bool:
        """Cuts are made from passes that are kept."""
        return self.keep

    def run(self, chunks: ChunksOnWorker) -> Share:
        share = chunks.here.infer(self.w, self.most, self.keep, chunks.executor)[0]
        if self.keep and share.n_stored <= self.sent:
            share = dataclasses.replace(share, answers=chunks.here.state(self.most + 1)[-1])
        return share


@dataclass(frozen=True)
class CutFromKept(Order):
    """The highest cut at w from the last ``most`` passes."""

    w: np.ndarray
    most: int

    def run(self, chunks: ChunksOnWorker) -> Share:
        return chunks.here.cut(self.w, self.most)[0]


@dataclass(frozen=True)
class KeptPasses(Order):
    """The last ``most`` passes."""

    most: int

    def run(self, chunks: ChunksOnWorker) -> list[list[Stored]]:
        return chunks.here.state(self.most)


@dataclass(frozen=True)
class RestorePasses(Change):
    """Return to passes that were kept."""

    state: list[list[Stored]]

    def run(self, chunks: ChunksOnWorker) -> None:
        chunks.here.restore(self.state)


class ChunksOnCluster:
    """Chunks on the workers of a cluster, each on one of them.

    Parameters
    ----------
    crew : Workers
        That hold nothing yet.
    workers : sequence of Worker
    chunks : sequence of Chunk
    threads : bool
        Whether the threads of a worker can run the inference side by side.
    """

    def __init__(
        self, crew: Workers, workers: Sequence[Worker], chunks: Sequence[Chunk], threads: bool
    ) -> None:
        self.crew = crew
        powers = [worker.threads if threads else 1 for worker in workers]
        runs = share_parts([len(chunk) for chunk in chunks], powers)
        self._runs = [slice(first, last) for first, last in runs]
        problem = _pickled_problem(chunks[0].problem)
        hold = [
            HoldChunks(len(chunks), first, last, threads, problem, _pickled_chunks(chunks[run]))
            for (first, last), run in zip(runs, self._runs, strict=True)
        ]
        crew.start(workers[: len(runs)], Each(hold))
        self._base = len(crew.log)
        # The passes that are kept there, if they are small: cuts from them then take no round.
        self._kept = ChunksHere(Inference(chunks, threads))
        self._complete = True
        self._sent = SENT_NUMBERS // len(runs)

    def infer(self, w: np.ndarray, most: int, keep: bool, executor: Executor) -> list[Share]:
        self._forget(most)
        shares: list[Share] = self.crew.ask(InferPass(w.copy(), most, keep, self._sent))
        if keep:
            answers = [share.answers for share in shares]
            self._complete = self._complete and None not in answers
            if self._complete:
                self._kept.add([stored for some in answers for stored in some or ()], most)
            else:
                self._kept.restore([])
        return shares

    def _forget(self, most: int) -> None:
        """Let the log begin with the first pass that is kept, or with a state before it."""
        passes = self.crew.log[self._base :]
        begin = len(passes) - most
        if begin > 0 and all(isinstance(order, InferPass) for order in passes[begin:]):
            self.crew.log = [*self.crew.log[: self._base], *passes[begin:]]

    def cut(self, w: np.ndarray, most: int) -> list[Share]:
        if not self._complete:
            return self.crew.ask(CutFromKept(w, most))
        return self._kept.cut(w, most)

    def state(self, most: int) -> list[list[Stored]]:
        parts = self.crew.ask(KeptPasses(most))
        return [list(itertools.chain(*passes)) for passes in zip(*parts, strict=True)]

    def restore(self, state: list[list[Stored]]) -> None:
        self.crew.forget()
        own = [[answers[run] for answers in state] for run in self._runs]
        self.crew.ask(Each([RestorePasses(passes) for passes in own]))
        self._kept.restore(state)
        self._complete = True


def _sent(value: Any) -> np.ndarray:
    """Pickled, as an array: such are sent without another copy."""
    return np.frombuffer(pickled(value), dtype=np.uint8)


def _pickled_problem(problem: Any) -> np.ndarray:
    try:
        return _sent(problem)
    except Exception as error:
        raise ValueError(
            f"{type(problem).__name__} cannot be pickled for the workers: {type(error).__name__}: "
            f"{error}; a problem must not hold locks, open files or the like"
        ) from error


def _pickled_chunks(chunks: Sequence[Chunk]) -> np.ndarray:
    """Chunks as they travel, without the problem."""
    bare = [chunk.bare() for chunk in chunks]
    try:
        return _sent(bare)
    except Exception as error:
        number = next((n for chunk in chunks if (n := _culprit(chunk)) is not None), None)
        which = "examples" if number is None else f"example {number}"
        raise ValueError(
            f"{which} cannot be pickled for the workers: {type(error).__name__}: {error}"
        ) from error


def _culprit(chunk: Chunk) -> int | None:
    """The first example that cannot be pickled."""
    for i in range(len(chunk)):
        try:
            pickled((take(chunk.X, [i]), take(chunk.Y, [i])))
        except Exception:
            return chunk.numbers[i]
    return None
