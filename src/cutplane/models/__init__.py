"""Models in files: our own format, and formats of other programs.

:func:`save_model` and :func:`load_model` work for every estimator. :func:`describe` tells what
is in a file without loading the model. The other formats are SVM-light's text, libocas' text of one
weight per line, and ONNX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import importing
from .describe import describe

if TYPE_CHECKING:
    from .files import load_model, save_model
    from .onnx_export import save_onnx, to_onnx
    from .registry import SKOPS_TRUSTED, register
    from .svmlight_text import load_svmlight_model, save_svmlight_model
    from .weights_text import load_weights, save_weights

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


# Imported when first used, because ``describe`` needs neither estimators nor scikit-learn.
__getattr__ = importing(
    __name__,
    {
        "files": "load_model save_model",
        "onnx_export": "save_onnx to_onnx",
        "registry": "SKOPS_TRUSTED register",
        "svmlight_text": "load_svmlight_model save_svmlight_model",
        "weights_text": "load_weights save_weights",
    },
)
