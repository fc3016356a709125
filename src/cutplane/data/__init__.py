"""Row blocks: how the data is laid out and cut up. Knows no loss."""

from .block_sum import BlockSum
from .blocks import BlockedMatrix, as_blocks

__all__ = ["BlockSum", "BlockedMatrix", "as_blocks"]
