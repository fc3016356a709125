"""Bounds on the coefficients of linear models: the parameters ``positive`` and ``bounds``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._checks import check_flag

# Solvers of problems with bounds; auto is ocas then.
SOLVERS = ("auto", "ocas", "cpa")


@dataclass(frozen=True)
class Bounds:
    """low ≤ w ≤ high, for every feature and every output; the bias has none.

    Attributes
    ----------
    low, high : ndarray, shape (n_features,)
    """

    low: np.ndarray
    high: np.ndarray

    def box(self, dimension: int, has_constant: bool) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of a solver's flat w: features, perhaps a constant one, by outputs."""
        outputs = dimension // (len(self.low) + has_constant)
        bias = np.full(has_constant * outputs, np.inf)
        return (
            np.append(np.repeat(self.low, outputs), -bias),
            np.append(np.repeat(self.high, outputs), bias),
        )

    def digest(self) -> bytes:
        """Identifies them."""
        return self.low.tobytes() + self.high.tobytes()


def check_bounds(model: Any) -> None:
    """Check the parameters as far as is possible without the data."""
    positive, bounds = check_flag("positive", model.positive), model.bounds
    if bounds is not None:
        _pair(bounds)
    if (positive or bounds is not None) and model.solver not in SOLVERS:
        raise ValueError(
            f"solver={model.solver!r} takes no bounds on the coefficients; use solver='ocas', "
            "which solver='auto' is here, or solver='cpa'"
        )


def bounds_of(model: Any, n_features: int) -> Bounds | None:
    """The bounds of a model with this many features; None if it has none."""
    if model.bounds is None and not model.positive:
        return None
    low, high = np.full(n_features, -np.inf), np.full(n_features, np.inf)
    if model.bounds is not None:
        for name, values, given in zip(
            ("low", "high"), (low, high), _pair(model.bounds), strict=True
        ):
            if given.ndim and len(given) != n_features:
                raise ValueError(
                    f"bounds: {name} has {len(given)} numbers, but X has {n_features} features; "
                    "give one number for all features, or one per feature"
                )
            values[:] = given
        _refuse(model, low > high, low, high, "low must not be above high")
        _refuse(
            model, np.isposinf(low) | np.isneginf(high), low, high, "there is no number between"
        )
    if model.positive:
        _refuse(
            model, high < 0.0, low, high, "positive=True leaves nothing; drop it, or raise high"
        )
        low = np.maximum(low, 0.0)
    return Bounds(low, high)


def _pair(bounds: Any) -> tuple[np.ndarray, np.ndarray]:
    """low and high as arrays, of a number or of one dimension."""
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds must be a pair (low, high), such as (0, np.inf); got {bounds!r}"
        ) from None
    return _numbers("low", low), _numbers("high", high)


def _numbers(name: str, given: Any) -> np.ndarray:
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds: {name} must be a number, or one per feature; got {given!r}; for no bound "
            "give -np.inf or np.inf"
        ) from None
    if values.ndim > 1:
        raise ValueError(
            f"bounds: {name} must be a number, or one per feature, got shape {values.shape}"
        )
    if np.isnan(values).any():
        where = f" of feature {int(np.isnan(values).argmax())}" if values.ndim else ""
        raise ValueError(
            f"bounds: {name}{where} is NaN; for no bound give -np.inf as low, np.inf as high"
        )
    return values


def _refuse(model: Any, wrong: np.ndarray, low: np.ndarray, high: np.ndarray, why: str) -> None:
    """Name the first feature whose bounds are wrong."""
    if not wrong.any():
        return
    k = int(wrong.argmax())
    names = getattr(model, "feature_names_in_", None)
    name = "" if names is None else f" ({names[k]!r})"
    raise ValueError(f"bounds of feature {k}{name} are ({low[k]:g}, {high[k]:g}): {why}")
