"""What the commands share: exit codes, errors, kinds of arguments, safe files."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import BinaryIO


class ExitCode(IntEnum):
    """What a command tells the shell."""

    OK = 0
    ERROR = 1
    USAGE = 2
    ABOVE_TOLERANCE = 3
    INTERRUPTED = 130


class CommandError(ValueError):
    """An error whose message is meant for the user."""


class UsageError(CommandError):
    """Arguments that do not go together, or not with the data."""


# -- arguments ----------------------------------------------------------------


def positive_number(text: str) -> float:
    """For argparse: a finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, got {text!r}")
    return value


def seed_number(text: str) -> int:
    """For argparse: a seed that NumPy takes."""
    if not (text.isascii() and text.isdigit() and int(text) < 2**32):
        raise argparse.ArgumentTypeError(f"must be an integer from 0 to 2^32 - 1, got {text!r}")
    return int(text)


def add_json(parser: argparse.ArgumentParser) -> None:
    """For commands that other programs call."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def add_verbose(parser: argparse.ArgumentParser) -> None:
    """The option that every command has."""
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="show log records, also where there is no terminal",
    )


# -- files --------------------------------------------------------------------


def output_folder(path: Path) -> Path:
    """Make a folder and make sure that files can be put there, before work is spent."""
    from ..data.files import check_writable  # loads numba: not for --help

    try:
        path.mkdir(parents=True, exist_ok=True)
        check_writable(path / "test")
    except FileExistsError:
        raise CommandError(f"{path} is a file; the output goes into a folder") from None
    except OSError as error:
        raise CommandError(f"cannot write to {path}: {error.strerror}") from None
    return path


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A binary file that takes the place of ``path`` once it is complete."""
    from ..data import files

    with files.replacing(path) as file:
        yield file
