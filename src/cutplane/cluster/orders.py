"""The messages between client and workers: orders, which are functions with arguments, and answers.

A worker holds a state, for instance some rows and their scores. The first order makes the state,
later orders use it. An order is ``lasting`` if it changes the state and later answers depend on the
change. The client keeps lasting orders in a log. If a worker is lost, another worker runs the log
again, and so gets the same state, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .routes import Route


class Order:
    """A function that a worker calls with its state.

    Parameters
    ----------
    function : callable
        The worker finds the function by its name and calls it with the state and the arguments.
        Most functions are methods of the state. The answer is what the function returns.
    *arguments
    lasting : bool
        Whether later answers depend on this order.
    summed : bool
        Whether the answer is a list of vectors, one for each node of the worker's plan, and the
        client wants the sum over all workers.
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
        """The name of the function."""
        return self.function.__name__

    def run(self, state: Any) -> Any:
        """Call the function, on the worker; returns the answer."""
        return self.function(state, *self.arguments)


@dataclass(frozen=True)
class Means:
    """The resources with which a worker makes its state.

    Attributes
    ----------
    threads : int
    memory : int or None
        Bytes that the worker may use; None if there is no limit.
    inputs : sequence
        Results of Dask futures, which a Dask task has given to the worker's session.
    """

    threads: int
    memory: int | None
    inputs: Sequence[Any] = ()


class Hold(Order):
    """The first order. Its function gets ``Means`` and the arguments, and returns the state."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        super().__init__(function, *arguments, lasting=True)


class Each:
    """One order for each worker: the same function with different arguments."""

    def __init__(self, orders: Sequence[Order]) -> None:
        self.orders = orders
        self.lasting, self.summed = orders[0].lasting, orders[0].summed
        self.name = orders[0].name


def order_for(order: Order | Each, number: int) -> Order:
    """The order for worker ``number``."""
    return order.orders[number] if isinstance(order, Each) else order


def common_bytes(orders: Sequence[Order | Each]) -> int:
    """Bytes of the arrays in those orders that are the same for all workers."""
    return sum(
        value.nbytes
        for order in orders
        if isinstance(order, Order)
        for value in order.arguments
        if isinstance(value, np.ndarray)
    )


@dataclass(frozen=True)
class Peer:
    """Where other workers reach a session: the address of its worker, and its name."""

    address: str
    session: str


@dataclass(frozen=True)
class Message:
    """What the client sends to a session.

    Attributes
    ----------
    number : int
        Number of the round. If a session gets the same number twice, it runs the orders once.
    orders : list of Order, or None
        The orders that are the same for all workers, with None in the place of all others. None in
        place of the list if another worker passes these orders on.
    own : dict
        Orders for this worker alone, by their place among the orders.
    hand_on : list of Peer
        Sessions to which this session passes on the common orders.
    route : Route or None
        How workers add up their vectors; None if each worker answers with its own vectors.
    peers : dict
        The sessions of the workers that the route names.
    """

    number: int
    orders: list[Order | None] | None
    own: dict[int, Order] = field(default_factory=dict)
    hand_on: Sequence[Peer] = ()
    route: Route | None = None
    peers: dict[int, Peer] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """Answers to the orders of a round, and the seconds that the worker needed for them."""

    answers: list[Any]
    seconds: float


@dataclass(frozen=True)
class Failed:
    """In place of answers: the error that an order raised."""

    error: Exception


@dataclass(frozen=True)
class Apart:
    """In place of answers: this worker cannot reach another worker."""

    error: str


Answer = Done | Failed | Apart


@dataclass
class Timings:
    """Time and number of the rounds so far.

    Attributes
    ----------
    rounds : int
    seconds : float
        Duration of all rounds.
    work : float
        The part of ``seconds`` in which the slowest worker of each round ran its orders.
    recovery : float
        The part of ``seconds`` in which workers were brought to the state of lost ones.
    losses : int
        Workers that were lost.
    """

    rounds: int = 0
    seconds: float = 0.0
    work: float = 0.0
    recovery: float = 0.0
    losses: int = 0

    def as_dict(self) -> dict[str, float]:
        """Seconds of work, messages and recovery, and the numbers of rounds and losses."""
        return {
            "workers": self.work,
            "messages": self.seconds - self.work - self.recovery,
            "recovery": self.recovery,
            "rounds": float(self.rounds),
            "losses": float(self.losses),
        }
