"""What surrounds a fit: interrupts are kept, and scikit-learn's callbacks are called.

Everything that touches ``sklearn.callback``, experimental since 1.9, is here. On older versions,
and when no callback is set, the adapter does nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _interrupts

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def _with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        return method


__all__ = ["CallbackSupportMixin", "FitTasks", "with_callbacks"]


def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
    """For ``fit``: support scikit-learn's callbacks, and lose no interrupt."""

    @functools.wraps(method)
    def fit(*args: Any, **options: Any) -> Any:
        with _interrupts.kept():
            return method(*args, **options)

    return _with_callbacks(fit)


class FitTasks:
    """The tree of tasks that callbacks see: fit → one problem per class → iterations.

    Parameters
    ----------
    estimator : estimator
    X, y : the training data as the user gave them
    problems : int
        Number of problems that one fit solves.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, problems: int) -> None:
        self.active = bool(getattr(estimator, "_skl_callbacks", None))
        self._estimator = estimator
        self._data = {"X": X, "y": y}
        if self.active:
            self._root = estimator._init_callback_context(max_subtasks=problems)
            self._root.call_on_fit_task_begin(estimator=estimator, **self._data)

    def begin_problem(self, label: str) -> None:
        """A problem starts; its iterations follow."""
        if self.active:
            self._problem = self._root.subcontext(task_name=label, max_subtasks=None)
            self._problem.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def iteration(self, attributes: Callable[[], dict[str, Any]]) -> bool:
        """An iteration ended. ``attributes`` gives the fitted attributes as of now.

        Returns whether a callback asks to stop.
        """
        if not self.active:
            return False
        task = self._problem.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=self._estimator, **self._data)
        return task.call_on_fit_task_end(
            estimator=self._estimator, reconstruction_attributes=attributes, **self._data
        )

    def end_problem(self) -> None:
        """A problem is solved."""
        if self.active:
            self._problem.call_on_fit_task_end(estimator=self._estimator, **self._data)

    def end(self) -> None:
        """The fit is done."""
        if self.active:
            self._root.call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes={}, **self._data
            )
