"""Chunking and letters at three C: block-coordinate ascent, cutting planes and CRFsuite.

CoNLL-2000 with the window features of section chunking, judged by the F1 of chunks; OCR letters
trained on nine folds and tested on the first, judged by the letters that are right. C multiplies
the sum of the losses of the sequences; CRFsuite's c2 is 1/(2C), its objective with a logistic loss
then has the same form. Its averaged perceptron (ap) and passive-aggressive updates (pa) have no
such parameter. Seconds are those of the fit alone, features not included, on one thread.
A pass is one inference for every sequence: of cutting planes, of ascent, or of an iteration of
CRFsuite (at least; line searches of L-BFGS take more).

Every case is written as soon as it is measured, so that ``--resume`` can go on from there.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..datasets import MissingDataError
from ..report import Check, Report, at_least
from ..sequences import Sequences, as_rows, chunks, features, letters, sentences, vocabulary

CS = (0.1, 1.0, 10.0)
TOLERANCES = (0.1, 0.01)
LBFGS_ITERATIONS = (30, 100)
ONLINE_ITERATIONS = (10, 50)
FEWER_PASSES = 3.0


@dataclass(frozen=True)
class Task:
    """Sequences to train and to test on, for us and for CRFsuite, and the measure of answers."""

    name: str
    train: Sequences
    test: Sequences
    train_items: list[Any]
    test_items: list[Any]
    judge: Callable[[np.ndarray], float]

    def split(self, tags: np.ndarray) -> list[list[str]]:
        """The tags of each training sequence."""
        return [part.tolist() for part in np.split(tags, np.cumsum(self.train.lengths)[:-1])]


def run(report: Report) -> None:
    """Run the section."""
    tasks = []
    for make in (_chunking, _letters):
        try:
            tasks.append(make(report))
        except MissingDataError as error:
            report.skip(str(error))
    seconds = report.settings.tight_seconds
    for task in tasks:
        _warm_up(task)
        for solver in ("ap", "pa"):
            for iterations in ONLINE_ITERATIONS:
                _case(report, task, solver, {"iterations": iterations}, seconds)
    for C in CS:
        for task in tasks:
            for tol in TOLERANCES:
                _case(report, task, "auto", {"C": C, "tol": tol}, seconds)
            _case(report, task, "ocas", {"C": C, "tol": TOLERANCES[-1]}, seconds)
            for iterations in LBFGS_ITERATIONS:
                _case(report, task, "lbfgs", {"C": C, "iterations": iterations}, seconds)


def _chunking(report: Report) -> Task:
    texts = [sentences(report.settings.source, part) for part in ("train", "test")]
    if report.settings.quick:
        texts = [some[:200] for some in texts]
    numbers = vocabulary(texts[0])
    train, test = (as_rows(some, numbers) for some in texts)
    items = [
        [[[f for f in features(s, i) if f in numbers] for i in range(len(s))] for s in some]
        for some in texts
    ]
    gold = chunks(test.y, test.lengths)

    def judge(tags: np.ndarray) -> float:
        found = chunks(tags, test.lengths)
        return 2 * len(found & gold) / max(1, len(found) + len(gold))

    return Task("conll2000", train, test, items[0], items[1], judge)


def _letters(report: Report) -> Task:
    data = letters(report.settings.source)
    train, test = data.of(data.fold != 0), data.of(data.fold == 0)

    def items(some: Sequences) -> list[Any]:
        rows = np.split(some.X.indices, some.X.indptr[1:-1])
        names = [[f"p{k}" for k in row] for row in rows]
        ends = np.cumsum(some.lengths).tolist()
        return [names[b - n : b] for b, n in zip(ends, some.lengths.tolist(), strict=True)]

    judged = lambda tags: float(np.mean(tags == test.y))  # noqa: E731
    return Task("ocr-letters", train, test, items(train), items(test), judged)


def _warm_up(task: Task) -> None:
    """Run what compiles, on few sequences."""
    from cutplane import ChainTagger

    n = min(20, len(task.train.lengths))
    tokens = int(task.train.lengths[:n].sum())
    some = task.train.X[:tokens], task.train.y[:tokens]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for solver in ("auto", "ocas"):
            tagger = ChainTagger(max_iter=3, solver=solver, n_jobs=1)
            tagger.fit(*some, lengths=task.train.lengths[:n]).predict(
                some[0], lengths=task.train.lengths[:n]
            )


def _case(report: Report, task: Task, solver: str, options: dict[str, Any], seconds: float) -> None:
    label = f"{task.name}, {solver}, " + ", ".join(f"{k} {v:g}" for k, v in options.items())
    if report.known(label) is not None:
        report.say(f"{label}: known")
        return
    with report.attempt(label):
        ours = solver in ("auto", "ocas")
        found = (_ours if ours else _crfsuite)(task, solver, options, seconds)
        case = {"what": label, "data": task.name, "solver": solver, **options, **found}
        report.say(f"{label}: {found['quality']:.4f}, {found['seconds']:.1f} s")
        report.add(case, _checks(report, case), label)
        report.save()


def _checks(report: Report, case: dict[str, Any]) -> list[Check]:
    """Check a case against earlier cases on the same data with the same C."""
    same = [
        other
        for other in report.content["cases"]
        if other["data"] == case["data"] and other.get("C", case.get("C")) == case.get("C")
    ]
    auto = [other for other in same if other["solver"] == "auto"]
    if case["solver"] == "ocas" and case["C"] == 1.0:
        tight = next((other for other in auto if other["tol"] == case["tol"]), None)
        if tight is not None:
            ratio = case["passes"] / tight["passes"]
            return [at_least("passes of cutting planes / ascent", ratio, FEWER_PASSES)]
    return []


def _ours(task: Task, solver: str, options: dict[str, Any], seconds: float) -> dict[str, Any]:
    from cutplane import ChainTagger
    from cutplane.objective import structured

    oracles: list[Any] = []
    plain = structured.StructuredOracle

    class Counted(plain):  # type: ignore[misc, valid-type]
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            oracles.append(self)

    tagger = ChainTagger(solver=solver, n_jobs=1, time_limit=seconds, **options)
    train = task.train
    structured.StructuredOracle = Counted  # type: ignore[misc]
    try:
        wall, cpu = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tagger.fit(train.X, train.y, lengths=train.lengths)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    finally:
        structured.StructuredOracle = plain  # type: ignore[misc]
    tags = tagger.predict(task.test.X, lengths=task.test.lengths)
    return {
        "seconds": wall,
        "cpu_seconds": cpu,
        "passes": sum(oracle.passes for oracle in oracles),
        "quality": task.judge(tags),
        **tagger.results_[0].as_dict(),
    }


def _crfsuite(task: Task, solver: str, options: dict[str, Any], seconds: float) -> dict[str, Any]:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm=solver, verbose=False)
    parameters: dict[str, Any] = {"max_iterations": options["iterations"]}
    if solver == "lbfgs":
        parameters |= {"c1": 0.0, "c2": 0.5 / options["C"]}
    trainer.set_params(parameters)
    for items, tags in zip(task.train_items, task.split(task.train.y), strict=True):
        trainer.append(items, tags)
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "model")
        wall, cpu = time.perf_counter(), time.process_time()
        trainer.train(name)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        tagger = pycrfsuite.Tagger()
        tagger.open(name)
        tags = np.array([tag for items in task.test_items for tag in tagger.tag(items)])
        tagger.close()
    done = len(trainer.logparser.iterations) if trainer.logparser is not None else None
    return {
        "seconds": wall,
        "cpu_seconds": cpu,
        "passes": done or options["iterations"],
        "quality": task.judge(tags),
    }
