"""Data sets of the benchmarks: loaders for the data folder, and generated stand-ins.

Every set of the folder is CSR float32 with int32 indices; those of ``families`` may be dense.
Binary labels are −1 and +1 as float64, class labels and ranks int64, real targets float64; rows of
a ranking have a query. The data folder comes from the caller or from the environment variable
CUTPLANE_DATA. joblib keeps parsed files in a cache folder outside the project
(CUTPLANE_BENCH_CACHE, or ~/.cache/cutplane-benchmarks), because the licences of several
sets forbid copies in it and parsing svmlight text is slow.
"""

from __future__ import annotations

import bz2
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp

from .families import FAMILIES, PACKAGED
from .generated import GENERATORS
from .kmers import positional_kmers
from .targets import Rows, equal_ranks

DATA_VARIABLE = "CUTPLANE_DATA"
CACHE_VARIABLE = "CUTPLANE_BENCH_CACHE"
DEFAULT_CACHE = Path.home() / ".cache" / "cutplane-benchmarks"  # pickles, so never share it
FORMAT = 2  # number of the cache's format; raise it when a loader changes
SEED = 20080705
FILE = "file"  # the name of the user's own data set


class MissingDataError(Exception):
    """A data set is missing. The message says why."""


@dataclass(frozen=True)
class DataSet:
    """Rows and labels, and where they come from."""

    name: str
    X: sp.csr_matrix | np.ndarray
    y: np.ndarray
    origin: str  # 'data folder', 'package', 'generated' or 'a file given'
    qid: np.ndarray | None = None

    def facts(self) -> dict[str, object]:
        """What the JSON file says about the data set."""
        facts: dict[str, object] = {
            "data": self.name,
            "rows": self.X.shape[0],
            "features": self.X.shape[1],
            "nonzeros": int(self.X.nnz) if sp.issparse(self.X) else self.X.size,
            "origin": self.origin,
        }
        if self.qid is not None:
            facts["queries"] = len(np.unique(self.qid))
        return facts

    def take(self, rows: np.ndarray) -> DataSet:
        """A data set of some of these rows."""
        qid = None if self.qid is None else self.qid[rows]
        return DataSet(self.name, self.X[rows], self.y[rows], self.origin, qid)


@dataclass(frozen=True)
class Source:
    """Where the sections take their data from.

    Attributes
    ----------
    folder : Path or None
        The data folder; None if there is none.
    rows : int or None
        If given, a set has at most so many rows, a fixed random sample.
    generated : bool
        Whether to use generated data of ``rows`` rows in place of the folder.
    file : Path or None
        The user's own svmlight file. Its data set has the name FILE.
    """

    folder: Path | None = None
    rows: int | None = None
    generated: bool = False
    file: Path | None = None

    def arguments(self) -> list[str]:
        """The command line options that stand for this source."""
        options = []
        if self.folder is not None:
            options += ["--data", str(self.folder.resolve())]
        if self.rows is not None:
            options += ["--rows", str(self.rows)]
        return [*options, "--generated"] if self.generated else options

    def load(self, name: str) -> DataSet:
        """Load the data set of this name.

        Raises
        ------
        MissingDataError
            If its file is not there.
        """
        if name == FILE:
            if self.file is None:
                raise MissingDataError("a file of yours: give it by --file")
            data = own_file(self.file)
        elif name in PACKAGED:
            try:
                data = DataSet(name, *PACKAGED[name](), "package")
            except ModuleNotFoundError as error:
                raise MissingDataError(
                    f"{name}: the package {error.name} is not installed"
                ) from None
        elif name in FAMILIES:
            data = DataSet(name, *FAMILIES[name](), "generated")
        elif self.generated:
            X, y, *qid = GENERATORS[name](self.rows or 1000, np.random.default_rng(SEED))
            return DataSet(name, _canonical(X), y, "generated", *qid)
        else:
            data = DataSet(name, *_load(name, self.folder))
        if self.rows is None or self.rows >= len(data.y):
            return data
        return data.take(_sample(data, self.rows))

    def names(self, usual: Iterable[str]) -> tuple[str, ...]:
        """The names of a section's data sets, followed by the user's own."""
        return (*usual, FILE) if self.file is not None else tuple(usual)


def own_file(file: Path) -> DataSet:
    """Read a user's svmlight file with two classes. They become −1 and +1, in ascending order.

    Raises
    ------
    ValueError
        If it is not an svmlight file, or does not have two classes.
    """
    from cutplane import load_svmlight

    X, y = load_svmlight(file, dtype=np.float32)
    classes = np.unique(y)
    if len(classes) != 2:
        raise ValueError(
            f"{file.name} has {len(classes)} different labels; the benchmarks take two classes"
        )
    name = file.name.split(".")[0] or file.name
    return DataSet(name, _canonical(X), np.where(y == classes[1], 1.0, -1.0), "a file given")


def _sample(data: DataSet, rows: int) -> np.ndarray:
    """At most ``rows`` rows in their order. A query is kept with all its rows or left out."""
    rng = np.random.default_rng(SEED)
    if data.qid is None:
        return np.sort(rng.permutation(len(data.y))[:rows])
    queries, number, sizes = np.unique(data.qid, return_inverse=True, return_counts=True)
    order = rng.permutation(len(queries))
    kept = np.zeros(len(queries), bool)
    kept[order] = np.cumsum(sizes[order]) <= rows
    return np.flatnonzero(kept[number])


def data_folder(given: str | None) -> Path | None:
    """The data folder: the given one, or that of the environment variable."""
    text = given or os.environ.get(DATA_VARIABLE)
    return Path(text) if text else None


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


def _usps3(file: Path) -> tuple[sp.csr_matrix, np.ndarray]:
    X, y = _usps(file)
    return X, np.where(y == 3, 1.0, -1.0)


def _svmlight(features: int) -> Callable[[Path], tuple[sp.csr_matrix, np.ndarray]]:
    def load(file: Path) -> tuple[sp.csr_matrix, np.ndarray]:
        from sklearn.datasets import load_svmlight_file

        X, y = load_svmlight_file(str(file), n_features=features, dtype=np.float32)
        return X, np.where(y > 0, 1.0, -1.0)

    return load


def _targets(features: int) -> Callable[[Path], Rows]:
    """Real targets. Features are scaled to mean 0 and variance 1, because their units differ."""

    def load(file: Path) -> Rows:
        from sklearn.datasets import load_svmlight_file

        X, y = load_svmlight_file(str(file), n_features=features)
        X = X.toarray()
        return sp.csr_matrix((X - X.mean(axis=0)) / X.std(axis=0)), y

    return load


def _abalone(file: Path) -> Rows:
    X, y = _targets(10)(file)
    return X, np.unique(y, return_inverse=True)[1].astype(np.int64)


def _california10(file: Path) -> Rows:
    X, y = _targets(8)(file)
    return X, equal_ranks(y, 10)


def _queries(file: Path) -> Rows:
    from sklearn.datasets import load_svmlight_file

    X, y, qid = load_svmlight_file(str(file), n_features=46, dtype=np.float32, query_id=True)
    return X, y.astype(np.float64), qid.astype(np.int64)


def _stars(part: str) -> Callable[[Path], Rows]:
    """Star ratings as ranks. No row has 5 or 6 stars."""

    def load(file: Path) -> Rows:
        X, _ = _svmlight(74_851)(file)
        with np.load(file.with_name("labels.npz")) as archive:
            stars = archive[f"{part}_stars"]
        return X, np.searchsorted([1, 2, 3, 4, 7, 8, 9, 10], stars).astype(np.int64)

    return load


def _splice_sites(file: Path) -> Rows:
    """Windows of letters around a site. The line before a window has its label."""
    lines = bz2.decompress(file.read_bytes()).decode("ascii").split("\n")
    heads = [line for line in lines if line.startswith(">")]
    windows = [line[SITE - BEFORE : SITE + AFTER] for line in lines if line and line[0] != ">"]
    y = np.array([float(head.rsplit("label=", 1)[1]) for head in heads])
    letters = np.frombuffer("".join(windows).encode("ascii"), np.uint8)
    return positional_kmers(letters.reshape(len(windows), -1)), y


def _news20(positive: int) -> Callable[[Path], Rows]:
    """One of 20 groups against the others. A second file has the classes."""

    def load(file: Path) -> Rows:
        classes = np.load(file.with_name("y.npy"))
        return sp.load_npz(file).tocsr(), np.where(classes == positive, 1.0, -1.0)

    return load


def _codrna(file: Path) -> tuple[sp.csr_matrix, np.ndarray]:
    return sp.load_npz(file).tocsr(), np.load(file.with_name("y.npy")).astype(np.float64)


SITE, BEFORE, AFTER = 199, 60, 40  # first letter after "AG", letters before and after that cut


FILES: dict[str, tuple[str, Callable[[Path], Rows]]] = {
    "covtype": ("covtype/covtype.npz", _covtype),
    "mnist": ("mnist/train.npz", _mnist),
    "mnist8": ("mnist/train.npz", _mnist8),
    "usps": ("usps/train.npz", _usps),
    "usps3": ("usps/train.npz", _usps3),
    "aclimdb": ("aclimdb/train.svm.gz", _svmlight(74_851)),
    "a9a": ("a9a/train.svm.gz", _svmlight(123)),
    "w8a": ("w8a/train.svm.gz", _svmlight(300)),
    "ijcnn1": ("ijcnn1/all.svm.gz", _svmlight(22)),
    "codrna": ("codrna/X.npz", _codrna),
    **{f"news20-{k}": ("news20/X.npz", _news20(k)) for k in (0, 3, 15)},
    "abalone": ("ordinal-torgo/abalone.svm.gz", _abalone),
    "cpu_act": ("ordinal-torgo/cpu_act.svm.gz", _targets(21)),
    "california": ("ordinal-torgo/california_housing.svm.gz", _targets(8)),
    "california10": ("ordinal-torgo/california_housing.svm.gz", _california10),
    "stars": ("aclimdb/train.svm.gz", _stars("train")),
    "stars-test": ("aclimdb/test.svm.gz", _stars("test")),
    "mq2008": ("mq2008/fold1.train.svm.gz", _queries),
    "mq2008-vali": ("mq2008/fold1.vali.svm.gz", _queries),
    "mq2008-test": ("mq2008/fold1.test.svm.gz", _queries),
    "celegans": ("celegans-acceptor/C_elegans_acc_100000.fasta.bz2", _splice_sites),
}


def _load(
    name: str, folder: Path | None
) -> tuple[sp.csr_matrix, np.ndarray, str, np.ndarray | None]:
    if folder is None:
        raise MissingDataError(
            f"{name}: no data folder; give one by --data or in the environment variable "
            f"{DATA_VARIABLE}"
        )
    relative, _ = FILES[name]
    file = folder / relative
    if not file.is_file():
        raise MissingDataError(f"{name}: {relative} is not in the data folder")
    status = file.stat()  # another file with the same path is parsed anew
    folder = Path(os.environ.get(CACHE_VARIABLE) or DEFAULT_CACHE)
    parsed = joblib.Memory(folder, verbose=0).cache(_parsed)
    X, y, qid = parsed(name, str(file.resolve()), status.st_size, status.st_mtime_ns, FORMAT)
    return X, y, "data folder", qid


def _parsed(name: str, file: str, *_key: int) -> tuple[sp.csr_matrix, np.ndarray, Any]:
    X, y, *qid = FILES[name][1](Path(file))
    return _canonical(X), y, qid[0] if qid else None


def _canonical(X: sp.spmatrix) -> sp.csr_matrix:
    """CSR float32, int32 indices, sorted, no duplicates, no stored zeros."""
    X = sp.csr_matrix(X, dtype=np.float32)
    X.sum_duplicates()
    X.eliminate_zeros()
    X.indices = X.indices.astype(np.int32, copy=False)
    X.indptr = X.indptr.astype(np.int32, copy=False)
    return X
