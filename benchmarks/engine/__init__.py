"""The engine benchmark: time until the objective is good, against every peer."""

from collections.abc import Callable

from ..datasets import FILE
from ..peers import PEERS
from ..report import Report
from ..runner import Suite
from . import cold, constants, growth, labels, linear, objective, paths, products, small, summary

SECTIONS: dict[str, Callable[[Report], None]] = {
    **{name: objective.section(name) for name in objective.CASES},
    "others": objective.section(*objective.OTHERS),
    FILE: objective.section(FILE),
    "linear": linear.run,
    "small": small.run,
    "cold": cold.run,
    "constants": constants.run,
    "products": products.run,
    "paths": paths.run,
    "growth": growth.run,
    "labels": labels.run,
    "summary": summary.run,
}

SUITE = Suite("engine", __doc__, SECTIONS, tuple(PEERS), resumable=("linear", "small"))
