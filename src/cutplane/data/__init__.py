"""Row blocks: how the data is laid out and cut up. Knows no loss."""

from .blocks import BlockedMatrix, as_blocks

__all__ = ["BlockedMatrix", "as_blocks"]
