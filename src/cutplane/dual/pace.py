"""Whether a run gets anywhere: badly scaled features make pairs creep for ever."""

from __future__ import annotations

import math

# Steps of pairs after which no run is expected to go on without progress, as in libsvm; at least
# so many for each variable.
MANY_STEPS = 10_000_000
STEPS_PER_VARIABLE = 100


class Pace:
    """Compares gaps. After MANY_STEPS, twice as many steps must halve the gap.

    Parameters
    ----------
    variables : int
    max_iter : int or None
        A run whose user has said where it ends goes on till then.
    """

    def __init__(self, variables: int, max_iter: int | None) -> None:
        self.steps = 0
        first = max(MANY_STEPS, STEPS_PER_VARIABLE * variables) // 2
        self._next: float = first if max_iter is None else math.inf
        self._before = math.inf

    def hopeless(self, gap: float) -> bool:
        """Whether the gap has hardly fallen during the latter half of all steps."""
        if self.steps < self._next:
            return False
        slow = not gap <= 0.5 * self._before
        first = self._before == math.inf
        self._next, self._before = 2 * self.steps, gap
        return slow and not first
