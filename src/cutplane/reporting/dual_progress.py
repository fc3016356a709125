"""Progress of the decomposition solver: the gap or violation, and the variables that take part.

a against b  iteration   42  gap 0.3 %     dual 122.345    8,192 active  3.2 s
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .line import Line, format_percent, format_seconds

if TYPE_CHECKING:
    from ..dual.records import DualIteration


class DualLine(Line):
    """The line of a fit by decomposition.

    Parameters
    ----------
    label : str
    tol : float
        The gap or violation at which the fit will stop.
    stopping : str
        The unit of ``tol``.
    """

    def __init__(self, label: str, tol: float, stopping: str) -> None:
        super().__init__(label, tol if stopping in ("relative", "kkt") else None)
        self.by_violation = stopping == "kkt"

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
