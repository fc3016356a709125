"""``export``, ``train --cv`` and regression by files, compared with the library."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from sklearn.model_selection import KFold, StratifiedKFold

import cutplane
from cutplane.cli import main


def run(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.fixture
def model(files, tmp_path):
    assert run("train", "--quiet", files.classes, tmp_path / "model") == 0
    return tmp_path / "model"


def test_weights_as_a_table_and_as_json(files, tmp_path, model):
    assert run("export", model, tmp_path / "w.csv") == 0
    with open(tmp_path / "w.csv", newline="") as file:
        head, *rows = csv.reader(file)
    fitted = cutplane.load_model(model)
    assert head == ["feature", "1", "2", "3"]
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5", "6", "(bias)"]
    numbers = np.array([row[1:] for row in rows], dtype=float)
    assert np.array_equal(numbers[:-1].T, fitted.coef_)
    assert np.array_equal(numbers[-1], fitted.intercept_)
    assert run("export", model, tmp_path / "w.json") == 0
    content = json.loads((tmp_path / "w.json").read_text())
    assert content["coef"] == fitted.coef_.tolist() and content["classes"] == ["1", "2", "3"]
    quantiles = tmp_path / "q"
    assert (
        run("train", "--quiet", "--regression", "--quantile=0.1,0.9", files.numbers, quantiles) == 0
    )
    assert run("export", quantiles, tmp_path / "q.csv") == 0
    assert (tmp_path / "q.csv").read_text().startswith("feature,0.1,0.9\n1,")


def test_text_of_svmlight_and_weights(files, tmp_path, capsys):
    for words, data in ((["--regression"], "numbers"), ([], "binary")):
        out = [tmp_path / name for name in ("model", "text", "a", "b")]
        assert run("train", "--quiet", *words, getattr(files, data), out[0]) == 0
        assert run("export", "--format", "svmlight", out[0], out[1]) == 0
        # Commands read this text as they read models of their own.
        assert run("predict", getattr(files, data), out[0], out[2]) == 0
        assert run("predict", getattr(files, data), out[1], out[3]) == 0
        assert np.loadtxt(out[2]) == pytest.approx(np.loadtxt(out[3]), rel=1e-7)
    assert run("export", "--format", "weights", out[0], "-") == 0
    fitted = cutplane.load_model(out[0])
    lines = np.array(capsys.readouterr().out.split(), dtype=float)
    assert np.array_equal(lines, [*fitted.coef_[0], *fitted.intercept_])


def test_onnx(files, tmp_path, model):
    onnx = pytest.importorskip("onnx")
    assert run("export", model, tmp_path / "m.onnx") == 0
    graph = onnx.load(str(tmp_path / "m.onnx"))
    assert [entry.name for entry in graph.graph.output] == ["label", "scores"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["model", "out"], 2, "Give --format, one of onnx, svmlight, weights, csv, json"),
        (["model", "--format", "svmlight", "out"], 1, "two classes, this one has 3"),
        (["model", "--format", "weights", "out"], 1, "3 classes"),
        (["missing", "out.csv"], 1, "missing"),
        (["rbf", "out.csv"], 1, "csv and json are for linear scores, and a SVC is none"),
    ],
)
def test_what_cannot_be_exported(words, code, message, files, tmp_path, model, capsys):
    assert run("train", "--quiet", "--kernel", "rbf", files.binary, tmp_path / "rbf") == 0
    words = [word if word.startswith("-") or word == "svmlight" or word == "weights"
             else tmp_path / word for word in words]  # fmt: skip
    assert run("export", *words) == code
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.csv").exists()


# -- train --cv -----------------------------------------------------------------


def test_cross_validation_of_classes(files, tmp_path, capsys):
    assert run("train", "--cv", 4, "--json", files.binary, tmp_path / "m") == 0
    told = json.loads(capsys.readouterr().out)["cv"]
    X, y = files.X, files.y["binary"].astype(int)
    values = [
        cutplane.LinearSVC().fit(X[train], y[train]).score(X[test], y[test])
        for train, test in StratifiedKFold(4, shuffle=True, random_state=0).split(X, y)
    ]
    assert told["measure"] == "accuracy" and told["values"] == pytest.approx(values)
    assert told["mean"] == pytest.approx(np.mean(values))
    assert told["std"] == pytest.approx(np.std(values))
    assert run("train", "--cv", 4, files.binary, tmp_path / "m") == 0
    line = f"folds       accuracy {100 * told['mean']:.2f} % +- {100 * told['std']:.2f} % (4 folds)"
    assert line in capsys.readouterr().out.splitlines()


def test_cross_validation_of_quantiles_and_queries(files, tmp_path, capsys):
    words = ["train", "--cv", 3, "--json"]
    assert run(*words, "--regression", "--quantile", 0.8, files.numbers, tmp_path / "m") == 0
    told = json.loads(capsys.readouterr().out)["cv"]
    X, y, values = files.X, files.y["numbers"], []
    for train, test in KFold(3, shuffle=True, random_state=0).split(y):
        over = cutplane.LinearSVR(loss="quantile", quantile=0.8).fit(X[train], y[train])
        over = over.predict(X[test]) - y[test]
        values.append(np.maximum(-0.8 * over, 0.2 * over).mean())
    assert told["measure"] == "pinball" and told["values"] == pytest.approx(values)
    for kind, data, measure in (
        ("--ranking", files.ranking, "ndcg@10"),
        ("--chain", files.tags, "token_accuracy"),
    ):
        assert run(*words, kind, data, tmp_path / "m") == 0
        assert json.loads(capsys.readouterr().out)["cv"]["measure"] == measure
    assert run("train", "--cv", 1, files.binary, tmp_path / "m") == 2
    assert "the number of folds must be from 2" in capsys.readouterr().err


# -- regression -----------------------------------------------------------------


def test_quantiles_by_files(files, tmp_path, capsys):
    data, model, out = tmp_path / "d.cut", tmp_path / "m", tmp_path / "out"
    assert run("convert", files.numbers, data) == 0
    words = ["--regression", "--quantile", "0.1,0.5,0.9", "--crossing", "sort"]
    assert run("train", "--quiet", *words, data, model) == 0
    assert run("predict", files.numbers, model, out) == 0
    columns = np.loadtxt(out)
    assert columns.shape == (120, 3) and np.all(np.diff(columns) >= 0)
    capsys.readouterr()
    assert run("evaluate", data, model) == 0
    text = capsys.readouterr().out
    y = files.y["numbers"]
    inside = np.mean((columns[:, 0] <= y) & (y <= columns[:, 2]))
    # Quantiles go through some rows, up to rounding: these may count or not.
    told = float(text.partition("coverage    ")[2].split()[0])
    assert told == pytest.approx(100 * inside, abs=3.0)
    assert "pinball of  0.1: " in text and "below       0.1: " in text
    validation = ["--validation", files.numbers, "--C", "0.1,1", "--json"]
    assert run("path", *words, *validation, data, model) == 0
    assert json.loads(capsys.readouterr().out)["select"] == "pinball"
