"""Ctrl-C that cannot get lost.

Python raises KeyboardInterrupt wherever the main thread happens to be. While compiled code loads,
that may be inside a callback that LLVM calls, or in a ``__del__``: exceptions are printed there and
dropped, and the program would go on as if nobody had pressed a key. So a signal is also noted, and
``check``, which solvers reach after every iteration, raises it again unless it has been
handled. Threads that help the main one get no signals: there ``check`` raises while one is noted,
for the main thread may be waiting for them, and once the work is said to be over.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_pending = False  # a signal came that has not been handled yet
_helper = threading.local()  # .caller and .end, of a thread that helps another one


class LateInterrupt(KeyboardInterrupt):
    """Raised when the work was done before an interrupt that had been dropped was noticed."""


def _note(number: int, frame: FrameType | None) -> None:
    global _pending
    _pending = True
    signal.default_int_handler(number, frame)


@contextmanager
def kept() -> Iterator[None]:
    """Keep note of interrupts in the block, and raise at its end one that was dropped.

    An error that follows an interrupt is taken for its consequence. Blocks may be nested. Outside
    of the main thread, or where somebody else handles the signal, this does nothing.
    """
    global _pending
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    _pending = False
    try:
        signal.signal(signal.SIGINT, _note)
        yield
        if _pending:
            raise LateInterrupt
    except Exception as error:
        if _pending:  # Python itself turns what is raised while a class is made into another error
            raise KeyboardInterrupt from error
        raise
    finally:
        _pending = False
        if signal.getsignal(signal.SIGINT) is _note:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def helping(caller: threading.Thread, end: threading.Event) -> Iterator[None]:
    """For a thread that works for the caller: ``check`` raises here once ``end`` is set.

    And, if the caller is the main thread, while an interrupt of it is noted.
    """
    _helper.caller, _helper.end = caller, end
    try:
        yield
    finally:
        del _helper.caller, _helper.end


def check() -> None:
    """Raise an interrupt that was dropped, or the end of the work for a helper."""
    end: threading.Event | None = getattr(_helper, "end", None)
    if end is not None:
        noted = _pending and _helper.caller is threading.main_thread()
        if noted or end.is_set():
            raise KeyboardInterrupt
    if _pending and _in_main_thread():
        handled()
        raise KeyboardInterrupt


def handled() -> None:
    """Note that an interrupt has been handled; only the main thread, which gets them, can."""
    global _pending
    if _in_main_thread():
        _pending = False


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
