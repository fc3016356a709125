"""Stochastic subgradient baselines for min F(w) = ½|w|² + C·R(w), with the bundle's certificate.

In the methods' own terms they minimise λ/2·|w|² + R(w), λ = 1/C: the same problem, F divided by C.
Both take steps of length 1/(λ(t₀ + t)) along the subgradient of a row's loss and of the
regulariser; ``loops.stochastic`` has the formula of a step.

- ``sgd`` (Bottou's svmsgd2) finds t₀ by trials on a sample, makes no projection, and takes 10
  epochs by default.
- ``pegasos`` (Shalev-Shwartz, Singer & Srebro 2007) has t₀ = 0. Every step ends with a projection
  onto the ball |w|² ≤ sup_z(−z·loss'(z))/λ, which contains the optimum. For the hinge its radius is
  1/√λ, as in the paper. The paper draws rows with replacement; here an epoch visits all rows in a
  new random order. The paper suggests 100/λ steps, which are 100·C/rows epochs. So many are the
  default, but at least 1 and at most 100.

An epoch visits every row of positive weight once. Data are often sorted, by label or by place; then
random orders of the blocks, and of the rows within a block, do not mix enough: on aclimdb, which
lists one class first, the objective after 10 epochs was 4 times that of mixed rows, and on covtype
(C = 1) 1.5 times. So the solver shuffles the rows once, into a second copy of the data. An epoch
then takes one block after the other, each while it is in the cache.

After every epoch the solver evaluates F and renews the lower bound. Neither changes the steps, and
their time is separate ("certificate" beside "sgd"). The derivatives of the loss at the rows of an
epoch are a dual point, so they make a cut (``RowOracle.dual_cut``). Their average over epochs makes
another, and the last point of the epoch a third. The reduced problem over all these cuts gives the
best lower bound of any combination. On a9a, MNIST and covtype an average over the second half of
the epochs is much tighter than an average over all (the first epochs are far off) or the last epoch
alone. The cuts of single epochs improve the bound of the hinge a little. The cuts of the points
matter with an unregularised bias and close to the optimum.

With an unregularised bias the steps move their own bias, and the oracle finds the exact bias for
the w of each epoch.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..data import BlockedMatrix
from ..data.blocks import ColumnMajorBlock, CSRBlock, RowMajorBlock, read_only
from ..loops import stochastic as loops
from ..objective import Cut, RowOracle
from ..result import Status
from ..risks import Targets
from .base import IterativeSolver, Observer, StopRule
from .reduced import Bundle, VectorSpace

# Default epochs of svmsgd2, and the most of Pegasos.
EPOCHS, MOST_EPOCHS = 10, 100
# Rate of the unregularised bias, as a part of the rate of w.
BIAS_RATE = 0.3
# So many neighbouring rows are visited in a row: as good as single random rows, with half the cache
# misses.
TILE_ROWS = 32
# The trials of t₀ take so many rows, and these values.
SAMPLE_ROWS = 1000
FIRST_STEPS = tuple(4.0**k for k in range(24))
# Shorter steps are taken if they make at least this part of the progress of the best steps.
PROGRESS = 0.9


def default_epochs(method: str, C: float, rows: int) -> int:
    """Epochs of a method for this C, which multiplies the mean risk."""
    return EPOCHS if method == "sgd" else math.ceil(min(max(100.0 * C / rows, 1.0), MOST_EPOCHS))


@dataclass(frozen=True)
class ShuffledRows:
    """Rows in random order, flat as for ``loops.stochastic``, with ±1 labels and weights.

    Attributes
    ----------
    values, indices, starts : ndarray
        Row i has the numbers ``values[starts[i]:starts[i + 1]]``; ``indices`` is None for dense
        rows.
    labels, weights : ndarray, shape (rows,)
        Weights average 1, so that a step along weight·gradient of a random row is, in expectation,
        one along the gradient of the mean risk.
    source : ndarray of int, shape (rows,)
        Number of each row in the original matrix.
    blocks : list of slice
        Rows that are visited together, while they are in the cache.
    """

    values: np.ndarray
    indices: np.ndarray | None
    starts: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    source: np.ndarray
    blocks: list[slice]

    def scores(self, w: np.ndarray, count: int) -> np.ndarray:
        """X·w of the first rows."""
        out = np.empty(count)
        if self.indices is None:
            RowMajorBlock(self.values[: count * len(w)].reshape(count, -1)).scores(w, out)
        else:
            CSRBlock(self.values, self.indices, self.starts[: count + 1]).scores(w, out)
        return out


def shuffle(matrix: BlockedMatrix, targets: Targets, rng: np.random.Generator) -> ShuffledRows:
    """Copy the rows of positive weight in random order."""
    source = rng.permutation(np.flatnonzero(targets.weights))
    places = np.full(len(matrix), -1)
    places[source] = np.arange(len(source))
    blocks: Any = matrix.blocks
    first = blocks[0]
    values: np.ndarray
    indices: np.ndarray | None = None
    if isinstance(first, CSRBlock):
        lengths = np.concatenate([np.diff(block.starts) for block in blocks])
        starts = np.concatenate(([0], np.cumsum(lengths[source])))
        values = np.empty(starts[-1], first.values.dtype)
        indices = np.empty(starts[-1], first.indices.dtype)
        for k, block in enumerate(blocks):
            rows = block.values, block.indices, block.starts
            loops.shuffle_csr(*rows, places[matrix.slice(k)], starts, values, indices)
    else:
        width = matrix.shape[1]
        table = np.empty((len(source), width), _dense(first).dtype)
        for k, block in enumerate(blocks):
            here = places[matrix.slice(k)]
            table[here[here >= 0]] = _dense(block)[here >= 0]
        values, starts = table.reshape(-1), np.arange(len(source) + 1) * width
    edges = np.linspace(0, len(source), len(blocks) + 1).astype(int).tolist()
    return ShuffledRows(
        read_only(values),
        None if indices is None else read_only(indices),
        read_only(starts),
        targets.labels[source],
        targets.weights[source] * (len(source) / targets.total),
        source,
        [slice(a, b) for a, b in itertools.pairwise(edges) if a < b],
    )


def _dense(block: Any) -> np.ndarray:
    """The rows of a dense block, of whatever layout."""
    if isinstance(block, ColumnMajorBlock):
        return block.xt[:, block.first : block.first + block.rows].T
    return block.x


class Steps(NamedTuple):
    """A point that takes a step at every row that it visits. Symbols are those of the kernels.

    ``state`` is (t, bias): the steps counted so far, and the unregularised bias.
    """

    loss: Any
    decay: float
    constant: float
    bias_rate: float
    squared_radius: float
    capped: bool
    w: np.ndarray
    state: np.ndarray

    def visit(self, rows: ShuffledRows, order: np.ndarray, coef: np.ndarray) -> None:
        """Take a step at each of the rows in ``order``.

        ``coef`` gets for every visited row the derivative of the loss in the score, or the part of
        it that the step used. It is in the domain of the conjugate.
        """
        flat = (rows.values, rows.indices, rows.starts)
        loops.visit(*flat, order, rows.labels, rows.weights, *self, coef)

    def from_zero(self, first_step: float, capped: bool) -> Steps:
        """The same steps from w = 0 on, with t₀ = ``first_step``."""
        state = np.array([first_step, 0.0])
        return self._replace(w=np.zeros_like(self.w), state=state, capped=capped)


class LateAverage:
    """The average over at least the last half, and at most about the last three quarters.

    At every power of two a new sum begins. The average is that of the last sum but one: after 10
    vectors it is over the 4th to the 10th.
    """

    def __init__(self, size: int) -> None:
        self.count = 0
        self._used, self._begun = np.zeros((2, size))
        self._used_since = self._begun_since = 1

    def add(self, vector: np.ndarray) -> None:
        """Add the next vector."""
        self.count += 1
        if self.count & (self.count - 1) == 0:  # a power of two
            self._used, self._begun = self._begun, self._used
            self._used_since, self._begun_since = self._begun_since, self.count
            self._begun[...] = 0.0
        self._used += vector
        self._begun += vector

    def value(self) -> np.ndarray:
        """The average."""
        return self._used / (self.count - self._used_since + 1)


class StochasticSolver(IterativeSolver):
    """State of one run. An iteration is an epoch. The answer is the best point at an epoch's end.

    The steps begin at 0. ``run`` takes a start only to compare with, so that the answer is not
    worse than the start.

    Parameters
    ----------
    oracle : RowOracle
        With a loss that has a ``reach``.
    C, observer
        As for every solver.
    stop : StopRule
        Without ``max_iter`` the method's default number of epochs is run.
    method : {'sgd', 'pegasos'}
    rng : numpy.random.Generator
        Draws the order of the rows.
    """

    oracle: RowOracle

    def __init__(
        self,
        oracle: RowOracle,
        C: float,
        stop: StopRule,
        method: str,
        rng: np.random.Generator,
        observer: Observer | None = None,
    ) -> None:
        if stop.max_iter is None:
            stop = replace(stop, max_iter=default_epochs(method, C, len(oracle.matrix)))
        super().__init__(oracle, C, stop, observer)
        loss = oracle.risk.loss
        if loss is None or loss.reach is None:
            raise TypeError(f"{oracle.risk!r} has no stochastic steps: a loss with a reach has")
        self.method = method
        self.rng = rng
        self.steps = Steps(
            loss=loss,
            decay=1.0 / C,
            constant=float(oracle.constant),
            bias_rate=BIAS_RATE if oracle.free_bias else 0.0,
            # At the optimum λ|w|² is the mean of −z_i·loss'(z_i), so |w|² ≤ reach/λ.
            squared_radius=loss.reach * C if method == "pegasos" else math.inf,
            capped=math.isinf(loss.domain[0]),
            w=np.zeros(oracle.dimension),
            state=np.zeros(2),
        )
        self.bundle = Bundle(VectorSpace(oracle.dimension, oracle.executor))
        self.point = oracle.new_point()

    def active_cuts(self) -> tuple[Cut, ...]:
        return tuple(Cut(a, offset) for a, offset in self.bundle.active())

    def _iterate(self, start: np.ndarray | None, cuts: tuple[Cut, ...]) -> Status:
        weights = self.oracle.targets.weights
        with self.watch.phase("certificate"):
            self._certify(self.point.w if start is None else start.copy(), *cuts)
        with self.watch.phase("sgd"):
            rows = shuffle(self.oracle.matrix, self.oracle.targets, self.rng)
            first_step = self._first_step(rows) if self.method == "sgd" else 0.0
            self.steps = self.steps.from_zero(first_step, self.steps.capped)
            used = np.zeros(len(rows.source))  # coefficients at each row's last visit
            late = LateAverage(len(weights))
        while True:
            with self.watch.phase("sgd"):
                finished = self._epoch(rows, used)
            w = self.steps.w.copy()
            if not np.isfinite(w).all():
                return Status.NUMERICALLY_LIMITED  # the steps were too long
            with self.watch.phase("certificate"):
                coef = np.zeros(len(weights))
                coef[rows.source] = used
                late.add(coef)
                known = [self.oracle.dual_cut(weights * coef)]
                if late.count > 1:
                    known.append(self.oracle.dual_cut(weights * late.value()))
                trial = self._certify(w, *known)
            status = self._end_iteration(trial, 1.0, len(self.bundle))
            if status is Status.MAX_ITER and not finished:
                status = Status.TIME_LIMIT
            if status is not None:
                return status

    def _epoch(self, rows: ShuffledRows, used: np.ndarray) -> bool:
        """Visit every row once. Returns False if the time ran out after a block or more."""
        for visited, k in enumerate(self.rng.permutation(len(rows.blocks))):
            if visited and self.watch.elapsed() >= self.stop.time_limit:
                return False
            block = rows.blocks[k]
            count = block.stop - block.start
            tiles = self.rng.permutation(-(-count // TILE_ROWS)) * TILE_ROWS
            order = (tiles[:, None] + self.rng.permutation(TILE_ROWS)).reshape(-1)
            self.steps.visit(rows, block.start + order[order < count], used)
        return True

    def _certify(self, w: np.ndarray, *cuts: Cut) -> float:
        """Evaluate F at w, keep it if it is the best, renew the bound; returns F."""
        self.oracle.evaluate(w, self.point)
        objective = self._objective(self.point)
        if self._best is None or objective < self._best.primal:
            self._keep(self.point)
        for cut in (*cuts, self.oracle.cut(self.point)):
            self.bundle.add(cut.a, cut.offset)
        self._raise(self.bundle.solve(self.C).dual)
        self.bundle.drop_idle()
        return objective

    def _stalled(self) -> bool:
        return False  # a later epoch may be better by chance

    # -- the first step -------------------------------------------------------------------

    def _first_step(self, rows: ShuffledRows) -> float:
        """t₀ of the shortest steps that are almost as good as the best, by trials on a sample.

        The best steps for a sample are too long for a run of several epochs. Among many about
        equally good ones, chance would pick long ones.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # steps that are far too long
            values = np.nan_to_num([self._try(rows, step) for step in FIRST_STEPS], nan=np.inf)
        finite = np.flatnonzero(np.isfinite(values))
        if len(finite) == 0:  # all steps are far too long
            return FIRST_STEPS[-1]
        best, start = values.min(), values[finite[-1]]  # the last hardly leaves w = 0
        good = values <= start - PROGRESS * (start - best)
        return FIRST_STEPS[int(np.flatnonzero(good)[-1])]

    def _try(self, rows: ShuffledRows, first_step: float) -> float:
        """λ/2·|w|² + mean risk of a sample after one pass over it."""
        count, features = min(SAMPLE_ROWS, rows.blocks[0].stop), self.oracle.matrix.shape[1]
        # Without the cap, steps that are too long look as bad as they are.
        steps = self.steps.from_zero(first_step, capped=False)
        steps.visit(rows, np.arange(count), np.empty(count))
        constant = steps.constant * float(steps.w[features:].sum())
        scores = rows.scores(steps.w[:features], count)
        bias = float(steps.state[loops.BIAS]) + constant
        targets = Targets.make(rows.labels[:count], rows.weights[:count])
        risk = self.oracle.risk.value(scores, bias, targets) / targets.total
        return 0.5 * steps.decay * float(np.einsum("i,i->", steps.w, steps.w)) + risk
