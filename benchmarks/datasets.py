"""Data sets of the benchmarks: loaders for the data folder, and generated stand-ins.

Every set is CSR float32 with int32 indices. Binary labels are −1 and +1 as float64, class labels
int64. The data folder comes from the caller or from the environment variable CUTPLANE_DATA.
Parsed files are kept as .npz in a cache folder outside the project (CUTPLANE_BENCH_CACHE, or a
folder in the system's temporary one), because the licences of several sets forbid copies in it
and parsing svmlight text is slow.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

DATA_VARIABLE = "CUTPLANE_DATA"
CACHE_VARIABLE = "CUTPLANE_BENCH_CACHE"
FORMAT = 1  # of the cached files: raise it when a loader changes
SEED = 20080705


class MissingDataError(Exception):
    """A data set is not at hand; the message says why."""


@dataclass(frozen=True)
class DataSet:
    """Rows, labels, and where they come from."""

    name: str
    X: sp.csr_matrix
    y: np.ndarray
    origin: str  # 'data folder' or 'generated'

    def facts(self) -> dict[str, object]:
        """What the JSON says about it."""
        return {
            "data": self.name,
            "rows": self.X.shape[0],
            "features": self.X.shape[1],
            "nonzeros": int(self.X.nnz),
            "origin": self.origin,
        }


@dataclass(frozen=True)
class Source:
    """Where the sections take their data from.

    Attributes
    ----------
    folder : Path or None
        The data folder; None if there is none.
    rows : int or None
        At most this many rows of each set, a fixed random sample.
    generated : bool
        Generated stand-ins of ``rows`` rows instead of the folder.
    """

    folder: Path | None = None
    rows: int | None = None
    generated: bool = False

    def load(self, name: str) -> DataSet:
        """The data set of that name.

        Raises
        ------
        MissingDataError
            If its file is not there.
        """
        if self.generated:
            X, y = GENERATORS[name](self.rows or 1000, np.random.default_rng(SEED))
            return DataSet(name, _canonical(X), y, "generated")
        X, y = _load(name, self.folder)
        if self.rows is not None and self.rows < X.shape[0]:
            chosen = np.random.default_rng(SEED).permutation(X.shape[0])[: self.rows]
            chosen.sort()
            X, y = X[chosen], y[chosen]
        return DataSet(name, X, y, "data folder")


def data_folder(given: str | None) -> Path | None:
    """The data folder: as given, or from the environment."""
    text = given or os.environ.get(DATA_VARIABLE)
    return Path(text) if text else None


def repeat_rows(data: DataSet, times: int) -> DataSet:
    """The same rows several times over."""
    X = _canonical(sp.vstack([data.X] * times, format="csr"))
    return DataSet(f"{data.name} ×{times}", X, np.tile(data.y, times), data.origin)


# -- the data folder ------------------------------------------------------------------


def _covtype(file: Path) -> tuple[sp.csr_matrix, np.ndarray]:
    with np.load(file) as archive:
        X, y = archive["X"].astype(np.float32), archive["y"]
    low, high = X.min(axis=0), X.max(axis=0)
    return sp.csr_matrix((X - low) / np.maximum(high - low, 1)), np.where(y == 2, 1.0, -1.0)


def _mnist(file: Path) -> tuple[sp.csr_matrix, np.ndarray]:
    with np.load(file) as archive:
        X, y = archive["X"], archive["y"]
    X = X.reshape(len(X), -1).astype(np.float32) / np.float32(255)
    return sp.csr_matrix(X), y.astype(np.int64)


def _mnist8(file: Path) -> tuple[sp.csr_matrix, np.ndarray]:
    X, y = _mnist(file)
    return X, np.where(y == 8, 1.0, -1.0)


def _usps(file: Path) -> tuple[sp.csr_matrix, np.ndarray]:
    with np.load(file) as archive:
        return sp.csr_matrix(archive["X"].astype(np.float32)), archive["y"].astype(np.int64)


def _svmlight(features: int) -> Callable[[Path], tuple[sp.csr_matrix, np.ndarray]]:
    def load(file: Path) -> tuple[sp.csr_matrix, np.ndarray]:
        from sklearn.datasets import load_svmlight_file

        X, y = load_svmlight_file(str(file), n_features=features, dtype=np.float32)
        return X, np.where(y > 0, 1.0, -1.0)

    return load


FILES: dict[str, tuple[str, Callable[[Path], tuple[sp.csr_matrix, np.ndarray]]]] = {
    "covtype": ("covtype/covtype.npz", _covtype),
    "mnist": ("mnist/train.npz", _mnist),
    "mnist8": ("mnist/train.npz", _mnist8),
    "usps": ("usps/train.npz", _usps),
    "aclimdb": ("aclimdb/train.svm.gz", _svmlight(74_851)),
    "a9a": ("a9a/train.svm.gz", _svmlight(123)),
    "w8a": ("w8a/train.svm.gz", _svmlight(300)),
}


def _load(name: str, folder: Path | None) -> tuple[sp.csr_matrix, np.ndarray]:
    if folder is None:
        raise MissingDataError(
            f"{name}: no data folder; give one by --data or in the environment variable "
            f"{DATA_VARIABLE}"
        )
    relative, load = FILES[name]
    file = folder / relative
    if not file.is_file():
        raise MissingDataError(f"{name}: {relative} is not in the data folder")
    cached = _cache_file(name, file)
    if cached.is_file():
        return _read_cache(cached)
    X, y = load(file)
    X = _canonical(X)
    _write_cache(cached, X, y)
    return X, y


def _cache_file(name: str, file: Path) -> Path:
    """Another file gets another name, so that a cache is never stale."""
    given = os.environ.get(CACHE_VARIABLE)
    folder = Path(given) if given else Path(tempfile.gettempdir()) / "cutplane-benchmarks"
    status = file.stat()
    key = f"{FORMAT} {file.resolve()} {status.st_size} {status.st_mtime_ns}"
    return folder / f"{name}-{hashlib.blake2b(key.encode(), digest_size=6).hexdigest()}.npz"


def _read_cache(file: Path) -> tuple[sp.csr_matrix, np.ndarray]:
    with np.load(file) as archive:
        parts = archive["data"], archive["indices"], archive["indptr"]
        X = sp.csr_matrix(parts, shape=tuple(archive["shape"]))
        X.has_canonical_format = True
        return X, archive["y"]


def _write_cache(file: Path, X: sp.csr_matrix, y: np.ndarray) -> None:
    """Write aside and rename, so that a run that is stopped leaves no half file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(suffix=".npz", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            np.savez(out, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)
        os.replace(temporary, file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _canonical(X: sp.spmatrix) -> sp.csr_matrix:
    """CSR float32, int32 indices, sorted, no duplicates, no stored zeros."""
    X = sp.csr_matrix(X, dtype=np.float32)
    X.sum_duplicates()
    X.eliminate_zeros()
    X.indices = X.indices.astype(np.int32, copy=False)
    X.indptr = X.indptr.astype(np.int32, copy=False)
    return X


# -- generated stand-ins --------------------------------------------------------------
# Of the same kind as the real sets, small, not separable: for smoke tests and --quick.


def _noisy_labels(scores: np.ndarray, rng: np.random.Generator, flipped: float) -> np.ndarray:
    y = np.where(scores > np.median(scores), 1.0, -1.0)
    return np.where(rng.random(len(y)) < flipped, -y, y)


def _generated_covtype(rows: int, rng: np.random.Generator) -> tuple[sp.csr_matrix, np.ndarray]:
    """A few numbers in [0, 1] and a block of indicators."""
    numbers = rng.random((rows, 10), dtype=np.float32)
    indicators = np.zeros((rows, 44), dtype=np.float32)
    indicators[np.arange(rows), rng.integers(0, 4, rows)] = 1.0
    indicators[np.arange(rows), 4 + rng.integers(0, 40, rows)] = 1.0
    X = np.hstack([numbers, indicators])
    return sp.csr_matrix(X), _noisy_labels(X @ rng.normal(size=54), rng, 0.2)


def _generated_digits(rows: int, rng: np.random.Generator) -> tuple[sp.csr_matrix, np.ndarray]:
    """Ten noisy prototypes of 64 pixels."""
    prototypes = rng.random((10, 64)) * (rng.random((10, 64)) < 0.4)
    y = rng.integers(0, 10, rows)
    X = prototypes[y] + 0.35 * rng.normal(size=(rows, 64)) * (rng.random((rows, 64)) < 0.3)
    return sp.csr_matrix(np.clip(X, 0.0, 1.0)), y.astype(np.int64)


def _generated_digit8(rows: int, rng: np.random.Generator) -> tuple[sp.csr_matrix, np.ndarray]:
    X, y = _generated_digits(rows, rng)
    return X, np.where(y == 8, 1.0, -1.0)


def _generated_text(rows: int, rng: np.random.Generator) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows of length 1 over 2000 words, frequent and rare."""
    words = np.minimum(rng.zipf(1.3, size=(rows, 40)), 2000) - 1
    values = rng.random(words.shape)
    places = np.repeat(np.arange(rows), 40), words.ravel()
    X = sp.csr_matrix((values.ravel(), places), (rows, 2000))
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = sp.csr_matrix(sp.diags(1.0 / lengths) @ X)
    return X, _noisy_labels(X @ rng.normal(size=2000), rng, 0.05)


def _generated_binary(rows: int, rng: np.random.Generator) -> tuple[sp.csr_matrix, np.ndarray]:
    """Indicators only, 14 of 120 per row."""
    X = np.zeros((rows, 120), dtype=np.float32)
    X[np.arange(rows)[:, None], rng.integers(0, 120, size=(rows, 14))] = 1.0
    return sp.csr_matrix(X), _noisy_labels(X @ rng.normal(size=120), rng, 0.15)


GENERATORS: dict[str, Callable[[int, np.random.Generator], tuple[sp.csr_matrix, np.ndarray]]] = {
    "covtype": _generated_covtype,
    "mnist": _generated_digits,
    "mnist8": _generated_digit8,
    "usps": _generated_digits,
    "aclimdb": _generated_text,
    "a9a": _generated_binary,
    "w8a": _generated_binary,
}
