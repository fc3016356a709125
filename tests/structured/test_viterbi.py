"""Viterbi's algorithm against every labelling."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from cutplane.loops import viterbi
from structured_reference import chain_loss, chain_score, labellings

LENGTHS = (3, 1, 0, 4, 2, 1)
ORDERS = (1, 2)
LOSSES = ("hamming", "zero_one")


def setting(order: int, labels: int, seed: int, *, whole: bool, scale: float = 1.0):
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(np.int64)

    def draw(*shape: int) -> np.ndarray:
        values = scale * rng.normal(size=shape)
        return np.round(values) if whole else values  # whole numbers tie often

    chain = (draw(labels, labels), draw(labels), draw(labels))
    chain = (draw(*(labels if order == 2 else 0,) * 3), *chain)
    return draw(starts[-1], labels), starts, chain, rng.integers(0, labels, starts[-1])


@pytest.mark.parametrize("whole", [False, True], ids=["real", "ties"])
@pytest.mark.parametrize("labels", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("order", ORDERS)
def test_decode(order, labels, seed, whole):
    scores, starts, chain, _ = setting(order, labels, seed, whole=whole)
    path = np.full(len(scores), -1)
    buffer = np.empty((4, labels if order == 2 else 1, labels))
    viterbi.decode(scores, starts, 0, len(LENGTHS), *chain, buffer, path)
    for s, length in enumerate(LENGTHS):
        part = scores[starts[s] : starts[s + 1]]
        best = max(chain_score(part, chain, z) for z in labellings(length, labels))
        found = chain_score(part, chain, path[starts[s] : starts[s + 1]])
        assert found == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("whole", [False, True], ids=["real", "ties"])
@pytest.mark.parametrize("labels", [2, 3, 5])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("order", ORDERS)
def test_most_violated(order, loss, labels, seed, whole, scale):
    scores, starts, chain, truth = setting(order, labels, seed, whole=whole, scale=scale)
    path = np.full(len(scores), -1)
    buffer = np.empty((4, labels if order == 2 else 1, labels))
    value, losses = viterbi.most_violated(
        scores,
        starts,
        0,
        len(LENGTHS),
        *chain,
        truth,
        1.0,
        loss == "hamming",
        buffer,
        path,
    )
    expected = expected_losses = 0.0
    for s, length in enumerate(LENGTHS):
        rows = slice(starts[s], starts[s + 1])

        def violation(z, rows=rows):
            return chain_loss(loss, truth[rows], z) + (
                chain_score(scores[rows], chain, z) - chain_score(scores[rows], chain, truth[rows])
            )

        best = max(violation(z) for z in labellings(length, labels))
        assert violation(path[rows]) == pytest.approx(best, abs=1e-12)
        expected += best
        expected_losses += chain_loss(loss, truth[rows], path[rows])
    assert value == pytest.approx(expected, abs=1e-12)
    assert losses == pytest.approx(expected_losses, abs=1e-12)


def test_a_tie_with_the_truth_is_the_truth():
    """If the truth is as violated as other labellings, inference returns the truth."""
    scores = np.array([[1.0, 0.0]])
    path = np.empty(1, dtype=np.int64)
    zero = np.zeros(2)
    chain = (np.zeros((0, 0, 0)), np.zeros((2, 2)), zero, zero)
    arguments = (scores, np.array([0, 1]), 0, 1, *chain, np.array([0]), 1.0, True)
    assert viterbi.most_violated(*arguments, np.empty((1, 1, 2)), path) == (0.0, 0.0)
    assert path.tolist() == [0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("order", ORDERS)
def test_slope(order, seed):
    """The difference of two labellings' scores with emissions end − start, by sequence."""
    start, starts, chain, truth = setting(order, 3, seed, whole=False)
    rng = np.random.default_rng(seed)
    end = rng.normal(size=start.shape)
    path = np.where(rng.random(len(truth)) < 0.5, truth, rng.integers(0, 3, len(truth)))
    parts = [slice(a, b) for a, b in pairwise(starts[1:])]
    expected = sum(
        chain_score((end - start)[part], chain, path[part])
        - chain_score((end - start)[part], chain, truth[part])
        for part in parts
        if part.stop > part.start
    )
    found = viterbi.slope(start, end, starts, 1, len(LENGTHS), *chain, truth, path)
    assert found == pytest.approx(expected, abs=1e-12)
