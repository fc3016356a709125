"""Checkers: the most that scikit-learn does in ten minutes, SVC in rows and Nystroem in basis rows.

Section ``peers`` begins with small problems; this one goes on where it ends. Both peers use one
core: their seconds of the processor count, which other work on the machine hardly changes.
"""

from __future__ import annotations

from ..report import Report
from .peers import nystroem, svc
from .problems import split_of

SIZES = (320_000, 480_000, 640_000)
BASES = (100, 250)  # 250 basis rows have the error of sampled cuts


def run(report: Report) -> None:
    """Run the section."""
    split = split_of(report, "checkers")
    assert split is not None
    with report.attempt("scikit-learn SVC"):
        svc(report, split, SIZES)
    with report.attempt("Nystroem"):
        nystroem(report, split, BASES[:1] if report.settings.quick else BASES)
