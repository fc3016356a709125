"""How good answers are: the measures that each task is judged by.

A measure that the data leave undefined, such as the ROC area of a single class, is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .answers import Answers, label_text
from .common import UsageError
from .kinds import Task

SMALLER_IS_BETTER = {"mae", "rmse", "swapped_pairs", "error_rate"}
IN_PER_CENT = {
    "accuracy",
    "precision",
    "recall",
    "f1",
    "macro_f1",
    "prbep",
    "token_accuracy",
    "sequence_accuracy",
    "swapped_pairs",
    "inside",
    "error_rate",
    "precision_at_k",
    "recall_at_k",
}
# By what a path chooses, if nothing is said.
FIRST_CHOICE = {
    Task.CLASSES: "accuracy",
    Task.GRADES: "mae",
    Task.RANKING: "ndcg@10",
    Task.VALUES: "mae",
    Task.SEQUENCES: "token_accuracy",
}
NAMES = {
    Task.CLASSES: (
        "accuracy",
        "error_rate",
        "precision",
        "recall",
        "f1",
        "roc_auc",
        "average_precision",
        "prbep",
        "precision_at_k",
        "recall_at_k",
        "macro_f1",
    ),
    Task.GRADES: ("mae", "accuracy", "swapped_pairs"),
    Task.RANKING: ("ndcg@10", "ndcg", "swapped_pairs", "somers_d"),
    Task.VALUES: ("mae", "rmse", "r2"),
    Task.NOVELTY: ("inside", "accuracy", "precision", "recall", "f1", "roc_auc"),
    Task.SEQUENCES: ("token_accuracy", "sequence_accuracy"),
}


@dataclass(frozen=True)
class Measured:
    """Measures of the answers for some rows.

    Attributes
    ----------
    values : dict of str to float or None
    correct, total : int
        Rows with the right label, of how many; 0 of 0 where there are no labels.
    facts : dict of str to object
        What else is worth telling: classes, queries.
    """

    values: dict[str, float | None]
    correct: int = 0
    total: int = 0
    facts: dict[str, Any] | None = None


def measure(
    task: Task,
    truth: np.ndarray,
    answers: Answers,
    *,
    qid: np.ndarray | None = None,
    classes: np.ndarray | None = None,
    k: float | None = None,
) -> Measured:
    """Measure answers by all that the task is judged by.

    Parameters
    ----------
    task : Task
    truth : ndarray
    answers : Answers
    qid : ndarray, optional
        Queries or sequences.
    classes : ndarray, optional
        Of the model; the last of two is the positive one. By default those of the data.
    k : int or float, optional
        For precision and recall at k: rows, or if a float so many times the positive rows.
    """
    match task:
        case Task.CLASSES:
            known = np.unique(truth) if classes is None else classes
            return _classes(truth, answers, known, k)
        case Task.NOVELTY:
            return _novelty(truth, answers)
        case Task.GRADES:
            return _grades(truth, answers)
        case Task.RANKING:
            return _ranking(truth, answers, qid)
        case Task.VALUES:
            return _values(truth, answers)
    return _sequences(truth, answers, qid)


def check_name(task: Task, name: str) -> str:
    """A measure by which models can be compared."""
    names = NAMES[task]
    if name not in names:
        raise UsageError(f"{name!r} is no measure of this kind of model; it has {', '.join(names)}")
    return name


def better(name: str, value: float, than: float) -> bool:
    """Whether a value of a measure is the better one."""
    return value < than if name in SMALLER_IS_BETTER else value > than


def format_measure(name: str, value: float | None) -> str:
    """For people."""
    if value is None:
        return "undefined"
    return f"{100.0 * value:.2f} %" if name in IN_PER_CENT else f"{value:.4f}"


# -- tasks --------------------------------------------------------------------


def _ratio(part: Any, whole: Any) -> float | None:
    return float(part / whole) if whole else None


def _labels(answers: Answers, classes: np.ndarray) -> np.ndarray:
    """Labels, from the sign of the scores if there is nothing better."""
    if answers.labels is not None:
        return answers.labels
    assert answers.scores is not None
    return classes[(answers.scores > 0.0).astype(np.intp)]


def _classes(truth: np.ndarray, answers: Answers, classes: np.ndarray, k: float | None) -> Measured:
    if answers.labels is None and len(classes) != 2:
        raise UsageError(
            f"scores tell two classes apart, but there are {len(classes)}; give labels instead"
        )
    labels = _labels(answers, classes)
    correct = int(np.count_nonzero(labels == truth))
    values: dict[str, float | None] = {"accuracy": _ratio(correct, len(truth))}
    values["error_rate"] = _ratio(len(truth) - correct, len(truth))
    facts: dict[str, Any] = {}
    if len(classes) == 2:
        positive = truth == classes[1]
        values |= _binary(positive, labels == classes[1], answers.scores)
        if k is not None and answers.scores is not None:
            values |= _at_top(positive, answers.scores, k)
        facts["positive"] = label_text(classes[1].item())
    else:
        by_class = {label: _f1(truth == label, labels == label) for label in classes.tolist()}
        found = [f1 for f1 in by_class.values() if f1 is not None]
        values["macro_f1"] = float(np.mean(found)) if found else None
        facts["f1_by_class"] = {label_text(label): f1 for label, f1 in by_class.items()}
    unknown = int(np.count_nonzero(~np.isin(truth, classes)))
    if unknown:
        facts["rows_of_unknown_classes"] = unknown
    return Measured(values, correct, len(truth), facts)


def _f1(truth: np.ndarray, guess: np.ndarray) -> float | None:
    return _ratio(2 * np.count_nonzero(truth & guess), truth.sum() + guess.sum())


def _binary(
    truth: np.ndarray, guess: np.ndarray, scores: np.ndarray | None
) -> dict[str, float | None]:
    hits = np.count_nonzero(truth & guess)
    values = {
        "precision": _ratio(hits, guess.sum()),
        "recall": _ratio(hits, truth.sum()),
        "f1": _f1(truth, guess),
    }
    if scores is None:
        return values
    from sklearn.metrics import average_precision_score, roc_auc_score

    from ..metrics import prbep

    if 0 < truth.sum() < len(truth):
        values["roc_auc"] = float(roc_auc_score(truth, scores))
        values["average_precision"] = float(average_precision_score(truth, scores))
        values["prbep"] = float(prbep(truth, scores))
    else:
        values |= {"roc_auc": None, "average_precision": None, "prbep": None}
    return values


def _at_top(truth: np.ndarray, scores: np.ndarray, k: float) -> dict[str, float | None]:
    from ..metrics import precision_at_k, recall_at_k

    positives = int(truth.sum())
    rows = k if isinstance(k, int) else max(1, round(k * positives))
    rows = min(rows, len(truth))
    return {
        "precision_at_k": float(precision_at_k(truth, scores, rows)),
        "recall_at_k": float(recall_at_k(truth, scores, rows)) if positives else None,
    }


def _novelty(truth: np.ndarray, answers: Answers) -> Measured:
    labels = _labels(answers, np.array([-1, 1]))
    values: dict[str, float | None] = {"inside": float(np.mean(labels == 1))}
    if not set(np.unique(truth).tolist()) <= {-1, 1}:
        return Measured(values)
    correct = int(np.count_nonzero(labels == truth))
    values["accuracy"] = _ratio(correct, len(truth))
    values |= _binary(truth == 1, labels == 1, answers.scores)
    return Measured(values, correct, len(truth), {"positive": "1"})


def _grades(truth: np.ndarray, answers: Answers) -> Measured:
    values: dict[str, float | None] = {}
    correct = total = 0
    if answers.labels is not None:
        correct, total = int(np.count_nonzero(answers.labels == truth)), len(truth)
        values["mae"] = float(np.mean(np.abs(answers.labels - truth)))
        values["accuracy"] = _ratio(correct, total)
    if answers.scores is not None:
        values["swapped_pairs"] = _swapped(truth, answers.scores, None)
    return Measured(values, correct, total)


def _swapped(truth: np.ndarray, scores: np.ndarray, qid: np.ndarray | None) -> float | None:
    from ..metrics import swapped_pairs

    try:
        return float(swapped_pairs(truth, scores, qid=qid))
    except ValueError:  # no pair to compare
        return None


def _ranking(truth: np.ndarray, answers: Answers, qid: np.ndarray | None) -> Measured:
    from ..metrics import ndcg_score

    assert answers.scores is not None
    values: dict[str, float | None] = {"ndcg@10": None, "ndcg": None}
    if truth.min() >= 0.0:
        gains: Any = "exponential" if truth.max() <= 1000.0 else "linear"
        for name, k in (("ndcg@10", 10), ("ndcg", None)):
            values[name] = float(ndcg_score(truth, answers.scores, qid=qid, k=k, gains=gains))
    swapped = _swapped(truth, answers.scores, qid)
    values["swapped_pairs"] = swapped
    values["somers_d"] = None if swapped is None else 1.0 - 2.0 * swapped
    return Measured(values, facts={"queries": 1 if qid is None else len(np.unique(qid))})


def _values(truth: np.ndarray, answers: Answers) -> Measured:
    assert answers.scores is not None
    errors = truth - answers.scores
    spread = float(np.sum((truth - truth.mean()) ** 2))
    return Measured(
        {
            "mae": float(np.mean(np.abs(errors))),
            "rmse": float(np.sqrt(np.mean(errors**2))),
            "r2": None if spread == 0.0 else float(1.0 - np.sum(errors**2) / spread),
        }
    )


def _sequences(truth: np.ndarray, answers: Answers, qid: np.ndarray | None) -> Measured:
    if qid is None:
        raise UsageError("sequences are told by their qid:, which the data do not have")
    assert answers.labels is not None
    right = answers.labels == truth
    _, sequence = np.unique(qid, return_inverse=True)
    wrong = np.bincount(sequence, ~right)
    correct = int(np.count_nonzero(right))
    return Measured(
        {
            "token_accuracy": _ratio(correct, len(truth)),
            "sequence_accuracy": float(np.mean(wrong == 0.0)),
        },
        correct,
        len(truth),
        {"sequences": len(wrong)},
    )
