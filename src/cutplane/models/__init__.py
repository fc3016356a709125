"""Models in files: our own format, and others' for exchange.

:func:`save_model` and :func:`load_model` are for every estimator, :func:`describe` tells what
is in a file without loading it. Exchange: SVM-light's text, one weight per line as libocas
writes them, ONNX.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .describe import describe

if TYPE_CHECKING:
    from .files import load_model, save_model
    from .onnx_export import save_onnx, to_onnx
    from .registry import SKOPS_TRUSTED, register
    from .svmlight_text import load_svmlight_model, save_svmlight_model
    from .weights_text import load_weights, save_weights

# Loaded with the first name that is asked for: a description needs no estimator, nor scikit-learn.
_WHERE = {
    "load_model": ".files",
    "save_model": ".files",
    "save_onnx": ".onnx_export",
    "to_onnx": ".onnx_export",
    "SKOPS_TRUSTED": ".registry",
    "register": ".registry",
    "load_svmlight_model": ".svmlight_text",
    "save_svmlight_model": ".svmlight_text",
    "load_weights": ".weights_text",
    "save_weights": ".weights_text",
}

__all__ = [
    "SKOPS_TRUSTED",
    "describe",
    "load_model",
    "load_svmlight_model",
    "load_weights",
    "register",
    "save_model",
    "save_onnx",
    "save_svmlight_model",
    "save_weights",
    "to_onnx",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(importlib.import_module(_WHERE[name], __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
