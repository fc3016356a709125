"""Problems that share their data, solved side by side: a thread takes one after the other.

``solve`` gives every problem all threads; here every thread has a problem of its own, because a
problem of many that read the same rows is too small to be worth several. Results are the same,
to the last bit: a problem knows nothing of the others, and its random numbers are those that
it would get in the order of the problems.

Memory: the rows are there once, and each thread has the vectors of one solver.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Sequence

import numpy as np
from sklearn.utils import check_random_state

from .. import _interrupts
from ..exec import make_executor
from ..result import SolveResult, Status
from ._fit import Fitted, Memory, Problem, Settings, solve


def solve_in_parallel(
    problems: Sequence[Problem],
    settings: Settings,
    threads: int,
    numbers: int,
    *,
    starts: Sequence[np.ndarray | None] | None = None,
    memories: dict[int, Memory] | None = None,
    dual_points: np.ndarray | None = None,
) -> Fitted:
    """As ``solve``, with problems side by side; not for checkpoints and the user's callbacks.

    Parameters
    ----------
    problems, settings, starts, memories, dual_points
        As for ``solve``.
    threads : int
        That solve problems; those that are left over, if there are fewer problems, help inside.
    numbers : int
        Stored numbers of the data.
    """
    fit = _ParallelFit(problems, settings, threads, numbers, starts, memories, dual_points)
    helpers = [
        threading.Thread(target=fit.help, name=f"cutplane_problems_{k}", daemon=True)
        for k in range(min(threads, len(problems)) - 1)
    ]
    for helper in helpers:
        helper.start()
    while True:  # until nothing is left, or for the second time after an interrupt
        try:
            fit.work()
            for helper in helpers:
                helper.join()
            if fit.error is not None:
                raise fit.error
            if not fit.take_missing():
                return fit.fitted()
        except BaseException as error:
            if not isinstance(error, KeyboardInterrupt) or not fit.interrupted():
                fit.give_up(error)
                for helper in helpers:
                    helper.join()
                raise


class _ParallelFit:
    """The state of ``solve_in_parallel``, whose parameters these are.

    Attributes
    ----------
    error : BaseException or None
        What a thread has raised first.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        settings: Settings,
        threads: int,
        numbers: int,
        starts: Sequence[np.ndarray | None] | None,
        memories: dict[int, Memory] | None,
        dual_points: np.ndarray | None,
    ) -> None:
        self.error: BaseException | None = None
        self._problems, self._settings = problems, settings
        self._inner, self._numbers = max(1, threads // len(problems)), numbers
        self._starts, self._memories, self._dual_points = starts, memories or {}, dual_points
        self._results: dict[int, SolveResult] = {}
        self._kept: dict[int, Memory] = {}
        self._lock = threading.Lock()  # for what follows
        self._todo = list(range(len(problems)))[::-1]
        self._random = self._random_states()
        self._end = threading.Event()  # set when the user, or an error, has ended the fit
        self._began = time.perf_counter()

    def _random_states(self) -> list[np.random.RandomState | None]:
        """For every problem the state that the fit's generator has when its turn comes."""
        random_state, solver = self._settings.random_state, self._settings.solver
        try:
            random = check_random_state(random_state)
        except ValueError as error:
            raise ValueError(f"random_state: {error}") from error
        states: list[np.random.RandomState | None] = []
        for _ in self._problems if solver != "auto" or random_state is not None else ():
            if solver in ("ocas", "cpa"):  # they draw no numbers
                break
            states.append(np.random.RandomState())
            states[-1].set_state(random.get_state())  # type: ignore[union-attr]
            random.randint(2**31 - 1)  # as ``Run.rng``
        return states or [None] * len(self._problems)

    def help(self) -> None:
        """What a helper thread does."""
        with _interrupts.helping(self._end):
            try:
                self.work()
            except BaseException as error:
                self.give_up(error)

    def work(self) -> None:
        """Solve problems until none is left."""
        while True:
            with self._lock:
                if not self._todo or self.error is not None:
                    return
                k = self._todo.pop()
                problem = self._problems[k]  # made here, one at a time
                start = None if self._starts is None else self._starts[k]
            self._solve(k, problem, start)

    def _solve(self, k: int, problem: Problem, start: np.ndarray | None) -> None:
        left = self._settings.time_limit - (time.perf_counter() - self._began)
        over = self._end.is_set()  # then one iteration, so that the model is complete
        settings = dataclasses.replace(
            self._settings,
            time_limit=0.0 if over else max(0.0, left),
            random_state=self._random[k],
        )
        with make_executor(self._inner, self._numbers) as executor:
            fitted = solve(
                [problem],
                settings,
                executor,
                starts=[start],
                memories={0: self._memories[k]} if k in self._memories else None,
                dual_points=None if self._dual_points is None else self._dual_points[k : k + 1],
            )
        (result,) = fitted.results
        if result.status is Status.INTERRUPTED:
            self._end.set()
        elif over and result.status is not Status.CONVERGED:
            result = dataclasses.replace(result, status=Status.INTERRUPTED)
        if 0 in fitted.memories:
            self._kept[k] = fitted.memories[0]
        self._results[k] = result

    def interrupted(self) -> bool:
        """Note an interrupt between two problems; False if it is to be raised.

        As in ``solve``: so it is if nothing has been solved, and if it is not the first one.
        """
        if not self._results or self._end.is_set():
            return False
        self._end.set()
        _interrupts.handled()
        return True

    def give_up(self, error: BaseException) -> None:
        """Let nobody begin another problem, and everybody end soon."""
        with self._lock:
            self.error = self.error or error
        self._end.set()

    def take_missing(self) -> bool:
        """Whether problems are left that an interrupt has left without a result."""
        self._todo = [k for k in range(len(self._problems)) if k not in self._results][::-1]
        return bool(self._todo)

    def fitted(self) -> Fitted:
        """What ``solve`` would return."""
        order = range(len(self._problems))
        return Fitted([self._results[k] for k in order], {k: self._kept[k] for k in self._kept})
