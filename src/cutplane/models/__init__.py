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
    from .files import load_model as load_model
    from .files import save_model as save_model
    from .onnx_export import save_onnx as save_onnx
    from .onnx_export import to_onnx as to_onnx
    from .registry import SKOPS_TRUSTED as SKOPS_TRUSTED
    from .registry import register as register
    from .svmlight_text import load_svmlight_model as load_svmlight_model
    from .svmlight_text import save_svmlight_model as save_svmlight_model
    from .weights_text import load_weights as load_weights
    from .weights_text import save_weights as save_weights

# Imported when first used, because ``describe`` needs neither estimators nor scikit-learn.
__getattr__, __all__ = importing(__name__)
__all__ += ["describe"]
