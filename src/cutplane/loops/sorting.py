"""A stable sort of float64 scores: by leading bits into buckets, then each bucket in the cache.

A score s becomes an integer ``key(s)`` of K bits that never falls when s grows. Either the key is
linear in s, ⌊(s − low)·scale⌋, or it comes from the bit pattern of s, which is fine near zero and
coarse far out. ``packed`` = key·2^index_bits + row number fits 64 bits, so that the sort moves one
array, not two. A key does not have all bits of a score. If two keys are equal, the scores decide.

1. ``count`` counts the keys with each value of the leading bits.
2. ``scatter`` moves every packed number to the bucket of its leading bits.
3. ``finish`` sorts each bucket, which fits into the cache: a counting sort by the bits that follow,
   and then insertion, which has little left to do.

Steps 1 and 2 run on parts of the rows, step 3 on ranges of buckets. Every step is stable.
"""

from __future__ import annotations

import numpy as np

from .._jit import jit

_SIGN = np.uint64(1 << 63)
_TOP = np.uint64(63)
_ONE = np.uint64(1)
# The table in ``finish`` has up to 2^TABLE_BITS entries. A larger table would not fit the cache.
TABLE_BITS = 14


@jit
def bit_key(bits):
    """An unsigned integer in the order of the scores, from a score's bit pattern."""
    if bits == _SIGN:  # −0.0 equals 0.0
        return _SIGN
    return ~bits if bits >> _TOP else bits | _SIGN


@jit
def _key(scores, bits, i, by_bits, low, scale, least, drop):
    """The key of a score: linear in the score, or its bit key less ``least``, without low bits."""
    if by_bits:
        return (bit_key(bits[i]) - least) >> drop
    return np.uint64(np.int64((scores[i] - low) * scale))


@jit
def count(scores, bits, by_bits, low, scale, least, drop, shift, counts):
    """Count the scores by the leading bits of their keys. ``bits`` are the scores' bit patterns."""
    for i in range(scores.shape[0]):
        counts[_key(scores, bits, i, by_bits, low, scale, least, drop) >> shift] += 1


@jit
def scatter(
    scores, bits, by_bits, low, scale, least, drop, shift, first, index_bits, places, packed
):
    """Write the packed keys of the rows first, first + 1, … to their buckets.

    ``places`` has the next free position of every bucket, which this function moves on.
    """
    for i in range(scores.shape[0]):
        key = _key(scores, bits, i, by_bits, low, scale, least, drop)
        bucket = key >> shift
        place = places[bucket]
        places[bucket] = place + 1
        packed[np.uint64(place)] = (key << index_bits) | np.uint64(first + i)


@jit
def _insert(keys, start, stop, scores, index_bits, mask, budget):
    """Sort keys[start:stop] by insertion, and return the number of moves.

    Beyond ``budget`` moves the function gives up and leaves the keys unsorted.
    """
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
    """Sort the buckets first, …, last − 1, and write their row numbers to ``order``.

    ``shift`` is the number of key bits below the leading ones. ``spare`` is as long as ``packed``.
    Returns False if insertion would need more moves than the budget, because the keys are too
    unevenly distributed.
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
