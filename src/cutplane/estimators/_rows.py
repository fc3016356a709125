"""The rows of a fit. Only this module knows whether they are in memory, on disk or on a cluster.

X may be an array, a frame, a sparse matrix, a data set on disk, files of rows, or a Dask
collection. ``open_rows`` checks X, collects labels, weights and queries in this process, and
returns a record. Its method ``blocks`` gives the rows in blocks, in this process or on the workers
of a cluster. Features of a data set on disk are checked when a block is read for the first time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from .._checks import check_sparse, check_weights, class_factors
from ..data import BlockedMatrix, as_blocks
from ..data.dataset import Dataset
from ..data.partitions import FolderShare, MemoryShare, RowFiles, travelling
from ..data.sums import SumPlan, part_edges, share_parts
from ..exec import make_executor

if TYPE_CHECKING:
    from ..cluster.partitions import CollectionRows
    from ..cluster.rows import RemoteMatrix

FLOATS = (np.float64, np.float32)
PLAIN = (np.ndarray, scipy.sparse.csr_matrix, scipy.sparse.csr_array)
# Columns of labels that a message names at most.
MOST_NAMED = 10
# Solvers that visit rows in random order, so the rows must be in memory.
NEED_MEMORY = ("dcd", "sgd", "pegasos")
# With so many stored values, several threads copy the indices.
WORTH_SHARING = 1 << 22


@dataclass(frozen=True)
class TrainingRows:
    """Checked rows of a fit.

    Attributes
    ----------
    X : ndarray, CSR matrix, Dataset or rows on a cluster
    y : ndarray
        Labels or targets.
    weights : ndarray of float64
    weighted : bool
        Whether the user or the rows have given weights.
    qid : array-like or None
        Queries from the user or from the rows.
    """

    X: Any
    y: np.ndarray
    weights: np.ndarray
    weighted: bool
    qid: Any
    _model: Any = field(repr=False)

    def __len__(self) -> int:
        return len(self.y)

    @contextmanager
    def blocks(self, outputs: int = 1) -> Iterator[BlockedMatrix | RemoteMatrix]:
        """The rows in blocks, for models with ``outputs`` scores per row."""
        X = self.X
        if hasattr(X, "held"):  # on a cluster
            with X.held(outputs) as held:
                yield held
            return
        if getattr(X, "nnz", 0) < WORTH_SHARING:
            matrix = as_blocks(X, outputs=outputs)
        else:
            with make_executor(self._model.n_jobs, X.nnz) as threads:
                matrix = as_blocks(X, outputs=outputs, runner=threads)
        executor = getattr(self._model, "executor", None)
        if executor is None:
            yield matrix
            return
        from ..cluster.executor import workers_of
        from ..cluster.orders import Each, Hold
        from ..cluster.rows import RemoteMatrix, hold_rows

        with workers_of(executor) as crew:
            workers = crew.checked()
            edges = part_edges(len(matrix.blocks), len(matrix))
            runs = share_parts(np.diff(edges).tolist(), [worker.threads for worker in workers])
            plans = [SumPlan(edges, first, last) for first, last in runs]
            hold = [Hold(hold_rows, plan, _share(X, matrix, plan, outputs)) for plan in plans]
            crew.start(workers[: len(plans)], Each(hold), plans)
            yield RemoteMatrix(
                crew, plans, matrix.bounds, matrix.shape, matrix.n_stored, matrix.digest
            )


def _share(X: Any, matrix: BlockedMatrix, plan: SumPlan, outputs: int) -> FolderShare | MemoryShare:
    blocks = plan.blocks
    if isinstance(X, Dataset):
        return FolderShare(
            str(X.path.absolute()),
            X.digest(),
            X.n_features,
            X.given_memory_limit,
            outputs,
            blocks.start,
            blocks.stop,
        )
    return MemoryShare([travelling(matrix.blocks[k]) for k in blocks], matrix.shape[1])


def is_stored(X: Any) -> bool:
    """Whether rows are not in memory: a data set on disk, files, or a Dask collection."""
    return isinstance(X, Dataset | RowFiles) or hasattr(X, "__dask_graph__")


def open_rows(
    model: Any, X: Any, y: Any, sample_weight: Any = None, qid: Any = None, **options: Any
) -> TrainingRows:
    """Check training data. Sets what scikit-learn's checks set.

    Parameters
    ----------
    model : estimator
    X, y, sample_weight, qid
        As the user gave them. If one is None and X contains it, it is taken from X.
    **options
        Options for scikit-learn's ``validate_data``: ``y_numeric`` and ``ensure_min_samples``.
    """
    checked: Any
    if isinstance(X, Dataset):
        sample_weight = X.cost if sample_weight is None else sample_weight
        qid = X.qid if qid is None else qid
        checked, labels = X, _dataset_labels(model, X, X.y if y is None else y, **options)
    elif is_stored(X):
        checked, labels = _collection_rows(model, X, y)
        if options.get("y_numeric"):
            _refuse_text(labels)
        sample_weight = checked.own_weights if sample_weight is None else sample_weight
        qid = checked.own_queries if qid is None else qid
    else:
        checked, labels = checked_rows(model, X, y=y, **options)
    weights = check_weights(sample_weight, checked)
    return TrainingRows(checked, labels, weights, sample_weight is not None, qid, model)


def checked_rows(model: Any, X: Any, **options: Any) -> Any:
    """Rows in memory as an array or CSR matrix, and y if ``options`` has one.

    Other options are those of scikit-learn's ``validate_data``.
    """
    check_sparse(X)
    if _is_plain(X, **options):
        _set_features(model, X.shape[1], None)
        return X, np.ascontiguousarray(options["y"])
    if options.get("y_numeric"):
        _refuse_text(options["y"])
    return validate_data(
        model, X, accept_sparse="csr", accept_large_sparse=True, dtype=FLOATS, **options
    )


def _is_plain(X: Any, y: Any = None, ensure_min_samples: int = 1, **others: Any) -> bool:
    """Whether rows and numbers y are what ``validate_data`` would return as they are.

    It takes a fifth of the time of a small fit, because it asks for many kinds of frames.
    """
    if not (type(X) in PLAIN and type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuf"):
        return False
    if X.ndim != 2 or X.dtype not in FLOATS or not others.keys() <= {"y_numeric"}:
        return False
    if X.shape[1] < 1 or len(y) != X.shape[0] or len(y) < ensure_min_samples:
        return False
    with np.errstate(over="ignore", invalid="ignore"):  # if not finite, ``validate_data`` says what
        values = X if type(X) is np.ndarray else X.data
        return bool(np.isfinite(values.sum()) and np.isfinite(y.sum()))


def _refuse_text(y: Any) -> None:
    """Refuse targets that are text, with an error that says what to do."""
    values = np.asarray(y) if isinstance(y, (list, tuple, np.ndarray)) else y
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if kind in ("U", "S", "O"):
        for value in np.ravel(values):
            try:
                float(value)
            except (TypeError, ValueError):
                if not isinstance(value, (str, bytes)):
                    return  # scikit-learn reports all other mistakes
                raise ValueError(
                    f"y must hold numbers, got {str(value)!r}; LinearSVC and SVC are for classes"
                ) from None


def _dataset_labels(
    model: Any, dataset: Dataset, y: Any, *, y_numeric: bool = False, ensure_min_samples: int = 1
) -> np.ndarray:
    """Check a data set on disk and its labels."""
    if y is None:
        raise ValueError(f"{dataset.path} has no labels; pass y, or write the data set with labels")
    if y_numeric:
        _refuse_text(y)
    labels = column_or_1d(
        check_array(y, ensure_2d=False, dtype="numeric" if y_numeric else None, input_name="y"),
        warn=True,
    )
    if len(labels) != dataset.n_rows:
        raise ValueError(f"y has {len(labels)} labels, but {dataset.path} {dataset.n_rows} rows")
    if dataset.n_rows < ensure_min_samples:
        raise ValueError(
            f"{dataset.path} has {dataset.n_rows} row(s), at least {ensure_min_samples} are needed"
        )
    if model.solver in NEED_MEMORY and dataset.feature_bytes > dataset.memory_limit:
        raise ValueError(
            f"solver={model.solver!r} visits rows in random order, and the "
            f"{dataset.feature_bytes} bytes of {dataset.path} exceed memory_limit="
            f"{dataset.memory_limit}; use solver='ocas', or open_dataset(…, memory_limit=…)"
        )
    _set_features(model, dataset.n_features, dataset.feature_names)
    return labels


def _collection_rows(model: Any, X: Any, y: Any) -> tuple[CollectionRows, np.ndarray]:
    """Check a Dask collection and the labels. Sets what scikit-learn's checks set."""
    executor = getattr(model, "executor", None)
    if executor is None:
        raise ValueError(
            f"X is a {type(X).__module__}.{type(X).__name__}: pass executor=Client(…) to train on "
            "a cluster, or bring it here first"
        )
    from ..cluster.partitions import CollectionRows

    rows = CollectionRows(executor, X)
    try:
        labels = rows.labels(y)
    except BaseException:
        rows.close()
        raise
    _set_features(model, rows.shape[1], rows.names)
    return rows, labels


def _set_features(model: Any, count: int, names: Any) -> None:
    """Set the number of features, and their names if they have any."""
    model.n_features_in_ = count
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(model, "feature_names_in_"):
        del model.feature_names_in_


def copy_features(source: Any, target: Any) -> None:
    """Copy number and names of the features from another estimator."""
    _set_features(target, source.n_features_in_, getattr(source, "feature_names_in_", None))


def check_test_dataset(model: Any, dataset: Dataset) -> None:
    """Refuse a data set with other columns than the training data."""
    wanted = model.n_features_in_
    if dataset.n_features != wanted:
        remedy = (
            "; open it with n_features=…"
            if dataset.sparse and dataset.n_features < wanted
            else "; convert it with n_features=… and unseen='ignore'"
            if dataset.sparse
            else ""
        )
        raise ValueError(
            f"{dataset.path} has {dataset.n_features} features, but {type(model).__name__} is "
            f"expecting {wanted} features as input{remedy}"
        )
    names = getattr(model, "feature_names_in_", None)
    if names is None or dataset.feature_names is None:
        return
    for ours, theirs in zip(names, dataset.feature_names, strict=True):
        if ours != theirs:
            raise ValueError(
                f"{dataset.path}: a feature is named {theirs!r} where the training data has "
                f"{ours!r}; names and order must be the same"
            )


# -- classes ----------------------------------------------------------------------------------


def encode_classes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes in order, at least two, and the number of each label's."""
    if y.ndim == 1 and y.dtype.kind in "bif" and len(y):  # two numbers need no sorting
        low, high = y.min(), y.max()
        second = y == high
        two = low < high and float(low).is_integer() and float(high).is_integer()
        if two and np.all(second | (y == low)):
            return np.array([low, high], y.dtype), second.astype(np.intp)
    whole_numbers = y.ndim == 1 and y.dtype.kind in "biu"  # these are classes, whatever they are
    if not whole_numbers:
        check_classification_targets(y)
    classes, encoded = np.unique(y, return_inverse=True)
    if whole_numbers and 2 * len(classes) >= len(y):
        check_classification_targets(y)  # for its warning that these look like numbers to regress
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only ({classes.tolist()[0]!r}); a classifier needs at least two"
        )
    return classes, encoded


def weigh_classes(
    model: Any, encoded: np.ndarray, weights: np.ndarray, classes: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Multiply the rows' weights by those of their classes; returns both.

    At least two classes must have a positive weight. ``model`` has C, ``classes_`` unless classes
    are given, and may have ``class_weight``.
    """
    classes = model.classes_ if classes is None else classes
    factors = np.ones(len(classes))
    if getattr(model, "class_weight", None) is not None:
        factors = class_factors(model.class_weight, classes, encoded, weights)
        weights = weights * factors[encoded]
    mass = np.bincount(encoded, weights, minlength=len(classes))
    if np.count_nonzero(mass) < 2:
        raise ValueError(
            "only one class has rows of positive weight; a classifier needs at least two"
        )
    check_sum(model.C, weights)
    return weights, factors


def check_sum(C: float, weights: np.ndarray) -> None:
    """Check that the sum of the losses does not overflow."""
    with np.errstate(over="ignore"):
        total = float(C) * float(weights.sum())
    if not np.isfinite(total):
        raise ValueError("C times the sum of the weights overflows; lower C or sample_weight")


# -- several labels per row -------------------------------------------------------------------
# Each column of an indicator matrix Y is a problem of its own, its rows against all others, as in
# scikit-learn's ``OneVsRestClassifier``. Y may be sparse, and is never made dense as a whole.


def is_indicator(y: Any) -> bool:
    """Whether y is a matrix of labels rather than a column of classes."""
    if scipy.sparse.issparse(y):
        return True
    if isinstance(y, list | tuple):
        return len(y) > 0 and isinstance(y[0], list | tuple | np.ndarray) and len(y[0]) > 1
    shape: tuple[Any, ...] = getattr(y, "shape", ())
    return len(shape) == 2 and shape[1] != 1


class Labels:
    """A checked indicator matrix.

    Parameters
    ----------
    Y : array-like or sparse matrix, shape (n_rows, n_labels)
        Of 0 and 1.

    Attributes
    ----------
    sparse : bool
        Whether it came as a sparse matrix.
    shape : tuple of int
    """

    def __init__(self, Y: Any) -> None:
        self.sparse = bool(scipy.sparse.issparse(Y))
        checked = check_array(
            Y, accept_sparse="csc", dtype=None, ensure_min_features=1, input_name="Y"
        )
        if checked.dtype.kind not in "biuf":
            raise ValueError(
                f"Y has two dimensions, so it must be an indicator of labels, of 0 and 1; got "
                f"{checked.dtype}. sklearn.preprocessing.MultiLabelBinarizer makes one of lists "
                "of labels; for one class per row give a single column"
            )
        columns = scipy.sparse.csc_matrix(checked)  # of an array: only what is not 0
        if not np.all((columns.data == 0) | (columns.data == 1)):
            wrong = columns.data[(columns.data != 0) & (columns.data != 1)][0]
            raise ValueError(
                f"Y has two dimensions, so it must be an indicator of labels, of 0 and 1, but has "
                f"the value {wrong}. Pass (Y > 0).astype(int) if that is what it means; for one "
                "class per row give a single column"
            )
        if not columns.has_canonical_format or not np.all(columns.data):
            columns = columns.copy()
            columns.sum_duplicates()
            columns.data[:] = columns.data != 0
            columns.eliminate_zeros()
        self._columns, self.shape = columns, columns.shape

    def column(self, k: int) -> np.ndarray:
        """0 and 1 for all rows."""
        column = np.zeros(self.shape[0], dtype=np.intp)
        column[self._columns.indices[slice(*self._columns.indptr[k : k + 2])]] = 1
        return column

    def check(self, weights: np.ndarray) -> None:
        """Check that every label has rows with it and rows without it, of positive weight."""
        count = np.count_nonzero(weights > 0.0)
        counts = scipy.sparse.csr_matrix(weights > 0.0) @ self._columns.astype(bool).astype(int)
        counts = counts.toarray()[0]
        for bad, what in ((counts == 0, "no row"), (counts == count, "all rows")):
            if np.any(bad):
                which = np.flatnonzero(bad)
                named = ", ".join(map(str, which[:MOST_NAMED]))
                more = f" and {len(which) - MOST_NAMED} more" if len(which) > MOST_NAMED else ""
                plural = len(which) > 1
                raise ValueError(
                    f"Y: {'columns' if plural else 'column'} {named}{more} "
                    f"{'have' if plural else 'has'} {what} of positive weight: there is nothing to "
                    "learn. Leave such columns out; OneVsRestClassifier(LinearSVC()) predicts a "
                    "constant for them"
                )
