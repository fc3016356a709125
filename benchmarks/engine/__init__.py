"""The engine benchmark: the default fit against every peer, and what it consists of."""

from collections.abc import Callable
from functools import partial

from ..datasets import FILE
from ..peers import PEERS
from ..report import Report
from ..runner import Suite
from . import cold, constants, growth, labels, linear, memory, paths, products, small

SECTIONS: dict[str, Callable[[Report], None]] = {
    "linear": linear.run,
    FILE: partial(linear.run, sets=(FILE,)),
    "small": small.run,
    "cold": cold.run,
    "constants": constants.run,
    "products": products.run,
    "paths": paths.run,
    "growth": growth.run,
    "labels": labels.run,
    "memory": memory.run,
}

SUITE = Suite("engine", __doc__, SECTIONS, tuple(PEERS), resumable=("linear", FILE, "small"))
