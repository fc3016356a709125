"""A stable sort has one answer: numpy's, for any scores and any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.risks import order as module
from cutplane.risks.order import ScoreOrder

TINY = np.finfo(float).smallest_subnormal


def clustered(rng, rows):
    """All but two scores share their leading 40 bits, on the line and in their bits."""
    scores = 1.0 + 1e-12 * rng.random(rows)
    scores[:2] = [-1e300, 1e300]
    return scores


KINDS = {
    "normal": lambda rng, rows: rng.normal(size=rows),
    "shifted": lambda rng, rows: 1e9 + rng.normal(size=rows),
    "few values": lambda rng, rows: rng.integers(-3, 4, rows) / 3.0,
    "many values twice": lambda rng, rows: rng.integers(0, rows, rows) * 0.1,
    "ascending": lambda rng, rows: np.sort(rng.normal(size=rows)),
    "descending": lambda rng, rows: -np.sort(rng.normal(size=rows)),
    "equal": lambda rng, rows: np.full(rows, -2.5),
    "two": lambda rng, rows: rng.choice([0.5, np.nextafter(0.5, 1.0)], rows),
    "zeros": lambda rng, rows: rng.choice([-0.0, 0.0, TINY, -TINY], rows),
    "zeros and far": lambda rng, rows: rng.choice([-0.0, 0.0, TINY, 1e200], rows),
    "subnormal": lambda rng, rows: TINY * rng.integers(-rows, rows, rows),
    "infinite": lambda rng, rows: rng.choice([-np.inf, np.inf, -0.0, 0.0, 1.0], rows),
    "one infinite": lambda rng, rows: np.append(rng.normal(size=rows - 1), -np.inf),
    "outlier": lambda rng, rows: np.append(rng.normal(size=rows - 1), 1e12),
    "sizes": lambda rng, rows: rng.normal(size=rows) * 10.0 ** rng.uniform(-300, 300, rows),
    "widest": lambda rng, rows: rng.uniform(-1.0, 1.0, rows) * np.finfo(float).max,
    "clustered": clustered,
}
FEW = module._FEW
SIZES = [2, 3, 17, FEW - 1, FEW, FEW + 1, 4096, 20_011]


@pytest.fixture(scope="module", params=[1, 2, 3])
def executor(request):
    if request.param == 1:
        yield SerialExecutor()
    else:
        with ThreadExecutor(request.param) as pool:
            yield pool


@pytest.fixture
def small_parts(monkeypatch):
    """Threads take part and numpy does not, even in small problems."""
    monkeypatch.setattr(module, "_FEW", 1)
    monkeypatch.setattr(module, "_ROWS_PER_PART", 10)


def check(order, scores, executor):
    kept = scores.copy()
    found = order.sort(scores, executor)
    assert found.dtype == np.uint32
    np.testing.assert_array_equal(found, np.argsort(scores, kind="stable"))
    np.testing.assert_array_equal(scores, kept)


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_order(kind, rows, executor):
    check(ScoreOrder(rows), KINDS[kind](np.random.default_rng(rows), rows), executor)


@pytest.mark.parametrize("rows", [2, 5, 20, 100, 1000, 20_011])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("small_parts")
def test_order_in_parts(kind, rows, executor):
    check(ScoreOrder(rows), KINDS[kind](np.random.default_rng(rows), rows), executor)


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=40))
def test_any_numbers(numbers):
    scores = np.tile(np.array(numbers), 50)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FEW", 1)
        check(ScoreOrder(len(scores)), scores, SerialExecutor())


@pytest.mark.parametrize("rows", [0, 1])
def test_nothing_to_sort(rows):
    assert ScoreOrder(rows).sort(np.zeros(rows), SerialExecutor()).tolist() == [0] * rows


@pytest.mark.usefixtures("small_parts")
def test_each_way_of_sorting_is_used():
    """Even scores go by the line, uneven ones by bits, clustered ones to numpy."""
    rng = np.random.default_rng(0)
    rows = 100_000
    order = ScoreOrder(rows)
    sort_by, tried = order._sort_by, []

    def noted(key, *others):
        tried.append((key[0], sort_by(key, *others)))
        return tried[-1][1]

    order._sort_by = noted
    for kind, expected in {
        "normal": [(False, True)],
        "sizes": [(False, False), (True, True)],
        "clustered": [(False, False), (True, False)],
    }.items():
        tried.clear()
        check(order, KINDS[kind](rng, rows), SerialExecutor())
        assert tried == expected, kind


def test_buffers_are_used_again():
    rng = np.random.default_rng(0)
    order = ScoreOrder(5000)
    first = order.sort(rng.normal(size=5000), SerialExecutor())
    for kind in KINDS:
        check(order, KINDS[kind](rng, 5000), SerialExecutor())
    assert order.sort(rng.normal(size=5000), SerialExecutor()) is first


@pytest.mark.parametrize("share", [0.001, 0.5, 1.0])
@pytest.mark.parametrize("rows", [100, 50_000])
def test_not_a_number_is_somewhere(rows, share, executor):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=rows)
    scores[rng.random(rows) < share] = np.nan
    scores[3] = -np.nan
    found = ScoreOrder(rows).sort(scores, executor)
    np.testing.assert_array_equal(np.sort(found), np.arange(rows))


@pytest.mark.parametrize("place", [0, 40_000, 99_999])
def test_one_number_missing(place, executor):
    """Wherever it is, whichever thread meets it."""
    scores = np.random.default_rng(0).normal(size=100_000)
    scores[place] = np.nan
    found = ScoreOrder(len(scores)).sort(scores, executor)
    there = found[found != place]
    assert len(there) == len(scores) - 1
    assert (np.diff(scores[there]) >= 0.0).all()


@pytest.mark.parametrize("rows", [-1, 1 << 32])
def test_too_many_rows(rows):
    with pytest.raises(ValueError, match=r"2\*\*32"):
        ScoreOrder(rows)
