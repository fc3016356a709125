"""Rows that are elsewhere, held by a crew of workers: the oracle's questions as rounds.

Answers come by chunk of rows or by node of the tree of sums, and are added up here in the order in
which they are added where all rows are in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..data.sums import SumPlan, add_nodes
from ..exec import Executor
from ..exec.cluster import Crew
from ..risks import Risk, Scores, Targets
from .changes import MOST_UPDATES
from .holder import COEF, RowTask, Slot, Task
from .rounds import Rounds

# Bytes of coefficients that the log keeps before it is cut short. The sums of blocks that take
# their place are at most 32 MB in all, or eight vectors of the length of w.
LOG_BYTES = 1 << 28


class RemoteMatrix:
    """A design matrix whose rows are held by a crew.

    Attributes
    ----------
    shape : tuple of int
    numbers : int
        Stored values.
    part_rows : list of int
        Rows at which parts begin, and the end.
    blocks : range
        Numbers of the blocks.

    Parameters
    ----------
    crew : Crew
        One ``RowsHolder`` per member.
    plans : sequence of SumPlan
        The parts of each member.
    bounds : ndarray
        Rows at which blocks begin, and the end.
    shape, numbers
        The same.
    digest : callable
        Gives a fingerprint of the data.
    """

    whole = None

    def __init__(
        self,
        crew: Crew,
        plans: Sequence[SumPlan],
        bounds: np.ndarray,
        shape: tuple[int, int],
        numbers: int,
        digest: Callable[[], bytes],
    ) -> None:
        self.crew = crew
        self.plans = plans
        self.shape = shape
        self.numbers = numbers
        self.blocks = range(len(bounds) - 1)
        self.part_rows: list[int] = bounds[plans[0].edges].tolist()
        self._digest = digest
        self._base = len(crew.log)

    def __len__(self) -> int:
        """Number of rows."""
        return self.shape[0]

    def digest(self) -> bytes:
        """A fingerprint of the data."""
        return self._digest()

    def rounds(self) -> Rounds:
        """Questions for a problem that begins now."""
        rounds = Rounds(self.crew)
        rounds.set_base(self._base)
        rounds.begin()
        return rounds

    def member_rows(self) -> list[slice]:
        """The rows of each member."""
        return [slice(self.part_rows[plan.first], self.part_rows[plan.last]) for plan in self.plans]

    def add_up(self, sums: Sequence[np.ndarray]) -> np.ndarray:
        """The sum over all rows, from those of the nodes of all members."""
        nodes = [node for plan in self.plans for node in plan.nodes]
        return add_nodes(dict(zip(nodes, sums, strict=True)), self.plans[0].parts)

    def scores(self, w: np.ndarray, out: np.ndarray, executor: Executor) -> None:
        """out = X·w, in one round."""
        answers = self.rounds().ask("plain_product", shares=[w] * len(self.plans))
        np.concatenate(answers, out=out)

    def squared_norms(self, executor: Executor) -> np.ndarray:
        """|x_i|² of every row, in one round."""
        return np.concatenate(self.rounds().ask("squared_norms"))


class RemoteProducts:
    """Products with rows that are elsewhere.

    Parameters
    ----------
    matrix : RemoteMatrix
    shape : tuple of int
        Of w, the constant feature included.
    constant : float
    updates : bool
        Whether gradients are brought up to date.
    """

    def __init__(
        self, matrix: RemoteMatrix, shape: tuple[int, ...], constant: float, updates: bool
    ) -> None:
        self.rounds = matrix.rounds()
        self._matrix = matrix
        self.updates = updates
        self._gradients = 0  # since all were computed anew
        self._logged = 0  # bytes of their coefficients
        self.rounds.post("begin", Task(shape, constant, updates))
        self.rounds.keep()

    def scores(self, w: np.ndarray, out: Any) -> None:
        if isinstance(out, Slot):
            self.rounds.post("scores", w, out)
        else:
            copies = [w] * len(self._matrix.plans)
            np.concatenate(self.rounds.ask("product", shares=copies), out=out)

    def bounded(self, w: np.ndarray, scores: Any, errors: Any) -> None:
        if isinstance(scores, Slot):
            self.rounds.post("bounded", w, scores, errors)
        else:
            self._gather("bounded_product", (w,), (scores, errors))

    def precise(self, w: np.ndarray, bias: float, high: Any, low: Any, errors: Any) -> None:
        if isinstance(high, Slot):
            self.rounds.post("precise", w, bias, high, low, errors)
        else:
            self._gather("precise_product", (w, bias), (high, low, errors))

    def _gather(self, name: str, arguments: tuple[Any, ...], outs: Sequence[np.ndarray]) -> None:
        """Several numbers per score, from all members."""
        answers = self.rounds.ask(name, shares=[arguments] * len(self._matrix.plans))
        for k, out in enumerate(outs):
            np.concatenate([answer[k] for answer in answers], out=out)

    def gradient(self, coef: Any) -> np.ndarray:
        if isinstance(coef, Slot):
            sums = self.rounds.ask("gradients", coef, lasting=self.updates)
        else:
            if self._gradients > MOST_UPDATES:  # this one is computed from all rows
                self.start_anew(forget=True)
            self._gradients += 1
            # The log keeps them, and the array is used again.
            coef = coef.copy() if self.updates else coef
            shares = [coef[rows] for rows in self._matrix.member_rows()]
            sums = self.rounds.ask("gradients", shares=shares, lasting=self.updates)
            gradient = self._matrix.add_up(sums)
            self._logged += coef.nbytes if self.updates else 0
            if self._logged > LOG_BYTES:
                self._cut_log_short(shares)
            return gradient
        return self._matrix.add_up(sums)

    def _cut_log_short(self, shares: Sequence[np.ndarray]) -> None:
        """Keep the sums that all gradients led to, instead of the coefficients of each."""
        states = self.rounds.ask("sums")
        self.rounds.begin()
        self.rounds.note("restore_sums", [(c, *s) for c, s in zip(shares, states, strict=True)])
        self._logged = 0

    def start_anew(self, forget: bool = False) -> None:
        self._gradients = 0
        if forget:
            self._logged = 0
            self.rounds.begin()
        self.rounds.post("start_anew")


class RemotePasses:
    """Passes over the scores of rows that are elsewhere.

    Parameters
    ----------
    products : RemoteProducts
        Of the same problem.
    matrix : RemoteMatrix
    targets : Targets
    risk : Risk
    slices : sequence of slice
        All rows, in chunks.
    light : bool
        Whether a pass is not worth more than one thread.
    """

    coef = COEF

    def __init__(
        self,
        products: RemoteProducts,
        matrix: RemoteMatrix,
        targets: Targets,
        risk: Risk,
        slices: Sequence[slice],
        light: bool,
    ) -> None:
        self._rounds = products.rounds
        self._matrix = matrix
        self._slots = 0
        shares = [
            RowTask(
                targets.labels[rows],
                targets.weights[rows],
                targets.total,
                [
                    slice(chunk.start - rows.start, chunk.stop - rows.start)
                    for chunk in slices
                    if rows.start <= chunk.start and chunk.stop <= rows.stop
                ],
            )
            for rows in matrix.member_rows()
        ]
        self._rounds.post("begin_rows", risk, light, shares=shares)
        self._rounds.keep()

    def new_scores(self) -> Slot:
        self._slots += 1
        return Slot(self._slots)

    def blend(self, start: Slot, end: Slot, k: float, into: Slot) -> None:
        self._rounds.post("blend", start, end, k, into)

    def value(self, at: Scores) -> list[float]:
        return self._rounds.ask("value", at)

    def upper(self, at: Scores, low: Any, errors: Any) -> list[float]:
        return self._rounds.ask("upper", at, low, errors)

    def line_slopes(self, start: Scores, end: Scores, steps: np.ndarray) -> list[np.ndarray]:
        return self._rounds.ask("line_slopes", start, end, steps)

    def bias_slopes(self, scores: Slot, biases: np.ndarray) -> list[np.ndarray]:
        return self._rounds.ask("bias_slopes", scores, biases)

    def fill(self, scores: Slot, low: float, high: float, part: float) -> None:
        self._rounds.post("fill", scores, low, high, part)

    def set_coef(self, coef: np.ndarray) -> None:
        shares = [coef[rows] for rows in self._matrix.member_rows()]
        self._rounds.post("set_coef", shares=shares)

    def offset(self) -> list[float]:
        return self._rounds.ask("offset")

    def weigh(self) -> list[np.ndarray]:
        return self._rounds.ask("weigh")

    def scale(self, sign: float, factor: float) -> None:
        self._rounds.post("scale", sign, factor)

    def slope(self, start: Slot, end: Slot) -> list[float]:
        return self._rounds.ask("slope", start, end)
