"""The sections of the measures benchmark, in the order in which they are run."""

from . import growth, iterations, perf_table, quality, speed

SECTIONS = {
    "iterations": iterations.run,
    "quality": quality.run,
    "growth": growth.run,
    "perf-table": perf_table.run,
    "speed": speed.run,
}

__all__ = ["SECTIONS"]
