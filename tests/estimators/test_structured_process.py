"""Structured estimators in a process: scikit-learn's callbacks, Ctrl-C, fits inside workers."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from svc_reference import run_script

from cutplane.estimators.chain_tagger import ChainTagger
from cutplane.estimators.structured_svm import StructuredSVM
from cutplane.structured import MulticlassProblem
from structured_reference import random_chains

CASES = [
    ChainTagger(1.0, tol=1e-4),
    ChainTagger(1.0, order=2, tol=1e-4),
    ChainTagger(1.0, kernel="rbf", method="linear", sample_size=6, tol=0.05, random_state=0),
    StructuredSVM(MulticlassProblem(), 0.5, tol=1e-4),
]


def data_of(model):
    X, Y = random_chains(3, lengths=(3, 1, 0, 2, 4, 3, 5))
    if isinstance(model, StructuredSVM):
        return np.concatenate(X), np.concatenate(Y)
    return X, Y


class Recorder:
    """Scores the model after every iteration."""

    def __init__(self) -> None:
        self.scores: list[float] = []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        pass

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        if context.max_subtasks == 0:
            self.scores.append(fitted_estimator.score(X, y))


@pytest.mark.parametrize("model", CASES, ids=str)
def test_scikit_learn_callbacks_see_a_model_per_iteration(model):
    pytest.importorskip("sklearn.callback")
    X, Y = data_of(model)
    recorder = Recorder()
    model = type(model)(**model.get_params())
    model.set_callbacks(recorder)
    model.fit(X, Y)
    assert len(recorder.scores) == model.n_iter_
    assert np.all(np.isfinite(recorder.scores))
    assert model.score(X, Y) in recorder.scores


@pytest.mark.parametrize("model", CASES, ids=str)
def test_fits_inside_workers(model):
    X, Y = data_of(model)
    here = model.fit(X, Y).results_[0].w
    there = joblib.Parallel(2)(joblib.delayed(fitted)(model, X, Y) for _ in range(2))
    for w in there:
        np.testing.assert_array_equal(w, here)


def fitted(model, X, Y):
    return type(model)(**model.get_params()).fit(X, Y).results_[0].w


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_ends_slow_inference(jobs):
    """All processes of the group get the signal, as from a terminal."""
    run_script(
        """
        import os, signal, sys, threading, time, warnings
        import numpy as np
        from cutplane import Status
        from cutplane.estimators.structured_svm import StructuredSVM
        from cutplane.structured import Problem

        class Slow(Problem):
            def joint_feature(self, x, y):
                return np.kron(np.eye(3)[y], x)

            def loss(self, y, z):
                return float(y != z)

            def most_violated(self, x, y, score):
                if np.any(score.w):
                    time.sleep(0.05)
                scores = [self.loss(y, z) + score(z) for z in range(3)]
                return int(np.argmax(scores))

            def predict(self, x, score):
                return int(np.argmax([score(z) for z in range(3)]))

        os.setsid()
        sent = []

        def interrupt():
            sent.append(time.monotonic())
            os.killpg(0, signal.SIGINT)

        Y = [int(y) for y in np.arange(300) % 3]
        X = [np.random.default_rng(i).normal(size=3) for i in range(300)]
        threading.Timer(12.0, interrupt).start()
        warnings.simplefilter("ignore")
        model = StructuredSVM(Slow(), 1e4, tol=1e-9, n_jobs=int(sys.argv[1])).fit(X, Y)
        assert model.results_[0].status is Status.INTERRUPTED
        assert time.monotonic() - sent[0] < 30.0
        """,
        jobs,
    )
