"""Questions to a crew of workers.

A round is one message to each worker and one answer. Orders without an answer wait for the next
question and go with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..exec.cluster import Crew
from ..exec.orders import Order


class Rounds:
    """Orders and questions to a crew.

    Parameters
    ----------
    crew : Crew
    """

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._posted: list[Order] = []
        self._base = 0

    def post(self, method: str, *arguments: Any, shares: Sequence[Any] | None = None) -> None:
        """An order without an answer, for the next round."""
        self._posted.append(Order(method, arguments, shares, lasting=True))

    def ask(
        self,
        method: str,
        *arguments: Any,
        shares: Sequence[Any] | None = None,
        lasting: bool = False,
    ) -> list[Any]:
        """The answers of all members, one after the other."""
        batch = [*self._posted, Order(method, arguments, shares, lasting)]
        self._posted = []
        answers = self._crew.round(batch)
        return [entry for member in answers for entry in member[-1] or ()]

    def begin(self) -> None:
        """Nothing before matters from now on, but how the crew was made."""
        self._posted = []
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
