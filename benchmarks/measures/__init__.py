"""The measures benchmark: ROC area, F1, the top k, ordinal targets, ranking."""

from ..runner import Suite
from . import growth, iterations, perf_table, quality, speed
from .solvers import PEERS

SECTIONS = {
    "iterations": iterations.run,
    "quality": quality.run,
    "growth": growth.run,
    "perf-table": perf_table.run,
    "speed": speed.run,
}

SUITE = Suite("measures", __doc__, SECTIONS, tuple(PEERS), usual_peers=tuple(PEERS))
