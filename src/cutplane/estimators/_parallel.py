"""Solve problems that share their data side by side: each thread solves one problem at a time.

``solve`` gives all threads to one problem after the other. Here every thread has a problem of its
own, because problems of this kind are too small to use several threads well. Results are the same
to the last bit: a problem does not depend on the others, and it gets the random numbers that it
would get if the problems were solved in order.

Memory holds the rows once, and for each thread the vectors of one solver.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from .. import _interrupts
from ..exec import Executor, ThreadExecutor, make_executor
from ..result import SolveResult, Status
from ._fit import Fitted, Memory, Problem, Settings, Start, random_of, solve


def solve_in_parallel(
    problems: Sequence[Problem],
    settings: Settings,
    threads: int,
    executor: Executor,
    starts: Callable[[int], Start] | None,
) -> Fitted:
    """As ``solve``, with problems side by side. It supports no checkpoints and no callbacks.

    Parameters
    ----------
    problems, settings, starts
        As for ``solve``.
    threads : int
        Number of threads. If there are fewer problems than threads, each problem gets several.
    executor : Executor
        Its threads are used, if they are enough.
    """
    count, began = len(problems), time.perf_counter()
    random = _random_states(settings, count)
    results: dict[int, SolveResult] = {}
    kept: dict[int, Memory] = {}
    caller, making = threading.current_thread(), threading.Lock()
    end = threading.Event()  # set when an interrupt or an error has ended the fit
    interrupted = False  # by the user; then the remaining problems get one iteration each

    def solve_one(k: int) -> None:
        nonlocal interrupted
        with making:  # threads make problems and starts one at a time
            problem, start = problems[k], Start() if starts is None else starts(k)
        over = end.is_set()  # then do one iteration, so that the model is complete
        left = settings.time_limit - (time.perf_counter() - began)
        own = dataclasses.replace(
            settings, time_limit=0.0 if over else max(0.0, left), random_state=random[k]
        )
        with make_executor(max(1, threads // count), problem.work) as inside:
            fitted = solve([problem], own, inside, starts=lambda _: start)
        (result,) = fitted.results
        if result.status is Status.INTERRUPTED:
            # Only the calling thread gets the user's interrupt; helpers end as a consequence.
            interrupted |= threading.current_thread() is caller
            end.set()
        elif over and result.status is not Status.CONVERGED:
            result = dataclasses.replace(result, status=Status.INTERRUPTED)
        if 0 in fitted.memories:
            kept[k] = fitted.memories[0]
        results[k] = result

    def task(k: int) -> None:
        """Solve a problem. Helper threads stop after the iteration in which the fit ends."""
        own = threading.current_thread() is caller
        with contextlib.nullcontext() if own else _interrupts.helping(caller, end):
            try:
                solve_one(k)
            except BaseException:
                end.set()
                raise

    side_by_side = min(threads, count)
    enough = executor.threads >= side_by_side
    pool: Executor
    with contextlib.nullcontext(executor) if enough else ThreadExecutor(side_by_side) as pool:
        while todo := [k for k in range(count) if k not in results]:
            try:
                pool.map(task, todo)
            except KeyboardInterrupt:
                # As in ``solve``: it is raised if nothing is solved, or if it is not the first.
                if interrupted or not results:
                    raise
                interrupted = True
                end.set()
                _interrupts.handled()
    return Fitted([results[k] for k in range(count)], kept)


def _random_states(settings: Settings, count: int) -> list[np.random.RandomState | None]:
    """For every problem, the generator's state as if the problems before it had been solved."""
    random = random_of(settings.random_state)
    unseeded = settings.solver == "auto" and settings.random_state is None
    states: list[np.random.RandomState | None] = [None] * count
    if unseeded or settings.solver in ("ocas", "cpa"):  # no random numbers are drawn
        return states
    for k in range(count):
        states[k] = copy.deepcopy(random)
        random.randint(2**31 - 1)  # as ``_Fit._rng`` does
    return states
