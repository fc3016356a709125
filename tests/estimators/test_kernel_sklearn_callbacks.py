"""scikit-learn's callbacks (experimental since 1.9) on the kernel machines."""

from __future__ import annotations

import numpy as np
import pytest
from callback_reference import Recorder, assert_nested
from sklearn.datasets import make_moons
from svc_reference import quiet_fit, results

from cutplane import SVC, SVR, CholeskyFeatures, OneClassSVM, SampledCutSVC, Status

callback_module = pytest.importorskip("sklearn.callback")


@pytest.fixture(scope="module")
def moons():
    return make_moons(200, noise=0.3, random_state=0)


@pytest.mark.parametrize(
    "options", [{}, {"working_set_size": 64}, {"multi_class": "ovr"}, {"kernel": "linear"}]
)
@pytest.mark.parametrize("classes", [2, 3])
def test_hooks_form_a_tree(iris, classes, options):
    X, y = iris[0], np.minimum(iris[1], classes - 1)
    recorder = Recorder()
    model = SVC(**options).set_callbacks(recorder).fit(X, y)
    assert_nested(recorder.events)
    assert recorder.tasks(1) == [(("fit", 0),)]
    solved = results(model)
    assert [path[1][1] for path in recorder.tasks(2)] == list(range(len(solved)))
    numbers = [path[2][1] for path in recorder.tasks(3)]
    assert numbers == [k for result in solved for k in range(len(result.trace))]
    assert recorder.data[0] is X and recorder.data[1] is y
    assert recorder.scores[-1] == model.score(X, y)


class Targets(Recorder):
    """For machines without labels: what the model of each iteration says of the first rows."""

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.events.append(("end", self.path(context)))
        if context.max_subtasks != 0:
            return False
        self.iterations += 1
        self.scores.append(fitted_estimator.predict(X[:20]))
        return self.iterations == self.stop_at


@pytest.mark.parametrize(
    "model",
    [SVR(C=10.0, working_set_size=64), OneClassSVM(nu=0.2, working_set_size=64)],
    ids=["SVR", "OneClassSVM"],
)
def test_regression_and_novelty(moons, model):
    X, y = moons[0], moons[0][:, 0] ** 2
    recorder = Targets()
    model.set_callbacks(recorder).fit(X, y)
    assert_nested(recorder.events)
    assert len(recorder.scores) == len(model.results_[0].trace) > 1
    np.testing.assert_allclose(recorder.scores[-1], model.predict(X[:20]), atol=2e-3)


def test_a_model_on_the_way_is_that_of_a_shorter_fit(moons):
    options = {"working_set_size": 64, "C": 100.0, "shrinking": False}
    recorder = Recorder()
    SVC(**options).set_callbacks(recorder).fit(*moons)
    for k in (1, 3):
        alone = quiet_fit(SVC(max_iter=k, **options), *moons)
        # The bias on the way is the free variables', at the end the one that suits best.
        assert recorder.scores[k - 1] == pytest.approx(alone.score(*moons), abs=0.05)


def test_callbacks_do_not_change_the_answer(iris):
    plain = SVC().fit(*iris)
    watched = SVC().set_callbacks(Recorder()).fit(*iris)
    np.testing.assert_array_equal(plain.dual_coef_, watched.dual_coef_)
    np.testing.assert_array_equal(plain.intercept_, watched.intercept_)


@pytest.mark.parametrize("size", [None, 64])
def test_a_callback_can_stop(moons, size):
    recorder = Recorder(stop_at=2 if size else 1)
    model = SVC(C=1e4, tol=1e-9, working_set_size=size).set_callbacks(recorder)
    quiet_fit(model, *moons)
    assert model.results_[0].status is Status.STOPPED
    assert recorder.iterations == recorder.stop_at
    assert_nested(recorder.events)
    assert model.certificate_.gap > 0.0


def test_stopping_one_pair_leaves_a_complete_model(iris):
    recorder = Recorder(stop_at=1)
    model = SVC(C=100.0, tol=1e-9, working_set_size=64).set_callbacks(recorder)
    quiet_fit(model, *iris)
    assert model.results_[0].status is Status.STOPPED
    assert model.decision_function(iris[0]).shape == (150, 3)
    assert_nested(recorder.events)


def test_scoring_monitor(iris):
    monitor = callback_module.ScoringMonitor(scoring="accuracy")
    model = SVC().set_callbacks(monitor).fit(*iris)
    root = [row for row in monitor.get_logs().data if len(row["task_id_path"]) == 1]
    assert [row["accuracy"] for row in root] == [model.score(*iris)]


# -- sampled cuts, and features ---------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "exact"},
        {"method": "constant", "sample_size": 60},
        {"multi_class": "crammer_singer"},
    ],
    ids=str,
)
@pytest.mark.parametrize("classes", [2, 3])
def test_hooks_of_sampled_cuts_form_a_tree(iris, classes, options):
    X, y = iris[0], np.minimum(iris[1], classes - 1)
    recorder = Recorder()
    model = SampledCutSVC(random_state=0, **options).set_callbacks(recorder)
    quiet_fit(model, X, y)
    assert_nested(recorder.events)
    assert recorder.tasks(1) == [(("fit", 0),)]
    solved = results(model)
    assert [path[1][1] for path in recorder.tasks(2)] == list(range(len(solved)))
    numbers = [path[2][1] for path in recorder.tasks(3)]
    assert numbers == [k for result in solved for k in range(len(result.trace))]
    assert recorder.data[0] is X and recorder.data[1] is y
    assert recorder.scores[-1] == model.score(X, y)
    plain = quiet_fit(SampledCutSVC(random_state=0, **options), X, y)
    np.testing.assert_array_equal(plain.dual_coef_, model.dual_coef_)


def test_a_sampled_model_on_the_way_is_that_of_a_shorter_fit(moons):
    options = {"C": 10.0, "tol": 1e-6, "random_state": 0, "sample_size": 50, "start_rows": 0}
    recorder = Recorder(stop_at=6)
    model = quiet_fit(SampledCutSVC(**options).set_callbacks(recorder), *moons)
    assert model.results_[0].status is Status.STOPPED
    for k in (1, 3, 6):
        alone = quiet_fit(SampledCutSVC(max_iter=k, **options), *moons)
        assert recorder.scores[k - 1] == alone.score(*moons)


def test_features_are_one_task(moons):
    recorder = Targets()
    recorder.on_fit_task_end = lambda estimator, context, **data: recorder.events.append(
        ("end", recorder.path(context))
    )
    features = CholeskyFeatures(n_components=20).set_callbacks(recorder).fit(*moons)
    assert recorder.events == [
        (event, (("fit", 0),)) for event in ("setup", "begin", "end", "teardown")
    ]
    assert recorder.data[0] is moons[0]
    plain = CholeskyFeatures(n_components=20).fit(*moons)
    np.testing.assert_array_equal(features.factor_, plain.factor_)
