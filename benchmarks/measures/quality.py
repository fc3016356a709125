"""Each measure on test rows, of the model trained for it and of the plain hinge SVM."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..datasets import SEED
from ..report import Report
from . import methods
from .methods import (
    ABSOLUTE,
    ACCURACY,
    BALANCED,
    BREAK_EVEN,
    F1,
    HINGE,
    JOINT,
    NDCG,
    PER_CLASS,
    PRECISION,
    RECALL,
    RIDGE,
    ROC_AREA,
    SWAPPED,
    TUNED,
)
from .selection import Measure, Method, Split, choose, compare, folds

Grid = tuple[float, ...]
ALPHAS: Grid = (1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)
RESAMPLES = 200


def run(report: Report) -> None:
    """Run the section."""
    for label, task in (
        ("w8a", _web),
        ("celegans", _sites),
        ("mq2008", _queries),
        ("abalone", _ordinal),
        ("california10", _ordinal),
        ("california", _real),
        ("stars", _stars),
    ):
        with report.attempt(label):
            task(report, label)


def decades(first: int, last: int, report: Report) -> Grid:
    """Powers of ten: all of them, or two in a quick run."""
    grid = tuple(10.0**exponent for exponent in range(first, last + 1))
    return grid[2:4] if report.settings.quick else grid


def _parts(report: Report) -> int:
    """The number of parts into which data without test rows are divided."""
    return 3 if report.settings.quick else 5


def _case(
    report: Report,
    label: str,
    splits: Sequence[Split],
    trained: Sequence[Method],
    ours: Sequence[tuple[Measure, str, tuple[str, ...]]],
) -> None:
    """Train all methods, and add a case per measure, with the expected winner and its rivals."""
    measures = [measure for measure, *_ in ours]
    choices = choose(splits, trained, measures, lambda text: report.say(f"{label} {text}"))
    first = splits[0]
    facts = first.train.facts()
    rows = {part: len(getattr(first, part).y) for part in ("train", "vali", "test")}
    resamples = 5 if report.settings.quick else RESAMPLES
    for measure, mine, rivals in ours:
        case = compare(splits, choices, measure, mine, rivals, resamples)
        for record in case["methods"]:
            words = f"{label} {measure.name}: {record['method']} {record['test']:.5f}"
            if "interval" in record:
                low, high = record["interval"]
                words += f", ours better by {record['better_by']:.5f} [{low:.5f}, {high:.5f}]"
            report.say(words)
        report.add({**facts, "what": f"{label} {measure.name}", "rows": rows, **case}, (), label)


# -- the tasks ------------------------------------------------------------------------


def _web(report: Report, label: str) -> None:
    data = report.load("w8a")
    if data is None:
        return
    seconds, grid = report.settings.tight_seconds, decades(2, 7, report)
    measures = (ROC_AREA, F1, PRECISION, RECALL, BREAK_EVEN)
    trained = [methods.measure_svm(m.name, grid, seconds) for m in measures]
    trained.append(methods.hinge(grid, seconds, tuned=True))
    trained.append(methods.hinge(grid, seconds, balanced=True))
    plain = (HINGE, BALANCED)
    rivals = {"f1": ("MeasureSVC f1, tuned threshold", HINGE, TUNED, BALANCED)}
    ours = [(m, f"MeasureSVC {m.name}", rivals.get(m.name, plain)) for m in measures]
    _case(report, label, folds(data, _parts(report)), trained, ours)


def _sites(report: Report, label: str) -> None:
    data = report.load("celegans")
    if data is None:
        return
    seconds, grid = report.settings.tight_seconds, decades(1, 6, report)
    trained = [
        methods.measure_svm("roc_auc", grid, seconds),
        methods.hinge(grid, seconds),
        methods.hinge(grid, seconds, balanced=True),
    ]
    # Neighbouring rows of the file overlap in the genome.
    splits = folds(data, _parts(report), contiguous=True)
    ours = [(ROC_AREA, "MeasureSVC roc_auc", (HINGE, BALANCED))]
    _case(report, label, splits, trained, ours)


def _queries(report: Report, label: str) -> None:
    parts = [report.load(name) for name in ("mq2008", "mq2008-vali", "mq2008-test")]
    if any(part is None for part in parts):
        return
    seconds, grid = report.settings.tight_seconds, decades(0, 7, report)
    trained = [
        methods.rank_svm(grid, seconds),
        methods.rank_svm(grid, seconds, "queries"),
        methods.hinge(grid, seconds),
        methods.hinge(grid, seconds, balanced=True),
        methods.ridge(ALPHAS),
    ]
    rivals = ("RankSVM, queries alike", HINGE, BALANCED, RIDGE)
    ours = [(NDCG, "RankSVM", rivals), (SWAPPED, "RankSVM", rivals)]
    _case(report, label, [Split(*parts)], trained, ours)


def _ordinal(report: Report, label: str) -> None:
    data = report.load(label)
    if data is not None:
        _ordered(report, label, folds(data, _parts(report)), decades(1, 5, report))


def _stars(report: Report, label: str) -> None:
    data, test = report.load("stars"), report.load("stars-test")
    if data is None or test is None:
        return
    order = np.random.default_rng(SEED).permutation(len(data.y))
    cut = len(order) // 5
    split = Split(data.take(order[cut:]), data.take(order[:cut]), test)
    _ordered(report, label, [split], decades(1, 5, report))


def _ordered(report: Report, label: str, splits: Sequence[Split], grid: Grid) -> None:
    seconds = report.settings.tight_seconds
    trained = [
        methods.ordinal_svm(grid, seconds),
        methods.hinge_of_classes(grid, seconds),
        methods.hinge_of_classes(grid, seconds, joint=True),
        methods.ridge(ALPHAS),
    ]
    exact, rivals = "OrdinalSVC, criterion zero_one", (PER_CLASS, JOINT, RIDGE)
    ours = [
        (ABSOLUTE, "OrdinalSVC", (exact, *rivals)),
        (ACCURACY, exact, ("OrdinalSVC", *rivals)),
        (SWAPPED, "OrdinalSVC", rivals),
    ]
    _case(report, label, splits, trained, ours)


def _real(report: Report, label: str) -> None:
    data = report.load("california")
    if data is None:
        return
    seconds, grid = report.settings.tight_seconds, decades(1, 5, report)
    trained = [
        methods.rank_svm(grid, seconds),
        methods.hinge(grid, seconds, above=float(np.median(data.y))),
        methods.ridge(ALPHAS),
    ]
    _case(
        report, label, folds(data, _parts(report)), trained, [(SWAPPED, "RankSVM", (HINGE, RIDGE))]
    )
