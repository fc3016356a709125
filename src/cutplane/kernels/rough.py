"""Sums of kernel values in single precision, and how far they are off at most.

A label needs no more than the sign of a score. Single precision takes a half to a sixth of the
time of double precision, and proves the signs of almost all scores. Let u = 2^−24 and
e = (n + 4)·u with n features: the rounded x and z, and every order of additions, leave a product
<x, z> within e·|x|·|z|. Then, with Z the largest |z|, a value is off by at most

    rbf           value·1.1·(ε + 8u),  ε = gamma·(2e·|x|·Z + 12u·(|x| + Z)²),  if ε ≤ 0.1
    linear, poly  1.1·d·(e + 8u)·(|gamma|·|x|·|z| + |coef0|)^d,                if d·e ≤ 0.05

because ε bounds the error of the exponent of rbf, also where it comes from differences, and
(e + 2u) times the last bracket that of each factor of poly. 8u are for the exponential, or for the
products of factors. In a bracket a sum over k separates from |x|, so the errors of a whole sum
take no more than one product of d + 1 numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..loops.kernel_sums import FLUSH
from . import ProductMatrix
from .points import DensePoints, Points
from .rbf_sums import NEAR, RbfTerms

if TYPE_CHECKING:
    from ..exec import Executor
    from . import Kernel

UNIT = 2.0**-24  # of rounding
# Several sums of the same values: with fewer features most of the time does not go into products.
MANY_FEATURES = 64
# Shorter rows are taken for as long as this, and values of rbf are off by LEAST besides: numbers
# below the least of single precision are lost.
SHORTEST, LEAST = 1e-10, 1e-37
MOST_EXPONENT, MOST_POWER, MOST_DEGREE = 0.1, 0.05, 20

# From numbers of rows to sums, (rows, outputs), and their largest errors.
Sums = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
# From kernel values, (rows, terms), to sums of them, (rows, outputs).
Change = Callable[[np.ndarray], np.ndarray]


def rough_sum(kernel: Kernel, left: Points, right: Points, coef: np.ndarray) -> Sums | None:
    """A function that computes Σ_k coef_k·k(x, z_k) for some rows x of ``left``, without values.

    The points are those in double precision. Errors are infinite where nothing is known. None if
    this way is not open to the kernel or the rows.

    The sum is that of the positive terms less that of the negative ones. Each of the two is off by
    no more than a part of itself: by the errors of the values, by FLUSH roundings of its terms, and
    by those of the coefficients.
    """
    if not isinstance(left, DensePoints) or not isinstance(right, DensePoints):
        return None
    if kernel.name != "rbf" or left.direct:
        return None
    part = 1.25 * (_exponent_errors(kernel.gamma, left, right) + (FLUSH + 16.0) * UNIT)
    order = np.argsort(coef < 0.0, kind="stable")
    largest = float(np.max(np.abs(coef), initial=0.0)) or 1.0
    direct, right = left.terms <= NEAR, right.take(order)
    rows, others = (DensePoints(p.x.astype(np.float32), p.norms, direct) for p in (left, right))
    sizes, groups = np.abs(coef[order]) / largest, (coef[order] < 0.0).astype(np.int64)
    terms = RbfTerms.make(others, kernel.gamma, sizes, groups)

    def sums(which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        out = np.zeros((2, len(which)))
        terms.add(rows.take(which), 0, len(which), out)
        errors = part[which] * (out[0] + out[1]) + LEAST * len(coef)
        return (largest * (out[0] - out[1]))[:, None], (largest * errors)[:, None]

    return sums


def rough_sums(
    kernel: Kernel, left: Points, right: Points, sums: Change, sizes: Change, executor: Executor
) -> Sums | None:
    """As ``rough_sum``, for several sums of the same kernel values.

    Parameters
    ----------
    kernel : Kernel
    left, right : DensePoints or SparsePoints
    sums, sizes : callable
        Sums of values, and the same with the absolute values of all coefficients.
    executor : Executor
        Of the kernel matrix.
    """
    degree = {"rbf": 0, "linear": 1, "poly": int(kernel.degree)}.get(kernel.name)
    if not isinstance(left, DensePoints) or not isinstance(right, DensePoints) or degree is None:
        return None
    if left.direct or left.whole or left.terms < MANY_FEATURES:
        return None
    single = left.astype(np.float32), right.astype(np.float32)
    matrix = ProductMatrix(kernel, *single, executor)

    def values_of(which: np.ndarray) -> np.ndarray:
        return matrix.rows(which).astype(np.float64)

    if kernel.name == "rbf":
        part = 1.1 * (_exponent_errors(kernel.gamma, left, right) + 8.0 * UNIT)
        least = LEAST * sizes(np.ones((1, len(right))))

        def of_rbf(which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            values = values_of(which)
            return sums(values), part[which, None] * sizes(values) + least

        return of_rbf
    product_error = (left.terms + 4.0) * UNIT
    if degree > MOST_DEGREE or degree * product_error > MOST_POWER:
        return None
    # (a + b)^d is a product of d + 1 powers of a, and as many of b.
    scale, offset = (1.0, 0.0) if kernel.name == "linear" else (kernel.gamma, kernel.coef0)
    powers = np.arange(degree + 1)
    weights = np.array([math.comb(degree, k) * abs(offset) ** (degree - k) for k in powers])
    weights *= 1.1 * degree * (product_error + 8.0 * UNIT)
    own = weights * (abs(scale) * _lengths(left)[:, None]) ** powers
    other = sizes((_lengths(right)[:, None] ** powers).T)
    return lambda which: (sums(values_of(which)), own[which] @ other)


def _exponent_errors(gamma: float, left: DensePoints, right: DensePoints) -> np.ndarray:
    """ε of every row; infinite if it is too large."""
    lengths, farthest = _lengths(left), _lengths(right).max(initial=0.0)
    errors = 2.0 * (left.terms + 4.0) * UNIT * lengths * farthest
    errors = gamma * (errors + 12.0 * UNIT * (lengths + farthest) ** 2)
    return np.where(errors <= MOST_EXPONENT, errors, np.inf)


def _lengths(points: DensePoints) -> np.ndarray:
    return np.maximum(np.sqrt(points.norms), SHORTEST)
