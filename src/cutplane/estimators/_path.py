"""One problem at many C: every fit of a path starts from the last one.

A cut is a lower bound on the risk, whatever C, and so is a dual point divided by C, which is a
cut, too: all that was learnt at one C serves the next, and no certificate suffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._checks import check_number
from ..cluster.rows import RemoteMatrix
from ..data import BlockedMatrix
from ..exec import Executor
from ..result import Iteration, SolveResult, Status
from ._form import ModelForm
from ._problems import Problem
from ._solve import Session

# What an integer Cs stands for: as many values from here to there, evenly in the logarithm.
SMALLEST_C, LARGEST_C = 1e-3, 1e2


def check_path(Cs: Any) -> np.ndarray:
    """The values of C, in the order in which they are fitted."""
    if isinstance(Cs, int | np.integer) and not isinstance(Cs, bool):
        if Cs < 1:
            raise ValueError(f"Cs must be at least one value or their number ≥ 1, got {Cs}")
        return np.geomspace(SMALLEST_C, LARGEST_C, int(Cs))
    if isinstance(Cs, str) or not isinstance(Cs, Iterable):
        raise ValueError(f"Cs must be numbers > 0, or how many of them, got {Cs!r}")
    values = [check_number(f"Cs[{k}]", C, above=0.0) for k, C in enumerate(Cs)]
    if not values:
        raise ValueError("Cs holds no value; give at least one C")
    return np.array(values)


def solve_path(
    settings: Any,
    matrix: BlockedMatrix | RemoteMatrix,
    executor: Executor,
    form: ModelForm,
    problem_of: Callable[[int], Problem],
    Cs: np.ndarray,
    callback: Callable[[Iteration], bool | None] | None,
    verbose: int = 0,
    complete: bool = True,
) -> list[list[SolveResult]]:
    """Solve all problems of a fit at every C.

    Parameters
    ----------
    settings : LinearSVC
        Solver, stopping rule and random state; its time limit is for the whole path.
    matrix, executor, form
        The data, who runs over them, and the shape of a fit.
    problem_of : callable
        Makes the k-th problem.
    Cs : ndarray
    callback : callable or None
        After every iteration; a true answer ends the path.
    verbose : int
    complete : bool
        Whether an interrupt is to leave a complete path rather than to be raised.

    Returns
    -------
    results : list of list of SolveResult
        By C, by problem. In a complete path that was ended early the missing fits
        have a single iteration.
    """
    session = Session(
        matrix,
        executor,
        C=float(Cs[0]),
        solver=settings.solver,
        stop=settings._stop_rule(),
        random_state=settings.random_state,
        verbose=verbose,
        callback=callback,
        keep_cuts=True,
        one_session=True,
    )
    problems = [problem_of(k) for k in range(form.problems)]

    def solve(number: int) -> None:
        if session.ended is Status.INTERRUPTED and not complete:
            raise KeyboardInterrupt
        at, k = divmod(number, form.problems)
        before = number - form.problems
        session.solve(
            problems[k],
            C=float(Cs[at]),
            start=session.results[before].w if at else None,
            memory=session.memories.pop(before) if at else None,
        )

    count = form.problems
    session.solve_all(len(Cs) * count, solve)
    if session.ended is Status.INTERRUPTED and not complete:
        raise KeyboardInterrupt
    return [session.results[at * count : (at + 1) * count] for at in range(len(Cs))]
