"""Weights as text, in libocas' format: one weight per line, then the bias."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..data.files import check_is_text, opened, output
from ..estimators._base import dense
from ..estimators.linear_svc import LinearSVC
from ..estimators.measure_svc import MeasureSVC
from ..estimators.rank_svm import RankSVM

LONGEST_NUMBER = 1000  # characters; a number has 24, but a line of another file may be huge


def save_weights(model: Any, path: Any) -> None:
    """Write the weights of a linear model, one per line, and the bias in the last line.

    Parameters
    ----------
    model : LinearSVC, MeasureSVC or RankSVM
        A fitted model for two classes.
    path : path, '-' or binary file
        The file is written in one step, and compressed if its suffix says so.
    """
    if not isinstance(model, LinearSVC | MeasureSVC | RankSVM):
        raise ValueError(f"{type(model).__name__} is not one vector of weights and a bias")
    check_is_fitted(model)
    coef = dense(model.coef_)
    if len(coef) > 1:
        raise ValueError(
            f"this {type(model).__name__} has {len(coef)} classes, the file holds "
            "one vector of weights; save one model per class"
        )
    numbers = [*coef[0].tolist(), float(model.intercept_[0])]
    with output(path) as file:
        file.write("".join(f"{number!r}\n" for number in numbers).encode())


def load_weights(path: Any) -> LinearSVC:
    """Read a linear model of one weight per line and the bias in the last line.

    Parameters
    ----------
    path : path, '-' or binary file
        A name that ends in .gz, .bz2 or .xz is decompressed; '-' is standard input.

    Returns
    -------
    model : LinearSVC
        A model with the classes −1 and 1. It has no certificate, because the file has none.
    """
    with opened(path) as source:
        name, text = source.name, source.read_all()
    check_is_text(name, text[:256])
    lines = text.split(b"\n")
    while lines and not lines[-1].strip():
        lines.pop()
    numbers = np.array([_number(name, number, line) for number, line in enumerate(lines, 1)])
    if len(numbers) < 2:
        raise ValueError(
            f"{name} has {len(numbers)} numbers; at least a weight and the bias are needed"
        )
    model = LinearSVC()
    model.coef_, model.intercept_ = numbers[None, :-1].copy(), numbers[-1:].copy()
    model.classes_ = np.array([-1, 1])
    model.n_features_in_ = len(numbers) - 1
    return model


def _number(name: str, number: int, line: bytes) -> float:
    line = line.strip()
    try:
        value = float(line) if len(line) <= LONGEST_NUMBER and b"_" not in line else np.nan
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        shown = line[:40].decode("utf-8", "replace")
        raise ValueError(f"{name}:{number}: expected one finite number per line, got {shown!r}")
    return value
