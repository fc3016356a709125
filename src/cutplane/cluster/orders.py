"""What is said to a worker: orders, each a class of its own, and what rounds have cost.

A worker holds a state (some rows and their scores, say). The first order makes it, later ones work
on it. An order that changes the state in a way that later answers depend on is ``lasting``: the
client keeps it in a log, and a worker that takes the place of one that was lost is given the log
once more, which brings it to the same state, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class Order:
    """Something that a worker does with its state."""

    @property
    def lasting(self) -> bool:
        """Whether later answers depend on it."""
        return False

    def run(self, state: Any) -> Any:
        """Do it, on the worker; returns the answer."""
        raise NotImplementedError


class Change(Order):
    """An order that later answers depend on; it has no answer of its own."""

    @property
    def lasting(self) -> bool:
        return True


@dataclass(frozen=True)
class Means:
    """What a worker has for a state.

    Attributes
    ----------
    threads : int
    memory : int or None
        Bytes that it may use; None if there is no limit.
    inputs : sequence
        Results of Dask futures that were handed over to it.
    """

    threads: int
    memory: int | None
    inputs: Sequence[Any] = ()


class Hold(Order):
    """The first order: makes the state."""

    @property
    def lasting(self) -> bool:
        return True

    def make(self, means: Means) -> Any:
        """The state."""
        raise NotImplementedError


@dataclass(frozen=True)
class Each(Order):
    """Another order for each worker, all of one kind."""

    orders: Sequence[Order]

    @property
    def lasting(self) -> bool:
        return self.orders[0].lasting


def order_for(order: Order, number: int) -> Order:
    """The order as the worker with that number gets it."""
    return order.orders[number] if isinstance(order, Each) else order


@dataclass(frozen=True)
class Done:
    """Answers to some orders, and the seconds that the worker took for them."""

    answers: list[Any]
    seconds: float


@dataclass(frozen=True)
class Failed:
    """What an order raised."""

    error: Exception


@dataclass
class Timings:
    """What rounds have cost so far.

    Attributes
    ----------
    rounds : int
    seconds : float
        Of all rounds.
    work : float
        Of these the slowest worker's own work.
    recovery : float
        Spent on bringing other workers to the state of lost ones.
    losses : int
        Workers that were lost.
    """

    rounds: int = 0
    seconds: float = 0.0
    work: float = 0.0
    recovery: float = 0.0
    losses: int = 0

    def as_dict(self) -> dict[str, float]:
        """Seconds of workers, messages and recovery, and how many rounds and losses there were."""
        return {
            "workers": self.work,
            "messages": self.seconds - self.work - self.recovery,
            "recovery": self.recovery,
            "rounds": float(self.rounds),
            "losses": float(self.losses),
        }
