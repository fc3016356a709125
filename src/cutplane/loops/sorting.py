"""Stable order of float64 scores: one scatter by leading bits, then small buckets in cache.

A score s becomes a whole number ``key(s)`` of K bits that never decreases with s:
either on a line, key = ⌊(s − low)·scale⌋, or from its bit pattern, which is
fine near zero and coarse far out. ``packed`` = key·2^index_bits + row number fits
64 bits, so that one array is moved, not two. K bits are not all of a score:
where keys are equal, the scores themselves decide.

1. ``count``: how many keys start with each value of the leading bits;
2. ``scatter``: move every packed number to the bucket of its leading bits;
3. ``finish``: inside a bucket, which the cache holds, one more counting sort by
   the bits that follow, then insertion, which has little left to do.

Steps 1 and 2 run on parts of the rows, step 3 on ranges of buckets. Every step is stable.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit

_SIGN = np.uint64(1 << 63)
_TOP = np.uint64(63)
_ONE = np.uint64(1)
# Entries of the table in ``finish``; larger ones leave the cache.
TABLE_BITS = 14


@jit
def bit_key(bits):
    """A number that grows with the score: what its bit pattern would be as an integer."""
    if bits == _SIGN:  # −0.0 equals 0.0
        return _SIGN
    return ~bits if bits >> _TOP else bits | _SIGN


@jit
def _key(scores, bits, i, by_bits, low, scale, least, drop):
    """The key of a score: on the line from ``low``, or its bit key from ``least`` on."""
    if by_bits:
        return (bit_key(bits[i]) - least) >> drop
    return np.uint64(np.int64((scores[i] - low) * scale))


@jit
def count(scores, bits, by_bits, low, scale, least, drop, shift, counts):
    """Add to counts the number of scores, whose patterns are ``bits``, by their leading bits."""
    for i in range(scores.shape[0]):
        counts[_key(scores, bits, i, by_bits, low, scale, least, drop) >> shift] += 1


@jit
def scatter(
    scores, bits, by_bits, low, scale, least, drop, shift, first, index_bits, places, packed
):
    """Move the packed keys of rows first, first + 1, … to ``places`` of their bucket."""
    for i in range(scores.shape[0]):
        key = _key(scores, bits, i, by_bits, low, scale, least, drop)
        bucket = key >> shift
        place = places[bucket]
        places[bucket] = place + 1
        packed[np.uint64(place)] = (key << index_bits) | np.uint64(first + i)


@jit
def _insert(keys, start, stop, scores, index_bits, mask, budget):
    """Sort keys[start:stop] by insertion; returns the moves made, at most about the budget."""
    moves = 0
    for i in range(start + 1, stop):
        here = keys[i]
        if keys[i - 1] < here and (keys[i - 1] ^ here) >> index_bits:
            continue
        k = i
        while k > start:
            before = keys[k - 1]
            if (before ^ here) >> index_bits:
                if before < here:
                    break
            elif not scores[before & mask] > scores[here & mask]:
                break
            keys[k] = before
            k -= 1
        keys[k] = here
        moves += i - k
        if moves > budget:
            break
    return moves


@jit
def finish(packed, scores, starts, first, last, shift, index_bits, budget, spare, order):
    """Sort buckets first … last − 1 and write their row numbers to ``order``.

    ``shift`` is the number of key bits below the leading ones; ``spare`` is as
    long as ``packed``. Returns False if the keys were so unevenly spread that
    insertion needed more moves than the budget.
    """
    mask = (_ONE << index_bits) - _ONE
    table = np.empty(1 << TABLE_BITS, np.uint32)
    for bucket in range(first, last):
        start = starts[bucket]
        stop = starts[bucket + 1]
        size = stop - start
        if size <= 12:
            budget -= _insert(packed, start, stop, scores, index_bits, mask, budget)
            for k in range(np.uint64(start), np.uint64(stop)):
                order[k] = packed[k] & mask
        else:
            bits = 4
            while (1 << bits) < size and bits < TABLE_BITS:
                bits += 1
            width = min(np.uint64(bits), shift)
            down = shift - width + index_bits
            inner = (_ONE << width) - _ONE
            for b in range(inner + _ONE):
                table[b] = 0
            for k in range(np.uint64(start), np.uint64(stop)):
                table[(packed[k] >> down) & inner] += np.uint32(1)
            place = np.uint32(start)
            for b in range(inner + _ONE):
                count = table[b]
                table[b] = place
                place += count
            for k in range(np.uint64(start), np.uint64(stop)):
                here = packed[k]
                b = (here >> down) & inner
                place = table[b]
                table[b] = place + np.uint32(1)
                spare[place] = here
            budget -= _insert(spare, start, stop, scores, index_bits, mask, budget)
            for k in range(np.uint64(start), np.uint64(stop)):
                order[k] = spare[k] & mask
        if budget < 0:
            return False
    return True
