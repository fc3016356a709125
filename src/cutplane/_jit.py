"""The one way this project compiles a loop.

Kernels release the GIL and never start threads of their own: parallelism is
the executor's business (see ``cutplane.exec``). Compiled code is cached on
disk, next to the source or in the user's cache folder; where neither can be
written the kernels are compiled again in every process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numba

# Reassociating sums lets the compiler vectorise them. NaN and infinity keep
# their meaning, so a kernel that may meet them can use this set of flags.
REASSOCIATE = {"reassoc", "contract", "nsz"}


def jit(function: Callable[..., Any] | None = None, *, reassociate: bool = False) -> Any:
    """Compile ``function`` on first use, without the GIL.

    Parameters
    ----------
    function : callable
        A kernel on flat arrays.
    reassociate : bool, default=False
        Let the compiler change the order of floating point sums, so that dense
        reductions use vector instructions. The order is fixed at compile time:
        results stay reproducible.
    """
    if function is None:
        return lambda f: jit(f, reassociate=reassociate)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    if reassociate:
        options["fastmath"] = REASSOCIATE
    try:
        return _tolerant(numba.njit(cache=True, **options)(function))
    except RuntimeError:  # no folder for the cache can be written
        return numba.njit(**options)(function)


def _tolerant(dispatcher: Any) -> Any:
    """Let a full disk cost the cache entry, not the call."""
    cache: Any = getattr(dispatcher, "_cache", None)
    save = getattr(cache, "save_overload", None)
    if save is not None:

        def save_if_possible(signature: Any, data: Any) -> None:
            with contextlib.suppress(OSError):
                save(signature, data)

        cache.save_overload = save_if_possible
    return dispatcher
