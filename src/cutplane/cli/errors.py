"""How a command ends: its exit codes, and the errors whose message is meant for the user."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command tells the shell."""

    OK = 0
    ERROR = 1
    USAGE = 2
    ABOVE_TOLERANCE = 3
    INTERRUPTED = 130


class CommandError(ValueError):
    """An error whose message is meant for the user."""


class UsageError(CommandError):
    """Arguments that do not go together, or not with the data."""
