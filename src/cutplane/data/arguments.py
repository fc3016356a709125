"""Checks of arguments that the readers and writers of files share.

Every message names the argument, what it got and what it takes.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal

import numpy as np

Flag = bool | Literal["auto"]


def integer(name: str, value: Any, least: int, most: int) -> int:
    """An integer in range."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not least <= int(value) <= most:
        raise ValueError(f"{name} must be an integer from {least} to {most}, got {value!r}")
    return int(value)


def flag(name: str, value: Any, *, auto: bool = True) -> Flag:
    """True, False, or if that is an answer 'auto'."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if auto and isinstance(value, str) and value == "auto":
        return "auto"
    options = "True, False or 'auto'" if auto else "True or False"
    raise ValueError(f"{name} must be {options}, got {value!r}")
