"""Whether steps of pairs get anywhere: on badly scaled features they creep for ever."""

from __future__ import annotations

import math

# Steps of pairs for each variable after which a run is called slow: most runs are done by then. At
# half of it the interior point method begins a little too early now and then, at twice of it
# later, at most twice the work.
SLOW = 30
# Multiplications of the interior point method in the time of one, for a step of a pair, per
# variable: its products of matrices run that much faster.
FASTER = 2.0
# Steps of pairs after which no run is expected to go on without progress, as in libsvm; at least
# so many for each variable.
MANY_STEPS = 10_000_000
STEPS_PER_VARIABLE = 100
# Times the steps before the interior point method, after which it is the same if that has not
# helped: rounding is in the way of both.
AFTERWARDS = 4


class Pace:
    """Counts steps of pairs, and compares gaps.

    A run is slow once it has taken SLOW steps for each variable and as much work as the interior
    point method takes: that has its turn then, once. After MANY_STEPS, or AFTERWARDS times the
    steps up to then if it could be tried, twice as many steps must halve the gap.

    Parameters
    ----------
    variables : int
    columns : int
        Of the factor that the interior point method works with.
    max_iter : int or None
        A run whose user has said where it ends goes on till then.
    """

    def __init__(self, variables: int, columns: int, max_iter: int | None) -> None:
        self.steps = 0
        self._work = 0
        self._variables = variables
        # A dozen steps with a matrix of columns² numbers, each a sum over all variables.
        self._interior = 12.0 * (columns**2 + columns**3 / (3.0 * max(1, variables))) / FASTER
        first = max(MANY_STEPS, STEPS_PER_VARIABLE * variables) // 2
        self._next: float = first if max_iter is None else math.inf
        self._before = math.inf

    def add(self, steps: int, least_work: int = 0) -> None:
        """Count steps, and the work of so many at least."""
        self.steps += steps
        self._work += max(steps, least_work)

    def slow(self) -> bool:
        """Whether it is time for the interior point method; true once."""
        if self.steps < SLOW * self._variables or self._work < self._interior:
            return False
        self._interior = math.inf
        return True

    def tried(self) -> None:
        """The interior point method has had its turn."""
        if self._next < math.inf:
            self._next = min(self._next, AFTERWARDS * self.steps)

    def hopeless(self, gap: float) -> bool:
        """Whether the gap has hardly fallen during the latter half of all steps."""
        if self.steps < self._next:
            return False
        slow = not gap <= 0.5 * self._before
        first = self._before == math.inf
        self._next, self._before = 2 * self.steps, gap
        return slow and not first
