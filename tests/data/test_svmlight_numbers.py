"""Decimal numbers become the float64 nearest to them. The answer to compare with is Python's."""

from __future__ import annotations

import io
import math
import random
import struct
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cutplane.data.svmlight import dump_svmlight, load_svmlight


def read(texts: list[str]) -> np.ndarray:
    """Numbers read as labels, values and costs; the three must agree."""
    lines = [f"{text} cost:{text.lstrip('+-')} 1:{text}" for text in texts]
    X, y, cost = load_svmlight(io.BytesIO("\n".join(lines).encode()), cost=True)
    assert y.tobytes() == X.data.tobytes()
    assert cost.tobytes() == np.abs(X.data).tobytes()
    return X.data


def expect(texts: list[str]) -> None:
    found, wanted = read(texts), np.array([float(text) for text in texts])
    wrong = np.flatnonzero(found.view(np.uint64) != wanted.view(np.uint64))
    assert not len(wrong), [(texts[k], found[k], wanted[k]) for k in wrong[:5]]


def doubles(rng: random.Random, count: int) -> list[float]:
    """Finite numbers, every bit pattern as likely as every other."""
    numbers = []
    while len(numbers) < count:
        number = struct.unpack("d", rng.randbytes(8))[0]
        if math.isfinite(number):
            numbers.append(number)
    return numbers


def test_shortest_digits():
    expect([repr(x) for x in doubles(random.Random(0), 20_000)])


def test_seventeen_digits():
    expect([f"{x:.16e}" for x in doubles(random.Random(1), 20_000)])


@pytest.mark.parametrize("digits", [1, 5, 15, 16, 17, 18, 19, 20, 21, 25, 40])
def test_whole_numbers_times_powers_of_ten(digits):
    rng = random.Random(digits)
    texts = []
    for _ in range(3_000):
        w = rng.randrange(10 ** (digits - 1), 10**digits)
        q = rng.randrange(-345 - digits, 309 - digits)
        texts += [f"{w}e{q}", f"-{w}E{q:+}"]
    expect(texts)


def test_usual_numbers():
    rng = random.Random(3)
    expect([f"{rng.uniform(-1000, 1000):.{rng.randrange(20)}f}" for _ in range(20_000)])
    expect([str(rng.randrange(10**6)) for _ in range(1_000)])


def test_half_way_between_two_numbers():
    """Exactly half way, and one digit to either side: the hardest cases there are."""
    texts = []
    for x in [abs(x) for x in doubles(random.Random(4), 300)] + [5e-324, 1.0, 2.0**53, 1e23]:
        above = math.nextafter(x, math.inf)
        if not math.isfinite(above):
            continue
        middle = (Decimal(x) + Decimal(above)) / 2
        exact = f"{middle:e}"
        mantissa, _, power = exact.partition("e")
        texts += [exact, f"{mantissa}1e{power}", f"{mantissa[:-1]}4e{power}"]
    expect(texts)


def test_half_way_with_few_digits():
    """Ties that 19 digits can spell: odd multiples of half a unit, in whole numbers."""
    rng = random.Random(5)
    texts = []
    for bits in range(54, 63):
        for _ in range(300):
            tie = (2 * rng.randrange(2**52, 2**53) + 1) << (bits - 54)
            texts += [str(tie), str(tie + 1), str(tie - 1)]
            if tie % 10 == 0:
                texts.append(f"{tie // 10}e1")
            texts.append(f"{tie * 5}e-1" if tie * 5 < 10**19 else str(tie))
    expect(texts)


@pytest.mark.parametrize(
    "text",
    [
        *["0", "-0", "0.0", "-0.0e5", "0e999", "0e-999", "000", "00.100", "1.", ".5", "+.5e-3"],
        *["1e-320", "4.9e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "1e-400"],
        *["2.2250738585072011e-308", "2.2250738585072014e-308", "2.225073858507201e-308"],
        *["1.7976931348623157e308", "1.7976931348623158e308", "179769313486231580793e288"],
        *["9007199254740993", "9007199254740992", "9223372036854775807", "18446744073709551615"],
        *["9999999999999999999", "10000000000000000000", "1e22", "1e23", "123456789e-22"],
        *["0." + "0" * 400 + "1", "1" + "0" * 300, "0" * 50 + "7", "1" * 300, "0." + "3" * 500],
        *["8.5e-05", "1E5", "1e+5", "1e05", "1e0000000000000000000001", "1e-00000000000000000400"],
        *["6929495644600919.5", "3.2378839133029012895883524125015321748630094e-297"],
        *["7.3177701707893310e+15", "1.00000005960464477550", "0.500000000000000166533453693773"],
    ],
)
def test_special_numbers(text):
    expect([text])


@pytest.mark.parametrize(
    "text", ["1.7976931348623159e308", "1e309", "1e400", "9" * 310, "1e99999999999"]
)
def test_too_large(text):
    with pytest.raises(ValueError, match="is beyond the largest float64; rescale the data"):
        load_svmlight(io.BytesIO(f"1 1:{text}".encode()))
    with pytest.raises(ValueError, match=r":1:1: label .* is beyond the largest float64"):
        load_svmlight(io.BytesIO(f"{text} 1:1".encode()))


def test_float32_is_the_float64_rounded_and_never_infinite():
    numbers = [0.1, 1e-320, 3.4028235e38, 3.4028235677973362e38, 1 / 3]
    text = " ".join(f"{k + 1}:{x!r}" for k, x in enumerate(numbers)).encode()
    X, _ = load_svmlight(io.BytesIO(b"1 " + text), dtype=np.float32)
    assert X.dtype == np.float32
    assert X.data.tobytes() == np.array(numbers).astype(np.float32).tobytes()
    for text in (
        b"1 7:3.4028235677973366e38",
        b"1 7:1e39",
        b"1 7:340282356779733661637539395458142568447.5",
    ):
        with pytest.raises(ValueError, match=r"<file>:1:5: value .* is beyond the largest float32"):
            load_svmlight(io.BytesIO(text), dtype=np.float32)


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(finite, min_size=1, max_size=30), st.lists(finite, min_size=1, max_size=30))
@example([0.0, -0.0], [5e-324, -1.7976931348623157e308, 2.2250738585072014e-308])
def test_round_trip(values, labels):
    """Any doubles, subnormal ones too, come back with the same bits."""
    rows = len(labels)
    X = np.resize(np.array(values), (rows, len(values)))
    target = io.BytesIO()
    dump_svmlight(X, labels, target, cost=np.abs(labels))
    Y, y, cost = load_svmlight(
        io.BytesIO(target.getvalue()), n_features=len(values), zero_based=False, cost=True
    )
    dense = np.where(X == 0.0, 0.0, X)  # zeros of an array are not written
    assert Y.toarray().tobytes() == dense.tobytes()
    assert y.tobytes() == np.array(labels).tobytes()
    assert cost.tobytes() == np.abs(labels).tobytes()


decimals = st.from_regex(
    r"[+-]?([0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?", fullmatch=True
)


@given(st.lists(decimals, min_size=1, max_size=8))
def test_any_decimal_number(texts):
    texts = [text for text in texts if text.isascii() and math.isfinite(float(text))]
    if texts:
        expect(texts)
