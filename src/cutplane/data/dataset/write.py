"""Write a data set to disk, chunk by chunk.

Only the current chunk is in memory. Each chunk is checked: its numbers are finite, and its shape
and types are right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from ..._checks import check_column, check_flag, check_integer, int64_queries
from ..files import naming, replacing, replacing_folder
from ..rows import LARGEST_VALUE, MOST_FEATURES, Rows, canonical, column_names, first_not_finite
from .arrays import ArrayWriter
from .manifest import LARGEST_INTEGER, NAME, Manifest
from .read import Dataset

MOST_LABELS = 1 << 16  # with more distinct labels, labels are not counted
# The kind of labels, by the letter that numpy has for the kind of their type.
LABEL_KINDS = {**dict.fromkeys("biu", "integer"), "f": "real", **dict.fromkeys("UT", "text")}
_SMALL = 1 << 16  # with at most so many features, indices fit in 16 bits
# Types of integers that values may be stored in.
WHOLE_TYPES = (np.dtype(np.int16), np.dtype(np.int8), np.dtype(np.uint8))


def write_dataset(
    path: Any,
    chunks: Iterable[Any],
    *,
    n_features: int | None = None,
    dtype: Any = None,
    feature_names: Sequence[str] | None = None,
    overwrite: bool = False,
) -> Dataset:
    """Write a data set to disk from any iterator of chunks.

    Parameters
    ----------
    path : path
        Of the folder to make, usually with the suffix .cut. It appears when it is complete.
    chunks : iterable
        Of ``X``, ``(X, y)``, ``(X, y, qid)``, ``(X, y, qid, cost)`` or ``Rows``: consecutive rows
        of a dense or sparse matrix, their labels (numbers or text), queries and factors on C. None
        stands for what is not there. All chunks have the same of these.
    n_features : int, optional
        Columns. By default those of dense chunks, or of the widest sparse chunk.
    dtype : float64, float32, int16, int8 or uint8, optional
        Type of the values on disk; by default that of the first chunk, float64 if it holds
        integers. Counts and indicators in 8 or 16 bits take a fraction of the disk and of the time
        of a pass; a value that such a type does not hold exactly is an error.
    feature_names : sequence of str, optional
        By default the column names of the first chunk, if it has any.
    overwrite : bool, default=False
        Whether a data set of that name is replaced.

    Returns
    -------
    dataset : Dataset
        Open.

    Raises
    ------
    ValueError
        If a chunk does not fit the others or holds numbers that are not finite. Nothing is left of
        the folder then, and an old one stays.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from cutplane import LinearSVC, write_dataset
    >>> def chunks():
    ...     rng = np.random.default_rng(0)
    ...     for _ in range(4):
    ...         X = rng.normal(size=(1000, 5))
    ...         yield X, np.sign(X[:, 0] + 0.1)
    >>> folder = tempfile.mkdtemp()
    >>> dataset = write_dataset(f"{folder}/small.cut", chunks())
    >>> dataset.shape
    (4000, 5)
    >>> LinearSVC().fit(dataset).score(dataset, dataset.y) > 0.99
    True
    """
    with new_dataset(
        path, overwrite, n_features=n_features, dtype=dtype, feature_names=feature_names
    ) as writer:
        for chunk in chunks:
            writer.add(chunk)
    return Dataset(path)


@contextmanager
def new_dataset(path: Any, overwrite: Any, **options: Any) -> Iterator[DatasetWriter]:
    """A writer for the block. When the block is done, the data set is complete and appears.

    ``options`` are the options of ``DatasetWriter``.
    """
    overwrite = check_flag("overwrite", overwrite)
    with replacing_folder(Path(path), overwrite=overwrite, is_ours=_is_dataset) as folder:
        with closing(DatasetWriter(folder, **options)) as writer:
            yield writer
            manifest = writer.finish()
        with naming(folder / NAME), replacing(folder / NAME) as file:
            file.write(manifest.text().encode())


def _is_dataset(folder: Path) -> bool:
    return (folder / NAME).is_file()


class DatasetWriter:
    """Writes the files of a data set into an empty folder; options as for ``write_dataset``."""

    def __init__(
        self,
        folder: Path,
        *,
        n_features: int | None = None,
        dtype: Any = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self._folder = folder
        self._fixed = n_features is not None
        self.features = 0
        if n_features is not None:
            self.features = check_integer(
                "n_features", n_features, at_least=1, at_most=MOST_FEATURES
            )
        self._dtype = None if dtype is None else value_type(dtype)
        self._names = None if feature_names is None else tuple(map(str, feature_names))
        self._columns: tuple[str, ...] = ()
        self._sparse = False
        self._files: dict[str, ArrayWriter] = {}
        self._labels = _LabelWriter()
        self.lowest_index, self.highest_index = MOST_FEATURES, -1
        self.costs_differ = False
        self.rows = self._chunks = 0

    def close(self) -> None:
        """Close the files, complete or not."""
        for file in self._files.values():
            with suppress(OSError):  # if the disk is full, an earlier write has raised already
                file.close()

    # -- chunks -------------------------------------------------------------------

    def add(self, chunk: Any) -> None:
        """Append a chunk."""
        where = f"chunk {self._chunks}"
        rows = _as_rows(chunk, where)
        names = rows.names or column_names(rows.X)
        X = self._matrix(rows.X, where)
        count = X.shape[0]
        # All checks come first, so a refused chunk leaves no part in the files.
        columns: dict[str, np.ndarray] = {}
        if rows.y is not None:
            columns["y"] = self._labels.encode(rows.y, count, where)
        if rows.qid is not None:
            columns["qid"] = int64_queries(rows.qid, count, where=f"{where}: ")
        if rows.weight is not None:
            cost = check_column("cost", rows.weight, count, at_least=0.0, where=f"{where}: ")
            columns["cost"] = cost.astype(np.float64)
            self.costs_differ |= bool(np.any(cost != 1.0))
        if self._chunks == 0:
            self._begin(X, names, tuple(columns))
        if self._columns != tuple(columns):
            raise ValueError(
                f"{where} has {' and '.join(columns) or 'X only'}, unlike the first one; all "
                "chunks must have the same"
            )
        if names is not None and self._names is not None and names != self._names:
            raise ValueError(f"{where} has other column names than the first one")
        self._add_matrix(X, where)
        for name, column in columns.items():
            self._file(name, column.dtype).write(column)
        self.rows += count
        self._chunks += 1

    def _begin(self, X: Any, names: tuple[str, ...] | None, columns: tuple[str, ...]) -> None:
        self._columns = columns
        self._names = self._names or names
        self._sparse = scipy.sparse.issparse(X)
        if self._sparse:
            self._file("values", X.dtype)
            self._file("indices", np.uint16)
            self._file("starts", np.int64).write(np.zeros(1, np.int64))
        else:
            self._set_width(X.shape[1])
            self._file("values", X.dtype, self.features)

    def _set_width(self, features: int) -> None:
        if not self._fixed:
            self.features = max(self.features, features)
        elif features != self.features and (features > self.features or not self._sparse):
            raise ValueError(f"the data has {features} columns, but n_features={self.features}")

    def _matrix(self, X: Any, where: str) -> Any:
        """The features as a CSR matrix or a row-major array of the right type."""
        X = canonical(X)
        if X.ndim != 2:
            raise ValueError(f"{where}: X must have two dimensions, got shape {X.shape}")
        sparse = scipy.sparse.issparse(X)
        if sparse:
            values = self._converted(X.data, where)
            X = scipy.sparse.csr_array((values, X.indices, X.indptr), shape=X.shape)
        else:
            X = self._converted(X, where)
        if self._chunks and sparse != self._sparse:
            kinds = ("dense", "sparse")
            raise ValueError(f"{where} is {kinds[sparse]}, unlike the first one; convert it first")
        if (bad := first_not_finite(X)) is not None:
            row, column, value = bad
            raise ValueError(
                f"{where}: X must hold finite numbers, got {value} in row {self.rows + row}, "
                f"column {column}"
            )
        return X

    def _converted(self, values: np.ndarray, where: str) -> np.ndarray:
        if values.dtype.kind not in "biuf":
            try:
                values = values.astype(np.float64)
            except (TypeError, ValueError):
                raise ValueError(f"{where}: X must hold numbers, got type {values.dtype}") from None
        if self._dtype is None:
            self._dtype = np.dtype(np.float32 if values.dtype.str[1:] in ("f4", "f2") else "f8")
        if self._dtype.kind in "iu":
            return _whole_numbers(values, self._dtype, where)
        if self._dtype == np.float32 and values.dtype.kind == "f" and values.dtype.itemsize > 4:
            largest = float(np.max(np.abs(values), initial=0.0))
            if np.isfinite(largest) and largest > LARGEST_VALUE[np.dtype(np.float32)]:
                raise ValueError(f"{where}: {largest:g} is beyond float32; pass dtype='float64'")
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(values, dtype=self._dtype)

    def _add_matrix(self, X: Any, where: str) -> None:
        if not self._sparse:
            if X.shape[1] != self.features:
                raise ValueError(
                    f"{where} has {X.shape[1]} columns, the ones before {self.features}"
                )
            self._files["values"].write(X)
            return
        self._set_width(X.shape[1])
        if self.features > _SMALL and self._files["indices"].dtype.itemsize == 2:
            self._files["indices"].rewrite(np.uint32)
        self.lowest_index = min(self.lowest_index, int(X.indices.min(initial=MOST_FEATURES)))
        self.highest_index = max(self.highest_index, int(X.indices.max(initial=-1)))
        before = self._files["values"].length
        self._files["values"].write(X.data)
        self._files["indices"].write(X.indices)
        self._files["starts"].write(X.indptr[1:].astype(np.int64) + before)

    def _file(self, name: str, dtype: Any, width: int | None = None) -> ArrayWriter:
        if name not in self._files:
            self._files[name] = ArrayWriter(self._folder / f"{name}.npy", dtype, width)
        return self._files[name]

    # -- the end ------------------------------------------------------------------

    def shift_indices(self) -> None:
        """Reduce all indices by one. This removes column 0, which must be empty."""
        self.features -= 1
        self.highest_index -= 1
        small = np.uint16 if self.features <= _SMALL else np.uint32
        self._files["indices"].rewrite(small, lambda indices: indices - indices.dtype.type(1))

    def leave_out(self, name: str) -> None:
        """Remove a column and its file."""
        file = self._files.pop(name, None)
        if file is not None:
            file.close()
            (self._folder / f"{name}.npy").unlink()

    def finish(self) -> Manifest:
        """Complete the files; returns the manifest."""
        if not self.rows:
            raise ValueError("there are no rows to write")
        if not self.features:
            raise ValueError("the data has no columns; pass n_features")
        if self._names is not None and len(self._names) != self.features:
            raise ValueError(
                f"feature_names has {len(self._names)} names for {self.features} columns"
            )
        n_stored = self._files["values"].length * (1 if self._sparse else self.features)
        arrays = {name: file.finish() for name, file in self._files.items()}
        kind, labels, counts = self._labels.summary()
        return Manifest(
            rows=self.rows,
            features=self.features,
            n_stored=n_stored,
            sparse=self._sparse,
            arrays=arrays,
            label_kind=kind,
            labels=labels,
            label_counts=counts,
            feature_names=self._names,
        )


# -- parts of a chunk -------------------------------------------------------------


def _as_rows(chunk: Any, where: str) -> Rows:
    if isinstance(chunk, Rows):
        return chunk
    parts = chunk if isinstance(chunk, tuple | list) else (chunk,)
    if not 1 <= len(parts) <= 4:
        raise ValueError(
            f"{where} must be X, (X, y), (X, y, qid) or (X, y, qid, cost); "
            f"it has {len(parts)} parts"
        )
    X, y, qid, cost = (*parts, None, None, None)[:4]
    return Rows(X, y, cost, qid)


def value_type(dtype: Any) -> np.dtype:
    """The type for values on disk that ``dtype`` names."""
    for kind in (*LARGEST_VALUE, *WHOLE_TYPES):
        if kind == dtype:
            return kind
    names = ", ".join(kind.name for kind in (*LARGEST_VALUE, *WHOLE_TYPES))
    raise ValueError(f"dtype must be one of {names}, got {dtype!r}")


def _whole_numbers(values: np.ndarray, dtype: np.dtype, where: str) -> np.ndarray:
    """The values in an integer type; an error if the type does not hold them exactly."""
    limits = np.iinfo(dtype)
    fits = (values >= limits.min) & (values <= limits.max)
    if values.dtype.kind == "f":
        fits &= values == np.floor(values)
    if not np.all(fits):
        bad = values.reshape(-1)[int(np.argmin(fits.reshape(-1)))]
        raise ValueError(
            f"{where}: {bad} is not an integer from {limits.min} to {limits.max}, which is what "
            f"dtype='{dtype.name}' holds; pass dtype='float32' or 'float64'"
        )
    return np.ascontiguousarray(values, dtype=dtype)


class _LabelWriter:
    """Turns labels into the numbers on disk: float64, or for text positions in a list.

    It counts how often each distinct label occurs, unless there are more than ``MOST_LABELS``.
    """

    def __init__(self) -> None:
        self._kind: str | None = None
        self._counts: Counter[Any] | None = Counter()

    def encode(self, y: Any, rows: int, where: str) -> np.ndarray:
        """Labels as they are stored: float64, or int32 for text."""
        labels = np.asarray(y)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.shape != (rows,):
            raise ValueError(
                f"{where}: y must hold one label per row, {rows}; got shape {labels.shape}"
            )
        kind = LABEL_KINDS.get(labels.dtype.kind)
        if labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels):
            kind = "text"
        if kind is None:
            raise ValueError(
                f"{where}: labels must be finite numbers or text, got type {labels.dtype}"
            )
        if self._kind is not None and (kind == "text") != (self._kind == "text"):
            raise ValueError(f"{where}: labels are {kind}, those before {self._kind}")
        if self._kind != "real":
            self._kind = kind
        return self._text(labels, where) if kind == "text" else self._numbers(labels, where)

    def _numbers(self, labels: np.ndarray, where: str) -> np.ndarray:
        integers = labels.dtype.kind in "iu"
        if integers and np.any((labels > LARGEST_INTEGER) | (labels < -LARGEST_INTEGER)):
            raise ValueError(f"{where}: integer labels must be within ±2⁵³")
        finite = np.isfinite(labels)
        if not finite.all():
            bad = int(finite.argmin())
            raise ValueError(
                f"{where}: label {labels[bad]} in row {bad} of the chunk is not finite"
            )
        labels = labels.astype(np.float64)
        if self._counts is not None:
            self._counts.update(_occurrences(*np.unique(labels, return_counts=True)))
            if len(self._counts) > MOST_LABELS:
                self._counts = None
        return labels

    def _text(self, labels: np.ndarray, where: str) -> np.ndarray:
        assert self._counts is not None
        labels = labels.astype(str)
        names, positions, counts = np.unique(labels, return_inverse=True, return_counts=True)
        self._counts.update(_occurrences(names, counts))
        if len(self._counts) > MOST_LABELS:
            raise ValueError(f"{where}: there are more than {MOST_LABELS} different labels of text")
        order = {name: k for k, name in enumerate(self._counts)}
        return np.array([order[name] for name in names.tolist()], np.int32)[positions]

    def summary(self) -> tuple[str | None, tuple[Any, ...] | None, tuple[int, ...] | None]:
        """The kind of the labels, the distinct labels, and the number of rows of each."""
        if self._kind is None or self._counts is None:
            return self._kind, None, None
        labels = list(self._counts) if self._kind == "text" else sorted(self._counts)
        counts = tuple(self._counts[label] for label in labels)
        return self._kind, tuple(map(int, labels) if self._kind == "integer" else labels), counts


def _occurrences(labels: np.ndarray, counts: np.ndarray) -> dict[Any, int]:
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))
