"""Tables and waiting, for commands: tidy in a terminal, plain text in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .places import is_terminal


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table to stdout, set off by empty lines: names at the left, then values.

    Parameters
    ----------
    head : sequence of str
        Titles of the columns.
    rows : sequence of sequences of str
        As long as the head.
    """
    if not is_terminal(sys.stdout):
        print("", *plain_table(head, rows), "", sep="\n")
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for k, title in enumerate(head):
        table.add_column(title, justify="left" if k == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)


def plain_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table without colours or rules."""
    cells = [list(head), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if k else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show in a terminal, while the block runs, what takes its time; then wipe it off."""
    if not is_terminal(sys.stderr):
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(text)):
        yield
