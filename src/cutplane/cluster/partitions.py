"""Dask arrays, dataframes and files: rows in partitions, which Dask spreads over the workers.

Dask tasks make, clean and count the partitions. Then each worker gets some consecutive partitions
and cuts them into blocks.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d

from ..data import partitions
from ..data.partitions import RowFiles
from ..data.rows import column_names, joined_column
from ..data.sums import SumPlan, share_parts
from .executor import workers_of
from .orders import Each, Hold
from .rows import RemoteMatrix, hold_partitions
from .workers import Worker


class CollectionRows:
    """The rows of a Dask array or dataframe, or of files, checked by the workers.

    Attributes
    ----------
    shape : tuple of int
    names : tuple of str or None
        Names of the columns.
    own_labels, own_queries, own_weights : ndarray or None
        Labels, queries and weights that files hold; None for Dask collections.

    Parameters
    ----------
    executor : Client or DaskCluster
    X : Dask array or dataframe, or RowFiles
    """

    def __init__(self, executor: Any, X: Any) -> None:
        self._open = ExitStack()  # closes the client, if it was made here from an address
        self.crew = self._open.enter_context(workers_of(executor))
        # ``held`` closes it. If the fit fails before, it is closed with this object.
        weakref.finalize(self, self._open.close)
        try:
            self._read(X)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all sessions, and close the client if it was made here."""
        self._open.close()

    def _read(self, X: Any) -> None:
        client, workers = self.crew.client, self.crew.checked()
        self.own_labels: np.ndarray | None = None
        self.own_queries: np.ndarray | None = None
        self.own_weights: np.ndarray | None = None
        if isinstance(X, RowFiles):
            contents = _spread(client, X.read, len(X), workers)
            raw = client.map(attrgetter("X"), contents, pure=False)
            names = client.map(attrgetter("names"), contents, pure=False)
            self._take_columns(contents)
        else:
            raw = _pieces_of(client, X, workers)
            names = client.map(column_names, raw, pure=False)
        self.pieces = client.map(partitions.clean, range(len(raw)), raw, pure=False)
        found = client.map(partitions.facts, names, self.pieces, pure=False)
        self.facts = self.crew.collect(found)
        sparse_text = isinstance(X, RowFiles) and X.label is None
        partitions.check_alike(self.facts, widths=not sparse_text)
        width = max(facts.features for facts in self.facts if facts.rows)
        self.shape = (sum(facts.rows for facts in self.facts), width)
        self.names = next(facts.names for facts in self.facts if facts.rows)
        if sparse_text:  # a file has as many columns as its own largest index
            widths = [width] * len(raw)
            self.pieces = client.map(partitions.widen, self.pieces, widths, pure=False)

    def _take_columns(self, contents: list[Any]) -> None:
        """Collect labels, queries and weights of files from the workers."""
        columns = []
        for field, what in (("y", "labels"), ("qid", "qid"), ("weight", "cost")):
            parts = self.crew.client.map(attrgetter(field), contents, pure=False)
            columns.append(joined_column(self.crew.collect(parts), what))
        self.own_labels, self.own_queries, weights = columns
        uniform = weights is None or bool(np.all(weights == 1.0))
        self.own_weights = None if uniform else weights

    def __len__(self) -> int:
        return self.shape[0]

    def labels(self, y: Any) -> np.ndarray:
        """The labels as an array in this process, from an array, a Dask collection or files."""
        if y is None and self.own_labels is None:
            raise ValueError("a Dask collection has no labels of its own; pass y")
        y = self.own_labels if y is None else y
        if hasattr(y, "__dask_graph__") and hasattr(y, "to_delayed"):  # a Dask collection
            y = self.crew.collect([self.crew.client.compute(y)])[0]
        labels = column_or_1d(np.asarray(y), warn=True)
        if len(labels) != len(self):
            raise ValueError(f"y has {len(labels)} labels, but X {len(self)} rows")
        return labels

    @contextmanager
    def held(self, outputs: int) -> Iterator[RemoteMatrix]:
        """The rows in blocks, which the workers hold until the end."""
        with self._open:
            crew, client = self.crew, self.crew.client
            outputs_of_all = [outputs] * len(self.pieces)
            bounds = crew.collect(
                client.map(partitions.block_bounds, self.pieces, outputs_of_all, pure=False)
            )
            rows, edges, first = partitions.all_parts(bounds)
            filled = [k for k, facts in enumerate(self.facts) if facts.rows]
            workers = crew.available()
            numbers = [max(1, self.facts[k].n_stored) for k in filled]
            runs = share_parts(numbers, [worker.threads for worker in workers])
            mine = [filled[a:b] for a, b in runs]
            plans = [SumPlan(edges, first[some[0]], first[some[-1] + 1]) for some in mine]
            hold = Each([Hold(hold_partitions, plan, self.shape[1], outputs) for plan in plans])
            pieces = [[self.pieces[k] for k in some] for some in mine]
            crew.start(workers[: len(plans)], hold, plans, pieces)
            yield RemoteMatrix(crew, plans, rows, self.shape, sum(numbers), self.digest)

    def digest(self) -> bytes:
        """A fingerprint of all partitions."""
        digests = self.crew.collect(
            self.crew.client.map(partitions.digest, self.pieces, pure=False)
        )
        return hashlib.blake2b(b"".join(digests), digest_size=16).digest()


def _pieces_of(client: Any, collection: Any, workers: Sequence[Worker]) -> list[Any]:
    """Futures of the partitions, spread over workers in order.

    They are tasks of the collection's graph, so Dask computes a lost partition again.
    """
    if getattr(collection, "numblocks", (0, 1))[1:] not in ((1,), ()):
        collection = collection.rechunk({1: -1})
    delayed = collection.to_delayed()
    pieces = list(delayed.ravel()) if hasattr(delayed, "ravel") else list(delayed)
    return [
        client.compute(piece, workers=[place], allow_other_workers=True)
        for piece, place in zip(pieces, _places(workers, len(pieces)), strict=True)
    ]


def _spread(client: Any, function: Any, count: int, workers: Sequence[Worker]) -> list[Any]:
    """Futures of function(0), function(1), …, spread over workers in order."""
    return [
        client.submit(function, k, workers=[place], allow_other_workers=True, pure=False)
        for k, place in enumerate(_places(workers, count))
    ]


def _places(workers: Sequence[Worker], count: int) -> list[str]:
    return [workers[k * len(workers) // count].address for k in range(count)]
