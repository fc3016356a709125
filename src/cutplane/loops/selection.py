"""Weighted selection without sorting: where does an increasing step function cross zero?

The function is given by unordered steps: it rises by ``jumps[i]`` at
``positions[i]``. A histogram of the jumps over 'bins' equal intervals of
[low, low + bins/scale) locates the interval of the crossing in one pass, a
second pass collects the few steps inside it. Bin 0 takes what lies below
``low``, the last bin what lies beyond. Both passes bin a position by the same
arithmetic, so no step is lost or counted twice.
"""

from __future__ import annotations

from .._jit import jit


@jit
def _bin_of(position, low, scale, inner):
    place = (position - low) * scale
    if not place >= 0.0:  # also what is not a number
        return 0
    if not place < inner:
        return inner + 1
    return int(place) + 1


@jit
def add_histogram(positions, jumps, low, scale, bins):
    """bins[b] += Σ jumps of the positions in bin b."""
    inner = bins.shape[0] - 2
    for i in range(positions.shape[0]):
        bins[_bin_of(positions[i], low, scale, inner)] += jumps[i]


@jit
def collect_bin(positions, jumps, low, scale, inner, wanted, out_positions, out_jumps):
    """Copy the steps of one bin to the front of the outputs, which may be the inputs.

    Returns their number.
    """
    count = 0
    for i in range(positions.shape[0]):
        if _bin_of(positions[i], low, scale, inner) == wanted:
            out_positions[count] = positions[i]
            out_jumps[count] = jumps[i]
            count += 1
    return count


@jit
def count_bins(positions, low, scale, counts):
    """counts[b] += number of positions in bin b."""
    inner = counts.shape[0] - 2
    for i in range(positions.shape[0]):
        counts[_bin_of(positions[i], low, scale, inner)] += 1


@jit
def copy_bins(positions, jumps, low, scale, inner, first, last, out_positions, out_jumps):
    """Copy the steps of the bins first to last; the outputs must have room for them."""
    count = 0
    for i in range(positions.shape[0]):
        if first <= _bin_of(positions[i], low, scale, inner) <= last:
            out_positions[count] = positions[i]
            out_jumps[count] = jumps[i]
            count += 1


@jit
def walk_steps(positions, jumps, slope, start):
    """Walk sorted steps until start + slope·k + Σ jumps crosses zero; returns (k, found)."""
    level = start
    for i in range(positions.shape[0]):
        k = positions[i]
        if slope * k + level >= 0.0:  # crossed on the way here
            return -level / slope if slope > 0.0 else k, True
        level += jumps[i]
        if slope * k + level >= 0.0:  # crossed by the step
            return k, True
    if slope > 0.0:
        return -level / slope, True
    return 0.0, False
