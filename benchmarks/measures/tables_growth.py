"""Time of one evaluation of a risk against the number of rows, for every measure of this library.

Scores are those of a model in the middle of training: a tenth of the rows is positive, and the
classes overlap. ``tables`` counts the contingency tables whose loss was computed. Measures that
promise O(m log m) are checked; those that look at tiles of tables, and a user's function, have no
such promise and are shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cutplane.exec import SerialExecutor
from cutplane.risks.contingency import TABLE_MEASURES
from cutplane.risks.measures import TableRisk
from cutplane.risks.partial_area import PartialAreaRisk
from cutplane.risks.rankings import RankingRisk

from ..datasets import SEED
from ..measure import CompileWatch, spread
from ..report import Report, at_most
from .growth import QUICK_SIZES, SIZES, STEEPEST, slope

PROMISED = ("ratio", "size")  # kinds of search with a promise
USERS_ROWS = 30_000  # a user's function gets no more rows; it may be called for all tables


def users_loss(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    """One minus the Jaccard index, as a user would write it, without facts for the search."""
    return (fp + fn) / (tp + fp + fn)


def run(report: Report) -> None:
    """Run the section."""
    sizes = QUICK_SIZES if report.settings.quick else SIZES
    kinds: list[tuple[str, bool, Callable[..., Any]]] = [
        (name, measure.search in PROMISED, partial(TableRisk, measure=name))
        for name, measure in TABLE_MEASURES.items()
    ]
    kinds.append(("a function of the user's", False, partial(TableRisk, measure=users_loss)))
    kinds.append(("average_precision", True, partial(RankingRisk, objective="average_precision")))
    kinds.append(("ndcg, k=10", True, lambda y: RankingRisk((y > 0).astype(float), "ndcg", k=10)))
    kinds.append(("partial_roc_auc 0.05", True, partial(PartialAreaRisk, max_fpr=0.05)))
    for name, promised, make in kinds:
        with report.attempt(name):
            some = [m for m in sizes if m <= USERS_ROWS] if "user" in name else list(sizes)
            _case(report, name, promised, make, some)


def _case(
    report: Report, name: str, promised: bool, make: Callable[..., Any], sizes: list[int]
) -> None:
    points = [_point(make, rows, report.settings.repeats) for rows in sizes]
    steepness = slope(tuple(sizes), [p["seconds"]["best"] for p in points])
    last = slope(tuple(sizes[-3:]), [p["seconds"]["best"] for p in points[-3:]])
    report.say(f"{name}: slope {steepness:.2f}, {last:.2f} over the last three sizes")
    checks = []
    if promised:
        checks.append(at_most(f"slope over the last three sizes ≤ {STEEPEST}", last, STEEPEST))
    case = {"what": name, "promised": promised, "points": points, "slope": steepness, "last": last}
    report.add(case, checks, name)


def _point(make: Callable[..., Any], rows: int, repeats: int) -> dict[str, Any]:
    rng = np.random.default_rng(SEED)
    labels = np.where(rng.random(rows) < 0.1, 1.0, -1.0)
    labels[:2] = 1.0, -1.0
    scores = rng.standard_normal(rows) + labels
    begin = time.perf_counter()
    risk = make(labels)
    made = time.perf_counter() - begin
    coef = np.empty(rows)
    tables = getattr(risk, "tables", None)
    seconds: list[float] = []
    with SerialExecutor() as executor:
        while len(seconds) < repeats:
            before = 0 if tables is None else tables.looked_at
            with CompileWatch() as watch:
                begin = time.perf_counter()
                risk.evaluate(scores, coef, executor)
                took = time.perf_counter() - begin
            if watch.seconds == 0.0:
                seconds.append(took)
    looked_at = None if tables is None else tables.looked_at - before
    return {"rows": rows, "made": made, "seconds": spread(seconds), "tables": looked_at}
