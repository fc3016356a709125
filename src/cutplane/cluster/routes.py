"""How vectors go from worker to worker, so that the client sends and gets each vector once.

Sums follow the tree of ``data.sums``, which fixes the order of additions: sum(a, b) of the parts a
to b is sum(a, m) + sum(m, b). The worker that holds part a computes sum(a, b). If another worker
has sum(m, b), it sends sum(m, b) to that worker. The first worker ends with the sum of all parts,
with the same bits as if one worker held all parts.

A vector for all workers goes along a binomial tree: worker k gets it from the worker whose number
is k with the lowest 1 bit cleared. So it reaches all W workers in log₂ W steps.
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
        The nodes whose sums the worker computes from its own rows.
    adds : list of tuple
        For each (a, m, b), in this order, the worker adds sum(m, b) to sum(a, m). If sum(m, b) is
        not its own, it waits for another worker to send it.
    sends : dict
        For each sum that the worker sends, the number of the worker that gets it.
    """

    nodes: list[Node]
    adds: list[tuple[int, int, int]] = field(default_factory=list)
    sends: dict[Node, int] = field(default_factory=dict)


def routes_of(plans: Sequence[SumPlan]) -> list[Route]:
    """The route of each worker. Together the workers hold all parts, as ``plans`` say."""
    routes = [Route(plan.nodes) for plan in plans]
    owner = [k for k, plan in enumerate(plans) for _ in range(plan.first, plan.last)]

    def visit(a: int, b: int) -> int:
        """Plan how sum(a, b) is computed; returns the number of the worker that ends with it."""
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
    """The workers to which worker ``number`` passes on a vector for all workers."""
    bit, found = 1, []
    while number + bit < workers and not number & bit:
        found.append(number + bit)
        bit *= 2
    return found[::-1]  # first the worker that passes the vector on to most others
