"""Tables and their columns: names are matched with the model's, labels need not be there."""

from __future__ import annotations

import json
import types

import numpy as np
import pytest

import cutplane
from cutplane.cli import main

pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")

NAMES = ["area", "rooms", "age", "tax"]


def run(*words):
    return main([str(word) for word in words])


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    """A table of columns whose order matters, in several formats, and a model of it."""
    folder = tmp_path_factory.mktemp("houses")
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4)).round(4)
    score = X @ [3.0, -1.0, 0.3, -0.1] + 0.3 * rng.normal(size=200)
    frame = pandas.DataFrame(X, columns=NAMES)
    frame["sold"] = np.where(score > 0.0, "yes", "no")
    backwards = frame[["sold", *NAMES[::-1]]]
    frame.to_csv(folder / "t.csv", index=False)
    backwards.to_csv(folder / "back.csv", index=False)
    backwards.to_parquet(folder / "back.parquet")
    frame[NAMES].to_csv(folder / "plain.csv", index=False)
    for name in ("t", "back"):
        assert (
            run("convert", "--label", "sold", folder / f"{name}.csv", folder / f"{name}.cut") == 0
        )
    assert run("convert", "--no-label", folder / "plain.csv", folder / "plain.cut") == 0
    assert run("train", "--quiet", folder / "t.cut", folder / "model") == 0
    model = cutplane.load_model(folder / "model")
    return types.SimpleNamespace(
        folder=folder,
        X=X,
        frame=frame,
        model=folder / "model",
        wanted=model.decision_function(frame[NAMES]),
        accuracy=np.mean(model.predict(frame[NAMES]) == frame["sold"]),
    )


# -- names ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["plain.csv"],
        ["plain.cut"],
        ["t.cut"],
        ["back.cut"],
        ["--label", "sold", "t.csv"],
        ["--label", "sold", "back.csv"],
        ["--label", "sold", "back.parquet"],
        ["--features", "tax,area,rooms,age", "back.parquet"],
    ],
    ids=" ".join,
)
def test_columns_are_found_by_name(houses, capsys, words):
    *flags, data = words
    assert run("predict", *flags, houses.folder / data, houses.model) == 0
    out, err = capsys.readouterr()
    assert err == ""
    np.testing.assert_allclose(np.array(out.split(), dtype=float), houses.wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "words", [["back.cut"], ["--label", "sold", "back.csv"], ["--label", "sold", "back.parquet"]]
)
def test_the_order_of_columns_costs_no_accuracy(houses, capsys, words):
    *flags, data = words
    assert run("evaluate", "--json", *flags, houses.folder / data, houses.model) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["measures"]["accuracy"] == houses.accuracy > 0.9
    # What would happen without names.
    model = cutplane.load_model(houses.model)
    del model.feature_names_in_
    assert np.mean(model.predict(houses.X[:, ::-1]) == houses.frame["sold"]) < 0.8


def test_other_columns_are_refused(houses, tmp_path, capsys):
    def refused(data, message, *flags):
        assert run("predict", *flags, data, houses.model, tmp_path / "out") == 1
        err = capsys.readouterr().err
        assert message in err and "Traceback" not in err
        assert not (tmp_path / "out").exists()

    refused(
        houses.folder / "back.csv",
        "back.csv has a column 'sold', which the model does not know; say what it is with --label",
    )
    few = houses.frame[["rooms", "area"]]
    few.to_csv(tmp_path / "few.csv", index=False)
    refused(
        tmp_path / "few.csv",
        "few.csv has no column 'age', 'tax', on which the model was trained; it has 'rooms', 'ar",
    )
    refused(houses.folder / "t.csv", "no column 'tax'", "--features", "area,rooms,age")
    assert run("convert", "--no-label", tmp_path / "few.csv", tmp_path / "few.cut") == 0
    refused(tmp_path / "few.cut", "few.cut has no column 'age', 'tax'")


def test_a_model_without_names_needs_as_many_columns(houses, tmp_path, capsys):
    np.savez(tmp_path / "t.npz", X=houses.X, y=houses.frame["sold"].to_numpy(dtype=str))
    assert run("train", "--quiet", tmp_path / "t.npz", tmp_path / "m") == 0
    assert run("predict", houses.folder / "plain.csv", tmp_path / "m") == 0
    out = capsys.readouterr().out
    np.testing.assert_allclose(np.array(out.split(), dtype=float), houses.wanted, rtol=1e-6)
    words = ["--features", "area,rooms,age", houses.folder / "t.csv", tmp_path / "m"]
    assert run("predict", *words) == 1
    assert "has 3 columns of features, 'area', 'rooms', 'age', but the model 4" in (
        capsys.readouterr().err
    )
    # And the other way round: nobody knows the names, which is said.
    assert run("predict", tmp_path / "t.npz", houses.model) == 0
    out, err = capsys.readouterr()
    assert "t.npz has no names of features; its columns are taken in the order" in err
    np.testing.assert_allclose(np.array(out.split(), dtype=float), houses.wanted, rtol=1e-6)


def test_kernel_machines_know_the_names_too(houses, tmp_path, capsys):
    words = ["--kernel", "rbf", "--quiet", houses.folder / "t.cut", tmp_path / "m"]
    assert run("train", *words) == 0
    assert run("evaluate", "--json", houses.folder / "t.cut", tmp_path / "m") == 0
    there = json.loads(capsys.readouterr().out)["measures"]["accuracy"]
    assert run("evaluate", "--json", houses.folder / "back.cut", tmp_path / "m") == 0
    assert json.loads(capsys.readouterr().out)["measures"]["accuracy"] == there > 0.9


# -- labels ---------------------------------------------------------------------


def test_data_without_labels_are_described(houses, tmp_path, capsys):
    for name in ("plain.csv", "plain.cut"):
        assert run("info", houses.folder / name) == 0
        out = capsys.readouterr().out
        assert "features    4: area, rooms, age, tax\n" in out
        assert "labels      none\n" in out
    assert run("info", "--label", "sold", houses.folder / "back.parquet") == 0
    no, yes = np.unique(houses.frame["sold"], return_counts=True)[1]
    assert f"labels      no ({no}), yes ({yes})\n" in capsys.readouterr().out
    assert run("info", houses.folder / "t.csv") == 1  # text is no feature
    assert "column 'sold' is of type string, not of numbers; encode" in capsys.readouterr().err
    for words in (["train"], ["evaluate"]):
        assert run(*words, houses.folder / "plain.cut", houses.model) == 1
        assert "plain.cut has no labels" in capsys.readouterr().err


def test_which_column_is_the_label_must_be_said(houses, tmp_path, capsys):
    out = tmp_path / "t.cut"
    assert run("convert", houses.folder / "t.csv", out) == 2
    err = capsys.readouterr().err
    assert "t.csv: which column holds the labels? Name it with --label, or pass --no-label" in err
    assert "'area', 'rooms', 'age', 'tax', 'sold'" in err
    assert run("convert", "--label", "sold", "--no-label", houses.folder / "t.csv", out) == 2
    assert run("evaluate", houses.folder / "t.csv", houses.model) == 2
    assert "name the column of its labels with --label" in capsys.readouterr().err
    assert not out.exists()


def test_a_data_set_is_not_overwritten_by_mistake(houses, tmp_path, capsys):
    out = tmp_path / "t.cut"
    words = ["--label", "sold", houses.folder / "t.csv", out]
    assert run("convert", *words) == 0
    before = sorted((p.name, p.stat().st_mtime_ns) for p in out.iterdir())
    for other in (words, [houses.folder / "back.cut", out]):
        assert run("convert", *other) == 1
        assert "t.cut exists; choose another name, or pass --overwrite" in capsys.readouterr().err
        assert sorted((p.name, p.stat().st_mtime_ns) for p in out.iterdir()) == before
    assert run("convert", "--overwrite", houses.folder / "back.cut", out) == 0
    assert cutplane.open_dataset(out).feature_names == tuple(NAMES[::-1])


@pytest.mark.parametrize("classes", [2, 3])
def test_text_labels_there_and_back(houses, tmp_path, capsys, classes):
    data, model, out = houses.folder / "t.cut", houses.model, tmp_path / "out"
    if classes == 3:
        frame = houses.frame.copy()
        frame.loc[houses.X[:, 1] > 1.0, "sold"] = "not yet"  # with a blank in it
        frame.to_csv(tmp_path / "t.csv", index=False)
        data, model = tmp_path / "t.cut", tmp_path / "m"
        assert run("convert", "--label", "sold", tmp_path / "t.csv", data) == 0
        assert run("train", "--quiet", data, model) == 0
    assert run("evaluate", "--json", data, model) == 0
    wanted = json.loads(capsys.readouterr().out)["measures"]["accuracy"]
    assert run("predict", "--output", "labels", data, model, out) == 0
    assert run("evaluate", "--json", data, "--predictions", out) == 0
    assert json.loads(capsys.readouterr().out)["measures"]["accuracy"] == wanted
    assert run("predict", data, model, out) == 0  # scores, for two classes
    assert run("evaluate", "--json", data, "--predictions", out) == 0
    assert json.loads(capsys.readouterr().out)["measures"]["accuracy"] == wanted


@pytest.mark.parametrize("kind", ["--ordinal", "--ranking", "--regression"])
def test_text_where_numbers_are_needed(houses, tmp_path, capsys, kind):
    assert run("train", kind, houses.folder / "t.cut", tmp_path / "m") == 1
    err = capsys.readouterr().err
    assert "t.cut: the " in err and "are text, such as " in err and "needs numbers" in err
    assert not (tmp_path / "m").exists()


def test_many_text_labels(tmp_path, capsys):
    y = np.array([f"w{k % 60:02d}" for k in range(179)])
    np.savez(tmp_path / "words.npz", X=np.ones((179, 1)), y=y)
    assert run("info", tmp_path / "words.npz") == 0
    assert "labels      60 different, most often w00 (3), w01 (3)" in capsys.readouterr().out
    assert run("info", "--json", tmp_path / "words.npz") == 0
    assert json.loads(capsys.readouterr().out)["label_range"] is None


# -- flags ----------------------------------------------------------------------


def test_flags_that_would_be_passed_over(houses, files, tmp_path, capsys):
    np.savez(tmp_path / "d.npz", X=files.X.toarray(), y=files.y["binary"])
    m = tmp_path / "m"
    for words, flag in (
        (["train", "--zero-based", tmp_path / "d.npz", m], "--zero-based"),
        (["train", "--n-features", 7, houses.folder / "t.cut", m], "--n-features"),
        (["predict", "--sort", houses.folder / "plain.csv", houses.model], "--sort"),
        (
            ["evaluate", "--max-features", 7, houses.folder / "t.cut", houses.model],
            "--max-features",
        ),
        (["info", "--sort", tmp_path / "d.npz"], "--sort"),
        (["convert", "--zero-based", tmp_path / "d.npz", tmp_path / "d.cut"], "--zero-based"),
    ):
        assert run(*words) == 2
        assert f"{flag} is for svmlight text, not for " in capsys.readouterr().err
    for words in (["info", "--label", "y"], ["convert", "--features", "y"]):
        assert run(*words, files.binary, *([tmp_path / "x.cut"] if words[0] != "info" else [])) == 2
        assert "is for tables (.csv, .parquet, .arrow), not for" in capsys.readouterr().err
    # Of two files one may be text.
    words = ["--C", 1, "--sort", "--quiet", "--validation", tmp_path / "d.npz", files.binary, m]
    assert run("path", *words) == 0


@pytest.mark.parametrize(
    "name", ["runs/max_iter.svm", "max_iter", "n_features/sort=True", "my max_features file"]
)
def test_names_of_files_are_not_rewritten(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("1 2:1 1:1\n")
    assert run("train", name, "m") == 1
    assert capsys.readouterr().err == (
        f"cutplane train: {name}:1:7: index 1 follows 2; indices must increase (or pass --sort)\n"
    )
    assert run("train", f"{name}.none_max_iter", "m") == 1
    assert f"cutplane train: {name}.none_max_iter: No such file" in capsys.readouterr().err


def test_the_time_of_all_classes(tmp_path, capsys):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(7), 100)
    np.savez(tmp_path / "d.npz", X=rng.normal(size=(700, 5)) + y[:, None] * rng.normal(size=5), y=y)
    assert run("train", tmp_path / "d.npz", tmp_path / "m") == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("certificate worst of 7 problems: ")
    seconds = cutplane.load_model(tmp_path / "m").results_
    total = sum(result.timings["total"] for result in seconds)
    number, unit = line.split("all 7 problems took ")[1].split()
    told = float(number) / (1000 if unit == "ms" else 1)
    assert told >= 0.9 * total > max(result.timings["total"] for result in seconds)
