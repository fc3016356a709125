"""Where output goes: a terminal, a notebook, or neither."""

from __future__ import annotations

import os
import sys
from typing import Any


def is_terminal(stream: Any) -> bool:
    """Whether a person watches this stream on a terminal that can move its cursor."""
    # While rich draws, it replaces the streams; older versions then say that they are no terminal.
    stream = getattr(stream, "rich_proxied_file", stream)
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # None under pythonw, or closed
        return False


def in_notebook() -> bool:
    """Whether this process is a Jupyter kernel. Does not import IPython."""
    ipython = sys.modules.get("IPython")
    shell = getattr(ipython, "get_ipython", lambda: None)()
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).__mro__)


def in_worker() -> bool:
    """Whether this is a worker process, which must not draw on its parent's terminal."""
    # No import: a process that multiprocessing started has loaded the module already.
    multiprocessing = sys.modules.get("multiprocessing.process")
    return multiprocessing is not None and multiprocessing.current_process().name != "MainProcess"
