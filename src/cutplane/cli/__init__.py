"""The command ``cutplane``.

Every command is a module with ``add_parser(subparsers, arguments)``, which sets ``run=run`` as a
default, and ``run(args) -> int``, which returns an exit code or raises ``CommandError`` with a
message for the user.
"""

from __future__ import annotations

import argparse
import errno
import logging
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .. import __version__, _interrupts
from . import completion, convert, demo, evaluate, export, info, known, path, predict, train, warmup
from .errors import ExitCode, UsageError
from .outputs import silence, standard_streams
from .parser import Parser, dashes

__all__ = ["main"]

COMMANDS = (
    *(train, predict, evaluate, path, info, convert, export, demo, warmup, completion, known),
)

logger = logging.getLogger("cutplane")

DESCRIPTION = """\
Large-margin learning by cutting planes, with a certificate of how far every
answer is from the optimum.
"""

EPILOG = """\
examples:
  cutplane demo                                 see it work, with nothing to download
  cutplane info train.svm                       what is in a file
  cutplane train train.svm model                train a linear SVM, with its certificate
  cutplane train --measure f1 train.svm model   train for the measure you report
  cutplane evaluate test.svm model              accuracy, precision, recall, ROC area
  cutplane predict test.svm model out.txt       one value per line
  cutplane train --help                         what a command takes

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
    words = completion.words_to_complete()
    if words is not None:
        completion.answer_shell(make_parser(words))
    with standard_streams():
        return _main(sys.argv[1:] if argv is None else argv)


def make_parser(arguments: Sequence[str] = ()) -> Parser:
    """The parser of all commands; what some take depends on the arguments."""
    parser = Parser(prog="cutplane", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"cutplane {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="command", title="commands")
    for command in COMMANDS:
        command.add_parser(subparsers, dashes(arguments))
    for subparser in subparsers.choices.values():
        subparser.set_defaults(parser=subparser)
    return parser


def _main(argv: Sequence[str]) -> int:
    argv = known.as_written(argv)
    parser = make_parser(argv)
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:  # --help, --version, wrong usage
        try:
            sys.stdout.flush()
        except OSError:  # the reader has seen enough
            silence(sys.stdout)
        return stop.code if isinstance(stop.code, int) else ExitCode.USAGE
    if args.command is None:
        parser.print_help(sys.stderr)
        return ExitCode.USAGE
    with _logging(args):
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    try:
        with _interrupts.kept():
            code = args.run(args)
        sys.stdout.flush()  # a closed pipe shows here, not at exit
        return int(code)
    except KeyboardInterrupt:
        print(f"cutplane {args.command}: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the reader, say `head`, has seen enough
        silence(sys.stdout)
        return ExitCode.ERROR
    except Exception as error:
        if not _for_the_user(error):
            raise
        logger.info("where the error came from", exc_info=True)
        print(f"cutplane {args.command}: {in_flags(_message(error), args)}", file=sys.stderr)
        return ExitCode.USAGE if isinstance(error, UsageError) else ExitCode.ERROR


def _for_the_user(error: Exception) -> bool:
    """Whether an error is the user's, with a message that says what to do; others are bugs."""
    # Importing the cluster takes half a second; without it there are no errors of its own.
    workers = sys.modules.get("cutplane.cluster.workers")
    known = (OSError, ValueError, MemoryError, ImportError)  # CommandError is a ValueError
    return isinstance(error, known) or (
        workers is not None and isinstance(error, workers.ClusterError)
    )


# -- messages -----------------------------------------------------------------


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and _stdout_fails():
        cause = "it is closed" if error.errno == errno.EBADF else error.strerror
        return f"cannot write to standard output: {cause}"
    if isinstance(error, MemoryError):
        return f"out of memory{f' ({error})' if str(error) else ''}"
    if isinstance(error, OSError) and error.strerror:  # without the number
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _stdout_fails() -> bool:
    """Whether standard output is full or closed."""
    try:
        sys.stdout.flush()
    except OSError:
        silence(sys.stdout)
        return True
    return False


def in_flags(message: str, args: argparse.Namespace) -> str:
    """A message of the library with flags instead of parameters: sort=True becomes --sort."""
    parser: Parser = args.parser
    message = message.replace("with Checkpoint(..., resume=False)", "without --resume")

    def flag(match: re.Match[str]) -> str:
        name = parser.flag_of(match["name"]) if match["name"] else None
        if name is None:
            return match[0]
        match match["value"]:
            case None | "True":
                return name
            case "False":
                opposite = parser.flag_of(f"no_{match['name']}")
                return opposite or f"without {name}"
        return f"{name} {match['value']}".replace("'", "")

    # Names of files and columns, and anything like one, stay as they are.
    given = sorted({text for text in _given_names(args) if text in message}, key=len, reverse=True)
    kept = "".join(rf"(?<!\w){re.escape(text)}(?![\w=])|" for text in given)
    # Single words only where a value follows: "sort=True", but not "of this sort".
    names = (
        r"(?<![\w./\\'\"-])(?P<name>[a-z]+(?:_[a-z]+)+|[A-Za-z]+(?==))"
        r"(?:=(?P<value>(?:\w|'|\.(?=\w))+))?(?![\w/\\'\"-]|\.\w)"
    )
    return re.sub(kept + names, flag, message)


def _given_names(args: argparse.Namespace) -> Iterator[str]:
    """What was given that is no parameter of the library: names of files and of columns."""
    for name, value in vars(args).items():
        if not name.startswith("parameter_"):
            values = value if isinstance(value, list) else [value]
            yield from (str(text) for text in values if isinstance(text, str | Path) and str(text))


class _Format(logging.Formatter):
    """Records for the log as they are, warnings with the name of the command."""

    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__("%(message)s")
        self._args = args

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        message = in_flags(record.message, self._args)
        if record.levelno >= logging.WARNING:
            return f"cutplane {self._args.command}: {message}"
        return message


@contextmanager
def _logging(args: argparse.Namespace) -> Iterator[None]:
    """Show the library's warnings on stderr and, if wanted, its other records."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Format(args))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO if args.verbose else logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
