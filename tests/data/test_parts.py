"""The tree of sums over blocks: the same bits whoever holds which parts, and however many fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutplane.data import BlockSum, as_blocks
from cutplane.data import sums as sums_module
from cutplane.data.blocks import BlockedMatrix
from cutplane.data.sums import (
    PARTS,
    ROWS_PER_PART,
    SumPlan,
    add_nodes,
    part_edges,
    share_parts,
)
from cutplane.exec import SerialExecutor, ThreadExecutor


def by_hand(arrays, edges, a, b):
    """The definition: within a part in order, over parts by halves."""
    if b - a == 1:
        total = arrays[edges[a]].copy()
        for k in range(edges[a] + 1, edges[b]):
            total = total + arrays[k]
        return total
    middle = (a + b) // 2
    return by_hand(arrays, edges, a, middle) + by_hand(arrays, edges, middle, b)


def blocks_of(first, last, shape):
    """A matrix of one row per block; what is summed comes from elsewhere."""
    matrix = as_blocks(np.zeros((last - first, 1)), block_numbers=1)
    bounds = np.arange(last - first + 1)
    source = [matrix.whole for _ in range(last - first)]
    return BlockedMatrix(source, bounds, (last - first, shape[0]), last - first)


@pytest.mark.parametrize("threads", [1, 3])
@given(
    count=st.integers(1, 90),
    parts=st.integers(1, 40),
    holders=st.integers(1, 7),
    room=st.integers(1, 100),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_same_bits_whoever_holds_the_parts(threads, count, parts, holders, room, seed):
    rng = np.random.default_rng(seed)
    shape = (3,)
    arrays = rng.normal(size=(count, *shape)) * 10.0 ** rng.integers(-8, 8, (count, 1))
    edges = np.unique(rng.integers(0, count, parts)).tolist()
    edges = np.array(sorted({0, *edges, count}))
    powers = rng.uniform(0.1, 1.0, holders)
    expected = by_hand(arrays, edges, 0, len(edges) - 1)
    nodes = {}
    with pytest.MonkeyPatch.context() as patch, ThreadExecutor(threads) as executor:
        patch.setattr(sums_module, "PARTIAL_NUMBERS", 3 * room)
        patch.setattr(sums_module, "LEAST_PARTIALS", 1)
        shares = share_parts(np.diff(edges), powers)
        assert shares[0][0] == 0 and shares[-1][1] == len(edges) - 1
        for first, last in shares:
            assert last > first
            plan = SumPlan(edges, first, last)
            begin, end = edges[first], edges[last]
            total = BlockSum(blocks_of(begin, end, shape), shape, plan)

            def fill(k, _, total=total, begin=begin):
                total.array(k)[...] = arrays[begin + k]

            sums = total.run(fill, executor)
            assert len(sums) == len(plan.nodes) <= 2 * max(1, np.ceil(np.log2(len(edges))))
            nodes.update({node: part.copy() for node, part in zip(plan.nodes, sums, strict=True)})
    np.testing.assert_array_equal(add_nodes(nodes, len(edges) - 1), expected)


def test_two_holders_send_one_array_each():
    edges = part_edges(28, 581_012)
    for first, last in share_parts(np.ones(len(edges) - 1), [1.0, 1.0]):
        assert SumPlan(edges, first, last).nodes == [(first, last)]


def test_parts_depend_on_blocks_and_rows():
    assert part_edges(1, 10).tolist() == [0, 1]
    assert part_edges(5, 10**9).tolist() == [0, 1, 2, 3, 4, 5]
    assert len(part_edges(10**4, 1000)) == PARTS + 1
    assert len(part_edges(10**4, 1000 * ROWS_PER_PART)) == 1001


def test_threads_add_in_the_same_order():
    """Wide enough for several tasks of columns."""
    rng = np.random.default_rng(0)
    shape = (3 * sums_module.SUM_COLUMNS + 5,)
    arrays = rng.normal(size=(7, *shape))
    total = BlockSum(blocks_of(0, 7, shape), shape)

    def fill(k, _):
        total.array(k)[...] = arrays[k]

    serial = total.run(fill, SerialExecutor())[0].copy()
    with ThreadExecutor(3) as executor:
        np.testing.assert_array_equal(total.run(fill, executor)[0], serial)
    np.testing.assert_array_equal(
        serial, by_hand(arrays, total.plan.edges, 0, len(total.plan.edges) - 1)
    )
