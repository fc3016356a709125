"""Run a function over blocks: in this thread, or in a pool of our own.

An executor knows no mathematics. ``run(function, count)`` calls
``function(k)`` for every k in ``range(count)`` and returns the results in the
order of k, whoever computed them: callers add partial results in that order
and so get the same bits for any number of threads.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any, Protocol, TypeVar

Result = TypeVar("Result")

# A round of pool tasks costs some 50 µs; below this many numbers per thread a
# pass over the data is cheaper than that.
NUMBERS_PER_THREAD = 1 << 17


class Executor(Protocol):
    """What the oracles need of an executor."""

    threads: int

    def run(self, function: Callable[[int], Result], count: int) -> list[Result]: ...

    def __enter__(self) -> Executor: ...

    def __exit__(self, *error: Any) -> None: ...


class SerialExecutor:
    """Calls the function in the calling thread."""

    threads = 1

    def run(self, function: Callable[[int], Result], count: int) -> list[Result]:
        return [function(k) for k in range(count)]

    def __enter__(self) -> SerialExecutor:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


class ThreadExecutor:
    """A pool that lives as long as one fit, so that nothing is shared or forked.

    The calling thread takes part in the work. Each thread takes the next block
    that nobody has taken, which balances blocks of unequal cost.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads - 1, thread_name_prefix="cutplane")

    def run(self, function: Callable[[int], Result], count: int) -> list[Result]:
        if count == 1:
            return [function(0)]
        results: list[Any] = [None] * count
        ticket = itertools.count()  # next() is atomic under the GIL
        failed = False

        def work() -> None:
            nonlocal failed
            try:
                for k in ticket:
                    if k >= count or failed:
                        return
                    results[k] = function(k)
            except BaseException:
                failed = True  # the others stop at their next block
                raise

        helpers = [self._pool.submit(work) for _ in range(min(self.threads, count) - 1)]
        try:
            work()
        finally:
            wait(helpers)
        for helper in helpers:
            helper.result()
        return results

    def __enter__(self) -> ThreadExecutor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def available_threads() -> int:
    """Cores this process may use: CPU affinity and container limits count."""
    import joblib
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    if (backend.nesting_level or 0) > 0:  # inside a joblib worker the cores are taken
        return 1
    if hasattr(os, "sched_getaffinity"):
        return min(joblib.cpu_count(), len(os.sched_getaffinity(0)))
    return joblib.cpu_count()


def make_executor(n_jobs: int | None, numbers: int) -> Executor:
    """The executor for a problem of ``numbers`` stored values.

    Parameters
    ----------
    n_jobs : int or None
        None or -1 for every core the process may use; otherwise the number of
        threads, and a negative number counts back from all (−2: all but one).
    numbers : int
        Non-zeros of the data, or rows times features: small problems run
        serially whatever was asked for, because that is faster.
    """
    if n_jobs is None:
        threads = available_threads()
    elif n_jobs < 0:
        threads = max(1, available_threads() + 1 + n_jobs)
    else:
        threads = n_jobs
    threads = min(threads, max(1, numbers // NUMBERS_PER_THREAD))
    return ThreadExecutor(threads) if threads > 1 else SerialExecutor()
