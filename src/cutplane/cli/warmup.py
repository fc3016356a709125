"""``cutplane warmup``: compile ahead what the estimators need, by fitting tiny data of each kind.

Which loops a fit needs depends on the loss, on the layout of the rows (dense or sparse, single or
double precision) and on the solver, which the size of the data chooses. So a step fits small,
tall and wide data, as LinearSVC treats them differently; see ``Samples``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..reporting.line import format_seconds
from ..reporting.places import is_terminal
from .errors import ExitCode
from .outputs import report_stream
from .parser import VERBOSE, Argument, add_arguments

DESCRIPTION = """\
Compile ahead what fits need, so that the first one does not wait. What is compiled is
kept on disk, and what is there already is not compiled again.
"""

EPILOG = """\
examples:
  cutplane warmup          linear models, measures, rankings, the RBF kernel
  cutplane warmup --all    every estimator, loss, measure, kernel and solver
"""

ALL = Argument("--all", "Compile for everything, which takes some minutes the first time.")


def add_parser(subparsers: Any, arguments: Sequence[str]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "warmup",
        help="compile ahead, so that the first fit does not wait",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    add_arguments(parser, ALL, VERBOSE)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compile; returns the exit code."""
    from .. import _jit
    from ..reporting.compiling import tell_of_compiling

    tell_of_compiling(silently=True)  # it is all that this command does
    stream = report_stream()
    began, loops, compiling = time.perf_counter(), 0, 0.0
    steps = [step for step in STEPS if args.all or step.common]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), _bar(steps) as show:
        warnings.simplefilter("ignore")  # of tiny data that say little
        samples = Samples(Path(folder))
        for step in steps:
            show(step.title)
            with _jit.compilations() as counts:
                step.fit(samples)
            loops, compiling = loops + counts.loops, compiling + counts.seconds
            if counts.loops:
                text = f"{_loops(counts.loops)} in {format_seconds(counts.seconds)}"
                print(f"{step.title:<44} {text}", file=stream)
    spent = format_seconds(time.perf_counter() - began)
    if loops:
        print(f"compiled {_loops(loops)} in {format_seconds(compiling)} ({spent} in all)",
              file=stream)  # fmt: skip
    else:
        print(f"everything was compiled already ({spent})", file=stream)
    return stream.code(ExitCode.OK)


def _loops(count: int) -> str:
    return f"{count} loop{'' if count == 1 else 's'}"


@contextmanager
def _bar(steps: Sequence[Step]) -> Iterator[Callable[[str], None]]:
    """A progress bar in a terminal; yields what is to be called before every step."""
    if not is_terminal(sys.stderr):
        yield lambda title: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("compiling"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.description}"), console=Console(stderr=True), transient=True,
        redirect_stdout=is_terminal(sys.stdout),
    )  # fmt: skip
    with bar:
        task = bar.add_task("", total=len(steps), completed=-1)

        def show(title: str) -> None:
            bar.update(task, description=title)
            bar.advance(task)

        yield show


# -- data ---------------------------------------------------------------------


class Rows(NamedTuple):
    """Rows, two classes, three classes, and numbers."""

    X: Any
    signs: np.ndarray
    classes: np.ndarray
    numbers: np.ndarray

    def single(self) -> Rows:
        """The same in single precision."""
        return self._replace(X=self.X.astype(np.float32))


class Samples:
    """Data of each layout and size class.

    Parameters
    ----------
    folder : Path
        For files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def small(self) -> Rows:
        """Few dense rows: one compiled call solves them."""
        return _rows(np.random.default_rng(0).normal(size=(120, 6)))

    @cached_property
    def tall(self) -> Rows:
        """Many dense rows of few features: Newton's method."""
        return _rows(np.random.default_rng(1).normal(size=(20_000, 8)))

    @cached_property
    def sparse(self) -> Rows:
        """Few sparse rows."""
        from scipy.sparse import csr_matrix

        X = self.small.X
        return self.small._replace(X=csr_matrix(X * (X > -0.5)))

    @cached_property
    def wide(self) -> Rows:
        """Sparse rows of many features: coordinate descent."""
        from scipy.sparse import csr_matrix

        rng = np.random.default_rng(2)
        rows, features, stored = 3000, 2000, 20
        columns = np.sort(rng.permuted(np.tile(np.arange(features), (rows, 1)), axis=1)[:, :stored])
        places = np.arange(0, rows * stored + 1, stored)
        values = rng.normal(size=rows * stored)
        return _rows(csr_matrix((values, columns.ravel(), places), shape=(rows, features)))

    @property
    def queries(self) -> np.ndarray:
        """The query of each row of ``small`` and ``sparse``."""
        return np.repeat(np.arange(12), 10)

    @property
    def lengths(self) -> np.ndarray:
        """Of sequences of the same rows."""
        return np.full(12, 10)

    @cached_property
    def dataset(self) -> Any:
        """The tall rows on disk."""
        from .. import write_dataset

        return write_dataset(self.folder / "rows.cut", [(self.tall.X, self.tall.signs)])


def _rows(X: Any) -> Rows:
    """Rows with labels that are neither pure noise nor separable."""
    rng = np.random.default_rng(3)
    score = np.asarray(X @ rng.normal(size=X.shape[1]))
    score = score / score.std() + 0.5 * rng.normal(size=len(score))
    signs = np.where(score > 0.3, 1, -1)
    return Rows(X, signs, np.digitize(score, [-0.5, 0.5]), score)


# -- steps --------------------------------------------------------------------


class Step(NamedTuple):
    """Something to fit."""

    title: str
    fit: Callable[[Samples], Any]
    common: bool = False


def _read(samples: Samples) -> None:
    from .. import dump_svmlight, load_svmlight

    file = samples.folder / "rows.svm"
    dump_svmlight(samples.sparse.X, samples.sparse.signs, file)
    load_svmlight(file)


def _model(name: str, **parameters: Any) -> Any:
    import cutplane

    return getattr(cutplane, name)(**parameters)


def _layouts(samples: Samples) -> tuple[Rows, ...]:
    return samples.small, samples.sparse, samples.tall, samples.wide


def _linear(samples: Samples, **parameters: Any) -> None:
    """LinearSVC on double precision of every size."""
    for rows in _layouts(samples):
        _model("LinearSVC", **parameters).fit(rows.X, rows.signs)


def _regression(samples: Samples, **parameters: Any) -> None:
    for rows in _layouts(samples):
        _model("LinearSVR", **parameters).fit(rows.X, rows.numbers)


def _single(samples: Samples, **parameters: Any) -> None:
    """The same in single precision."""
    for rows in _layouts(samples):
        _model("LinearSVC", **parameters).fit(rows.single().X, rows.signs)


def _measure(samples: Samples, measure: str, **parameters: Any) -> None:
    for rows in _layouts(samples):
        _model("MeasureSVC", measure=measure, max_iter=50, **parameters).fit(rows.X, rows.signs)


def _measures(samples: Samples) -> None:
    from ..estimators.measure_svc import MEASURES

    for measure in MEASURES:
        _measure(samples, measure)


def _ranking(samples: Samples, **parameters: Any) -> None:
    for rows in (samples.small, samples.sparse):
        _model("RankSVM", **parameters).fit(rows.X, rows.classes, qid=samples.queries)


def _ordinal(samples: Samples, **parameters: Any) -> None:
    _model("OrdinalSVC", **parameters).fit(samples.small.X, samples.small.classes)


def _kernel(samples: Samples, name: str, kernel: str, **parameters: Any) -> None:
    for rows in (samples.small, samples.sparse):
        for X in (rows.X, rows.single().X):
            model = _model(name, kernel=kernel, **parameters)
            y = rows.numbers if name == "SVR" else rows.classes if name == "SVC" else rows.signs
            model.fit(X, y).predict(X)


def _multiclass(samples: Samples, **parameters: Any) -> None:
    for rows in _layouts(samples):
        _model("LinearSVC", max_iter=20, **parameters).fit(rows.X, rows.classes)


def _chain(samples: Samples, **parameters: Any) -> None:
    for rows in (samples.small, samples.sparse):
        model = _model("ChainTagger", max_iter=20, **parameters)
        model.fit(rows.X, rows.classes, lengths=samples.lengths)
        model.predict(rows.X, lengths=samples.lengths)


def _on_disk(samples: Samples) -> None:
    _model("LinearSVC").fit(samples.dataset)
    _model("LinearSVC", solver="ocas").fit(samples.dataset)


def _sampled(samples: Samples, **parameters: Any) -> None:
    rows = samples.small
    model = _model("SampledCutSVC", max_iter=10, sample_size=30, random_state=0, **parameters)
    model.fit(rows.X, rows.signs).predict(rows.X)


def _cholesky(samples: Samples) -> None:
    for rows in (samples.small, samples.sparse):
        _model("CholeskyFeatures", n_components=10).fit(rows.X).transform(rows.X)


def _step(
    title: str, fit: Callable[..., Any], *arguments: Any, common: bool = False, **parameters: Any
) -> Step:
    return Step(title, lambda samples: fit(samples, *arguments, **parameters), common)


RANKINGS = ("average_precision", "ndcg")  # of RankSVM, besides pairs
REGRESSIONS = (("squared_epsilon_insensitive", 0.1), ("quantile", 0.0), ("huber", 1.0))
STEPS = (
    _step("reading svmlight text", _read, common=True),
    _step("LinearSVC, hinge loss", _linear, common=True),
    _step("LinearSVC, squared hinge loss", _linear, loss="squared_hinge", common=True),
    _step("LinearSVC, logistic loss", _linear, loss="logistic", common=True),
    _step("LinearSVC on a data set on disk", _on_disk, common=True),
    _step("LinearSVR", _regression, common=True),
    _step("MeasureSVC, F1", _measure, "f1", common=True),
    _step("MeasureSVC, ROC area", _measure, "roc_auc", common=True),
    _step("RankSVM", _ranking, common=True),
    _step("SVC, RBF kernel", _kernel, "SVC", "rbf", common=True),
    # What follows is for --all.
    *(
        _step(f"LinearSVC, {loss}, single precision", _single, loss=loss)
        for loss in ("hinge", "squared_hinge", "logistic")
    ),
    _step("LinearSVC, huberised hinge loss", _linear, loss="huberised_hinge"),
    *(
        _step(f"LinearSVC, solver {solver}", _linear, solver=solver, max_iter=20)
        for solver in ("dcd", "ocas", "cpa", "sgd", "pegasos")
    ),
    _step("LinearSVC, Crammer and Singer", _multiclass, multi_class="crammer_singer"),
    _step("LinearSVC, multinomial", _multiclass, loss="logistic", multi_class="multinomial"),
    _step("LinearSVC, bounds", _linear, positive=True, max_iter=20),
    *(
        _step(f"LinearSVR, {loss}", _regression, loss=loss, epsilon=epsilon)
        for loss, epsilon in REGRESSIONS
    ),
    _step("MeasureSVC, other measures", _measures),
    *(_step(f"RankSVM, {name}", _ranking, objective=name) for name in RANKINGS),
    *(_step(f"OrdinalSVC, {name}", _ordinal, criterion=name) for name in ("absolute", "zero_one")),
    *(_step(f"SVC, {kernel} kernel", _kernel, "SVC", kernel)
      for kernel in ("linear", "poly", "sigmoid")),
    _step("SVR", _kernel, "SVR", "rbf"),
    _step("OneClassSVM", _kernel, "OneClassSVM", "rbf"),
    _step("SampledCutSVC", _sampled),
    _step("CholeskyFeatures", _cholesky),
    *(_step(f"ChainTagger, solver {name}", _chain, solver=name) for name in ("ocas", "bcfw")),
    _step("ChainTagger, second order", _chain, order=2),
)  # fmt: skip
