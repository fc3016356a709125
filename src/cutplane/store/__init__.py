"""Files of our own: a container of values and arrays, shared by models and checkpoints."""

from .container import Content, Header, read, read_header, write

__all__ = ["Content", "Header", "read", "read_header", "write"]
