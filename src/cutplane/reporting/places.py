"""Where output goes: a terminal, a notebook, or neither."""

from __future__ import annotations

import os
import sys
from typing import Any


def is_terminal(stream: Any) -> bool:
    """Whether a person watches this stream on a terminal that can move its cursor."""
    # While rich draws it stands in for the streams; its older versions then deny the terminal.
    stream = getattr(stream, "rich_proxied_file", stream)
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # None under pythonw, or closed
        return False


def in_notebook() -> bool:
    """Whether this is a Jupyter kernel. Does not import IPython."""
    ipython = sys.modules.get("IPython")
    shell = getattr(ipython, "get_ipython", lambda: None)()
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).__mro__)


def in_worker() -> bool:
    """Whether this is a worker process, which must not draw on its parent's terminal."""
    # Look, do not import: a process that was started by multiprocessing has loaded it.
    multiprocessing = sys.modules.get("multiprocessing.process")
    return multiprocessing is not None and multiprocessing.current_process().name != "MainProcess"
