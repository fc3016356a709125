"""A callback that does something in the middle of a fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class At:
    """A callback that does something once, after one iteration."""

    def __init__(self, number: int, action: Callable[[], Any]) -> None:
        self.number, self.action, self.done = number, action, False

    def __call__(self, record: Any) -> None:
        if record.number == self.number and not self.done:
            self.done = True
            self.action()
