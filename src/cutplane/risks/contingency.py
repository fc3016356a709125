"""Losses of a contingency table, and the table that violates its margin most.

Of p positive and n negative rows, m = p + n, a prediction finds a true and b false positives.
A measure is a loss Δ(tp, fp, fn, tn) ∈ [0, 1] of the counts (a, b, p − a, n − b). The risk needs

    max over 0 ≤ a ≤ p, 0 ≤ b ≤ n of  V(a, b) = Δ(a, b) + g[a] + h[b],

where −m·g[a] is the sum of the p − a lowest scores of positives, and m·h[b] that of the b highest
scores of negatives. There are (p + 1)(n + 1) tables, too many to look at. A measure declares a
property that makes the search faster:

**ratio.** Δ is a ratio of sums of the counts: what is wrong over what is wrong or right,

    Δ = (c·fp + d·fn)/(r·tp + c·fp + d·fn + t·tn)    with weights r, c, d, t ≥ 0 and t ≤ c,

which is concave in b. The steps of h are the falling scores of the negatives, so h is concave, too,
and V gains from one more false positive only up to the best b of a row. One walk over the positives
follows this b from row to row: it moves little, and only as far as V gains. So the walk visits
O(m) tables. Fβ, Jaccard and the balanced error are of this kind:

    Fβ        r = 1 + β², c = 1, d = β², t = 0
    Jaccard   r = c = d = 1, t = 0
    balanced  r = c = d = t = 1, of counts that are divided by the size of their class

**size.** If Δ depends on the number of predicted positives a + b alone, the worst table of a size
consists of the highest scores of both classes together, which are m + 1 tables after a merge. The
quantification losses, which compare a + b with p, are of this kind.

**corners, tables.** Otherwise the search divides the tables into at most 512 × 512 tiles. The
largest Δ, g and h in a tile bound V. The search opens tiles in falling order of this bound, until
no tile can beat the best table. If the loss is quasi-convex in a and in b (it falls, grows, or
first falls and then grows), it is largest at a corner of the tile. G-mean and Matthews' coefficient
are monotone in both; Qβ is the harmonic mean of two concave functions, which is concave. If nothing
is known about a loss, the bound takes 1 for the largest Δ until the tile is opened, and the true
value from then on. So the search never looks at tables whose g[a] + h[b] is more than 1 below the
best V. (With few rows, it looks at all tables once.) The order of the tiles follows the bounds at
the start. So the result does not depend on which tiles were opened before; they only rule out more
tiles.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from ..loops.measures import worst_of_ratio
from .base import digest_of

Counts = np.ndarray
Loss = Callable[..., Any]

# Tiles per side. The bounds of all tiles, 512², take about as long as sorting 10⁵ scores.
TILES = 512
# Tables that are evaluated together; each array of them takes 8 MB.
BLOCK = 1 << 20
# If nothing is known about a loss, and there are at most so many tables, all are evaluated first,
# which takes less than a second.
FEW_TABLES = 16 * BLOCK
# How far rounding may take a loss out of [0, 1].
OUTSIDE = 1e-9


@dataclass(frozen=True)
class TableMeasure:
    """A loss of a contingency table.

    Attributes
    ----------
    name : str
    loss : callable
        ``loss(tp, fp, fn, tn)`` of float64 arrays of one shape; values in [0, 1].
    search : {'ratio', 'size', 'corners', 'tables'}
        The property of the loss; see the module. 'ratio': it is a ``Ratio``. 'size': it is a
        function of tp + fp alone. 'corners': it is quasi-convex in tp and in fp. 'tables': none of
        these is known.
    """

    name: str
    loss: Loss
    search: str = "tables"


# -- the losses -----------------------------------------------------------------
# Each is exactly 0 for the perfect table in floating point, too.


@dataclass(frozen=True)
class Ratio:
    """A loss wrong / (wrong + right), where wrong = fp·FP + fn·FN and right = tp·TP + tn·TN.

    TP, FP, FN and TN are the counts of a table.

    Attributes
    ----------
    tp, fp, fn, tn : float
        The weights of the counts; ``fp`` is at least ``tn``.
    rates : bool
        Whether the counts of each class are first divided by the size of the class.
    """

    tp: float = 1.0
    fp: float = 1.0
    fn: float = 1.0
    tn: float = 0.0
    rates: bool = False

    def weights(self, positives: Any, negatives: Any) -> tuple[Any, Any, Any, Any]:
        """The weights of tp, fp, fn and tn; with ``rates`` in proportion to the divided ones."""
        p, n = (negatives, positives) if self.rates else (1.0, 1.0)
        return p * self.tp, n * self.fp, p * self.fn, n * self.tn

    def __call__(self, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
        right, alarm, miss, rest = self.weights(tp + fn, fp + tn)
        wrong = alarm * fp + miss * fn
        return wrong / (right * tp + wrong + rest * tn)


def fbeta(beta: float) -> Ratio:
    """1 − Fβ: recall counts β times as much as precision."""
    return Ratio(tp=1.0 + beta**2, fn=beta**2)


def g_mean(tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
    """1 − the geometric mean of both classes' recall."""
    return 1.0 - np.sqrt(tp / (tp + fn) * (tn / (fp + tn)))


def matthews(tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
    """½(1 − Matthews' correlation coefficient), which is 0 if one class only is predicted."""
    size = np.sqrt((tp + fp) * (tp + fn)) * np.sqrt((tn + fp) * (tn + fn))
    return 0.5 * (1.0 - (tp * tn - fp * fn) / np.where(size > 0.0, size, np.inf))


def absolute_error(tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
    """Absolute error of the share of positives: |fp − fn|/m."""
    return np.abs(fp - fn) / (tp + fp + fn + tn)


def relative_absolute_error(tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
    """Relative absolute error of the classes' shares, over the largest it can be.

    The mean over two classes of |p̂ − p|/p is in proportion to |fp − fn|.
    """
    return np.abs(fp - fn) / np.maximum(tp + fn, fp + tn)


def nkld(tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
    """Normalised Kullback-Leibler divergence tanh(½ KLD) of the predicted share of positives.

    Shares are smoothed by half a row, so that predicting one class only has a finite KLD.
    """
    m = tp + fp + fn + tn + 1.0
    share, predicted = (tp + fn + 0.5) / m, (tp + fp + 0.5) / m
    divergence = share * np.log(share / predicted)
    divergence += (1.0 - share) * np.log((1.0 - share) / (1.0 - predicted))
    return np.tanh(0.5 * np.maximum(divergence, 0.0))


def q_beta(beta: float) -> Loss:
    """1 − Qβ: the Fβ-mean of recall and 1 − |fp − fn|/max(p, n) (Barranquero et al. 2015)."""
    return partial(_q_beta, beta)


def _q_beta(beta: float, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
    recall = tp / (tp + fn)
    quantification = 1.0 - np.abs(fp - fn) / np.maximum(tp + fn, fp + tn)
    size = beta**2 * recall + quantification
    product = (1.0 + beta**2) * recall * quantification
    return 1.0 - product / np.where(size > 0.0, size, 1.0)


# Names of measures of a table. Those of WITH_BETA make a loss of their parameter.
TABLE_MEASURES = {
    "f1": TableMeasure("f1", fbeta(1.0), "ratio"),
    "fbeta": TableMeasure("fbeta", fbeta, "ratio"),
    # Intersection over union of the true and the predicted positives.
    "jaccard": TableMeasure("jaccard", Ratio(), "ratio"),
    # The mean of both classes' error rates: 1 − balanced accuracy.
    "balanced_error": TableMeasure("balanced_error", Ratio(tn=1.0, rates=True), "ratio"),
    "g_mean": TableMeasure("g_mean", g_mean, "corners"),
    "matthews": TableMeasure("matthews", matthews, "corners"),
    "absolute_error": TableMeasure("absolute_error", absolute_error, "size"),
    "relative_absolute_error": TableMeasure(
        "relative_absolute_error", relative_absolute_error, "size"
    ),
    "nkld": TableMeasure("nkld", nkld, "size"),
    "q_beta": TableMeasure("q_beta", q_beta, "corners"),
}
WITH_BETA = ("fbeta", "q_beta")


def table_measure(measure: str | Loss, beta: float = 1.0) -> TableMeasure:
    """A measure by its name, or a user's loss.

    Parameters
    ----------
    measure : str or callable
        A name of ``TABLE_MEASURES``, or ``loss(tp, fp, fn, tn)`` of arrays.
    beta : float, default=1
        For the measures that have one.
    """
    if callable(measure):
        name = getattr(measure, "__qualname__", type(measure).__name__)
        return TableMeasure(name, partial(checked, name, measure))
    found = TABLE_MEASURES[measure]
    if measure in WITH_BETA:
        return TableMeasure(f"{measure} {beta!r}", found.loss(beta), found.search)
    return found


def checked(name: str, loss: Loss, tp: Counts, fp: Counts, fn: Counts, tn: Counts) -> Counts:
    """The values of a user's loss for some tables. If they are wrong, an error says why."""
    counts = {"tp": tp, "fp": fp, "fn": fn, "tn": tn}
    try:
        values = np.asarray(loss(*(count.copy() for count in counts.values())), np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"measure={name} cannot take arrays of counts ({error}); write "
            "loss(tp, fp, fn, tn) with numpy's functions, and np.where in place of if"
        ) from error
    if values.shape != tp.shape:
        raise ValueError(
            f"measure={name} returned an array of shape {values.shape} for counts of shape "
            f"{tp.shape}; it must return one loss per table: write it with numpy's functions"
        )
    for bad, text in (
        (~np.isfinite(values), "is not a number; say what it is there, by np.where say"),
        ((values < -OUTSIDE) | (values > 1.0 + OUTSIDE), "is not in [0, 1]; scale the loss"),
    ):
        if bad.any():
            first = tuple(where[0] for where in np.nonzero(bad))
            table = ", ".join(f"{key}={count[first]:.0f}" for key, count in counts.items())
            raise ValueError(f"measure={name} is {values[first]:g} for {table}, which {text}")
    return np.clip(values, 0.0, 1.0)


# -- the search -------------------------------------------------------------------


class Ranked(NamedTuple):
    """Scores of the positives, then of the negatives, each from high to low, in two numbers."""

    high: np.ndarray
    low: np.ndarray


class Worst(NamedTuple):
    """The value of the risk, and the table where it is attained."""

    value: float
    true_positives: int
    false_positives: int


class Tables(ABC):
    """All tables of p positive and n negative rows, under one measure.

    Parameters
    ----------
    measure : TableMeasure
    positives, negatives : int
        p and n, at least 1.

    Attributes
    ----------
    looked_at : int
        Number of tables whose loss has been computed.
    """

    def __init__(self, measure: TableMeasure, positives: int, negatives: int) -> None:
        self.measure = measure
        self.p, self.n = positives, negatives
        self.looked_at = 0

    def losses(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Δ of the tables (a, b), of whatever shape these have together."""
        tp, fp = np.asarray(np.zeros(b.shape) + a), np.asarray(np.zeros(a.shape) + b)
        self.looked_at += tp.size
        return self.measure.loss(tp, fp, self.p - tp, self.n - fp)

    @abstractmethod
    def worst(self, g: np.ndarray, h: np.ndarray, scores: Ranked, rounding: float) -> Worst:
        """The table of largest V.

        g and h are finite sums of the scores, of shapes (p + 1,) and (n + 1,). With ``rounding`` 0
        the search finds the table. Otherwise ``rounding`` is a bound on the rounding error of a
        loss; for a ``Ratio`` a relative one. The returned value is then at least V of every
        table in exact arithmetic, provided that g and h are at least the exact sums. A loss that is
        computed as 0 is exactly 0.
        """

    def digest(self) -> bytes:
        """A fingerprint of the measure."""
        return digest_of(self.measure.name)


class RatioTables(Tables):
    """Tables of a loss that is a ``Ratio``."""

    def __init__(self, measure: TableMeasure, positives: int, negatives: int) -> None:
        super().__init__(measure, positives, negatives)
        self._weights = cast(Ratio, measure.loss).weights(float(positives), float(negatives))

    def worst(self, g: np.ndarray, h: np.ndarray, scores: Ranked, rounding: float) -> Worst:
        steps = scores.high[self.p :] / (self.p + self.n)
        value, a, b, visited = worst_of_ratio(self._weights, g, h, steps, rounding)
        self.looked_at += visited
        return Worst(value, a, b)


class SizeTables(Tables):
    """Tables of a loss that depends on tp + fp alone."""

    def worst(self, g: np.ndarray, h: np.ndarray, scores: Ranked, rounding: float) -> Worst:
        order = np.lexsort((scores.low, scores.high))[::-1]
        a = np.concatenate([[0], np.cumsum(order < self.p)])
        b = np.arange(self.p + self.n + 1) - a
        losses = self.losses(a, b)
        values = losses + rounding * (losses > 0.0) + g[a] + h[b]
        best = int(np.argmax(values))
        return Worst(float(values[best]), int(a[best]), int(b[best]))


class TiledTables(Tables):
    """Tables of a loss that is quasi-convex in tp and in fp: it is largest at a tile's corner."""

    def __init__(self, measure: TableMeasure, positives: int, negatives: int) -> None:
        super().__init__(measure, positives, negatives)
        self._height, self._width = (-(-(count + 1) // TILES) for count in (self.p, self.n))
        self._rows = np.arange(0, self.p + 1, self._height)
        self._columns = np.arange(0, self.n + 1, self._width)
        last_rows = np.append(self._rows[1:] - 1, self.p)
        last_columns = np.append(self._columns[1:] - 1, self.n)
        self._first, self._top = self._bounds(last_rows, last_columns)
        self._promised = self._top.copy()

    def _bounds(
        self, last_rows: np.ndarray, last_columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Δ at the first table of every tile, and an upper bound on the largest Δ of the tile."""
        corners = [
            self.losses(a[:, None], b)
            for a in (self._rows, last_rows)
            for b in (self._columns, last_columns)
        ]
        return corners[0], np.maximum.reduce(corners)

    def worst(self, g: np.ndarray, h: np.ndarray, scores: Ranked, rounding: float) -> Worst:
        values = self._first + rounding * (self._first > 0.0)
        values += g[self._rows][:, None] + h[self._columns]
        i, j = np.unravel_index(np.argmax(values), values.shape)
        best = Worst(float(values[i, j]), int(self._rows[i]), int(self._columns[j]))
        largest = np.maximum.reduceat(g, self._rows)[:, None]
        largest = largest + np.maximum.reduceat(h, self._columns)
        bounds, promised = (
            (top + rounding * (top > 0.0) + largest).ravel() for top in (self._top, self._promised)
        )
        tiles = np.flatnonzero(bounds > best.value)
        tiles = tiles[np.argsort(-promised[tiles], kind="stable")]
        most = max(1, BLOCK // (self._height * self._width))
        at_once, start = 1, 0
        while start < len(tiles) and promised[tiles[start]] > best.value:
            some = tiles[start : start + at_once]
            start += at_once
            at_once = min(2 * at_once, most)
            some = some[bounds[some] > best.value]
            if len(some):
                found = self._worst_within(some, g, h, rounding, largest, best.value)
                best = found if found.value > best.value else best
        return best

    def _worst_within(
        self,
        tiles: np.ndarray,
        g: np.ndarray,
        h: np.ndarray,
        rounding: float,
        largest: np.ndarray,
        least: float,
    ) -> Worst:
        """The table of largest V in some tiles, if V is above ``least``.

        ``largest`` has the largest g + h of every tile. This also stores the tiles' largest Δ.
        """
        row, column = np.unravel_index(tiles, self._top.shape)
        a = self._rows[row][:, None, None] + np.arange(self._height)[:, None]
        b = self._columns[column][:, None, None] + np.arange(self._width)
        a, b = np.minimum(a, self.p), np.minimum(b, self.n)
        losses = self.losses(a, b)
        tops = losses.max(axis=(1, 2))
        self._top.flat[tiles] = tops
        kept = tops + rounding * (tops > 0.0) + largest.flat[tiles] > least
        a, b, losses = a[kept], b[kept], losses[kept]
        if not len(losses):
            return Worst(-math.inf, 0, 0)
        values = losses + rounding * (losses > 0.0) + g[a] + h[b]
        tile, i, j = np.unravel_index(np.argmax(values), values.shape)
        return Worst(float(values[tile, i, j]), int(a[tile, i, 0]), int(b[tile, 0, j]))


class AnyTables(TiledTables):
    """Tables of a user's loss, of which only is known that it lies in [0, 1]."""

    def _bounds(
        self, last_rows: np.ndarray, last_columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As in the base class: from all tables if they are few; else 1 until a tile is opened."""
        if (self.p + 1) * (self.n + 1) <= FEW_TABLES and self.n < BLOCK:
            first = np.empty((len(self._rows), len(self._columns)))
            top = np.empty_like(first)
            for i, (a, last) in enumerate(zip(self._rows, last_rows, strict=True)):
                every = self.losses(np.arange(a, last + 1)[:, None], np.arange(self.n + 1))
                first[i] = every[0, self._columns]
                top[i] = np.maximum.reduceat(every.max(axis=0), self._columns)
            return first, top
        # A loss may divide by 0 if a class is predicted never or always. So check these tables now.
        every_a, every_b, none = np.arange(self.p + 1), np.arange(self.n + 1), np.array([0])
        for tp, fp in ((none, every_b), (every_a, none)):
            self.losses(tp, fp)
            self.losses(self.p - tp, self.n - fp)
        first = self.losses(self._rows[:, None], self._columns)
        return first, np.ones_like(first)

    def digest(self) -> bytes:
        """A fingerprint of the measure, from its values."""
        return digest_of(self.measure.name, self._promised, self._first)


# The tables by the search that a measure allows.
TABLES: dict[str, type[Tables]] = {
    "ratio": RatioTables,
    "size": SizeTables,
    "corners": TiledTables,
    "tables": AnyTables,
}
