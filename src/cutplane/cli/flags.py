"""Flags from the parameters of an estimator: same name, its type, its documentation.

``SPECIAL`` is all that is not derived.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .common import positive_number, seed_number
from .kinds import DEFAULT, KINDS, SWITCHES, Kind, chosen
from .parser import Parser
from .signatures import Parameter, parameters_of

# Flags of the commands themselves: progress, checkpoints; a command fits once.
NOT_FLAGS = {"verbose", "callback", "warm_start", "checkpoint", "executor"}
# Parameters with one value, which are there for code written for scikit-learn.
NOT_FLAGS |= {"penalty", "probability"}


def is_flag(parameter: Parameter) -> bool:
    """Whether a command offers the parameter: not if its documentation says 'Not used'."""
    return parameter.name not in NOT_FLAGS and not parameter.text.startswith("Not used")


# -- values -------------------------------------------------------------------


def number(text: str) -> float:
    """For argparse: a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}")
    return value


def number_from_zero(text: str) -> float:
    """For argparse: a finite number, 0 or more."""
    value = number(text)
    if value < 0.0:
        raise argparse.ArgumentTypeError(f"must not be negative, got {text!r}")
    return value


def share(text: str) -> float:
    """For argparse: a number above 0 and up to 1."""
    value = number(text)
    if not 0.0 < value <= 1.0:
        raise argparse.ArgumentTypeError(f"must be a number above 0 and up to 1, got {text!r}")
    return value


def whole(text: str) -> int:
    """For argparse: an integer."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be an integer, got {text!r}") from None


def count(text: str) -> int:
    """For argparse: an integer above 0."""
    value = whole(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be an integer above 0, got {text!r}")
    return value


def threads(text: str) -> int:
    """For argparse: a number of threads; -1 for all cores."""
    value = whole(text)
    if value == 0:
        raise argparse.ArgumentTypeError("must be a number of threads, or -1 for all cores")
    return value


def rows_or_share(text: str) -> float:
    """For argparse: a number of rows if it is an integer, otherwise a factor."""
    return count(text) if text.isdigit() else positive_number(text)


def class_factors(text: str) -> str | dict[float, float]:
    """For argparse: ``balanced``, or factors by label as in ``1:2.5,-1:1``."""
    if text == "balanced":
        return text
    factors: dict[float, float] = {}
    for part in text.split(","):
        label, colon, factor = part.rpartition(":")
        if not colon:
            raise argparse.ArgumentTypeError(
                f"must be 'balanced' or factors by label as in 1:2.5,-1:1; got {text!r}"
            )
        factors[number(label)] = number_from_zero(factor)
    return factors


def number_or(choices: tuple[Any, ...]) -> Callable[[str], Any]:
    """For argparse: a number from 0, or one of a few names."""

    def convert(text: str) -> Any:
        return text if text in choices else number_from_zero(text)

    return convert


def or_none(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    """For argparse: also the word 'none'."""
    return lambda text: None if text.lower() == "none" else convert(text)


@dataclass(frozen=True)
class Special:
    """What cannot be derived of a parameter.

    Attributes
    ----------
    convert : callable, optional
        From the text of the argument.
    choices : tuple of str
    metavar : str
        What the help calls the value.
    flag : str
        Another name than the parameter's.
    """

    convert: Callable[[str], Any] | None = None
    choices: tuple[str, ...] = ()
    metavar: str = ""
    flag: str = ""


SPECIAL: dict[str, Special] = {
    "C": Special(positive_number, metavar="C"),
    "tol": Special(number_from_zero),
    "nu": Special(share),
    "epsilon": Special(number_from_zero),
    "cache_size": Special(positive_number, metavar="MB"),
    "max_iter": Special(or_none(count)),
    "time_limit": Special(or_none(positive_number), metavar="SECONDS"),
    "intercept_scaling": Special(or_none(positive_number)),
    "n_jobs": Special(or_none(threads), flag="--threads"),
    "random_state": Special(or_none(seed_number), metavar="SEED"),
    "k": Special(or_none(rows_or_share)),
    "class_weight": Special(class_factors, metavar="LABEL:FACTOR,..."),
    "measure": Special(
        choices=(
            "roc_auc",
            "partial_roc_auc",
            "recall_at_fpr",
            "average_precision",
            "precision_at_k",
            "recall_at_k",
            "prbep",
            "f1",
            "fbeta",
            "jaccard",
            "balanced_error",
            "g_mean",
            "matthews",
            "absolute_error",
            "relative_absolute_error",
            "nkld",
            "q_beta",
            "error_rate",
        )
    ),
    "beta": Special(or_none(positive_number)),
    "max_fpr": Special(or_none(share)),
    "confidence": Special(or_none(share)),
}


# -- flags --------------------------------------------------------------------


def flag_name(parameter: str) -> str:
    """The flag of a parameter."""
    special = SPECIAL.get(parameter)
    return (special.flag if special else "") or "--" + parameter.replace("_", "-")


def add_flag(group: Any, parameter: Parameter, text: str | None = None) -> None:
    """Offer a parameter of an estimator. What is not given stays out of the namespace."""
    special = SPECIAL.get(parameter.name, Special())
    choices = special.choices or parameter.choices
    options: dict[str, Any] = {
        "dest": f"parameter_{parameter.name}",
        "default": argparse.SUPPRESS,
        "help": _help(parameter) if text is None else text,
    }
    if parameter.annotation == "bool":
        options["action"] = argparse.BooleanOptionalAction
    elif special.convert is not None:
        options.update(type=special.convert, metavar=special.metavar or "N")
    elif choices and "float" in parameter.alternatives:
        names = "|".join(map(str, choices))
        options.update(type=number_or(choices), metavar=f"{names}|N")
    elif choices:
        options.update(type=type(choices[0]), choices=choices)
    else:
        options.update(type=_converter(parameter), metavar="N")
    group.add_argument(flag_name(parameter.name), **options)


def _converter(parameter: Parameter) -> Callable[[str], Any]:
    types = parameter.alternatives
    convert = {"int": whole, "float": number}.get(next(iter(types - {"None"})))
    if convert is None or len(types - {"None"}) > 1:
        raise LookupError(f"parameter {parameter.name}: {parameter.annotation}, add it to SPECIAL")
    return or_none(convert) if "None" in types else convert


def _help(parameter: Parameter) -> str:
    text = parameter.text.replace("%", "%%")
    default = parameter.default
    if default is None:
        return text
    if isinstance(default, bool):
        default = "yes" if default else "no"
    elif isinstance(default, float):
        default = f"{default:g}"
    return f"{text} (default: {default})"


def add_model_flags(parser: Parser, arguments: list[str], *, path: bool = False) -> Kind:
    """Offer the kinds, and the parameters of the one that is asked for.

    Parameters
    ----------
    parser : Parser
    arguments : list of str
        From which the kind is taken.
    path : bool
        Whether C is left to the command, which takes several.

    Returns
    -------
    kind : Kind
    """
    kind = chosen(arguments)
    group = parser.add_argument_group("kinds of models")
    exclusive = group.add_mutually_exclusive_group()
    for other in SWITCHES:
        exclusive.add_argument(other.flag, dest="kind_flag", action="store_true", help=other.help)
    parameters = {p.name: p for p in parameters_of(kind.estimator)}
    if kind is DEFAULT or kind.choice:
        for other in (entry for entry in KINDS if entry.choice):
            if kind in (DEFAULT, other):
                own = {p.name: p for p in parameters_of(other.estimator)}
                add_flag(group, own[other.choice], other.help)
                parameters.pop(other.choice, None)
    title = f"parameters of {kind.estimator}"
    if kind is DEFAULT:
        title += f" (of other kinds: {parser.prog} --ranking --help and so on)"
    group = parser.add_argument_group(title)
    for name, parameter in parameters.items():
        if is_flag(parameter) and not (path and name == "C"):
            add_flag(group, parameter)
    parser.aliases["--n-jobs"] = flag_name("n_jobs")
    parser.set_defaults(kind=kind)
    return kind


def elsewhere(flag: str) -> str:
    """To which other kinds a flag belongs, as the end of a message."""
    owners = [
        kind.flag or f"the default, {kind.estimator}"
        for kind in KINDS
        if any(flag_name(p.name) == flag and is_flag(p) for p in parameters_of(kind.estimator))
    ]
    return f"; it belongs to {', '.join(owners)}" if owners else ""


def parameters_given(args: argparse.Namespace) -> dict[str, Any]:
    """The parameters of the estimator that were given."""
    prefix = "parameter_"
    return {
        name.removeprefix(prefix): value
        for name, value in vars(args).items()
        if name.startswith(prefix)
    }


def default_of(kind: Kind, name: str) -> Any:
    """The default of a parameter; None if the estimator does not have it."""
    return next((p.default for p in parameters_of(kind.estimator) if p.name == name), None)
