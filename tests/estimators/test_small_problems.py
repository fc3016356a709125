"""Problems of few variables, which are solved and verified at once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from sklearn import datasets, svm
from sklearn.metrics.pairwise import pairwise_kernels

from cutplane import SVC, SVR, OneClassSVM
from cutplane.estimators._kernel import KernelRows
from cutplane.kernels import ProductMatrix
from cutplane.loops import decomposition as loops
from cutplane.result import Status


@pytest.fixture
def calls(monkeypatch):
    """How many problems were solved at once."""
    counts = {"solved": 0, "not": 0}
    original = KernelRows.solve_small

    def counted(self, *arguments):
        result = original(self, *arguments)
        counts["not" if result is None else "solved"] += 1
        return result

    monkeypatch.setattr(KernelRows, "solve_small", counted)
    return counts


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("stopping", ["relative", "absolute", "epsilon", "kkt"])
def test_pairs_of_classes_against_libsvm(calls, kernel, stopping):
    X, y = datasets.load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0) + 3.0  # a linear kernel moves the rows back
    options = {"C": 2.0, "kernel": kernel, "gamma": 0.1, "coef0": 1.0}
    ours = SVC(**options, tol=1e-6, stopping=stopping).fit(X, y)
    peer = svm.SVC(**options, tol=1e-8).fit(X, y)
    assert calls == {"solved": 3, "not": 0}
    assert all(result.status is Status.CONVERGED for result in ours.results_)
    np.testing.assert_allclose(
        ours.decision_function(X),
        peer.decision_function(X),
        atol=1e-2 if kernel == "poly" else 1e-3,
    )
    # libsvm's solution of every pair gives bounds, too: no lower one is above an upper one.
    peer = svm.SVC(**options, tol=1e-8, decision_function_shape="ovo").fit(X, y)
    pairs = [(0, 1), (0, 2), (1, 2)]
    scores, edges = peer.decision_function(X), np.cumsum([0, *peer.n_support_])
    gram = pairwise_kernels(
        peer.support_vectors_,
        metric=kernel,
        **({} if kernel == "linear" else {"gamma": 0.1}),
        **({"coef0": 1.0, "degree": 3} if kernel == "poly" else {}),
    )
    for k, (a, b) in enumerate(pairs):
        beta = np.zeros(len(gram))
        beta[edges[a] : edges[a + 1]] = peer.dual_coef_[b - 1, edges[a] : edges[a + 1]]
        beta[edges[b] : edges[b + 1]] = peer.dual_coef_[a, edges[b] : edges[b + 1]]
        mine = (y == a) | (y == b)
        signs = np.where(y[mine] == a, 1.0, -1.0)
        losses = np.maximum(0.0, 1.0 - signs * scores[mine, k]).sum()
        half = 0.5 * beta @ gram @ beta
        primal, dual = half + 2.0 * losses, np.abs(beta).sum() - half
        certificate = ours.certificates_[k]
        assert certificate.kind == "exact"
        assert certificate.dual <= primal * (1.0 + 1e-9)
        assert dual <= certificate.primal * (1.0 + 1e-9)
        assert certificate.primal <= primal + certificate.gap + 1e-9


@pytest.mark.parametrize(
    ("features", "megabytes", "matrices"), [(70, 200, 1), (70, 0.4, 6), (9, 200, 0)]
)
def test_values_of_many_pairs(calls, monkeypatch, features, megabytes, matrices):
    """One matrix for all pairs, one each, or none: rows are computed when a step needs them."""
    X, y = datasets.make_blobs(240, features, centers=4, cluster_std=2.0, random_state=0)
    options = {"gamma": 0.03, "C": 10.0, "decision_function_shape": "ovo"}
    known = SVC(**options, tol=1e-9).fit(X, y)
    wholes, whole = [], ProductMatrix.whole
    monkeypatch.setattr(ProductMatrix, "whole", lambda self: wholes.append(1) or whole(self))
    monkeypatch.setattr("cutplane.estimators._kernel.ONE_MATRIX", 200)
    monkeypatch.setattr("cutplane.estimators._kernel.LINES_PART", 1)
    model = SVC(**options, tol=1e-9, cache_size=megabytes).fit(X, y)
    assert calls == {"solved": 12, "not": 0} and len(wholes) == matrices
    new = X + 0.1
    np.testing.assert_allclose(
        model.decision_function(new), known.decision_function(new), atol=1e-4
    )
    for ours, theirs in zip(model.certificates_, known.certificates_, strict=True):
        assert max(ours.dual, theirs.dual) <= min(ours.primal, theirs.primal)


@pytest.mark.parametrize("make", [lambda: SVR(C=3.0), lambda: OneClassSVM(nu=0.3)])
def test_the_same_as_the_solver_for_all_sizes(calls, make):
    X, y = datasets.make_regression(150, 4, noise=5.0, random_state=0)
    y = y / y.std()
    quick = make().set_params(tol=1e-6).fit(X, y)
    assert calls == {"solved": 1, "not": 0}
    slow = make().set_params(tol=1e-6, max_iter=10**6).fit(X, y)
    assert calls == {"solved": 1, "not": 0}
    np.testing.assert_allclose(quick.certificate_.primal, slow.certificate_.primal, rtol=2e-6)
    assert quick.certificate_.dual <= slow.certificate_.primal
    assert slow.certificate_.dual <= quick.certificate_.primal
    scale = np.abs(slow.dual_coef_).max()
    np.testing.assert_allclose(
        quick.decision_function(X) if hasattr(quick, "nu") else quick.predict(X),
        slow.decision_function(X) if hasattr(slow, "nu") else slow.predict(X),
        atol=1e-2 * scale,
    )


def test_a_warm_start_and_what_is_too_hard_go_on_elsewhere(calls, monkeypatch):
    X, y = datasets.make_moons(200, noise=0.3, random_state=0)
    model = SVC(warm_start=True).fit(X, y)
    again = model.set_params(C=2.0).fit(X, y).certificate_
    assert calls == {"solved": 2, "not": 0}
    fresh = SVC(C=2.0).fit(X, y).certificate_
    assert max(fresh.dual, again.dual) <= min(fresh.primal, again.primal)
    model = SVC(C=1e4, tol=1e-13).fit(X, y)  # beyond what double precision can prove
    assert calls["not"] == 1 and model.certificate_.gap > 0.0


@pytest.mark.parametrize("seed", range(20))
def test_sums_and_balance_in_rational_numbers(seed):
    """Balancing leaves next to nothing of the excess of a sum, and knows what it leaves."""
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.integers(-8, 8, 60)
    beta = rng.normal(size=60) * size
    lower, upper = np.minimum(2.0 * beta, 0.0), np.maximum(2.0 * beta, 0.0)
    total = float(beta.sum())
    exact = sum(map(Fraction, beta.tolist())) - Fraction(total)
    lack = loops.balance(beta, lower, upper, total)
    left = sum(map(Fraction, beta.tolist())) - Fraction(total)
    assert abs(left) <= abs(exact) and abs(left) <= np.abs(beta).max() * 2.0**-53
    assert abs(left) <= lack <= abs(left) * (1.0 + 1e-15) + 1e-28 * np.abs(beta).sum()
    assert np.all((lower <= beta) & (beta <= upper))
    # Nothing is free: the excess stays, and is known.
    lack = loops.balance(beta, beta, beta, total + 1.0)
    left = sum(map(Fraction, beta.tolist())) - Fraction(total + 1.0)
    assert abs(left) <= lack <= abs(left) * (1.0 + 1e-15) + 1e-28 * np.abs(beta).sum()
