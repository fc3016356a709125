"""Members of a crew: objects on workers, and what comes instead of an answer."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from typing import Any

from .lines import Line
from .orders import Recipe, Worker

PACKAGES = ("numpy", "scipy", "numba")


@dataclass(eq=False)
class Member:
    """An object of the crew, and where it is."""

    number: int
    recipe: Recipe
    worker: Worker
    future: Any = None
    line: Line | None = None
    losses: int = 0
    seconds: float = 0.0  # from questions to its answers so far

    def hang_up(self) -> None:
        """Cut the line to it, if there is one."""
        line, self.line = self.line, None
        if line is not None:
            line.close()

    def dismiss(self) -> None:
        """Let its worker forget it."""
        self.hang_up()
        future, self.future = self.future, None
        if future is not None:
            future.release()


class Lost:
    """In place of an answer."""


@dataclass
class Failed:
    """In place of an answer: what a method raised."""

    error: BaseException


def told(member: Member, error: BaseException) -> BaseException:
    """An error with the worker on which it was raised."""
    place = f"worker {member.worker.name} at {member.worker.address}"
    if type(error) is ValueError:  # for the user
        placed = ValueError(f"{place}: {error}")
        for note in getattr(error, "__notes__", []):
            placed.add_note(note)
        return placed
    error.add_note(f"raised on {place}")
    return error


def is_lost(answer: Any, member: Member) -> bool:
    """Whether there is no answer because the worker is lost; raises what went wrong there."""
    if isinstance(answer, Failed):
        raise told(member, answer.error)
    return isinstance(answer, Lost)


def versions() -> dict[str, str]:
    """Versions that matter, asked of every worker."""
    own = __name__.split(".")[0]
    found = {"python": ".".join(map(str, sys.version_info[:2]))}
    for name in (own, *PACKAGES):
        found[name] = importlib.import_module(name).__version__
    return found


def refusal(theirs: Any, ours: dict[str, str]) -> str:
    """Why a worker with such versions cannot be used; nothing if it can."""
    if isinstance(theirs, BaseException):
        return (
            f"cannot be used: {type(theirs).__name__}: {theirs}; install the same packages on "
            "every worker"
        )
    others = ", ".join(
        f"{name} {theirs.get(name)} instead of {version}"
        for name, version in ours.items()
        if theirs.get(name) != version
    )
    return others and f"has {others}; install the same versions on every worker"
