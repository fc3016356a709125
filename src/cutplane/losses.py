"""Losses of one score, each a handful of scalar functions.

A loss ℓ(z) is convex and at least 0. Its argument is

    z = y·s      for classification: label y = ±1, score s,
    z = s − y    for regression: target y.

The conjugate ℓ*(u) = max_z u·z − ℓ(z) is what certificates are made of: every u in its domain
gives a plane u·z − ℓ*(u) below ℓ, whether u is a slope, an average of slopes, or the dual point
of another solver.

A loss is a ``NamedTuple`` of its parameters whose methods are plain Python on numbers. Compiled
loops take the loss as an argument and call the functions of the same names below, such as
``slope(loss, z)``: numba compiles one version of each loop per loss, with the method inlined.
So a new loss is a class here and an entry of ``LOSSES``; no loop knows it.

What a loss must have, with ℓ' any subgradient:

    value(z)            ℓ(z)
    slope(z)            ℓ'(z)
    conjugate(u)        ℓ*(u), for u in the domain
    dual_step(u, z, h)  argmin over v of ℓ*(v) − z·v + ½h(v − u)², h > 0
    domain              the least and the largest u with a finite ℓ*

and what it may have:

    curvature(z)        ℓ''(z), for smooth losses; None where ℓ has kinks
    conjugate_slope(u)  ℓ*'(u) and
    conjugate_bend(u)   ℓ*''(u) inside the domain; None where ℓ* has kinks there
    regression          True if z = s − y

``dual_step`` is the step of coordinate descent on one row (h = C_i·|x_i|²), and also the slope of
the smoothed loss max_u u·z − ℓ*(u) − ½h(u − shift)² that Newton's method works on. A loss that is
smooth is its own smoothed loss: ``smoothed_slope`` and ``smoothed_bend`` are ℓ' and ℓ'' then.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

from numba.extending import overload, register_jitable


class Loss(Protocol):
    """What every loss has; the module says what it means."""

    domain: ClassVar[tuple[float, float]]
    curvature: ClassVar[Any]
    conjugate_slope: ClassVar[Any]
    conjugate_bend: ClassVar[Any]
    regression: ClassVar[bool]

    def value(self, z: float) -> float: ...
    def slope(self, z: float) -> float: ...
    def conjugate(self, u: float) -> float: ...
    def dual_step(self, u: float, z: float, h: float) -> float: ...


class Hinge(NamedTuple):
    """max(0, 1 − z), the loss of the support vector machine."""

    domain = (-1.0, 0.0)
    curvature = None
    regression = False

    def value(self, z):  # type: ignore[no-untyped-def]
        return max(0.0, 1.0 - z)

    def slope(self, z):  # type: ignore[no-untyped-def]
        return -1.0 if z < 1.0 else 0.0

    def conjugate(self, u):  # type: ignore[no-untyped-def]
        return u

    def conjugate_slope(self, u):  # type: ignore[no-untyped-def]
        return 1.0

    def conjugate_bend(self, u):  # type: ignore[no-untyped-def]
        return 0.0

    def dual_step(self, u, z, h):  # type: ignore[no-untyped-def]
        return min(max(u + (z - 1.0) / h, -1.0), 0.0)


class SquaredHinge(NamedTuple):
    """max(0, 1 − z)²."""

    domain = (-math.inf, 0.0)
    regression = False

    def value(self, z):  # type: ignore[no-untyped-def]
        margin = max(0.0, 1.0 - z)
        return margin * margin

    def slope(self, z):  # type: ignore[no-untyped-def]
        return -2.0 * max(0.0, 1.0 - z)

    def curvature(self, z):  # type: ignore[no-untyped-def]
        return 2.0 if z < 1.0 else 0.0

    def conjugate(self, u):  # type: ignore[no-untyped-def]
        return u + 0.25 * u * u

    def conjugate_slope(self, u):  # type: ignore[no-untyped-def]
        return 1.0 + 0.5 * u

    def conjugate_bend(self, u):  # type: ignore[no-untyped-def]
        return 0.5

    def dual_step(self, u, z, h):  # type: ignore[no-untyped-def]
        return min((h * u + z - 1.0) / (h + 0.5), 0.0)


@register_jitable
def _entropy(p: float) -> float:
    """p·log p, 0 at 0."""
    return p * math.log(p) if p > 0.0 else 0.0


class Logistic(NamedTuple):
    """log(1 + exp(−z))."""

    domain = (-1.0, 0.0)
    regression = False

    def value(self, z):  # type: ignore[no-untyped-def]
        # Without overflow, and exact to the last digits where the loss is small.
        return math.log1p(math.exp(-abs(z))) + max(0.0, -z)

    def slope(self, z):  # type: ignore[no-untyped-def]
        e = math.exp(-abs(z))
        return -e / (1.0 + e) if z > 0.0 else -1.0 / (1.0 + e)

    def curvature(self, z):  # type: ignore[no-untyped-def]
        e = math.exp(-abs(z))
        return e / ((1.0 + e) * (1.0 + e))

    def conjugate(self, u):  # type: ignore[no-untyped-def]
        return _entropy(-u) + _entropy(1.0 + u)

    def conjugate_slope(self, u):  # type: ignore[no-untyped-def]
        return math.log((1.0 + u) / -u)

    def conjugate_bend(self, u):  # type: ignore[no-untyped-def]
        return 1.0 / (-u * (1.0 + u))

    def dual_step(self, u, z, h):  # type: ignore[no-untyped-def]
        # v = ℓ'(t) where g(t) = t − z + h(ℓ'(t) − u) is zero. Newton's steps, guarded by a bracket.
        low = z + h * u
        high = z + h * (1.0 + u)
        t = min(max(z, low), high)
        for _ in range(60):
            e = math.exp(-abs(t))
            v = -e / (1.0 + e) if t > 0.0 else -1.0 / (1.0 + e)
            g = t - z + h * (v - u)
            if abs(g) <= 1e-14 * (1.0 + abs(z) + h):
                break
            if g > 0.0:
                high = t
            else:
                low = t
            new = t - g / (1.0 + h * e / ((1.0 + e) * (1.0 + e)))
            t = new if low < new < high else 0.5 * (low + high)
        e = math.exp(-abs(t))
        return -e / (1.0 + e) if t > 0.0 else -1.0 / (1.0 + e)


LOSSES: dict[str, Callable[..., Any]] = {
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "logistic": Logistic,
}


# -- how compiled loops call a loss -------------------------------------------------------


def value(self, z):  # type: ignore[no-untyped-def]
    """ℓ(z)."""
    return self.value(z)


def slope(self, z):  # type: ignore[no-untyped-def]
    """A subgradient of ℓ at z."""
    return self.slope(z)


def curvature(self, z):  # type: ignore[no-untyped-def]
    """ℓ''(z), of a smooth loss."""
    return self.curvature(z)


def conjugate(self, u):  # type: ignore[no-untyped-def]
    """ℓ*(u)."""
    return self.conjugate(u)


def conjugate_slope(self, u):  # type: ignore[no-untyped-def]
    """ℓ*'(u)."""
    return self.conjugate_slope(u)


def conjugate_bend(self, u):  # type: ignore[no-untyped-def]
    """ℓ*''(u)."""
    return self.conjugate_bend(u)


def dual_step(self, u, z, h):  # type: ignore[no-untyped-def]
    """argmin over v of ℓ*(v) − z·v + ½h(v − u)²."""
    return self.dual_step(u, z, h)


def smoothed_slope(loss, shift, z, h):  # type: ignore[no-untyped-def]
    """The slope of the smoothed loss at z; of ℓ itself if that is smooth."""
    return loss.dual_step(shift, z, h) if loss.curvature is None else loss.slope(z)


def smoothed_bend(loss, shift, z, h, u):  # type: ignore[no-untyped-def]
    """The derivative of the smoothed slope u at z: 0 where a bound of the domain holds u."""
    if loss.curvature is None:
        step = 1e-3 * h  # u moves by that part of 1, or not at all
        return (loss.dual_step(shift, z + step, h) - u) / step
    return loss.curvature(z)


def argument(loss, s, y):  # type: ignore[no-untyped-def]
    """z of a row with score s and label or target y."""
    return s - y if loss.regression else y * s


def direction(loss, y):  # type: ignore[no-untyped-def]
    """dz/ds."""
    return 1.0 if loss.regression else y


@overload(value)
def _value(self, z):  # type: ignore[no-untyped-def]
    return self.instance_class.value


@overload(slope)
def _slope(self, z):  # type: ignore[no-untyped-def]
    return self.instance_class.slope


@overload(curvature)
def _curvature(self, z):  # type: ignore[no-untyped-def]
    return self.instance_class.curvature


@overload(conjugate)
def _conjugate(self, u):  # type: ignore[no-untyped-def]
    return self.instance_class.conjugate


@overload(conjugate_slope)
def _conjugate_slope(self, u):  # type: ignore[no-untyped-def]
    return self.instance_class.conjugate_slope


@overload(conjugate_bend)
def _conjugate_bend(self, u):  # type: ignore[no-untyped-def]
    return self.instance_class.conjugate_bend


@overload(dual_step)
def _dual_step(self, u, z, h):  # type: ignore[no-untyped-def]
    return self.instance_class.dual_step


@overload(smoothed_slope)
def _smoothed_slope(loss, shift, z, h):  # type: ignore[no-untyped-def]
    if loss.instance_class.curvature is None:
        return lambda loss, shift, z, h: dual_step(loss, shift, z, h)
    return lambda loss, shift, z, h: slope(loss, z)


@overload(smoothed_bend)
def _smoothed_bend(loss, shift, z, h, u):  # type: ignore[no-untyped-def]
    if loss.instance_class.curvature is None:

        def bend(loss, shift, z, h, u):  # type: ignore[no-untyped-def]
            step = 1e-3 * h
            return (dual_step(loss, shift, z + step, h) - u) / step

        return bend
    return lambda loss, shift, z, h, u: curvature(loss, z)


@overload(argument)
def _argument(loss, s, y):  # type: ignore[no-untyped-def]
    if loss.instance_class.regression:
        return lambda loss, s, y: s - y
    return lambda loss, s, y: y * s


@overload(direction)
def _direction(loss, y):  # type: ignore[no-untyped-def]
    if loss.instance_class.regression:
        return lambda loss, y: 1.0
    return lambda loss, y: y
