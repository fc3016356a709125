"""Examples in chunks, and who runs the inference for them: this process, others, or workers.

Chunks depend on the number of examples alone. Wherever they are, a pass is answered as a ``Share``
of a cut, and the passes before are kept where the chunks are (where processes of our own
run the inference, here). Workers of a cluster get their chunks once, pickled; one that
is lost is replaced by another one that gets the same chunks and repeats the passes that
are kept. Where outputs are small workers send them along, and cuts from them take no round.
"""

from __future__ import annotations

import dataclasses
import itertools
import pickle
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ..data.sums import SumPlan, share_parts
from ..exec import Executor, make_executor
from ..exec.orders import Order, Recipe, Worker, play
from ..exec.processes import pickled, portable
from .examples import Chunk, Inference
from .kept import KeptAnswers, Share, Stored
from .problem import take

# Numbers in the outputs of a pass that workers send here, so that cuts from them take no round.
SENT_NUMBERS = 1 << 20


def plan_for(chunks: int, first: int = 0, last: int | None = None) -> SumPlan:
    """How the sums over some of so many chunks are formed."""
    return SumPlan(np.arange(chunks + 1), first, chunks if last is None else last)


class Holders(Protocol):
    """Those who hold the chunks."""

    def infer(self, w: np.ndarray, most: int, keep: bool, executor: Executor) -> list[Share]:
        """A pass of inference, when all but the last ``most`` passes are forgotten."""
        ...

    def cut(self, w: np.ndarray, most: int) -> list[Share]:
        """The highest cut at w from the last ``most`` passes."""
        ...

    def state(self, most: int) -> list[list[Stored]]:
        """The last ``most`` passes."""
        ...

    def restore(self, state: list[list[Stored]]) -> None:
        """Return to a state."""
        ...


class ChunksHere:
    """Chunks in this process, with inference in it or in processes of its own.

    Parameters
    ----------
    inference : Inference
        Of these chunks.
    plan : SumPlan, optional
        If these are some of all chunks.
    """

    def __init__(self, inference: Inference, plan: SumPlan | None = None) -> None:
        self._inference = inference
        self._count = len(inference.chunks)
        self._kept = KeptAnswers(plan or plan_for(self._count), inference.chunks)

    def infer(self, w: np.ndarray, most: int, keep: bool, executor: Executor) -> list[Share]:
        self._kept.trim(most)
        answers = self._inference.call_each("row_answers", [(w,)] * self._count, executor)
        return [self._kept.take(answers, w, keep)]

    def last(self) -> list[Stored]:
        """The outputs of the last pass, if they are kept."""
        return self._kept.last()

    def cut(self, w: np.ndarray, most: int) -> list[Share]:
        self._kept.trim(most)
        return [self._kept.cut(w)]

    def state(self, most: int) -> list[list[Stored]]:
        self._kept.trim(most)
        return self._kept.state()

    def restore(self, state: list[list[Stored]]) -> None:
        self._kept.restore(state)


class ChunksOnWorker:
    """Some of the chunks, on a worker of a cluster.

    Parameters
    ----------
    plan : SumPlan
        Which ones.
    """

    def __init__(self, plan: SumPlan) -> None:
        self._plan = plan

    def play(self, orders: Sequence[tuple[Any, ...]]) -> tuple[list[Any], float]:
        """Do what is ordered, one after the other; the answers, and the seconds it took."""
        try:
            return play(self, orders)
        except Exception as error:
            raise portable(error) from None

    def load(self, threads: bool, problem: np.ndarray, chunks: np.ndarray) -> None:
        """Take a problem and its examples."""
        from ..exec.cluster import worker_threads

        try:
            own = pickle.loads(problem.data)
            received: list[Chunk] = pickle.loads(chunks.data)
        except Exception as error:
            raise ValueError(
                f"the problem or its examples cannot be unpickled here: {type(error).__name__}: "
                f"{error}; what they are made of must be installed on every worker (a single "
                "module: client.upload_file)"
            ) from error
        for chunk in received:
            chunk.problem = own
        self._executor = make_executor(worker_threads() if threads else 1, 1 << 40)
        self._here = ChunksHere(Inference(received, threads), self._plan)

    def infer(self, w: np.ndarray, most: int, keep: bool, sent: int) -> Share:
        """A pass of inference; if outputs are kept, and not more than ``sent``, they come along."""
        share = self._here.infer(w, most, keep, self._executor)[0]
        if keep and share.numbers <= sent:
            share = dataclasses.replace(share, answers=self._here.last())
        return share

    def cut(self, w: np.ndarray, most: int) -> Share:
        return self._here.cut(w, most)[0]

    def state(self, most: int) -> list[list[Stored]]:
        return self._here.state(most)

    def restore(self, state: list[list[Stored]]) -> None:
        self._here.restore(state)


class ChunksOnCluster:
    """Chunks on the workers of a cluster, each on one of them.

    Parameters
    ----------
    crew : Crew
        With nobody hired yet.
    workers : sequence of Worker
    chunks : sequence of Chunk
    threads : bool
        Whether the threads of a worker can run the inference side by side.
    """

    def __init__(
        self, crew: Any, workers: Sequence[Worker], chunks: Sequence[Chunk], threads: bool
    ) -> None:
        self.crew = crew
        powers = [worker.threads if threads else 1 for worker in workers]
        runs = share_parts([len(chunk) for chunk in chunks], powers)
        self._runs = [slice(first, last) for first, last in runs]
        plans = [plan_for(len(chunks), first, last) for first, last in runs]
        problem = _pickled_problem(chunks[0].problem)
        shares = [_pickled_chunks(chunks[run]) for run in self._runs]
        crew.hire([Recipe(ChunksOnWorker, (plan,)) for plan in plans], workers[: len(plans)])
        crew.round([Order("load", (threads, problem), shares, lasting=True)])
        self._base = len(crew.log)
        # The passes that are kept there, if they are small: cuts from them then take no round.
        self._kept = KeptAnswers(plan_for(len(chunks)), chunks)
        self._complete = True
        self._sent = SENT_NUMBERS // len(plans)

    def _ask(self, *what: Any, lasting: bool = False) -> list[Any]:
        method, *arguments = what
        answers = self.crew.round([Order(method, tuple(arguments), lasting=lasting)])
        return [answer for (answer,) in answers]

    def infer(self, w: np.ndarray, most: int, keep: bool, executor: Executor) -> list[Share]:
        self._forget(most)
        shares: list[Share] = self._ask("infer", w.copy(), most, keep, self._sent, lasting=keep)
        if keep:
            answers = [share.answers for share in shares]
            self._complete = self._complete and None not in answers
            self._kept.trim(most if self._complete else 0)
            if self._complete:
                self._kept.add([stored for some in answers for stored in some or ()])
        return shares

    def _forget(self, most: int) -> None:
        """Let the log begin with the first pass that is kept, or with a state before it."""
        passes = self.crew.log[self._base :]
        begin = len(passes) - most
        if begin > 0 and all(order.method == "infer" for order in passes[begin:]):
            self.crew.log = [*self.crew.log[: self._base], *passes[begin:]]

    def cut(self, w: np.ndarray, most: int) -> list[Share]:
        if not self._complete:
            return self._ask("cut", w, most)
        self._kept.trim(most)
        return [self._kept.cut(w)]

    def state(self, most: int) -> list[list[Stored]]:
        parts = self._ask("state", most)
        return [list(itertools.chain(*passes)) for passes in zip(*parts, strict=True)]

    def restore(self, state: list[list[Stored]]) -> None:
        self.crew.log = self.crew.log[: self._base]
        shares = [[answers[run] for answers in state] for run in self._runs]
        self.crew.round([Order("restore", (), shares, lasting=True)])
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
    try:
        return _sent([chunk.bare() for chunk in chunks])
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
            return chunk.first + i
    return None
