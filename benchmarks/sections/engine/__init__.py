"""Sections of the engine benchmark: one per data set, others, products, paths, growth, summary."""

from collections.abc import Callable

from ...datasets import FILE
from ...report import Report
from . import growth, objective, paths, products, summary

SECTIONS: dict[str, Callable[[Report], None]] = {
    **{name: objective.section(name) for name in objective.CASES},
    "others": objective.section(*objective.OTHERS),
    FILE: objective.section(FILE),
    "products": products.run,
    "paths": paths.run,
    "growth": growth.run,
    "summary": summary.run,
}

__all__ = ["SECTIONS"]
