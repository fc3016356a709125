"""BLAS on one thread, where the threads are ours.

Products of matrices run in the executor's threads. BLAS would start threads of its own within
each of them, more than there are cores, and split the work in ways that depend on the machine.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _BlasLimit:
    """One thread for BLAS while anybody in the process is inside.

    The setting is the process's: the first to come saves it, the last to go restores it.
    """

    def __init__(self) -> None:
        self._controller: Any = None
        self._limit: Any = None
        self.forget()

    def forget(self) -> None:
        """Start anew: in a forked process nobody is inside."""
        self._lock = threading.Lock()
        self._inside = 0

    def enter(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside > 1:
                return
            if self._controller is None:
                from threadpoolctl import ThreadpoolController

                self._controller = ThreadpoolController().select(user_api="blas")
            self._limit = self._controller.limit(limits=1)

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._give_up_control()  # or the setting of another thread would stand for ever
                self._limit.restore_original_limits()
                self._give_up_control()

    @staticmethod
    def _give_up_control() -> None:
        """Since threadpoolctl 3.8 only the thread that set a limit may change it."""
        import threadpoolctl

        owner = getattr(threadpoolctl, "OpenBLASController", None)
        clear = getattr(owner, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)


_BLAS = _BlasLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_BLAS.forget)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Within the block products of matrices use the calling thread only."""
    _BLAS.enter()
    try:
        yield
    finally:
        _BLAS.leave()
