"""Questions to a crew of workers, put in as few rounds as possible.

A round is one message to each worker and one answer. Orders without an answer wait for the next
question and go with it. A question that is likely to come next goes along ahead of time: if it
does come, the answer is there. So does all that comes next for certain, one after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from ..exec.cluster import Crew
from ..exec.orders import Order

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

    def note(self, method: str, shares: Sequence[Any]) -> None:
        """An order that brings a member to the state in which all of them are now."""
        self._crew.log.append(Order(method, (), shares, lasting=True))

    def set_base(self, base: int) -> None:
        """How much of the log matters until the end."""
        self._base = base


def _joined(answers: Sequence[Sequence[Any]], k: int) -> list[Any]:
    return [entry for member in answers for entry in member[k] or ()]
