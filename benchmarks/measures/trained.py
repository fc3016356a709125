"""Training for the measure against the hinge SVM and LightGBM at equal time.

One split into rows to train on, to choose C by and to judge by. LightGBM gets as many trees as it
makes in the seconds that all fits of ours for the measure took, and the best number of them by the
validation rows, at least one, and for F1 the best threshold by them; binning its data is not in its
time. Beside it stands LightGBM with up to ``TREES``, without a limit of time.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from cutplane import MeasureSVC, RankSVM

from ..datasets import DataSet
from ..measure import CompileWatch, usable_cores
from ..report import Report
from . import methods
from .methods import BALANCED, F1, HINGE, NDCG, PRECISION, RIDGE, ROC_AREA, TUNED
from .quality import ALPHAS, RESAMPLES, decades
from .selection import Answer, Measure, Method, Predictor, Split, choose, compare, folds
from .solvers import K

MAX_FPR = 0.05
TREES = 300
COUNTS = (1.0, 3.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0)  # numbers of trees to choose from
FIT_SECONDS = 4.0  # time limit of our fits
FREE = f"LightGBM, {TREES} trees"

PARTIAL = Measure(
    "partial_roc_auc", lambda y, qid, a: float(roc_auc_score(y, a.scores, max_fpr=MAX_FPR))
)
PRECISIONS = Measure(
    "average_precision", lambda y, qid, a: float(average_precision_score(y, a.scores))
)


def mean_average_precision(y: np.ndarray, qid: np.ndarray | None, answer: Answer) -> float:
    """The mean average precision of the queries with both kinds of rows."""
    order = np.argsort(qid, kind="stable")
    values = []
    for rows in np.split(order, np.flatnonzero(np.diff(qid[order])) + 1):
        relevant = y[rows] > 0
        if relevant.any() and not relevant.all():
            values.append(average_precision_score(relevant, answer.scores[rows]))
    return float(np.mean(values))


MAP = Measure("mean average precision", mean_average_precision)


class Clock:
    """The seconds of all fits by method, without compiling."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def timed(self, name: str, method: Method) -> Method:
        def fit(train: DataSet, vali: DataSet, value: float) -> dict[str, Predictor]:
            with CompileWatch() as watch:
                begin = time.perf_counter()
                found = method.fit(train, vali, value)
                seconds = time.perf_counter() - begin - watch.seconds
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
            return found

        return Method(method.grid, fit)


def section(name: str) -> Callable[[Report], None]:
    """The section of a data set."""

    def run(report: Report) -> None:
        with report.attempt(name):
            (_queries if name == "mq2008" else _two_classes)(report, name)

    return run


def _two_classes(report: Report, name: str) -> None:
    data = report.load(name)
    if data is None:
        return
    seconds, grid = min(FIT_SECONDS, report.settings.tight_seconds), decades(2, 7, report)
    clock, trained, ours = Clock(), [], []
    for measure in (F1, ROC_AREA, PARTIAL, PRECISIONS, PRECISION):
        mine = f"MeasureSVC {measure.name}"
        trained.append(clock.timed(mine, _measure_svm(measure.name, grid, seconds)))
        ours.append((measure, mine))
    trained.append(clock.timed(HINGE, methods.hinge(grid, seconds, tuned=True)))
    trained.append(clock.timed(BALANCED, methods.hinge(grid, seconds, balanced=True)))
    split = folds(data, 3 if report.settings.quick else 5)[0]
    _compare(report, name, split, trained, ours, (HINGE, TUNED, BALANCED), clock, "binary")


def _queries(report: Report, name: str) -> None:
    parts = [report.load(each) for each in (name, f"{name}-vali", f"{name}-test")]
    if any(part is None for part in parts):
        return
    seconds, grid = min(FIT_SECONDS, report.settings.tight_seconds), decades(0, 7, report)
    clock = Clock()
    trained, ours = [], []
    for measure, objective in ((NDCG, "ndcg"), (MAP, "average_precision")):
        mine = f"RankSVM {objective}"
        trained.append(clock.timed(mine, _rank_svm(objective, grid, seconds)))
        ours.append((measure, mine))
    trained.append(clock.timed("RankSVM", methods.rank_svm(grid, seconds)))
    trained.append(clock.timed(HINGE, methods.hinge(grid, seconds)))
    trained.append(clock.timed(RIDGE, methods.ridge(ALPHAS)))
    rivals = ("RankSVM", HINGE, RIDGE)
    _compare(report, name, Split(*parts), trained, ours, rivals, clock, "lambdarank")


def _measure_svm(measure: str, grid: tuple[float, ...], seconds: float) -> Method:
    """``MeasureSVC`` with as many threads as LightGBM."""
    more: dict[str, Any] = {"max_fpr": MAX_FPR} if measure == PARTIAL.name else {}
    if measure in ("precision_at_k", "recall_at_k"):
        more["k"] = K[measure]

    def fit(train: DataSet, vali: DataSet, C: float) -> dict[str, Predictor]:
        model = MeasureSVC(measure, C=C / len(train.y), time_limit=seconds, n_jobs=2, **more)
        return {f"MeasureSVC {measure}": methods.classifier(model.fit(train.X, train.y))}

    return Method(grid, fit)


def _rank_svm(objective: str, grid: tuple[float, ...], seconds: float) -> Method:
    k = 10 if objective == "ndcg" else None

    def fit(train: DataSet, vali: DataSet, C: float) -> dict[str, Predictor]:
        model = RankSVM(C / len(train.y), objective=objective, k=k, time_limit=seconds, n_jobs=2)
        model.fit(train.X, train.y, qid=train.qid)
        return {f"RankSVM {objective}": methods.scorer(model)}

    return Method(grid, fit)


# -- LightGBM -------------------------------------------------------------------------


def equal_time(name: str) -> str:
    """The name of LightGBM with the time of a method."""
    return f"LightGBM, time of {name}"


def lightgbm(objective: str, clock: Clock, names: list[str]) -> Method:
    """LightGBM with default trees, cut after the seconds that each of these methods took.

    It is trained once, after the other methods, and records the time after each tree.
    """
    kept: dict[int, tuple[Any, list[float]]] = {}

    def train_once(train: DataSet) -> tuple[Any, list[float]]:
        import lightgbm as package

        if id(train) not in kept:
            y = train.y if objective == "lambdarank" else (train.y > 0).astype(float)
            group = None if train.qid is None else np.unique(train.qid, return_counts=True)[1]
            rows = np.arange(len(y)) if group is None else np.argsort(train.qid, kind="stable")
            X = train.X[rows].astype(np.float64)
            data = package.Dataset(X, y[rows], group=group, params={"verbosity": -1}).construct()
            settings = {"objective": objective, "verbosity": -1, "seed": 0}
            settings["num_threads"] = usable_cores()
            package.train(settings, data, 1)  # threads start
            ends: list[float] = []
            begin = time.perf_counter()
            booster = package.train(
                settings,
                data,
                TREES,
                callbacks=[lambda env: ends.append(time.perf_counter() - begin)],
            )
            kept[id(train)] = booster, ends
        return kept[id(train)]

    def fit(train: DataSet, vali: DataSet, trees: float) -> dict[str, Predictor]:
        booster, ends = train_once(train)
        found = {FREE: Boosted(booster, int(trees)).predictor(vali)}
        for name in names:
            within = max(1, int(np.searchsorted(ends, clock.seconds[name], side="right")))
            found[equal_time(name)] = Boosted(booster, min(int(trees), within)).predictor(vali)
        return found

    return Method(COUNTS, fit)


class Boosted:
    """A model of the first trees of a booster."""

    def __init__(self, booster: Any, trees: int) -> None:
        self.booster, self.trees = booster, trees

    def decision_function(self, X: Any) -> np.ndarray:
        return self.booster.predict(X.astype(np.float64), raw_score=True, num_iteration=self.trees)

    def predictor(self, vali: DataSet) -> Predictor:
        return methods.classifier(self) if vali.qid is not None else methods.tuned_f1(self, vali)


# -- the cases ------------------------------------------------------------------------


def _compare(
    report: Report,
    label: str,
    split: Split,
    trained: list[Method],
    ours: list[tuple[Measure, str]],
    rivals: tuple[str, ...],
    clock: Clock,
    objective: str,
) -> None:
    boosted = importlib.util.find_spec("lightgbm") is not None
    if boosted:
        trained = [*trained, lightgbm(objective, clock, [mine for _, mine in ours])]
    else:
        report.skip("LightGBM is left out: pip install lightgbm")
    measures = [measure for measure, _ in ours]
    choices = choose([split], trained, measures, lambda text: report.say(f"{label} {text}"))
    rows = {part: len(getattr(split, part).y) for part in ("train", "vali", "test")}
    resamples = 5 if report.settings.quick else RESAMPLES
    for measure, mine in ours:
        # A threshold does not change the order of rows, so other measures do not need this rival.
        others = tuple(r for r in rivals if r != TUNED or measure is F1)
        others = (*others, equal_time(mine), FREE) if boosted else others
        case = compare([split], choices, measure, mine, others, resamples)
        for record in case["methods"]:
            report.say(f"{label} {measure.name}: {record['method']} {record['test']:.5f}")
        facts = {**split.train.facts(), "what": f"{label} {measure.name}", "rows": rows}
        report.add({**facts, **case, "seconds": clock.seconds.get(mine)}, (), label)
