"""Certificates of linear models in exact arithmetic, and runs that end within their limits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from svc_reference import quiet_fit

from cutplane import LinearSVC, MeasureSVC, RankSVM, Status

# Certified 0.00095, true 0.037, and the like, as "converged", before objectives were proved.
HARD = [602, 343, 455, 233, 191, 569, 272, 623]
# Certified 2.5e-11, true 1.9e-10, by coordinate descent, and the like.
SCALED = [74, 585, 77, 628, 469, 148, 182, 266]


def hard_margin(seed):
    """Separable rows, columns on scales from 1e-3 to 1e3, C from 1e4 to 1e15."""
    rng = np.random.default_rng(seed)
    rows, features = int(rng.integers(6, 40)), int(rng.integers(1, 10))
    X = rng.normal(size=(rows, features))
    y = np.where(X @ rng.normal(size=features) > 0, 1, -1)
    y[0], y[-1] = 1, -1
    return X * 10.0 ** rng.uniform(-3, 3, features), y, 10 ** rng.uniform(4, 15)


def badly_scaled(seed):
    """Random labels, columns on scales from 1e-8 to 1e8."""
    rng = np.random.default_rng(seed)
    rows, features = int(rng.integers(6, 40)), int(rng.integers(2, 10))
    X = rng.normal(size=(rows, features))
    y = np.where(rng.random(rows) < 0.5, 1, -1)
    y[0], y[-1] = 1, -1
    return X * 10.0 ** rng.uniform(-8, 8, features), y, 10 ** rng.uniform(-2, 8)


def exact_objective(model: LinearSVC, X, y) -> Fraction:
    """The objective of ``coef_`` and ``intercept_`` in rational numbers; two classes."""
    w, bias = [Fraction(v) for v in model.coef_[0].tolist()], Fraction(float(model.intercept_[0]))
    power = {"hinge": 1, "squared_hinge": 2}[model.loss]
    total = Fraction(0)
    for x, label in zip(X.astype(float).tolist(), y.tolist(), strict=True):
        score = sum((Fraction(a) * b for a, b in zip(x, w, strict=True)), bias)
        total += max(Fraction(0), 1 - label * score) ** power
    objective = sum(v * v for v in w) / 2 + Fraction(model.C) * total
    if model.intercept_scaling is not None:
        objective += (bias / Fraction(model.intercept_scaling)) ** 2 / 2
    return objective


def assert_proved(model: LinearSVC, X, y) -> None:
    exact = exact_objective(model, X, y)
    assert model.certificate_.primal >= exact
    assert model.certificate_.primal <= float(exact) * (1.0 + 2e-9)
    if model.results_[0].status is Status.CONVERGED:
        assert model.certificate_.gap <= model.tol * model.certificate_.primal


@pytest.mark.parametrize("seed", HARD)
@pytest.mark.parametrize("solver", ["auto", "cpa", "dcd"])
def test_hard_margins(seed, solver):
    X, y, C = hard_margin(seed)
    bias = bool(seed % 2)
    model = quiet_fit(LinearSVC(C=C, max_iter=200, fit_intercept=bias, solver=solver), X, y)
    assert_proved(model, X, y)


@pytest.mark.parametrize("seed", SCALED)
@pytest.mark.parametrize("solver", ["dcd", "auto"])
def test_badly_scaled_columns(seed, solver):
    X, y, C = badly_scaled(seed)
    options = {"max_iter": 100, "fit_intercept": bool(seed % 2), "random_state": 0}
    model = quiet_fit(LinearSVC(C=C, solver=solver, **options), X, y)
    assert_proved(model, X, y)


@pytest.mark.parametrize("layout", [np.asfortranarray, scipy.sparse.csr_array, np.float32])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("bias", [{"fit_intercept": False}, {}, {"intercept_scaling": 3.0}])
def test_every_layout_loss_and_bias(layout, loss, bias):
    """The certificate is about the model as it is stored, with its own intercept."""
    X, y, _ = hard_margin(5)
    X = X.astype(np.float32) if layout is np.float32 else X
    given = layout(X)
    for C in (1e-2, 1e6, 1e14):
        for max_iter in (2, 200):
            model = quiet_fit(LinearSVC(C=C, loss=loss, max_iter=max_iter, **bias), given, y)
            assert_proved(model, X, y)


def test_classes_together():
    """Crammer and Singer's loss at a large C, with columns on very different scales."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 6))
    y = np.argmax(X @ rng.normal(size=(6, 3)), axis=1)
    X *= 10.0 ** rng.uniform(-3, 3, 6)
    for C in (1.4, 1e5, 1e12):
        model = LinearSVC(C=C, multi_class="crammer_singer", fit_intercept=False, max_iter=300)
        quiet_fit(model, X, y)
        W = [[Fraction(v) for v in row] for row in model.coef_.tolist()]
        total = Fraction(0)
        for x, label in zip(X.tolist(), y.tolist(), strict=True):
            s = [sum(Fraction(a) * b for a, b in zip(x, w, strict=True)) for w in W]
            total += max((c != label) + v - s[label] for c, v in enumerate(s))
        exact = sum(v * v for row in W for v in row) / 2 + Fraction(C) * total
        assert model.certificate_.primal >= exact
        assert model.certificate_.primal <= float(exact) * (1.0 + 1e-8)


# -- limits -----------------------------------------------------------------------------

TWO_ROWS = (
    np.array([[27.454880139816726, 155.80893166289533], [1.6868773665770538, 90.72131475636172]]),
    np.array([1, -1]),
    {"C": 9.183319574942404, "tol": 0.0},
)
SEVEN_ROWS = (
    np.float32(
        [
            [18.901029586791992, 2715293.5, 1.9776978206209606e-06, 0.2767121195793152, -273313.56],
            [7.861092567443848, -10857462.0, -1.2436148608685471e-06, -0.0611798651516, 4566404.5],
            [14.47905158996582, 27054206.0, -2.9072159577481216e-06, 0.0837016776204, 352165.78],
            [-10.595023155212402, -9243771.0, 3.852622114663973e-07, -0.0211375560611, 1572489.0],
            [1.3935880661010742, 1949080.625, -8.309869485856325e-07, 0.0261603239923, 3933496.75],
            [-9.647510528564453, -8988465.0, 1.7921468042914057e-06, -0.10281031578, 436898.8125],
            [-0.4145060181617737, 13498263.0, -1.942189129522376e-07, 0.0102291181683, 1150289.875],
        ]
    ),
    np.array([1, -1, -1, -1, -1, 1, -1]),
    {"C": 1e5, "tol": 1e-5, "fit_intercept": False},
)


@pytest.mark.parametrize("data", [TWO_ROWS, SEVEN_ROWS], ids=["2 rows", "7 rows"])
def test_a_proof_that_fails_does_not_pass_max_iter(data):
    """The first never ended, the second made 41 iterations."""
    X, y, options = data

    def callback(record):
        assert record.number <= 35

    model = quiet_fit(LinearSVC(max_iter=35, callback=callback, **options), X, y)
    assert model.n_iter_ <= 35
    assert model.results_[0].status in (
        Status.MAX_ITER,
        Status.NUMERICALLY_LIMITED,
        Status.CONVERGED,
    )
    assert_proved(model, X, y)


@pytest.mark.parametrize("max_iter", [3, 4, 5, 8])
@pytest.mark.parametrize("C", [100.0, 1e4])
def test_stages_count_together(max_iter, C):
    """Cutting planes have a look, descent tries, Newton's method: 4 became 5."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 140))
    y = np.where(X[:, 0] + rng.normal(size=1000) > 0, 1, -1)
    model = LinearSVC(C=C, tol=1e-9, max_iter=max_iter, fit_intercept=False)
    quiet_fit(model, X, y)
    assert model.n_iter_ == max_iter
    assert model.results_[0].status is Status.MAX_ITER


@pytest.mark.parametrize("tol", [0.0, 1e-10, 1e-5])
@pytest.mark.parametrize("seed", range(4))
def test_rankings_end_within_their_limits(seed, tol):
    rng = np.random.default_rng(seed)
    X = np.round(2.0 * rng.normal(size=(24, 5))) * 10.0 ** rng.integers(-3, 4, 5)
    y = rng.integers(0, 4, 24)
    y[:4] = range(4)

    def callback(record):
        assert record.number <= 60

    options = {"tol": tol, "max_iter": 60, "callback": callback}
    query = np.zeros(24, int)
    fits = (
        (RankSVM(C=13.0, **options), y, {"qid": query}),
        (LinearSVC(C=1.4, multi_class="crammer_singer", **options), y, {}),
        (MeasureSVC(C=1e6, **options), y > 1, {}),
    )
    for model, target, extra in fits:
        quiet_fit(model, X, target, **extra)
        assert model.n_iter_ <= 60
        assert np.isfinite([model.certificate_.primal, model.certificate_.dual]).all()
