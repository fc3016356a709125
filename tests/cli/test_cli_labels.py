"""Several labels per row through the command line, against the library and scikit-learn."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_svmlight_file, make_multilabel_classification
from sklearn.metrics import accuracy_score, f1_score, hamming_loss
from sklearn.preprocessing import MultiLabelBinarizer

from cutplane import LinearSVC, load_model
from cutplane.cli import main

NAMES = np.array([2, 3, 5, 7, 11])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Features, indicator matrix, and a file whose labels are no numbers of columns."""
    X, Y = make_multilabel_classification(
        150, 12, n_classes=len(NAMES), n_labels=2, allow_unlabeled=True, random_state=0
    )
    assert np.any(Y.sum(axis=1) == 0)
    X[0] = 1.0  # the last column is not empty
    file = tmp_path_factory.mktemp("labels") / "data.svm"
    wide = np.zeros((len(Y), NAMES.max() + 1), dtype=int)
    wide[:, NAMES] = Y
    dump_svmlight_file(X, wide, str(file), multilabel=True, zero_based=False)
    return X, Y, file


def run(*words):
    return main([str(word) for word in words])


def test_labels_from_training_to_measures(data, tmp_path, capsys):
    X, Y, file = data
    model, out = tmp_path / "model", tmp_path / "out"
    assert run("train", "--multilabel", "--C", 0.1, file, model, "--quiet") == 0
    ours, expected = load_model(model), LinearSVC(C=0.1).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, expected.coef_, rtol=1e-2, atol=1e-3)
    assert np.array_equal(ours.classes_, NAMES) and ours.multilabel_

    assert run("predict", file, model, out) == 0
    lines = [line.split(",") if line else [] for line in out.read_text().split("\n")[:-1]]
    predicted = MultiLabelBinarizer(classes=[str(name) for name in NAMES]).fit_transform(lines)
    assert np.array_equal(predicted, ours.predict(X).toarray())

    capsys.readouterr()
    measures = {
        "micro_f1": f1_score(Y, predicted, average="micro"),
        "macro_f1": f1_score(Y, predicted, average="macro"),
        "hamming_loss": hamming_loss(Y, predicted),
        "subset_accuracy": accuracy_score(Y, predicted),
    }
    for what in ([model], ["--predictions", out, "--kind", "multilabel"]):
        assert run("evaluate", "--json", file, *what) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["kind"] == "multilabel"
        assert found["measures"] == pytest.approx(measures)

    assert run("predict", "--output", "scores", file, model, out) == 0
    np.testing.assert_allclose(np.loadtxt(out), ours.decision_function(X), rtol=1e-6)


def test_what_train_says(data, tmp_path, capsys):
    _, Y, file = data
    flags = ["--multilabel", "--coef-threshold", 0.2, "--cv", 3]
    assert run("train", *flags, file, tmp_path / "model") == 0
    said = capsys.readouterr().out
    assert f"5 different ones, {Y.sum() / len(Y):.3g} per row" in said
    assert "micro_f1" in said and "worst of 5 problems" in said
    assert load_model(tmp_path / "model").coef_.nnz < 60


def test_a_path_is_chosen_by_micro_f1(data, tmp_path, capsys):
    *_, file = data
    words = ["path", "--multilabel", "--C", "0.01,0.1", "--validation", file, file]
    assert run(*words, tmp_path / "model", "--json") == 0
    assert json.loads(capsys.readouterr().out)["select"] == "micro_f1"


def test_lines_are_read_as_scikit_learn_does(tmp_path):
    file = tmp_path / "data.svm"
    file.write_text("# head\n1,5 1:2 3:1\n 2:0.5\n\n5,1,5 1:1 # twice\n-2.5 3:1\n2:1 3:1\n")
    model = tmp_path / "model"
    assert run("train", "--multilabel", file, model, "--quiet") == 0
    _, lists = load_svmlight_file(str(file), multilabel=True)
    names = sorted({label for row in lists for label in row})
    assert load_model(model).classes_.tolist() == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,5 1:1\n1,x 1:2\n", ":2:1: '1,x' is no list of labels; write numbers with commas"),
        ("1,5 1:1\n 1, 1:2\n", ":2:2: '1,' is no list of labels"),
        ("1,inf 1:1\n", ":1:1: '1,inf' is no list"),
        ("1,5 1:1\n1,7,8 1:2 3:oops\n", ":2:13: "),
        ("1:1\n2:1\n", "no row has a label"),
        ("1,2 1:1\n1 1:2\n", "every row of positive weight has the label 1"),
    ],
)
def test_bad_files(tmp_path, capsys, text, message):
    file = tmp_path / "data.svm"
    file.write_text(text)
    assert run("train", "--multilabel", file, tmp_path / "model", "--quiet") != 0
    assert message in capsys.readouterr().err


def test_what_is_not_there(data, tmp_path, capsys):
    *_, file = data
    archive = tmp_path / "data.npz"
    np.savez(archive, X=np.eye(3), y=np.eye(3))
    assert run("train", "--multilabel", archive, tmp_path / "model") != 0
    assert "read from svmlight text" in capsys.readouterr().err
    assert run("train", "--multilabel", "--report", tmp_path / "a.html", file, tmp_path / "m") != 0
    assert "no --report on several labels" in capsys.readouterr().err
    out = tmp_path / "out"
    out.write_text("1,2\n")
    assert run("evaluate", file, "--predictions", out, "--kind", "multilabel") != 0
    assert "has 1 prediction, " in capsys.readouterr().err
