"""The kernel's steps against the same steps written plainly, and the parts of a run."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse

from cutplane.data import as_blocks
from cutplane.losses import LOSSES
from cutplane.risks import Targets
from cutplane.solvers.stochastic import LateAverage, Steps, shuffle

SLOPES = {
    "hinge": lambda z: float(z < 1.0),
    "squared_hinge": lambda z: 2.0 * max(0.0, 1.0 - z),
    "logistic": lambda z: 1.0 / (1.0 + math.exp(z)),
}


def plain_walk(X, labels, weights, slope_at, steps, first_step):
    """The formula of loops/stochastic.py, one row after the other."""
    if steps.constant:
        X = np.hstack([X, np.full((len(X), 1), steps.constant)])
    w, bias, coef = np.zeros(X.shape[1]), 0.0, np.zeros(len(X))
    for i, (x, y, weight) in enumerate(zip(X, labels, weights, strict=True)):
        t = first_step + i + 1
        slope = slope_at(y * (w @ x + bias))
        rate = weight / (steps.decay * t)
        bias += min(steps.bias_rate * rate, 0.5) * slope * y
        length = rate * (x @ x)
        used = 0.5 / length if steps.capped and length > 0.5 else 1.0
        w = (1.0 - 1.0 / t) * w + rate * used * slope * y * x
        coef[i] = -y * slope * used
        norm = np.linalg.norm(w)
        if norm**2 > steps.squared_radius:
            w *= math.sqrt(steps.squared_radius) / norm
    return w, bias, coef


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", SLOPES)
@pytest.mark.parametrize(
    ("first_step", "squared_radius", "capped"),
    [(0.0, 3.0, True), (0.0, 0.01, False), (5.0, math.inf, False), (50.0, math.inf, True)],
)
@pytest.mark.parametrize(("constant", "bias_rate"), [(0.0, 0.0), (2.0, 0.0), (0.0, 0.3)])
def test_steps(sparse, loss, first_step, squared_radius, capped, constant, bias_rate):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)) * (rng.random((200, 4)) < 0.6)
    targets = Targets.make(rng.choice([-1.0, 1.0], 200), rng.random(200) + 0.1)
    shuffled = shuffle(as_blocks(scipy.sparse.csr_array(X) if sparse else X), targets, rng)
    w, state = np.zeros(4 + (constant != 0.0)), np.array([first_step, 0.0])
    steps = Steps(LOSSES[loss](), 0.1, constant, bias_rate, squared_radius, capped, w, state)
    coef = np.empty(200)
    assert (shuffled.indices is not None) == sparse
    for part in np.split(np.arange(200), [70]):  # two passes are one
        steps.visit(shuffled, part, coef)
    expected_w, bias, expected = plain_walk(
        X[shuffled.source],
        targets.labels[shuffled.source],
        shuffled.weights,
        SLOPES[loss],
        steps,
        first_step,
    )
    np.testing.assert_allclose(w, expected_w, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(coef, expected, rtol=1e-9, atol=1e-12)
    assert state[1] == pytest.approx(bias, rel=1e-9)
    assert w @ w <= squared_radius * (1.0 + 1e-12)


def test_pegasos_survives_early_projections():
    """Hundreds of projections in a row shrink the scale far below the smallest number."""
    rng = np.random.default_rng(0)
    targets = Targets.make(rng.choice([-1.0, 1.0], 500))
    shuffled = shuffle(as_blocks(rng.normal(size=(500, 3))), targets, rng)
    w = np.zeros(3)
    steps = Steps(LOSSES["hinge"](), 1e-12, 0.0, 0.0, 1e12, False, w, np.zeros(2))
    steps.visit(shuffled, np.arange(500), np.empty(500))
    assert 0.0 < np.linalg.norm(w) <= 1e6 * (1.0 + 1e-9)


@pytest.mark.parametrize("layout", ["C", "F", "csr"])
@pytest.mark.parametrize("block_numbers", [40, 10_000])
def test_deal(layout, block_numbers):
    """Every row of positive weight once, with its label and its part of the weight."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, (100, 6)).astype(np.float32)
    labels, weights = rng.choice([-1.0, 1.0], 100), rng.integers(0, 3, 100).astype(float)
    laid = scipy.sparse.csr_array(X) if layout == "csr" else np.array(X, order=layout)
    shuffled = shuffle(
        as_blocks(laid, block_numbers=block_numbers), Targets.make(labels, weights), rng
    )
    np.testing.assert_array_equal(np.sort(shuffled.source), np.flatnonzero(weights))
    assert not np.array_equal(shuffled.source, np.flatnonzero(weights))
    factor = np.count_nonzero(weights) / weights.sum()
    np.testing.assert_array_equal(shuffled.labels, labels[shuffled.source])
    np.testing.assert_allclose(shuffled.weights, factor * weights[shuffled.source])
    probe = np.arange(1.0, 7.0)
    for count in (len(shuffled.source), 3):
        scores = shuffled.scores(probe, count)
        np.testing.assert_array_equal(scores, X[shuffled.source[:count]] @ probe)
    ends = [block.stop for block in shuffled.blocks]
    assert [block.start for block in shuffled.blocks] == [0, *ends[:-1]]
    assert ends[-1] == len(shuffled.source)


def test_late_average():
    vectors = np.random.default_rng(2).normal(size=(40, 3))
    late = LateAverage(3)
    firsts = []
    for count, vector in enumerate(vectors, 1):
        late.add(vector)
        firsts.append(1 if count < 4 else 2 ** (count.bit_length() - 2))
        expected = vectors[firsts[-1] - 1 : count].mean(axis=0)
        np.testing.assert_allclose(late.value(), expected, rtol=1e-12, atol=1e-14)
        assert count - firsts[-1] + 1 >= count / 2
    assert firsts[9] == 4
    assert all(a <= b for a, b in itertools.pairwise(firsts))
