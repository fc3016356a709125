"""A risk of all scores at once: cuts, blends, line searches, and what they cost."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.sparse

from cutplane.data import as_blocks
from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.objective import Line, LinearOracle, ListwiseScoreRisk
from cutplane.risks.measures import TableRisk, TopRisk
from cutplane.risks.pairs import PairRisk

ROWS, FEATURES = 80, 4


def pair_value(targets, queries, scores) -> float:
    wanted = np.greater.outer(targets, targets) & np.equal.outer(queries, queries)
    losses = np.maximum(0.0, 1.0 - np.subtract.outer(scores, scores))
    return float(losses[wanted].mean())


def f1_value(labels, scores) -> float:
    """The largest over all tables of a true and b false positives."""
    m, p = len(labels), int(np.sum(labels > 0))
    high = np.append(0.0, np.cumsum(-np.sort(-scores[labels > 0])))
    wrong = np.append(0.0, np.cumsum(-np.sort(-scores[labels < 0])))
    a, b = np.arange(p + 1)[:, None], np.arange(m - p + 1)
    return float(np.max(1 - 2 * a / (p + a + b) + (wrong - (high[-1] - high)[:, None]) / m))


def top_value(labels, k, scores) -> float:
    m, p = len(labels), int(np.sum(labels > 0))
    high = np.append(0.0, np.cumsum(-np.sort(-scores[labels > 0])))
    wrong = np.append(0.0, np.cumsum(-np.sort(-scores[labels < 0])))
    values = []
    for a in range(max(0, k - (m - p)), min(k, p) + 1):
        e = min(k, p) - a
        change = e / m * (wrong[k - a] / (k - a) - (high[-1] - high[a]) / (p - a)) if e else 0.0
        values.append(1.0 - a / k + change)
    return max(values)


class Counted:
    """A risk that counts its evaluations."""

    def __init__(self, risk) -> None:
        self.risk, self.rows, self.calls = risk, risk.rows, 0

    def evaluate(self, *arguments):
        self.calls += 1
        return self.risk.evaluate(*arguments)


class Problem:
    """Data, a risk in the package and the same in numpy."""

    def __init__(self, kind: str, *, constant: float = 0.0, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(ROWS, FEATURES)) + 0.3
        self.constant = constant
        signal = self.X @ rng.normal(size=FEATURES) + rng.normal(size=ROWS)
        labels = np.where(signal > np.quantile(signal, 0.7), 1.0, -1.0)
        queries = rng.integers(0, 6, ROWS)
        self.make, self.value = {
            "roc area": (
                lambda: PairRisk(labels),
                functools.partial(pair_value, labels, np.zeros(ROWS)),
            ),
            "ranking": (
                lambda: PairRisk(signal, queries=queries),
                functools.partial(pair_value, signal, queries),
            ),
            "f1": (lambda: TableRisk(labels, "f1"), functools.partial(f1_value, labels)),
            "top": (lambda: TopRisk(labels, 15), functools.partial(top_value, labels, 15)),
        }[kind]

    def oracle(self, executor=None, block_numbers=40, sparse=False) -> LinearOracle:
        X = scipy.sparse.csr_array(self.X) if sparse else self.X
        score_risk = ListwiseScoreRisk(Counted(self.make()), executor or SerialExecutor())
        return LinearOracle(
            as_blocks(X, block_numbers=block_numbers), score_risk, constant=self.constant
        )

    def scores(self, w) -> np.ndarray:
        return self.X @ w[:FEATURES] + (self.constant * w[-1] if self.constant else 0.0)

    def risk(self, w) -> float:
        return self.value(self.scores(w))

    def random_w(self, rng, scale=1.0) -> np.ndarray:
        return scale * rng.normal(size=FEATURES + (self.constant != 0.0))


KINDS = ["roc area", "ranking", "f1", "top"]


@pytest.fixture(params=[(kind, c) for kind in KINDS for c in (0.0, 2.0)], ids=str)
def problem(request):
    kind, constant = request.param
    return Problem(kind, constant=constant)


@pytest.fixture
def oracle(problem):
    """Sparse with the constant feature, dense without."""
    return problem.oracle(sparse=problem.constant != 0.0)


def at(oracle, w):
    point = oracle.new_point()
    oracle.evaluate(w, point)
    return point


def assert_consistent(problem, oracle, point, w) -> None:
    """A point's scores, risk and plane are those of w, however it came there."""
    np.testing.assert_allclose(point.w, w, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(point.scores, problem.scores(w), rtol=1e-11, atol=1e-12)
    assert point.risk == pytest.approx(problem.risk(w), rel=1e-10, abs=1e-13)
    height = point.coef @ point.scores + point.offset
    assert height == pytest.approx(point.risk, rel=1e-10, abs=1e-12)
    gradient = problem.X.T @ point.coef
    if problem.constant:
        gradient = np.append(gradient, problem.constant * point.coef.sum())
    cut = oracle.cut(point)
    np.testing.assert_allclose(cut.a, gradient, rtol=1e-10, atol=1e-13)
    assert cut.offset == point.offset


# -- points and cuts ------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.0, 0.5, 30.0])
def test_a_point_by_numpy(problem, oracle, scale):
    w = problem.random_w(np.random.default_rng(0), scale)
    kept = w.copy()
    assert_consistent(problem, oracle, at(oracle, w), w)
    np.testing.assert_array_equal(w, kept)


@pytest.mark.parametrize("scale", [0.0, 0.3, 3.0, 100.0])
def test_a_cut_touches_and_lies_below(problem, oracle, scale):
    rng = np.random.default_rng(1)
    w = problem.random_w(rng, scale)
    cut = oracle.cut(at(oracle, w))
    size = 1.0 + abs(cut.offset) + np.abs(cut.a * w).sum()
    assert cut.a @ w + cut.offset == pytest.approx(problem.risk(w), abs=1e-12 * size)
    for other in (0.01, 0.3, 3.0, 100.0):
        for v in (problem.random_w(rng, other), w + problem.random_w(rng, 0.01 * other)):
            risk = problem.risk(v)
            assert cut.a @ v + cut.offset <= risk + 1e-12 * (size + risk)


@pytest.mark.parametrize("k", [0.0, 0.1, 1.0, 2.5])
def test_a_blend_is_the_point_between(problem, oracle, k):
    rng = np.random.default_rng(2)
    one, two = problem.random_w(rng), problem.random_w(rng, 3.0)
    start, end, into = at(oracle, one), at(oracle, two), oracle.new_point()
    w = one + k * (two - one)
    oracle.blend(start, end, k, into)
    assert_consistent(problem, oracle, into, w)
    assert_consistent(problem, oracle, start, one)
    assert_consistent(problem, oracle, end, two)
    between, cut = oracle.cut(start, end, k), oracle.cut(into)
    np.testing.assert_array_equal(between.a, cut.a)
    assert between.offset == cut.offset
    oracle.blend(start, end, k, start)  # in place
    assert_consistent(problem, oracle, start, w)


def test_a_cut_on_the_way_leaves_both_ends_alone(problem, oracle):
    rng = np.random.default_rng(3)
    one, two = problem.random_w(rng), problem.random_w(rng, 3.0)
    start, end = at(oracle, one), at(oracle, two)
    for k in (0.3, 0.005, 0.7):
        oracle.cut(start, end, k)
    assert_consistent(problem, oracle, start, one)
    assert_consistent(problem, oracle, end, two)


# -- lines ----------------------------------------------------------------------------


def lowest_on_line(value, high):
    """The minimum of a convex function over 0 ≤ k ≤ high, by ternary search."""
    low, top = 0.0, high
    for _ in range(60):
        one, two = low + (top - low) / 3.0, top - (top - low) / 3.0
        low, top = (low, two) if value(one) <= value(two) else (one, top)
    return min(value(low), value(top), value(0.0))


def lines(problem, C):
    """Lines of all lengths; the longest start the search far from its guess."""
    rng = np.random.default_rng(4)
    for scale in (0.01, 0.3, 1.0, 20.0):
        one, two = problem.random_w(rng, 0.5), problem.random_w(rng, scale)
        change = two - one

        def value(k, one=one, change=change):
            w = one + k * change
            return 0.5 * (w @ w - one @ one) / C + problem.risk(w)

        yield one, two, change @ change / C, one @ change / C, value


@pytest.mark.parametrize("C", [0.1, 10.0, 1e3])
@pytest.mark.parametrize("share", [1e-9, 1e-2])
def test_descent_ends_at_the_minimum_of_the_line(problem, oracle, C, share):
    """And what is left of the start is a point like any other, ready for the next line."""
    moved = 0
    for one, two, curvature, slope, value in lines(problem, C):
        tolerance = share * value(0.0)
        start, end = at(oracle, one), at(oracle, two)
        k = oracle.descend(Line(start, end, curvature, slope, tolerance))
        assert k >= 0.0
        moved += k > 0.0
        lowest = lowest_on_line(value, max(100.0, 2.0 * k))
        assert value(k) <= lowest + tolerance + 1e-12 * (1.0 + value(0.0))
        assert_consistent(problem, oracle, start, one + k * (two - one))
        assert_consistent(problem, oracle, end, two)
    assert moved >= 2


def test_descents_one_after_the_other(problem, oracle):
    """Buffers wander from point to point; none may be in two of them."""
    rng = np.random.default_rng(5)
    w = problem.random_w(rng, 0.5)
    start, end = at(oracle, w), oracle.new_point()
    C = 50.0
    for step in range(15):
        target = problem.random_w(rng, 0.5 + 0.2 * step)
        oracle.evaluate(target, end)
        change = target - w
        line = Line(start, end, change @ change / C, w @ change / C, 1e-4)
        before = 0.5 * w @ w / C + start.risk
        k = oracle.descend(line)
        w = w + k * change
        assert 0.5 * w @ w / C + problem.risk(w) <= before + 1e-12
        assert_consistent(problem, oracle, start, w)
        assert_consistent(problem, oracle, end, target)
        spare = oracle.score_risk.between(start, end, 0.2)
        buffers = [p.scores for p in (start, end, spare)] + [p.coef for p in (start, end, spare)]
        for i, one in enumerate(buffers):
            assert not any(np.shares_memory(one, other) for other in buffers[:i])


def test_a_line_that_rises_is_not_followed(problem, oracle):
    rng = np.random.default_rng(6)
    w = problem.random_w(rng)
    point, other = at(oracle, w), at(oracle, problem.random_w(rng))
    spent = oracle.score_risk.evaluations
    assert oracle.descend(Line(point, other, 1.0, 1e6, 0.0)) == 0.0
    assert oracle.score_risk.evaluations == spent  # the start's slope told
    assert_consistent(problem, oracle, point, w)


def test_a_line_to_the_same_point(problem, oracle):
    w = problem.random_w(np.random.default_rng(7))
    point, same = at(oracle, w), at(oracle, w.copy())
    assert oracle.descend(Line(point, same, 0.0, 0.0, 0.0)) == 0.0


def test_the_longest_step(problem, oracle):
    """Downhill for ever: the step ends where it must."""
    rng = np.random.default_rng(8)
    w = problem.random_w(rng)
    point, other = at(oracle, w), at(oracle, w + 1e-3 * problem.random_w(rng))
    assert oracle.descend(Line(point, other, 0.0, -1e3, 1e-9, longest=7.0)) == 7.0


# -- what it costs --------------------------------------------------------------------


def test_every_evaluation_is_counted(problem):
    oracle = problem.oracle()
    rng = np.random.default_rng(9)
    start, end = at(oracle, problem.random_w(rng)), at(oracle, problem.random_w(rng))
    assert oracle.score_risk.evaluations == 2
    oracle.cut(start)
    oracle.cut(end)
    assert oracle.score_risk.evaluations == 2  # a point keeps its plane
    oracle.cut(start, end, 0.3)
    assert oracle.score_risk.evaluations == 3
    oracle.blend(start, end, 0.5, oracle.new_point())
    assert oracle.score_risk.evaluations == 4
    oracle.descend(Line(start, end, 0.1, -0.1, 1e-6))
    oracle.cut(start)
    assert oracle.score_risk.evaluations == oracle.score_risk.risk.calls > 4


def test_a_search_takes_few_evaluations(problem):
    """On average at most five for a hundredth of what can be won."""
    oracle, spent, searches = problem.oracle(), 0, 0
    for C in (0.1, 10.0, 1e3):
        for one, two, curvature, slope, value in lines(problem, C):
            start, end = at(oracle, one), at(oracle, two)
            won = value(0.0) - lowest_on_line(value, 100.0)
            before = oracle.score_risk.evaluations
            k = oracle.descend(Line(start, end, curvature, slope, max(0.01 * won, 1e-12)))
            searches += k > 0.0
            spent += oracle.score_risk.evaluations - before
    assert searches >= 6
    assert spent <= 5 * searches


def test_the_answer_is_not_evaluated_again(problem, monkeypatch):
    """The search ends at a point that it has kept: nothing is evaluated after its last k."""
    rng = np.random.default_rng(10)
    oracle = problem.oracle()
    tried = []
    original = ListwiseScoreRisk.blend

    def watched(score_risk, start, end, k, into):
        tried.append(k)
        original(score_risk, start, end, k, into)

    monkeypatch.setattr(ListwiseScoreRisk, "blend", watched)
    for _ in range(10):
        one, two = problem.random_w(rng), problem.random_w(rng)
        start, end = at(oracle, one), at(oracle, two)
        tried.clear()
        k = oracle.descend(Line(start, end, 0.05, -0.1, 1e-5))
        if k not in (0.0, 1.0):
            assert len(set(tried)) == len(tried)
            assert k in tried


def test_the_end_is_not_evaluated_to_know_its_height(problem):
    """Where the minimum is far beyond the end, the first look is there."""
    rng = np.random.default_rng(11)
    oracle = problem.oracle()
    start = at(oracle, problem.random_w(rng))
    end = at(oracle, start.w * (1.0 + 1e-9))
    before = oracle.score_risk.evaluations
    k = oracle.descend(Line(start, end, 2.0, -6.0, 1e-3))
    assert k == pytest.approx(3.0, abs=0.05)
    assert oracle.score_risk.evaluations - before <= 3


# -- the same for any executor --------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bits_for_any_number_of_threads(kind, monkeypatch):
    monkeypatch.setattr("cutplane.objective.score_risk.CHUNK_NUMBERS", 10)
    monkeypatch.setattr("cutplane.objective.score_risk.WORTH_THREADS", 1)
    problem = Problem(kind, constant=1.0)
    rng = np.random.default_rng(12)
    one, two = problem.random_w(rng), problem.random_w(rng)
    found = []
    for executor in (SerialExecutor(), ThreadExecutor(2), ThreadExecutor(3)):
        with executor:
            oracle = problem.oracle(executor)
            assert len(oracle.matrix.blocks) > 5
            assert len(oracle.score_risk.slices) > 5
            start, end = at(oracle, one), at(oracle, two)
            first = start.risk
            k = oracle.descend(Line(start, end, 0.1, -0.3, 1e-6))
            cut = oracle.cut(start, end, 0.3)
            found.append((first, end.risk, start.risk, k, cut.offset, *cut.a, *start.scores))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("kind", KINDS)
def test_score_risks_share_nothing(kind):
    """Two oracles in turns answer as each alone."""
    problem = Problem(kind)
    rng = np.random.default_rng(13)
    points = [problem.random_w(rng) for _ in range(4)]

    def run(oracle):
        start, end = at(oracle, points[0]), oracle.new_point()
        for w in points[1:]:
            oracle.evaluate(w, end)
            k = oracle.descend(Line(start, end, 0.1, -0.3, 1e-6))
            yield k, start.risk, start.scores.tobytes(), oracle.cut(start, end, 0.1).a.tobytes()

    alone = list(run(problem.oracle()))
    together = list(zip(run(problem.oracle()), run(problem.oracle()), strict=True))
    assert together == [(answer, answer) for answer in alone]
