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
    addresses = [worker.address for worker in workers]
    return [
        client.compute(
            piece,
            workers=[addresses[k * len(addresses) // len(pieces)]],
            allow_other_workers=True,
        )
        for k, piece in enumerate(pieces)
    ]
