"""An object on a worker, and the thread that answers on its line."""

from __future__ import annotations

import contextvars
import logging
import pickle
import socket
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from . import lines
from .members import Failed
from .processes import portable

logger = logging.getLogger("cutplane")

# Of a worker that takes no more work.
GONE = ("stopping", "stopped", "closing", "closed", "failed")
# One thing at a time on a worker, whichever way it is asked, as Dask has it for its actors.
_playing: weakref.WeakKeyDictionary[Any, threading.Lock] = weakref.WeakKeyDictionary()
_first = threading.Lock()


def make(pickled: bytes, inputs: Sequence[Any]) -> Station:
    """Make an object in a thread of a worker, where all imports that it takes are done, too."""
    factory, arguments = pickle.loads(pickled)
    return Station(factory(*arguments, *([inputs] if inputs else [])))


class Station:
    """An object on a worker, as an actor of Dask and with a line of its own if somebody calls.

    Parameters
    ----------
    target : object
        Has a method ``play`` for orders.
    """

    def __init__(self, target: Any) -> None:
        from distributed import get_worker

        self._target = target
        self._worker = get_worker()
        with _first:
            self._turn = _playing.setdefault(self._worker, threading.Lock())

    def play(self, orders: Sequence[tuple[Any, ...]]) -> tuple[list[Any], float]:
        """Do what is ordered, one after the other; the answers, and the seconds it took."""
        with self._turn:
            answer: tuple[list[Any], float] = self._target.play(orders)
            return answer

    def listen(self, host: str, key: bytes, silence: float) -> int | None:
        """Wait for a call from whoever has the key, in a thread; the port, None if it cannot be."""
        try:
            listener = lines.listen(host)
        except OSError as error:
            logger.debug("no line at %s: %s", host, error)
            return None
        port: int = listener.getsockname()[1]
        # The object lives as long as Dask wants, and what it asks of its worker is in the context.
        arguments = (listener, key, silence, weakref.ref(self), self._worker)
        thread = threading.Thread(
            target=contextvars.copy_context().run,
            args=(_answer, *arguments),
            name="cutplane-line",
            daemon=True,
        )
        thread.start()
        return port


def _answer(
    listener: socket.socket,
    key: bytes,
    silence: float,
    station: weakref.ref[Station],
    worker: Any,
) -> None:
    """What the thread of a line does all its life."""

    def watch() -> None:
        if station() is None or worker.status.name in GONE:
            raise ConnectionAbortedError("the object is not needed any more, or the worker closes")

    def reply(parcel: lines.Parcel) -> list[memoryview]:
        watch()
        target = station()
        try:
            assert target is not None
            return lines.outgoing(target.play(lines.opened(parcel)))
        except Exception as error:
            return lines.outgoing(Failed(portable(error)))

    try:
        lines.serve(lines.accept(listener, key, silence), reply, watch)
    except OSError as error:
        logger.debug("a line ends: %s", error)
