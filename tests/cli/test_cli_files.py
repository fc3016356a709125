"""Paths over C, looking into files, converting them, completing words."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import f1_score

import cutplane
from cutplane import LinearSVC, load_svmlight
from cutplane.cli import main


def run(*words):
    return main([str(word) for word in words])


def run_json(capsys, *words):
    code = run(*words, "--json")
    return code, json.loads(capsys.readouterr().out)


# -- path ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def validation(files, tmp_path_factory):
    """Validation rows: other rows of the same kind."""
    path = tmp_path_factory.mktemp("validation") / "dev.svm"
    rng = np.random.default_rng(1)
    X = scipy.sparse.csr_matrix(rng.normal(size=(80, 6)))
    model = LinearSVC().fit(files.X, files.y["binary"])
    noisy = model.decision_function(X) + rng.normal(size=80)
    cutplane.dump_svmlight(X, np.where(noisy > 0, 1.0, -1.0), path)
    return path


def test_path_keeps_the_best(files, validation, tmp_path, capsys):
    words = ["path", "--C", "10,0.001,0.1", "--validation", validation, "--select", "f1"]
    words += ["--tol", 1e-7, "--plot", tmp_path / "p.svg", files.binary, tmp_path / "m"]
    code, told = run_json(capsys, *words)
    assert code == 0 and [step["C"] for step in told["path"]] == [0.001, 0.1, 10.0]
    X, y = load_svmlight(validation)
    values = {}
    for step in told["path"]:  # each as if fitted alone
        alone = LinearSVC(C=step["C"], tol=1e-7).fit(files.X, files.y["binary"])
        values[step["C"]] = f1_score(y, alone.predict(X))
        assert step["measures"]["f1"] == pytest.approx(values[step["C"]])
        primal = alone.certificate_.primal
        assert step["certificate"]["primal"] == pytest.approx(primal, rel=3e-7)
    best = max(values.values())
    chosen = min(C for C, value in values.items() if value == best)
    assert told["best"] == {"C": chosen, "value": pytest.approx(best)}
    model = cutplane.load_model(tmp_path / "m")
    assert chosen == model.C and f1_score(y, model.predict(X)) == pytest.approx(best)
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")
    assert run(*words) == 0
    out = capsys.readouterr().out
    assert f"best        C = {chosen:g}, f1 {100 * best:.2f} %" in out
    assert out.splitlines()[-1].startswith("certificate primal")


def test_path_of_other_kinds(files, tmp_path, capsys):
    words = ["path", "--C", "1,100", "--validation"]
    code, told = run_json(capsys, *words, files.ranking, "--ranking", files.ranking, tmp_path / "m")
    assert code == 0 and told["select"] == "ndcg@10"
    words = [*words, files.binary]
    code, told = run_json(capsys, *words, "--measure", "roc_auc", files.binary, tmp_path / "m")
    assert code == 0 and told["select"] == "roc_auc" and told["estimator"] == "MeasureSVC"
    assert run(*words, "--one-class", files.binary, tmp_path / "m") == 2
    assert "OneClassSVM has no C" in capsys.readouterr().err
    assert run(*words, "--select", "ndcg", files.binary, tmp_path / "m") == 2
    assert "'ndcg' is no measure of this kind of model" in capsys.readouterr().err


def test_an_interrupted_path_keeps_the_best_so_far(files, tmp_path, capsys, monkeypatch):
    fit = LinearSVC.fit

    def interrupt(self, *args, **kwargs):
        if self.C > 1.0:
            raise KeyboardInterrupt
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(LinearSVC, "fit", interrupt)
    words = ["path", "--C", "0.1,1,10", "--validation", files.binary, files.binary]
    assert run(*words, tmp_path / "m") == 130
    assert "interrupted before C = 10" in capsys.readouterr().err
    assert cutplane.load_model(tmp_path / "m").C in (0.1, 1.0)


# -- info ---------------------------------------------------------------------


def test_info_on_data(files, tmp_path, capsys):
    code, told = run_json(capsys, "info", files.ranking)
    assert code == 0
    X, y = load_svmlight(files.ranking)
    assert (told["rows"], told["features"], told["stored"]) == (120, 6, X.nnz)
    assert told["density"] == pytest.approx(X.nnz / 720)
    values, counts = np.unique(y, return_counts=True)
    assert told["labels"] == {f"{v:g}": c for v, c in zip(values, counts.tolist(), strict=True)}
    assert told["queries"] == 24 and told["warnings"] == []
    largest = abs(X).max(axis=0).toarray()
    assert told["feature_scales"] == [largest.min(), largest.max()]

    (tmp_path / "odd.svm").write_text("1 qid:2 1:1000 4:0.5\n1 qid:1 3:1\n1 qid:2 cost:3\n")
    assert run("info", tmp_path / "odd.svm") == 0
    out = capsys.readouterr().out
    for text in (
        "3, 1 of them empty",
        "features differ in scale by 2e+03: the largest value of feature 1 is 1000, that of "
        "feature 4 0.5",
        "1 features are 0 in every row",
        "all labels are the same",
        "rows of the same qid are not next to each other",
        "cost        from 1 to 3",
    ):
        assert text in out


def test_info_on_models(files, tmp_path, capsys):
    run("train", "--C", 2, files.classes, tmp_path / "m")
    run("train", "--checkpoint", tmp_path / "state", files.binary, tmp_path / "b")
    capsys.readouterr()
    assert run("info", tmp_path / "m") == 0
    out = capsys.readouterr().out
    assert "kind        LinearSVC" in out and "C=2" in out and "classes     1, 2, 3" in out
    assert "certificate worst of 3 problems: primal" in out
    code, told = run_json(capsys, "info", tmp_path / "m")
    model = cutplane.load_model(tmp_path / "m")
    primals = [certificate["primal"] for certificate in told["certificate"]]
    assert code == 0 and primals == [c.primal for c in model.certificates_]
    assert run("info", tmp_path / "state") == 0
    assert "estimator   LinearSVC" in capsys.readouterr().out


# -- convert ------------------------------------------------------------------


def test_conversions_lose_nothing(files, tmp_path):
    rng = np.random.default_rng(3)
    cost = rng.integers(1, 4, 120).astype(float)
    source = tmp_path / "a.svm"
    cutplane.dump_svmlight(files.X, files.y["ranking"], source, qid=files.qid, cost=cost)
    steps = ["a.svm", "b.npz", "c.cut", "d.cut", "e.svm.gz", "f.cut", "g.npz", "h.svm"]
    for before, after in itertools.pairwise(steps):
        assert run("convert", tmp_path / before, tmp_path / after) == 0
    assert (tmp_path / "h.svm").read_bytes() == source.read_bytes()
    assert (scipy.sparse.load_npz(tmp_path / "g.npz") != files.X).nnz == 0
    assert run("convert", "--dense", source, tmp_path / "dense.npz") == 0
    assert np.array_equal(np.load(tmp_path / "dense.npz")["X"], files.X.toarray())
    assert run("convert", source, source, tmp_path / "two.cut") == 0
    assert cutplane.open_dataset(tmp_path / "two.cut").shape == (240, 6)


def test_training_from_a_data_set_gives_the_same_model(files, tmp_path, capsys):
    run("convert", files.ranking, tmp_path / "r.cut")
    run("convert", files.binary, tmp_path / "b.cut")
    for flags, text, folder in (
        ([], files.binary, "b.cut"),
        (["--measure", "roc_auc"], files.binary, "b.cut"),
        (["--ranking"], files.ranking, "r.cut"),
        (["--kernel", "rbf"], files.binary, "b.cut"),
    ):
        run("train", "--quiet", *flags, text, tmp_path / "m1")
        run("train", "--quiet", *flags, tmp_path / folder, tmp_path / "m2")
        capsys.readouterr()
        run("predict", text, tmp_path / "m1")
        one = capsys.readouterr().out
        run("predict", tmp_path / folder, tmp_path / "m2")
        assert capsys.readouterr().out == one


@pytest.mark.parametrize("more", [100_000, 1000, -1])
def test_a_damaged_data_set_is_an_error(files, tmp_path, capsys, more):
    """Not the end of the process: compiled loops used to read and write out of bounds."""
    run("convert", files.binary, tmp_path / "a.cut")
    starts = tmp_path / "a.cut" / "starts.npy"
    content = starts.read_bytes()
    last = int.from_bytes(content[-8:], "little") + more
    starts.write_bytes(content[:-8] + last.to_bytes(8, "little"))
    for words in (["train", tmp_path / "a.cut", tmp_path / "m"], ["info", tmp_path / "a.cut"]):
        assert run(*words) == 1
        assert f"{starts}: rows go from number 0 to {last}" in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


def test_an_absurd_index_is_an_error(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cutplane.data.memory, "available_memory", lambda: 16 << 30)
    (tmp_path / "t.svm").write_text("1 2000000000:1\n-1 3:1\n")
    for words in (["train", tmp_path / "t.svm", tmp_path / "m"], ["info", tmp_path / "t.svm"]):
        assert run(*words) == 1
        assert "each of 2000000000 features" in capsys.readouterr().err


def test_the_type_on_disk(files, tmp_path, capsys):
    from cutplane.cli.convert import TYPES

    text = tmp_path / "counts.svm"
    text.write_text("1 1:3 2:1\n-1 1:1 3:127\n")
    for dtype in TYPES:
        assert run("convert", "--dtype", dtype, text, tmp_path / f"{dtype}.cut") == 0
        assert run("convert", "--overwrite", tmp_path / f"{dtype}.cut", tmp_path / "copy.cut") == 0
        assert cutplane.open_dataset(tmp_path / "copy.cut").dtype == dtype
    assert run("convert", "--dtype", "int8", files.binary, tmp_path / "x.cut") == 1
    assert "is not an integer from -128 to 127" in capsys.readouterr().err
    assert run("convert", "--dtype", "int8", files.binary, tmp_path / "x.svm") == 2


def test_what_cannot_be_converted(files, tmp_path, capsys):
    assert run("convert", files.binary, "-", "--to", "cut") == 2
    assert run("convert", "--dense", files.binary, tmp_path / "x.svm") == 2
    assert run("convert", "--label", "y", files.binary, tmp_path / "x.svm") == 2
    np.savez(tmp_path / "text.npz", X=np.eye(2), y=["a", "b"])
    assert run("convert", tmp_path / "text.npz", tmp_path / "x.svm") == 1
    assert "svmlight labels are numbers" in capsys.readouterr().err
    np.savez(tmp_path / "none.npz", X=np.eye(2))
    assert run("train", tmp_path / "none.npz", tmp_path / "m") == 1
    assert "none.npz has no labels" in capsys.readouterr().err
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    assert run("train", tmp_path / "t.csv", tmp_path / "m") == 1
    assert "cutplane convert --label COLUMN" in capsys.readouterr().err


def test_a_table(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    (tmp_path / "t.csv").write_text("x,y,z\n0.5,1,2\n-1,0,3\n2,1,0.25\n")
    assert run("convert", "--label", "y", tmp_path / "t.csv", tmp_path / "t.cut") == 0
    dataset = cutplane.open_dataset(tmp_path / "t.cut")
    assert dataset.shape == (3, 2) and dataset.y.tolist() == [1, 0, 1]
    assert run("train", "--quiet", tmp_path / "t.cut", tmp_path / "m") == 0


# -- completion ---------------------------------------------------------------


def offered(line, tmp_path):
    """The completions that a shell gets for an unfinished line, by argcomplete's protocol."""
    answer = tmp_path / "answer"
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    done = subprocess.run([sys.executable, "-m", "cutplane"], env=environment, check=True)
    assert done.stdout is None
    return {word.strip() for word in answer.read_text().split("\n")}


@pytest.mark.parametrize(
    ("line", "found", "not_found"),
    [
        ("cutplane tr", ["train"], ["predict"]),
        ("cutplane ", ["train", "predict", "--help"], []),
        ("cutplane train --max", ["--max-iter", "--max-features"], ["--loss"]),
        ("cutplane train --ra", ["--ranking", "--random-state"], []),
        ("cutplane train --loss ", ["hinge", "logistic"], ["hamming", "train"]),
        ("cutplane train --chain --loss ", ["hamming", "zero_one"], ["hinge"]),
        ("cutplane train --ranking --we", ["--weighting"], []),
        ("cutplane predict --output l", ["labels"], ["scores"]),
        ("cutplane completion z", ["zsh"], ["bash"]),
    ],
)
def test_words_are_completed(line, found, not_found, tmp_path):
    pytest.importorskip("argcomplete")
    words = offered(line, tmp_path)
    assert set(found) <= words and not set(not_found) & words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_the_shell(shell, capsys, tmp_path):
    pytest.importorskip("argcomplete")
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert "cutplane" in text and "ARGCOMPLETE" in text
    if shutil.which(shell):
        (tmp_path / "script").write_text(text)
        subprocess.run([shell, "-n", tmp_path / "script"], check=True)


def test_completion_without_its_package(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    assert main(["completion", "bash"]) == 1
    assert "pip install argcomplete" in capsys.readouterr().err
