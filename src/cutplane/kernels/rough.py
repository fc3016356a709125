"""How far kernel values in single precision are off at most.

A label needs no more than the sign of a score. Products of matrices in single precision take half
the time of those in double precision, and prove the signs of almost all scores. Let u = 2^−24 and
e = (n + 4)·u with n features: the rounded x and z, and every order of additions, leave a product
<x, z> within e·|x|·|z|. Then, with Z the largest |z|, a value is off by at most

    rbf           value·1.1·(ε + 8u),  ε = gamma·(2e·|x|·Z + 5u·(|x| + Z)²),  if ε ≤ 0.1
    linear, poly  1.1·d·(e + 8u)·(|gamma|·|x|·|z| + |coef0|)^d,               if d·e ≤ 0.05

because ε bounds the error of the exponent of rbf, and (e + 2u) times the last bracket that of each
factor of poly. 8u are for the exponential, or for the products of factors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from .points import DensePoints, Points

if TYPE_CHECKING:
    from . import Kernel

UNIT = 2.0**-24  # of rounding
# With fewer features most of the time does not go into products.
MANY_FEATURES = 64
# Shorter rows are taken for as long as this, and values of rbf are off by LEAST besides: numbers
# below the least of single precision are lost.
SHORTEST, LEAST = 1e-10, 2e-38
MOST_EXPONENT, MOST_POWER, MOST_DEGREE = 0.1, 0.05, 20

# From numbers of rows and their values to the largest errors of the values.
Errors = Callable[[np.ndarray, np.ndarray], np.ndarray]


def rough_errors(kernel: Kernel, left: Points, right: Points) -> Errors | None:
    """A function that bounds errors of values of some rows of ``left`` with all of ``right``.

    The points are those in double precision. Values have the shape (rows, len(right)), and errors
    are infinite where nothing is known. None if single precision would bring nothing, or if nothing
    is known of this kernel.
    """
    degree = {"rbf": 0, "linear": 1, "poly": int(kernel.degree)}.get(kernel.name)
    if not isinstance(left, DensePoints) or left.terms < MANY_FEATURES or degree is None:
        return None
    if left.direct or left.whole:
        return None
    lengths, others = (np.maximum(np.sqrt(points.norms), SHORTEST) for points in (left, right))
    product_error = (left.terms + 4.0) * UNIT
    if kernel.name == "rbf":
        farthest = others.max(initial=0.0)
        exponent = 2.0 * product_error * lengths * farthest
        exponent += 5.0 * UNIT * (lengths + farthest) ** 2
        exponent *= kernel.gamma
        part = np.where(exponent <= MOST_EXPONENT, 1.1 * (exponent + 8.0 * UNIT), np.inf)
        return lambda which, values: part[which, None] * values + LEAST
    if degree > MOST_DEGREE or degree * product_error > MOST_POWER:
        return None
    # (a + b)^d is a product of d + 1 powers of a, and as many of b.
    scale, offset = (1.0, 0.0) if kernel.name == "linear" else (kernel.gamma, kernel.coef0)
    powers = np.arange(degree + 1)
    weights = np.array([math.comb(degree, k) * abs(offset) ** (degree - k) for k in powers])
    factor = 1.1 * degree * (product_error + 8.0 * UNIT)
    own = factor * weights * (abs(scale) * lengths[:, None]) ** powers
    other = (others[:, None] ** powers).T
    return lambda which, values: own[which] @ other
