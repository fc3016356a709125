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


class _State:
    """How many threads are within a block, and the limit that the first of them has replaced."""

    def __init__(self) -> None:
        self.controller: Any = None
        self.limit: Any = None
        self.forget()

    def forget(self) -> None:
        """Start anew in a forked process: the threads that had entered do not exist there."""
        self.lock = threading.Lock()
        self.inside = 0


_state = _State()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_state.forget)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Within the block, products of matrices use only the calling thread.

    The limit holds for the process while at least one thread is within such a block. The first to
    enter sets it and saves the old limit; the last to leave restores the old limit.
    """
    with _state.lock:
        _state.inside += 1
        if _state.inside == 1:
            if _state.controller is None:
                from threadpoolctl import ThreadpoolController

                _state.controller = ThreadpoolController().select(user_api="blas")
            _state.limit = _state.controller.limit(limits=1)
    try:
        yield
    finally:
        with _state.lock:
            _state.inside -= 1
            if _state.inside == 0:
                # Another thread may have set the limit, and then only that one could restore it.
                _give_up_control()
                _state.limit.restore_original_limits()
                _give_up_control()


def _give_up_control() -> None:
    """Let any thread change the limit.

    Since threadpoolctl 3.8 only the thread that set the limit may change it.
    """
    import threadpoolctl

    owner = getattr(threadpoolctl, "OpenBLASController", None)
    clear = getattr(owner, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)
