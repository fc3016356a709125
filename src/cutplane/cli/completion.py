"""``cutplane completion``: make a shell complete commands, flags and their values.

argcomplete does it: the shell calls ``cutplane`` with the words so far in the environment, and is
answered from the parsers themselves.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from typing import Any

from .errors import CommandError, ExitCode
from .parser import VERBOSE, Argument, Parser, add_arguments

DESCRIPTION = """\
Print a script that makes the shell complete commands, flags and their values. It needs
the package argcomplete.
"""

EPILOG = """\
examples:
  cutplane completion bash > ~/.local/share/bash-completion/completions/cutplane
  cutplane completion zsh > ~/.zfunc/_cutplane        with ~/.zfunc in fpath
  cutplane completion fish > ~/.config/fish/completions/cutplane.fish
"""


def add_parser(subparsers: Any, arguments: Sequence[str]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "completion",
        help="make the shell complete commands and flags",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    add_arguments(
        parser,
        Argument("SHELL", "The shell that you use.", choices=("bash", "zsh", "fish")),
        VERBOSE,
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the script; returns the exit code."""
    print(_argcomplete().shellcode(["cutplane"], shell=args.shell))
    return ExitCode.OK


def words_to_complete() -> list[str] | None:
    """The words of the command that a shell wants completed; None if it is to be run."""
    if "_ARGCOMPLETE" not in os.environ:
        return None
    line = os.environ.get("COMP_LINE", "")
    try:
        return shlex.split(line)[1:]
    except ValueError:  # a quote is open
        return line.split()[1:]


def answer_shell(parser: Parser) -> None:
    """Tell the shell what may come next, and end the process."""
    _argcomplete().autocomplete(parser)


def _argcomplete() -> Any:
    try:
        import argcomplete
    except ImportError:
        raise CommandError(
            "completion needs the package argcomplete: pip install argcomplete"
        ) from None
    return argcomplete
