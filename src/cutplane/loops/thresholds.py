"""The thresholds on scores that predict ranks best.

The rows are sorted by score, and rows of equal score from the highest rank to the lowest.
``starts`` (m + 1,) tells which rows begin a group of equal scores; its last entry is True. Ranks
are 0, …, R − 1. ``cuts[k − 1]`` is the number of rows below threshold k. These rows are predicted
below rank k, the other rows at rank k or above. A threshold never lies within a group.
"""

from __future__ import annotations

from .._jit import jit


@jit
def absolute_cuts(ranks, weights, starts, low_rank, high_rank, low_row, high_row, stack, cuts):
    """Write cuts[k − 1] that minimise Σ weight·|predicted − rank|, for low_rank ≤ k < high_rank.

    The caller knows that they lie in low_row, …, high_row. The smallest best cut does not fall with
    k. So the cut of the middle k bounds the cuts on either side of it, and the function reads every
    row once per halving. ``stack`` has room for one open range per halving.
    """
    stack[0] = (low_rank, high_rank, low_row, high_row)
    size = 1
    while size > 0:
        size -= 1
        low_rank, high_rank, low_row, high_row = stack[size]
        if low_rank >= high_rank:
            continue
        if low_row == high_row:
            for k in range(low_rank, high_rank):
                cuts[k - 1] = low_row
            continue
        middle = (low_rank + high_rank) // 2
        cut = low_row
        cost = 0.0
        least = 0.0
        for i in range(low_row, high_row):  # cost of moving rows low_row..i below the threshold
            cost += weights[i] if ranks[i] >= middle else -weights[i]
            if cost < least and starts[i + 1]:
                least = cost
                cut = i + 1
        cuts[middle - 1] = cut
        stack[size] = (low_rank, middle, low_row, cut)
        stack[size + 1] = (middle + 1, high_rank, cut, high_row)
        size += 2


@jit
def zero_one_cuts(ranks, weights, starts, best, tail, previous, stack, cuts):
    """Write cuts that minimise Σ weight·[predicted ≠ rank].

    The groups get ranks that do not fall, such that the rows with the right rank, the hits, have
    the largest weight. A state is a pair (group, rank), named by the first of its rows. It has the
    largest sum of hits of all assignments that end with it. ``best`` and ``tail`` (R + 1,) are a
    Fenwick tree: the largest sums over ranks ≤ r, and the states that have them. ``previous`` (m,)
    is the state before each state. Groups between two groups with hits cannot have hits; there the
    cuts minimise the absolute error.
    """
    n_rows = ranks.shape[0]
    n_ranks = cuts.shape[0] + 1
    best[:] = 0.0
    tail[:] = -1
    i = 0
    while i < n_rows:
        state = i
        rank = ranks[i]
        gain = weights[i]
        i += 1
        while not starts[i] and ranks[i] == rank:
            gain += weights[i]
            i += 1
        if not gain > 0.0:
            continue
        # Ranks fall within a group, so this sum cannot contain another state of the group.
        reached = 0.0
        before = -1
        node = rank + 1
        while node > 0:
            if best[node] > reached:
                reached = best[node]
                before = tail[node]
            node -= node & -node
        previous[state] = before
        reached += gain
        node = rank + 1
        while node <= n_ranks:
            if reached > best[node]:
                best[node] = reached
                tail[node] = state
            node += node & -node

    state = -1
    reached = 0.0
    node = n_ranks
    while node > 0:
        if best[node] > reached:
            reached = best[node]
            state = tail[node]
        node -= node & -node

    # Go back through the groups with hits; thresholds between their ranks lie between them.
    high_rank = n_ranks
    high_row = n_rows
    while state >= 0:
        rank = ranks[state]
        end = state + 1
        while not starts[end]:
            end += 1
        absolute_cuts(ranks, weights, starts, rank + 1, high_rank, end, high_row, stack, cuts)
        begin = state
        while not starts[begin]:
            begin -= 1
        high_rank = rank + 1
        high_row = begin
        state = previous[state]
    absolute_cuts(ranks, weights, starts, 1, high_rank, 0, high_row, stack, cuts)
