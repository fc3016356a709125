"""Data sets on disk: rows in memory-mapped files, larger than memory if need be.

A data set is a folder of arrays and a manifest. Its rows are cut into the same blocks as those of
a matrix in memory, so that a fit on it gives the same bits; a block is read when its turn comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .arguments import flag, integer
from .array_file import MappedArray, damaged
from .blocks import BlockedMatrix, RowsInBlocks
from .manifest import Manifest, is_label, label_array
from .mapped import MappedRows, mapped_matrix
from .memory import data_budget

_CHUNK = 1 << 24  # bytes of values per chunk


class Dataset(RowsInBlocks):
    """A data set on disk, open for reading.

    Estimators take it in place of X; labels, queries and costs come from it unless they are given:
    ``LinearSVC().fit(dataset)``. It can be pickled: what travels is the path.

    Use :func:`open_dataset` to make one.

    Attributes
    ----------
    path : Path
    shape : tuple of int
        Rows and features.
    dtype : dtype
        Of the values, float32 or float64.
    sparse : bool
    n_numbers : int
        Stored values: non-zeros, or rows times features.
    nbytes : int
        Of all arrays.
    feature_names : tuple of str or None
    label_counts : dict or None
        How many rows have each label; None if there are no labels or more than 65536 different.
    memory_limit : int
        Bytes of the features that may stay in memory between two passes.
    """

    def __init__(
        self,
        path: Any,
        *,
        n_features: int | None = None,
        memory_limit: int | None = None,
        verify: bool = False,
    ) -> None:
        self.path = Path(path)
        self._arguments = (n_features, memory_limit)
        self._manifest = Manifest.read(self.path)
        self._files = {
            name: MappedArray(self.path / f"{name}.npy", record)
            for name, record in self._manifest.arrays.items()
        }
        self._features = self._manifest.features
        if n_features is not None:
            self._widen(n_features)
        self._mapped = MappedRows(
            self._files["values"],
            self._files.get("indices"),
            self._files.get("starts"),
            self._features,
        )
        limit = data_budget() if memory_limit is None else memory_limit
        self.memory_limit = integer("memory_limit", limit, 0, 2**62)
        if flag("verify", verify, auto=False):
            self.verify()

    def _widen(self, n_features: int) -> None:
        wanted = integer("n_features", n_features, 1, 2**31 - 1)
        if wanted < self._features or (wanted > self._features and not self.sparse):
            raise ValueError(
                f"{self.path} has {self._features} features, not {wanted}; "
                + (
                    "it can only be opened with more"
                    if self.sparse
                    else "a dense data set is fixed"
                )
            )
        self._features = wanted

    # -- what there is ------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._manifest.rows

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self._features

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self._manifest.rows, self._features

    def __len__(self) -> int:
        return self._manifest.rows

    @property
    def sparse(self) -> bool:
        """Whether rows are stored without their zeros."""
        return self._manifest.sparse

    @property
    def dtype(self) -> np.dtype:
        """Type of the values."""
        return self._files["values"].array.dtype

    @property
    def n_numbers(self) -> int:
        """Stored values."""
        return self._manifest.numbers

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self._manifest.nbytes

    @property
    def feature_bytes(self) -> int:
        """Bytes that a pass over the rows reads."""
        records = self._manifest.arrays
        return sum(records[name].nbytes for name in ("values", "indices") if name in records)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns, if they have any."""
        same = self._features == self._manifest.features
        return self._manifest.feature_names if same else None

    @property
    def label_counts(self) -> dict[Any, int] | None:
        """How many rows have each label."""
        labels, counts = self._manifest.labels, self._manifest.label_counts
        if labels is None or counts is None:
            return None
        return dict(zip(labels, counts, strict=True))

    @cached_property
    def y(self) -> np.ndarray | None:
        """Labels as they were given: float64, int64 or text; None if there are none."""
        stored = self._column("y", "is no label", lambda y: is_label(self._manifest, y))
        return None if stored is None else label_array(self._manifest, stored)

    @cached_property
    def qid(self) -> np.ndarray | None:
        """Query of each row, int64; None if there are none."""
        return self._column("qid", "is no query", lambda qid: qid >= 0)

    @cached_property
    def cost(self) -> np.ndarray | None:
        """Factor on C of each row, float64; None if there are none."""
        return self._column("cost", "is no cost", lambda cost: np.isfinite(cost) & (cost >= 0.0))

    def _column(
        self, name: str, fault: str, fits: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray | None:
        """A column of numbers that fit, each of them."""
        if name not in self._files:
            return None
        file = self._files[name]
        file.check_size()
        good = fits(file.array)
        if not good.all():
            row = int(good.argmin())
            raise damaged(f"{file.name}: {file.array[row]} in row {row} {fault}")
        return file.array

    def digest(self) -> bytes:
        """Identifies everything in the data set, by the digests of the manifest."""
        return self._manifest.digest()

    def __repr__(self) -> str:
        rows, features = self.shape
        kind = "sparse" if self.sparse else "dense"
        return (
            f"<Dataset {str(self.path)!r}: {rows} rows, {features} features, {kind} {self.dtype}>"
        )

    @property
    def given_memory_limit(self) -> int | None:
        """The memory limit if one was given."""
        return self._arguments[1]

    # -- rows ---------------------------------------------------------------------

    def rows(self, first: int = 0, last: int | None = None) -> Any:
        """Rows ``first`` to ``last`` in memory.

        Parameters
        ----------
        first, last : int
            As in a slice; by default all rows.

        Returns
        -------
        X : ndarray or scipy.sparse.csr_matrix
        """
        first, last, _ = slice(first, last).indices(self.n_rows)
        last = max(first, last)
        return self._mapped.rows(first, last, self._features)

    def chunks(self, rows: int | None = None) -> Iterator[tuple[Any, ...]]:
        """All rows in consecutive chunks, as :func:`write_dataset` takes them.

        Parameters
        ----------
        rows : int, optional
            Rows per chunk; by default as many as take about 16 MiB.

        Yields
        ------
        chunk : tuple
            ``(X, y, qid, cost)``, with None for what is not there.
        """
        if rows is None:
            per_row = max(1, self._manifest.nbytes // self.n_rows)
            rows = max(1, _CHUNK // per_row)
        rows = integer("rows", rows, 1, 2**62)
        columns = (self.y, self.qid, self.cost)
        for first in range(0, self.n_rows, rows):
            last = min(first + rows, self.n_rows)
            yield (
                self.rows(first, last),
                *(None if column is None else column[first:last] for column in columns),
            )

    def blocks(self, outputs: int = 1, only: range | None = None) -> BlockedMatrix:
        """The rows in blocks, for a model with so many scores per row; or some of the blocks."""
        return mapped_matrix(self._mapped, self, outputs, self.memory_limit, self.digest(), only)

    # -- the files ----------------------------------------------------------------

    def verify(self) -> None:
        """Read everything and compare the digests; ValueError if something was changed."""
        for file in self._files.values():
            file.verify()

    def close(self) -> None:
        """Close the files. Arrays that were handed out stay valid."""
        for file in self._files.values():
            file.close()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:
        return _reopen, (str(self.path.absolute()), self.digest(), *self._arguments)


def _reopen(path: str, digest: bytes, n_features: int | None, memory_limit: int | None) -> Dataset:
    dataset = Dataset(path, n_features=n_features, memory_limit=memory_limit)
    if dataset.digest() != digest:
        raise ValueError(f"{path} is another data set than the one that was pickled")
    return dataset


def open_dataset(
    path: Any,
    *,
    n_features: int | None = None,
    memory_limit: int | None = None,
    verify: bool = False,
) -> Dataset:
    """Open a data set on disk.

    Parameters
    ----------
    path : path
        A folder that :func:`write_dataset` or :func:`convert_dataset` made.
    n_features : int, optional
        More columns than there are, for sparse test data without the last features of the
        training data.
    memory_limit : int, optional
        Bytes of the features that may stay in memory between two passes; the rest is read from
        the disk in every pass. By default half of the memory that is available now, in this
        container if it is one.
    verify : bool, default=False
        Read everything and compare the digests first.

    Returns
    -------
    dataset : Dataset

    Raises
    ------
    ValueError
        If the folder is not a data set, was changed or cut off, or is of a newer format.
    """
    return Dataset(path, n_features=n_features, memory_limit=memory_limit, verify=verify)
