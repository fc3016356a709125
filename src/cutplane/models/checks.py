"""Whether a loaded model is as a fit leaves it, before compiled code relies on it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import check_integer
from ..estimators._attributes import check_basis, check_stored, stored_classes, stored_features
from ..structured.chain import ChainShape


def check_model(model: Any) -> None:
    """Raise a ValueError, naming the attribute, unless a model is as a fit leaves it."""
    model._check_common()
    if type(model).__name__ in _CHECKS:
        _CHECKS[type(model).__name__](model)
    else:
        model._check_attributes()
    if hasattr(model, "feature_names_in_"):
        names = model.feature_names_in_
        if getattr(names, "shape", None) != (model.n_features_in_,) or names.dtype != object:
            raise ValueError("feature_names_in_ must hold a name per feature")


# -- structured outputs -------------------------------------------------------


def _chain(model: Any) -> None:
    features, classes = stored_features(model), stored_classes(model)
    shape = getattr(model, "_shape", None)
    expected = ChainShape(features, classes, bool(model.boundaries), int(model.order))
    if shape != expected or shape.order not in (1, 2):
        raise ValueError(f"the chain must have {expected}, got {shape!r:.100}")
    if model.kernel is None:
        check_stored(model, "coef_", (classes, features))
    else:
        check_basis(model, classes)
    check_stored(model, "transitions_", (classes, classes))
    for name in ("begin_", "finish_"):
        check_stored(model, name, (classes,))
    if shape.order == 2:
        check_stored(model, "second_transitions_", (classes,) * 3)


def _structured(model: Any) -> None:
    if not hasattr(model, "problem_"):
        raise ValueError("there is no problem_")
    shape = getattr(model, "part_shape_", None)
    if shape is None:
        raise ValueError(
            "it was saved before problems got scores instead of weights: fit the model again"
        )
    outputs, width = (check_integer("part_shape_", number, at_least=0) for number in shape)
    name = "coef_" if model.kernel is None else "plain_coef_"
    coef = getattr(model, name, None)
    if not isinstance(coef, np.ndarray) or coef.ndim != 1 or coef.dtype != np.float64:
        raise ValueError(f"{name} must be a vector of numbers")
    if model.kernel is not None:
        check_basis(model, outputs, width)
    elif len(coef) < outputs * width:
        raise ValueError(f"coef_ must hold at least {outputs * width} numbers, got {len(coef)}")


_CHECKS = {"ChainTagger": _chain, "StructuredSVM": _structured}
