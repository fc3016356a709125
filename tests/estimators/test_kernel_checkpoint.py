"""Checkpoints of kernel machines: a fit goes on from the dual point that it had reached."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cutplane import SVC, SVR, Checkpoint, OneClassSVM, Status

_rng = np.random.default_rng(5)
X = _rng.normal(size=(1400, 6))
y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.7 * _rng.normal(size=1400) > 0
three = np.digitize(X[:, 0] + 0.5 * _rng.normal(size=1400), [-0.5, 0.5])

KINDS = {
    "binary": (SVC(C=5.0), X, y),
    "small working sets": (SVC(C=5.0, working_set_size=2), X, y),
    "sparse": (SVC(C=5.0, kernel="poly"), sp.csr_matrix(X), y),
    "callable": (SVC(kernel=lambda a, b: (a @ b.T + 1.0) ** 2), X[:300], y[:300]),
    "three classes": (SVC(C=2.0), X, three),
    "against the rest": (SVC(C=2.0, multi_class="ovr"), X, three),
    "regression": (SVR(C=3.0), X, X[:, 0] ** 2),
    "one class": (OneClassSVM(nu=0.3, kernel="rbf"), X, None),
}


def fit(model, X, y):
    return model.fit(X) if y is None else model.fit(X, y)


def certificates(model) -> list:
    found = model.certificate_
    return found if isinstance(found, list) else [found]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_goes_on_from_where_it_was_stopped(kind, tmp_path: Path):
    model, rows, target = KINDS[kind]
    whole = fit(clone(model), rows, target)
    count = 0

    def stop(record) -> bool:
        nonlocal count
        count += 1
        return count >= 2

    file = tmp_path / "state"
    every = Checkpoint(file, every=0.0)
    fit(clone(model).set_params(checkpoint=every, callback=stop), rows, target)
    resumed = fit(clone(model).set_params(checkpoint=every), rows, target)
    for one, other in zip(certificates(whole), certificates(resumed), strict=True):
        assert one.dual == pytest.approx(other.dual, rel=1e-3, abs=1e-6)
        assert other.dual <= one.primal * (1 + 1e-9) and one.dual <= other.primal * (1 + 1e-9)
    again = fit(clone(model).set_params(checkpoint=every, tol=2e-3), rows, target)
    assert np.array_equal(again._score_coef(), resumed._score_coef())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_solved_problem_is_not_solved_again_and_a_stricter_rule_goes_on(tmp_path: Path):
    file = tmp_path / "state"
    first = SVC(checkpoint=file).fit(X, three)
    calls = []
    second = SVC(checkpoint=file, callback=calls.append).fit(X, three)
    # The last problem is still the one at hand: it is checked by one more look at its point.
    assert {record.problem for record in calls} <= {"1 against 2"}
    assert np.array_equal(second.dual_coef_, first.dual_coef_)
    calls.clear()
    strict = SVC(checkpoint=file, tol=1e-5, callback=calls.append).fit(X, three)
    assert len({record.problem for record in calls}) == 3
    assert all(
        a.gap < b.gap for a, b in zip(strict.certificates_, first.certificates_, strict=True)
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": 2.0}, r"other parameters \(C was 1.0, is 2.0\)"),
        ({"gamma": 0.5}, r"gamma was 'scale', is 0.5"),
        ({"kernel": "poly"}, "kernel was 'rbf', is 'poly'"),
        ({"rows": 100}, r"other data \(X\)"),
        ({"labels": True}, r"other data \(y or sample_weight\)"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(change, message, tmp_path: Path):
    file = tmp_path / "state"
    some, labels = X[:200], y[:200]
    SVC(gamma="scale", checkpoint=file).fit(some, labels)
    before = file.read_bytes()
    rows = change.pop("rows", 200)
    labels = ~labels if change.pop("labels", False) else labels
    with pytest.raises(ValueError, match=message):
        SVC(**change, checkpoint=file).fit(some[:rows], labels[:rows])
    assert file.read_bytes() == before


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_fit_loses_nothing_that_was_written(tmp_path: Path):
    program = """
        import numpy as np
        from cutplane import SVC, Checkpoint
        rng = np.random.default_rng(0)
        X = rng.normal(size=(1500, 5)); y = rng.random(1500) < 0.5
        def slow(record):
            import time; time.sleep(0.05)
        checkpoint = Checkpoint("state", every=0.0)
        SVC(C=100.0, tol=1e-6, working_set_size=4, callback=slow, checkpoint=checkpoint).fit(X, y)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    process = subprocess.Popen(command, cwd=tmp_path)
    deadline = time.monotonic() + 120.0
    while not (tmp_path / "state").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    rng = np.random.default_rng(0)
    rows, target = rng.normal(size=(1500, 5)), rng.random(1500) < 0.5
    model = SVC(C=100.0, working_set_size=4, checkpoint=tmp_path / "state")
    with pytest.warns(ConvergenceWarning):
        stopped = clone(model).set_params(max_iter=1).fit(rows, target)
    # One iteration from the point that was reached, which is ahead of the first one.
    with pytest.warns(ConvergenceWarning):
        first = SVC(C=100.0, working_set_size=4, max_iter=1).fit(rows, target)
    assert stopped.certificate_.dual > first.certificate_.dual
    assert stopped.results_[0].status is Status.MAX_ITER
