"""Vectors from worker to worker: every sum once, in the tree's order, and everybody is reached."""

from __future__ import annotations

import numpy as np
import pytest

from cutplane.cluster.routes import handed_on, routes_of
from cutplane.data.sums import SumPlan, add_nodes, share_parts


def add_up(routes, leaves):
    """What workers do, one after the other; the sum, and how many vectors each one sends."""
    known = [{n: add_nodes(leaves, n[1], n[0]) for n in route.nodes} for route in routes]
    mail, done = {}, [0] * len(routes)
    progress = True
    while progress:
        progress = False
        for k, route in enumerate(routes):
            for node, to in route.sends.items():
                if node in known[k]:
                    assert to < k
                    mail[node] = known[k].pop(node)
                    progress = True
            for a, middle, b in route.adds[done[k] :]:
                right = known[k].pop((middle, b), None)
                right = mail.pop((middle, b), None) if right is None else right
                if right is None:
                    break
                known[k][a, b] = known[k].pop((a, middle)) + right
                done[k] += 1
                progress = True
    assert not mail and not any(known[1:])
    (total,) = known[0].values()
    return total


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 32, 33, 100])
def test_the_same_bits_for_any_number_of_workers(parts):
    rng = np.random.default_rng(parts)
    leaves = {(k, k + 1): rng.normal(size=9) * 10.0 ** rng.integers(-8, 8) for k in range(parts)}
    expected = add_nodes(leaves, parts)
    edges = np.arange(parts + 1)
    for workers in range(1, min(parts, 9) + 1):
        powers = rng.integers(1, 4, workers).tolist()
        plans = [SumPlan(edges, *run) for run in share_parts([1.0] * parts, powers)]
        np.testing.assert_array_equal(add_up(routes_of(plans), leaves), expected)


@pytest.mark.parametrize("workers", [2, 4, 8, 16])
def test_equal_workers_send_one_vector_each(workers):
    edges = np.arange(65)
    plans = [SumPlan(edges, *run) for run in share_parts([1.0] * 64, [1] * workers)]
    sends = [len(route.sends) for route in routes_of(plans)]
    assert sends == [0] + [1] * (workers - 1)


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 5, 8, 13, 64, 100])
def test_everybody_is_reached_once_in_few_steps(workers):
    steps = {0: 0}
    for k in range(workers):  # whoever hands on has a smaller number
        for j, other in enumerate(handed_on(k, workers)):
            assert other not in steps
            steps[other] = steps[k] + j + 1  # one after the other
    assert sorted(steps) == list(range(workers))
    assert max(steps.values()) <= np.ceil(np.log2(workers)) if workers > 1 else steps == {0: 0}
