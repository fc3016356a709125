"""Progress of a fit: a live line in terminals and notebooks, log records elsewhere.

- In a terminal, rich draws one line per running fit on stderr. Its last state stays.
- In a Jupyter notebook, IPython's display draws the line, because rich cannot update
  a cell without ipywidgets.
- Elsewhere, ``logging.getLogger("cutplane")`` gets a few records at INFO. They are
  shown only if the user has configured logging.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..result import Iteration
from .line import Line
from .places import in_notebook, in_worker, is_terminal

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.live import Live

logger = logging.getLogger("cutplane")

REFRESH_PER_SECOND = 8.0
FIRST_RECORD = 2.0  # seconds
LONGEST_PAUSE = 300.0


@contextmanager
def showing(verbose: int, line: Line) -> Iterator[Callable[[Any], None]]:
    """Show the progress of a fit while the block runs, in the way that suits this process.

    Parameters
    ----------
    verbose : int
        0 shows nothing, 1 and more the progress.
    line : Line

    Yields
    ------
    observer : callable
        Call it with every iteration. This is cheap, because the observer draws rarely or never:
        in a terminal another thread draws.
    """
    if verbose < 1:
        yield lambda record: None
        return
    if in_notebook():
        cell = _Cell(line)
        try:
            yield cell.observe
        finally:
            line.finished = True
            cell.draw()
    elif is_terminal(sys.stderr) and not in_worker():
        try:
            _TERMINAL.open(line)
            yield line.add
        finally:
            _TERMINAL.close(line)
    else:
        yield _Records(line).observe


class _Terminal:
    """The lines of all running fits, at the bottom of the terminal.

    rich redraws them from a thread of its own. A process has one terminal, so there is
    one object for all fits, also for nested fits and for fits in several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._lines: tuple[Line, ...] = ()
        self._live: Live | None = None

    def open(self, line: Line) -> None:
        """Start to show a line."""
        with self._lock:
            self._lines = (*self._lines, line)
            if self._live is None:
                from rich.console import Console
                from rich.live import Live

                self._live = Live(
                    self,
                    console=Console(stderr=True, highlight=False),
                    refresh_per_second=REFRESH_PER_SECOND,
                    # Print other output above the line, unless stdout goes to a file.
                    redirect_stdout=is_terminal(sys.stdout),
                )
                self._live.start()

    def close(self, line: Line) -> None:
        """Stop to update a line. After the last one the terminal is free again."""
        with self._lock:
            line.finished = True
            others = tuple(other for other in self._lines if other is not line)
            live = self._live
            if live is None or len(others) == len(self._lines):
                return
            try:
                if not others:
                    live.transient = line.last is None
                elif line.last is not None:
                    self._lines = others
                    live.console.print(line.rich_text(live.console.width), soft_wrap=True)
            finally:
                if not others:
                    self._live = None
                    live.stop()
                self._lines = others

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        texts = [line.rich_text(options.max_width) for line in self._lines]
        yield Text("\n", no_wrap=True, overflow="ellipsis", end="").join(texts)


_TERMINAL = _Terminal()


class _Cell:
    """A line in the output of a notebook cell."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._handle: Any = None
        self._drawn = -1.0

    def observe(self, record: Iteration) -> None:
        self._line.add(record)
        if time.monotonic() - self._drawn >= 1.0 / REFRESH_PER_SECOND:
            self.draw()

    def draw(self) -> None:
        if self._line.last is None:
            return
        self._drawn = time.monotonic()
        content = {"text/plain": self._line.text()}
        if self._handle is None:
            from IPython.display import display

            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


class _Records:
    """Log records at growing intervals: after 2 s, 4 s, 8 s, ..."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._next = FIRST_RECORD

    def observe(self, record: Iteration) -> None:
        self._line.add(record)
        if record.seconds >= self._next:
            self._next = record.seconds + min(record.seconds, LONGEST_PAUSE)
            logger.info("%s", self._line.message())
