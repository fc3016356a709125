"""Progress of the decomposition solver: the gap or violation, and the variables that take part.

a against b  iteration   42  gap 0.3 %     dual 122.345    8,192 active  3.2 s
"""

from __future__ import annotations

from typing import Any

from .line import Line, format_percent


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

    def values(self, record: Any) -> dict[str, str]:
        """The columns between the number of an iteration and the time."""
        if self.by_violation:
            gap = {"gap": f"violation {record.violation:<8.2g}", **self.goal("{:.2g}".format)}
        else:
            gap = {"gap": f"gap {format_percent(record.relative_gap):8}"}
            gap |= self.goal(format_percent)
        active = f"{record.active:7,d} active"
        return {**gap, "dual": f"dual {record.dual:<9.6g}", "cuts": active}
