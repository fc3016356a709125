"""Data sets on disk, as the commands see them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .inputs import Table


def open_table(name: str) -> Table:
    """A data set that stays on disk, with its columns."""
    raise NotImplementedError


def table_chunks(name: str) -> Iterator[Table]:
    """The blocks of a data set, one after the other."""
    raise NotImplementedError


def write_table(name: str, tables: Iterator[Table]) -> Any:
    """Write the parts of a data set to a folder."""
    raise NotImplementedError
