"""Paths of C: every model is that of a fit of its own, with as good a proof."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
from svc_reference import assert_certified

from cutplane import LinearSVC, linear_svc_path

CS = np.geomspace(1e-3, 0.1, 4)
VARIANTS = {
    "hinge": {},
    "no bias": {"fit_intercept": False},
    "regularised bias": {"intercept_scaling": 1.0},
    "cpa": {"solver": "cpa"},
    "dcd": {"solver": "dcd", "random_state": 0, "fit_intercept": False},
    "squared hinge by dcd": {
        "solver": "dcd",
        "random_state": 0,
        "loss": "squared_hinge",
        "intercept_scaling": 1.0,
    },
    "logistic": {"loss": "logistic"},
    "crammer_singer": {"multi_class": "crammer_singer"},
    "balanced": {"class_weight": "balanced"},
}


@pytest.mark.parametrize("order", [1, -1], ids=["rising", "falling"])
@pytest.mark.parametrize("name", VARIANTS)
def test_every_model_of_a_path_is_certified(name, order, iris):
    X, y = iris
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    settings = {"tol": 1e-5, **VARIANTS[name]}
    path = linear_svc_path(X, y, CS[::order], **settings)
    assert path.converged.all()
    assert path.relative_gaps.max() <= 1e-5
    for k, C in enumerate(CS[::order]):
        cold = LinearSVC(C=C, **settings).fit(X, y)
        cold_results = cold.results_
        model = path.model(k)
        assert model.C == C == path.Cs[k]
        if "class_weight" not in settings:
            assert_certified(model, X, y, references=[r.certificate.primal for r in cold_results])
        for ours, theirs in zip(path.certificates[k], cold_results, strict=True):
            # each bound lies below the other's objective
            assert ours.dual <= theirs.certificate.primal * (1 + 1e-9)
            assert theirs.certificate.dual <= ours.primal * (1 + 1e-9)


def test_a_path_takes_fewer_iterations_than_its_fits(cancer):
    """Of cutting planes; ``auto`` begins anew on data as small as these."""
    X, y = cancer
    Cs = np.geomspace(0.01, 1.0, 10)
    cold = [LinearSVC(C=C, solver="ocas").fit(X, y).n_iter_ for C in Cs]
    assert linear_svc_path(X, y, Cs, solver="ocas").n_iters.sum() < 0.7 * sum(cold)


def test_a_dual_point_carries_coordinate_descent_along(cancer):
    """The second fit at the same C has nothing left to do."""
    X, y = cancer
    path = linear_svc_path(
        X, y, [0.1, 0.1], solver="dcd", fit_intercept=False, random_state=0, tol=1e-4
    )
    assert path.n_iters[1] <= 2 < path.n_iters[0]


@pytest.fixture(scope="module")
def sparse_rows():
    """Enough for two threads, and for what a path keeps from fit to fit to matter."""
    rng = np.random.default_rng(3)
    X = scipy.sparse.random(4000, 1000, density=0.07, format="csr", random_state=4)
    y = np.where(X @ rng.normal(size=1000) + rng.normal(size=4000) > 0.5, 1, -1)
    return X, y


@pytest.mark.parametrize("solver", ["auto", "dcd"])
def test_what_a_path_keeps_does_not_weaken_its_proofs(solver, sparse_rows):
    """Scores, sums and the rows that matter are carried along; objectives are computed anew here.

    A step back and one to the same C are on the path, too.
    """
    X, y = sparse_rows
    Cs = [0.01, 0.03, 0.1, 0.1, 0.2, 0.03]
    settings = {"fit_intercept": False, "tol": 1e-3, "random_state": 0, "solver": solver}
    paths = [linear_svc_path(X, y, Cs, n_jobs=n_jobs, **settings) for n_jobs in (1, 2)]
    assert paths[0].converged.all()
    np.testing.assert_array_equal(paths[0].coefs, paths[1].coefs)
    for k, C in enumerate(Cs):
        w = paths[0].coefs[k, 0]
        primal = 0.5 * w @ w + C * np.maximum(0.0, 1.0 - y * (X @ w)).sum()
        certificate = paths[0].certificates[k][0]
        assert primal == pytest.approx(certificate.primal, rel=1e-9)
        tight = LinearSVC(C=C, fit_intercept=False, tol=1e-5).fit(X, y)
        assert certificate.dual <= tight.certificate_.primal * (1 + 1e-9)
        assert tight.certificate_.dual <= certificate.primal * (1 + 1e-9)


def test_fits_of_a_path_read_the_data_less_often(sparse_rows, monkeypatch):
    """No product for the start of a fit that the last one knew the scores of."""
    from cutplane.objective.linear import RowProducts

    X, y = sparse_rows
    Cs = np.geomspace(0.01, 0.2, 6)
    count = 0
    scores = RowProducts.scores

    def counted(self, w, out):
        nonlocal count
        count += bool(np.any(w))
        scores(self, w, out)

    monkeypatch.setattr(RowProducts, "scores", counted)
    path = linear_svc_path(X, y, Cs, fit_intercept=False, solver="dcd", random_state=0)
    assert path.converged.all()
    # one per certificate, and one for the start of the second fit at most
    assert count <= path.n_iters.sum() + 1


def test_what_a_path_holds(iris):
    X, y = iris
    path = linear_svc_path(X, y, 4)
    np.testing.assert_allclose(path.Cs, np.geomspace(1e-3, 1e2, 4))
    assert len(path) == 4
    assert path.coefs.shape == (4, 3, 4)
    assert path.intercepts.shape == (4, 3)
    assert [len(row) for row in path.certificates] == [3] * 4
    assert path.seconds.shape == path.n_iters.shape == path.relative_gaps.shape == (4,)
    assert np.all(path.seconds > 0.0)
    model = path.model(2)
    np.testing.assert_array_equal(model.coef_, path.coefs[2])
    assert model.n_iter_ <= path.n_iters[2]
    assert model.predict(X).shape == y.shape
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :2])


def test_threads_and_layout_change_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 40)) * (rng.random((30_000, 40)) < 0.5)
    y = X[:, 0] + rng.normal(size=len(X)) > 0
    X = scipy.sparse.csr_array(X)
    one, two = (linear_svc_path(X, y, [1e-4, 1e-3], n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.coefs, two.coefs)
    assert one.certificates == two.certificates


def test_weights_are_repetitions(iris):
    X, y = iris
    counts = np.random.default_rng(0).integers(0, 3, size=len(y))
    weighted = linear_svc_path(X, y, CS, sample_weight=counts, tol=1e-6)
    repeated = linear_svc_path(np.repeat(X, counts, axis=0), np.repeat(y, counts), CS, tol=1e-6)
    for ours, theirs in zip(weighted.certificates, repeated.certificates, strict=True):
        assert [c.primal for c in ours] == pytest.approx([c.primal for c in theirs], rel=2e-6)


def test_a_callback_ends_the_whole_path(cancer):
    X, y = cancer
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = linear_svc_path(X, y, CS, callback=lambda record: True)
    np.testing.assert_array_equal(path.n_iters, 1)
    assert not path.converged.any()


def test_the_time_limit_is_for_the_path(cancer):
    X, y = cancer
    with pytest.warns(match="linear_svc_path reached time_limit") as caught:
        path = linear_svc_path(X, y, CS, time_limit=1e-9)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(path.n_iters, 1)


@pytest.mark.parametrize(
    ("Cs", "message"),
    [
        (0, "Cs must be"),
        ([], "Cs holds no value"),
        ([1.0, 0.0], r"Cs\[1\] must be a finite number > 0"),
        ([1.0, np.inf], r"Cs\[1\] must be"),
        ("abc", "Cs must be numbers"),
        (1.0, "Cs must be numbers"),
        (True, "Cs must be numbers"),
    ],
)
def test_bad_values_of_c(iris, Cs, message):
    with pytest.raises(ValueError, match=message):
        linear_svc_path(*iris, Cs)


@pytest.mark.parametrize("settings", [{"C": 1.0}, {"warm_start": True}, {"unknown": 1}])
def test_settings_that_a_path_does_not_take(iris, settings):
    with pytest.raises(TypeError, match=next(iter(settings))):
        linear_svc_path(*iris, **settings)
