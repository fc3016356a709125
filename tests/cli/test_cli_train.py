"""Training, predicting and measuring through the command line, against the library itself."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score, roc_auc_score

import cutplane
from cutplane import metrics
from cutplane.cli import main
from cutplane.structured import sequences_from


def run(*words):
    return main([str(word) for word in words])


def run_json(capsys, *words):
    code = run(*words, "--json")
    return code, json.loads(capsys.readouterr().out)


# Kind, flags, file, and the same model from the library.
KINDS = {
    "classification": (["--C", 3], "binary", lambda f: cutplane.LinearSVC(C=3.0)),
    "classes": (
        ["--multi-class", "crammer_singer"],
        "classes",
        lambda f: cutplane.LinearSVC(multi_class="crammer_singer"),
    ),
    "measure": (["--measure", "f1"], "binary", lambda f: cutplane.MeasureSVC("f1")),
    "ordinal": (["--ordinal", "--C", 10], "grades", lambda f: cutplane.OrdinalSVC(10.0)),
    "kernel": (["--kernel", "rbf"], "classes", lambda f: cutplane.SVC()),
    "regression": (["--regression"], "numbers", lambda f: cutplane.LinearSVR()),
    "quantiles": (
        ["--regression", "--quantile", "0.1,0.5,0.9"],
        "numbers",
        lambda f: cutplane.LinearSVR(loss="quantile", quantile=[0.1, 0.5, 0.9]),
    ),
    "kernel-regression": (
        ["--regression", "--kernel", "rbf"],
        "numbers",
        lambda f: cutplane.SVR(),
    ),
    "one-class": (["--one-class", "--nu", 0.2], "numbers", lambda f: cutplane.OneClassSVM(nu=0.2)),
}


NUMBERS = ("regression", "quantiles", "kernel-regression")


@pytest.mark.parametrize("name", KINDS)
def test_same_model_as_the_library(name, files, tmp_path, capsys):
    flags, data, make = KINDS[name]
    assert run("train", *flags, getattr(files, data), tmp_path / "model") == 0
    out = capsys.readouterr().out
    expected = make(files).fit(files.X, files.y[data])
    model = cutplane.load_model(tmp_path / "model")
    assert np.array_equal(model.predict(files.X), expected.predict(files.X))
    last = out.splitlines()[-1]
    assert last.startswith("certificate ") and "converged after" in last
    for form in ("labels", "scores"):
        target = tmp_path / form
        if name in NUMBERS and form == "labels":
            assert run("predict", "--output", form, files.numbers, tmp_path / "model") == 2
            continue
        code = run("predict", "--output", form, getattr(files, data), tmp_path / "model", target)
        assert code == 0
        written = np.loadtxt(target)
        if name == "ordinal" and form == "scores":
            wanted = expected.score_samples(files.X)
        elif form == "labels" or name in NUMBERS:
            wanted = expected.predict(files.X)
        else:
            wanted = expected.decision_function(files.X)
        assert written == pytest.approx(wanted, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("data", ["binary", "classes"])
@pytest.mark.parametrize("flags", [[], ["--kernel", "rbf"]], ids=["linear", "kernel"])
def test_probabilities_are_those_of_the_library(flags, data, files, tmp_path, capsys):
    model, out = tmp_path / "model", tmp_path / "out"
    file = getattr(files, data)
    assert run("train", *flags, "--C", 2, "--calibrate", "isotonic", file, model) == 0
    assert run("predict", "--output", "probabilities", file, model, out) == 0
    X, y = cutplane.load_svmlight(file)
    if flags:
        same = cutplane.SVC(C=2.0, calibrate="isotonic").fit(X, y.astype(int))
    else:
        same = cutplane.LinearSVCCV([2.0], calibrate="isotonic").fit(X, y.astype(int))
    found = np.loadtxt(out)
    assert found.shape == (len(y), len(np.unique(y)))
    np.testing.assert_allclose(found, same.predict_proba(X), atol=1e-7)


def test_probabilities_need_a_model_that_has_them(files, tmp_path, capsys):
    model = tmp_path / "model"
    assert run("train", files.binary, model) == 0
    assert run("predict", "--output", "probabilities", files.binary, model) == 2
    assert "without probabilities; train it with --calibrate" in capsys.readouterr().err
    words = ["--calibrate", "sigmoid", "--checkpoint", tmp_path / "state"]
    assert run("train", *words, files.binary, model) == 2
    assert "without --checkpoint: leave one out" in capsys.readouterr().err
    assert run("train", "--loss", "logistic", files.binary, model) == 0
    assert run("predict", "--output", "probabilities", files.binary, model, tmp_path / "out") == 0
    np.testing.assert_allclose(np.loadtxt(tmp_path / "out").sum(axis=1), 1.0)


def test_ranking(files, tmp_path, capsys):
    code, told = run_json(capsys, "train", "--ranking", files.ranking, tmp_path / "m")
    assert code == 0
    y, qid = files.y["ranking"], files.qid
    model = cutplane.RankSVM().fit(files.X, y, qid=qid)
    assert told["certificate"]["primal"] == model.certificate_.primal
    # SVM-rank: 1/2 |w|^2 + c/Q * (sum over pairs); here C times the mean over pairs times
    # the rows, of queries that have a pair.
    pairs = sum(
        int(y[i] > y[j]) for q in set(qid) for i in np.flatnonzero(qid == q)
        for j in np.flatnonzero(qid == q)
    )  # fmt: skip
    queries = len(set(qid))
    rows = sum(np.sum(qid == q) for q in set(qid) if len(set(y[qid == q])) > 1)
    assert told["C"]["SVM-rank"] / queries * pairs == pytest.approx(rows)
    assert told["C"]["SVM-light, sum over pairs"] * pairs == pytest.approx(rows)
    _, told = run_json(capsys, "evaluate", files.ranking, tmp_path / "m")
    scores = model.predict(files.X)
    assert told["measures"]["ndcg@10"] == metrics.ndcg_score(y, scores, qid=qid, k=10)
    assert told["measures"]["swapped_pairs"] == metrics.swapped_pairs(y, scores, qid=qid)
    assert told["queries"] == 24


def test_ranking_without_queries_is_said_once(files, tmp_path, capsys):
    assert main(["train", "--ranking", str(files.grades), str(tmp_path / "m")]) == 0
    assert capsys.readouterr().err.count("all rows are ranked as one query") == 1
    assert main(["train", "--ranking", str(files.ranking), str(tmp_path / "m")]) == 0
    assert "one query" not in capsys.readouterr().err


def test_chain(files, tmp_path, capsys):
    shuffled = np.random.default_rng(0).permutation(120)
    cutplane.dump_svmlight(
        files.X[shuffled], files.y["tags"][shuffled], tmp_path / "mixed.svm",
        qid=files.qid[shuffled],
    )  # fmt: skip
    assert run("train", "--chain", tmp_path / "mixed.svm", tmp_path / "m") == 0
    assert run("predict", tmp_path / "mixed.svm", tmp_path / "m", tmp_path / "out") == 0
    written = np.loadtxt(tmp_path / "out")
    sequences = sequences_from(files.X[shuffled], files.y["tags"][shuffled], files.qid[shuffled])
    model = cutplane.ChainTagger().fit(sequences.X, sequences.y, lengths=sequences.lengths)
    for q in (1, 7, 24):  # the tags of a sequence, at the lines where its tokens are
        rows = np.flatnonzero(files.qid[shuffled] == q)
        tags = model.predict(files.X[shuffled][rows], lengths=[len(rows)])
        assert np.array_equal(written[rows], tags)
    capsys.readouterr()
    _, told = run_json(capsys, "evaluate", tmp_path / "mixed.svm", tmp_path / "m")
    right = written == files.y["tags"][shuffled]
    assert told["measures"]["token_accuracy"] == np.mean(right)
    whole = [right[files.qid[shuffled] == q].all() for q in np.unique(files.qid)]
    assert told["measures"]["sequence_accuracy"] == np.mean(whole)
    assert run("predict", "--output", "scores", tmp_path / "mixed.svm", tmp_path / "m") == 2
    assert run("train", "--chain", files.binary, tmp_path / "n") == 1
    assert "every line must have a qid:" in capsys.readouterr().err
    assert not (tmp_path / "n").exists()


def test_chain_with_a_kernel(files, tmp_path, capsys):
    tags, qid = files.y["tags"], files.qid
    cutplane.dump_svmlight(files.X, tags, tmp_path / "tags.svm", qid=qid)
    flags = ["--chain", "--kernel", "rbf", "--gamma", "0.2", "--method", "linear",
             "--sample-size", "50", "--max-basis", "60", "--random-state", "3"]  # fmt: skip
    assert run("train", *flags, tmp_path / "tags.svm", tmp_path / "m") == 0
    assert "estimated" in capsys.readouterr().out
    assert run("predict", tmp_path / "tags.svm", tmp_path / "m", tmp_path / "out") == 0
    sequences = sequences_from(files.X, tags, qid)
    model = cutplane.ChainTagger(
        kernel="rbf", gamma=0.2, method="linear", sample_size=50, max_basis=60, random_state=3
    ).fit(sequences.X, sequences.y, lengths=sequences.lengths)
    expected = np.empty(120)
    rows = sequences_from(files.X, np.arange(120), qid)
    expected[rows.y] = model.predict(rows.X, lengths=rows.lengths)
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "out"), expected)
    assert model.n_basis_ <= 60
    assert run("train", "--chain", "--kernel", "gauss", files.binary, tmp_path / "n") == 2
    constant = ["--chain", "--method", "constant", "--sample-size", "15", "--passes", "2"]
    kernel = ["--kernel", "rbf", "--gamma", "0.2", "--C", "20", "--random-state", "3"]
    assert run("train", *constant, *kernel, tmp_path / "tags.svm", tmp_path / "c") == 0
    fast = cutplane.load_model(tmp_path / "c")
    assert (fast.method, fast.sample_size, fast.passes) == ("constant", 15, 2)
    assert fast.certificate_.kind == "estimated"
    assert fast.support_.max() < 120
    capsys.readouterr()
    assert run("train", *constant, tmp_path / "tags.svm", tmp_path / "n") == 1
    assert "--method constant is for kernels: give one, as --kernel rbf" in capsys.readouterr().err
    path = ["path", *flags, "--C", "1,10,100", "--validation", tmp_path / "tags.svm"]
    assert run(*path, "--select", "token_accuracy", tmp_path / "tags.svm", tmp_path / "best") == 0
    assert isinstance(cutplane.load_model(tmp_path / "best"), cutplane.ChainTagger)


def test_cost_is_the_weight_of_a_row(files, tmp_path, capsys):
    cost = np.where(np.arange(120) % 3 == 0, 2.0, 1.0)
    y = files.y["binary"]
    cutplane.dump_svmlight(files.X, y, tmp_path / "cost.svm", cost=cost)
    twice = np.repeat(np.arange(120), cost.astype(int))
    cutplane.dump_svmlight(files.X[twice], y[twice], tmp_path / "twice.svm")
    told = {}
    for name in ("cost", "twice"):
        data = tmp_path / f"{name}.svm"
        _, told[name] = run_json(capsys, "train", "--tol", 1e-8, data, tmp_path / name)
    one, other = told["cost"], told["twice"]
    assert one["certificate"]["primal"] == pytest.approx(other["certificate"]["primal"], rel=1e-7)
    assert one["C"] == pytest.approx(other["C"])  # n is the sum of the weights
    assert one["C"]["SVM-perf"] == pytest.approx(cost.sum() / 100)
    _, balanced = run_json(
        capsys, "train", "--class-weight", "1:3,-1:1", tmp_path / "twice.svm", tmp_path / "b"
    )
    mass = np.where(y > 0, 3.0, 1.0) @ cost
    assert balanced["C"]["mean loss: OCAS, BMRM"] == pytest.approx(mass)


def test_json_certificate_holds_by_the_formula(files, tmp_path, capsys):
    code, told = run_json(capsys, "train", "--C", 2, files.binary, tmp_path / "m")
    model = cutplane.load_model(tmp_path / "m")
    w, b = model.coef_[0], model.intercept_[0]
    y = files.y["binary"]
    losses = np.maximum(0.0, 1.0 - y * (files.X @ w + b))
    assert told["certificate"]["primal"] == pytest.approx(0.5 * w @ w + 2 * losses.sum())
    assert told["status"] == "converged" and told["exit_code"] == code == 0
    assert told["parameters"]["C"] == 2.0 and told["data"]["rows"] == 120
    assert told["C"]["scikit-learn, liblinear, SVM-light"] == 2.0
    assert told["C"]["lambda of Pegasos, SGD"] == pytest.approx(1 / 240)


def test_measures_are_those_of_scikit_learn(files, tmp_path, capsys):
    run("train", files.binary, tmp_path / "m")
    capsys.readouterr()
    _, told = run_json(capsys, "evaluate", files.binary, tmp_path / "m", "--k", 10)
    model = cutplane.load_model(tmp_path / "m")
    y, labels = files.y["binary"], model.predict(files.X)
    scores = model.decision_function(files.X)
    found = told["measures"]
    assert found["accuracy"] == accuracy_score(y, labels)
    assert found["precision"] == precision_score(y, labels)
    assert found["recall"] == recall_score(y, labels)
    assert found["f1"] == f1_score(y, labels)
    assert found["roc_auc"] == pytest.approx(roc_auc_score(y, scores), rel=1e-12)
    assert found["precision_at_k"] == metrics.precision_at_k(y, scores, 10)
    assert run("evaluate", files.binary, tmp_path / "m") == 0
    correct = int(np.sum(labels == y))
    wanted = f"({correct} correct, {120 - correct} incorrect, 120 total)"
    assert wanted in capsys.readouterr().out

    run("train", files.classes, tmp_path / "c")
    capsys.readouterr()
    _, told = run_json(capsys, "evaluate", files.classes, tmp_path / "c")
    y, labels = files.y["classes"], cutplane.load_model(tmp_path / "c").predict(files.X)
    assert told["measures"]["macro_f1"] == pytest.approx(f1_score(y, labels, average="macro"))
    assert set(told["f1_by_class"]) == {"1", "2", "3"}


def test_predictions_from_a_file(files, tmp_path, capsys):
    run("train", files.binary, tmp_path / "m")
    run("predict", files.binary, tmp_path / "m", tmp_path / "scores")
    run("predict", "--output", "labels", files.binary, tmp_path / "m", tmp_path / "labels")
    capsys.readouterr()
    _, model = run_json(capsys, "evaluate", files.binary, tmp_path / "m")
    _, scores = run_json(capsys, "evaluate", files.binary, "--predictions", tmp_path / "scores")
    assert scores["measures"] == pytest.approx(model["measures"], rel=1e-4)  # eight digits
    _, labels = run_json(
        capsys, "evaluate", files.binary, "--predictions", tmp_path / "labels", "--output", "labels"
    )
    assert labels["measures"]["f1"] == model["measures"]["f1"]
    assert "roc_auc" not in labels["measures"]
    lines = (tmp_path / "labels").read_text().split()
    assert set(lines) == {"1", "-1"}  # as in the data, not 1.0

    (tmp_path / "few").write_text("1\n2\n")
    assert run("evaluate", files.binary, "--predictions", tmp_path / "few") == 1
    assert "has 2 predictions" in capsys.readouterr().err
    (tmp_path / "bad").write_text("1\nmaybe\n")
    assert run("evaluate", files.binary, "--predictions", tmp_path / "bad") == 1
    assert "bad:2:1: 'maybe' is not a prediction" in capsys.readouterr().err
    assert run("evaluate", files.binary) == 2
    assert run("evaluate", files.binary, tmp_path / "m", "--kind", "ranking") == 2


def test_one_class_in_the_test_data_leaves_measures_undefined(files, tmp_path, capsys):
    run("train", files.binary, tmp_path / "m")
    (tmp_path / "ones.svm").write_text("1 1:1\n1 2:1\n")
    capsys.readouterr()
    code, told = run_json(capsys, "evaluate", tmp_path / "ones.svm", tmp_path / "m")
    assert code == 0 and told["measures"]["roc_auc"] is None
    assert run("evaluate", tmp_path / "ones.svm", tmp_path / "m") == 0
    assert re.search(r"ROC area +undefined", capsys.readouterr().out)


def test_checkpoint_and_resume(files, tmp_path, capsys):
    state = tmp_path / "state"
    ocas = ["train", "--solver", "ocas", "--tol", 1e-6, files.binary]
    words = [*ocas, tmp_path / "m", "--checkpoint", state]
    assert run(*words, "--max-iter", 4) == 3
    capsys.readouterr()
    code, resumed = run_json(capsys, *words, "--resume")
    assert code == 0
    _, once = run_json(capsys, *ocas, tmp_path / "n")
    assert resumed["certificate"] == once["certificate"]
    assert run(*words, "--resume", "--C", 5) == 1
    assert "without --resume" in capsys.readouterr().err
    assert run("train", "--resume", files.binary, tmp_path / "m") == 2


def test_checkpoint_and_resume_with_a_kernel(files, tmp_path, capsys):
    state = tmp_path / "state"
    kind = ["--regression", "--kernel", "rbf"]
    words = ["train", "--checkpoint", state, *kind, files.numbers, tmp_path / "m"]
    assert run(*words, "--max-iter", 1, "--working-set-size", 2) == 3
    capsys.readouterr()
    code, told = run_json(capsys, "info", state)
    assert code == 0 and told["estimator"] == "SVR" and told["n_iter"] == 1
    assert run(*words, "--resume") == 0
    assert run("train", "--checkpoint", state, "--sampled", files.binary, tmp_path / "m") == 2
    assert "not available for SampledCutSVC" in capsys.readouterr().err


def test_quiet_says_nothing(files, tmp_path, capsys):
    assert run("train", "--quiet", files.binary, tmp_path / "m") == 0
    assert capsys.readouterr() == ("", "")
