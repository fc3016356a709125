"""Row blocks: how the data is laid out and cut up. Knows no loss."""

from .blocks import BlockedMatrix, BlockSum, as_blocks

__all__ = ["BlockSum", "BlockedMatrix", "as_blocks"]
