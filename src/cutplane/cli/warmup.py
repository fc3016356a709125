"""Compile ahead what fits need, so that the first one does not wait. What is compiled is
kept on disk, and what is there already is not compiled again.

examples:
  cutplane warmup          linear models, measures, rankings, the RBF kernel
  cutplane warmup --all    every estimator, loss, measure, kernel and solver
"""

# Which loops a fit needs depends on the loss, on the layout of the rows (dense or sparse, single or
# double precision) and on the solver, which the size of the data chooses. So a step fits small,
# tall and wide data, as LinearSVC treats them differently; see ``Samples``.

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..reporting.line import format_seconds, plural
from ..reporting.places import is_terminal
from .errors import ExitCode
from .outputs import report_stream
from .parser import Argument

FLAGS = {"": (Argument("--all", "Compile for everything, which takes some minutes at first."),)}


def run(args: argparse.Namespace) -> int:
    """Compile; returns the exit code."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress

    from .. import _jit
    from ..reporting.compiling import tell_of_compiling

    tell_of_compiling(silently=True)  # this command has messages of its own
    steps = [step for step in STEPS if args.all or step.common]
    began, loops, compiling = time.perf_counter(), 0, 0.0
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(action="ignore"),  # they are about tiny data
        Progress(
            "{task.description:<44}",
            BarColumn(20),
            MofNCompleteColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not is_terminal(sys.stderr),
            # Other output goes above the bar, unless it goes to a file.
            redirect_stdout=is_terminal(sys.stdout),
        ) as bar,
    ):
        stream = report_stream()
        samples = Samples(Path(folder))
        task = bar.add_task("", total=len(steps))
        for step in steps:
            bar.update(task, description=step.title)
            with _jit.compilations() as counts:
                step.fit(samples)
            bar.advance(task)
            loops, compiling = loops + counts.loops, compiling + counts.seconds
            if counts.loops:
                text = f"{plural(counts.loops, 'loop')} in {format_seconds(counts.seconds)}"
                print(f"{step.title:<44} {text}", file=stream)
        spent = format_seconds(time.perf_counter() - began)
        if loops:
            spent = (
                f"compiled {plural(loops, 'loop')} in {format_seconds(compiling)} ({spent} in all)"
            )
        else:
            spent = f"everything was compiled already ({spent})"
        print(spent, file=stream)
        return stream.code(ExitCode.OK)


# -- data ---------------------------------------------------------------------


class Rows(NamedTuple):
    """Rows, two classes, three classes, and numbers."""

    X: Any
    signs: np.ndarray
    classes: np.ndarray
    numbers: np.ndarray


class Samples:
    """Data of each layout and size class.

    Attributes
    ----------
    small : Rows
        Few dense rows: one compiled call solves them.
    tall : Rows
        Many dense rows of few features: Newton's method.
    sparse : Rows
        Few sparse rows.
    wide : Rows
        Sparse rows of many features: coordinate descent.
    few, every : tuple of Rows
        The small ones of both layouts, and all of them.
    queries, lengths : ndarray
        Of the rows of ``few``, and of sequences of the same rows.

    Parameters
    ----------
    folder : Path
        For files.
    """

    def __init__(self, folder: Path) -> None:
        from scipy.sparse import csr_matrix, random

        self.folder = folder
        self.small = _rows(np.random.default_rng(0).normal(size=(120, 6)))
        self.tall = _rows(np.random.default_rng(1).normal(size=(20_000, 8)))
        X = self.small.X
        self.sparse = self.small._replace(X=csr_matrix(X * (X > -0.5)))
        self.wide = _rows(random(3000, 2000, 0.01, "csr", random_state=2))
        self.few = (self.small, self.sparse)
        self.every = (*self.few, self.tall, self.wide)
        self.queries, self.lengths = np.repeat(np.arange(12), 10), np.full(12, 10)


def _rows(X: Any) -> Rows:
    """Rows with labels that are neither pure noise nor separable."""
    rng = np.random.default_rng(3)
    score = np.asarray(X @ rng.normal(size=X.shape[1]))
    score = score / score.std() + 0.5 * rng.normal(size=len(score))
    return Rows(X, np.where(score > 0.3, 1, -1), np.digitize(score, [-0.5, 0.5]), score)


# -- steps --------------------------------------------------------------------


class Step(NamedTuple):
    """A step: something to fit."""

    title: str
    fit: Callable[[Samples], Any]
    common: bool = False


def _model(name: str, parameters: dict[str, Any]) -> Any:
    import cutplane

    return getattr(cutplane, name)(**parameters)


def _read(samples: Samples) -> None:
    from .. import dump_svmlight, load_svmlight

    file = samples.folder / "rows.svm"
    dump_svmlight(samples.sparse.X, samples.sparse.signs, file)
    load_svmlight(file)


def _on_disk(samples: Samples) -> None:
    from .. import write_dataset

    rows = samples.tall
    dataset = write_dataset(samples.folder / "rows.cut", [(rows.X, rows.signs)])
    for solver in ("auto", "ocas"):
        _model("LinearSVC", {"solver": solver}).fit(dataset)


def _measures(samples: Samples) -> None:
    from ..estimators.measure_svc import MEASURES

    for measure in MEASURES:
        _fits("", "MeasureSVC", measure=measure, max_iter=50).fit(samples)


def _fits(
    title: str,
    name: str,
    labels: str = "signs",
    sizes: str = "every",
    *,
    common: bool = False,
    single: bool = False,
    both: bool = False,
    **parameters: Any,
) -> Step:
    """Fit an estimator to rows of these sizes, in double, ``single`` or ``both`` precisions."""

    def fit(samples: Samples) -> None:
        for rows in getattr(samples, sizes):
            others: dict[str, Any] = {}
            if name == "RankSVM":
                others["qid"] = samples.queries
            if name == "ChainTagger":
                others["lengths"] = samples.lengths
            types = (np.float32,) if single else (np.float64, np.float32)[: 1 + both]
            for X in map(rows.X.astype, types):
                model = _model(name, parameters).fit(X, getattr(rows, labels), **others)
                if name == "CholeskyFeatures":
                    model.transform(X)
                elif sizes == "few" and name != "RankSVM":
                    model.predict(X, **others)

    return Step(title, fit, common)


def _kernel(name: str, labels: str, kernel: str = "rbf", *, common: bool = False) -> Step:
    title = f"{name}, {kernel} kernel"
    return _fits(title, name, labels, "few", kernel=kernel, both=True, common=common)


LOSSES = ("hinge", "squared_hinge", "logistic")
REGRESSIONS = (("squared_epsilon_insensitive", 0.1), ("quantile", 0.0), ("huber", 1.0))
STEPS = (
    Step("reading svmlight text", _read, common=True),
    *(_fits(f"LinearSVC, {loss} loss", "LinearSVC", loss=loss, common=True) for loss in LOSSES),
    Step("LinearSVC on a data set on disk", _on_disk, common=True),
    _fits("LinearSVR", "LinearSVR", "numbers", common=True),
    _fits("MeasureSVC, F1", "MeasureSVC", measure="f1", max_iter=50, common=True),
    _fits("MeasureSVC, ROC area", "MeasureSVC", measure="roc_auc", max_iter=50, common=True),
    _fits("RankSVM", "RankSVM", "classes", "few", common=True),
    _kernel("SVC", "classes", common=True),
    # What follows is for --all.
    *(_fits(f"LinearSVC, {loss}, single precision", "LinearSVC", loss=loss, single=True)
      for loss in LOSSES),
    _fits("LinearSVC, huberised hinge loss", "LinearSVC", loss="huberised_hinge"),
    *(_fits(f"LinearSVC, solver {solver}", "LinearSVC", solver=solver, max_iter=20)
      for solver in ("dcd", "ocas", "cpa", "sgd", "pegasos")),
    _fits("LinearSVC, Crammer and Singer", "LinearSVC", "classes", max_iter=20,
          multi_class="crammer_singer"),
    _fits("LinearSVC, multinomial", "LinearSVC", "classes", max_iter=20, loss="logistic",
          multi_class="multinomial"),
    _fits("LinearSVC, bounds", "LinearSVC", positive=True, max_iter=20),
    *(_fits(f"LinearSVR, {loss}", "LinearSVR", "numbers", loss=loss, epsilon=epsilon)
      for loss, epsilon in REGRESSIONS),
    Step("MeasureSVC, other measures", _measures),
    *(_fits(f"RankSVM, {name}", "RankSVM", "classes", "few", objective=name)
      for name in ("average_precision", "ndcg")),
    *(_fits(f"OrdinalSVC, {name}", "OrdinalSVC", "classes", "few", criterion=name)
      for name in ("absolute", "zero_one")),
    *(_kernel("SVC", "classes", kernel) for kernel in ("linear", "poly", "sigmoid")),
    _kernel("SVR", "numbers"),
    _kernel("OneClassSVM", "signs"),
    *(_fits(f"SampledCutSVC, {name}", "SampledCutSVC", sizes="few", max_iter=10, sample_size=30,
            random_state=0, method=name) for name in ("blocks", "linear")),
    _fits("CholeskyFeatures", "CholeskyFeatures", sizes="few", n_components=10),
    *(_fits(f"ChainTagger, solver {name}", "ChainTagger", "classes", "few", max_iter=20,
            solver=name) for name in ("ocas", "bcfw")),
    _fits("ChainTagger, second order", "ChainTagger", "classes", "few", max_iter=20, order=2),
)  # fmt: skip
