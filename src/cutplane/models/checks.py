"""Whether the attributes of a loaded model fit together, before compiled code relies on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from .._checks import check_integer
from ..estimators import SVC, SVR, LinearSVC, OneClassSVM
from ..structured.chain import ChainShape

# Their coefficients, as in scikit-learn.
MAY_BE_SPARSE = (LinearSVC, SVC, SVR, OneClassSVM)


def check_model(model: Any) -> None:
    """Raise a ValueError, naming the attribute, unless a model is as a fit leaves it."""
    model._check_common()
    _CHECKS[type(model).__name__](model)
    if hasattr(model, "feature_names_in_"):
        names = model.feature_names_in_
        if getattr(names, "shape", None) != (model.n_features_in_,) or names.dtype != object:
            raise ValueError("feature_names_in_ must hold a name per feature")


def _check_array(model: Any, name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> None:
    array = getattr(model, name, None)
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
        found = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else "none"
        raise ValueError(f"{name} must be {np.dtype(dtype)} of shape {shape}, got {found}")


def _check_coef(model: Any, name: str, shape: tuple[int, int]) -> None:
    """An array; of some also a sparse matrix, whose parts were checked when it was read."""
    matrix: Any = getattr(model, name, None)
    if not (isinstance(model, MAY_BE_SPARSE) and scipy.sparse.issparse(matrix)):
        _check_array(model, name, shape)
    elif matrix.shape != shape or matrix.dtype != np.float64:
        raise ValueError(f"{name} must be float64 of shape {shape}, got {matrix.shape}")


def _features(model: Any) -> int:
    return check_integer("n_features_in_", getattr(model, "n_features_in_", None), at_least=1)


def _classes(model: Any, most: int | None = None) -> int:
    classes = getattr(model, "classes_", None)
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
        raise ValueError("classes_ must hold at least two labels")
    if most is not None and len(classes) > most:
        raise ValueError(f"classes_ must hold {most} labels, got {len(classes)}")
    return len(classes)


def _linear_svr(model: Any) -> None:
    if model._several():
        _linear(model, len(model.quantile))
    else:
        _check_array(model, "coef_", (_features(model),))
        _check_array(model, "intercept_", (1,))


def _linear(model: Any, outputs: int) -> None:
    _check_coef(model, "coef_", (outputs, _features(model)))
    _check_array(model, "intercept_", (outputs,))


def _linear_svc(model: Any) -> None:
    classes = _classes(model)
    _linear(model, 1 if classes == 2 else classes)


def _measure_svc(model: Any) -> None:
    _classes(model, most=2)
    _linear(model, 1)


def _ordinal_svc(model: Any) -> None:
    _linear(model, 1)
    _check_array(model, "thresholds_", (_classes(model) - 1,))


# -- kernels ------------------------------------------------------------------


def _kernel(model: Any, height: int, outputs: int) -> None:
    _basis(model, height)
    _check_array(model, "intercept_", (outputs,))


def _basis(model: Any, height: int, features: int | None = None) -> None:
    features = _features(model) if features is None else features
    support = getattr(model, "support_", None)
    if not isinstance(support, np.ndarray) or support.ndim != 1 or support.dtype != np.int32:
        raise ValueError("support_ must hold row numbers")
    count = len(support)
    _check_coef(model, "dual_coef_", (height, count))
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


def _svc(model: Any) -> None:
    classes = _classes(model)
    pairs = classes * (classes - 1) // 2
    if classes == 2:
        _kernel(model, 1, 1)
    elif model.multi_class == "ovr":
        _kernel(model, classes, classes)
    else:
        _kernel(model, classes - 1, pairs)
    _check_array(model, "n_support_", (classes,), np.int32)
    counts = model.n_support_
    if counts.min() < 0 or counts.sum() != len(model.support_):
        raise ValueError("n_support_ must count the support vectors of each class")


def _one_output(model: Any) -> None:
    _kernel(model, 1, 1)


def _one_class(model: Any) -> None:
    _kernel(model, 1, 1)
    _check_array(model, "offset_", (1,))


def _sampled(model: Any) -> None:
    classes = _classes(model)
    outputs = 1 if classes == 2 else classes
    _kernel(model, outputs, outputs)


def _cholesky(model: Any) -> None:
    _basis(model, 0)
    count = len(model.support_)
    _check_array(model, "factor_", (count, count))


# -- structured outputs -------------------------------------------------------


def _chain(model: Any) -> None:
    features, classes = _features(model), _classes(model)
    shape = getattr(model, "_shape", None)
    expected = ChainShape(features, classes, bool(model.boundaries), int(model.order))
    if shape != expected or shape.order not in (1, 2):
        raise ValueError(f"the chain must have {expected}, got {shape!r:.100}")
    if model.kernel is None:
        _check_array(model, "coef_", (classes, features))
    else:
        _basis(model, classes)
    _check_array(model, "transitions_", (classes, classes))
    for name in ("begin_", "finish_"):
        _check_array(model, name, (classes,))
    if shape.order == 2:
        _check_array(model, "second_transitions_", (classes,) * 3)


def _structured(model: Any) -> None:
    if not hasattr(model, "problem_"):
        raise ValueError("there is no problem_")
    if model.kernel == "pairs":
        pairs = getattr(model, "support_pairs_", None)
        if not isinstance(pairs, list) or any(len(pair) != 2 for pair in pairs):
            raise ValueError("support_pairs_ must be a list of inputs with outputs")
        _check_array(model, "dual_coef_", (len(pairs),))
        return
    name = "coef_" if model.kernel is None else "plain_coef_"
    coef = getattr(model, name, None)
    if not isinstance(coef, np.ndarray) or coef.ndim != 1 or coef.dtype != np.float64:
        raise ValueError(f"{name} must be a vector of numbers")
    if model.kernel is not None:
        _, width = getattr(model, "shape_fit_", (0, None))
        width = check_integer("the second of shape_fit_", width, at_least=1)
        height = getattr(getattr(model, "dual_coef_", None), "shape", (0,))[0]
        _basis(model, height, width)


_CHECKS = {
    "LinearSVC": _linear_svc,
    "LinearSVR": _linear_svr,
    "MeasureSVC": _measure_svc,
    "RankSVM": lambda model: _linear(model, 1),
    "OrdinalSVC": _ordinal_svc,
    "SVC": _svc,
    "SVR": _one_output,
    "OneClassSVM": _one_class,
    "SampledCutSVC": _sampled,
    "CholeskyFeatures": _cholesky,
    "ChainTagger": _chain,
    "StructuredSVM": _structured,
}
