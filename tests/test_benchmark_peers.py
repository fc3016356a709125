"""The peers of the benchmarks solve the problem that they are given."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cutplane import dump_svmlight, load_svmlight
from cutplane.models import save_svmlight_model

pytestmark = [
    pytest.mark.skipif(
        not (Path(__file__).parents[1] / "benchmarks").is_dir(), reason="no benchmarks folder here"
    ),
    pytest.mark.filterwarnings("ignore:numpy.core:DeprecationWarning"),  # snapml's import
]


def problem_of(load, name: str = "a9a", rows: int = 300, C: float = 0.1, bias: str = "none"):
    data = load("datasets").Source(rows=rows, generated=True).load(name)
    return load("solvers").Problem(data, C, bias=bias)


@pytest.mark.parametrize("name", ["snapml", pytest.param("skglm", marks=pytest.mark.slow)])
def test_optional_peers_reach_our_optimum(load, name: str) -> None:
    solvers, peers = load("solvers"), load("peers").PEERS
    peer = peers[name]()
    if peer.missing() is not None:
        pytest.skip(peer.missing())
    problem = problem_of(load)
    ours = solvers.run(solvers.Cutplane("auto"), problem, solvers.Effort(tol=1e-5))
    done = solvers.run(peer, problem, solvers.Effort(tol=1e-12, max_iter=3000))
    assert done.objective == pytest.approx(ours.objective, rel=1e-3)
    assert done.objective >= ours.details["dual"] * (1 - 1e-9)
    rough = solvers.run(peer, problem, solvers.Effort(tol=1e-12, max_iter=1))
    assert rough.objective > 1.01 * ours.objective  # passes are counted


def test_a_missing_peer_says_how_to_get_it(load, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("snapml", "skglm", "dlib"):
        monkeypatch.setitem(sys.modules, name, None)  # import fails
        assert f"pip install {name}" in load("peers").PEERS[name]().missing()
    monkeypatch.setenv("PATH", "")
    for name in ("SVM-light", "SVM-perf"):
        assert "is not on the PATH" in load("peers").PEERS[name]().missing()


def pairs_of(w: np.ndarray) -> list[SimpleNamespace]:
    """Weights as dlib has them: those that are not zero."""
    return [SimpleNamespace(first=j, second=w[j]) for j in np.flatnonzero(w)]


def test_dlib_itself_reaches_our_optimum(load) -> None:
    pytest.importorskip("dlib")
    solvers, measured = load("solvers"), load("measures.solvers")
    data = load("datasets").Source(rows=200, generated=True).load("mq2008")
    for problem, ours, peer in (
        (
            problem_of(load, bias="regularised"),
            solvers.Cutplane("ocas"),
            load("dlib_solvers").DlibLinear(),
        ),
        (
            measured.MeasureProblem(data, 10.0, "ranking"),
            measured.MeasureCutplane(),
            measured.Dlib(),
        ),
    ):
        known = solvers.run(ours, problem, solvers.Effort(tol=1e-5))
        done = solvers.run(peer, problem, solvers.Effort(tol=1e-5))
        assert done.objective == pytest.approx(known.objective, rel=1e-3)
        assert done.objective >= known.details["dual"] * (1 - 1e-9)


def test_dlib_gets_the_mean_and_its_bias(load, monkeypatch: pytest.MonkeyPatch) -> None:
    solvers = load("solvers")
    problem = problem_of(load, bias="regularised")
    ours = solvers.run(solvers.Cutplane("ocas"), problem, solvers.Effort(tol=1e-5))

    class Trainer:
        def set_c(self, C: float) -> None:
            assert pytest.approx(problem.C * len(problem.data.y)) == C

        def train(self, rows: list, labels: list) -> object:
            assert labels == problem.data.y.tolist() and self.epsilon == 1e-3
            assert dict(rows[7]) == dict(
                zip(problem.data.X[7].indices, problem.data.X[7].data, strict=True)
            )

            class Trained:
                weights = pairs_of(ours.model.w)

                def __call__(self, row: list) -> float:
                    return ours.model.b + sum(ours.model.w[j] * value for j, value in row)

            return Trained()

    names = SimpleNamespace(
        pair=lambda index, value: (index, value),
        sparse_vector=list,
        sparse_vectors=list,
        array=list,
        svm_c_trainer_sparse_linear=Trainer,
    )
    monkeypatch.setitem(sys.modules, "dlib", names)
    peer = load("dlib_solvers").DlibLinear()
    assert not peer.solves(problem_of(load)) and peer.solves(problem)
    done = solvers.run(peer, problem, solvers.Effort(tol=1e-3))
    assert done.objective == pytest.approx(ours.objective, rel=1e-12)


# -- programs -------------------------------------------------------------------------


def pretend(folder: Path, program: str, answer: Path, extra: str = "") -> None:
    """A program that keeps its data and its options, and knows the model."""
    file = folder / program
    file.write_text(
        f"#!/bin/sh\n{extra}\necho \"$@\" > '{folder}/options'\ncp train '{folder}/data'\n"
        f"for last; do :; done\ncp '{answer}' \"$last\"\n"
        "echo 'Runtime in cpu-seconds: 0.25'\n"
    )
    file.chmod(0o755)


@pytest.mark.skipif(os.name != "posix", reason="the stand-ins are shell scripts")
@pytest.mark.parametrize("name", ["SVM-light", "SVM-perf", "SVM-rank"])
def test_programs_on_the_path(load, tmp_path: Path, monkeypatch, name: str) -> None:
    solvers, programs, measured = load("solvers"), load("programs"), load("measures.solvers")
    if name == "SVM-rank":
        data = load("datasets").Source(rows=200, generated=True).load("mq2008")
        problem, peer = measured.MeasureProblem(data, 10.0, "ranking"), programs.SvmRank()
        ours, effort = measured.MeasureCutplane(), solvers.Effort(tol=1e-3)
    else:
        problem, effort = problem_of(load), solvers.Effort(tol=1e-3)
        peer = load("peers").PEERS[name]()
        ours = solvers.Cutplane("ocas")
    prepared = ours.prepare(problem)
    trained = ours.train(problem, prepared, effort)
    known = ours.finish(problem, trained)[0]
    model = trained[0] if name == "SVM-rank" else trained
    save_svmlight_model(model, tmp_path / "answer")
    pretend(tmp_path, peer.program, tmp_path / "answer")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert peer.missing() is None and peer.solves(problem)
    done = solvers.run(peer, problem, effort)
    assert done.objective == pytest.approx(problem.objective(known), rel=1e-6)
    assert done.seconds == 0.25 and done.details["process_seconds"] > 0.0
    options = (tmp_path / "options").read_text().split()
    assert options[-2:] == ["train", "model"] and float(options[options.index("-e") + 1]) == 1e-3
    rows = len(problem.data.y)
    pairs = problem.facts().get("pairs")
    expected = {
        "SVM-light": lambda: problem.C,
        "SVM-perf": lambda: problem.C * rows / 100,
        "SVM-rank": lambda: problem.C * len(np.unique(problem.data.qid)) / pairs,
    }[name]()
    assert float(options[options.index("-c") + 1]) == pytest.approx(expected)
    if name != "SVM-rank":
        bias = options[options.index("-b" if name == "SVM-light" else "--b") + 1]
        assert bias == "0"
    X, y, qid = load_svmlight(
        tmp_path / "data", n_features=problem.data.X.shape[1], zero_based=False, qid="auto"
    )
    assert (X != problem.data.X).nnz == 0 and np.array_equal(y, problem.data.y)
    assert (qid is None) == (problem.data.qid is None)


@pytest.mark.skipif(os.name != "posix", reason="the stand-ins are shell scripts")
def test_programs_that_fail_or_hang(load, tmp_path: Path, monkeypatch) -> None:
    solvers, programs = load("solvers"), load("programs")
    problem, peer = problem_of(load), programs.SvmLight()
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    pretend(tmp_path, "svm_learn", tmp_path / "nothing", "echo 'out of memory' >&2; exit 3")
    with pytest.raises(RuntimeError, match="svm_learn ended with 3: out of memory"):
        solvers.run(peer, problem, solvers.Effort())
    pretend(tmp_path, "svm_learn", tmp_path / "nothing", "exec sleep 20")
    with pytest.raises(TimeoutError, match=r"svm_learn: not done in 0\.2 s"):
        solvers.run(peer, problem, solvers.Effort(time_limit=0.2))


# -- a user's file --------------------------------------------------------------------


def test_a_file_of_the_user(load, tmp_path: Path, capsys) -> None:
    datasets = load("datasets")
    X = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    dump_svmlight(X, [3, 5, 3], tmp_path / "mine.svm")
    data = datasets.Source(file=tmp_path / "mine.svm").load(datasets.FILE)
    assert data.name == "mine" and data.X.dtype == np.float32
    assert np.array_equal(data.X.toarray(), X) and data.y.tolist() == [-1.0, 1.0, -1.0]
    assert datasets.Source(file=tmp_path / "mine.svm").names(["a9a"]) == ("a9a", "file")
    assert datasets.Source().names(["a9a"]) == ("a9a",)
    with pytest.raises(datasets.MissingDataError, match="--file"):
        datasets.Source().load(datasets.FILE)
    dump_svmlight(X, [3, 5, 4], tmp_path / "three.svm")
    with pytest.raises(ValueError, match=r"three\.svm has 3 different labels"):
        datasets.own_file(tmp_path / "three.svm")
    with pytest.raises(SystemExit):
        load("engine").SUITE.main(["--section", "file", "--file", str(tmp_path / "none.svm")])
    assert "there is no file" in capsys.readouterr().err


def test_the_section_of_a_file(load, tmp_path: Path, monkeypatch, capsys) -> None:
    peers = load("peers").PEERS
    for name in [n for n in peers if n != "scikit-learn"]:
        monkeypatch.delitem(peers, name)
    monkeypatch.setattr(load("engine.linear"), "PENALTIES", (1.0,))
    data = load("datasets").Source(rows=200, generated=True).load("a9a")
    dump_svmlight(data.X, data.y, tmp_path / "mine.svm.gz")
    arguments = ["--section", "file", "--file", str(tmp_path / "mine.svm.gz"), "--quick"]
    status = load("engine").SUITE.main([*arguments, "--out", str(tmp_path / "out")])
    assert status == 0, capsys.readouterr().err
    text = (tmp_path / "out" / "file.json").read_text("utf-8")
    assert '"data": "mine"' in text and str(tmp_path) not in text
    assert "| mine, logistic, none bias, C = 1 |" in capsys.readouterr().out
