"""Small data: whole calls of ``fit``, certified to 1e-3, against scikit-learn's.

The cases and the rules are those of section ``linear``. On both sides the time is that of the
user's call, with checks and conversions.
"""

from __future__ import annotations

from ..report import Report
from ..solvers import Problem
from . import linear

SETS = ("iris", "wine", "breast-cancer", "digits-8", "200 × 10", "2,000 × 20")
PENALTIES = (1e-2, 1.0, 1e2, 1e4)
MOST = 1.5


def run(report: Report) -> None:
    """Run the section."""
    for name in SETS:
        data = report.load(name)
        if data is not None:
            problems = (Problem(data, C, loss, "free") for loss in linear.LOSSES for C in PENALTIES)
            linear.measure(report, problems, MOST)
