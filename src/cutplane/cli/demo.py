"""Show in three parts what cutplane does: compare its certificate with scikit-learn's answer,
train for F1 and for the ROC area on rare positives, and train from rows on disk. Write a page
with figures. The data are generated, so this needs no network; it takes some seconds.

examples:
  cutplane demo
  cutplane demo --output results --seed 7
"""

# 1. Certificates. cutplane and scikit-learn's LinearSVC minimise the same objective,
#
#        F(w, b) = 1/2 |w|^2 + 1/2 b^2 + C * sum_i max(0, 1 - y_i(<w, x_i> + b)),
#
#    which is scikit-learn's: the penalty includes the intercept b. In cutplane
#    ``intercept_scaling=1`` does this. Its lower bound tells how far *both* are from the optimum.
# 2. Measures. Few rows are positive. Models trained for F1 and for the ROC area are compared with
#    the hinge loss on held-out rows.
# 3. Out of core. The first model again, from rows on disk.
#
# The times of the fits exclude compiling; a line of its own tells how long that took.

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import __version__
from ..reporting.line import format_percent, format_seconds
from ..reporting.text import print_table, waiting
from ..result import Status
from .errors import ExitCode
from .outputs import output_file, output_folder, report_stream
from .parser import Argument, seed_number

C = 1.0
TOL = 1e-3
# Rows and columns of the first problem: large enough that both solvers take a measurable time.
ROWS, COLUMNS = 10_000, 30
# Of the second one, and the share of the rows that are positive.
RARE_ROWS, RARE_COLUMNS, SHARE = 12_000, 40, 0.03

FLAGS = {
    "": (
        Argument("--output DIR", "Folder for the page, made if missing. (default: ./cutplane-demo)",
                 Path, Path("cutplane-demo")),
        Argument("--seed N", "Chooses the rows that are held out for testing. (default: 0)",
                 seed_number, 0),
    )
}  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Run the demo; returns the exit code."""
    report = report_stream()  # the page is the product
    folder = output_folder(args.output)
    with redirect_stdout(report):
        _run(args, folder)
    return report.code(ExitCode.OK)


def _run(args: argparse.Namespace, folder: Path) -> None:
    from .. import _jit
    from ..reporting.compiling import tell_of_compiling

    print(f"cutplane {__version__}: large-margin learning with a certificate of optimality")
    began = time.perf_counter()
    with waiting("loading scikit-learn and numba"):
        tell_of_compiling(silently=True)  # the report tells it below, with the time
        units, rare = units_rows(args.seed), rare_rows(args.seed)
    parts: list[Part] = []
    with _jit.compilations() as counts:
        for part in _parts(units, rare):
            print(f"\n{part.title}", *part.about, sep="\n")
            print_table(part.head, part.rows)
            print(*part.says, sep="\n", flush=True)
            parts.append(part)
    told = compiling_told(counts.loops, counts.seconds)
    with waiting("drawing"):
        page = demo_page(parts, told)
        target = folder / "demo.html"
        with output_file(target) as file:
            file.write(page.encode("utf-8"))
    print(
        f"{told} Everything took {format_seconds(time.perf_counter() - began)}.\n\n"
        f"All of this as a page with figures: {target}\n"
        f"To open it: python -m webbrowser {target.resolve().as_uri()}\n"
        "Next:       cutplane train --help, or the tutorial: docs/tutorial.md"
    )


def _parts(units: Data, rare: Data) -> Iterator[Part]:
    # Once to compile, or to load what is compiled, and once for the time.
    for _ in range(2):
        ours = fitted("cutplane", _our_model(), units.train, units.train_labels)
    yield certificates(units, ours)
    yield measures(rare)
    yield on_disk(units, ours)


def compiling_told(loops: int, seconds: float) -> str:
    """A sentence about the time of compiling."""
    if not loops:
        return "Nothing had to be compiled."
    return (
        f"Compiling {loops} loops took {format_seconds(seconds)}, this time only: the compiled "
        "loops stay on disk."
    )


# -- data and fits ------------------------------------------------------------


class Data(NamedTuple):
    """Rows in two parts, with labels -1 and 1."""

    train: np.ndarray
    test: np.ndarray
    train_labels: np.ndarray
    test_labels: np.ndarray


def units_rows(seed: int) -> Data:
    """Two classes, and columns in different units, as in most tables."""
    units = 10.0 ** np.random.default_rng(0).uniform(-1.0, 1.0, COLUMNS)
    return _data(
        ROWS, COLUMNS, n_informative=COLUMNS // 2, n_redundant=COLUMNS // 4, class_sep=0.8,
        flip_y=0.05, random_state=0, units=units, held_out=0.2, seed=seed,
    )  # fmt: skip


def rare_rows(seed: int) -> Data:
    """Few positive rows among many."""
    return _data(
        RARE_ROWS, RARE_COLUMNS, n_informative=8, n_clusters_per_class=1, weights=[1.0 - SHARE],
        class_sep=0.6, random_state=1, units=1.0, held_out=2 / 3, seed=seed,
    )  # fmt: skip


def _data(rows: int, columns: int, *, units: Any, held_out: float, seed: int, **made: Any) -> Data:
    from sklearn.datasets import make_classification
    from sklearn.model_selection import train_test_split

    X, y = make_classification(rows, columns, **made)
    labels = np.where(y == 1, 1, -1)
    return Data(
        *train_test_split(units * X, labels, test_size=held_out, stratify=y, random_state=seed)
    )


@dataclass
class Fit:
    """A fitted model, and the seconds of its fit without compiling."""

    name: str
    model: Any
    seconds: float
    warning: str


def fitted(name: str, model: Any, X: Any, y: Any = None) -> Fit:
    """Fit and measure; a warning of no convergence is kept, others pass."""
    from sklearn.exceptions import ConvergenceWarning

    from .. import _jit

    message = ""
    with (
        waiting(f"fitting {name}; the first time this compiles"),
        warnings.catch_warnings(record=True) as caught,
        _jit.compilations() as counts,
    ):
        warnings.simplefilter("always", ConvergenceWarning)
        started = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - started
    if any(result.status is Status.INTERRUPTED for result in getattr(model, "results_", ())):
        raise KeyboardInterrupt  # Ctrl-C has ended the fit: it is meant for the demo
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            message = str(warning.message)
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    return Fit(name, model, seconds - counts.seconds, message)


def objective(model: Any, data: Data) -> float:
    """F of a model's weights and intercept, computed by the formula."""
    w, b = model.coef_[0], float(model.intercept_[0])
    losses = np.maximum(0.0, 1.0 - data.train_labels * (data.train @ w + b))
    return float(0.5 * (w @ w) + 0.5 * b * b + C * losses.sum())


# -- the three parts ----------------------------------------------------------


@dataclass
class Part:
    """A part of the demo: sentences, a table, more sentences, and a figure for the page."""

    title: str
    about: list[str]
    caption: str  # caption of the table
    head: list[str]
    rows: list[list[str]]
    says: list[str]
    draw: Callable[[], Any] | None = None  # makes the figure, when the page is made
    figure: str = ""  # caption of the figure


def _our_model() -> Any:
    from .. import LinearSVC

    return LinearSVC(C=C, tol=TOL, intercept_scaling=1.0)


def _time(seconds: float) -> str:
    """The time of a fit as text, in milliseconds if it is short."""
    return f"{1000.0 * seconds:.0f} ms" if seconds < 1.0 else format_seconds(seconds)


def _compared(fits: Sequence[Fit], data: Data) -> dict[str, list[str]]:
    """The rows of a table that compares fits to the same objective."""
    right = [100 * np.mean(fit.model.predict(data.test) == data.test_labels) for fit in fits]
    return {
        "objective": [f"{objective(fit.model, data):,.6g}" for fit in fits],
        "time": [_time(fit.seconds) for fit in fits],
        "accuracy, held-out rows": [f"{share:.1f} %" for share in right],
    }


def certificates(data: Data, ours: Fit) -> Part:
    """Our model and scikit-learn's on the same objective, and our bound on both."""
    from sklearn.svm import LinearSVC

    other = LinearSVC(C=C, loss="hinge", random_state=0)
    theirs = fitted("scikit-learn", other, data.train, data.train_labels)
    both = [ours, theirs]
    bound = ours.model.certificate_.dual
    values = [objective(fit.model, data) for fit in both]
    gaps = [format_percent(max(0.0, value - bound) / value) for value in values]
    says = [
        f"cutplane's certificate: no linear model has an objective below {bound:,.6g}.",
        f"So cutplane's objective is at most {gaps[0]} too high, and scikit-learn's {gaps[1]}.",
    ]
    if theirs.warning:
        says.append(f'scikit-learn warned: "{theirs.warning}"')
    table = {
        "lower bound": [f"{bound:,.6g}", "none"],
        "gap to cutplane's bound": gaps,
        "iterations": [f"{np.max(fit.model.n_iter_)}" for fit in both],
    }
    return Part(
        "1. Which answer is right? The certificate tells",
        [
            f"{len(data.train):,} rows of two classes, {COLUMNS} columns in different units; "
            f"{len(data.test):,} more rows are held out.",
            f"Both minimise 1/2 |w|^2 + 1/2 b^2 + C * (sum of hinge losses) with C = {C:g}.",
        ],
        "Two answers to the same problem",
        ["", "cutplane", "scikit-learn"],
        [[name, *cells] for name, cells in (_compared(both, data) | table).items()],
        says,
        lambda: _convergence(ours.model, values[1]),
        "cutplane's objective and lower bound meet. The dashed line is scikit-learn's objective.",
    )


def measures(data: Data) -> Part:
    """Models trained for a measure, and for the hinge loss, on rows held out."""
    from sklearn.metrics import f1_score, roc_auc_score

    from .. import LinearSVC, MeasureSVC

    models = {
        "hinge loss": LinearSVC(C=C),
        "hinge, balanced": LinearSVC(C=C, class_weight="balanced"),
        "F1": MeasureSVC("f1", C=C),
        "ROC area": MeasureSVC("roc_auc", C=0.01),
    }
    fits = [fitted(name, model, data.train, data.train_labels) for name, model in models.items()]
    truth = data.test_labels
    scores = {fit.name: fit.model.decision_function(data.test) for fit in fits}
    guesses = {name: model.predict(data.test) for name, model in models.items()}
    f1 = {name: f"{100 * f1_score(truth, guess):.1f} %" for name, guess in guesses.items()}
    area = {name: f"{roc_auc_score(truth, score):.3f}" for name, score in scores.items()}
    return Part(
        "2. Train for the measure that you report",
        [
            f"{len(data.train):,} rows, of which {100 * np.mean(data.train_labels > 0):.1f} % are "
            f"positive; {len(data.test):,} more rows are held out."
        ],
        "Four models, measured on the held-out rows",
        ["trained for", "F1", "ROC area", "gap", "time"],
        [
            [
                fit.name,
                f1[fit.name],
                area[fit.name],
                format_percent(fit.model.certificate_.relative_gap),
                _time(fit.seconds),
            ]
            for fit in fits
        ],
        [
            f"Training for F1 instead of the hinge loss changes F1 from {f1['hinge loss']} to "
            f"{f1['F1']}.",
            f"Training for the ROC area changes it from {area['hinge loss']} to "
            f"{area['ROC area']}.",
        ],
        lambda: _curves(truth, {name: scores[name] for name in ("hinge loss", "ROC area")}),
        "ROC curves on the held-out rows.",
    )


def on_disk(data: Data, memory: Fit) -> Part:
    """The model of the first part, from rows that are read block by block."""
    from .. import open_dataset, write_dataset

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.cut"
        steps = range(0, len(data.train), 1000)
        write_dataset(
            path, ((data.train[k : k + 1000], data.train_labels[k : k + 1000]) for k in steps)
        )
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        with open_dataset(path) as dataset:
            disk = fitted("rows on disk", _our_model(), dataset)
    both = [memory, disk]
    bounds = {"lower bound": [f"{fit.model.certificate_.dual:,.6g}" for fit in both]}
    agree = np.mean(memory.model.predict(data.test) == disk.model.predict(data.test))
    return Part(
        "3. Train from rows on disk",
        [
            f"The rows of part 1 again, as a data set on disk ({size / 1e6:.1f} MB).",
            "A fit reads it block by block, so it may be larger than memory.",
            "The command cutplane convert makes such data sets.",
        ],
        "The same model twice",
        ["", "in memory", "on disk"],
        [[name, *cells] for name, cells in (_compared(both, data) | bounds).items()],
        [f"Both agree on {100 * agree:.1f} % of the rows held out."],
    )


# -- the page -----------------------------------------------------------------


def demo_page(parts: Sequence[Part], told: str) -> str:
    """The page."""
    from ..reporting import html

    page = html.Page("cutplane: a demonstration")
    page.add("<h1>cutplane: a demonstration</h1>")
    page.say(
        "cutplane trains large-margin models. Every fit comes with a certificate: a proven limit "
        "on how far it is from the optimum.",
        "lead",
    )
    for part in parts:
        page.section(part.title)
        page.say(" ".join(part.about))
        page.table(part.caption, part.head, part.rows)
        page.say(" ".join(part.says), "lead")
        if part.draw is not None:
            page.figures((part.draw(), part.figure))
    page.section("How it was made")
    page.say(f"The command cutplane demo of version {__version__} made this page. {told}", "note")
    return page.render()


def _convergence(model: Any, other: float) -> Any:
    from ..reporting.charts import DASHED, convergence

    figure = convergence(model.results_[0])
    upper = figure.axes[0]
    upper.axhline(other, **DASHED)
    low, high = upper.get_ylim()
    upper.set_ylim(low, max(high, other + 0.05 * (other - low)))
    return figure


def _curves(truth: np.ndarray, scores: dict[str, np.ndarray]) -> Any:
    from sklearn.metrics import roc_curve

    from ..reporting.charts import DASHED, MOST_ON_CURVE, panel, thinned

    figure, ax = panel("false positive rate", "true positive rate (recall)")
    ax.plot([0, 1], [0, 1], **DASHED)
    for name, score in scores.items():
        false, true, _ = roc_curve(truth, score)
        kept = thinned(len(false), MOST_ON_CURVE)
        ax.plot(false[kept], true[kept], label=f"trained for {name}")
    ax.legend(frameon=False, loc="lower right")
    return figure
