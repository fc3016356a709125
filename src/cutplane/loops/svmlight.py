"""Read svmlight text: bytes in, rows out, numbers right to the last bit.

A line is ``label [qid:n] [cost:x] index:value … # comment``. ``read_rows`` reads a piece of text
once and fills flat arrays. A decimal number is w·10^q with an integer w:

- w < 2⁵³ and |q| ≤ 22: w and 10^|q| are exact as float64, so that one multiplication or
  division rounds once (Clinger, "How to read floating point numbers accurately", 1990);
- w < 10¹⁹: the 128 leading bits of w·5^q, from a table of 5^q, decide the rounding (Lemire,
  "Number parsing at a gigabyte per second", 2021, algorithm 1; Mushtak and Lemire, "Fast number
  parsing without fallback", 2023, prove that these bits are enough);
- more digits: ``read_rows`` writes the position of the number to ``slow``, and the caller
  converts the number.

A newline that is not part of the text follows it, so that no step has to look for the end. A piece
may stop inside a line, between two tokens. Then ``state`` and ``real_state`` keep what is known
about the open row for the next piece.
"""

from __future__ import annotations

import numpy as np

from .._jit import eight_bytes, high_product, jit, leading_zeros, trailing_zeros

# -- what the caller sets and finds, by position -------------------------------

# ``settings``: the smallest and the largest allowed index; the largest index to keep (larger ones
# are counted and left out); whether indices may come in any order.
SMALLEST, LARGEST, KEPT, ANY_ORDER, SETTINGS = range(5)
# ``state``, part 1: the open row. The caller passes it on with the piece that continues the row.
ROW_OPEN, IN_COMMENT, PREVIOUS, HAS_QID, QID, HAS_COST, DISORDER = range(7)
# ``state``, part 2: the piece. How much it contains, what is wrong and where, what was found where.
ROWS, NUMBERS, LINES, SLOW, DISORDERED, CODE, POSITION, LEFT_OUT = range(7, 15)
LOWEST, HIGHEST, COSTS, QIDS, FIRST_ROW, FIRST_EDGE, COMMENT, STATE = range(15, 23)
# Entries of ``real_state`` for an open row, and columns of ``reals``.
LABEL, COST, REALS = range(3)
# Columns of ``wholes``: the query, the count of numbers up to the row's end, the comment's place.
ROW_QID, ROW_END, COMMENT_START, COMMENT_STOP, WHOLES = range(5)
# Columns of ``slow``: the target of the number, and its position.
TARGET, START, STOP, SLOWS = range(4)

# Values of ``state[CODE]``.
FINE, BAD_LABEL, BAD_TOKEN, BAD_VALUE, TOO_SMALL, TOO_LARGE, REPEATED, DESCENDING = range(8)
BAD_QID, SECOND_QID, SOME_QIDS, BAD_COST, SECOND_COST, NUL_IN_COMMENT, STRAY_RETURN = range(8, 15)

LEAST_POWER, MOST_POWER = -342, 308  # w·10^q is 0 below and inf above, for 0 < w < 2⁶⁴
MOST_DIGITS = 19  # a whole number of so many digits fits 64 bits
_LARGEST_QID = np.uint64((1 << 63) - 1)
_LARGEST_INDEX = np.uint64(1 << 40)
_LARGEST_EXPONENT = np.uint64(100_000)

_OK, _SLOW, _BAD = 0, 1, 2

_NUL, _TAB, _LF, _CR, _BLANK, _HASH = 0, 9, 10, 13, 32, 35
_PLUS, _MINUS, _POINT, _ZERO, _COLON, _E = 43, 45, 46, 48, 58, 101
_QID_COLON, _COST = (np.uint32(int.from_bytes(name, "little")) for name in (b"qid:", b"cost"))
_U0, _U1, _U3, _U8, _U9, _U10 = (np.uint64(k) for k in (0, 1, 3, 8, 9, 10))
_U16, _U32, _U63, _U64 = (np.uint64(k) for k in (16, 32, 63, 64))
_NIBBLES, _ZEROS = (np.uint64(0x0101010101010101 * k) for k in (0x0F, 0x30))
_TO_SIGN, _SIGNS = (np.uint64(0x0101010101010101 * k) for k in (0x46, 0x80))
_UNSURE, _HIDDEN, _EXACT = (np.uint64(k) for k in (0x1FF, 1 << 52, 1 << 53))


def _leading_bits(q):
    """The 128 leading bits of 5^q in two halves: rounded down for q ≥ 0, rounded up for q < 0."""
    if q >= 0:
        five = 5**q
    else:
        size = (5**-q - 1).bit_length()
        five = (1 << (size + 127 if q >= -27 else 2 * size + 128)) // 5**-q + 1
    surplus = five.bit_length() - 128
    five = five >> surplus if surplus > 0 else five << -surplus
    return five >> 64, five & (1 << 64) - 1


_FIVES = np.array([_leading_bits(q) for q in range(LEAST_POWER, MOST_POWER + 1)], np.uint64).ravel()
_TENS = np.array([float(10**k) for k in range(23)])
_TWOS = np.ldexp(1.0, np.arange(-1074, 972))
_POWERS = np.array([10**k for k in range(9)], np.uint64)


# -- numbers --------------------------------------------------------------------


@jit
def _rounded(w, q):
    """The float64 nearest to w·10^q for w > 0; inf if that is larger than all of them."""
    if q < LEAST_POWER:
        return 0.0
    if q > MOST_POWER:
        return np.inf
    zeros = leading_zeros(w)
    w <<= zeros
    place = np.uint64(2 * (q - LEAST_POWER))
    five = _FIVES[place]
    high, low = high_product(w, five), w * five
    if high & _UNSURE == _UNSURE:
        carry = high_product(w, _FIVES[place + _U1])
        low += carry
        if carry > low:
            high += _U1
    top = high >> _U63
    shift = top + _U9
    mantissa = high >> shift  # 54 bits, one more than a float64 has
    power = ((217706 * q) >> 16) + 63 + np.int64(top) - np.int64(zeros) + 1023
    if power <= 0:  # subnormal, or rounded up to the smallest normal number
        if power < -62:
            return 0.0
        mantissa >>= np.uint64(1 - power)
        mantissa += mantissa & _U1
        mantissa >>= _U1
        return np.float64(mantissa) * _TWOS[0]
    # Exactly half way between two numbers, which only small powers of 5 allow: round to even.
    if low <= _U1 and -4 <= q <= 23 and mantissa & _U3 == _U1 and mantissa << shift == high:
        mantissa ^= _U1
    mantissa += mantissa & _U1
    mantissa >>= _U1
    if mantissa >= _EXACT:
        mantissa = _HIDDEN
        power += 1
    if power >= 2047:
        return np.inf
    return np.float64(mantissa) * _TWOS[np.uint64(power - 1)]


@jit
def _significant(text, first, last):
    """The number of digits without leading zeros."""
    while first < last and (text[first] == _ZERO or text[first] == _POINT):
        first += 1
    count = last - first
    for k in range(first, last):
        if text[k] == _POINT:
            count -= 1
    return count


@jit
def _count(eight):
    """How many of eight bytes are digits, up to the first other byte."""
    other = ((eight + _TO_SIGN) | (eight - _ZEROS)) & _SIGNS
    return trailing_zeros(other) >> _U3


@jit
def _value(eight, count):
    """The integer that the first ``count`` bytes spell, 1 ≤ ``count`` ≤ 8."""
    pairs = ((eight << (_U64 - count * _U8)) & _NIBBLES) * np.uint64(2561) >> _U8
    fours = (pairs & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601) >> _U16
    return (fours & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001) >> _U32


@jit
def _digits(text, pos, w):
    """Append the digits from ``pos`` on to w, modulo 2⁶⁴; return w and the position behind them."""
    eight = eight_bytes(text, np.uint64(pos))
    count = _count(eight)
    while count == _U8:
        w = w * _POWERS[8] + _value(eight, count)
        pos += 8
        eight = eight_bytes(text, np.uint64(pos))
        count = _count(eight)
    if count:
        w = w * _POWERS[count] + _value(eight, count)
    return w, pos + np.int64(count)


@jit
def _number(text, pos):
    """Read a number; return its value, the position behind it, and _OK, _SLOW or _BAD."""
    c = text[np.uint64(pos)]
    negative = c == _MINUS
    if negative or c == _PLUS:
        pos += 1
    first = pos
    w, pos = _digits(text, pos, _U0)
    digits = pos - first
    q = 0
    if text[np.uint64(pos)] == _POINT:
        pos += 1
        q = pos
        w, pos = _digits(text, pos, w)
        q -= pos
        digits -= q
    if digits == 0:
        return 0.0, pos, _BAD
    last = pos
    if text[np.uint64(pos)] | 32 == _E:
        pos += 1
        c = text[np.uint64(pos)]
        if c == _MINUS or c == _PLUS:
            pos += 1
        start = pos
        exponent, pos = _whole(text, pos, _LARGEST_EXPONENT)
        if pos == start:
            return 0.0, pos, _BAD
        q += -np.int64(exponent) if c == _MINUS else np.int64(exponent)
    if digits > MOST_DIGITS and _significant(text, first, last) > MOST_DIGITS:
        return 0.0, pos, _SLOW
    if w < _EXACT and -22 <= q <= 22:
        value = np.float64(w)
        if q < 0:
            value /= _TENS[np.uint64(-q)]
        else:
            value *= _TENS[np.uint64(q)]
    elif w == _U0:
        value = 0.0
    else:
        value = _rounded(w, q)
    return -value if negative else value, pos, _OK


@jit
def _whole(text, pos, most):
    """Read an integer; return it, or ``most`` + 1 if it is larger, and the position behind it."""
    value = _U0
    digit = np.uint64(text[np.uint64(pos)]) - np.uint64(_ZERO)
    while digit <= _U9:
        value = min(value * _U10 + digit, most + _U1) if value <= most // _U10 else most + _U1
        pos += 1
        digit = np.uint64(text[np.uint64(pos)]) - np.uint64(_ZERO)
    return value, pos


@jit
def _ends(c):
    """Whether a token ends before this byte."""
    return c == _BLANK or c == _LF or c == _TAB or c == _CR or c == _HASH


@jit
def _note(slow, count, target, start, stop):
    """Note a number for the caller to convert; return how many such numbers there are now."""
    slow[count, TARGET] = target
    slow[count, START] = start
    slow[count, STOP] = stop
    return count + 1


# -- rows -----------------------------------------------------------------------


@jit
def read_rows(
    text,
    end,
    settings,
    largest,
    state,
    real_state,
    reals,
    wholes,
    values,
    indices,
    slow,
    disordered,
):
    """Read ``text[:end]`` up to its end or to the first mistake, which ``state`` then names.

    ``text[end]`` is a newline. Seven more bytes must follow, which the function may read but does
    not use. ``largest`` is the largest allowed absolute value. The target of a number that the
    caller must convert is a position in ``values``, or −1 − 2·row for a label, or −2 − 2·row for a
    cost. ``disordered`` gets the rows whose indices do not increase.
    """
    lowest_allowed, limit = settings[SMALLEST], settings[LARGEST]
    kept, any_order = settings[KEPT], settings[ANY_ORDER]
    edge = min(limit, kept)
    row_open, in_comment = state[ROW_OPEN] != 0, state[IN_COMMENT] != 0
    previous, has_qid, qid = state[PREVIOUS], state[HAS_QID], state[QID]
    has_cost, disorder = state[HAS_COST], state[DISORDER]
    label, cost = real_state[LABEL], real_state[COST]
    rows = numbers = lines = slow_count = disordered_count = left_out = costs_seen = 0
    lowest, highest = limit + 1, -1
    any_qids = first_row = first_edge = row_start = -1
    comment_start = comment_stop = 0
    code = FINE
    pos = at = 0

    while pos < end:
        if not row_open and not in_comment:
            while text[np.uint64(pos)] == _BLANK or text[np.uint64(pos)] == _TAB:
                pos += 1
            c = text[np.uint64(pos)]
            if c == _LF:
                if pos < end:
                    lines += 1
                pos += 1
                continue
            if c == _CR and text[np.uint64(pos + 1)] == _LF:
                pos += 1
                continue
            if c == _HASH:
                in_comment = True
            else:
                at = row_start = pos
                label, pos, kind = _number(text, pos)
                if kind == _BAD or not _ends(text[np.uint64(pos)]) or np.isinf(label):
                    code = BAD_LABEL
                    break
                if kind == _SLOW:
                    slow_count = _note(slow, slow_count, -1 - 2 * rows, at, pos)
                row_open, cost, previous = True, 1.0, -1
                has_qid = qid = has_cost = disorder = 0
                comment_start = comment_stop = pos

        while not in_comment:
            c = text[np.uint64(pos)]
            while c == _BLANK or c == _TAB:
                pos += 1
                c = text[np.uint64(pos)]
            at = pos
            eight = eight_bytes(text, np.uint64(pos))
            digit = np.uint64(c) - np.uint64(_ZERO)
            if digit <= _U9:
                count = _count(eight)
                index = np.int64(_value(eight, count))
                pos += np.int64(count)
                if count == _U8:
                    unsigned, pos = _whole(text, at, _LARGEST_INDEX)
                    index = np.int64(unsigned)
                if text[np.uint64(pos)] != _COLON:
                    code = BAD_TOKEN
                    break
                pos += 1
                value, stop, kind = _number(text, pos)
                if kind == _BAD or not _ends(text[np.uint64(stop)]) or abs(value) > largest:
                    code = BAD_VALUE
                    break
                if index <= previous:
                    if index == previous or not any_order:
                        code = REPEATED if index == previous else DESCENDING
                        break
                    disorder = 1
                if index < lowest:
                    lowest = index
                    if index < lowest_allowed:
                        code = TOO_SMALL
                        break
                previous = index
                if index >= edge:
                    if index > limit:
                        code = TOO_LARGE
                        break
                    if index > kept:
                        left_out += 1
                        pos = stop
                        continue
                    if first_edge < 0:
                        first_edge = at
                if index > highest:
                    highest = index
                if kind == _SLOW:
                    slow_count = _note(slow, slow_count, numbers, pos, stop)
                values[np.uint64(numbers)] = value
                indices[np.uint64(numbers)] = index
                numbers += 1
                pos = stop
            elif c == _LF:
                break
            elif c == _CR:
                if text[np.uint64(pos + 1)] != _LF:
                    code = STRAY_RETURN
                    break
                pos += 1
            elif c == _HASH:
                in_comment = True
                pos += 1
                comment_start = pos
            elif np.uint32(eight) == _QID_COLON:
                unsigned, stop = _whole(text, pos + 4, _LARGEST_QID)
                bad = stop == pos + 4 or unsigned > _LARGEST_QID or not _ends(text[np.uint64(stop)])
                if bad or has_qid:
                    code = SECOND_QID if has_qid else BAD_QID
                    break
                has_qid = 1
                qid = np.int64(unsigned)
                pos = stop
            elif np.uint32(eight) == _COST and text[np.uint64(pos + 4)] == _COLON:
                pos += 5
                cost, stop, kind = _number(text, pos)
                bad = kind == _BAD or not 0.0 <= cost < np.inf or not _ends(text[np.uint64(stop)])
                if bad or has_cost:
                    code = SECOND_COST if has_cost else BAD_COST
                    break
                if kind == _SLOW:
                    slow_count = _note(slow, slow_count, -2 - 2 * rows, pos, stop)
                has_cost = 1
                pos = stop
            else:
                code = BAD_TOKEN
                break

        if code != FINE:
            break
        if in_comment:
            c = text[np.uint64(pos)]
            while c != _LF and c != _NUL:
                pos += 1
                c = text[np.uint64(pos)]
            comment_stop = at = pos
            if c == _NUL:
                code = NUL_IN_COMMENT
                break
        if pos >= end:  # this is the newline behind the text: the next piece continues the line
            break
        if row_open:
            if any_qids < 0:
                any_qids, first_row = has_qid, row_start
            elif any_qids != has_qid:
                code, at = SOME_QIDS, row_start
                break
            if disorder:
                disordered[disordered_count] = rows
                disordered_count += 1
            costs_seen += has_cost
            reals[rows, LABEL], reals[rows, COST] = label, cost
            wholes[rows, ROW_QID], wholes[rows, ROW_END] = qid, numbers
            wholes[rows, COMMENT_START], wholes[rows, COMMENT_STOP] = comment_start, comment_stop
            rows += 1
        row_open = in_comment = False
        lines += 1
        pos += 1

    state[ROW_OPEN], state[IN_COMMENT] = row_open, in_comment
    state[PREVIOUS], state[HAS_QID], state[QID] = previous, has_qid, qid
    state[HAS_COST], state[DISORDER] = has_cost, disorder
    real_state[LABEL], real_state[COST] = label, cost
    state[ROWS], state[NUMBERS], state[LINES] = rows, numbers, lines
    state[SLOW], state[DISORDERED] = slow_count, disordered_count
    state[CODE], state[POSITION] = code, at
    state[LOWEST], state[HIGHEST], state[LEFT_OUT] = lowest, highest, left_out
    state[COSTS], state[QIDS], state[FIRST_ROW] = costs_seen, any_qids, first_row
    state[FIRST_EDGE], state[COMMENT] = first_edge, comment_start
