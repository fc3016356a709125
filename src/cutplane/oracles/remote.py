"""Rows that are elsewhere, held by a crew of workers: the oracle's questions as rounds.

A round is one message to each worker and one answer. Orders without an answer wait for the next
question and go with it. A question that is likely to come next goes along ahead of time: if it
does come, the answer is there. Answers come by chunk of rows or by node of the tree of sums, and
are added up here in the order in which they are added where all rows are in one place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..data.parts import SumPlan, add_nodes
from ..exec import Executor, SerialExecutor
from ..exec.cluster import Crew
from ..exec.orders import Order
from ..risks import Risk, Scores, Targets
from .changes import MOST_UPDATES
from .holder import COEF, RowTask, Slot, Task
from .octaves import Octaves
from .row_passes import Question
from .selection import Grid, Listed, ListedSteps

# Orders that only matter until steps are listed again.
SEARCHING = ("list_line", "list_bias", "keep")


class Rounds:
    """Questions to a crew, with as few rounds as possible.

    Parameters
    ----------
    crew : Crew
    """

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._posted: list[Order] = []
        self._known: dict[tuple[Any, ...], list[Any]] = {}
        # What was done already and is ordered or asked next, one after the other.
        self._done: deque[tuple[tuple[Any, ...], list[Any] | None]] = deque()
        self._suggested: list[Order] = []
        self._base = 0

    def known(self, method: str, *arguments: Any) -> list[Any] | None:
        """The answer to a question that was put ahead of time, if it still holds."""
        return None if self._posted else self._known.pop((method, *arguments), None)

    def suggest(self, orders: Sequence[Order]) -> None:
        """Questions that are likely to come: when one of them does, the others go along."""
        self._suggested = list(orders)

    def post(self, method: str, *arguments: Any, shares: Sequence[Any] | None = None) -> None:
        """An order without an answer, for the next round."""
        if shares is None and self._taken(method, arguments) is not None:
            return
        self._posted.append(Order(method, arguments, shares, lasting=True))
        self._known.clear()

    def _taken(self, method: str, arguments: tuple[Any, ...]) -> list[Any] | None:
        """The answer of what was done already, if this is what comes next; else it is void."""
        if self._done and self._done[0][0] == (method, *arguments):
            return self._done.popleft()[1]
        self._done.clear()
        return None

    def ask(
        self,
        method: str,
        *arguments: Any,
        shares: Sequence[Any] | None = None,
        lasting: bool = False,
        ahead: Sequence[Order] = (),
        then: Sequence[Order] = (),
    ) -> list[Any]:
        """The answers of all members, one after the other.

        ``then`` are orders and questions that come next in this order, and are done at once.
        """
        if shares is None and (taken := self._taken(method, arguments)) is not None:
            return taken
        if shares is None and (known := self.known(method, *arguments)) is not None:
            return known
        others = [o for o in self._suggested if (o.method, o.arguments) != (method, arguments)]
        if len(others) < len(self._suggested):
            ahead = [*ahead, *others]
        self._suggested = []
        if lasting or then:
            self._known.clear()
        order = Order(method, arguments, shares, lasting)
        place = len(self._posted)
        batch = [*self._posted, order, *ahead, *then]
        self._posted = []
        answers = self._crew.round(batch)
        self._tidy(batch)
        for k, other in enumerate(ahead, place + 1):
            self._known[(other.method, *other.arguments)] = _joined(answers, k)
        for k, other in enumerate(then, place + 1 + len(ahead)):
            self._done.append(((other.method, *other.arguments), _joined(answers, k)))
        return _joined(answers, place)

    def _tidy(self, batch: Sequence[Order]) -> None:
        """Forget earlier searches if there is a new one."""
        if any(order.method in ("list_line", "list_bias") for order in batch):
            log, new = self._crew.log, {id(order) for order in batch}
            self._crew.log = [o for o in log if o.method not in SEARCHING or id(o) in new]

    def begin(self) -> None:
        """Nothing before matters from now on, but how the crew was made."""
        self._posted, self._known = [], {}
        self._done.clear()
        self._crew.log = self._crew.log[: self._base]

    def keep(self) -> None:
        """What was ordered so far matters until the end."""
        if self._posted:
            batch, self._posted = self._posted, []
            self._crew.round(batch)
        self._base = len(self._crew.log)

    def set_base(self, base: int) -> None:
        """How much of the log matters until the end."""
        self._base = base


def _step(name: str, arguments: Sequence[Any], updates: bool) -> Order:
    """An order or a question that comes next."""
    answers_only = name == "offset" or (name == "gradients" and not updates)
    return Order(name, tuple(arguments), lasting=not answers_only)


def _orders(name: str, arguments: Sequence[Any]) -> list[Order]:
    """A question that comes ahead, with what follows from it."""
    orders = [Order(name, tuple(arguments), lasting=name in SEARCHING)]
    if name == "list_line":
        orders.append(Order("peek", (arguments[-1],)))
    return orders


def _joined(answers: Sequence[Sequence[Any]], k: int) -> list[Any]:
    return [entry for member in answers for entry in member[k] or ()]


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
        self.rounds.post("begin", Task(shape, constant, updates))
        self.rounds.keep()

    def scores(self, w: np.ndarray, out: Any) -> None:
        if isinstance(out, Slot):
            self.rounds.post("scores", w, out)
        else:
            copies = [w] * len(self._matrix.plans)
            np.concatenate(self.rounds.ask("product", shares=copies), out=out)

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
        return self._matrix.add_up(sums)

    def start_anew(self, forget: bool = False) -> None:
        self._gradients = 0
        if forget:
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
    counts : sequence of int
        Chunks of each part.
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
        counts: Sequence[int],
        light: bool,
    ) -> None:
        self._rounds = products.rounds
        self._matrix = matrix
        self._updates = products.updates
        self._slots = 0
        self._kept: ListedSteps | None = None  # steps of the bin looked at, if they are here
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
                counts[plan.first : plan.last],
            )
            for plan, rows in zip(matrix.plans, matrix.member_rows(), strict=True)
        ]
        self._rounds.post("begin_rows", risk, light, shares=shares)
        self._rounds.keep()

    def new_scores(self) -> Slot:
        self._slots += 1
        return Slot(self._slots)

    def blend(self, start: Slot, end: Slot, k: float, into: Slot) -> None:
        self._rounds.post("blend", start, end, k, into)

    def value(
        self, at: Scores, ahead: Sequence[Question] = (), then: Sequence[Question] = ()
    ) -> list[float]:
        orders = [order for name, *arguments in ahead for order in _orders(name, arguments)]
        steps = [_step(name, arguments, self._updates) for name, *arguments in then]
        known = None if then else self._rounds.known("value", at)
        if known is not None:  # the others go with the first of them
            self._rounds.suggest(orders)
            return known
        return self._rounds.ask("value", at, ahead=orders, then=steps)

    # -- planes ---------------------------------------------------------------

    def active_weights(self, at: Scores) -> list[np.ndarray]:
        return self._rounds.ask("active_weights", at)

    def fill(self, at: Scores, positive: float | None = None, negative: float = 0.0) -> None:
        self._rounds.post("fill", at, positive, negative)

    def set_coef(self, coef: np.ndarray) -> None:
        shares = [coef[rows] for rows in self._matrix.member_rows()]
        self._rounds.post("set_coef", shares=shares)

    def offset(self) -> list[float]:
        return self._rounds.ask(
            "offset", ahead=[Order("gradients", (COEF,), lasting=self._updates)]
        )

    def weigh(self) -> list[np.ndarray]:
        return self._rounds.ask("weigh")

    def scale(self, sign: float, factor: float) -> None:
        self._rounds.post("scale", sign, factor)

    def slope(self, start: Slot, end: Slot) -> list[float]:
        return self._rounds.ask("slope", start, end)

    # -- the bias and lines ---------------------------------------------------

    def bias_derivatives(self, at: Scores) -> list[np.ndarray]:
        return self._rounds.ask("bias_derivatives", at)

    def line(self, start: Scores, end: Scores, k: float) -> list[np.ndarray]:
        return self._rounds.ask("line", start, end, k)

    def line_and_bias(self, start: Slot, end: Slot, k: float, bias: float) -> list[np.ndarray]:
        return self._rounds.ask("line_and_bias", start, end, k, bias)

    def profile_line(self, start: Scores, end: Scores, octaves: Octaves) -> np.ndarray:
        sums = self._rounds.ask("line_profiles", start, end, octaves)
        return self._matrix.add_up(sums)

    def list_line(
        self, start: Scores, end: Scores, first: float, last: float, grid: Grid
    ) -> list[Listed]:
        self._kept = None
        arguments = (start, end, first, last, grid)
        ahead = [Order("peek", (grid,))]
        return self._rounds.ask("list_line", *arguments, lasting=True, ahead=ahead)

    def list_bias(self, at: Scores, first: float, last: float, grid: Grid) -> list[Listed]:
        self._kept = None
        ahead = [Order("peek", (grid,))]
        return self._rounds.ask("list_bias", at, first, last, grid, lasting=True, ahead=ahead)

    def histogram(self, grid: Grid) -> list[np.ndarray]:
        if self._kept is not None:
            return self._kept.histogram(grid)
        return self._rounds.ask("histogram", grid)

    def keep(self, grid: Grid, number: int) -> list[int]:
        if self._kept is not None:
            return self._kept.keep(grid, number)
        peeks = self._rounds.known("peek", grid)
        if peeks is not None and all(peek.first <= number <= peek.last for peek in peeks):
            positions = [np.array(peek.positions) for peek in peeks]
            jumps = [np.array(peek.jumps) for peek in peeks]
            self._kept = ListedSteps(positions, jumps, SerialExecutor())
            return self._kept.keep(grid, number)
        finer = grid.inside(number)
        ahead = [Order("few_steps")]
        if finer is not None:
            ahead.append(Order("histogram", (finer,)))
        return self._rounds.ask("keep", grid, number, lasting=True, ahead=ahead)

    def steps(self) -> list[tuple[np.ndarray, np.ndarray]]:
        if self._kept is not None:
            return self._kept.steps()
        steps = self._rounds.ask("few_steps")
        if any(part is None for part in steps):
            steps = self._rounds.ask("steps")
        return steps

    def least(self) -> list[float]:
        return self._rounds.ask("least")
