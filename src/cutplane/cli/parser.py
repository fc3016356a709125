"""The arguments of the commands: argparse, stricter, and the types of values that they take.

Flags are spelled out, with ``-`` or ``_`` inside. A flag that is not known is an error that names
the nearest one.
"""

from __future__ import annotations

import argparse
import difflib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

Convert = Callable[[str], Any]


class Parser(argparse.ArgumentParser):
    """A parser of arguments. ``hint`` returns the end of the message about an unknown flag."""

    hint: Callable[[str], str] = staticmethod(lambda flag: "")

    def __init__(self, **options: Any) -> None:
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(allow_abbrev=False, add_help=False, formatter_class=formatter, **options)
        self._positionals.title = "arguments"
        self.add_argument("-h", "--help", action="help", help="Show this help and exit.")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse all arguments; there are no others."""
        # The parsers of the commands leave no arguments.
        namespace, rest = super().parse_known_args(dashes(args or []), namespace)
        if rest:
            self._refuse(rest)
        return namespace, []

    def flag_of(self, parameter: str) -> str | None:
        """The flag of a parameter of the library, if it has one."""
        flag = "--" + parameter.replace("_", "-")
        return flag if flag in self._option_string_actions else None

    def shorten_usage(self) -> None:
        """Make the usage name only the arguments, because the help lists the flags."""
        shapes: dict[Any, str] = {None: "{}", "?": "[{}]", "+": "{}..."}
        shown = (
            shapes[action.nargs].format(action.metavar or action.dest.upper())
            for action in self._get_positional_actions()
        )
        self.usage = self.usage or " ".join(["%(prog)s [flags]", *shown])

    def _refuse(self, rest: list[str]) -> NoReturn:
        flag = next((word for word in rest if word.startswith("-") and word != "-"), None)
        if flag is None:
            self.error(f"too many arguments: {' '.join(rest)}")
        flag = flag.partition("=")[0]
        hint = self.hint(flag) or self.nearest(flag, self._option_string_actions)
        self.error(f"unknown flag {flag}{hint}")

    def nearest(self, word: str, known: Iterable[str]) -> str:
        """The end of a message about an unknown word: the nearest known one."""
        near = difflib.get_close_matches(word, known, 1, 0.7)
        return f"; did you mean {near[0]}?" if near else f"; see {self.prog} --help"


def dashes(arguments: Sequence[str]) -> list[str]:
    """``--max_iter`` is ``--max-iter``; arguments behind a lone ``--`` stay as they are."""
    out: list[str] = []
    for k, argument in enumerate(arguments):
        if argument == "--":
            return [*out, *arguments[k:]]
        if argument.startswith("--"):
            name, equals, value = argument.partition("=")
            argument = name.replace("_", "-") + equals + value
        out.append(argument)
    return out


@dataclass(frozen=True)
class Argument:
    """An argument of a command, such as DATA, MODEL? (may be missing), --quiet, --cv FOLDS."""

    words: str  # the name or the flags, then the name of the value in the help, if it has one
    help: str
    type: Convert | None = None  # makes a value of the text
    default: Any = None
    choices: Sequence[str] | None = None
    required: bool = False


def add_arguments(parser: Any, *arguments: Argument, group: str = "") -> None:
    """Add arguments to a parser, or to a group of it with this title."""
    target = parser.add_argument_group(group) if group else parser
    for argument in arguments:
        *names, last = argument.words.split()
        options: dict[str, Any] = {"help": argument.help, "default": argument.default}
        if not names and not last.startswith("-"):  # the name of an argument
            name = last.rstrip("?+")
            options["nargs"] = last.removeprefix(name) or None
            if argument.choices is None:
                options["metavar"] = name
            names = [name.lower()]
        elif last.startswith("-"):  # flags without a value, unless there are choices
            names = [*names, last]
            if argument.choices is None:
                options |= {"action": "store_true", "default": False}
        else:
            options |= {"metavar": last, "required": argument.required}
        if argument.type is not None:
            options["type"] = argument.type
        if argument.choices is not None:
            options["choices"] = argument.choices
        target.add_argument(*names, **options)


JSON = Argument("--json", "Print one JSON object instead of text.")
VERBOSE = Argument(
    "-v --verbose", "Print log records to standard error, and where an error came from."
)


# -- types of values ----------------------------------------------------------


def _number(convert: Callable[[str], Any], accept: Callable[[Any], bool], what: str) -> Convert:
    def parse(text: str) -> Any:
        try:
            value = convert(text)
        except ValueError:
            value = math.nan
        if not accept(value):  # false for NaN
            raise argparse.ArgumentTypeError(f"must be {what}, got {text!r}")
        return value

    return parse


finite_number = _number(float, math.isfinite, "a number")
positive_number = _number(float, lambda x: 0.0 < x < math.inf, "a number above 0")
number_from_zero = _number(float, lambda x: 0.0 <= x < math.inf, "a number, 0 or more")
share = _number(float, lambda x: 0.0 < x <= 1.0, "a number above 0 and up to 1")
fraction = _number(float, lambda x: 0.0 < x < 1.0, "a number between 0 and 1")
count = _number(int, lambda n: n >= 1, "an integer above 0")
seed_number = _number(int, lambda n: 0 <= n < 2**32, "an integer from 0 to 2^32 - 1")
threads = _number(int, lambda n: n == n and n != 0, "a number of threads, or -1 for all cores")


def rows_or_share(text: str) -> float:
    """A number of rows if it is an integer, otherwise a factor."""
    return count(text) if text.isdigit() else positive_number(text)


def class_factors(text: str) -> str | dict[float, float]:
    """``balanced``, or factors by label as in ``1:2.5,-1:1``."""
    if text == "balanced":
        return text
    factors: dict[float, float] = {}
    for part in text.split(","):
        label, colon, factor = part.rpartition(":")
        if not colon:
            raise argparse.ArgumentTypeError(
                f"must be 'balanced' or factors by label as in 1:2.5,-1:1; got {text!r}"
            )
        factors[finite_number(label)] = number_from_zero(factor)
    return factors


def scale_or_number(text: str) -> str | float:
    """``scale``, ``auto`` or a number from 0."""
    return text if text in ("scale", "auto") else number_from_zero(text)


def several_numbers(text: str) -> list[float]:
    """Numbers above 0, separated by commas; sorted, each once."""
    return sorted({positive_number(part) for part in text.split(",")})


def quantiles(text: str) -> float | list[float]:
    """A number between 0 and 1, or several, separated by commas."""
    numbers = [fraction(part) for part in text.split(",")]
    return numbers[0] if len(numbers) == 1 else numbers


def bounds(text: str) -> tuple[Any, Any]:
    """Two numbers from ``LOW:HIGH``, or two lists from a file with both for each feature."""
    low, colon, high = text.partition(":")
    try:
        if colon:
            return _bound(low), _bound(high)
    except ValueError:
        pass  # a file may have a colon in its name
    wanted = "LOW:HIGH, such as 0:inf, or a file with a line 'LOW HIGH' per feature"
    try:
        lines = Path(text).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise argparse.ArgumentTypeError(
            f"must be {wanted}; got {text!r}, and as a file: {reason}"
        ) from None
    pairs = []
    for number, line in enumerate(lines, 1):
        try:
            low, high = line.replace(",", " ").split()
            pairs.append((_bound(low), _bound(high)))
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{text}, line {number}: expected two numbers LOW HIGH, inf for no bound; got "
                f"{line.strip()!r}"
            ) from None
    if not pairs:
        raise argparse.ArgumentTypeError(f"{text} is empty: expected a line 'LOW HIGH' per feature")
    return [low for low, _ in pairs], [high for _, high in pairs]


def _bound(text: str) -> float:
    value = float(text)
    if value != value:
        raise ValueError("not a number")
    return value


def template_file(name: str) -> str:
    """The text of a file with a template for features, checked."""
    from ..structured.named import Template

    try:
        text = Path(name).read_text(encoding="utf-8")
        Template(text, name)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise argparse.ArgumentTypeError(f"cannot read {name}: {reason}") from None
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def or_none(convert: Convert) -> Convert:
    """As ``convert``, and the word 'none' for None."""
    return lambda text: None if text.lower() == "none" else convert(text)
