"""SVM-light's model files: text, one line per setting, then one per support vector.

The decision is Σ_i coef_i·k(x_i, x) − b. A linear model is a single vector of coefficient 1.
Kernel types are 0 linear, 1 (s·<a, b> + r)^d, 2 exp(−g·|a − b|²), 3 tanh(s·<a, b> + r).
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from ..data.files import check_is_text, opened, output
from ..data.svmlight import dump_svmlight, load_svmlight
from ..estimators._base import dense
from ..estimators.kernel_svc import SVC
from ..estimators.kernel_svr import SVR
from ..estimators.linear_svc import LinearSVC
from ..estimators.linear_svr import LinearSVR
from ..estimators.measure_svc import MeasureSVC
from ..estimators.rank_svm import RankSVM

VERSION = "SVM-light Version V6.02"
KERNELS = ("linear", "poly", "rbf", "sigmoid")
# The lines after the first one, in order, with their comments.
LINES = {
    "kernel": "kernel type",
    "degree": "kernel parameter -d",
    "gamma": "kernel parameter -g",
    "scale": "kernel parameter -s",
    "constant": "kernel parameter -r",
    "custom": "kernel parameter -u",
    "features": "highest feature index",
    "rows": "number of training documents",
    "vectors": "number of support vectors plus 1",
    "threshold": "threshold b, each following line is a SV (starting with alpha*y)",
}
LONGEST_LINE = 10_000  # only so many characters are read: in another file a line may be huge
# A linear model may declare at most so many more features than its vectors have.
MOST_UNSEEN = 1 << 24


# -- writing ------------------------------------------------------------------


def save_svmlight_model(model: Any, path: Any) -> None:
    """Write a model in SVM-light's format, for ``svm_classify``.

    Parameters
    ----------
    model : LinearSVC, LinearSVR, MeasureSVC, RankSVM, SVC or SVR
        A fitted model for two classes or one target, with a linear, polynomial, RBF or sigmoid
        kernel. ``svm_classify`` computes the scores of ``decision_function``, or of ``predict`` for
        RankSVM, LinearSVR and SVR. A positive score means ``classes_[1]``; the file does not hold
        the labels.
    path : path, '-' or binary file
        The file is written in one step, and compressed if its suffix says so.
    """
    if not isinstance(model, LinearSVC | LinearSVR | MeasureSVC | RankSVM | SVC | SVR):
        raise ValueError(f"SVM-light has no models of the kind {type(model).__name__}")
    check_is_fitted(model)
    if len(getattr(model, "classes_", "+-")) > 2:
        raise ValueError(
            f"SVM-light's models are for two classes, this one has {len(model.classes_)}; "
            "save one model per class"
        )
    if len(model.intercept_) > 1:
        raise ValueError(
            f"SVM-light's models have one output, this one has {len(model.intercept_)}; save one "
            "model per quantile"
        )
    kernel: Any = "linear"
    degree, gamma, coef0, rows = 3, 1.0, 1.0, 0
    if isinstance(model, SVC | SVR):
        kernel, degree, rows = model.kernel, int(model.degree), int(model.shape_fit_[0])
        if kernel not in KERNELS:
            raise ValueError(f"SVM-light has no kernel {kernel!r:.80}")
        gamma, coef0 = float(model._gamma), float(model.coef0)
        vectors, coef = model.support_vectors_, dense(model.dual_coef_)[0]
    else:
        vectors, coef = np.atleast_2d(dense(model.coef_)), np.ones(1)
    settings = {
        "kernel": str(KERNELS.index(kernel)),
        "degree": str(degree),
        "gamma": repr(gamma),
        "scale": repr(gamma),
        "constant": repr(coef0),
        "custom": "empty",
        "features": str(vectors.shape[1]),
        "rows": str(rows),
        "vectors": str(vectors.shape[0] + 1),
        "threshold": repr(-float(model.intercept_[0])),
    }
    lines = [VERSION, *(f"{settings[name]} # {comment}" for name, comment in LINES.items())]
    text = io.BytesIO()
    if vectors.shape[0]:
        dump_svmlight(vectors, coef, text)
    with output(path) as file:
        file.write("\n".join(lines).encode() + b"\n")
        file.write(text.getvalue())


# -- reading ------------------------------------------------------------------


class _Named(io.BytesIO):
    """Bytes with the name of their file, for messages."""

    name = ""


def load_svmlight_model(path: Any, *, n_features: int | None = None) -> LinearSVC | SVC:
    """Read a model that SVM-light's ``svm_learn`` wrote.

    Parameters
    ----------
    path : path, '-' or binary file
        A name that ends in .gz, .bz2 or .xz is decompressed; '-' is standard input.
    n_features : int, optional
        Number of features of the data to predict; by default the highest index in the file.

    Returns
    -------
    model : LinearSVC or SVC
        LinearSVC for the linear kernel. The classes are −1 and 1. If the file is from regression or
        ranking, use ``decision_function``. There is no certificate, because the file has none.
    """
    with opened(path) as source:
        name, text = source.name, source.read_all()
    check_is_text(name, text[:256])
    settings, rest = _settings(name, text)
    vectors, coef = _vectors(name, settings, rest)
    declared = _number(name, settings, "features", least=0)
    width = max(vectors.shape[1], 1) if coef.size else 1
    if declared < width and coef.size and vectors.nnz:
        raise ValueError(
            f"{name}:8: highest feature index {declared}, but a support vector has {width}"
        )
    if n_features is not None:
        if n_features < width:
            raise ValueError(f"{name} has {width} features; n_features must not be less")
        width = int(n_features)
    elif declared > width + MOST_UNSEEN:
        raise ValueError(
            f"{name}:8: highest feature index {declared}, but the vectors have at most {width}; "
            "give n_features if this is meant"
        )
    else:
        width = max(width, declared)
    vectors.resize(len(coef), width)
    return _model(name, settings, vectors, coef)


def _settings(name: str, text: bytes) -> tuple[dict[str, str], bytes]:
    """The lines before the vectors, and the rest."""
    lines = text.split(b"\n", 1 + len(LINES))
    if not lines[0].startswith(b"SVM-"):
        raise ValueError(
            f"{name}:1: this is no model of SVM-light, whose first line is its version"
        )
    if len(lines) < 1 + len(LINES):
        raise ValueError(f"{name}:{len(lines)}: the file ends too early")
    values = {}
    for number, (key, line) in enumerate(zip(LINES, lines[1:], strict=False), start=2):
        value = line[:LONGEST_LINE].partition(b"#")[0].decode("utf-8", "replace").strip()
        if not value and key != "custom":
            raise ValueError(f"{name}:{number}: expected a number for the {LINES[key]}")
        values[key] = value
    return values, lines[1 + len(LINES)] if len(lines) > 1 + len(LINES) else b""


def _number(name: str, settings: dict[str, str], key: str, least: int | None = None) -> Any:
    """A setting as a finite number; with ``least`` it must be an integer of at least that."""
    where = f"{name}:{2 + list(LINES).index(key)}: {LINES[key].partition(',')[0]}"
    text = settings[key]
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value) or "_" in text:
        raise ValueError(f"{where} must be a finite number, got {text!r:.40}")
    if least is None:
        return value
    if value != int(value) or not least <= value < 2**31:
        raise ValueError(
            f"{where} must be a whole number from {least} to 2**31 − 1, got {text!r:.40}"
        )
    return int(value)


def _vectors(name: str, settings: dict[str, str], rest: bytes) -> tuple[Any, np.ndarray]:
    count = _number(name, settings, "vectors", least=1) - 1
    if not count:
        if rest.strip():
            raise ValueError(f"{name}:{2 + len(LINES)}: there are vectors, but none were announced")
        return scipy.sparse.csr_matrix((0, 1)), np.zeros(0)
    # The vectors have the format of a data file. Comment lines in front keep line numbers right.
    data = _Named(b"#\n" * (1 + len(LINES)) + rest)
    data.name = name
    vectors, coef = load_svmlight(data, zero_based=False)
    if len(coef) != count:
        raise ValueError(f"{name} announces {count} support vectors, but has {len(coef)}")
    return vectors, coef


def _model(name: str, settings: dict[str, str], vectors: Any, coef: np.ndarray) -> LinearSVC | SVC:
    kernel = _number(name, settings, "kernel", least=0)
    if kernel >= len(KERNELS):
        raise ValueError(f"{name}:2: kernel type {kernel} is a user's own; it is not in the file")
    bias = np.array([-_number(name, settings, "threshold")])
    classes = np.array([-1, 1])
    if KERNELS[kernel] == "linear":
        linear = LinearSVC()
        linear.coef_ = np.asarray(vectors.T @ coef, dtype=np.float64).reshape(1, -1)
        linear.intercept_, linear.classes_ = bias, classes
        linear.n_features_in_ = vectors.shape[1]
        return linear
    gamma = _number(name, settings, "gamma" if KERNELS[kernel] == "rbf" else "scale")
    degree = _number(name, settings, "degree", least=0)
    if gamma < 0.0:
        raise ValueError(f"{name}: kernel parameter -g or -s must not be negative, got {gamma:g}")
    constant = _number(name, settings, "constant")
    machine = SVC(kernel=KERNELS[kernel], degree=degree, gamma=gamma, coef0=constant)
    machine._gamma = gamma
    order = np.argsort(coef > 0.0, kind="stable")  # SVC stores support vectors by class
    machine.support_vectors_ = scipy.sparse.csr_matrix(vectors)[order]
    machine.support_ = order.astype(np.int32)
    machine.n_support_ = np.bincount(coef > 0.0, minlength=2).astype(np.int32)
    machine.dual_coef_ = scipy.sparse.csr_matrix(coef[None, order])
    machine.intercept_, machine.classes_ = bias, classes
    machine.n_features_in_ = vectors.shape[1]
    machine.shape_fit_ = (_number(name, settings, "rows", least=0), vectors.shape[1])
    return machine
