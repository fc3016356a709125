"""Say, once in a terminal, that loops are being compiled, which takes seconds in the first fit.

Compiled code is kept on disk, so the message appears only if a loop is not yet on disk; see
``cutplane warmup``. In pipes, notebooks and worker processes it is a log record instead.
"""

from __future__ import annotations

import logging
import sys

from .. import _jit
from .places import in_notebook, in_worker, is_terminal

logger = logging.getLogger("cutplane")

MESSAGE = (
    "cutplane: compiling for first use; this takes some seconds, and is kept on disk. "
    "The command 'cutplane warmup' does it ahead."
)


class _Notice:
    """Whether this process listens for compilations, and whether it has printed the message."""

    listening = False
    told = False


def tell_of_compiling(*, silently: bool = False) -> None:
    """From now on, say that loops are being compiled, once in this process.

    Parameters
    ----------
    silently : bool, default=False
        Never print the message, because the calling command has a message of its own.
    """
    if silently:
        _Notice.told = True
    if not _Notice.listening:
        _Notice.listening = True
        _jit.when_compiling(_tell)


def _tell() -> None:
    if _Notice.told:
        return
    _Notice.told = True
    if is_terminal(sys.stderr) and not in_notebook() and not in_worker():
        print(MESSAGE, file=sys.stderr, flush=True)
    else:
        logger.info("%s", MESSAGE.removeprefix("cutplane: "))
