"""The command ``cutplane``.

Every command is a module with ``add_parser(subparsers)``, which must set
``run=run`` as a default, and ``run(args) -> int``, which returns an exit code
or raises ``CommandError`` with a message for the user.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .. import __version__
from . import demo
from .common import ExitCode

__all__ = ["main"]

COMMANDS = (demo,)

logger = logging.getLogger("cutplane")

DESCRIPTION = """\
Large-margin learning by cutting planes, with a certificate of how far every
answer is from the optimum.
"""

EPILOG = """\
examples:
  cutplane demo                      train on data that come with scikit-learn
  cutplane demo --C 100 --output x   a harder problem, files into the folder x
  cutplane demo --help               what a command takes

exit codes:
  0  done            2  wrong usage                   130  interrupted
  1  an error        3  stopped above the tolerance
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process if None.

    Returns
    -------
    code : int
        The exit code, see ``ExitCode``.
    """
    parser = _parser()
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:  # --help, --version, wrong usage
        return stop.code if isinstance(stop.code, int) else ExitCode.USAGE
    if args.command is None:
        parser.print_help(sys.stderr)
        return ExitCode.USAGE
    with _logging(args.verbose):
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    try:
        code = args.run(args)
        sys.stdout.flush()  # a closed pipe shows here, not at exit
        return int(code)
    except KeyboardInterrupt:
        print(f"cutplane {args.command}: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the reader, say `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.ERROR
    except (OSError, ValueError, MemoryError, ImportError) as error:  # CommandError is a ValueError
        logger.info("where the error came from", exc_info=True)
        print(f"cutplane {args.command}: {_message(error)}", file=sys.stderr)
        return ExitCode.ERROR


def _message(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return f"out of memory{f' ({error})' if str(error) else ''}"
    if isinstance(error, OSError) and error.strerror:  # without the number
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cutplane",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"cutplane {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="command", title="commands")
    for command in COMMANDS:
        command.add_parser(subparsers)
    return parser


@contextmanager
def _logging(verbose: bool) -> Iterator[None]:
    """Show the library's log records on stderr, if wanted."""
    if not verbose:
        yield
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
