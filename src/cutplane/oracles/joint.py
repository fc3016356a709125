"""Minimising a smooth convex function of a step k and a bias b together, in few looks.

    F(k, b) = ½A k² + B k + R(k, b)   over 0 < k ≤ longest.

A look gives R with its first and second derivatives at several (k, b) in one pass over the rows.
From one such sample follow, up to third order in how far b is from the best one for this k,

    φ(k) = min_b F(k, b),    φ'(k),    φ''(k),    b*(k) = argmin_b F(k, b),    b*'(k).

Between two samples φ' and b* are cubics with these values and slopes: the zero of φ' is where
to look next. The end of the line is among the samples, and so are the point at which the next cut
will be made and its bias: all three lie on the same line, so that nobody has to look for a bias
later. Newton's decrement ½ gᵀH⁻¹g is about how far a sample is above the minimum. Without a
free bias the same is done for k alone.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..risks import Scores
from .point import Line, Point

# Looks before a search is given up.
MOST_LOOKS = 6
# Where to look first, in units of the step that is expected; also at 0, where a cut is expected,
# and at 1.
GRID = (0.5, 1.5)
# Newton's steps in the bias are followed so far; the curvature may have grown e times then.
FOLLOWED = 0.5
# How far from that of the start the bias of the end is looked for, at least.
LEAST_REACH = 1.0
# Steps so close to each other are the same.
NEAR = 0.1
# Parts of the tolerance that the decrement of the point found may be, and how far it may be above
# the minimum over the bias alone; the same of the next cut.
ENOUGH, BIAS_ENOUGH, CUT_ENOUGH = 0.5, 0.1, 0.25
# By what coefficients of the heavier class may be multiplied, at least.
LEAST_BALANCE = 0.5
# How much farther to look at a time where the function still falls.
GROW = 5.0
# Derivatives in the bias among the numbers of a sample.
OF_BIAS = [2, 4, 5]

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, order=True)
class Sample:
    """F at (k, b), and what its derivatives say of the minimum over b for this k.

    Attributes
    ----------
    k, bias : float
    risk, value : float
        R and F there.
    excess : float
        How far F is above φ(k).
    slope, curvature : float
        φ'(k) and φ''(k).
    best, turn : float
        b*(k) and b*'(k).
    above, below : float
        Sums of the positive and of minus the negative derivatives of R by score.
    """

    k: float
    bias: float
    risk: float
    value: float
    excess: float
    slope: float
    curvature: float
    best: float
    turn: float
    above: float
    below: float

    @classmethod
    def make(cls, line: Line, k: float, bias: float, sums: np.ndarray) -> Sample:
        """From R, its derivatives, and the sum of all sizes of derivatives by score."""
        risk, by_k, by_bias, by_k_k, by_k_bias, by_bias_bias, size = sums.tolist()
        height = line.height(k, risk, by_k)
        flat = not by_bias_bias > 0.0  # then no row has a loss
        step = 0.0 if flat else _followed(-by_bias / by_bias_bias)
        turn = 0.0 if flat else -by_k_bias / by_bias_bias
        return cls(
            k,
            bias,
            risk,
            height.value,
            -0.5 * step * by_bias,
            height.slope + step * by_k_bias,
            by_k_k + line.curvature + turn * by_k_bias,
            bias + step,
            turn,
            0.5 * (size + by_bias),
            0.5 * (size - by_bias),
        )

    @property
    def decrement(self) -> float:
        """How far F is above its minimum, if it is nearly quadratic."""
        if self.slope == 0.0:
            return self.excess
        down = 0.5 * self.slope * self.slope
        return self.excess + (down / self.curvature if self.curvature > 0.0 else math.inf)

    def is_good(self, tolerance: float) -> bool:
        """Whether it is near enough to the minimum."""
        return self.decrement <= ENOUGH * tolerance and self.excess <= BIAS_ENOUGH * tolerance

    def is_finite(self) -> bool:
        """Whether all of it are numbers that mean something."""
        return math.isfinite(self.value + self.slope + self.curvature + self.best + self.turn)


def _followed(step: float) -> float:
    """As much of a Newton step as leads not too far where curvature changes by e per unit."""
    far = abs(step) - FOLLOWED
    return step if far <= 0.0 else math.copysign(FOLLOWED + math.log1p(far), step)


@dataclass(frozen=True)
class Guess:
    """Where the minimum is expected, and about how high."""

    k: float
    bias: float
    value: float


@dataclass(frozen=True)
class Balance:
    """The bias of a cut, and by what coefficients of one sign are multiplied to sum to zero."""

    bias: float
    sign: float
    factor: float


@dataclass(frozen=True)
class Found:
    """The minimum on a line within the tolerance.

    Attributes
    ----------
    k, bias : float
    cut : float
        The k of the next cut, or 1.
    end : Sample
        Of the end of the line.
    position : float or None
        λ of the next cut, if it is known.
    balance : Balance or None
        Of this cut, if the bias is free.
    """

    k: float
    bias: float
    cut: float
    end: Sample
    position: float | None = None
    balance: Balance | None = None

    def questions(self, start: Point, end: Point, point: Point, coef: Any) -> list[tuple[Any, ...]]:
        """What the next cut asks of passes, at ``point``, once the start of the line has moved."""
        if self.position is None:
            return []
        balance = self.balance
        scale = [("scale", balance.sign, balance.factor)] if balance is not None else []
        bias = start.bias if balance is None else balance.bias
        return [
            ("blend", start.scores, end.scores, self.position, point.scores),
            ("fill", Scores(point.scores, bias), None, 0.0),
            *scale,
            ("offset",),
            ("gradients", coef),
        ]


class Profile:
    """Samples along a line, by k."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._samples: list[Sample] = []

    def add(self, sample: Sample) -> None:
        """Take a sample; of two for the same k the one with the better bias."""
        same = [other for other in self._samples if other.k == sample.k]
        if same and same[0].value <= sample.value:
            return
        for other in same:
            self._samples.remove(other)
        insort(self._samples, sample)

    def at(self, k: float) -> Sample:
        """The sample for a k that was looked at."""
        return next(sample for sample in self._samples if sample.k == k)

    def guess(self) -> Guess | None:
        """Where the minimum is expected; None if it is not beyond 0, or not on the line."""
        # Far out the signs of slopes may be wrong; then those of larger k are.
        high = next((sample for sample in self._samples if sample.slope >= 0.0), None)
        if high is self._samples[0]:
            return None
        low = self._samples[-1 if high is None else self._samples.index(high) - 1]
        if high is not None:
            return _between(low, high)
        if low.k >= self._line.longest:
            return None
        step = -low.slope / low.curvature if low.curvature > 0.0 else math.inf
        k = min(low.k + min(step, (GROW - 1.0) * max(low.k, 1e-3)), self._line.longest)
        fall = (k - low.k) * (low.slope + 0.5 * low.curvature * (k - low.k))
        return Guess(k, low.best + low.turn * (k - low.k), low.value - low.excess + fall)

    def bias_at(self, k: float) -> float:
        """The best bias expected for a k."""
        low = [sample for sample in self._samples if sample.k <= k]
        high = [sample for sample in self._samples if sample.k >= k]
        if low and low[-1].k == k:
            return low[-1].best
        if not low or not high:
            near = low[-1] if low else high[0]
            return near.best + near.turn * (k - near.k)
        a, b = low[-1], high[0]
        width = b.k - a.k
        ends = (a.best, width * a.turn, b.best, width * b.turn)
        return _cubic((k - a.k) / width, *ends)


def _cubic(t: float, low: float, low_slope: float, high: float, high_slope: float) -> float:
    """At t in [0, 1], the cubic with these values and slopes at 0 and 1."""
    rise = high - low
    bend = low_slope + high_slope - 2.0 * rise
    return low + t * (low_slope + t * (rise - low_slope - bend + t * bend))


def _between(low: Sample, high: Sample) -> Guess:
    """Where φ' = 0 between samples at which it is negative and not."""
    width = high.k - low.k
    ends = (low.slope, width * low.curvature, high.slope, width * high.curvature)
    first, last = 0.0, 1.0
    for _ in range(50):
        t = 0.5 * (first + last)
        if _cubic(t, *ends) < 0.0:
            first = t
        else:
            last = t
    t = last
    bias = _cubic(t, low.best, width * low.turn, high.best, width * high.turn)
    a, b, c, d = ends
    rise, bend = c - a, b + d - 2.0 * (c - a)
    # The integral of the cubic from 0 to t.
    area = t * (a + t * (b / 2.0 + t * ((rise - b - bend) / 3.0 + t * bend / 4.0)))
    return Guess(low.k + t * width, bias, low.value - low.excess + width * area)


class JointSearch:
    """Searches on one line.

    Parameters
    ----------
    line : Line
    evaluate : callable
        Several (k, b) → R and its derivatives, as ``Sample.make`` takes them, a row for each.
    free : bool, default=True
        Whether the bias is free; else it is that of both ends.
    """

    def __init__(
        self, line: Line, evaluate: Callable[[Points], np.ndarray], free: bool = True
    ) -> None:
        self._line = line
        self._evaluate = evaluate
        self._free = free
        self._profile = Profile(line)

    def _look(self, points: Sequence[tuple[float, float]]) -> list[Sample] | None:
        """Samples at some points; None if numbers are too large."""
        points = tuple(points)
        sums = self._evaluate(points)
        if not self._free:
            sums[:, OF_BIAS] = 0.0
        samples = [
            Sample.make(self._line, *point, row) for point, row in zip(points, sums, strict=True)
        ]
        if not all(sample.is_finite() for sample in samples):
            return None
        for sample in samples:
            self._profile.add(sample)
        return samples

    def find(self, step: float, cut: float) -> Found | None:
        """The minimum, and where the next cut will be; None if it is not found.

        Parameters
        ----------
        step, cut : float
            The k that is expected, and that of the next cut, positive.
        """
        line, profile = self._line, self._profile
        start = line.start
        if self._look(self._first_points(step, cut)) is None:
            return None
        tolerance = line.tolerance
        found: Sample | None = None
        position: float | None = None
        for _ in range(MOST_LOOKS):
            end = profile.at(1.0)
            guess = profile.guess() if found is None else Guess(found.k, found.bias, found.value)
            if guess is None or not 0.0 < guess.k <= line.longest:
                return None
            points: dict[str, tuple[float, float]] = {}
            if found is None:
                points["here"] = guess.k, guess.bias
            if line.position is not None:
                if position is None:
                    if line.end.rough:
                        line.end.risk = end.risk - end.excess
                    position = line.position(guess.k, start.risk - guess.value)
                k = guess.k + position * (1.0 - guess.k)
                if self._free:
                    points["cut"] = k, profile.bias_at(k)
            if line.end.rough and end.excess > tolerance:
                points["end"] = 1.0, end.best
            samples = self._look(list(points.values()))
            if samples is None:
                return None
            at = dict(zip(points, samples, strict=True))
            if found is None:
                if not at["here"].is_good(tolerance):
                    continue
                found = at["here"]
                if not found.value < start.risk:
                    return None
            end = profile.at(1.0)
            if "cut" not in at:
                return Found(found.k, found.bias, 1.0, end, position)
            if at["cut"].excess <= CUT_ENOUGH * tolerance:
                cut, balance = at["cut"].k, _balance(at["cut"])
                if balance.factor < LEAST_BALANCE:  # not much of the cut would be left
                    return Found(found.k, found.bias, cut, end)
                return Found(found.k, found.bias, cut, end, position, balance)
        return None

    def _first_points(self, step: float, cut: float) -> list[tuple[float, float]]:
        """Where to look first."""
        start, end, longest = self._line.start, self._line.end, self._line.longest
        steps = [0.0, *(min(step * part, longest) for part in GRID)]
        steps = [k for k in steps + [cut] * self._free if abs(k - 1.0) > NEAR]
        points = [(k, start.bias) for k in sorted(set(steps))]
        if not (self._free and end.rough):
            return [*points, (1.0, end.bias)]
        # The bias of the end jumps from line to line.
        reach = max(LEAST_REACH, abs(end.bias - start.bias))
        return [*points, *((1.0, start.bias + part * reach) for part in (-1.0, 0.0, 1.0))]


def _balance(sample: Sample) -> Balance:
    """The heavier class is scaled down."""
    if sample.above > sample.below:
        return Balance(sample.bias, 1.0, sample.below / sample.above)
    if sample.below > sample.above:
        return Balance(sample.bias, -1.0, sample.above / sample.below)
    return Balance(sample.bias, 1.0, 1.0)
