"""The commands that people know: flags, files and the objective of each program.

The objective of every program is written out here from its manual, computed from the model file as
text, and compared with the optimum of a conic solver.
"""

from __future__ import annotations

import gzip
import itertools
import math
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import cutplane
from cutplane.cli import as_written, main
from cutplane.cli.known import CLASSIFIERS, LEARNERS

cp = pytest.importorskip("cvxpy")

DATA = os.environ.get("CUTPLANE_DATA", "")  # as for the benchmarks


def run(*arguments):
    return main([str(argument) for argument in arguments])


def weights(path, features=6):
    """w and b of a linear model in SVM-light's text: the decision is w*x - b."""
    lines = path.read_text().splitlines()
    assert lines[0].startswith("SVM-light Version") and lines[1].startswith("0 # kernel type")
    assert lines[9] == "2 # number of support vectors plus 1" and len(lines) == 12
    w = np.zeros(features)
    factor, *pairs = lines[11].split()
    for pair in pairs:
        index, value = pair.split(":")
        w[int(index) - 1] = float(factor) * float(value)
    return w, float(lines[10].partition("#")[0])


def pairs_of(y, qid):
    """The pairs (better row, worse row) of each query."""
    return [
        [(i, j) for i, j in itertools.permutations(np.flatnonzero(qid == q), 2) if y[i] > y[j]]
        for q in np.unique(qid)
    ]


def hinges(y, scores):
    return np.maximum(0.0, 1.0 - y * scores)


class Case:
    """A command, and its objective for numbers or for variables of the conic solver."""

    def __init__(self, words, data, objective, slack, bias=True):
        self.words, self.data, self.objective, self.slack = words, data, objective, slack
        self.bias = bias


def positive_part(x):
    return cp.pos(x) if isinstance(x, cp.Expression) else np.maximum(x, 0.0)


def total(x):
    return cp.sum(x) if isinstance(x, cp.Expression) else np.sum(x)


def size(x):
    return cp.abs(x) if isinstance(x, cp.Expression) else np.abs(x)


def square(w):
    return cp.sum_squares(w) if isinstance(w, cp.Expression) else float(w @ w)


def light(c, j=1.0):
    def objective(X, y, qid, w, b):
        factors = np.where(y > 0, j, 1.0)
        losses = (
            positive_part(1.0 - cp.multiply(y, X @ w - b))
            if isinstance(w, cp.Expression)
            else hinges(y, X @ w - b)
        )
        return 0.5 * square(w) + c * factors @ losses

    return objective


def light_regression(c, epsilon):
    def objective(X, y, qid, w, b):
        return 0.5 * square(w) + c * total(positive_part(size(X @ w - b - y) - epsilon))

    return objective


def ranking(c, per_query, divide):
    def objective(X, y, qid, w, b):
        queries = pairs_of(y, qid)
        risk = 0.0
        for pairs in queries:
            if pairs:
                better, worse = np.array(pairs).T
                loss = total(positive_part(1.0 - (X[better] - X[worse]) @ w))
                risk = risk + (loss / len(pairs) if per_query else loss)
        return 0.5 * square(w) + c * risk / (len(queries) if divide else 1.0)

    return objective


def perf_error(c):
    """Losses in per cent; the bias is the weight of a feature of value 1."""

    def objective(X, y, qid, w, b):
        margins = cp.multiply(y, X @ w - b) if isinstance(w, cp.Expression) else y * (X @ w - b)
        risk = 100.0 * total(positive_part(1.0 - margins)) / len(y)
        return 0.5 * (square(w) + b**2) + c * risk

    return objective


def perf_roc(c):
    def objective(X, y, qid, w, b):
        good, bad = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
        better, worse = np.array(list(itertools.product(good, bad))).T
        risk = total(positive_part(1.0 - (X[better] - X[worse]) @ w)) / len(better)
        return 0.5 * square(w) + c * 100.0 * risk

    return objective


ROWS = 120
CASES = {
    "c": Case("svm_learn -c 0.5", "binary", light(0.5), 0.5 * ROWS * 0.001),
    "j": Case("svm_learn -c 0.5 -j 4", "binary", light(0.5, 4.0), 0.5 * 4 * ROWS * 0.001),
    "no bias": Case("svm_learn -c 0.5 -b 0", "binary", light(0.5), 0.06, bias=False),
    "z r": Case("svm_learn -z r -c 0.5 -w 0.2", "numbers", light_regression(0.5, 0.2), 0.06),
    "z p": Case("svm_learn -z p -c 0.01", "ranking", ranking(0.01, False, False), 0.01 * 0.2,
                bias=False),
    "rank 1": Case("svm_rank_learn -c 3 -e 0.01", "ranking", ranking(3.0, False, True), 3 * 0.01,
                   bias=False),
    "rank 2": Case("svm_rank_learn -c 3 -l 2 -e 0.01", "ranking", ranking(3.0, True, True),
                   3 * 0.01, bias=False),
    "perf error": Case("svm_perf_learn -c 1 -e 0.1", "binary", perf_error(1.0), 0.1),
    "perf roc": Case("svm_perf_learn -l 10 -w 3 -c 2 -e 0.1", "binary", perf_roc(2.0), 2 * 0.1),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_objective_is_that_of_the_program(name, files, tmp_path, capsys):
    case = CASES[name]
    assert run(*shlex.split(case.words), getattr(files, case.data), tmp_path / "model") == 0
    X, y, qid = files.X.toarray(), files.y[case.data], files.qid
    w, b = weights(tmp_path / "model")
    found = float(case.objective(X, y, qid, w, b))
    W, B = cp.Variable(6), cp.Variable() if case.bias else 0.0
    problem = cp.Problem(cp.Minimize(case.objective(X, y, qid, W, B)))
    optimum = problem.solve(solver="CLARABEL")
    assert optimum * (1 - 1e-7) <= found <= optimum + case.slack * (1 + 1e-7)
    out, err = capsys.readouterr()
    # The certificate is in the same unit, except for the threshold that is fitted afterwards.
    told = float(out.splitlines()[-1].split("primal ")[1].partition(",")[0])
    assert told == pytest.approx(found, rel=1e-6)
    # The command that is stated trains the same model.
    (line,) = (line for line in err.splitlines() if ": the same as cutplane train " in line)
    words = shlex.split(line.partition("the same as cutplane ")[2])
    words[-1] = str(tmp_path / "ours")
    assert run(*words, "--quiet") == 0
    ours = cutplane.load_model(tmp_path / "ours")
    assert np.ravel(ours.coef_) == pytest.approx(w, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("words", "parameters"),
    [
        ("-t 2 -g 0.5 -c 2", {"kernel": "rbf", "gamma": 0.5}),
        ("-t 1 -d 2 -s 0.5 -r 2 -c 2", {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 2.0}),
    ],
)
def test_kernels(words, parameters, files, tmp_path, capsys):
    model, out = tmp_path / "model", tmp_path / "predictions"
    assert run("svm_learn", *shlex.split(words), "-e", "1e-6", files.binary, model) == 0
    assert run("svm_classify", files.binary, model, out) == 0
    y = files.y["binary"]
    expected = cutplane.SVC(C=2.0, tol=1e-9, **parameters).fit(files.X, y)
    scores = expected.decision_function(files.X)
    assert np.loadtxt(out) == pytest.approx(scores, abs=1e-3)
    right = int(np.sum((np.loadtxt(out) > 0) == (y > 0)))
    told = capsys.readouterr().out
    assert (
        f"Accuracy on test set: {100 * right / ROWS:.2f}% ({right} correct, {ROWS - right} "
        f"incorrect, {ROWS} total)" in told
    )
    hits, guessed = np.sum((np.loadtxt(out) > 0) & (y > 0)), np.sum(np.loadtxt(out) > 0)
    precision, recall = hits / guessed, hits / np.sum(y > 0)
    assert f"Precision/recall on test set: {100 * precision:.2f}%/{100 * recall:.2f}%" in told


def test_default_c_of_svm_learn(files, tmp_path, capsys):
    assert run("svm_learn", files.binary, tmp_path / "m") == 0
    wanted = 1.0 / np.mean(np.sum(files.X.toarray() ** 2, axis=1))
    assert f"--C {wanted:.12g} " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("loss", "measure"),
    [("1", "f1"), ("3", "prbep"), ("4", "precision_at_k"), ("5", "recall_at_k")],
)
def test_losses_of_svm_perf(loss, measure, files, tmp_path, capsys):
    flags = ["--p", "0.5"] if loss == "4" else []
    assert run("svm_perf_learn", "-l", loss, "-c", 2, *flags, files.binary, tmp_path / "m") == 0
    told = capsys.readouterr()
    k = {"k": 0.5} if flags else {}
    model = cutplane.MeasureSVC(measure, C=200.0 / ROWS, tol=0.001, stopping="epsilon", **k)
    if measure == "f1":
        model.set_params(intercept_scaling=1.0)
    primal = model.fit(files.X, files.y["binary"]).certificate_.primal
    assert float(told.out.split("primal ")[1].partition(",")[0]) == pytest.approx(primal, rel=1e-7)
    assert run("svm_perf_classify", files.binary, tmp_path / "m", tmp_path / "out") == 0
    lines = dict(line.split(":") for line in capsys.readouterr().out.splitlines())
    guess, y = np.loadtxt(tmp_path / "out") > 0, files.y["binary"] > 0
    f1 = 200.0 * np.sum(guess & y) / (np.sum(guess) + np.sum(y))
    assert float(lines["F1        "]) == pytest.approx(f1, abs=0.006)


def test_rankings_are_judged(files, tmp_path, capsys):
    model, out = tmp_path / "m", tmp_path / "out"
    assert run("svm_rank_learn", "-c", 3, files.ranking, model) == 0
    capsys.readouterr()
    assert run("svm_rank_classify", files.ranking, model, out) == 0
    told = capsys.readouterr().out
    s, y = np.loadtxt(out), files.y["ranking"]
    wrong = [[s[i] <= s[j] for i, j in pairs] for pairs in pairs_of(y, files.qid)]
    losses = [np.mean(query) if query else 0.0 for query in wrong]
    assert f"Average loss on test set: {np.mean(losses):.4f}" in told
    assert f"Total Num Swappedpairs  : {sum(map(sum, wrong)):6d}" in told


def test_chains(files, tmp_path, capsys):
    model, out = tmp_path / "m", tmp_path / "out"
    assert run("svm_hmm_learn", "-c", 5, "-e", 0.05, "--b", 0, files.tags, model) == 0
    told = capsys.readouterr()
    assert "--b has no meaning here: the search for the best tags is exact" in told.err
    expected = cutplane.ChainTagger(C=5.0 / 24, tol=0.05, stopping="epsilon")  # 24 sequences
    expected.fit(files.X, files.y["tags"].astype(int), lengths=[5] * 24)
    primal = float(told.out.split("primal ")[1].partition(",")[0])
    assert primal == pytest.approx(expected.certificate_.primal, rel=1e-7)
    assert run("svm_hmm_classify", files.tags, model, out) == 0
    tags = np.loadtxt(out)
    wrong = (tags != files.y["tags"]).reshape(24, 5).sum(axis=1)
    assert f"Average loss on test set: {wrong.mean():.4f}" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["0", "1", "2", "3", "7", "11", "13"])
def test_liblinear(kind, files, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    regression = int(kind) > 10
    data = files.numbers if regression else files.binary
    factors = [] if regression else ["-w1", "2", "-w-1", "0.5"]
    assert run("liblinear-train", "-s", kind, "-c", 0.7, "-B", 2, *factors, "-q", data) == 0
    assert capsys.readouterr().out == ""
    model = cutplane.load_model(tmp_path / f"{data.name}.model")
    X = np.hstack([files.X.toarray(), np.full((ROWS, 1), 2.0)])  # liblinear's bias feature
    y = files.y["numbers" if regression else "binary"]
    w = np.append(np.ravel(model.coef_), model.intercept_[0] / 2.0)
    W = cp.Variable(7)
    if regression:
        beyond = np.maximum(0.0, np.abs(X @ w - y) - 0.1)
        Beyond = cp.pos(cp.abs(X @ W - y) - 0.1)
        losses, Losses = (beyond**2, cp.square(Beyond)) if kind == "11" else (beyond, Beyond)
        factor = np.ones(ROWS)
    else:
        m, M = y * (X @ w), cp.multiply(y, X @ W)
        losses, Losses = {
            "logistic": (np.logaddexp(0.0, -m), cp.logistic(-M)),
            "squared": (hinges(y, X @ w) ** 2, cp.square(cp.pos(1.0 - M))),
            "hinge": (hinges(y, X @ w), cp.pos(1.0 - M)),
        }[{"0": "logistic", "7": "logistic", "3": "hinge"}.get(kind, "squared")]
        factor = np.where(y > 0, 2.0, 0.5)
    objective = 0.5 * w @ w + 0.7 * factor @ losses
    optimum = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(W) + 0.7 * factor @ Losses)).solve(
        solver="CLARABEL"
    )
    assert model.certificate_.primal == pytest.approx(objective, rel=1e-9)
    assert optimum * (1 - 1e-6) <= objective <= optimum * (1 + 1.1e-3)
    assert run("liblinear-predict", data, f"{data.name}.model", "out") == 0
    values, told = np.loadtxt("out"), capsys.readouterr().out
    if regression:
        assert f"Mean squared error = {np.mean((values - y) ** 2):g} (regression)" in told
    else:
        right = int(np.sum(values == y))
        assert told == f"Accuracy = {100 * right / ROWS:g}% ({right}/{ROWS})\n"


def test_liblinear_cross_validation(files, tmp_path, capsys):
    assert run("liblinear-train", "-v", 5, "-c", 1, files.binary, tmp_path / "m") == 0
    accuracy = float(capsys.readouterr().out.removeprefix("Cross Validation Accuracy = ")[:-2])
    assert 80.0 < accuracy < 100.0 and not (tmp_path / "m").exists()
    assert run("liblinear-train", "-v", 5, "-s", 11, files.numbers) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("Cross Validation Mean squared error = ")
    assert 0.8 < float(second.rpartition("= ")[2]) < 1.0
    assert run("liblinear-train", "-v", 500, files.binary) == 2
    assert "rows of the rarest class" in capsys.readouterr().err


# -- usage ----------------------------------------------------------------------


@pytest.mark.parametrize("name", {**LEARNERS, **CLASSIFIERS})
def test_help_lists_every_flag(name, capsys):
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.isascii()
    for flag in ({**LEARNERS, **CLASSIFIERS})[name].flags:
        assert f"\n  {flag}" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("svm_learn -C 1 d m", "unknown flag -C; did you mean -c, C, the weight"),
        ("svm_learn --gamma 1 d m", "did you mean -g, gamma of the RBF kernel?"),
        ("svm_learn -t 4 d m", "argument -t: invalid choice: '4'"),
        ("svm_learn -c -1 d m", "argument -c: must be a number above 0"),
        ("svm_rank_learn -Z 1 d m", "the flags are -t"),
        ("svm_rank_learn -t 2 d m", "argument -t: invalid choice"),
        ("svm_perf_learn -l 0 d m", "argument -l: invalid choice"),
        ("svm_hmm_learn --e 1 d m", "argument --e: invalid choice"),
        ("liblinear-train -C d m", "see cutplane path --help"),
        ("svm_learn d", "required: MODEL"),
    ],
)
def test_wrong_usage(words, message, capsys):
    assert main(shlex.split(words)) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err


@pytest.mark.parametrize(
    ("words", "text", "code", "message"),
    [
        ("svm_learn", "1 1:1\n0 1:2\n", 1, "a label is 0, which means a row without a label"),
        ("svm_learn", "1 1:1\n2 1:2\n3 2:1\n", 1, "must be -1 and 1, got 1, 2, 3"),
        ("svm_learn -t 2 -b 0", "1 1:1\n-1 1:2\n", 2, "-b 0 is not available with a kernel"),
        ("svm_learn -t 2 -z p", "1 qid:1 1:1\n2 qid:1 1:2\n", 2, "-z p is not available with"),
        ("svm_rank_learn", "1 qid:1 1:1\n2 qid:2 1:2\n", 1, "no two rows of a query"),
        ("liblinear-train -s 6", "1 1:1\n-1 1:2\n", 2, "-s 6 is an L1 norm"),
        ("svm_learn", "one 1:1\n", 1, "label 'one' is not a number"),
    ],
)
def test_bad_input(words, text, code, message, tmp_path, capsys):
    (tmp_path / "d").write_text(text)
    assert run(*shlex.split(words), tmp_path / "d", tmp_path / "m") == code
    assert message in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("command", "kind", "what"),
    [
        ("svm_classify", "classes", "a LinearSVC of 3 classes"),
        ("svm_perf_classify", "classes", "a LinearSVC of 3 classes"),
        ("svm_hmm_classify", "binary", "a LinearSVC"),
    ],
)
def test_a_model_that_is_not_for_the_program(files, tmp_path, capsys, command, kind, what):
    data = getattr(files, kind)
    assert run("train", "--quiet", data, tmp_path / "m") == 0
    assert run(command, data, tmp_path / "m", tmp_path / "out") == 2
    assert f"m holds {what}, which is not for {command}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_rows_without_queries_are_noted_in_words_of_files(files, tmp_path, capsys):
    assert run("svm_rank_learn", files.binary, tmp_path / "m") == 0
    err = capsys.readouterr().err
    assert err.count("no line has a qid:, so all rows are ranked as one query") == 1
    assert "np." not in err


def test_several_quantiles_are_not_for_svm_classify(files, tmp_path, capsys):
    words = ["train", "--quiet", "--regression", "--quantile", "0.1,0.9"]
    assert run(*words, files.numbers, tmp_path / "m") == 0
    assert run("svm_classify", files.numbers, tmp_path / "m", tmp_path / "out") == 2
    assert "a LinearSVR of several quantiles, which is not for" in capsys.readouterr().err


def test_flags_without_a_meaning_are_accepted(files, tmp_path, capsys):
    words = shlex.split("svm_learn -v 1 -q 10 -n 5 -h 100 -# 1000 -x 0 -i 0")
    assert run(*words, files.binary, tmp_path / "m") == 0
    err = capsys.readouterr().err
    assert err.count("has no meaning here") == 7
    assert math.isfinite(weights(tmp_path / "m")[1])


# -- the programs' own examples ------------------------------------------------

# As the pages of the programs have them, with their names of folders and files: of SVM-light,
# SVM-perf, SVM-rank and SVM-hmm at www.cs.cornell.edu/people/tj/svm_light, and liblinear's README
# (Debian's packages name its programs liblinear-train and liblinear-predict).
EXAMPLES = {
    "binary": """
        svm_learn example1/train.dat example1/model
        svm_classify example1/test.dat example1/model example1/predictions
        svm_learn example2/train_induction.dat example2/model
        svm_classify example2/test.dat example2/model example2/predictions
        svm_perf_learn -c 20 -l 2 --b 0 example1/train.dat example1/model
        svm_perf_classify example1/test.dat example1/model example1/predictions
        svm_perf_learn -c 20.0 train.dat model.dat
        liblinear-train data_file
        train -s 0 data_file
        predict -b 1 test_file data_file.model output_file
        train -v 5 -e 0.001 data_file
    """,
    "ranking": """
        svm_learn -z p example3/train.dat example3/model
        svm_classify example3/test.dat example3/model example3/predictions
        svm_rank_learn -c 3 example3/train.dat example3/model
        svm_classify example3/test.dat example3/model example3/predictions
        svm_rank_learn -c 20.0 train.dat model.dat
        svm_rank_classify test.dat model.dat predictions
    """,
    "tags": """
        svm_hmm_learn -c 5 -e 0.5 training_input.dat modelfile.dat
        svm_hmm_classify test_input.dat modelfile.dat classify.tags
    """,
    "four classes": "train -c 10 -w1 2 -w2 5 -w3 2 four_class_data_file",
    "two classes": "train -c 10 -w3 1 -w2 5 two_class_data_file",
}


def run_examples(kind, train, test, capsys):
    """Run a list in this folder; every command ends well, names its equivalent, and writes."""
    text = {"train": train, "test": test}
    for line in filter(None, map(str.strip, EXAMPLES[kind].splitlines())):
        words = line.split()
        learns = "learn" in words[0] or "train" in words[0]
        files = [Path(word) for k, word in enumerate(words) if k and re.search("[a-z]{4}", word)]
        files[0].parent.mkdir(exist_ok=True)
        files[0].write_bytes(text["train" if learns else "test"])
        written = files[-1] if len(files) > 1 else Path(f"{files[0]}.model")
        written.unlink() if written.exists() else None
        assert main(words) == 0, line
        assert "the same as cutplane " in capsys.readouterr().err, line
        assert written.exists() == ("-v" not in words), line


def as_manuals_have_it(path, change=lambda label: label):
    """A file with a comment at its head and behind every row."""
    rows = [line.partition(" ") for line in Path(path).read_text().splitlines()]
    lines = [f"{change(label)} {rest} # row {k}" for k, (label, _, rest) in enumerate(rows)]
    return "\n".join(["# made by hand", *lines, ""]).encode()


@pytest.mark.parametrize("kind", EXAMPLES)
def test_examples_of_the_manuals(kind, files, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"four classes": "grades", "two classes": "binary"}
    change = {"two classes": {"1": "3", "-1": "2"}.get}.get(kind, lambda label: label)
    rows = as_manuals_have_it(getattr(files, names.get(kind, kind)), change)
    run_examples(kind, rows, rows, capsys)


def test_classes_of_the_manual_have_their_factors(files, tmp_path, capsys, monkeypatch):
    """ "The C values for the two classes are 10 and 50." """
    monkeypatch.chdir(tmp_path)
    rows = as_manuals_have_it(files.binary, {"1": "3", "-1": "2"}.get)
    run_examples("two classes", rows, rows, capsys)
    model = cutplane.load_model("two_class_data_file.model")
    assert model.C == 10.0 and model.class_weight == {3.0: 1.0, 2.0: 5.0}


def test_transduction_is_refused_with_a_reason(files, tmp_path, capsys, monkeypatch):
    """SVM-light's second example learns from rows without labels, too."""
    monkeypatch.chdir(tmp_path)
    Path("example2").mkdir()
    rows = as_manuals_have_it(files.binary) + b"0 1:1\n"
    Path("example2/train_transduction.dat").write_bytes(rows)
    assert run("svm_learn", "example2/train_transduction.dat", "example2/model") == 1
    assert "(transduction), cutplane does not: remove these rows" in capsys.readouterr().err


def conll(source, target, known, most):
    """Sentences as SVM-hmm's text: words and parts of speech around a token are its features."""
    features, tags = known
    with gzip.open(source, "rt", encoding="utf-8") as file:
        sentences = [block.splitlines() for block in file.read().split("\n\n")[:most]]
    with open(target, "w", encoding="utf-8") as file:
        for number, lines in enumerate(filter(None, sentences), 1):
            rows = [line.split() for line in lines]
            for i, (word, _, tag) in enumerate(rows):
                near = [(k, *rows[i + k][:2]) for k in (-1, 0, 1) if 0 <= i + k < len(rows)]
                names = [f"w{k}={w}" for k, w, _ in near] + [f"p{k}={p}" for k, _, p in near]
                found = sorted(features.setdefault(name, len(features) + 1) for name in names)
                values = " ".join(f"{index}:1" for index in found)
                number_of_tag = tags.setdefault(tag, len(tags) + 1)
                file.write(f"{number_of_tag} qid:{number} {values} # {word}\n")


@pytest.mark.slow
@pytest.mark.skipif(not DATA, reason="needs the data folder of the benchmarks")
@pytest.mark.parametrize("kind", ["binary", "ranking", "tags"])
def test_examples_on_public_data(kind, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path(DATA)
    if kind == "tags":
        known = ({}, {})
        both = [Path("train.svm"), Path("test.svm")]
        for path, most in zip(both, (2000, 500), strict=True):
            conll(folder / "conll2000" / f"{path.stem}.txt.gz", path, known, most)
        rows = [path.read_bytes() for path in both]
    else:
        name = {"binary": "a9a/{}.svm.gz", "ranking": "mq2008/fold1.{}.svm.gz"}[kind]
        rows = [gzip.decompress((folder / name.format(k)).read_bytes()) for k in ("train", "test")]
    run_examples(kind, *rows, capsys)


@pytest.mark.slow
@pytest.mark.skipif(not DATA, reason="needs the data folder of the benchmarks")
@pytest.mark.parametrize(
    ("words", "slack"),
    [
        # c times the rows times epsilon; of svm_perf_learn c times epsilon, both in per cent
        ("svm_learn -c 0.1", 0.1 * 32561 * 0.001),
        ("svm_perf_learn -c 20 --b 0", 20 * 0.1),
    ],
)
def test_objective_on_a9a(words, slack, tmp_path, capsys):
    """The objective is computed from the model's text. The bound is from liblinear."""
    from sklearn.svm import LinearSVC

    data = Path(DATA) / "a9a" / "train.svm.gz"
    assert run(*shlex.split(words), data, tmp_path / "m") == 0
    X, y = cutplane.load_svmlight(data)[:2]
    w, b = weights(tmp_path / "m", X.shape[1])
    perf = words.startswith("svm_perf")
    c = 20 * 100.0 / len(y) if perf else 0.1
    found = 0.5 * w @ w + c * hinges(y, X @ w - b).sum()
    told = float(capsys.readouterr().out.split("primal ")[-1].partition(",")[0])
    assert told == pytest.approx(found, rel=1e-6)
    if perf:  # without a bias this is liblinear's problem
        best = LinearSVC(C=c, loss="hinge", fit_intercept=False, tol=1e-6, max_iter=5000)
        v = best.fit(X, y).coef_[0]
        optimum = 0.5 * v @ v + c * hinges(y, X @ v).sum()
        assert found <= optimum + slack


def _checked_against_the_originals():
    """Rows of the table of the page: command, data, objective there and here, what is allowed."""
    page = Path(__file__).parents[2] / "docs" / "coming-from.md"
    section = page.read_text(encoding="utf-8").partition("\n## Checked against the originals\n")[2]
    for row in re.findall(r"^\| `(.*) \|$", section.partition("\n## ")[0], re.MULTILINE):
        command, data, *numbers = row.split(" | ")
        yield command.rstrip("`"), data, *map(float, numbers)


@pytest.mark.slow
@pytest.mark.skipif(not DATA, reason="needs the data folder of the benchmarks")
@pytest.mark.parametrize(
    ("words", "data", "theirs", "ours", "allowed"), list(_checked_against_the_originals())
)
def test_objectives_of_the_originals(words, data, theirs, ours, allowed, tmp_path, capsys):
    """The page has the objectives that the original programs reached for the same problem."""
    if data == "conll2000":
        train = tmp_path / "train.svm"
        conll(Path(DATA) / data / "train.txt.gz", train, ({}, {}), 2000)
    else:
        train = Path(DATA) / data / {"a9a": "train.svm.gz", "mq2008": "fold1.train.svm.gz"}[data]
    assert run(*shlex.split(words), train, tmp_path / "model") == 0
    told = re.search(r"primal (\S+), dual (\S+),", capsys.readouterr().out)
    primal, dual = map(float, told.groups())
    rounding = 2e-4 * theirs  # of the page
    assert abs(primal - theirs) <= allowed + rounding and dual <= theirs + rounding
    assert abs(primal - ours) <= allowed


def test_liblinear_probabilities(files, tmp_path, capsys):
    model, out = tmp_path / "m", tmp_path / "out"
    assert run("train", "-s", 0, "-q", files.binary, model) == 0
    assert run("predict", "-b", 1, files.binary, model, out) == 0
    first, *lines = out.read_text().splitlines()
    assert first == "labels -1 1" and len(lines) == ROWS
    values = np.array([line.split() for line in lines], dtype=float)
    expected = cutplane.load_model(model)
    assert values[:, 1:] == pytest.approx(expected.predict_proba(files.X), rel=1e-6)
    assert np.array_equal(values[:, 0], expected.predict(files.X))
    assert run("train", "-s", 3, "-q", files.binary, model) == 0
    assert run("predict", "-b", 1, files.binary, model, out) == 2
    assert "without probabilities; train it with -s 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("train -s 3 d", "liblinear-train"),
        ("train -v 5 d", "liblinear-train"),
        ("train -w1 2 d m", "liblinear-train"),
        ("train -v d m", "train"),
        ("train --C 1 d m", "train"),
        ("predict -q d m o", "liblinear-predict"),
        ("predict d m o", "predict"),
        ("info -v d", "info"),
    ],
)
def test_flags_of_liblinear_tell_whose_command_is_meant(words, command):
    assert as_written(words.split())[0] == command
