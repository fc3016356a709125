"""What is said to a worker: orders, which are functions and arguments, and what rounds have cost.

A worker holds a state (some rows and their scores, say). The first order makes it, later ones work
on it. An order that changes the state in a way that later answers depend on is ``lasting``: the
client keeps it in a log, and a worker that takes the place of one that was lost is given the log
once more, which brings it to the same state, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .routes import Route


class Order:
    """Something that a worker does with its state.

    Parameters
    ----------
    function : callable
        Called on the worker, which finds it by its name, with the state and the arguments; most
        are methods of the state. What it returns is the answer.
    *arguments
    lasting : bool
        Whether later answers depend on it.
    summed : bool
        Whether the answer is a list of vectors, one for each node of the worker's plan, that are to
        be added up.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        lasting: bool = False,
        summed: bool = False,
    ) -> None:
        self.function, self.arguments = function, arguments
        self.lasting, self.summed = lasting, summed

    @property
    def name(self) -> str:
        """What is done."""
        return self.function.__name__

    def run(self, state: Any) -> Any:
        """Do it, on the worker; returns the answer."""
        return self.function(state, *self.arguments)


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
    """The first order: its function gets ``Means`` and the arguments, and returns the state."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        super().__init__(function, *arguments, lasting=True)


class Each:
    """Another order for each worker, all of one kind."""

    def __init__(self, orders: Sequence[Order]) -> None:
        self.orders = orders
        self.lasting, self.summed = orders[0].lasting, orders[0].summed
        self.name = orders[0].name


def order_for(order: Order | Each, number: int) -> Order:
    """The order as the worker with that number gets it."""
    return order.orders[number] if isinstance(order, Each) else order


def common_bytes(orders: Sequence[Order | Each]) -> int:
    """Bytes of arrays in orders that are the same for all workers."""
    return sum(
        value.nbytes
        for order in orders
        if isinstance(order, Order)
        for value in order.arguments
        if isinstance(value, np.ndarray)
    )


@dataclass(frozen=True)
class Peer:
    """A session on a worker, as other workers reach it."""

    address: str
    session: str


@dataclass(frozen=True)
class Message:
    """What the client sends to a session.

    Attributes
    ----------
    number : int
        Of the orders. A session that is sent the same number twice does them once.
    orders : list of Order, or None
        None if those that are the same for all workers come from another one.
    own : dict
        The others, by their place among the orders.
    hand_on : list of Peer
        To whom the common orders are handed on.
    route : Route or None
        How vectors are added up between workers; None if they are answered as they are.
    peers : dict
        The sessions that the route names.
    """

    number: int
    orders: list[Order | None] | None
    own: dict[int, Order] = field(default_factory=dict)
    hand_on: Sequence[Peer] = ()
    route: Route | None = None
    peers: dict[int, Peer] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """Answers to some orders, and the seconds that the worker took for them."""

    answers: list[Any]
    seconds: float


@dataclass(frozen=True)
class Failed:
    """What an order raised."""

    error: Exception


@dataclass(frozen=True)
class Apart:
    """In place of answers: a worker cannot reach another one."""

    error: str


Answer = Done | Failed | Apart


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
