"""Random problems of every kind: each fit ends where its rule says, and no proof is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from svc_reference import assert_certified, quiet_fit, results, signs_of, smooth_optimum

from cutplane import LinearSVC, Status

KINDS = ("normal", "ties", "sparse", "scales", "separable", "contradictory")


def random_data(seed: int, kind: str, classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y and weights."""
    rng = np.random.default_rng(seed)
    rows, features = rng.integers(classes, 80), rng.integers(1, 20)
    y = rng.integers(0, classes, rows)
    y[:classes] = np.arange(classes)
    X = rng.normal(size=(rows, features))
    if kind == "ties":
        X = np.round(2 * X)
    elif kind == "sparse":
        X *= rng.random(X.shape) < 0.2
    elif kind == "scales":
        X *= 10.0 ** rng.integers(-2, 3, features)
    elif kind == "separable":
        X += 3.0 * rng.normal(size=(classes, features))[y]
    elif kind == "contradictory":
        X, y = np.vstack([X, X]), np.concatenate([y, rng.permutation(y)])
    weights = np.ones(len(y))
    if seed % 3 == 1:
        weights = rng.integers(0, 4, len(y)).astype(float)
    elif seed % 3 == 2:
        weights = 10.0 ** rng.uniform(-3, 2, len(y))
    weights[:classes] = 1.0
    return X, y, weights


@settings(max_examples=100, deadline=None, derandomize=True, phases=[Phase.generate])
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(KINDS),
    classes=st.integers(2, 4),
    exponent=st.floats(-5, 4),
    loss=st.sampled_from(["hinge", "squared_hinge", "logistic", "crammer_singer"]),
    bias=st.sampled_from([{}, {"fit_intercept": False}, {"intercept_scaling": 2.0}]),
)
def test_every_fit_converges_and_no_bound_is_wrong(seed, kind, classes, exponent, loss, bias):
    X, y, weights = random_data(seed, kind, classes)
    joint = loss == "crammer_singer"
    parameters = {"multi_class": loss} if joint else {"loss": loss}
    parameters |= {"C": 10.0**exponent, **bias}
    # Another way to another point; how good it is does not matter.
    other = LinearSVC(solver="cpa", max_iter=100, **parameters)
    quiet_fit(other, X, y, sample_weight=weights)
    known = [result.certificate.primal for result in results(other)]
    model = quiet_fit(
        LinearSVC(tol=1e-4, time_limit=10.0, **parameters), X, y, sample_weight=weights
    )
    assert_certified(model, X, y, weights, references=known, rounding=1e-8)
    assert_certified(
        other,
        X,
        y,
        weights,
        references=[result.certificate.primal for result in results(model)],
        rounding=1e-8,
    )
    assert {result.status for result in results(model)} == {Status.CONVERGED}


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("seed", range(3))
def test_smooth_losses_on_separable_classes(loss, C, seed):
    """The loss falls to almost nothing: cuts differ by many orders of magnitude."""
    X, y, _ = random_data(9 * seed, "separable", 2)
    optimum = smooth_optimum(X, signs_of(y, 1), C, loss)
    model = quiet_fit(LinearSVC(C=C, loss=loss, time_limit=5.0), X, y)
    assert_certified(model, X, y, references=[optimum])
    assert model.certificate_.primal >= optimum * (1 - 1e-6)
    assert model.results_[0].status is Status.CONVERGED
    assert model.n_iter_ <= 150  # plain cutting planes need at most 80


@pytest.mark.parametrize("seed", [598_214, 21, 18])
def test_no_row_near_the_best_point_has_a_loss(seed):
    """A cut there says nothing; the run must go on by one that does."""
    X, y, weights = random_data(seed, "separable", 2)
    model = LinearSVC(C=10.0**3.8, loss="squared_hinge", tol=1e-4, solver="ocas", time_limit=60.0)
    model.fit(X, y, sample_weight=weights)
    assert model.results_[0].status is Status.CONVERGED
    assert_certified(model, X, y, weights, rounding=1e-8)
