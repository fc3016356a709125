"""Make sure that no Ctrl-C gets lost.

Python raises KeyboardInterrupt wherever the main thread happens to be. While compiled code loads,
the main thread may be in a callback of LLVM or in a ``__del__``. Python prints exceptions from
there and drops them, and the program would continue as if nobody had pressed a key. So a signal
handler also records the signal. Solvers call ``check`` after every iteration, and ``check`` raises
KeyboardInterrupt if a recorded signal has not been handled.

Only the main thread gets signals, and it may be waiting for helper threads. So in a helper
``check`` also raises while a signal is recorded, and when the caller has ended the work.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_pending = False  # whether there was a signal that has not been handled yet
_helper = threading.local()  # in a helper thread: .caller and .end, see ``helping``


class LateInterrupt(KeyboardInterrupt):
    """Raised at the end of the work, for an interrupt that Python had dropped before."""


def _note(number: int, frame: FrameType | None) -> None:
    global _pending
    _pending = True
    signal.default_int_handler(number, frame)


@contextmanager
def kept() -> Iterator[None]:
    """Record interrupts in the block, and raise a dropped one at its end.

    If an error follows an interrupt, it is raised as a KeyboardInterrupt, because the interrupt is
    its likely cause. Blocks may be nested. This does nothing outside of the main thread, or if
    other code handles the signal.
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
        if _pending:  # for instance, Python wraps an exception raised while a class is made
            raise KeyboardInterrupt from error
        raise
    finally:
        _pending = False
        if signal.getsignal(signal.SIGINT) is _note:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def helping(caller: threading.Thread, end: threading.Event) -> Iterator[None]:
    """Mark this thread as a helper of ``caller``: ``check`` raises here once ``end`` is set.

    If the caller is the main thread, ``check`` also raises here while an interrupt is recorded.
    """
    _helper.caller, _helper.end = caller, end
    try:
        yield
    finally:
        del _helper.caller, _helper.end


def check() -> None:
    """Raise KeyboardInterrupt if an interrupt was dropped, or if a helper shall end its work."""
    end: threading.Event | None = getattr(_helper, "end", None)
    if end is not None:
        noted = _pending and _helper.caller is threading.main_thread()
        if noted or end.is_set():
            raise KeyboardInterrupt
    if _pending and _in_main_thread():
        handled()
        raise KeyboardInterrupt


def handled() -> None:
    """Record that the interrupt has been handled. Only the main thread can: it gets the signals."""
    global _pending
    if _in_main_thread():
        _pending = False


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
