"""Files in columns from the command line, against the library."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import cutplane
from cutplane import ChainTagger, metrics
from cutplane.cli import main
from cutplane.structured import read_conll

TEMPLATE = "U0:%x[0,0]\nU1:%x[-1,1]/%x[0,1]\nU2\nB\n"
KINDS = {"DT": ("the", "B-NP"), "NN": ("cat", "I-NP"), "VB": ("sat", "B-VP"), "IN": ("on", "O")}


def run(*words):
    return main([str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a template, a file to train on and a file to test on."""
    folder = tmp_path_factory.mktemp("conll")
    (folder / "template").write_text(TEMPLATE)
    rng = np.random.default_rng(0)
    for name, count in (("train", 40), ("test", 15)):
        lines = []
        for _ in range(count):
            for kind in rng.choice(list(KINDS), size=rng.integers(1, 7)):
                word, tag = KINDS[kind]
                tag = tag if rng.random() < 0.9 else "O"
                lines.append(f"{word}{rng.integers(3)} {kind} {tag}")
            lines.append("")
        (folder / f"{name}.txt").write_text("\n".join(lines))
    assert run("train", "--quiet", "--chain", "--template", folder / "template", "--C", "0.1",
               folder / "train.txt", folder / "model") == 0  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return ChainTagger(C=0.1, template=TEMPLATE).fit(*read_conll(folder / "train.txt"))


def test_train_is_the_library(folder, model):
    loaded = cutplane.load_model(folder / "model")
    assert np.array_equal(loaded.coef_, model.coef_) and loaded.template == TEMPLATE
    assert loaded.feature_names_in_.tolist() == model.feature_names_in_.tolist()


def test_predict_adds_a_column(folder, model, tmp_path, capsys):
    X, _ = read_conll(folder / "test.txt")
    tags = [tag for some in model.predict(X) for tag in some]
    assert run("predict", folder / "test.txt", folder / "model", tmp_path / "out.txt") == 0
    before = (folder / "test.txt").read_text().splitlines()
    after = (tmp_path / "out.txt").read_text().splitlines()
    expected = iter(tags)
    assert after == [f"{line} {next(expected)}" if line else "" for line in before][: len(after)]
    # Without the true tags, with tabs, and tags alone.
    bare = "".join("\t".join(line.split()[:2]) + "\n" for line in before)
    (tmp_path / "bare.txt").write_text(bare)
    assert run("predict", tmp_path / "bare.txt", folder / "model", tmp_path / "out.txt") == 0
    assert [line.split("\t")[2] for line in (tmp_path / "out.txt").open() if line.strip()] == [
        f"{tag}\n" for tag in tags
    ]
    capsys.readouterr()
    assert run("predict", "--output", "labels", tmp_path / "bare.txt", folder / "model") == 0
    assert capsys.readouterr().out.split() == tags


def test_evaluate_tells_the_chunks(folder, model, capsys):
    X, y = read_conll(folder / "test.txt")
    assert run("evaluate", "--json", folder / "test.txt", folder / "model") == 0
    found = json.loads(capsys.readouterr().out)
    tags = model.predict(X)
    for name in ("chunk_precision", "chunk_recall", "chunk_f1"):
        assert found["measures"][name] == getattr(metrics, name)(y, tags)
    assert found["chunk_f1_by_type"] == metrics.chunk_f1(y, tags, by_type=True)
    assert found["measures"]["token_accuracy"] == model.score(X, y)
    assert found["sequences"] == 15
    assert run("evaluate", folder / "test.txt", folder / "model") == 0
    out = capsys.readouterr().out
    assert "F1 by type" in out and "NP" in out


def test_cross_validation_and_rare_features(folder, tmp_path, capsys):
    assert run("train", "--chain", "--template", folder / "template", "--min-count", "3", "--cv",
               "3", folder / "train.txt", tmp_path / "model") == 0  # fmt: skip
    out = capsys.readouterr().out
    assert "token_accuracy" in out and "U0:%x[0,0] U1" in out
    names = cutplane.load_model(tmp_path / "model").feature_names_in_
    X, y = read_conll(folder / "train.txt")
    tagger = ChainTagger(template=TEMPLATE, min_count=3).fit(X, y)
    assert names.tolist() == tagger.feature_names_in_.tolist()


def test_export_shows_names_and_transitions(folder, model, tmp_path):
    assert run("export", folder / "model", tmp_path / "w.csv") == 0
    with open(tmp_path / "w.csv", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["feature", *model.classes_]
    names = [*model.feature_names_in_, *(f"(after {k})" for k in model.classes_)]
    assert [row[0] for row in rows] == names
    numbers = np.array([row[1:] for row in rows], dtype=float)
    assert np.array_equal(numbers, np.concatenate([model.coef_.T, model.transitions_]))
    assert run("export", folder / "model", tmp_path / "w.json") == 0
    content = json.loads((tmp_path / "w.json").read_text())
    assert content["transitions"] == model.transitions_.tolist()
    assert content["features"] == model.feature_names_in_.tolist()


def test_errors_name_file_line_and_column(folder, tmp_path, capsys):
    (tmp_path / "bad.template").write_text("U0:%x[0,0]\nU1:%x[0;1]\n")
    (tmp_path / "deep.template").write_text("U0:%x[0,2]\n")
    (tmp_path / "short.txt").write_text("a b C\nd e\n")
    (tmp_path / "few.txt").write_text("a\nb\n")
    train = folder / "train.txt"
    for words, message in (
        ((tmp_path / "bad.template", train), "bad.template:2:4: expected %x[ROW,COLUMN]"),
        ((tmp_path / "none", train), "No such file"),
        ((tmp_path / "deep.template", train), "train.txt:1:13: 3 columns, but the template needs"),
        ((folder / "template", tmp_path / "short.txt"), "short.txt:2:4: 2 columns, but"),
    ):
        assert run("train", "--chain", "--template", *words, tmp_path / "model") != 0
        assert message in capsys.readouterr().err
    assert run("predict", tmp_path / "few.txt", folder / "model") != 0
    assert (
        "few.txt:1:2: 1 columns, but the template of the model needs 2" in capsys.readouterr().err
    )
