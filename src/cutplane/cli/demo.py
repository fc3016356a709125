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
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import __version__
from ..reporting.html import Page
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
    page = Demo()
    with _jit.compilations() as counts:
        # Once to compile, or to load what is compiled, and once for the time.
        for _ in range(2):
            ours = fitted("cutplane", _our_model(), units.train, units.train_labels)
        certificates(page, units, ours)
        measures(page, rare)
        on_disk(page, units, ours)
    told = compiling_told(counts.loops, counts.seconds)
    page.section("How it was made")
    page.say(f"The command cutplane demo of version {__version__} made this page. {told}", "note")
    target = folder / "demo.html"
    with output_file(target) as file:
        file.write(page.render().encode("utf-8"))
    print(
        f"{told} Everything took {format_seconds(time.perf_counter() - began)}.\n\n"
        f"All of this as a page with figures: {target}\n"
        f"To open it: python -m webbrowser {target.resolve().as_uri()}\n"
        "Next:       cutplane train --help, or the tutorial: docs/tutorial.md"
    )


class Demo(Page):
    """The page. What it shows in text and tables is printed, too."""

    def __init__(self) -> None:
        super().__init__("cutplane: a demonstration")
        self.add("<h1>cutplane: a demonstration</h1>")
        self.say(
            "cutplane trains large-margin models. Every fit comes with a certificate: a proven "
            "limit on how far it is from the optimum.",
            "lead",
        )

    def begin(self, title: str, *about: str) -> None:
        """Begin a part with some sentences."""
        print(f"\n{title}", *about, sep="\n", flush=True)
        self.section(title)
        self.say(" ".join(about))

    def show(self, caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Add a table."""
        print_table(head, rows)
        self.table(caption, head, rows)

    def conclude(self, *sentences: str) -> None:
        """Say what the table shows."""
        print(*sentences, sep="\n", flush=True)
        self.say(" ".join(sentences), "lead")

    def figures(self, *figures: tuple[Any, str]) -> None:
        """Add figures with their captions."""
        with waiting("drawing"):
            super().figures(*figures)


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


class Fit(NamedTuple):
    """A fitted model, the seconds of its fit without compiling, and a warning or ""."""

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
            warnings.warn(warning.message, stacklevel=2)
    return Fit(model, seconds - counts.seconds, message)


def objective(model: Any, data: Data) -> float:
    """F of a model's weights and intercept, computed by the formula."""
    w, b = model.coef_[0], float(model.intercept_[0])
    losses = np.maximum(0.0, 1.0 - data.train_labels * (data.train @ w + b))
    return float(0.5 * (w @ w) + 0.5 * b * b + C * losses.sum())


# -- the three parts ----------------------------------------------------------


def _our_model() -> Any:
    from .. import LinearSVC

    return LinearSVC(C=C, tol=TOL, intercept_scaling=1.0)


def _time(seconds: float) -> str:
    """The time of a fit as text, in milliseconds if it is short."""
    return f"{1000.0 * seconds:.0f} ms" if seconds < 1.0 else format_seconds(seconds)


def _compared(fits: Sequence[Fit], data: Data, more: dict[str, list[str]]) -> list[list[str]]:
    """The rows of a table that compares fits to the same objective, and ``more`` rows."""
    right = [100 * np.mean(fit.model.predict(data.test) == data.test_labels) for fit in fits]
    cells = {
        "objective": [f"{objective(fit.model, data):,.6g}" for fit in fits],
        "time": [_time(fit.seconds) for fit in fits],
        "accuracy, held-out rows": [f"{share:.1f} %" for share in right],
    }
    return [[name, *texts] for name, texts in (cells | more).items()]


def certificates(page: Demo, data: Data, ours: Fit) -> None:
    """Our model and scikit-learn's on the same objective, and our bound on both."""
    from sklearn.svm import LinearSVC

    from ..reporting.charts import DASHED, convergence

    page.begin(
        "1. Which answer is right? The certificate tells",
        f"{len(data.train):,} rows of two classes, {COLUMNS} columns in different units; "
        f"{len(data.test):,} more rows are held out.",
        f"Both minimise 1/2 |w|^2 + 1/2 b^2 + C * (sum of hinge losses) with C = {C:g}.",
    )
    other = LinearSVC(C=C, loss="hinge", random_state=0)
    both = [ours, fitted("scikit-learn", other, data.train, data.train_labels)]
    bound = ours.model.certificate_.dual
    values = [objective(fit.model, data) for fit in both]
    gaps = [format_percent(max(0.0, value - bound) / value) for value in values]
    more = {
        "lower bound": [f"{bound:,.6g}", "none"],
        "gap to cutplane's bound": gaps,
        "iterations": [f"{np.max(fit.model.n_iter_)}" for fit in both],
    }
    rows = _compared(both, data, more)
    page.show("Two answers to the same problem", ["", "cutplane", "scikit-learn"], rows)
    page.conclude(
        f"cutplane's certificate: no linear model has an objective below {bound:,.6g}.",
        f"So cutplane's objective is at most {gaps[0]} too high, and scikit-learn's {gaps[1]}.",
        *(f'scikit-learn warned: "{fit.warning}"' for fit in both if fit.warning),
    )
    figure = convergence(ours.model.results_[0])
    upper = figure.axes[0]
    upper.axhline(values[1], **DASHED)
    low, high = upper.get_ylim()
    upper.set_ylim(low, max(high, values[1] + 0.05 * (values[1] - low)))
    page.figures(
        (
            figure,
            "cutplane's objective and lower bound meet. The dashed line is scikit-learn's "
            "objective.",
        )
    )


def measures(page: Demo, data: Data) -> None:
    """Models trained for a measure, and for the hinge loss, on rows held out."""
    from sklearn.metrics import f1_score, roc_auc_score, roc_curve

    from .. import LinearSVC, MeasureSVC
    from ..reporting.charts import DASHED, MOST_ON_CURVE, panel, thinned

    page.begin(
        "2. Train for the measure that you report",
        f"{len(data.train):,} rows, of which {100 * np.mean(data.train_labels > 0):.1f} % are "
        f"positive; {len(data.test):,} more rows are held out.",
    )
    models = {
        "hinge loss": LinearSVC(C=C),
        "hinge, balanced": LinearSVC(C=C, class_weight="balanced"),
        "F1": MeasureSVC("f1", C=C),
        "ROC area": MeasureSVC("roc_auc", C=0.01),
    }
    truth = data.test_labels
    rows = {}
    figure, ax = panel("false positive rate", "true positive rate (recall)")
    ax.plot([0, 1], [0, 1], **DASHED)
    for name, model in models.items():
        fit = fitted(name, model, data.train, data.train_labels)
        scores = model.decision_function(data.test)
        rows[name] = [
            f"{100 * f1_score(truth, model.predict(data.test)):.1f} %",
            f"{roc_auc_score(truth, scores):.3f}",
            format_percent(model.certificate_.relative_gap),
            _time(fit.seconds),
        ]
        if name in ("hinge loss", "ROC area"):
            false, true, _ = roc_curve(truth, scores)
            kept = thinned(len(false), MOST_ON_CURVE)
            ax.plot(false[kept], true[kept], label=f"trained for {name}")
    ax.legend(frameon=False, loc="lower right")
    page.show(
        "Four models, measured on the held-out rows",
        ["trained for", "F1", "ROC area", "gap", "time"],
        [[name, *cells] for name, cells in rows.items()],
    )
    page.conclude(
        f"Training for F1 instead of the hinge loss changes F1 from {rows['hinge loss'][0]} to "
        f"{rows['F1'][0]}.",
        f"Training for the ROC area changes it from {rows['hinge loss'][1]} to "
        f"{rows['ROC area'][1]}.",
    )
    page.figures((figure, "ROC curves on the held-out rows."))


def on_disk(page: Demo, data: Data, memory: Fit) -> None:
    """The model of the first part, from rows that are read block by block."""
    from .. import open_dataset, write_dataset

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.cut"
        steps = range(0, len(data.train), 1000)
        write_dataset(
            path, ((data.train[k : k + 1000], data.train_labels[k : k + 1000]) for k in steps)
        )
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        page.begin(
            "3. Train from rows on disk",
            f"The rows of part 1 again, as a data set on disk ({size / 1e6:.1f} MB).",
            "A fit reads it block by block, so it may be larger than memory.",
            "The command cutplane convert makes such data sets.",
        )
        with open_dataset(path) as dataset:
            disk = fitted("rows on disk", _our_model(), dataset)
    both = [memory, disk]
    bounds = {"lower bound": [f"{fit.model.certificate_.dual:,.6g}" for fit in both]}
    page.show("The same model twice", ["", "in memory", "on disk"], _compared(both, data, bounds))
    agree = np.mean(memory.model.predict(data.test) == disk.model.predict(data.test))
    page.conclude(f"Both agree on {100 * agree:.1f} % of the rows held out.")
