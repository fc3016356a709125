"""Keep BLAS to one thread while the executor's threads compute.

Products of matrices run in the executor's threads. In each of these BLAS would start threads of its
own, more than there are cores, and it would split sums in ways that depend on the machine.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _BlasLimit:
    """Limits BLAS to one thread while at least one thread has entered and not left.

    The limit holds for the process. The first thread to enter sets it and saves the old limit; the
    last thread to leave restores the old limit.
    """

    def __init__(self) -> None:
        self._controller: Any = None
        self._limit: Any = None
        self.forget()

    def forget(self) -> None:
        """Start anew in a forked process: the threads that had entered do not exist there."""
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
                # Another thread may have set the limit, and then only that one could restore it.
                self._give_up_control()
                self._limit.restore_original_limits()
                self._give_up_control()

    @staticmethod
    def _give_up_control() -> None:
        """Let any thread change the limit.

        Since threadpoolctl 3.8 only the thread that set the limit may change it.
        """
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
    """Within the block, products of matrices use only the calling thread."""
    _BLAS.enter()
    try:
        yield
    finally:
        _BLAS.leave()
