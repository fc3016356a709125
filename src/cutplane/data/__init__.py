"""Rows of data: readers, writers, and the blocks that every pass goes through. Knows no loss."""

from .blocks import BlockedMatrix, as_blocks
from .rows import Rows
from .sums import BlockSum

__all__ = ["BlockSum", "BlockedMatrix", "Rows", "as_blocks"]
