"""Data sets on disk where estimators otherwise take arrays.

Features are not checked here: a block of a data set is checked when it is read for the first time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array, column_or_1d

from ..data.dataset import Dataset

# They visit rows in random order.
NEED_MEMORY = ("dcd", "sgd", "pegasos")


def own_columns(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
    """Labels and weights as given, or those of the data set."""
    if not isinstance(X, Dataset):
        return y, sample_weight
    return (
        X.y if y is None else y,
        X.cost if sample_weight is None else sample_weight,
    )


def training_dataset(
    estimator: Any,
    dataset: Dataset,
    y: Any,
    *,
    y_numeric: bool = False,
    ensure_min_samples: int = 1,
) -> np.ndarray:
    """Check a data set and the labels; the labels. Sets what scikit-learn's checks set."""
    if y is None:
        raise ValueError(f"{dataset.path} has no labels; pass y, or write the data set with labels")
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
    if estimator.solver in NEED_MEMORY and dataset.feature_bytes > dataset.memory_limit:
        raise ValueError(
            f"solver={estimator.solver!r} visits rows in random order, and the "
            f"{dataset.feature_bytes} bytes of {dataset.path} exceed memory_limit="
            f"{dataset.memory_limit}; use solver='ocas', or open_dataset(…, memory_limit=…)"
        )
    estimator.n_features_in_ = dataset.n_features
    names = dataset.feature_names
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return labels


def copy_features(source: Any, target: Any) -> None:
    """Make an estimator one for the same features as another one."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(source, name):
            setattr(target, name, getattr(source, name))
        elif hasattr(target, name):
            delattr(target, name)


def check_test_dataset(estimator: Any, dataset: Dataset) -> None:
    """Refuse a data set with other columns than the training data."""
    wanted = estimator.n_features_in_
    if dataset.n_features != wanted:
        remedy = (
            "; open it with n_features=…"
            if dataset.sparse and dataset.n_features < wanted
            else "; convert it with n_features=… and unseen='ignore'"
            if dataset.sparse
            else ""
        )
        raise ValueError(
            f"{dataset.path} has {dataset.n_features} features, but {type(estimator).__name__} is "
            f"expecting {wanted} features as input{remedy}"
        )
    names = getattr(estimator, "feature_names_in_", None)
    if names is None or dataset.feature_names is None:
        return
    for ours, theirs in zip(names, dataset.feature_names, strict=True):
        if ours != theirs:
            raise ValueError(
                f"{dataset.path}: a feature is named {theirs!r} where the training data has "
                f"{ours!r}; names and order must be the same"
            )
