"""The table of measures, compared with their definitions written out and with scikit-learn."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import sklearn.metrics

from cutplane.cli.errors import UsageError
from cutplane.cli.kinds import Task
from cutplane.cli.measures import MEASURES, format_measure, judge, names_of
from cutplane.cli.predict import Answers

ROWS = 60
BOTH = {"g_mean", "balanced_error"}  # need rows of both classes


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def defined(part, total):
    return float(part / total) if total else None


def binary_formulas(truth, guess):
    """The measures by their formulas in the four counts."""
    tp, fp, fn = (truth & guess).sum(), (~truth & guess).sum(), (truth & ~guess).sum()
    tn = (~truth & ~guess).sum()
    both = [defined(tp, tp + fn), defined(tn, tn + fp)]
    root = math.sqrt(float((tp + fp) * (tp + fn)) * float((tn + fp) * (tn + fn)))
    return {
        "fbeta": defined(5 * tp, 5 * tp + 4 * fn + fp),
        "jaccard": defined(tp, tp + fp + fn),
        "g_mean": None if None in both else math.sqrt(both[0] * both[1]),
        "balanced_error": None if None in both else 1.0 - (both[0] + both[1]) / 2.0,
        "matthews": (tp * tn - fp * fn) / root if root else 0.0,
        "precision": defined(tp, tp + fp),
        "recall": defined(tp, tp + fn),
        "f1": defined(2 * tp, 2 * tp + fp + fn),
    }


@pytest.mark.parametrize("labels", [(-1, 1), (0, 1), ("no", "yes"), (1.5, 2.5)])
@pytest.mark.parametrize("form", ["scores", "labels", "both"])
def test_two_classes(rng, labels, form):
    classes = np.array(labels)
    code, scores = rng.integers(0, 2, ROWS), rng.normal(size=ROWS).round(1)  # with ties
    truth, predicted = classes[code], classes[(scores > 0).astype(int)]
    answers = {
        "scores": Answers(scores=scores),
        "labels": Answers(labels=predicted),
        "both": Answers(predicted, scores),
    }[form]
    judged = judge(Task.CLASSES, truth, answers, k=10, max_fpr=0.2, beta=2.0)
    found = judged.measures()
    right = int((predicted == truth).sum())
    wanted = {"accuracy": right / ROWS, "error_rate": (ROWS - right) / ROWS}
    wanted |= binary_formulas(truth == classes[1], predicted == classes[1])
    if form != "labels":
        positive = truth == classes[1]
        pairs = [
            (s > t) + 0.5 * (s == t)
            for s, t in itertools.product(scores[positive], scores[~positive])
        ]
        wanted["roc_auc"] = float(np.mean(pairs))
        wanted["average_precision"] = sklearn.metrics.average_precision_score(positive, scores)
        wanted["partial_roc_auc"] = sklearn.metrics.roc_auc_score(positive, scores, max_fpr=0.2)
        others = np.sort(scores[~positive])[::-1]  # at most a fifth of these may be as high
        least = others[int(0.2 * len(others))]
        wanted["recall_at_fpr"] = float(np.mean(scores[positive] > least))
        assert set(found) - set(wanted) == {"prbep", "precision_at_k", "recall_at_k"}
    else:
        assert set(found) == set(wanted)
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value, rel=1e-14), name
    assert judged.facts() == {"positive": str(classes[1])}


@pytest.mark.parametrize(
    ("truth", "guess", "undefined"),
    [
        ([0, 0, 0], [0, 0, 0], {"precision", "recall", "f1", "jaccard"} | BOTH),
        ([1, 1, 1], [0, 0, 0], {"precision"} | BOTH),
        ([0, 0, 0], [1, 0, 0], {"recall"} | BOTH),
    ],
)
def test_what_the_rows_do_not_define(truth, guess, undefined):
    classes = np.array([0, 1])
    answers = Answers(np.array(guess), np.array([0.3, -0.1, 0.2]))
    judged = judge(Task.CLASSES, np.array(truth), answers, classes=classes, k=2)
    found = judged.measures()
    one_class = {"roc_auc", "average_precision", "prbep"}
    at_k = {"recall_at_k"} if not any(truth) else set()
    assert {name for name, value in found.items() if value is None} == undefined | one_class | at_k
    assert format_measure("f1", None) == "undefined"


def test_more_classes(rng):
    truth, labels = rng.integers(1, 5, ROWS), rng.integers(1, 4, ROWS)
    judged = judge(Task.CLASSES, truth, Answers(labels, rng.normal(size=(ROWS, 4))),
                   classes=np.array([1, 2, 3, 9]))  # fmt: skip
    by_class = {
        str(label): binary_formulas(truth == label, labels == label)["f1"] for label in (1, 2, 3, 9)
    }
    assert by_class["9"] is None  # neither there nor predicted
    facts = judged.facts()
    assert facts == {
        "f1_by_class": pytest.approx(by_class),
        "rows_of_unknown_classes": int((truth == 4).sum()),
    }
    found = judged.measures()
    assert set(found) == {"accuracy", "error_rate", "macro_f1"}
    assert found["macro_f1"] == pytest.approx(np.mean([by_class[k] for k in "123"]))
    with pytest.raises(UsageError, match="scores tell two classes apart, but there are 4"):
        judge(Task.CLASSES, truth, Answers(scores=rng.normal(size=ROWS)))


def test_numbers(rng):
    truth = rng.normal(size=ROWS)
    values = truth + rng.normal(size=ROWS)
    found = judge(Task.VALUES, truth, Answers(scores=values)).measures()
    errors = truth - values
    assert found["mae"] == pytest.approx(np.abs(errors).mean(), rel=1e-15)
    assert found["rmse"] == pytest.approx(math.sqrt((errors**2).mean()), rel=1e-15)
    assert found["r2"] == pytest.approx(1 - (errors**2).mean() / truth.var(), rel=1e-14)
    constant = judge(Task.VALUES, np.ones(3), Answers(scores=np.arange(3.0))).measures()
    assert constant["r2"] is None and constant["mae"] == 2 / 3


def test_quantiles(rng):
    truth, quantiles = rng.normal(size=ROWS), (0.9, 0.1, 0.5)
    columns = np.array([0.8, -1.1, 0.1]) + 0.3 * truth[:, None]
    judged = judge(Task.VALUES, truth, Answers(scores=columns), quantiles=quantiles)
    over = columns - truth[:, None]
    pinball = np.maximum(-np.array(quantiles) * over, (1.0 - np.array(quantiles)) * over).mean(0)
    facts, found = judged.facts(), judged.measures()
    assert list(facts["pinball_by_quantile"]) == ["0.9", "0.1", "0.5"]
    assert list(facts["pinball_by_quantile"].values()) == pytest.approx(pinball, rel=1e-12)
    assert list(facts["coverage_by_quantile"].values()) == pytest.approx((over >= 0).mean(0))
    assert found["pinball"] == pytest.approx(pinball.mean(), rel=1e-12)
    assert found["coverage"] == np.mean((over[:, 0] >= 0) & (over[:, 1] <= 0))
    assert found["mae"] == pytest.approx(np.abs(over[:, 2]).mean())  # of the median
    two = judge(Task.VALUES, truth, Answers(scores=columns[:, :2]), quantiles=quantiles[:2])
    assert set(two.measures()) == {"pinball", "coverage"}
    one = judge(Task.VALUES, truth, Answers(scores=columns[:, 0]), quantiles=(0.9,))
    assert set(one.measures()) == {"mae", "rmse", "r2", "pinball"}
    assert one.measures()["pinball"] == pytest.approx(pinball[0], rel=1e-12)


def test_grades_and_rankings(rng):
    truth, scores = rng.integers(0, 3, ROWS), rng.normal(size=ROWS).round(1)
    qid = rng.integers(0, 6, ROWS)

    def swapped(same_query):
        pairs = [
            (scores[i] < scores[j]) + 0.5 * (scores[i] == scores[j])
            for i, j in itertools.product(range(ROWS), repeat=2)
            if truth[i] > truth[j] and (not same_query or qid[i] == qid[j])
        ]
        return float(np.mean(pairs))

    labels = np.clip(truth + rng.integers(-1, 2, ROWS), 0, 2)
    found = judge(Task.GRADES, truth, Answers(labels, scores), qid=qid).measures()
    assert list(found) == ["mae", "accuracy", "swapped_pairs"]
    assert found["mae"] == pytest.approx(np.abs(labels - truth).mean(), rel=1e-15)
    assert found["swapped_pairs"] == pytest.approx(swapped(False), rel=1e-14)

    judged = judge(Task.RANKING, truth, Answers(scores=scores), qid=qid)
    found = judged.measures()
    assert list(found) == ["ndcg@10", "ndcg", "swapped_pairs", "somers_d"]
    assert found["swapped_pairs"] == pytest.approx(swapped(True), rel=1e-14)
    assert found["somers_d"] == pytest.approx(1 - 2 * swapped(True), rel=1e-12)
    gains, by_query = 2.0**truth - 1, []
    for q in np.unique(qid):  # scikit-learn has one query at a time, and linear gains
        rows = qid == q
        by_query.append(sklearn.metrics.ndcg_score([gains[rows]], [scores[rows]]))
    assert found["ndcg"] == pytest.approx(np.mean(by_query), rel=1e-12)
    assert judged.facts() == {"queries": 6}
    negative = judge(Task.RANKING, truth - 1, Answers(scores=scores), qid=qid).measures()
    assert negative["ndcg"] is None and negative["swapped_pairs"] == found["swapped_pairs"]


def test_novelties(rng):
    scores = rng.normal(size=ROWS)
    labels = np.where(scores > 0, 1, -1)
    free = judge(Task.NOVELTY, rng.normal(size=ROWS), Answers(labels, scores))
    assert free.measures() == {"inside": np.mean(labels == 1)} and free.facts() == {}
    truth = rng.choice([-1, 1], ROWS)
    found = judge(Task.NOVELTY, truth, Answers(labels, scores)).measures()
    assert found["accuracy"] == np.mean(labels == truth)
    assert found["roc_auc"] == sklearn.metrics.roc_auc_score(truth, scores)


def test_sequences(rng):
    truth, qid = rng.integers(1, 3, ROWS), rng.integers(0, 20, ROWS)
    labels = np.where(rng.random(ROWS) < 0.15, 3, truth)
    judged = judge(Task.SEQUENCES, truth, Answers(labels=labels), qid=qid)
    right = [np.all(labels[qid == q] == truth[qid == q]) for q in np.unique(qid)]
    assert judged.measures() == {
        "token_accuracy": np.mean(labels == truth),
        "sequence_accuracy": np.mean(right),
    }
    with pytest.raises(UsageError, match="sequences need a qid:"):
        judge(Task.SEQUENCES, truth, Answers(labels=labels))


def test_what_a_path_chooses_by():
    first = {task: names_of(task)[0] for task in Task}
    assert first == {
        Task.CLASSES: "accuracy",
        Task.LABELS: "micro_f1",
        Task.GRADES: "mae",
        Task.RANKING: "ndcg@10",
        Task.VALUES: "mae",
        Task.NOVELTY: "inside",
        Task.SEQUENCES: "token_accuracy",
    }
    smaller = {name for name, measure in MEASURES.items() if measure.smaller_is_better}
    errors = {"error_rate", "balanced_error", "hamming_loss"}
    assert smaller == {"mae", "rmse", "swapped_pairs", "pinball", *errors}


def test_formulas_have_the_values_of_scikit_learn():
    """On small samples with ties, single classes and empty predictions."""
    import sklearn.metrics as reference

    from cutplane.cli import measures

    ours = {name: measure.of for name, measure in MEASURES.items()}
    rng = np.random.default_rng(0)
    undefined = {"zero_division": np.nan}

    def same(found, theirs):
        found = np.nan if found is None else found
        assert found == pytest.approx(theirs, abs=1e-12, nan_ok=True)

    for _ in range(100):
        n = int(rng.integers(2, 25))
        positive, guess = rng.random(n) < 0.4, rng.random(n) < 0.5
        scores = 0.5 * rng.integers(0, 5, n)
        both = positive, guess
        same(ours["precision"](*both), reference.precision_score(*both, **undefined))
        same(ours["recall"](*both), reference.recall_score(*both, **undefined))
        same(ours["f1"](*both), reference.f1_score(*both, **undefined))
        same(ours["fbeta"](*both, 0.5), reference.fbeta_score(*both, beta=0.5, **undefined))
        if 0 < positive.sum() < n:
            same(ours["matthews"](*both), reference.matthews_corrcoef(*both))
            balanced = 1.0 - reference.balanced_accuracy_score(*both)
            same(ours["balanced_error"](*both), balanced)
            recalls = reference.recall_score(*both), reference.recall_score(~positive, ~guess)
            same(ours["g_mean"](*both), np.sqrt(np.prod(recalls)))
            same(ours["jaccard"](*both), reference.jaccard_score(*both))
            same(ours["roc_auc"](positive, scores), reference.roc_auc_score(positive, scores))
            area = reference.average_precision_score(positive, scores)
            same(ours["average_precision"](positive, scores), area)
        y, z = rng.normal(size=(2, n))
        same(ours["mae"](y, z), reference.mean_absolute_error(y, z))
        same(ours["rmse"](y, z), reference.root_mean_squared_error(y, z))
        same(ours["r2"](y, z), reference.r2_score(y, z))
        same(measures._pinball(y - z, 0.3), reference.mean_pinball_loss(y, z, alpha=0.3))
