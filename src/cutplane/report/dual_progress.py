"""Progress of the decomposition solver: the gap or violation, and the variables that take part.

a against b  iteration   42  gap 0.3 %     dual 122.345    8,192 active  3.2 s
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from .line import Line, format_percent, format_seconds
from .progress import showing

if TYPE_CHECKING:
    from ..dual import DualIteration, DualSettings

Observer = Callable[["DualIteration"], None]


class DualLine(Line):
    """The line of a fit by decomposition.

    Parameters
    ----------
    label : str
    settings : DualSettings
        Say at which gap or violation the fit will stop.
    """

    def __init__(self, label: str, settings: DualSettings) -> None:
        known = settings.stopping in ("relative", "kkt")
        super().__init__(label, settings.tol if known else None)
        self.by_violation = settings.stopping == "kkt"

    def distance(self, record: Any) -> float:  # type: ignore[override]
        """What must fall to the target."""
        return record.violation if self.by_violation else record.relative_gap

    def columns(self) -> dict[str, str]:
        """The parts of the line, in order, by name."""
        record: DualIteration | None = self.last  # type: ignore[assignment]
        if record is None:
            return super().columns()
        columns = {"label": self.label} if self.label else {}
        columns["iteration"] = f"iteration {record.number:4d}"
        if self.by_violation:
            columns["gap"] = f"violation {record.violation:<8.2g}"
        else:
            columns["gap"] = f"gap {format_percent(record.relative_gap):8}"
        if self.target is not None and not self.finished:
            goal = f"{self.target:.2g}" if self.by_violation else format_percent(self.target)
            columns["target"] = f"goal {goal}"
        columns["dual"] = f"dual {record.dual:<9.6g}"
        columns["cuts"] = f"{record.active:7,d} active"
        columns["seconds"] = f"{format_seconds(self.seconds):>6}"
        if self.target is not None and not self.finished:
            columns["left"] = self.time_left()
        return columns


def dual_progress(
    verbose: int, label: str, settings: DualSettings
) -> AbstractContextManager[Observer]:
    """Show how a fit by decomposition is doing while the block runs.

    Parameters
    ----------
    verbose : int
        0 shows nothing, 1 and more the progress.
    label : str
        Name of the fit, at the head of its line.
    settings : DualSettings
        Say at which gap or violation the fit will stop.
    """
    if verbose <= 0:  # a fit may consist of hundreds of problems of which each takes 0.1 ms
        return nullcontext(_ignore)
    return showing(verbose, DualLine(label, settings))


def _ignore(record: DualIteration) -> None:
    pass
