"""Writing a data set to disk, chunk by chunk.

Nothing of the data but the current chunk is in memory. Features are checked on the way in: finite,
of the right shape and type.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from .arguments import flag, integer
from .array_file import ArrayWriter, naming
from .dataset import Dataset, open_dataset
from .folders import replacing_folder
from .labels import LabelWriter
from .manifest import NAME, Manifest
from .svmlight_limits import LARGEST_VALUE, MOST_FEATURES

_SMALL = 1 << 16  # features whose numbers fit in 16 bits
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
        Of the folder to make, by custom with the suffix .cut. It appears when it is complete.
    chunks : iterable
        Of ``X``, ``(X, y)``, ``(X, y, qid)`` or ``(X, y, qid, cost)``: consecutive rows of a dense
        or sparse matrix, their labels (numbers or text), queries and factors on C. None stands for
        what is not there. All chunks have the same of these.
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
    folder = Path(path)
    with replacing_folder(
        folder, overwrite=bool(flag("overwrite", overwrite, auto=False)), is_ours=is_dataset
    ) as building:
        with DatasetWriter(
            building, n_features=n_features, dtype=dtype, feature_names=feature_names
        ) as writer:
            for chunk in chunks:
                writer.add(chunk)
            manifest = writer.finish()
        save_manifest(building, manifest)
    return open_dataset(folder)


def is_dataset(folder: Path) -> bool:
    """Whether there is a data set in a folder."""
    return (folder / NAME).is_file()


def save_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, last of all files."""
    from .files import replacing

    with naming(folder / NAME), replacing(folder / NAME) as file:
        file.write(manifest.text().encode())


class DatasetWriter:
    """The files of a data set in the making.

    Parameters
    ----------
    folder : Path
        Empty.
    n_features, dtype, feature_names
        As for :func:`write_dataset`.
    """

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
        self._features = (
            integer("n_features", n_features, 1, MOST_FEATURES) if n_features is not None else 0
        )
        self._dtype = None if dtype is None else value_type(dtype)
        self._names = None if feature_names is None else tuple(map(str, feature_names))
        self._parts: tuple[bool, bool, bool] | None = None
        self._sparse = False
        self._files: dict[str, ArrayWriter] = {}
        self._labels = LabelWriter()
        self.lowest_index, self.highest_index = MOST_FEATURES, -1
        self.costs_differ = False
        self.rows = self._chunks = 0

    def __enter__(self) -> DatasetWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        for file in self._files.values():
            with suppress(OSError):  # a full disk has no room for what is left; that is known
                file.close()

    # -- chunks -------------------------------------------------------------------

    def add(self, chunk: Any) -> None:
        """Append a chunk."""
        where = f"chunk {self._chunks}"
        X, y, qid, cost = _parts_of(chunk, where)
        names = _column_names(X)
        X = self._matrix(X, where)
        if self._chunks == 0:
            self._begin(X, names, (y is not None, qid is not None, cost is not None))
        if self._parts != (y is not None, qid is not None, cost is not None):
            raise ValueError(
                f"{where} has {_listed(y, qid, cost)}, unlike the first one; all chunks must have "
                "the same"
            )
        if names is not None and self._names is not None and names != self._names:
            raise ValueError(f"{where} has other column names than the first one")
        rows = X.shape[0]
        # All checks come first: nothing is written of a chunk that is refused.
        labels = self._labels.encode(y, rows, where) if y is not None else None
        queries = _queries(qid, rows, where) if qid is not None else None
        costs = _costs(cost, rows, where) if cost is not None else None
        self._add_matrix(X, where)
        for name, column in (("y", labels), ("qid", queries), ("cost", costs)):
            if column is not None:
                self._file(name, column.dtype).write(column)
        if costs is not None:
            self.costs_differ |= bool(np.any(costs != 1.0))
        self.rows += rows
        self._chunks += 1

    def _begin(self, X: Any, names: tuple[str, ...] | None, parts: tuple[bool, bool, bool]) -> None:
        self._parts = parts
        self._names = self._names or names
        self._sparse = scipy.sparse.issparse(X)
        if self._sparse:
            self._file("values", X.dtype)
            self._file("indices", np.uint16)
            self._file("starts", np.int64).write(np.zeros(1, np.int64))
        else:
            self._set_width(X.shape[1])
            self._file("values", X.dtype, self._features)

    def _set_width(self, features: int) -> None:
        if not self._fixed:
            self._features = max(self._features, features)
        elif features != self._features and (features > self._features or not self._sparse):
            raise ValueError(f"the data has {features} columns, but n_features={self._features}")

    def _matrix(self, X: Any, where: str) -> Any:
        """The features as a CSR matrix or a row-major array of the right type."""
        if scipy.sparse.issparse(X):
            csr = scipy.sparse.csr_array(X)
            if not csr.has_canonical_format:
                csr = csr.copy()
                csr.sum_duplicates()
            values = self._converted(csr.data, where)
            csr = scipy.sparse.csr_array((values, csr.indices, csr.indptr), shape=csr.shape)
            sparse = True
        else:
            dense = np.asarray(X)
            if dense.ndim != 2:
                raise ValueError(f"{where}: X must have two dimensions, got shape {dense.shape}")
            csr = values = self._converted(dense, where)
            sparse = False
        if self._chunks and sparse != self._sparse:
            kinds = ("dense", "sparse")
            raise ValueError(f"{where} is {kinds[sparse]}, unlike the first one; convert it first")
        if not np.all(np.isfinite(values)):
            bad = int(np.argmin(np.isfinite(values).reshape(-1)))
            row, column = (
                (int(np.searchsorted(csr.indptr, bad, "right")) - 1, int(csr.indices[bad]))
                if sparse
                else divmod(bad, csr.shape[1])
            )
            raise ValueError(
                f"{where}: X must hold finite numbers, got {values.reshape(-1)[bad]} in row "
                f"{self.rows + row}, column {column}"
            )
        return csr

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
            if X.shape[1] != self._features:
                raise ValueError(
                    f"{where} has {X.shape[1]} columns, the ones before {self._features}"
                )
            self._files["values"].write(X)
            return
        self._set_width(X.shape[1])
        if self._features > _SMALL and self._files["indices"].dtype.itemsize == 2:
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

    def set_features(self, features: int) -> None:
        """Have so many columns, if sparse chunks were wider than they had to be."""
        self._features = features

    def shift_indices(self) -> None:
        """Count features from one less: column 0, which is empty, goes."""
        self._features -= 1
        self.highest_index -= 1
        small = np.uint16 if self._features <= _SMALL else np.uint32
        self._files["indices"].rewrite(small, lambda indices: indices - indices.dtype.type(1))

    def leave_out(self, name: str) -> None:
        """Do without a column."""
        file = self._files.pop(name, None)
        if file is not None:
            file.close()
            (self._folder / f"{name}.npy").unlink()

    def finish(self) -> Manifest:
        """Complete the files; what they hold."""
        if not self.rows:
            raise ValueError("there are no rows to write")
        if not self._features:
            raise ValueError("the data has no columns; pass n_features")
        if self._names is not None and len(self._names) != self._features:
            raise ValueError(
                f"feature_names has {len(self._names)} names for {self._features} columns"
            )
        numbers = self._files["values"].length * (1 if self._sparse else self._features)
        arrays = {name: file.finish() for name, file in self._files.items()}
        kind, labels, counts = self._labels.summary()
        return Manifest(
            rows=self.rows,
            features=self._features,
            numbers=numbers,
            sparse=self._sparse,
            arrays=arrays,
            label_kind=kind,
            labels=labels,
            label_counts=counts,
            feature_names=self._names,
        )


# -- parts of a chunk -------------------------------------------------------------


def _parts_of(chunk: Any, where: str) -> tuple[Any, Any, Any, Any]:
    parts = chunk if isinstance(chunk, tuple | list) else (chunk,)
    if not 1 <= len(parts) <= 4:
        raise ValueError(
            f"{where} must be X, (X, y), (X, y, qid) or (X, y, qid, cost); "
            f"it has {len(parts)} parts"
        )
    X, y, qid, cost = (*parts, None, None, None)[:4]
    return X, y, qid, cost


def _listed(y: Any, qid: Any, cost: Any) -> str:
    there = [n for n, part in (("y", y), ("qid", qid), ("cost", cost)) if part is not None]
    return " and ".join(there) or "X only"


def value_type(dtype: Any) -> np.dtype:
    """A type that values can be stored in, by any of its names."""
    for kind in (*LARGEST_VALUE, *WHOLE_TYPES):
        if kind == dtype:
            return kind
    names = ", ".join(kind.name for kind in (*LARGEST_VALUE, *WHOLE_TYPES))
    raise ValueError(f"dtype must be one of {names}, got {dtype!r}")


def _whole_numbers(values: np.ndarray, dtype: np.dtype, where: str) -> np.ndarray:
    """The values in a type of integers, if it holds them all."""
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


def _column_names(X: Any) -> tuple[str, ...] | None:
    """Names of the columns of a frame."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = tuple(columns)
    return names if all(isinstance(name, str) for name in names) else None


def _column(name: str, values: Any, rows: int, where: str) -> np.ndarray:
    column = np.asarray(values)
    if column.shape != (rows,):
        raise ValueError(
            f"{where}: {name} must hold one number per row, {rows}; got shape {column.shape}"
        )
    return column


def _queries(qid: Any, rows: int, where: str) -> np.ndarray:
    column = _column("qid", qid, rows, where)
    whole = column.dtype.kind in "iu"
    if column.dtype.kind == "f":
        whole = bool(np.all(column == np.floor(column)) and np.all(np.abs(column) < 2.0**53))
    if not whole or np.any(column < 0) or np.any(column > np.iinfo(np.int64).max):
        raise ValueError(f"{where}: qid must hold integers ≥ 0")
    return column.astype(np.int64)


def _costs(cost: Any, rows: int, where: str) -> np.ndarray:
    column = _column("cost", cost, rows, where)
    if column.dtype.kind not in "biuf" or not np.all(np.isfinite(column)) or np.any(column < 0):
        raise ValueError(f"{where}: cost must hold finite numbers ≥ 0")
    return column.astype(np.float64)
