"""Where commands write: models, text and reports, to files that appear when complete, or to stdout.

When the answer itself goes to standard output, what is said about it goes to standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

from .common import CommandError


def check_target(target: str, *sources: str, binary: bool = False) -> None:
    """Make sure that a file can be written, before work is spent on what goes into it."""
    from ..data.files import temporary  # loads numba: not for --help

    if target == "-":
        if binary and sys.stdout.isatty():
            raise CommandError("this is binary and would spoil the terminal; redirect it to a file")
        return
    path = Path(target)
    if path.is_dir():
        raise CommandError(f"{target} is a folder; give the name of a file")
    for source in sources:
        both = path.exists() and source != "-" and os.path.exists(source)
        if both and path.samefile(source):
            raise CommandError(f"{target} is the input; the output needs another name")
    try:
        with temporary(path):
            pass
    except OSError as error:
        raise CommandError(f"cannot write {target}: {error.strerror}") from None


@contextmanager
def text_output(target: str) -> Iterator[BinaryIO]:
    """A binary file for text: stdout, or a file that appears when it is complete."""
    from ..data.files import output

    try:
        with output(target) as file:
            yield file
    except OSError as error:
        if target == "-" or isinstance(error, BrokenPipeError):
            raise
        raise CommandError(f"cannot write {target}: {error.strerror or error}") from None


def report_stream(*targets: str | None) -> IO[str]:
    """Where to tell how it went, given what the outputs of the command are."""
    return sys.stderr if "-" in targets else sys.stdout


# -- models -------------------------------------------------------------------


def save(model: Any, target: str) -> None:
    """Write a model to a file or, for '-', to stdout."""
    from .. import save_model

    try:
        save_model(model, target)
    except OSError as error:
        if target == "-":
            raise
        cause = (error.strerror or str(error)).removeprefix("cannot write: ")
        raise CommandError(f"cannot write {target}: {cause}") from None


def is_model(name: str) -> bool:
    """Whether a file begins like a model or a checkpoint, be it damaged or not."""
    from ..data.files import opened
    from ..store.container import begins_like_ours

    begin = bytearray(64)
    with opened(name) as source:
        source.read_into(memoryview(begin))
    return begins_like_ours(bytes(begin))
