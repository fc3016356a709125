"""Examples of structured outputs on workers, which run the user's inference on them.

Workers get their chunks of examples once, pickled. If a worker is lost, another one gets the same
chunks and repeats those passes whose outputs are kept. If outputs are small, the workers send them
to the client, which then makes cuts from them without a round. The log of orders has one w for each
pass that is kept, and no others.
"""

from __future__ import annotations

import dataclasses
import itertools
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data.sums import share_parts
from ..exec import Executor, make_executor, pickled
from ..structured.examples import Chunk, Inference
from ..structured.linear import ChunksHere, Share, Stored, plan_for
from ..structured.problem import take
from .orders import Each, Hold, Means, Order
from .workers import Workers

# If the outputs of a pass have at most so many numbers, the workers send them to the client.
SENT_NUMBERS = 1 << 20


class ChunksOnWorker(ChunksHere):
    """Some of the chunks, on a worker. Orders call its methods.

    Parameters
    ----------
    means : Means
    count, first, last : int
        Number of all chunks; this worker has the chunks first to last − 1.
    threads : bool
        Whether the worker's threads can run the inference side by side.
    problem, chunks : ndarray
        Pickled.
    """

    def __init__(
        self,
        means: Means,
        count: int,
        first: int,
        last: int,
        threads: bool,
        problem: np.ndarray,
        chunks: np.ndarray,
    ) -> None:
        try:
            own = pickle.loads(problem.data)
            held: list[Chunk] = pickle.loads(chunks.data)
        except Exception as error:
            raise ValueError(
                f"the problem or its examples cannot be unpickled here: {type(error).__name__}: "
                f"{error}; what they are made of must be installed on every worker (a single "
                "module: client.upload_file)"
            ) from error
        for chunk in held:
            chunk.problem = own
        self._executor = make_executor(means.threads if threads else 1, 1 << 40)
        super().__init__(Inference(held, threads), plan_for(count, first, last))

    def answer(self, w: np.ndarray, most: int, keep: bool, sent: int) -> Share:
        """A pass of inference.

        The answer contains the outputs if they are kept and have at most ``sent`` numbers.
        """
        share = self.infer(w, most, keep, self._executor)[0]
        if keep and share.n_stored <= sent:
            share = dataclasses.replace(share, answers=self.state(most + 1)[-1])
        return share


class ChunksOnCluster:
    """Chunks on the workers of a cluster, each on one of them.

    Parameters
    ----------
    crew : Workers
        Workers that hold nothing yet.
    chunks : sequence of Chunk
    threads : bool
        Whether the threads of a worker can run the inference side by side.
    """

    def __init__(self, crew: Workers, chunks: Sequence[Chunk], threads: bool) -> None:
        self.crew = crew
        workers = crew.checked()
        powers = [worker.threads if threads else 1 for worker in workers]
        runs = share_parts([len(chunk) for chunk in chunks], powers)
        self._runs = [slice(first, last) for first, last in runs]
        problem = _pickled_problem(chunks[0].problem)
        hold = [
            Hold(
                ChunksOnWorker,
                len(chunks),
                first,
                last,
                threads,
                problem,
                _pickled_chunks(chunks[run]),
            )
            for (first, last), run in zip(runs, self._runs, strict=True)
        ]
        crew.start(workers[: len(runs)], Each(hold))
        self._base = len(crew.log)
        # A copy of the outputs that workers keep, if they are small: cuts then take no round.
        self._kept = ChunksHere(Inference(chunks, threads))
        self._complete = True
        self._sent = SENT_NUMBERS // len(runs)

    def infer(self, w: np.ndarray, most: int, keep: bool, executor: Executor) -> list[Share]:
        self._forget(most)
        # Later cuts use the outputs of passes that are kept, so the order is lasting if it keeps.
        order = Order(ChunksOnWorker.answer, w.copy(), most, keep, self._sent, lasting=keep)
        shares: list[Share] = self.crew.ask(order)
        if keep:
            answers = [share.answers for share in shares]
            self._complete = self._complete and None not in answers
            if self._complete:
                self._kept.add([stored for some in answers for stored in some or ()], most)
            else:
                self._kept.restore([])
        return shares

    def _forget(self, most: int) -> None:
        """Remove passes from the log whose outputs are no longer kept."""
        passes = self.crew.log[self._base :]
        begin = len(passes) - most
        if begin > 0 and all(order.name == "answer" for order in passes[begin:]):
            self.crew.log = [*self.crew.log[: self._base], *passes[begin:]]

    def cut(self, w: np.ndarray, most: int) -> list[Share]:
        if not self._complete:
            return self.crew.gather(Order(ChunksOnWorker.cut, w, most))
        return self._kept.cut(w, most)

    def state(self, most: int) -> list[list[Stored]]:
        parts = self.crew.ask(Order(ChunksOnWorker.state, most))
        return [list(itertools.chain(*passes)) for passes in zip(*parts, strict=True)]

    def restore(self, state: list[list[Stored]]) -> None:
        self.crew.forget()
        own = [[answers[run] for answers in state] for run in self._runs]
        restore = [Order(ChunksOnWorker.restore, passes, lasting=True) for passes in own]
        self.crew.ask(Each(restore))
        self._kept.restore(state)
        self._complete = True


def _sent(value: Any) -> np.ndarray:
    """The pickle as an array, because arrays are sent without another copy."""
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
    """Pickled chunks without the problem, which is sent once."""
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
