"""Fits of every kind of estimator, by this checkout and by the checkout ``--before``, in turn.

Each time is the least of several fits of a process that has compiled before. Processes of the two
checkouts follow one another, so that a slow moment of the machine meets both. Both are asked for
the same optimum: each one's objective has to be at least the other's lower bound, so a case
cannot be faster because it became another problem. A case is slower if it takes more than 15 %
and 2 ms longer.

Checkouts before ``C`` had one meaning multiplied the *mean* of the losses by it, where the default
was not 1: such an estimator gets C times the number of rows (of queries that have a pair), or of
sequences.
"""

from __future__ import annotations

import dataclasses
import gzip
import inspect
import itertools
import json
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..datasets import Source, data_folder
from ..measure import child, usable_cores
from ..report import Report, at_most
from ..sequences import as_rows, letters, sentences, vocabulary

# A case may take so many times the earlier time, and so many seconds more, which are noise.
SLOWER, NOISE = 1.15, 2e-3
# The largest allowed geometric mean of a suite's quotients.
MEAN = 1.05
TURNS = 3  # processes of each checkout
LIMIT = 20.0  # time limit of a fit in seconds
ENOUGH = 1.0  # seconds after which a fit is not repeated


@dataclass(frozen=True)
class Fit:
    """A fit that both checkouts can do.

    Attributes
    ----------
    suite : str
        The benchmark suite whose kind it is.
    estimator : str
        A public name; ``load_svmlight`` reads a file, ``on disk`` is ``LinearSVC`` on a folder.
    rows : int or None
        The largest number of rows, or of sequences.
    C : float or None
        C, which multiplies the sum of the losses.
    """

    suite: str
    estimator: str
    data: str
    C: float | None = None
    rows: int | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def what(self) -> str:
        words = [self.estimator, *(str(v) for v in self.options.values()), self.data]
        words += [] if self.rows is None else [f"{self.rows:,} rows"]
        words += [] if self.C is None else [f"C = {self.C:g}"]
        return ", ".join(words)


def _fits() -> list[Fit]:
    linear = [
        Fit("engine", "LinearSVC", name, C)
        for name in ("a9a", "w8a", "codrna", "ijcnn1", "covtype", "mnist8", "aclimdb")
        for C in (0.01, 1.0, 100.0)
    ]
    linear += [
        Fit("engine", "LinearSVC", name, 1.0, options={"loss": loss})
        for name in ("a9a", "w8a", "covtype")
        for loss in ("squared_hinge", "logistic")
    ]
    linear += [
        Fit("engine", "LinearSVC", name, 1.0, options={"solver": solver})
        for name in ("a9a", "covtype")
        for solver in ("ocas", "cpa")
    ]
    measures = [
        Fit("measures", "MeasureSVC", name, C, options={"measure": measure})
        for name in ("a9a", "w8a")
        for measure in ("roc_auc", "f1", "precision_at_k", "prbep")
        for C in (0.01, 1.0)
    ]
    measures += [
        Fit("measures", "RankSVM", "mq2008", C, options={"weighting": weighting})
        for weighting in ("pairs", "queries")
        for C in (0.01, 1.0)
    ]
    measures += [Fit("measures", "OrdinalSVC", name, 1.0) for name in ("california10", "cpu_act")]
    kernels = [
        Fit("kernels", "SVC", name, C, rows)
        for name, rows in (("a9a", 5000), ("ijcnn1", 10000), ("covtype", 5000), ("mnist", 3000))
        for C in (1.0, 100.0)
    ]
    sampled = [Fit("sampled", "SampledCutSVC", name, 1.0, 3000) for name in ("a9a", "covtype")]
    chains = [
        Fit("chains", "ChainTagger", name, C, rows, {"solver": solver})
        for name, rows in (("letters", 500), ("sentences", 200))
        for solver in ("ocas", "auto")
        for C in (0.1, 1.0)
    ]
    files = [Fit("files", "load_svmlight", name) for name in ("a9a", "w8a", "ijcnn1")]
    files += [Fit("files", "on disk", name, 1.0) for name in ("a9a", "w8a", "ijcnn1")]
    return [*linear, *measures, *kernels, *sampled, *chains, *files]


def run(report: Report) -> None:
    """Run the section: fits of one kind on the same data share their processes."""
    before = report.settings.before
    if before is None:
        report.skip("every case: give the folder of another checkout by --before")
        return
    left = [fit for fit in _fits() if report.known(fit.what) is None]
    for _, some in itertools.groupby(left, lambda fit: (fit.estimator, fit.data)):
        fits = list(some)
        with report.attempt(fits[0].what):
            _turns(report, fits, before / "src")
    _means(report)


def _turns(report: Report, fits: Sequence[Fit], before: Path) -> None:
    """Both checkouts in turn, each with all the fits; a case for every fit."""
    turns: dict[str, list[list[dict[str, Any]]]] = {"before": [], "after": []}
    question = {"fits": [dataclasses.asdict(f) for f in fits], "repeats": report.settings.repeats}
    options = [json.dumps(question), *report.settings.source.arguments()]
    for _ in range(TURNS):
        for name, package in (("before", before), ("after", None)):
            turns[name].append(child(["checkout", *options], package=package)["fits"])
    for k, fit in enumerate(fits):
        _case(report, fit, *([turn[k] for turn in some] for some in turns.values()))


def _case(report: Report, fit: Fit, olds: list[dict[str, Any]], news: list[dict[str, Any]]) -> None:
    old, new = ({**some[0], "seconds": min(t["seconds"] for t in some)} for some in (olds, news))
    quotient = new["seconds"] / old["seconds"]
    limit = SLOWER * old["seconds"] + NOISE
    checks = [at_most("no slower than before by 15 %", new["seconds"], limit)]
    if old["primal"] is not None:
        for claim, lower, upper in (
            ("objective of before ≥ bound of now", new["dual"], old["primal"]),
            ("objective of now ≥ bound of before", old["dual"], new["primal"]),
        ):
            checks.append(at_most(claim, lower, upper + 1e-6 * abs(upper), "certificate"))
    case = {**dataclasses.asdict(fit), "what": fit.what, "before": old, "after": new}
    report.add({**case, "quotient": quotient}, checks, fit.what)
    report.say(f"{fit.what}: {old['seconds']:.4f} s before, {new['seconds']:.4f} now")


def _means(report: Report) -> None:
    """A case for each suite: the geometric mean of its quotients."""
    for suite in dict.fromkeys(fit.suite for fit in _fits()):
        cases = [c for c in report.content["cases"] if c.get("suite") == suite]
        found = [c["quotient"] for c in cases if "before" in c]
        if found:
            mean = float(np.exp(np.mean(np.log(found))))
            what = f"{suite}, geometric mean"
            check = at_most("geometric mean within 5 %", mean, MEAN)
            report.add({"suite": suite, "what": what, "mean": mean}, [check], what)


# -- in a process of its own, with either checkout ------------------------------------------


def answer(question: dict[str, Any], source: Source) -> dict[str, Any]:
    """The least seconds of several fits after one that compiles, with objective and bound."""
    fits = [Fit(**fit) for fit in question["fits"]]
    return {"fits": [_timed(fit, source, question["repeats"]) for fit in fits]}


def _timed(of: Fit, source: Source, repeats: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        fit = prepared(of, source, Path(folder))
        fit()  # compiles
        seconds: list[float] = []
        while len(seconds) < repeats and sum(seconds) < ENOUGH:
            begin = time.perf_counter()
            result = fit()
            seconds.append(time.perf_counter() - begin)
    facts: dict[str, Any] = {"primal": None, "dual": None, "relative_gap": None}
    if hasattr(result, "certificate_"):
        found = result.certificate_
        certificates = found if isinstance(found, list) else [found]
        facts = {
            "primal": math.fsum(c.primal for c in certificates),
            "dual": math.fsum(c.dual for c in certificates),
            "relative_gap": max(c.relative_gap for c in certificates),
        }
    return {"seconds": min(seconds), **facts}


def prepared(fit: Fit, source: Source, folder: Path) -> Callable[[], Any]:
    """The fit as a function without arguments. Its data are loaded."""
    import cutplane

    if fit.estimator == "load_svmlight":
        text = folder / "rows.svm"
        packed = next((source.folder or data_folder(None)).glob(f"{fit.data}/*.svm.gz"))
        text.write_bytes(gzip.decompress(packed.read_bytes()))
        return lambda: cutplane.load_svmlight(text)
    rows, units = _rows(fit, source)
    if fit.estimator == "on disk":
        cutplane.write_dataset(folder / "set", [rows])
        data = cutplane.open_dataset(folder / "set")
        return lambda: cutplane.LinearSVC(C=fit.C, time_limit=LIMIT).fit(data)
    estimator = getattr(cutplane, fit.estimator)
    parameters = inspect.signature(estimator).parameters
    mean = parameters["C"].default != 1.0
    settings = {**fit.options, "C": fit.C * units if mean else fit.C, "time_limit": LIMIT}
    if fit.estimator == "ChainTagger" and settings["solver"] == "auto" and mean:
        settings["solver"] = "ocas"  # the default at that time
    if fit.estimator == "SampledCutSVC":
        settings["random_state"] = 0
    return lambda: estimator(**settings, n_jobs=min(2, usable_cores())).fit(*rows)


def _rows(fit: Fit, source: Source) -> tuple[tuple[Any, ...], int]:
    """The arguments of ``fit``, and the number of rows or sequences."""
    if fit.estimator == "ChainTagger":
        if fit.data == "letters":
            some = letters(source)
        else:
            train = sentences(source, "train")
            some = as_rows(train, vocabulary(train))
        some = some.of(np.arange(len(some.lengths)) < (fit.rows or len(some.lengths)))
        ends = np.cumsum(some.lengths)[:-1]
        starts = np.concatenate([[0], ends, [len(some.y)]])
        X = [some.X[a:b] for a, b in itertools.pairwise(starts)]
        return (X, np.split(some.y, ends)), len(some.lengths)
    data = dataclasses.replace(source, rows=fit.rows or source.rows).load(fit.data)
    if data.qid is None:
        return (data.X, data.y), len(data.y)
    with_pairs = [np.ptp(data.y[data.qid == query]) > 0 for query in data.qid]
    return (data.X, data.y, data.qid), int(np.sum(with_pairs))
