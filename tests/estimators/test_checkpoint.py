"""Checkpoints: a fit that goes on ends with the same bits as one that was never ended."""

from __future__ import annotations

import dataclasses
import logging
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cutplane import (
    SVC,
    ChainTagger,
    Checkpoint,
    LinearSVC,
    MeasureSVC,
    OrdinalSVC,
    RankSVM,
    Status,
    StructuredSVM,
    save_model,
)
from cutplane.models import describe, load_model
from cutplane.structured import MulticlassProblem

_rng = np.random.default_rng(3)
X = _rng.normal(size=(150, 12))
y = X[:, 0] + _rng.normal(size=150) > 0
wide = _rng.normal(size=(120, 200))  # longer than SHORT: the reduced problem works on G
wide_y = wide[:, 0] + 0.3 * _rng.normal(size=120) > 0
three = np.digitize(X[:, 0] + 0.5 * _rng.normal(size=150), [-0.5, 0.5])
sequences = [_rng.normal(size=(length, 8)) for length in _rng.integers(1, 9, 30)]
tags = [_rng.integers(0, 4, len(rows)) for rows in sequences]

KINDS = {
    "ocas": (LinearSVC, {"solver": "ocas", "tol": 1e-6}, X, y),
    "cpa": (LinearSVC, {"tol": 1e-5, "solver": "cpa"}, X, y),
    "squared hinge, large C": (
        LinearSVC,
        {"solver": "ocas", "tol": 1e-6, "loss": "squared_hinge", "C": 50},
        X,
        y,
    ),
    "logistic": (LinearSVC, {"solver": "ocas", "tol": 1e-6, "loss": "logistic"}, X, y),
    "constant feature": (
        LinearSVC,
        {"solver": "ocas", "tol": 1e-6, "intercept_scaling": 1.0},
        X,
        y,
    ),
    "wide": (LinearSVC, {"solver": "ocas", "tol": 1e-7, "C": 0.05}, wide, wide_y),
    "one-vs-rest": (LinearSVC, {"solver": "ocas", "tol": 1e-5}, X, three),
    "joint": (LinearSVC, {"tol": 1e-3, "multi_class": "crammer_singer"}, X, three),
    "roc area": (MeasureSVC, {"tol": 1e-5}, X, y),
    "F1": (MeasureSVC, {"tol": 1e-4, "measure": "f1"}, X, y),
    "rank": (RankSVM, {"tol": 1e-5}, X, X[:, 1].round(1)),
    "ordinal": (OrdinalSVC, {"tol": 1e-4}, X, three),
    "chain": (ChainTagger, {"tol": 1e-3, "C": 0.3, "solver": "ocas"}, sequences, tags),
    "structured": (
        StructuredSVM,
        {"problem": MulticlassProblem(), "solver": "cpa", "tol": 1e-2},
        X[:40],
        three[:40],
    ),
}


class Interrupt:
    """A callback that raises KeyboardInterrupt at a certain call."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.calls = 0

    def __call__(self, *arguments) -> None:
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt


def results(model) -> list:
    return model.results_


def quiet(model, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data, **options)


def assert_same_course(model, other) -> None:
    assert len(results(model)) == len(results(other))
    for mine, theirs in zip(results(model), results(other), strict=True):
        assert mine.status is theirs.status and mine.certificate == theirs.certificate
        np.testing.assert_array_equal(mine.w, theirs.w)
        assert mine.bias == theirs.bias
        for name in ("number", "primal", "dual", "trial", "step", "cuts"):
            np.testing.assert_array_equal(mine.column(name), theirs.column(name))
        assert np.all(np.diff(mine.column("seconds")) > 0)


def total(model) -> int:
    return sum(result.n_iter for result in results(model))


# -- the same course ----------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_going_on_after_an_interrupt(kind, tmp_path):
    estimator, options, *data = KINDS[kind]
    path = tmp_path / "c"
    whole = quiet(estimator(**options), *data)
    count = total(whole)
    for at in {1, count // 2, count - 1}:
        path.unlink(missing_ok=True)
        checkpoint = Checkpoint(path, every=1e6)
        stopped = quiet(estimator(**options, checkpoint=checkpoint, callback=Interrupt(at)), *data)
        assert Status.INTERRUPTED in {result.status for result in results(stopped)}
        resumed = quiet(estimator(**options, checkpoint=checkpoint), *data)
        assert_same_course(resumed, whole)
    # What is there in the end goes on to the same end.
    assert_same_course(quiet(estimator(**options, checkpoint=path), *data), whole)
    assert [file.name for file in tmp_path.iterdir()] == ["c"]


def test_writing_at_every_iteration_changes_nothing(tmp_path):
    whole = LinearSVC(solver="ocas", tol=1e-6).fit(X, y)
    written = LinearSVC(
        solver="ocas", tol=1e-6, checkpoint=Checkpoint(tmp_path / "c", every=0.0)
    ).fit(X, y)
    assert_same_course(written, whole)
    told = describe(tmp_path / "c")
    assert told["kind"] == "checkpoint" and told["estimator"] == "LinearSVC"
    assert told["n_iter"] == whole.n_iter_ - 1 and told["parameters"]["tol"] == "1e-06"
    assert told["certificate"]["primal"] == whole.results_[0].trace[-2].primal
    assert told["sizes"]["w"] == [12] and told["solved"] == 0


def test_several_interrupts_and_numbers_of_threads(tmp_path):
    whole = quiet(LinearSVC(solver="ocas", tol=1e-7), X, y)
    path = tmp_path / "c"
    for jobs in (1, 2, 3):
        model = LinearSVC(
            solver="ocas", tol=1e-7, checkpoint=path, n_jobs=jobs, callback=Interrupt(4)
        )
        quiet(model, X, y)
    assert describe(path)["n_iter"] == 3 + 3 + 3
    model = LinearSVC(solver="ocas", tol=1e-7, checkpoint=path, n_jobs=2)
    assert_same_course(model.fit(X, y), whole)


def test_another_rule_may_end_the_fit(tmp_path):
    path = tmp_path / "c"
    rough = LinearSVC(solver="ocas", tol=1e-1, checkpoint=path).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        LinearSVC(solver="ocas", tol=1e-9, max_iter=rough.n_iter_ + 3, checkpoint=path).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = LinearSVC(solver="ocas", tol=1e-9, time_limit=1e-9, checkpoint=path).fit(X, y)
    assert model.n_iter_ == rough.n_iter_ + 3  # the time limit is for what is new
    fine = LinearSVC(solver="ocas", tol=1e-6, checkpoint=path, time_limit=60.0).fit(X, y)
    assert_same_course(fine, LinearSVC(solver="ocas", tol=1e-6).fit(X, y))


def test_another_rule_with_several_problems(tmp_path):
    path = tmp_path / "c"
    LinearSVC(solver="ocas", tol=1e-2, checkpoint=path).fit(X, three)
    fine = LinearSVC(solver="ocas", tol=1e-6, checkpoint=path).fit(X, three)
    assert all(result.certificate.relative_gap <= 1e-6 for result in results(fine))
    whole = LinearSVC(solver="ocas", tol=1e-6).fit(X, three)
    np.testing.assert_allclose(
        [r.certificate.primal for r in results(fine)],
        [r.certificate.primal for r in results(whole)],
        rtol=2e-6,
    )


def test_problems_that_are_solved_are_not_solved_again(tmp_path):
    path = tmp_path / "c"
    first = LinearSVC(solver="ocas", tol=1e-5).fit(X, three).results_[0].n_iter
    stop = Interrupt(first + 3)
    stopped = quiet(LinearSVC(solver="ocas", tol=1e-5, checkpoint=path, callback=stop), X, three)
    assert describe(path)["solved"] == 1
    assert [r.n_iter for r in results(stopped)] == [first, 3, 1]
    seen = []
    LinearSVC(
        solver="ocas", tol=1e-5, checkpoint=path, callback=lambda r: seen.append(r.problem)
    ).fit(X, three)
    assert set(seen) == {"class 1", "class 2"}


def test_beginning_anew(tmp_path):
    path = tmp_path / "c"
    whole = LinearSVC(solver="ocas", tol=1e-6).fit(X, y)
    for _ in range(2):
        count = Interrupt(-1)
        checkpoint = Checkpoint(path, resume=False)
        model = LinearSVC(solver="ocas", tol=1e-6, checkpoint=checkpoint, callback=count).fit(X, y)
        assert count.calls == whole.n_iter_
        assert_same_course(model, whole)


def test_a_warm_start_goes_on_from_the_checkpoint(tmp_path):
    path = tmp_path / "c"
    model = LinearSVC(solver="ocas", tol=1e-6, warm_start=True, checkpoint=path).fit(X, y)
    model.fit(X, y)
    assert_same_course(model, LinearSVC(solver="ocas", tol=1e-6).fit(X, y))


# -- killed -------------------------------------------------------------------

FIT = """
    import sys
    import numpy as np
    from cutplane import Checkpoint, LinearSVC
    X = np.random.default_rng(0).normal(size=(2000, 30))
    y = X[:, 0] + np.random.default_rng(1).normal(size=2000) > 0
    def tell(record):
        print(record.number, flush=True)
    LinearSVC(solver="ocas", tol=1e-9, C=1.0, max_iter=120, callback=tell,
              checkpoint=Checkpoint(sys.argv[1], every=0.0)).fit(X, y)
"""


def test_killed_at_any_moment(tmp_path):
    path = tmp_path / "c"
    rng = np.random.default_rng(0)
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(FIT), str(path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(8):
        process.stdout.readline()
    time.sleep(rng.uniform(0.0, 0.02))
    process.send_signal(signal.SIGKILL)
    told = [8, *(int(line) for line in process.stdout.read().split())]
    process.wait()
    assert told[-1] - 1 <= describe(path)["n_iter"] <= told[-1] + 1  # no more than one interval
    data = np.random.default_rng(0).normal(size=(2000, 30))
    labels = data[:, 0] + np.random.default_rng(1).normal(size=2000) > 0
    resumed = quiet(
        LinearSVC(solver="ocas", tol=1e-9, C=1.0, max_iter=120, checkpoint=path), data, labels
    )
    whole = quiet(LinearSVC(solver="ocas", tol=1e-9, C=1.0, max_iter=120), data, labels)
    assert_same_course(resumed, whole)


# -- 45: from something else --------------------------------------------------

OTHER_X = X.copy()
OTHER_X[70, 3] += 1e-9


@pytest.mark.parametrize(
    ("model", "data", "options", "message"),
    [
        (LinearSVC(), (OTHER_X, y), {}, r"other data \(X\)"),
        (LinearSVC(), (X[:-1], y[:-1]), {}, r"other data \(X\)"),
        (LinearSVC(), (X.astype(np.float32), y), {}, r"other data \(X\)"),
        (LinearSVC(), (X, ~y), {}, r"other data \(y or sample_weight\)"),
        (LinearSVC(), (X, y), {"sample_weight": np.arange(150)}, r"other data \(y or sample_w"),
        (LinearSVC(C=2.0), (X, y), {}, r"other parameters \(C was 1.0, is 2.0\)"),
        (LinearSVC(solver="cpa"), (X, y), {}, r"other parameters \(solver was 'auto', is 'cpa'\)"),
        (LinearSVC(loss="logistic"), (X, y), {}, r"other parameters \(loss was 'hinge', is"),
        (LinearSVC(fit_intercept=False), (X, y), {}, r"\(fit_intercept was True, is False\)"),
        (LinearSVC(class_weight="balanced"), (X, y), {}, r"class_weight was None, is 'balanced'"),
        (MeasureSVC(C=1.0), (X, y), {}, "is a checkpoint of LinearSVC, not of MeasureSVC"),
    ],
)
def test_45_refused(model, data, options, message, tmp_path):
    path = tmp_path / "c"
    LinearSVC(checkpoint=path).fit(X, y)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message) as caught:
        model.set_params(checkpoint=path).fit(*data, **options)
    assert str(caught.value).startswith(str(path)) and "resume=False" in str(caught.value)
    assert path.read_bytes() == before


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "c"
    save_model(LinearSVC().fit(X, y), path)
    with pytest.raises(ValueError, match="not a checkpoint but a model file of LinearSVC"):
        LinearSVC(checkpoint=path).fit(X, y)
    path.write_bytes(pickle.dumps({}))
    with pytest.raises(ValueError, match="no file written by cutplane; it looks like a pickle"):
        LinearSVC(checkpoint=path).fit(X, y)
    path.unlink()
    LinearSVC(checkpoint=path).fit(X, y)
    with pytest.raises(ValueError, match="is a checkpoint, not a model"):
        load_model(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="is damaged"):
        LinearSVC(checkpoint=path).fit(X, y)


# -- parameters and files -----------------------------------------------------


@pytest.mark.parametrize(
    ("checkpoint", "message"),
    [
        (3, "checkpoint must be None, a path or a Checkpoint, got 3"),
        ("", "checkpoint must have the path of a file, got ''"),
        ("-", "checkpoint must have the path of a file, got '-'"),
        (Checkpoint(None), "checkpoint must have the path of a file, got None"),
        (Checkpoint("c", every=-1), "every of checkpoint must be"),
        (Checkpoint("c", every=float("nan")), "every of checkpoint must be"),
        (Checkpoint("c", resume="no"), "resume of checkpoint must be True or False"),
    ],
)
def test_bad_parameters(checkpoint, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC(checkpoint=checkpoint).fit(X, y)


@pytest.mark.parametrize("solver", ["dcd", "sgd", "pegasos"])
def test_solvers_without_a_state(solver, tmp_path):
    with pytest.raises(ValueError, match=f"checkpoint is for solver='ocas' or 'cpa'.*'{solver}'"):
        LinearSVC(solver=solver, checkpoint=tmp_path / "c").fit(X, y)


def test_clones_and_pickles(tmp_path):
    model = LinearSVC(checkpoint=Checkpoint(tmp_path / "c", every=3.0))
    assert clone(model).checkpoint == model.checkpoint
    assert pickle.loads(pickle.dumps(model.fit(X, y))).checkpoint == model.checkpoint
    assert "every=3.0" in repr(model)


def test_44_a_folder_that_cannot_be_written_to(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cannot write: No such file .*nowhere/c"):
        LinearSVC(checkpoint=tmp_path / "nowhere" / "c").fit(X, y)


def test_44_a_disk_that_gets_full_does_not_end_the_fit(tmp_path, monkeypatch, caplog):
    path = tmp_path / "c"
    replace, calls = os.replace, []

    def full(*arguments):
        calls.append(arguments)
        if len(calls) > 3:
            raise OSError(28, "No space left on device")
        replace(*arguments)

    monkeypatch.setattr(os, "replace", full)
    with (
        caplog.at_level(logging.WARNING, "cutplane"),
        pytest.warns(UserWarning, match="could not be written, the last one stays.*No space"),
    ):
        checkpoint = Checkpoint(path, every=0.0)
        model = LinearSVC(solver="ocas", tol=1e-6, checkpoint=checkpoint).fit(X, y)
    monkeypatch.undo()
    whole = LinearSVC(solver="ocas", tol=1e-6).fit(X, y)
    assert_same_course(model, whole)
    assert "No space left" in caplog.text
    assert describe(path)["n_iter"] == 2 and len(list(tmp_path.iterdir())) == 1
    assert_same_course(LinearSVC(solver="ocas", tol=1e-6, checkpoint=path).fit(X, y), whole)


@pytest.mark.parametrize("name", ["a b ≤ ü", "x" * 220, "c.gz"])
def test_names(name, tmp_path):
    quiet(
        LinearSVC(solver="ocas", tol=1e-6, checkpoint=str(tmp_path / name), callback=Interrupt(3)),
        X,
        y,
    )
    resumed = LinearSVC(solver="ocas", tol=1e-6, checkpoint=Path(tmp_path / name)).fit(X, y)
    assert_same_course(resumed, LinearSVC(solver="ocas", tol=1e-6).fit(X, y))


# -- states that were changed by somebody who signs them ----------------------


def changed_state(path: Path, change) -> None:
    changed_content(path, lambda content: change(content["state"]))


def changed_content(path: Path, change) -> None:
    """Change what is in a checkpoint, with digests that fit."""
    from cutplane import store
    from cutplane.store.values import Decoder, Encoder

    file = store.read(path)
    content = Decoder(file.arrays).decode(file.header.content)
    change(content)
    encoder = Encoder()
    store.write(path, file.header.kind, encoder.encode(content), encoder.arrays)


def put(*keys, at, value):
    def change(state):
        for key in keys[:-1]:
            state = state[key]
        state[keys[-1]] = np.array(state[keys[-1]])
        state[keys[-1]][at] = value

    return change


def replaced(*keys, by):
    def change(state):
        for key in keys[:-1]:
            state = state[key]
        state[keys[-1]] = by(state[keys[-1]])

    return change


STATES = {
    "tag 10⁶": ("chain", put("point", "coef", at=3, value=10**6)),
    "tag -10⁹": ("chain", put("point", "coef", at=-1, value=-(10**9))),
    "one tag too many": ("chain", put("point", "coef", at=0, value=4)),
    "tags that are reals": ("chain", replaced("point", "coef", by=lambda a: a + 0.5)),
    "support": ("ocas", put("bundle", "support", at=0, value=10**9)),
    "end of the support": ("ocas", put("bundle", "support", at=-2, value=-(10**9))),
    "support twice": ("ocas", replaced("bundle", "support", by=lambda a: a * 0 + 1)),
    "factored": ("ocas", replaced("bundle", "factored", by=lambda n: 10**6)),
    "weights": ("ocas", put("bundle", "beta", at=0, value=np.nan)),
    "basis": ("ocas", replaced("bundle", "basis", by=lambda a: a[:, :1])),
    "gram": ("wide", put("bundle", "gram", at=(-1, -1), value=np.inf)),
    "slots": ("ocas", replaced("bundle", "space", "free", by=lambda a: [float(k) for k in a])),
    "cut": ("ocas", replaced("bundle", "space", "vectors", by=lambda a: [v[:1] for v in a])),
    "w": ("ocas", put("best", "w", at=0, value=np.nan)),
    "scores": ("ocas", put("point", "scores", at=0, value=np.nan)),
    "timings": ("ocas", replaced("timings", by=lambda a: {1: "a"})),
    "losses": (
        "structured",
        replaced("oracle", "model", "cache", by=lambda a: [[(m, o[:1]) for m, o in k] for k in a]),
    ),
}


@pytest.mark.parametrize("case", STATES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_state_that_does_not_fit_does_not_reach_the_loops(case, tmp_path):
    """Compiled loops take labels and places for what they are: to trust these ended the process."""
    kind, change = STATES[case]
    make, options, data, labels = KINDS[kind]
    path = tmp_path / "c"
    make(**options, max_iter=4, checkpoint=path).fit(data, labels)
    changed_state(path, lambda state: None)
    make(**options, max_iter=6, checkpoint=path).fit(data, labels)
    changed_state(path, change)
    with pytest.raises(ValueError, match=f"{path} is damaged: its state does not fit together"):
        make(**options, max_iter=9, checkpoint=path).fit(data, labels)


RESULTS = {
    "length": {"w": lambda w: w[:2]},
    "dimensions": {"w": lambda w: w[None]},
    "nan": {"w": lambda w: w * np.nan},
    "none": {"w": lambda w: None},
    "bias": {"bias": lambda bias: "a"},
    "infinite bias": {"bias": lambda bias: np.inf},
    "certificate": {"certificate": lambda known: None},
    "iterations": {"n_iter": lambda n: "x"},
    "trace": {"trace": lambda trace: (1, 2)},
    "timings": {"timings": lambda timings: None},
    "status": {"status": lambda status: 3},
}


@pytest.mark.parametrize("make", [LinearSVC, SVC])
@pytest.mark.parametrize("case", RESULTS)
def test_results_that_a_fit_did_not_write(make, case, tmp_path):
    """Of problems that are done, when a fit of several goes on."""
    ((name, change),) = RESULTS[case].items()

    def edit(content):
        content["solved"] = [
            (dataclasses.replace(result, **{name: change(getattr(result, name))}), digest)
            for result, digest in content["solved"]
        ]

    path = tmp_path / "c"
    make(checkpoint=path).fit(X, three)
    changed_content(path, edit)
    with pytest.raises(ValueError, match=f"{path} is damaged"):
        make(checkpoint=path).fit(X, three)
