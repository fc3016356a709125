"""Run a function over blocks: in this thread, in threads, or in processes of our own.

An executor knows no mathematics. ``run(function, count)`` calls
``function(k)`` for every k in ``range(count)`` and returns the results in the
order of k, whichever thread computed them. Callers add partial results in this
order, and so get the same bits for any number of threads. ``map(function, a, b)``
does the same with the elements of sequences: ``function(a[k], b[k])``.

Processes are for Python code that holds the GIL. A ``ProcessPool`` sends some objects to its
processes once, when the processes start. A call then runs a method on each object, and sends only
the arguments. Answers come in the order of the objects. Threads and processes live as long as the
executor or the pool.
"""

from __future__ import annotations

import itertools
import pickle
import signal
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np

    Elements = Sequence[Any] | np.ndarray

Result = TypeVar("Result")

# Waking the helper threads and waiting for their end takes about 100 µs per round, and a fit has
# many rounds. So many numbers take a thread half a millisecond. With fewer per thread, one thread
# is as fast or faster, on USPS digits by a fifth.
NUMBERS_PER_THREAD = 1 << 19


class SerialExecutor(AbstractContextManager["SerialExecutor"]):
    """Calls the function in the calling thread."""

    threads = 1

    def run(self, function: Callable[[int], Result], count: int) -> list[Result]:
        return [function(k) for k in range(count)]

    def map(self, function: Callable[..., Result], *sequences: Elements) -> list[Result]:
        return list(map(function, *sequences))

    def __exit__(self, *error: Any) -> None:
        pass


class ThreadExecutor(AbstractContextManager["ThreadExecutor"]):
    """A pool of threads for one fit. Other fits, or forked processes, never share it.

    The calling thread takes part in the work. Each thread takes the next block
    that no thread has taken yet, which balances blocks of unequal cost.

    A pass over the data may take less than a millisecond, so starting and ending a
    round must be cheap. A round uses one queue and one lock per helper, which costs half
    as much as the futures of ``concurrent.futures``.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._helpers = [
            threading.Thread(target=_help, args=(self._tasks,), name=f"cutplane_{k}", daemon=True)
            for k in range(threads - 1)
        ]
        for helper in self._helpers:
            helper.start()
        self._close = weakref.finalize(self, _dismiss, self._tasks, len(self._helpers))

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
                failed = True  # the other threads stop before their next block
                raise

        tasks = [_Task(work) for _ in range(min(self.threads, count) - 1)]
        for task in tasks:
            self._tasks.put(task)
        try:
            work()
            _wait(tasks)
        except BaseException:
            failed = True
            _wait(tasks)  # no thread may write into the caller's arrays after run has ended
            raise
        for task in tasks:
            if task.error is not None:
                raise task.error
        return results

    def map(self, function: Callable[..., Result], *sequences: Elements) -> list[Result]:
        tasks = list(zip(*sequences, strict=True))
        return self.run(lambda k: function(*tasks[k]), len(tasks))

    def __exit__(self, *error: Any) -> None:
        self._close()
        for helper in self._helpers:
            helper.join()


Executor = SerialExecutor | ThreadExecutor


class _Task:
    """The work of one helper thread in one round.

    Attributes
    ----------
    done : Lock
        The helper releases it when the work is done.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.error: BaseException | None = None
        self._begun_by_helper: dict[str, bool] = {}
        self.done = threading.Lock()
        self.done.acquire()

    def begin(self, helper: bool) -> bool:
        """Claim the task for a helper, or for the caller; False if the other side has claimed it.

        ``setdefault`` is one atomic step, and repeating it gives the same answer. So a Ctrl-C
        cannot leave the task half claimed.
        """
        return self._begun_by_helper.setdefault("", helper) == helper


def _wait(tasks: list[_Task]) -> None:
    """Wait until no helper works for this round.

    Helpers that have begun their task end it. The caller claims all other tasks, so none begins.
    """
    for task in tasks:
        if not task.begin(helper=False):
            with task.done:  # released at once, because an interrupted caller waits a second time
                pass


def _help(tasks: SimpleQueue[_Task | None]) -> None:
    """The loop of a helper thread: take tasks until there is a None."""
    while (task := tasks.get()) is not None:
        if task.begin(helper=True):
            try:
                task.work()
            except BaseException as error:  # the calling thread raises it
                task.error = error
            task.done.release()
        del task  # while the helper waits for the next task, it must not keep arrays alive


def _dismiss(tasks: SimpleQueue[_Task | None], helpers: int) -> None:
    for _ in range(helpers):
        tasks.put(None)


def available_threads() -> int:
    """Number of cores that this process may use, by its CPU affinity and its container's limit."""
    import joblib
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    if (backend.nesting_level or 0) > 0:  # other workers of the same joblib use the other cores
        return 1
    return joblib.cpu_count()


def make_executor(n_jobs: int | None, numbers: int) -> Executor:
    """The executor for passes that read ``numbers`` values, see ``thread_count``."""
    threads = thread_count(n_jobs, numbers)
    return ThreadExecutor(threads) if threads > 1 else SerialExecutor()


def thread_count(n_jobs: int | None, numbers: int = 1 << 62) -> int:
    """How many threads to use for a pass that reads ``numbers`` values.

    Parameters
    ----------
    n_jobs : int or None
        None or −1 for all cores that the process may use, −2 for all but one, and so on; a positive
        number is the number of threads.
    numbers : int, optional
        Non-zeros of the data, or rows times features; count other work of the pass in the same
        unit. Small problems get one thread, whatever ``n_jobs`` says, because one is faster.
    """
    worth = numbers // NUMBERS_PER_THREAD
    if worth <= 1:  # return early: asking for the cores takes 50 ms the first time
        return 1
    if n_jobs is None:
        threads = available_threads()
    elif n_jobs < 0:
        threads = max(1, available_threads() + 1 + n_jobs)
    else:
        threads = n_jobs
    return min(threads, worth)


# -- processes ----------------------------------------------------------------

# In a worker process: the objects it received, or the error that unpickling them raised.
_objects: list[Any] = []
_failures: list[_Failure] = []

# Each process uses one thread, because the processes share the cores.
_ENVIRONMENT = {
    name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
}


@dataclass(frozen=True)
class _Failure:
    """The pickled error that an object's method raised."""

    error: bytes


def _receive(sent: bytes) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends this process
    try:
        _objects[:] = pickle.loads(sent)
    except Exception as error:
        error.add_note("raised where another process received the problem and the data")
        _failures.append(_Failure(pickled(portable(error))))


def _work(k: int, method: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    if _failures:
        return _failures[0]
    try:
        return method(_objects[k], *arguments)
    except Exception as error:
        return _Failure(pickled(portable(error)))


def pickled(value: Any) -> bytes:
    """Pickle a value. This works for classes of scripts and notebooks, too."""
    from joblib.externals.loky.backend.reduction import dumps

    return bytes(dumps(value))


def portable(error: Exception) -> Exception:
    """The error; if it cannot be pickled, a RuntimeError with the same message."""
    try:
        pickle.loads(pickled(error))
    except Exception:
        substitute = RuntimeError(f"{type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", []):
            substitute.add_note(note)
        return substitute
    return error


class ProcessPool:
    """Processes that hold the same objects.

    Parameters
    ----------
    objects : sequence
        Anything that can be pickled, classes of scripts and notebooks included.
    processes : int
    """

    def __init__(self, objects: Sequence[Any], processes: int) -> None:
        from joblib.externals.loky.process_executor import ProcessPoolExecutor

        try:
            sent = pickled(list(objects))
        except Exception as error:
            error.add_note("raised by pickling the problem and the data for other processes")
            raise
        self._pool = ProcessPoolExecutor(
            min(processes, len(objects)), initializer=_receive, initargs=(sent,), env=_ENVIRONMENT
        )

    def call_each(
        self, method: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
    ) -> list[Any]:
        """Call ``method(object, *arguments)`` for every object, each with its own arguments."""
        tasks = [self._pool.submit(_work, k, method, a) for k, a in enumerate(arguments)]
        answers = [task.result() for task in tasks]
        for answer in answers:
            if isinstance(answer, _Failure):
                raise pickle.loads(answer.error)
        return answers

    def close(self) -> None:
        """Kill the processes, even if they are still working."""
        self._pool.shutdown(wait=True, kill_workers=True)
