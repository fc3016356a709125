"""How parts are shared out to workers: balanced, nobody without, few sums in an answer."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cutplane.data.sums import SumPlan, add_nodes, part_edges, share_parts


def sums_of(edges, runs):
    return [len(SumPlan(edges, first, last).nodes) for first, last in runs]


@pytest.mark.parametrize("workers", [1, 2, 4, 8, 16, 32, 64, 128])
@pytest.mark.parametrize("rows", [10**7, 10**8, 10**9])
def test_powers_of_two_send_about_one_sum_each(rows, workers):
    edges = part_edges(10**6, rows)
    if len(edges) - 1 < 16 * workers:
        pytest.skip("a part is too large a piece of a share")
    runs = share_parts(np.diff(edges).tolist(), [1] * workers)
    assert np.mean(sums_of(edges, runs)) <= 1.1  # halves of odd numbers add up


@pytest.mark.parametrize("workers", [1, 3, 5, 7, 10, 50, 100])
def test_shares_stay_balanced(workers):
    edges = part_edges(10**6, 10**9)
    sizes = np.diff(edges)
    runs = share_parts(sizes.tolist(), [1] * workers)
    loads = np.array([sizes[first:last].sum() for first, last in runs])
    fair = sizes.sum() / workers
    # Each end is at most 1/32 of a share, or half a part, from where it should be.
    assert loads.max() <= fair * (1 + 2 / 32) + sizes.max()
    assert max(sums_of(edges, runs)) <= 2 * np.log2(len(sizes))


def test_everybody_gets_a_run_in_order():
    rng = np.random.default_rng(5)
    for _ in range(200):
        parts, holders = rng.integers(1, 40, 2)
        sizes = rng.integers(1, 9, parts).tolist()
        runs = share_parts(sizes, rng.integers(1, 5, holders).tolist())
        assert len(runs) == min(parts, holders)
        assert runs[0][0] == 0 and runs[-1][1] == parts
        assert all(first < last for first, last in runs)
        assert all(one[1] == other[0] for one, other in itertools.pairwise(runs))


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 32, 100])
def test_sums_of_sums_leave_what_they_add(parts):
    """Answers may be read-only memory of a message, and the order of additions is the tree's."""
    rng = np.random.default_rng(parts)
    nodes = {(k, k + 1): rng.normal(size=20) for k in range(parts)}
    for node in nodes.values():
        node.flags.writeable = False

    def by_definition(a, b):
        middle = (a + b) // 2
        return nodes[a, b] if b - a == 1 else by_definition(a, middle) + by_definition(middle, b)

    np.testing.assert_array_equal(add_nodes(nodes, parts), by_definition(0, parts))
