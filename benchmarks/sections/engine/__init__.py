"""Sections of the engine benchmark."""

from collections.abc import Callable

from ...datasets import FILE
from ...report import Report
from . import growth, linear, objective, paths, products, summary

SECTIONS: dict[str, Callable[[Report], None]] = {
    **{name: objective.section(name) for name in objective.CASES},
    "others": objective.section(*objective.OTHERS),
    FILE: objective.section(FILE),
    "linear": linear.run,
    "products": products.run,
    "paths": paths.run,
    "growth": growth.run,
    "summary": summary.run,
}

__all__ = ["SECTIONS"]
