"""The command ``cutplane``.

A command is a module of this package with its name. Its docstring is the help: a description, and
examples from the line ``examples:`` on. ``FLAGS`` are the arguments that it takes, by the title of
their group in the help; ``add_flags(parser, words)``, where there is one, adds those that depend on
the words given. ``run(args)`` returns an exit code or raises ``CommandError`` with a message for
the user. Only the module of the command that is called is imported.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import itertools
import logging
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .. import __version__, _interrupts
from .errors import ExitCode, UsageError
from .outputs import silence, standard_streams
from .parser import VERBOSE, Parser, add_arguments, dashes

__all__ = ["main"]

COMMANDS = {
    "train": "fit a model to a file",
    "predict": "apply a model to a file",
    "evaluate": "measure a model, or predictions, on data with labels",
    "path": "fit with several C, and keep the best by a validation file",
    "info": "tell what a data file or a model holds",
    "convert": "write data in another format",
    "export": "write a model for other programs",
    "demo": "see it work on generated rows, beside scikit-learn",
    "warmup": "compile ahead, so that the first fit does not wait",
    "completion": "make the shell complete commands and flags",
}
# Programs of others, see ``known``. The list of commands does not show them: it is long enough.
PROGRAMS = (
    *("svm_learn", "svm_perf_learn", "svm_rank_learn", "svm_hmm_learn", "liblinear-train"),
    *("svm_classify", "svm_perf_classify", "svm_rank_classify", "svm_hmm_classify"),
    "liblinear-predict",
)
# liblinear's programs have the names of commands of ours, but other flags.
LIBLINEAR = {
    "train": r"-([scpeBRCmq]|v(?=\d)|w[-+]?\d.*)",
    "predict": r"-[bq]",
}

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
    if argv is None:
        _import_less()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks how the words can go on
        from .completion import argcomplete

        argcomplete().autocomplete(make_parser(_words_to_complete()))
    with standard_streams():
        return _main(sys.argv[1:] if argv is None else argv)


def _import_less() -> None:
    """Keep SciPy from loading f2py and NumPy's tests: no command needs the 0.15 s that this takes.

    scipy copies all that numpy offers, also modules that nobody has asked for so far.
    """
    import numpy as np

    lists: list[Any] = [np.__all__, getattr(np, "__numpy_submodules__", set())]
    for offered in lists:
        for name in {"f2py", "testing"} & set(offered):
            offered.remove(name)


def _words_to_complete() -> list[str]:
    line = os.environ.get("COMP_LINE", "")
    try:
        return shlex.split(line)[1:]
    except ValueError:  # a quote is open
        return line.split()[1:]


def make_parser(words: Sequence[str]) -> Parser:
    """The parser for these arguments. It knows only the flags of the command that comes first."""
    parser = Parser(prog="cutplane", description=DESCRIPTION, epilog=EPILOG)
    version = f"cutplane {__version__}"
    parser.add_argument(
        "--version", action="version", version=version, help="Show the version and exit."
    )
    subparsers = parser.add_subparsers(dest="command", metavar="command", title="commands")
    for name in (*COMMANDS, *PROGRAMS):
        shown: Any = {"conflict_handler": "resolve"}  # -h is a flag of theirs
        if name in COMMANDS:
            shown = {"help": COMMANDS[name]}
        command = subparsers.add_parser(name, **shown)
        command.set_defaults(parser=command)
        if [name] != list(words[:1]):
            continue
        module = importlib.import_module(f".{name if name in COMMANDS else 'known'}", __name__)
        description, examples, rest = (module.__doc__ or "").partition("\nexamples:\n")
        command.description, command.epilog = description, examples.lstrip() + rest
        if hasattr(module, "add_flags"):
            module.add_flags(command, dashes(words))
        if name in COMMANDS:
            command.set_defaults(run=module.run)
            for title, arguments in module.FLAGS.items():
                add_arguments(command, *arguments, group=title)
            add_arguments(command, VERBOSE)
        command.shorten_usage()
    return parser


def as_written(arguments: Sequence[str]) -> list[str]:
    """The arguments, where train and predict with liblinear's flags become liblinear's programs."""
    words = list(arguments)
    command = words[0] if words else ""
    if command in LIBLINEAR:
        # Our -v has no value, liblinear's is a number of folds.
        folds = any(a == "-v" and b.isdigit() for a, b in itertools.pairwise(words))
        if folds or any(re.fullmatch(LIBLINEAR[command], word) for word in words[1:]):
            words[0] = f"liblinear-{command}"
    return words


def _main(argv: Sequence[str]) -> int:
    argv = as_written(argv)
    try:
        parser = make_parser(argv)
        if argv and not argv[0].startswith("-") and argv[0] not in (*COMMANDS, *PROGRAMS):
            parser.error(f"unknown command {argv[0]}{parser.nearest(argv[0], COMMANDS)}")
        args = parser.parse_args(argv)
    except SystemExit as stop:  # --help, --version, wrong usage
        try:
            sys.stdout.flush()
        except OSError:  # the reader has closed the pipe
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
    """Whether an error has a message that tells the user what to do. Other errors are bugs."""
    # To import the cluster takes half a second. If nothing has imported it, it raised no error.
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
    message = message.replace(", or pass unseen='ignore' to leave such features out", "")

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

    # Names of files and columns stay as they are, also where they look like parameters.
    given = sorted({text for text in _given_names(args) if text in message}, key=len, reverse=True)
    kept = "".join(rf"(?<!\w){re.escape(text)}(?![\w=])|" for text in given)
    # A single word is a parameter only before a value: "sort=True", but not "of this sort".
    names = (
        r"(?<![\w./\\'\"-])(?P<name>[a-z]+(?:_[a-z]+)+|[A-Za-z]+(?==))"
        r"(?:=(?P<value>(?:\w|'|\.(?=\w))+))?(?![\w/\\'\"-]|\.\w)"
    )
    return re.sub(kept + names, flag, message)


def _given_names(args: argparse.Namespace) -> Iterator[str]:
    """The names of files and columns among the arguments, which are not parameters."""
    for name, value in vars(args).items():
        if not name.startswith("parameter_"):
            values = value if isinstance(value, list) else [value]
            yield from (str(text) for text in values if isinstance(text, str | Path) and str(text))


class _Format(logging.Formatter):
    """Shows records for the log as they are, and warnings with the name of the command."""

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
