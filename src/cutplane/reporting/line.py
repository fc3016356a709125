"""The line of text that shows the progress of a fit.

    class 3  iteration   42  primal 123.456    dual 122.345    gap 0.9 %  41 cuts  3.2 s

The remaining time is estimated from the trend of log(gap). Its slope is the median
of the slopes of all pairs of samples (Theil 1950, Sen 1968), because bundle methods
improve in jumps, which would mislead a least squares fit. The trend over t is too
optimistic, because convergence slows down. The trend over log(t) is too pessimistic.
Runs on real data end between the two, near their geometric mean. If the two estimates
are far apart, no time is shown.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..result import Iteration

if TYPE_CHECKING:
    from rich.text import Text

# A line keeps at most this many samples of the run; the trend uses the later half of them.
SAMPLES = 64
FEWEST_SAMPLES = 8
# An estimate is shown after the first second, and only if it is at most this many times
# the time already spent.
FARTHEST = 20.0
# The two estimates may differ at most by this factor.
FARTHEST_APART = 5.0

# If the terminal is narrow, columns are dropped in this order.
DROP_ORDER = ("cuts", "note", "target", "dual", "primal", "left", "seconds", "iteration")


class Line:
    """The state of a fit, for one line of output.

    One thread may add records while another one draws. So ``add`` replaces objects and never
    changes them.

    Parameters
    ----------
    label : str
    target : float or None
        The relative gap at which the fit will stop.
    note : callable, optional
        Returns a text to show in addition, or an empty text.
    """

    def __init__(
        self, label: str, target: float | None, note: Callable[[], str] | None = None
    ) -> None:
        self.label = label
        self.note = note
        self.target = target
        self.last: Iteration | None = None
        self.finished = False
        self._samples: tuple[Iteration, ...] = ()
        self._stride = 1
        self._heard = time.monotonic()  # when the last record came

    def add(self, record: Iteration) -> None:
        """Add an iteration."""
        self._heard = time.monotonic()
        self.last = record
        if record.number % self._stride == 0:
            self._samples = (*self._samples, record)
            if len(self._samples) > SAMPLES:
                self._samples = self._samples[1::2]
                self._stride *= 2

    @staticmethod
    def distance(record: Iteration) -> float:
        """The number that must fall to the target."""
        return record.relative_gap

    @property
    def seconds(self) -> float:
        """Time of the fit so far: that of the last record, plus the time since it came."""
        known = 0.0 if self.last is None else self.last.seconds
        return known if self.finished else known + time.monotonic() - self._heard

    def columns(self) -> dict[str, str]:
        """The parts of the line, in order, by name."""
        columns = {"label": self.label} if self.label else {}
        record = self.last
        if record is None:
            return {**columns, "seconds": format_seconds(self.seconds)}
        columns["iteration"] = f"iteration {record.number:4d}"
        columns |= self.values(record)
        columns["seconds"] = f"{format_seconds(self.seconds):>6}"
        if self.target is not None and not self.finished:
            columns["left"] = self.time_left()
        if self.note is not None and (text := self.note()):
            columns["note"] = text
        return columns

    def values(self, record: Iteration) -> dict[str, str]:
        """The columns between the number of an iteration and the time."""
        return {
            "primal": f"primal {record.primal:<9.6g}",
            "dual": f"dual {record.dual:<9.6g}",
            "gap": f"gap {format_percent(record.relative_gap):8}",
            **self.goal(format_percent),
            "cuts": f"{record.cuts:4d} cuts",
        }

    def goal(self, form: Callable[[float], str]) -> dict[str, str]:
        """The column of the target, while the fit is under way."""
        if self.target is None or self.finished:
            return {}
        return {"target": f"goal {form(self.target)}"}

    def time_left(self) -> str:
        """The estimate in words, always of the same width: the other columns do not move."""
        left = self.remaining()
        return f"{'' if left is None else f'about {format_seconds(round_up(left))} left':15}"

    def fitting(self, width: int) -> dict[str, str]:
        """The columns that fit into the width."""
        columns = self.columns()
        for name in DROP_ORDER:
            if len("  ".join(columns.values())) <= width:
                break
            if len(columns) > 1:
                columns.pop(name, None)
        return columns

    def text(self, width: int = 1000) -> str:
        """The line without colours."""
        return "  ".join(self.fitting(width).values()).rstrip()

    def rich_text(self, width: int) -> Text:
        """The line for a terminal of this width."""
        from rich.text import Text

        styles = {"label": "bold", "gap": "bold", "target": "dim", "cuts": "dim", "left": "dim"}
        text = Text("  ", no_wrap=True, overflow="ellipsis", end="").join(
            Text(part, styles.get(name, "")) for name, part in self.fitting(width).items()
        )
        text.rstrip()
        return text

    def message(self) -> str:
        """The line as a log record."""
        columns = self.columns()
        columns.pop("target", None)
        label = columns.pop("label", "")
        body = ", ".join(" ".join(part.split()) for part in columns.values() if part.strip())
        return f"{label}: {body}" if label else body

    def remaining(self) -> float | None:
        """Seconds until the target; None if there is no good estimate."""
        if self.target is None or self.last is None or self.seconds < 1.0:
            return None
        since = self.seconds - self.last.seconds
        samples = self._samples[len(self._samples) // 2 :]
        left = seconds_left(samples, self.target, self.distance)
        if left is None or left > FARTHEST * self.seconds:
            return None
        return max(0.0, left - since)


class DualLine(Line):
    """The line of a fit by decomposition: gap or violation, and the number of active variables.

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
        """The number that must fall to the target."""
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


def seconds_left(
    samples: Sequence[Iteration],
    target: float,
    distance: Callable[[Iteration], float] = Line.distance,
) -> float | None:
    """Seconds from the last sample until the distance, the relative gap, reaches ``target``.

    None if the samples show no trend, or if the trends over t and over log(t) are too
    far apart.
    """
    if len(samples) < FEWEST_SAMPLES or target <= 0.0:
        return None
    gaps = np.array([distance(sample) for sample in samples])
    times = np.array([sample.seconds for sample in samples])
    if not (np.all(np.isfinite(gaps)) and np.all(gaps > 0.0) and np.all(np.diff(times) > 0.0)):
        return None
    if times[0] <= 0.0:
        return None
    heights = np.log(gaps)
    height = math.log(target)
    linear = _reaches(times, heights, height)
    power = _reaches(np.log(times), heights, height)
    if linear is None or power is None or power > 100.0:  # e^100 s
        return None
    soon = max(0.0, linear - times[-1])
    late = max(0.0, math.exp(power) - times[-1])
    if late > FARTHEST_APART * max(soon, 1.0):
        return None
    return math.sqrt(soon * late)


def _reaches(x: np.ndarray, heights: np.ndarray, height: float) -> float | None:
    """Where the trend of ``heights`` over x reaches ``height``; None if it does not fall."""
    first, second = np.triu_indices(len(x), 1)
    slope = np.median((heights[second] - heights[first]) / (x[second] - x[first]))
    if not slope < 0.0:
        return None
    return float((height - np.median(heights - slope * x)) / slope)


def round_up(seconds: float) -> int:
    """Round up to a number that looks like an estimate: 1 to 10, 15, 20, 30, 40, ..."""
    if seconds <= 10.0:
        return max(1, math.ceil(seconds))
    step = 5 if seconds <= 20.0 else 10 if seconds <= 120.0 else 60
    return step * math.ceil(seconds / step)


def plural(count: int, name: str, names: str = "") -> str:
    """A number of things: 1 row, 2,000 rows."""
    return f"{count:,} {name if count == 1 else names or f'{name}s'}"


def format_percent(fraction: float) -> str:
    """A fraction in per cent, two digits."""
    percent = 100.0 * fraction
    return f"{percent:.0f} %" if 10.0 <= percent < 1e6 else f"{percent:.2g} %"


def format_seconds(seconds: float) -> str:
    """A duration for people. An integer number of seconds is shown without decimals."""
    if 5e-5 <= seconds < 0.01:
        return f"{1e3 * seconds:.2g} ms"
    if seconds < 10.0 and not isinstance(seconds, int):
        return f"{seconds:.2f} s" if seconds < 1.0 else f"{seconds:.1f} s"
    if round(seconds) < 120:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min"
