"""Where commands write: models, text and reports, to files that appear when complete, or to stdout.

If the product goes to standard output, the report about it goes to standard error.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, TextIO

from .errors import CommandError, ExitCode

# -- files --------------------------------------------------------------------


def check_target(target: str, *sources: str, binary: bool = False) -> None:
    """Make sure that a file can be written, before work is spent on what goes into it."""
    from ..data.files import check_writable  # loads numba: not for --help

    if binary and _is_stdout(target) and sys.stdout.isatty():
        raise CommandError("this is binary and would spoil the terminal; redirect it to a file")
    if target == "-":
        return
    path = Path(target)
    if path.is_dir():
        raise CommandError(f"{target} is a folder; give the name of a file")
    for source in sources:
        both = path.is_file() and source != "-" and os.path.exists(source)
        if both and path.samefile(source):
            raise CommandError(f"{target} is the input; the output needs another name")
    try:
        check_writable(path)
    except OSError as error:
        raise CommandError(f"cannot write {target}: {error.strerror}") from None


def check_own_file(flag: str, target: str | None, *others: str | None) -> None:
    """As ``check_target``, for a file besides the product, if the user asks for one."""
    if target is None:
        return
    used = {os.path.realpath(other) for other in others if other is not None}
    if target == "-" or os.path.realpath(target) in used:
        raise CommandError(f"{flag} {target}: this needs a file of its own")
    check_target(target)


def output_folder(path: Path) -> Path:
    """Make a folder and make sure that files can be put there, before work is spent."""
    from ..data.files import check_writable

    try:
        path.mkdir(parents=True, exist_ok=True)
        check_writable(path / "test")
    except FileExistsError:
        raise CommandError(f"{path} is a file; the output goes into a folder") from None
    except OSError as error:
        raise CommandError(f"cannot write to {path}: {error.strerror}") from None
    return path


@contextmanager
def output_file(target: str | Path) -> Iterator[BinaryIO]:
    """A binary file to write to: stdout for '-', or a file that appears when it is complete."""
    from ..data.files import output

    with _named_errors(target), output(target) as file:
        yield file


def save(model: Any, target: str) -> None:
    """Write a model to a file or, for '-', to stdout. Ctrl-C waits until it is written."""
    from .. import save_model

    with uninterrupted(), _named_errors(target):
        save_model(model, target)


@contextmanager
def _named_errors(target: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if target == "-" and error.errno in (errno.EPIPE, errno.EBADF):  # ``main`` handles these
            raise
        where = str(target)
        if target == "-":
            where = "to standard output"
            silence(sys.stdout)  # otherwise the end of the process fails again
        cause = (error.strerror or str(error)).removeprefix("cannot write: ")
        raise CommandError(f"cannot write {where}: {cause}") from None


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C while the block runs, so that a finished model gets written."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# -- reports ------------------------------------------------------------------


class Report(io.TextIOBase):
    """A stream for the report of a command. If writing to it fails, the command continues.

    It is not an error if the reader has gone, as ``head`` does, or if the stream is closed. Any
    other failure, such as a full disk, gives one message on standard error and an exit code.

    Parameters
    ----------
    stream : text file
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._works = True
        self._failed = False

    def write(self, text: str) -> int:
        """Write the text, unless an earlier write has failed."""
        self._attempt(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Write what the buffer holds."""
        self._attempt(self._stream.flush)

    def isatty(self) -> bool:
        """Whether this is a terminal."""
        return self._stream.isatty()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream."""
        return self._stream.encoding

    def _attempt(self, act: Callable[[], Any]) -> None:
        if not self._works:
            return
        try:
            act()
        except OSError as error:
            self._works = False
            silence(self._stream)
            if error.errno not in (errno.EPIPE, errno.EBADF):
                self._failed = True
                print(f"cutplane: cannot print the report: {error.strerror}", file=sys.stderr)

    def code(self, code: int) -> int:
        """The exit code of a command that has made its product."""
        self.flush()
        return ExitCode.ERROR if self._failed and code == ExitCode.OK else code


def report_stream(*targets: str) -> Report:
    """The stream for a report: stderr if an output goes to stdout, otherwise stdout."""
    return Report(sys.stderr if any(map(_is_stdout, targets)) else sys.stdout)


def _is_stdout(target: str) -> bool:
    from ..data.files import descriptor_of

    return target == "-" or descriptor_of(Path(target)) == 1


# -- standard streams ---------------------------------------------------------


def silence(stream: IO[str]) -> None:
    """Discard all further output of a stream to which writing fails."""
    with suppress(OSError, ValueError):  # a stream without a descriptor holds nothing back
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def standard_streams() -> Iterator[None]:
    """Within the block standard streams exist, and take any text.

    If a stream is closed when the process starts, Python sets it to None, and the next file that is
    opened gets its number. Characters that the encoding of standard output lacks are escaped.
    """
    # Only standard error can be written to. A product that goes to a closed stdout is an error.
    for name, mode, access in (
        ("stdin", "r", os.O_RDONLY),
        ("stdout", "w", os.O_RDONLY),
        ("stderr", "w", os.O_WRONLY),
    ):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, access)
            setattr(sys, name, open(handle, mode, encoding="utf-8"))  # noqa: SIM115
    out = sys.stdout
    if not hasattr(out, "reconfigure"):
        yield
        return
    errors = out.errors
    out.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        out.reconfigure(errors=errors)
