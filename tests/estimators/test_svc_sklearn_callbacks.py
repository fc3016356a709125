"""scikit-learn's callbacks (experimental since 1.9): the tree of tasks, scores, stopping."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from callback_reference import Recorder, assert_nested
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from svc_reference import assert_certified, quiet_fit, results

from cutplane import LinearSVC, Status

callback_module = pytest.importorskip("sklearn.callback")
ProgressBar = callback_module.ProgressBar
ScoringMonitor = callback_module.ScoringMonitor


@pytest.mark.parametrize("variant", [{}, {"multi_class": "crammer_singer"}, {"loss": "logistic"}])
@pytest.mark.parametrize("classes", [2, 3])
def test_hooks_form_a_tree(iris, classes, variant):
    X, y = iris[0], np.minimum(iris[1], classes - 1)
    recorder = Recorder()
    model = LinearSVC(**variant).set_callbacks(recorder).fit(X, y)
    assert_nested(recorder.events)
    assert recorder.tasks(1) == [(("fit", 0),)]
    assert [path[1][1] for path in recorder.tasks(2)] == list(range(len(results(model))))
    numbers = [path[2][1] for path in recorder.tasks(3)]
    assert numbers == [k for result in results(model) for k in range(result.n_iter)]
    assert recorder.data[0] is X
    assert recorder.data[1] is y


def test_the_fitted_estimator_is_the_best_model_so_far(cancer):
    X, y = cancer
    recorder = Recorder()
    model = LinearSVC(tol=1e-6, fit_intercept=False).set_callbacks(recorder).fit(X, y)
    assert len(recorder.scores) == model.n_iter_
    assert recorder.scores[-1] == model.score(X, y)
    for k in (1, 5):
        alone = quiet_fit(LinearSVC(tol=1e-6, fit_intercept=False, max_iter=k), X, y)
        assert recorder.scores[k - 1] == alone.score(X, y)


def test_callbacks_do_not_change_the_answer(iris):
    plain = LinearSVC().fit(*iris)
    watched = LinearSVC().set_callbacks(Recorder()).fit(*iris)
    np.testing.assert_array_equal(plain.coef_, watched.coef_)
    assert "_callback_fit_ctx" not in vars(watched)


def test_a_callback_can_stop_the_iterations(cancer):
    recorder = Recorder(stop_at=4)
    model = LinearSVC(tol=1e-9).set_callbacks(recorder)
    quiet_fit(model, *cancer)
    assert model.n_iter_ == recorder.iterations == 4
    assert model.results_[0].status is Status.STOPPED
    assert_nested(recorder.events)
    assert_certified(model, *cancer)


def test_stopping_one_class_leaves_a_complete_model(iris):
    recorder = Recorder(stop_at=2)
    model = quiet_fit(LinearSVC(tol=1e-9).set_callbacks(recorder), *iris)
    assert model.results_[0].status is Status.STOPPED
    assert model.coef_.shape == (3, 4)
    assert_nested(recorder.events)
    assert_certified(model, *iris)


def test_tasks_end_after_an_interrupt(iris):
    def interrupt(record) -> None:
        if record.number == 3:
            raise KeyboardInterrupt

    recorder = Recorder()
    quiet_fit(LinearSVC(tol=1e-9, callback=interrupt).set_callbacks(recorder), *iris)
    assert_nested(recorder.events)


def test_teardown_after_an_error(cancer):
    def broken(record) -> None:
        raise RuntimeError("mine")

    recorder = Recorder()
    model = LinearSVC(callback=broken).set_callbacks(recorder)
    with pytest.raises(RuntimeError, match="mine"):
        model.fit(*cancer)
    assert [event for event, _ in recorder.events if "t" in event][-1] == "teardown"


def test_clone_keeps_callbacks():
    recorder = Recorder()
    model = LinearSVC().set_callbacks(recorder)
    assert clone(model)._skl_callbacks == [recorder]


def test_several_callbacks_and_none(cancer):
    first, second = Recorder(), Recorder()
    model = LinearSVC().set_callbacks(first, second).fit(*cancer)
    assert first.events == second.events
    count = len(first.events)
    model.set_callbacks().fit(*cancer)
    assert len(first.events) == count


def test_a_fitted_model_with_callbacks_can_be_pickled(cancer):
    model = LinearSVC().set_callbacks(Recorder()).fit(*cancer)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(cancer[0]), model.predict(cancer[0]))


# -- scikit-learn's own ---------------------------------------------------------------


def test_scoring_monitor(iris):
    X, y = iris
    monitor = ScoringMonitor(scoring="accuracy")
    model = LinearSVC().set_callbacks(monitor).fit(X, y)
    rows = monitor.get_logs().data
    leaves = [row for row in rows if len(row["task_id_path"]) == 3]
    assert len(leaves) == sum(result.n_iter for result in results(model))
    root = [row for row in rows if len(row["task_id_path"]) == 1]
    assert [row["accuracy"] for row in root] == [model.score(X, y)]
    last = max(leaves, key=lambda row: row["task_id_path"])
    assert last["accuracy"] == model.score(X, y)


def test_progress_bar(iris, capsys):
    LinearSVC().set_callbacks(ProgressBar()).fit(*iris)
    text = capsys.readouterr().out
    assert "LinearSVC" in text
    assert "class" in text


def test_callbacks_through_meta_estimators(iris):
    X, y = iris
    monitor = ScoringMonitor(scoring="accuracy")
    pipeline = make_pipeline(StandardScaler(), LinearSVC().set_callbacks(monitor)).fit(X, y)
    assert monitor.get_logs().data[0]["accuracy"] == pipeline.score(X, y)
    search = GridSearchCV(LinearSVC(), {"C": [0.1, 1.0]}, cv=2)
    if hasattr(search, "set_callbacks"):
        recorder = AutoRecorder()
        search.set_callbacks(recorder).fit(X, y)
        assert sum(event == "setup" for event, _ in recorder.events) == 1
        names = {name for _, path in recorder.events for name, _ in path}
        assert "iteration" in names


class AutoRecorder(Recorder):
    """One that meta-estimators hand down."""

    max_propagation_depth = None
