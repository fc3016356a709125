"""Progress of the decomposition solver: the violation it fights and the variables that take part.

a against b  iteration   42  violation 0.031   dual 122.345    8,192 active  3.2 s
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from .line import Line, format_seconds
from .progress import showing

if TYPE_CHECKING:
    from ..dual import DualIteration

Observer = Callable[["DualIteration"], None]


class DualLine(Line):
    """The line of a fit by decomposition.

    Parameters
    ----------
    label : str
    tol : float
        The violation at which the fit will stop.
    """

    def __init__(self, label: str, tol: float) -> None:
        super().__init__(label, tol)

    @staticmethod
    def distance(record: Any) -> float:
        """What must fall to the target."""
        return record.violation

    def columns(self) -> dict[str, str]:
        """The parts of the line, in order, by name."""
        record: DualIteration | None = self.last  # type: ignore[assignment]
        if record is None:
            return super().columns()
        columns = {"label": self.label} if self.label else {}
        columns["iteration"] = f"iteration {record.number:4d}"
        columns["gap"] = f"violation {record.violation:<8.2g}"
        if not self.finished:
            columns["target"] = f"goal {self.target:.2g}"
        columns["dual"] = f"dual {record.dual:<9.6g}"
        columns["cuts"] = f"{record.active:7,d} active"
        columns["seconds"] = f"{format_seconds(self.seconds):>6}"
        if not self.finished:
            columns["left"] = self.time_left()
        return columns


def dual_progress(verbose: int, label: str, tol: float) -> AbstractContextManager[Observer]:
    """Show how a fit by decomposition is doing while the block runs.

    Parameters
    ----------
    verbose : int
        0 shows nothing, 1 and more the progress.
    label : str
        Name of the fit, at the head of its line.
    tol : float
        The violation at which the fit will stop.
    """
    if verbose <= 0:  # a fit may consist of hundreds of problems of which each takes 0.1 ms
        return nullcontext(_ignore)
    return showing(verbose, DualLine(label, tol))


def _ignore(record: DualIteration) -> None:
    pass
