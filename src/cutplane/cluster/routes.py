"""How vectors go from worker to worker, so that the client sends and gets each of them once.

Sums follow the tree of ``data.parts``, which fixes the order of additions: sum(a, b) of the parts a
to b is sum(a, m) + sum(m, b), and belongs to the worker that holds part a. Where sum(m, b) belongs
to another worker, that one sends it. The sum of all parts ends at the first worker, with the same
bits as if one worker held everything.

What goes to all workers is handed on along a binomial tree: worker k gets it from the worker whose
number is k without its last bit that is set, so that it has reached all of W in log₂ W steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..data.sums import Node, SumPlan


@dataclass(frozen=True)
class Route:
    """What a worker does with the sums over its parts.

    Attributes
    ----------
    nodes : list of Node
        Whose sums it computes.
    adds : list of tuple
        (a, m, b): it adds sum(m, b) to sum(a, m), in this order; those that are not its own come
        from other workers.
    sends : dict
        Sums that it sends, each to the worker with that number.
    """

    nodes: list[Node]
    adds: list[tuple[int, int, int]] = field(default_factory=list)
    sends: dict[Node, int] = field(default_factory=dict)


def routes_of(plans: Sequence[SumPlan]) -> list[Route]:
    """The routes of workers that hold these parts, together all of them."""
    routes = [Route(plan.nodes) for plan in plans]
    owner = [k for k, plan in enumerate(plans) for _ in range(plan.first, plan.last)]

    def visit(a: int, b: int) -> int:
        """Whose sum(a, b) is."""
        own = owner[a]
        if owner[b - 1] != own:
            middle = (a + b) // 2
            visit(a, middle)
            other = visit(middle, b)
            if other != own:
                routes[other].sends[middle, b] = own
            routes[own].adds.append((a, middle, b))
        return own

    if owner:
        visit(0, len(owner))
    return routes


def handed_on(number: int, workers: int) -> list[int]:
    """The workers to which the one with that number hands on what all of them get."""
    bit, found = 1, []
    while number + bit < workers and not number & bit:
        found.append(number + bit)
        bit *= 2
    return found[::-1]  # the one with the most to reach first
