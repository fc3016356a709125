"""Rows of data: readers, writers, and the blocks that every pass goes through. Knows no loss."""

from typing import TYPE_CHECKING

from .._lazy import importing

if TYPE_CHECKING:
    from .blocks import BlockedMatrix, as_blocks
    from .rows import Rows
    from .sums import BlockSum

# The blocks load numba, which takes longer than most commands need.
__getattr__, __all__ = importing(__name__)
