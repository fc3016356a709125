"""The report of a model: its certificate, how it converged, and how good it is on some rows.

``report`` applies the model to the rows, and calls ``write_report`` with its answers. Commands that
read their data in parts have the answers already, and call ``write_report`` themselves. The kind of
the model decides about measures, figures and tables; see ``SECTIONS``.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import platform
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..exec import available_threads
from ..result import Certificate, SolveResult, Status
from . import charts, html
from .line import format_percent, format_seconds, plural
from .plots import calibration_bins, plot_path, worst_gaps
from .text import RUN_PARAMETERS

# The largest numbers of things that a report shows, and what it shows if there are more.
MOST_RUNS = 12  # problems in a figure of convergence: those with the largest gaps
MOST_RECORDS = 500  # iterations of a run: evenly chosen ones
MOST_PROBLEMS = 20  # problems in the table: those with the largest gaps
MOST_CLASSES = 20  # classes in a confusion matrix: no matrix, but the most confused pairs
MOST_LISTED = 50  # classes in a table: the most frequent ones
MOST_CONFUSIONS = 20  # most confused pairs
MOST_QUERIES = 10  # best queries, and as many of the worst
MOST_WEIGHTS = 15  # largest weights, and as many of the most negative ones
MOST_PER_CLASS = 4  # the same for each class of several
GROUPS = 10  # points of a calibration curve
POSITIONS = 10  # k of NDCG@k
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")


@dataclass(frozen=True)
class Answers:
    """What a model predicts for some rows, and the truth.

    Attributes
    ----------
    truth : ndarray, shape (n_samples,), or None
        Labels or values; tokens for a chain. None for a model without labels.
    predicted : ndarray or None
        Labels or values, shape (n_samples,) or (n_samples, n_quantiles).
    scores : ndarray or None
        Shape (n_samples,) if every row has one score. For structured outputs one number, the score
        of the model on all examples.
    qid : ndarray or None
        Query or sequence of each row.
    weights : ndarray or None
        Weights of the rows.
    """

    truth: Any
    predicted: Any = None
    scores: Any = None
    qid: Any = None
    weights: Any = None


def report(
    model: Any,
    X: Any,
    y: Any,
    path: Any,
    *,
    qid: Any = None,
    sample_weight: Any = None,
    title: str | None = None,
) -> None:
    """Write a page about a fitted model: certificate, convergence, and quality on some rows.

    The file is one self-contained HTML page. It loads nothing from the network and runs no script.

    Parameters
    ----------
    model : fitted estimator
        An estimator of cutplane, a pipeline that ends in one, or a search over these.
    X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)
        Rows to measure the model on, better not those it was trained on. For a
        :class:`ChainTagger` a list of matrices, or one matrix with ``qid``; for a
        :class:`StructuredSVM` a list of inputs.
    y : array-like, shape (n_samples,), or None
        Labels or targets. None takes those of a Dataset. A :class:`OneClassSVM` needs none.
    path : path
        The file to write, such as ``fit.html``. An existing file is replaced.
    qid : array-like, shape (n_samples,), optional
        Query of each row of a ranking, or sequence of each token. None takes those of a Dataset.
        Without any, all rows are one query.
    sample_weight : array-like, shape (n_samples,), optional
        Weights of the rows in the measures. Not for chains, rankings and structured models.
    title : str, optional
        Heading of the page. By default it names the model.

    Examples
    --------
    >>> cutplane.report(LinearSVC().fit(X, y), X_test, y_test, "fit.html")  # doctest: +SKIP
    """
    final = fitted_part(model)
    target = check_target(path)
    answers = answers_of(model, final, X, y, qid, sample_weight)
    write_report(model, answers, target, title=title)


def write_report(
    model: Any, answers: Answers, path: Any, *, title: str | None = None, note: str = ""
) -> None:
    """Write the page from the answers of a model. ``note`` tells the reader what the rows are."""
    from ..data.files import output

    final = fitted_part(model)
    name = type(final).__name__
    page = html.Page(title or f"{name}: report of a fit")
    _add_head(page, final, answers)
    _add_fit(page, final)
    page.section("On the rows given")
    if note:
        page.say(note, "note")
    SECTIONS[task_of(final)](page, final, answers)
    if hasattr(final, "scores_") and hasattr(final, "Cs_"):
        _add_path(page, final)
    _add_weights(page, model, final)
    _add_origin(page, final)
    with output(path) as file:
        file.write(page.render().encode("utf-8"))


# -- what is given ------------------------------------------------------------


def fitted_part(model: Any) -> Any:
    """The fitted estimator of this package inside pipelines and searches."""
    from sklearn.utils.validation import check_is_fitted

    found = model
    while not hasattr(found, "results_"):
        if hasattr(found, "best_estimator_"):
            found = found.best_estimator_
        elif hasattr(found, "steps"):
            found = found.steps[-1][1]
        else:
            if hasattr(found, "certificate_") or _is_ours(found):
                check_is_fitted(found)
            raise TypeError(
                "report takes a fitted estimator of cutplane with a certificate, or a pipeline "
                f"that ends in one, got {type(model).__name__}"
                + ("; take one of its models: path.model(k)" if hasattr(model, "coefs") else "")
            )
    return found


def _is_ours(model: Any) -> bool:
    return type(model).__module__.startswith("cutplane.") and hasattr(model, "fit")


def check_target(path: Any) -> Path:
    """The path as a Path. An error is raised if the file cannot be written, before other work."""
    from ..data.files import check_writable

    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; give the name of a file, such as fit.html")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {target}: there is no folder {target.parent}")
    check_writable(target)
    return target


def task_of(model: Any) -> str:
    """What an estimator predicts: the key of its section in ``SECTIONS``."""
    from sklearn.base import is_classifier, is_regressor

    name = type(model).__name__
    if name in TASKS:
        return TASKS[name]
    if is_regressor(model):
        return "values"
    if is_classifier(model):
        return "classes"
    raise TypeError(f"report does not know what a {name} predicts")


TASKS = {
    "ChainTagger": "tags",
    "OneClassSVM": "novelty",
    "OrdinalSVC": "grades",
    "RankSVM": "ranking",
    "StructuredSVM": "outputs",
}


def answers_of(model: Any, final: Any, X: Any, y: Any, qid: Any, sample_weight: Any) -> Answers:
    """Apply a model to rows."""
    task = task_of(final)
    if y is None and getattr(X, "y", None) is not None:
        y = X.y
    if qid is None and getattr(X, "qid", None) is not None:
        qid = X.qid
    if y is None and task != "novelty":
        raise ValueError(
            f"y is missing: a {type(final).__name__} is measured against the true labels"
        )
    if sample_weight is not None and task in ("tags", "ranking", "outputs"):
        raise ValueError(f"sample_weight has no meaning in a report of a {type(final).__name__}")
    if task == "tags":
        return _tags(model, X, y, qid)
    if task == "outputs":
        return Answers(None, scores=np.array([model.score(X, y)]))
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    truth = _column("y", y, rows)
    if rows == 0:
        raise ValueError("X has no rows to measure the model on")
    codes = _column("qid", qid, rows)
    weights = _column("sample_weight", sample_weight, rows)
    if weights is not None:
        weights = weights.astype(np.float64)
        if not np.all(np.isfinite(weights)) or weights.min() < 0.0 or weights.sum() == 0.0:
            raise ValueError("sample_weight must hold finite numbers ≥ 0 that are not all 0")
    scores, predicted = None, model.predict(X)
    if task in ("classes", "novelty") and len(getattr(final, "classes_", (0, 1))) == 2:
        scores = model.decision_function(X)
    elif task == "grades":
        scores = model.score_samples(X)
    elif task == "ranking":
        scores, predicted = predicted, None
    return Answers(truth, predicted, scores, codes, weights)


def _column(name: str, values: Any, rows: int) -> np.ndarray | None:
    if values is None:
        return None
    column = np.asarray(values)
    if column.shape != (rows,):
        raise ValueError(
            f"{name} must hold one value for each of the {rows} rows of X, got shape {column.shape}"
        )
    return column


def _tags(model: Any, X: Any, y: Any, qid: Any) -> Answers:
    """The answers of a tagger. Their ``qid`` is the number of each token's sequence."""
    if qid is not None:
        from ..structured import sequences_from

        sequences = sequences_from(X, y, qid)
        truth, lengths = sequences.y, sequences.lengths
        predicted = model.predict(sequences.X, lengths=lengths)
    elif hasattr(X, "shape"):
        raise ValueError(
            "X is one matrix: give qid, the sequence of each row, or a list with a matrix for each "
            "sequence"
        )
    else:
        parts = [np.asarray(labels) for labels in y]
        found = model.predict(X)
        if list(map(len, parts)) != list(map(len, found)):
            raise ValueError("y must hold one label for each token of X")
        lengths = np.array([len(part) for part in parts])
        truth, predicted = np.concatenate(parts), np.concatenate(found)
    if len(truth) == 0:
        raise ValueError("X has no tokens to measure the model on")
    return Answers(truth, predicted, qid=np.repeat(np.arange(len(lengths)), lengths))


# -- the fit ------------------------------------------------------------------


def _add_head(page: html.Page, model: Any, answers: Answers) -> None:
    page.add(f"<h1>{html.text(page.title)}</h1>")
    unit = "token" if task_of(model) == "tags" else "row"
    rows = "" if answers.truth is None else f", measured on {plural(len(answers.truth), unit)}"
    features = getattr(model, "n_features_in_", None)
    of = "" if features is None else f" of {plural(int(features), 'feature')}"
    page.say(
        f"{type(model).__name__}{of}{rows}. Written {datetime.now():%Y-%m-%d %H:%M} by cutplane "
        f"{__version__}.",
        "note",
    )
    page.say(in_words(model), "lead")


def in_words(model: Any) -> str:
    """The certificate of a model in sentences."""
    results = list(model.results_)
    words = certificate_in_words(model.certificate_, _family(model))
    if len(results) == 1:
        return f"{words} {_ending(results)}"
    worst = max(result.certificate.relative_gap for result in results)
    if math.isfinite(worst):
        words += f" In the worst of its {len(results)} problems {format_percent(worst)} is left."
    return (
        f"The model consists of {len(results)} problems; these are the sums over them. "
        f"{words} {_ending(results)}"
    )


def certificate_in_words(certificate: Certificate, what: str = "model of this kind") -> str:
    """What a certificate says in sentences: objective, bound, and the largest possible rest."""
    primal, dual = certificate.primal, certificate.dual
    if not math.isfinite(certificate.gap):
        known = "There is no"
        if math.isfinite(primal):
            known = f"The objective is {primal:.6g}, but there is no"
        return f"{known} certificate: how far it is from the best possible one is not known."
    above, below = _two_numbers(primal, dual)
    start = f"The objective is {above};"
    if certificate.gap == 0.0:
        return f"{start} no {what} can have a smaller one: this is the optimum."
    relative = certificate.relative_gap
    left = format_percent(relative) if math.isfinite(relative) else f"{certificate.gap:.2g}"
    if certificate.kind == "estimated":
        return (
            f"{start} by an estimate no {what} can have one below {below}: about {left} is left. "
            "The estimate comes from samples, so it is likely but not proved."
        )
    condition = ""
    if certificate.kind == "conditional":
        condition = " if the kernel is positive semidefinite,"
    return f"{start}{condition} no {what} can have one below {below}: at most {left} is left."


def _family(model: Any) -> str:
    """The kind of models among which this one is nearly the best."""
    if getattr(model, "kernel", None) is not None:
        return "model with this kernel"
    structured = type(model).__name__ in ("ChainTagger", "StructuredSVM")
    return "model with these features" if structured else "linear model"


def _two_numbers(primal: float, dual: float) -> tuple[str, str]:
    """Objective and bound with few digits, rounded up and down. The gap grows by half at most."""
    for digits in range(4, 18):
        above = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(primal))
        below = Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(Decimal(dual))
        if float(above - below) <= 1.5 * (primal - dual):
            break
    return _digits(above), _digits(below)


def _digits(value: Decimal) -> str:
    return f"{value:,f}" if 1e-4 <= abs(value) < 1e12 or value == 0 else str(value)


def _ending(results: Sequence[SolveResult]) -> str:
    iterations = sum(result.n_iter for result in results)
    seconds = sum(result.timings.get("total", 0.0) for result in results)
    spent = f"after {plural(iterations, 'iteration')}"
    if seconds > 0.0:
        spent += f" and {format_seconds(seconds)}"
    others = [r.status for r in results if r.status is not Status.CONVERGED]
    if not others:
        return f"The solver converged {spent}."
    some = "" if len(others) == len(results) else f" in {len(others)} of the problems"
    return f"The solver {others[0].reason}{some}, {spent}: it did not reach the tolerance."


def _add_fit(page: html.Page, model: Any) -> None:
    """Add figures of the convergence, and a table of the problems if there are several."""
    page.section("The fit")
    results = dict(zip(_problem_names(model), model.results_, strict=True))
    by_gap = sorted(results, key=lambda name: -results[name].certificate.relative_gap)
    drawable = {name: trace for name in by_gap if (trace := _drawable(results[name]))}
    drawn = [name for name in results if name in list(drawable)[:MOST_RUNS]]
    if len(drawable) > MOST_RUNS:
        page.say(f"The figures show the {MOST_RUNS} problems of largest gap.", "note")
    if not drawn:
        page.say("There is no trace of iterations to draw.", "note")
    else:
        runs: Any = {
            charts.label(name): dataclasses.replace(results[name], trace=drawable[name])
            for name in drawn
        }
        timed: Any = {name: _from_first_iteration(run) for name, run in runs.items()}
        if len(results) == 1:
            runs, timed = next(iter(runs.values())), next(iter(timed.values()))
        page.figures(
            (
                charts.convergence(runs),
                "Objective, lower bound and relative gap against iterations.",
            ),
            (charts.convergence(timed, "seconds"), "The same since the first iteration."),
        )
    if len(results) == 1:
        return
    shown = by_gap[:MOST_PROBLEMS] if len(results) > MOST_PROBLEMS else list(results)
    page.table(
        "Problems" if len(shown) == len(results) else "Problems of largest gap",
        ("problem", "objective", "lower bound", "gap", "iterations", "time", "ending"),
        (
            (
                name,
                f"{results[name].certificate.primal:.6g}",
                f"{results[name].certificate.dual:.6g}",
                format_percent(results[name].certificate.relative_gap),
                f"{results[name].n_iter:,}",
                format_seconds(float(results[name].timings.get("total", 0.0))),
                results[name].status.value.replace("_", " "),
            )
            for name in shown
        ),
    )


def _from_first_iteration(result: SolveResult) -> SolveResult:
    """The result with a clock that starts at the first iteration.

    Compiling and loading may take so long that they would hide all iterations.
    """
    began = result.trace[0].seconds
    trace = (dataclasses.replace(record, seconds=record.seconds - began) for record in result.trace)
    return dataclasses.replace(result, trace=tuple(trace))


def _problem_names(model: Any) -> list[str]:
    """A name for each problem. All names are different."""
    count = len(model.results_)
    classes = getattr(model, "classes_", ())
    quantiles = np.atleast_1d(getattr(model, "quantile", ()))
    if count == 1:
        return ["the fit"]
    if count == len(classes):
        names = [html.shortened(label, 24) for label in classes]
    elif count == len(classes) * (len(classes) - 1) // 2:
        short = [html.shortened(label, 12) for label in classes]
        names = [f"{a} against {b}" for a, b in itertools.combinations(short, 2)]
    elif count == len(quantiles):
        names = [f"quantile {value:g}" for value in quantiles]
    else:
        names = [f"problem {k + 1}" for k in range(count)]
    if len(set(names)) < count:
        names = [f"{name} ({k + 1})" for k, name in enumerate(names)]
    return names


def _drawable(result: SolveResult) -> tuple[Any, ...]:
    """Iterations with finite values, few enough to draw."""
    finite = [r for r in result.trace if math.isfinite(r.primal) and math.isfinite(r.dual)]
    return tuple(finite[k] for k in charts.thinned(len(finite), MOST_RECORDS)) if finite else ()


# -- classes ------------------------------------------------------------------


def _add_classes(page: html.Page, model: Any, answers: Answers) -> None:
    truth, predicted = _same_type(answers.truth, answers.predicted)
    classes = np.asarray(getattr(model, "classes_", np.unique(truth)))
    if truth.dtype.kind == "U":
        classes = classes.astype(str)
    unknown = int(np.count_nonzero(~np.isin(truth, classes)))
    if unknown:
        page.say(
            f"{plural(unknown, 'row')} belong to classes that the model was not trained on; "
            "they count as wrong."
        )
    if len(classes) == 2 and answers.scores is not None and not unknown:
        _add_two_classes(page, model, answers, truth, predicted, classes)
    else:
        _add_many_classes(page, answers, truth, predicted)


def _same_type(truth: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both kinds of labels in one type, so that they can be compared and sorted together."""
    kinds = {truth.dtype.kind, predicted.dtype.kind}
    if kinds <= set("iufb") or (len(kinds) == 1 and kinds != {"O"}):
        return truth, predicted
    return truth.astype(str), predicted.astype(str)


def _add_two_classes(
    page: html.Page,
    model: Any,
    answers: Answers,
    truth: np.ndarray,
    predicted: np.ndarray,
    classes: np.ndarray,
) -> None:
    from scipy.special import expit
    from sklearn import metrics

    scores, weights = answers.scores, answers.weights
    positive, guess = truth == classes[1], predicted == classes[1]
    options: dict[str, Any] = {"sample_weight": weights}
    accuracy = metrics.accuracy_score(positive, guess, **options)
    *own, _ = metrics.precision_recall_fscore_support(
        positive, guess, average="binary", zero_division=np.nan, **options
    )
    names = ("accuracy", "precision", "recall", "F1")
    shown = {name: _per_cent(value) for name, value in zip(names, (accuracy, *own), strict=True)}
    share = float(np.average(positive, weights=weights))
    figures = []
    if 0.0 < share < 1.0:
        area = f"{metrics.roc_auc_score(positive, scores, **options):.4f}"
        average = f"{metrics.average_precision_score(positive, scores, **options):.4f}"
        shown |= {"ROC area": area, "average precision": average}
        alarms = float(np.average(guess[~positive], weights=_part(weights, ~positive)))
        precision, hits = float(np.nan_to_num(own[0])), float(own[1])
        false, true, _ = metrics.roc_curve(positive, scores, **options)
        rates = ("false positive rate", "true positive rate (recall)")
        roc = charts.curve(rates, false, true, (0, 1), (alarms, hits))
        figures.append((roc, f"ROC curve; its area is {area}."))
        heights, recalls, _ = metrics.precision_recall_curve(positive, scores, **options)
        at, chance = (hits, precision), (share, share)
        both = charts.curve(("recall", "precision"), recalls, heights, chance, at)
        figures.append((both, f"Precision and recall; the average precision is {average}."))
    known = hasattr(model, "predict_proba")
    calibration = getattr(getattr(model, "best_estimator_", model), "calibration_", None)
    probabilities = expit(scores) if known else scores
    if known and calibration is not None:
        probabilities = calibration.probabilities(scores)[:, 1]
    if known:
        brier = metrics.brier_score_loss(positive, probabilities, **options)
        shown["Brier score"] = f"{brier:.4f}"
    page.tiles(shown)
    page.say(
        f"The positive class is {html.clean(classes[1])}: a row belongs to it if its score is "
        "above the threshold, 0. Precision, recall and F1 are its own."
    )
    means, shares, _ = calibration_bins(probabilities, positive, GROUPS, weights)
    what = "predicted probability" if known else "score"
    axes = (what, "share of positive rows")
    calibration = charts.curve(axes, means, shares, (0, 1) if known else (), marker="o")
    groups = [(html.clean(classes[0]), ~positive), (html.clean(classes[1]), positive)]
    page.figures(
        *figures,
        (calibration, f"Calibration: the share of positive rows in groups of similar {what}."),
        (
            charts.histogram(scores, ("score", "rows"), groups, weights, threshold=0.0),
            "Scores by true class. Rows right of the threshold are predicted positive.",
        ),
    )
    _add_confusion(page, truth, predicted, weights, classes)


def _part(weights: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if weights is None else weights[rows]


def _add_many_classes(
    page: html.Page, answers: Answers, truth: np.ndarray, predicted: np.ndarray, of: str = "rows"
) -> None:
    """Add the accuracy, a table of the classes, and which classes are confused."""
    from sklearn import metrics

    labels = np.unique(np.concatenate([np.unique(truth), np.unique(predicted)]))
    weights = answers.weights
    *shares, counts = metrics.precision_recall_fscore_support(
        truth, predicted, labels=labels, sample_weight=weights, zero_division=np.nan
    )
    if of == "rows":
        f1 = shares[2][np.isfinite(shares[2])]
        accuracy = metrics.accuracy_score(truth, predicted, sample_weight=weights)
        mean = float(f1.mean()) if len(f1) else math.nan
        page.tiles({"accuracy": _per_cent(accuracy), "mean F1": _per_cent(mean)})
    many = len(labels) > MOST_LISTED
    listed = np.argsort(-counts, kind="stable")[:MOST_LISTED]
    page.table(
        f"The {MOST_LISTED} most frequent classes" if many else "Classes",
        ("class", "precision", "recall", "F1", of),
        (
            (labels[k], *(_per_cent(share[k]) for share in shares), f"{counts[k]:,.6g}")
            for k in (listed if many else np.sort(listed))
        ),
    )
    _add_confusion(page, truth, predicted, weights, labels)


def _add_confusion(
    page: html.Page,
    truth: np.ndarray,
    predicted: np.ndarray,
    weights: np.ndarray | None,
    labels: np.ndarray,
) -> None:
    """Add the confusion matrix, or for many classes the pairs that are confused most."""
    from sklearn.metrics import confusion_matrix

    if len(labels) <= MOST_CLASSES:
        matrix = confusion_matrix(truth, predicted, labels=labels, sample_weight=weights)
        title = "Confusion matrix: true classes in rows, predicted ones in columns"
        page.counts(title, "true \\ predicted", labels.tolist(), matrix.tolist())
        return
    wrong = truth != predicted
    codes = np.searchsorted(labels, truth[wrong]) * len(labels)
    codes += np.searchsorted(labels, predicted[wrong])
    pairs, inverse = np.unique(codes, return_inverse=True)
    counts = np.bincount(inverse, _part(weights, wrong), minlength=len(pairs))
    most = np.argsort(-counts, kind="stable")[:MOST_CONFUSIONS]
    page.table(
        "What is confused most",
        ("true class", "predicted class", "rows"),
        ((*(labels[c] for c in divmod(pairs[k], len(labels))), f"{counts[k]:,.6g}") for k in most),
    )


def _add_grades(page: html.Page, model: Any, answers: Answers) -> None:
    from sklearn.metrics import mean_absolute_error

    from ..metrics import swapped_pairs

    weights = answers.weights
    codes = [np.searchsorted(model.classes_, a) for a in (answers.truth, answers.predicted)]
    off = mean_absolute_error(*codes, sample_weight=weights)
    shown = {"mean distance in classes": f"{off:.4f}"}
    if answers.scores is not None and len(np.unique(answers.truth)) > 1:
        swapped = swapped_pairs(codes[0], answers.scores, sample_weight=weights)
        shown["swapped pairs"] = _per_cent(swapped)
    page.tiles(shown)
    _add_many_classes(page, answers, answers.truth, answers.predicted)


def _add_novelty(page: html.Page, model: Any, answers: Answers) -> None:
    classes = np.array([-1, 1])
    if answers.truth is not None and np.isin(answers.truth, classes).all():
        _add_two_classes(page, model, answers, answers.truth, answers.predicted, classes)
        return
    inside = _per_cent(np.average(answers.predicted == 1, weights=answers.weights))
    page.tiles({"rows inside": inside})
    figure = charts.histogram(
        answers.scores, ("score", "rows"), weights=answers.weights, threshold=0.0
    )
    page.figures(
        (figure, "Scores. Rows left of the threshold are unlike the training data."),
    )


# -- rankings, numbers, tags, outputs -----------------------------------------


def _add_ranking(page: html.Page, model: Any, answers: Answers) -> None:
    from .. import metrics
    from .._checks import query_codes
    from ..risks.pairs import pair_statistics

    truth, scores = answers.truth.astype(np.float64), answers.scores
    query = query_codes(answers.qid, len(truth))
    ids = np.zeros(1, np.int64) if answers.qid is None else np.unique(answers.qid)
    pairs = pair_statistics(truth, scores, query, None)
    shown = {"queries": f"{len(ids):,}"}
    if (pairs.comparable > 0).any():
        swapped = metrics.swapped_pairs(truth, scores, qid=query)
        shown |= {"swapped pairs": _per_cent(swapped), "Somers' D": f"{1.0 - 2.0 * swapped:.4f}"}
    if truth.min() < 0.0:
        page.tiles(shown)
        page.say("NDCG needs targets that are not negative.")
        return
    gains = "exponential" if truth.max() <= 1000.0 else "linear"  # 2^1024 is not finite
    values, relevant = metrics.ndcg_by_query(truth, scores, query, POSITIONS, gains)
    name = f"NDCG@{POSITIONS}"
    page.tiles({name: f"{values.mean():.4f}", **shown})
    if not relevant.all():
        page.say(
            f"{np.count_nonzero(~relevant):,} of the queries have no relevant row: they count 0 in "
            "the mean and are not listed below."
        )
    listed = np.flatnonzero(relevant)
    if len(listed) < 2:
        return
    figure = charts.histogram(values[listed], (name, "queries"))
    page.figures((figure, f"{name} of the {len(listed):,} queries."))
    sizes, hits = np.bincount(query), np.bincount(query, truth > 0.0)
    wrong = np.full(len(sizes), math.nan)
    np.divide(
        pairs.swapped + 0.5 * pairs.tied, pairs.comparable, out=wrong, where=pairs.comparable > 0
    )
    order = listed[np.argsort(values[listed], kind="stable")]
    half = min(MOST_QUERIES, len(order) // 2)
    for caption, chosen in (
        ("The worst queries", order[:half]),
        ("The best queries", order[::-1][:half]),
    ):
        page.table(
            caption,
            ("query", name, "swapped pairs", "rows", "relevant rows"),
            (
                (
                    ids[k],
                    f"{values[k]:.4f}",
                    _per_cent(wrong[k]),
                    f"{sizes[k]:,}",
                    f"{hits[k]:,.0f}",
                )
                for k in chosen
            ),
        )


def _add_values(page: html.Page, model: Any, answers: Answers) -> None:
    from sklearn import metrics

    truth, weights = answers.truth.astype(np.float64), answers.weights
    columns = answers.predicted.reshape(len(truth), -1)
    options: dict[str, Any] = {"sample_weight": weights}
    if getattr(model, "loss", "") == "quantile":
        quantiles = zip(np.atleast_1d(model.quantile), columns.T, strict=True)
        page.table(
            "Quantiles",
            ("quantile", "rows below the prediction", "mean pinball loss"),
            (
                (
                    f"{alpha:g}",
                    _per_cent(np.average(truth <= column, weights=weights)),
                    _plain_number(metrics.mean_pinball_loss(truth, column, alpha=alpha, **options)),
                )
                for alpha, column in quantiles
            ),
        )
    if columns.shape[1] > 1:
        return
    predicted = columns[:, 0]
    varied = len(truth) > 1 and np.ptp(truth) > 0.0
    numbers = {
        "R²": metrics.r2_score(truth, predicted, **options) if varied else math.nan,
        "mean absolute error": metrics.mean_absolute_error(truth, predicted, **options),
        "root mean squared error": metrics.root_mean_squared_error(truth, predicted, **options),
        "median absolute error": metrics.median_absolute_error(truth, predicted, **options),
    }
    page.tiles({name: _plain_number(value) for name, value in numbers.items()})
    sample = ""
    if len(truth) > charts.MOST_DOTS:
        sample = f" A sample of {charts.MOST_DOTS:,} rows is drawn."
    ends = [min(truth.min(), predicted.min()), max(truth.max(), predicted.max())]
    level = [[predicted.min(), predicted.max()], [0.0, 0.0]]
    rest = "true − predicted"
    page.figures(
        (
            charts.dots(("true value", "predicted value"), truth, predicted, (ends, ends)),
            f"Predicted against true values; on the dashed line they are equal.{sample}",
        ),
        (
            charts.dots(("predicted value", rest), predicted, truth - predicted, level),
            f"Residuals against predictions.{sample}",
        ),
        (charts.histogram(truth - predicted, (rest, "rows")), "Residuals of all rows."),
    )


def _add_tags(page: html.Page, model: Any, answers: Answers) -> None:
    from .. import metrics

    truth, predicted = _same_type(answers.truth, answers.predicted)
    order = np.argsort(answers.qid, kind="stable")
    _, lengths = np.unique(answers.qid, return_counts=True)
    truth, predicted = truth[order], predicted[order]
    wrong = np.add.reduceat(truth != predicted, np.cumsum(lengths) - lengths)
    shown = {
        "right tokens": _per_cent(np.mean(truth == predicted)),
        "right sequences": _per_cent(np.mean(wrong == 0)),
        "tokens": f"{len(truth):,}",
        "sequences": f"{len(lengths):,}",
    }
    scheme = metrics.scheme_of(np.concatenate([truth, predicted]))
    if scheme is None:
        page.tiles(shown)
    else:
        counts = metrics.chunk_counts(truth, predicted, scheme, lengths)

        def shares(three: tuple[int, int, int]) -> list[str]:
            return [_per_cent(share(*three)) for share in metrics.CHUNK_SHARES.values()]

        names = ("precision", "recall", "F1")
        every = shares(metrics.all_chunks(counts))
        page.tiles(shown | dict(zip((f"chunk {name}" for name in names), every, strict=True)))
        rows = ((kind or "chunk", *shares(three)) for kind, three in counts.items())
        page.table("Chunks by type", ("type", *names), rows)
    _add_many_classes(page, answers, truth, predicted, of="tokens")


def _add_outputs(page: html.Page, model: Any, answers: Answers) -> None:
    page.tiles({"mean loss": _plain_number(-float(answers.scores[0]))})


SECTIONS: dict[str, Callable[[html.Page, Any, Answers], None]] = {
    "classes": _add_classes,
    "grades": _add_grades,
    "novelty": _add_novelty,
    "outputs": _add_outputs,
    "ranking": _add_ranking,
    "tags": _add_tags,
    "values": _add_values,
}


# -- path, weights, origin ----------------------------------------------------


def _add_path(page: html.Page, model: Any) -> None:
    """Add the scores and gaps of a search over C."""
    from matplotlib.figure import Figure

    page.section("The path of C")
    figure = Figure(figsize=charts.SIZE, layout="constrained")
    plot_path(model, ax=figure.add_subplot())
    mean, spread = model.scores_.mean(axis=0), model.scores_.std(axis=0)
    gaps = worst_gaps(model)
    page.say(
        f"C = {model.C_:.4g} has the best mean score of the held-out rows, {model.best_score_:.4f}."
    )
    page.figures((figure, "Score of the held-out rows against C."))
    page.table(
        "Values of C",
        ("C", "mean score", "standard deviation", "largest gap"),
        (
            (f"{C:.4g}", f"{mean[k]:.4f}", f"{spread[k]:.4f}", format_percent(gaps[k]))
            for k, C in enumerate(model.Cs_)
        ),
    )


def _add_weights(page: html.Page, model: Any, final: Any) -> None:
    """Add the largest weights of a linear model, or the number of support vectors."""
    coef = None if task_of(final) == "outputs" else getattr(final, "coef_", None)
    if coef is None:
        if hasattr(final, "support_"):
            page.section("Support vectors")
            count = plural(len(final.support_), "training row")
            page.say(f"Predictions are computed from {count}.")
        return
    page.section("Largest weights")
    coef = np.atleast_2d(coef.toarray() if hasattr(coef, "toarray") else np.asarray(coef))
    names = _feature_names(model, final, coef.shape[1])
    if coef.shape[1] and names(0) == "feature 0":
        page.say("The features have no names: they are numbered from 0, by column.", "note")
    if len(coef) == 1:
        chosen = _extremes(coef[0], MOST_WEIGHTS)
        if not len(chosen):
            page.say("All weights are 0.")
            return
        shown = [names(k) for k in chosen]
        figure = charts.weights_figure(shown, coef[0, chosen])
        largest = f"The largest positive and negative of {coef.shape[1]:,} weights."
        page.figures((figure, largest))
        rows = zip(shown, (f"{coef[0, k]:.4g}" for k in chosen), strict=True)
        page.table("Weights by feature", ("feature", "weight"), rows)
    else:
        labels = _problem_names(final) if len(final.results_) == len(coef) else final.classes_
        if len(coef) > MOST_CLASSES:
            page.say(f"Of {len(coef)} classes the first {MOST_CLASSES} are shown.")
        page.table(
            "Largest weights by class",
            ("class", "feature", "weight"),
            (
                (html.shortened(label), html.shortened(names(k), 60), f"{row[k]:.4g}")
                for label, row in list(zip(labels, coef, strict=True))[:MOST_CLASSES]
                for k in _extremes(row, MOST_PER_CLASS)
            ),
        )
    transitions = getattr(final, "transitions_", None)
    if transitions is not None:
        flat, tags = transitions.ravel(), final.classes_
        page.table(
            "Largest weights of one tag after another",
            ("tag", "next tag", "weight"),
            (
                (*(tags[i] for i in divmod(int(k), len(tags))), f"{flat[k]:.4g}")
                for k in _extremes(flat, MOST_WEIGHTS)
            ),
        )


def _extremes(values: np.ndarray, most: int) -> np.ndarray:
    """The positions of the largest positive and the most negative values, in falling order."""
    order = np.argsort(-values, kind="stable")
    top, bottom = order[:most], order[max(0, len(order) - most) :]
    return np.concatenate([top[values[top] > 0.0], bottom[values[bottom] < 0.0]])


def _feature_names(model: Any, final: Any, width: int) -> Callable[[int], str]:
    """A function that names a column: by the model, by a step of the pipeline, or by number."""
    names = getattr(final, "feature_names_in_", None)
    outer = getattr(model, "best_estimator_", model)
    if names is None and hasattr(outer, "steps"):
        try:
            names = outer[:-1].get_feature_names_out()
        except (AttributeError, ValueError, TypeError):  # some step has no names
            names = None
    if names is None or len(names) != width:
        return lambda k: f"feature {k}"
    return lambda k: html.clean(names[k])


def _add_origin(page: html.Page, model: Any) -> None:
    """Add parameters, timings, machine and versions."""
    page.section("How it was made")
    parameters = {
        name: html.shortened(value, 200)
        for name, value in model.get_params(deep=False).items()
        if name not in RUN_PARAMETERS and value is not None
    }
    page.table("Parameters", ("parameter", "value"), parameters.items(), "facts")
    timings: Counter[str] = Counter()
    for result in model.results_:
        timings.update(result.timings)
    if timings:
        names = sorted(timings, key=lambda name: name == "total")  # the total comes last
        rows = ((name, format_seconds(float(timings[name]))) for name in names)
        page.table("Time of the fit, compilation included", ("part", "time"), rows, "facts")
    machine = {
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": available_threads(),
        "Python": platform.python_version(),
        "cutplane": __version__,
        **{name: version(name) for name in PACKAGES},
    }
    title = "Machine and versions with which this report was written"
    page.table(title, ("name", "value"), machine.items(), "facts")


# -- numbers ------------------------------------------------------------------


def _per_cent(value: Any) -> str:
    return f"{100.0 * float(value):.2f} %" if math.isfinite(value) else "undefined"


def _plain_number(value: Any) -> str:
    return f"{float(value):.4g}" if math.isfinite(value) else "undefined"
