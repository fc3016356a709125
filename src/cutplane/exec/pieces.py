"""Dask collections in pieces: futures of their partitions, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .orders import Worker


def is_collection(X: Any) -> bool:
    """Whether this is a Dask array, dataframe or series; nothing is imported to know."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def pieces_of(client: Any, collection: Any, workers: Sequence[Worker]) -> list[Any]:
    """Futures of the partitions, spread over workers in order.

    They are tasks of the collection's graph: one that is lost is computed again.
    """
    if getattr(collection, "numblocks", (0, 1))[1:] not in ((1,), ()):
        collection = collection.rechunk({1: -1})
    delayed = collection.to_delayed()
    pieces = list(delayed.ravel()) if hasattr(delayed, "ravel") else list(delayed)
    return [
        client.compute(piece, workers=[place], allow_other_workers=True)
        for piece, place in zip(pieces, _places(workers, len(pieces)), strict=True)
    ]


def spread(client: Any, function: Any, count: int, workers: Sequence[Worker]) -> list[Any]:
    """Futures of function(0), function(1), …, spread over workers in order."""
    return [
        client.submit(function, k, workers=[place], allow_other_workers=True, pure=False)
        for k, place in enumerate(_places(workers, count))
    ]


def _places(workers: Sequence[Worker], count: int) -> list[str]:
    return [workers[k * len(workers) // count].address for k in range(count)]
