"""Check that the fitted attributes of a loaded model fit together.

A file may hold anything, and compiled code relies on shapes and types. So an estimator's
``_check_attributes`` calls these functions, which raise a ValueError that names the attribute.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from .._checks import check_integer


def check_stored(model: Any, name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> None:
    """Check that an attribute is an array of this shape and type."""
    array = getattr(model, name, None)
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
        found = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else "none"
        raise ValueError(f"{name} must be {np.dtype(dtype)} of shape {shape}, got {found}")


def check_stored_coef(model: Any, name: str, shape: tuple[int, int]) -> None:
    """As ``check_stored``, but a sparse matrix is fine, too: the reader has checked it."""
    matrix: Any = getattr(model, name, None)
    if not (model._sparse_coef and scipy.sparse.issparse(matrix)):
        check_stored(model, name, shape)
    elif matrix.shape != shape or matrix.dtype != np.float64:
        raise ValueError(f"{name} must be float64 of shape {shape}, got {matrix.shape}")


def stored_features(model: Any) -> int:
    """The number of features."""
    return check_integer("n_features_in_", getattr(model, "n_features_in_", None), at_least=1)


def stored_classes(model: Any, most: int | None = None) -> int:
    """The number of classes."""
    classes = getattr(model, "classes_", None)
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
        raise ValueError("classes_ must hold at least two labels")
    if most is not None and len(classes) > most:
        raise ValueError(f"classes_ must hold {most} labels, got {len(classes)}")
    return len(classes)


def check_linear(model: Any, outputs: int) -> None:
    """Check ``coef_`` and ``intercept_`` of a linear model."""
    check_stored_coef(model, "coef_", (outputs, stored_features(model)))
    check_stored(model, "intercept_", (outputs,))


def check_basis(model: Any, per_row: int, features: int | None = None) -> None:
    """Check the basis rows of a kernel and their coefficients, of which each row has several."""
    features = stored_features(model) if features is None else features
    support = getattr(model, "support_", None)
    if not isinstance(support, np.ndarray) or support.ndim != 1 or support.dtype != np.int32:
        raise ValueError("support_ must hold row numbers")
    count = len(support)
    check_stored_coef(model, "dual_coef_", (per_row, count))
    if model.kernel == "precomputed":
        if count and not 0 <= support.min() <= support.max() < features:
            raise ValueError("support_ must hold numbers of training rows")
        return
    vectors: Any = getattr(model, "support_vectors_", None)
    dense_or_sparse = isinstance(vectors, np.ndarray) or scipy.sparse.issparse(vectors)
    if not dense_or_sparse or vectors.shape != (count, features):
        raise ValueError(f"support_vectors_ must have the shape ({count}, {features})")
    if vectors.dtype not in (np.float32, np.float64):
        raise ValueError(f"support_vectors_ must hold floating point numbers, not {vectors.dtype}")
    if not callable(model.kernel):
        gamma = getattr(model, "_gamma", None)
        if type(gamma) is not float or not gamma >= 0.0:
            raise ValueError(f"gamma must be a number ≥ 0, got {gamma!r:.40}")


def check_kernel_model(model: Any, per_row: int, outputs: int) -> None:
    """Check basis rows, coefficients and ``intercept_`` of a kernel machine."""
    check_basis(model, per_row)
    check_stored(model, "intercept_", (outputs,))
