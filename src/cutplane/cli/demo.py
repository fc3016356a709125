"""``cutplane demo``: a certified SVM on real data, with nothing to download.

Is this handwritten digit an 8? cutplane and scikit-learn's LinearSVC minimise
the same objective,

    F(w, b) = 1/2 |w|^2 + 1/2 b^2 + C * sum_i max(0, 1 - y_i(<w, x_i> + b)),

scikit-learn's own, in which the intercept b counts like a weight; cutplane gets
it with ``intercept_scaling=1``. Its lower bound then tells how far *both* are
from the optimum.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import __version__
from ..reporting.line import format_percent
from ..reporting.plots import convergence_figure
from ..reporting.text import print_table, waiting
from ..result import SolveResult
from .outputs import output_file, output_folder, report_stream
from .parser import VERBOSE, Argument, add_arguments, positive_number, seed_number
from .train import results_of, tell_ending

TOL = 1e-3
GREYS = 16.0  # pixels count from 0 to 16; the models get them from 0 to 1

DESCRIPTION = """\
Train a linear SVM on the handwritten digits that come with scikit-learn (is this digit
an 8?), compare it with scikit-learn's own, and write the model, its certificate and a
plot of the convergence to a folder. This needs no network and takes seconds.
"""

EPILOG = """\
examples:
  cutplane demo
  cutplane demo --C 100                 a harder problem
  cutplane demo --output results --seed 7
"""


ARGUMENTS = (
    Argument("--output DIR", "Folder for the files, made if missing. (default: ./cutplane-demo)",
             Path, Path("cutplane-demo")),
    Argument("--C C", "Weight of the errors against the size of the weights. (default: 1)",
             positive_number, 1.0),
    Argument("--seed N", "Chooses the images that are held out for testing. (default: 0)",
             seed_number, 0),
)  # fmt: skip


def add_parser(subparsers: Any, arguments: Sequence[str]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "demo",
        help="train on data that come with scikit-learn, and look at the certificate",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    add_arguments(parser, *ARGUMENTS, VERBOSE)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the demo; returns the exit code."""
    report = report_stream()  # the files are the product
    with redirect_stdout(report):
        return report.code(_run(args, output_folder(args.output)))


def _run(args: argparse.Namespace, folder: Path) -> int:
    with waiting("loading scikit-learn and numba"):
        data = _load(args.seed)
    print(
        f"cutplane {__version__}: a linear SVM with a certificate of optimality\n\n"
        f"Data      handwritten digits (scikit-learn): is it an 8? {len(data.train)} images to\n"
        f"          train on, {len(data.test)} held out, {data.train.shape[1]} pixels each\n"
        f"Objective 1/2 |w|^2 + 1/2 b^2 + C * (sum of hinge losses), C = {args.C:g}\n"
        "          as scikit-learn's LinearSVC has it, with the intercept b among the weights",
        flush=True,
    )
    with waiting("compiling, which takes a while the first time"):
        started = time.perf_counter()
        _fit(_our_model(C=1.0, verbose=0), data.few(), C=1.0)
        seconds = time.perf_counter() - started
    print(
        f"Compiling {seconds:.1f} s, on a tiny problem beforehand; not part of the times below",
        flush=True,
    )
    ours = _fit(_our_model(args.C, verbose=1), data, args.C)
    theirs = _fit(_their_model(args.C, args.seed), data, args.C)
    (result,) = results_of(ours.model)
    certificate = result.certificate
    _print_comparison(ours, theirs, certificate.dual)
    majority = np.mean(data.test_labels == "another")
    print(f"Calling every image 'another' is right for {100 * majority:.1f} % of those held out.")
    with waiting("drawing"):
        _write(folder, ours.model, result, args)
    _print_files(folder)
    kept = "the files hold its best model"
    return tell_ending("demo", result.status, certificate.relative_gap, asked=TOL, kept=kept)


# -- data and models ----------------------------------------------------------


class Data(NamedTuple):
    """Images as rows of pixels, labels 'eight' and 'another', in two parts."""

    train: np.ndarray
    test: np.ndarray
    train_labels: np.ndarray
    test_labels: np.ndarray

    def few(self) -> Data:
        """Ten training images of each class: enough to have all that is needed compiled."""
        rows = np.concatenate(
            [np.flatnonzero(self.train_labels == name)[:10] for name in ("eight", "another")]
        )
        return self._replace(train=self.train[rows], train_labels=self.train_labels[rows])


class Fit(NamedTuple):
    """A fitted model and how it went."""

    model: Any
    seconds: float
    warning: str
    objective: float
    accuracy: float


def _load(seed: int) -> Data:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    labels = np.where(digits.target == 8, "eight", "another")
    parts = train_test_split(
        digits.data / GREYS, labels, test_size=0.3, stratify=labels, random_state=seed
    )
    return Data(*parts)


def _our_model(C: float, verbose: int) -> Any:
    from .. import LinearSVC

    return LinearSVC(C=C, loss="hinge", tol=TOL, intercept_scaling=1.0, verbose=verbose)


def _their_model(C: float, seed: int) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(C=C, loss="hinge", random_state=seed)


def _fit(model: Any, data: Data, C: float) -> Fit:
    """Fit and measure; a warning of no convergence is kept, others pass."""
    from sklearn.exceptions import ConvergenceWarning

    message = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        started = time.perf_counter()
        model.fit(data.train, data.train_labels)
        seconds = time.perf_counter() - started
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            message = str(warning.message)
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    # F of the fitted weights and intercept, by its formula and for both models alike.
    w, b = model.coef_[0], float(model.intercept_[0])
    signs = np.where(data.train_labels == model.classes_[1], 1.0, -1.0)
    losses = np.maximum(0.0, 1.0 - signs * (data.train @ w + b))
    objective = float(0.5 * (w @ w) + 0.5 * b * b + C * losses.sum())
    accuracy = float(np.mean(model.predict(data.test) == data.test_labels))
    return Fit(model, seconds, message, objective, accuracy)


# -- what people see ----------------------------------------------------------


def _print_comparison(ours: Fit, theirs: Fit, bound: float) -> None:
    both = (ours, theirs)
    gaps = [max(0.0, fit.objective - bound) for fit in both]
    shares = [format_percent(gap / fit.objective) for gap, fit in zip(gaps, both, strict=True)]
    print_table(
        ["", "cutplane", "scikit-learn"],
        [
            ["objective (primal)", *(f"{fit.objective:.6g}" for fit in both)],
            ["lower bound (dual)", f"{bound:.6g}", "none of its own"],
            ["gap to cutplane's bound", *(f"{gap:.3g}" for gap in gaps)],
            ["relative gap", *shares],
            ["iterations", *(f"{np.max(fit.model.n_iter_)}" for fit in both)],
            ["time to fit", *(f"{1000 * fit.seconds:.0f} ms" for fit in both)],
            ["accuracy, held out", *(f"{100 * fit.accuracy:.1f} %" for fit in both)],
        ],
    )
    if bound > 0.0:
        print(
            f"cutplane's certificate: no model has an objective below {bound:.6g}. So the optimum\n"
            f"is at most {shares[0]} below its own, and at most {shares[1]} below scikit-learn's."
        )
    if theirs.warning:
        print(f'scikit-learn warned: "{theirs.warning}"')


def _print_files(folder: Path) -> None:
    print(
        f"\nWritten to the folder {folder}:\n"
        "  model.npz         weights, intercept, classes\n"
        "  certificate.json  objective, bound, gap, how the solver ended\n"
        "  convergence.png   how objective and bound met\n"
        "\nTo use the model:\n"
        "  import numpy\n"
        f"  model = numpy.load({str(folder / 'model.npz')!r})\n"
        f"  scores = pixels / {GREYS:g} @ model['coef'][0] + model['intercept'][0]\n"
        "  labels = model['classes'][(scores > 0).astype(int)]"
    )


# -- files --------------------------------------------------------------------


def _write(folder: Path, model: Any, result: SolveResult, args: argparse.Namespace) -> None:
    with output_file(folder / "model.npz") as file:
        np.savez(
            file,
            coef=model.coef_,
            intercept=model.intercept_,
            classes=model.classes_,
            n_features=np.int64(model.coef_.shape[1]),
        )
    certificate = {
        "objective": "1/2 |w|^2 + 1/2 b^2 + C * sum of hinge losses",
        "C": args.C,
        "tol": TOL,
        "seed": args.seed,
        "cutplane": __version__,
        **result.as_dict(),
    }
    with output_file(folder / "certificate.json") as file:
        file.write((json.dumps(certificate, indent=2, allow_nan=False) + "\n").encode())
    with output_file(folder / "convergence.png") as file:
        convergence_figure(result).savefig(file, format="png", dpi=150)
