"""Tables, facts and a sign of waiting, for commands: styled in a terminal, plain in a pipe."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, cast

from ..result import Certificate
from .places import is_terminal

# Parameters that say how a fit was run, not what was fitted.
RUN_PARAMETERS = ("callback", "verbose", "warm_start", "checkpoint", "executor")

Stream = IO[str] | io.TextIOBase


def print_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], stream: Stream | None = None
) -> None:
    """Print a table, set off by empty lines: names at the left, then values.

    Parameters
    ----------
    head : sequence of str
        Titles of the columns.
    rows : sequence of sequences of str
        As long as the head.
    stream : text file, optional
        Where to print; by default stdout.
    """
    if not is_terminal(stream or sys.stdout):
        print("", *plain_table(head, rows), "", sep="\n", file=stream)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for k, title in enumerate(head):
        table.add_column(title, justify="left" if k == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False, file=cast(IO[str], stream)).print(table)


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


def print_facts(facts: Mapping[str, str], stream: Stream | None = None) -> None:
    """Print names and texts, one pair per line."""
    for name, text in facts.items():
        print(f"{name:<12}{text}", file=stream)
    (stream or sys.stdout).flush()


def print_json(content: Mapping[str, Any], stream: Stream | None = None) -> None:
    """Print a JSON object on one line. Infinity and NaN, which JSON does not have, become null."""
    print(json.dumps(_sayable(content), allow_nan=False), file=stream, flush=True)


def _sayable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _sayable(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show a text in a terminal while the block runs, then remove it."""
    if not is_terminal(sys.stderr):
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(text)):
        yield


def describe_certificate(certificate: Certificate) -> str:
    """A certificate as text; says if it is estimated, or if there is none."""
    if not math.isfinite(certificate.gap):
        known = math.isfinite(certificate.primal)
        objective = f"objective {certificate.primal:.8g}" if known else "objective not known"
        return f"{objective}, without a certificate: its distance from the optimum is not known"
    text = str(certificate)
    return f"{text}, estimated" if certificate.kind == "estimated" else text
