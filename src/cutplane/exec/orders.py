"""What is said to objects on other machines: recipes, orders, and what rounds cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Recipe:
    """How an object is made on a worker: ``factory(*arguments)``.

    ``inputs`` are Dask futures; if there are any, their results are one more argument, a list.
    """

    factory: Callable[..., Any]
    arguments: tuple[Any, ...]
    inputs: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Order:
    """A method to be called with arguments, by every object.

    Attributes
    ----------
    method : str
    arguments : tuple
    shares : sequence or None
        A further argument, another one for each object.
    lasting : bool
        Whether later answers depend on it.
    """

    method: str
    arguments: tuple[Any, ...] = ()
    shares: Sequence[Any] | None = None
    lasting: bool = False

    def for_one(self, number: int) -> tuple[Any, ...]:
        """What one object gets."""
        share = () if self.shares is None else (self.shares[number],)
        return (self.method, *self.arguments, *share)


def play(
    target: Any,
    orders: Sequence[tuple[Any, ...]],
    resolved: Callable[[Any], Any] = lambda argument: argument,
) -> tuple[list[Any], float]:
    """Call methods of an object one after the other; the answers, and the seconds it took."""
    begin = time.perf_counter()
    answers = [
        getattr(target, method)(*(resolved(argument) for argument in arguments))
        for method, *arguments in orders
    ]
    return answers, time.perf_counter() - begin


@dataclass(frozen=True)
class Worker:
    """A worker as the scheduler knows it."""

    address: str
    name: str
    threads: int


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
        Spent on making lost objects again.
    losses : int
        Objects that were lost.
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
