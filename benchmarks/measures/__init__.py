"""The measures benchmark: ROC area, F1, the top k, ordinal targets, ranking."""

from ..runner import Suite
from . import growth, iterations, perf_table, quality, speed, tables_growth, trained
from .solvers import PEERS

SECTIONS = {
    "iterations": iterations.run,
    "quality": quality.run,
    "growth": growth.run,
    "tables-growth": tables_growth.run,
    **{f"trained-{name}": trained.section(name) for name in ("a9a", "w8a", "mq2008")},
    "perf-table": perf_table.run,
    "speed": speed.run,
}

SUITE = Suite("measures", __doc__, SECTIONS, tuple(PEERS), usual_peers=tuple(PEERS))
