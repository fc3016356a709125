"""Who runs a user's inference: the calling thread, threads, or processes that hold the examples.

Examples lie in chunks that depend on their number and the problem's methods alone, so that the
answers do not depend on who computes them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ..exec import Executor, ProcessPool
from .problem import RESCALINGS, has_batch

MOST_CHUNKS = 32
# Examples that are worth a call of a batch form.
BATCH = 512


def bounds(problem: Any, examples: int, rescaling: str) -> list[tuple[int, int]]:
    """Where chunks of examples begin and end."""
    batch = BATCH if has_batch(problem, RESCALINGS[rescaling]) else 1
    count = min(MOST_CHUNKS, -(-examples // batch))
    edges = [examples * k // count for k in range(count + 1)]
    return list(itertools.pairwise(edges))


def runs_in_threads(problem: Any, rescaling: str) -> bool:
    """Whether threads can run the inference side by side."""
    batch = has_batch(problem, RESCALINGS[rescaling])
    return batch or bool(getattr(problem, "releases_gil", False))


class Inference:
    """Runs a method of all chunks.

    Attributes
    ----------
    threads : bool
        Whether threads can run it side by side.

    Parameters
    ----------
    chunks : sequence
        Objects that can be sent to other processes.
    threads : bool
    """

    def __init__(self, chunks: Sequence[Any], threads: bool) -> None:
        self._chunks = chunks
        self.threads = threads
        self._pool: ProcessPool | None = None

    def start(self, processes: int) -> None:
        """Start processes, if the inference holds the GIL."""
        if processes > 1 and not self.threads and len(self._chunks) > 1:
            self._pool = ProcessPool(self._chunks, processes)

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.close()

    def call_each(
        self, method: str, arguments: Sequence[tuple[Any, ...]], executor: Executor
    ) -> list[Any]:
        """chunk.method(*arguments) for every chunk."""
        if self._pool is not None:
            return self._pool.call_each(method, arguments)

        def task(k: int) -> Any:
            return getattr(self._chunks[k], method)(*arguments[k])

        if self.threads:
            return executor.run(task, len(self._chunks))
        return [task(k) for k in range(len(self._chunks))]
