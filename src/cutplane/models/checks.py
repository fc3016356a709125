"""Whether a loaded model is as a fit leaves it, before compiled code relies on it."""

from __future__ import annotations

from typing import Any


def check_model(model: Any) -> None:
    """Raise a ValueError, naming the attribute, unless a model is as a fit leaves it."""
    model._check_common()
    model._check_attributes()
    if hasattr(model, "feature_names_in_"):
        names = model.feature_names_in_
        if getattr(names, "shape", None) != (model.n_features_in_,) or names.dtype != object:
            raise ValueError("feature_names_in_ must hold a name per feature")
