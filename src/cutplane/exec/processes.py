"""Run a method of several objects in processes of our own: for Python code that holds the GIL.

The objects are sent once, when the processes start; a call sends its arguments only. Answers
come in the order of the objects, whoever computed them. Processes live as long as the pool.
"""

from __future__ import annotations

import pickle
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# In a worker: the objects it got, or why it got none.
_objects: list[Any] = []
_failures: list[_Failure] = []

# One process is one thread: the processes share the cores.
_ENVIRONMENT = {
    name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
}


@dataclass(frozen=True)
class _Failure:
    """What an object's method raised, pickled."""

    error: bytes


def _receive(sent: bytes) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair
    try:
        _objects[:] = pickle.loads(sent)
    except Exception as error:
        error.add_note("raised where another process received the problem and the data")
        _failures.append(_Failure(pickled(portable(error))))


def _work(k: int, method: str, arguments: tuple[Any, ...]) -> Any:
    if _failures:
        return _failures[0]
    try:
        return getattr(_objects[k], method)(*arguments)
    except Exception as error:
        return _Failure(pickled(portable(error)))


def pickled(value: Any) -> bytes:
    """Anything that can be pickled, classes of scripts and notebooks included."""
    from joblib.externals.loky.backend.reduction import dumps

    return bytes(dumps(value))


def portable(error: Exception) -> Exception:
    """The error, or one that says the same if it does not survive pickling."""
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

        self._count = len(objects)
        try:
            sent = pickled(list(objects))
        except Exception as error:
            error.add_note("raised by pickling the problem and the data for other processes")
            raise
        self._pool = ProcessPoolExecutor(
            min(processes, self._count),
            initializer=_receive,
            initargs=(sent,),
            env=_ENVIRONMENT,
        )

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """object.method(*arguments) for every object."""
        return self.call_each(method, [arguments] * self._count)

    def call_each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The same with arguments of its own for every object."""
        tasks = [self._pool.submit(_work, k, method, a) for k, a in enumerate(arguments)]
        answers = [task.result() for task in tasks]
        for answer in answers:
            if isinstance(answer, _Failure):
                raise pickle.loads(answer.error)
        return answers

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        self._pool.shutdown(wait=True, kill_workers=True)
