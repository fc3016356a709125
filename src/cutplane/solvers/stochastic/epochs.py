"""Epochs: every row of positive weight once, in random order. Serial by nature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...objective import RowOracle
from ...risks import Scores, Targets
from .shuffled_rows import shuffle
from .steps import Steps, StochasticSteps

TILE_ROWS = 32
SAMPLE_ROWS = 1000
FIRST_STEPS = tuple(4.0**k for k in range(24))
PROGRESS = 0.9


class Epochs:
    """A walk over the rows of an oracle's problem.

    Parameters
    ----------
    oracle : RowOracle
    steps : Steps
    calibrated : bool
        Whether t₀ is to be tried out on a sample; 0 if not.
    rng : numpy.random.Generator
        Deals out the rows and draws their order in every epoch.
    """

    def __init__(
        self, oracle: RowOracle, steps: Steps, calibrated: bool, rng: np.random.Generator
    ) -> None:
        self._oracle = oracle
        self._rng = rng
        self._steps = steps
        self._shuffled = shuffle(oracle.matrix, oracle.targets, rng)
        first_step = self._first_step() if calibrated else 0.0
        self._stepper = StochasticSteps(steps, oracle.dimension, first_step)
        self._coef = np.zeros(len(self._shuffled.source))

    @property
    def w(self) -> np.ndarray:
        """A copy of where the walk is."""
        return self._stepper.w.copy()

    @property
    def coef(self) -> np.ndarray:
        """Derivative of the loss in the score at each row's last visit, 0 before the first.

        In the domain of the loss's conjugate, row by row.
        """
        coef = np.zeros(len(self._oracle.targets.weights))
        coef[self._shuffled.source] = self._coef
        return coef

    def run(self, out_of_time: Callable[[], bool]) -> bool:
        """Visit every row once; False if time ran out on the way, after a block or more."""
        order = self._rng.permutation(len(self._shuffled.blocks))
        for visited, k in enumerate(order):
            if visited and out_of_time():
                return False
            rows = self._shuffled.blocks[k]
            self._stepper.visit(rows, self._order(rows.block.rows), self._coef[rows.place])
        return True

    def _order(self, count: int) -> np.ndarray:
        """The rows of a block, tile by tile: as good as random, at half the cache misses."""
        tiles = self._rng.permutation(-(-count // TILE_ROWS)) * TILE_ROWS
        order = (tiles[:, None] + self._rng.permutation(TILE_ROWS)).reshape(-1)
        return order[order < count]

    # -- the first step --------------------------------------------------------

    def _first_step(self) -> float:
        """t₀ by trial passes over a sample: the shortest steps that do almost as well as the best.

        The very best after a sample are too long for a run of several epochs,
        and chance picks the longer ones among many that do about as well.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # steps that are far too long
            values = np.nan_to_num([self._try(step) for step in FIRST_STEPS], nan=np.inf)
        finite = np.flatnonzero(np.isfinite(values))
        if len(finite) == 0:  # all are far too long
            return FIRST_STEPS[-1]
        best, start = values.min(), values[finite[-1]]  # the last hardly leaves w = 0
        good = values <= start - PROGRESS * (start - best)
        return FIRST_STEPS[int(np.flatnonzero(good)[-1])]

    def _try(self, first_step: float) -> float:
        """λ/2·|w|² + mean risk of a sample after one pass over it."""
        rows = self._shuffled.blocks[0].first(SAMPLE_ROWS)
        count, features = rows.block.rows, self._oracle.matrix.shape[1]
        # Without the cap, so that steps that need it look as bad as they are.
        walk = StochasticSteps(
            replace(self._steps, capped=False), self._oracle.dimension, first_step
        )
        scores = np.empty(count)
        walk.visit(rows, np.arange(count), scores)
        rows.block.scores(walk.w[:features], scores)
        constant = self._steps.constant * float(walk.w[features:].sum())
        targets = Targets.make(rows.labels, rows.weights)
        risk = self._oracle.risk.value(Scores(scores, walk.bias + constant), targets)
        squared_norm = float(np.einsum("i,i->", walk.w, walk.w))
        return 0.5 * self._steps.decay * squared_norm + risk / targets.total
