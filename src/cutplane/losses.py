"""Losses of one score, each a handful of scalar functions.

A loss ℓ(z) is convex and at least 0. Its argument is

    z = y·s      for classification: label y = ±1, score s,
    z = s − y    for regression: target y.

Certificates come from the conjugate ℓ*(u) = max_z u·z − ℓ(z): every u in its domain gives a plane
u·z − ℓ*(u) below ℓ, whether u is a slope, an average of slopes, or the dual point of another
solver.

A loss is a named tuple of its parameters. Its methods are plain Python on numbers. Compiled loops
take the loss as an argument and call functions of the same names, such as ``slope(loss, z)``:
numba compiles one version of each loop per loss, and inlines the method. So a new loss is a class
in this file and an entry of ``LOSSES``. No loop needs a change.

What a loss must have, with ℓ' any subgradient:

    value(z)            ℓ(z)
    slope(z)            ℓ'(z)
    conjugate(u)        ℓ*(u), for u in the domain
    dual_step(u, z, h)  argmin over v of ℓ*(v) − z·v + ½h(v − u)², h > 0
    domain              the least and the largest u with a finite ℓ*; 0 is between them

and what it may have:

    regression          True if z = s − y
    curvature(z)        ℓ''(z), for smooth losses that have one wherever they are not 0; needed if
                        the domain is infinite
    conjugate_curvature ℓ*''(u), if it is the same for all u inside the domain
    conjugate_kinks     where inside the domain ℓ*' jumps
    conjugate_slope(u)  ℓ*'(u), if also it jumps nowhere and the domain ends above
    transcendental      True if exponentials or logarithms take most of the time of a pass
    of_margin(m)        ℓ in terms of m = max(0, 1 − z), if ℓ depends on that alone
    reach               sup of −z·ℓ'(z), which bounds |w|² for Pegasos; None if there is none

``dual_step`` is the step of coordinate descent on one row (h = C_i·|x_i|²), and also the slope of
the smoothed loss max_u u·z − ℓ*(u) − ½h(u − shift)² that Newton's method minimises. Newton's method
does not smooth a loss with a ``curvature``: then ``smoothed_slope`` and ``smoothed_bend`` are ℓ'
and ℓ''. If a loss is linear far from 0, such as Huber's, it should have no ``curvature``, because
rows there would not tell how long a step should be. With a ``conjugate_curvature`` descent also
takes conjugate gradients. With a ``conjugate_slope`` Newton's method changes to interior points
where it is slow.
"""

from __future__ import annotations

import inspect
import math
from collections import namedtuple
from typing import Any

from numba.extending import overload, register_jitable

from ._elementary import exp, log, log1p
from ._jit import NO_ENTRY

# Rounding errors of a few operations, relative to the result.
FEW_ROUNDINGS = 8 * 2.0**-53


class Loss:
    """What a loss may leave out; the module says what these mean."""

    domain: tuple[float, float]
    curvature: Any = None
    conjugate_slope: Any = None
    conjugate_curvature: float | None = None
    conjugate_kinks: tuple[float, ...] = ()
    of_margin: Any = None
    regression = False
    transcendental = False
    reach: float | None = None


class Hinge(Loss, namedtuple("Hinge", ())):
    """max(0, 1 − z), the loss of the support vector machine."""

    domain = (-1.0, 0.0)
    conjugate_curvature = 0.0
    reach = 1.0

    def value(self, z):
        return max(0.0, 1.0 - z)

    def of_margin(self, m):
        return m

    def slope(self, z):
        return -1.0 if z < 1.0 else 0.0

    def conjugate(self, u):
        return u

    def conjugate_slope(self, u):
        return 1.0

    def dual_step(self, u, z, h):
        return min(max(u + (z - 1.0) / h, -1.0), 0.0)


class SquaredHinge(Loss, namedtuple("SquaredHinge", ())):
    """max(0, 1 − z)²."""

    domain = (-math.inf, 0.0)
    conjugate_curvature = 0.5
    reach = 0.5

    def value(self, z):
        margin = max(0.0, 1.0 - z)
        return margin * margin

    def of_margin(self, m):
        return m * m

    def slope(self, z):
        return -2.0 * max(0.0, 1.0 - z)

    def curvature(self, z):
        return 2.0 if z < 1.0 else 0.0

    def conjugate(self, u):
        return u + 0.25 * u * u

    def conjugate_slope(self, u):
        return 1.0 + 0.5 * u

    def dual_step(self, u, z, h):
        return min((h * u + z - 1.0) / (h + 0.5), 0.0)


@register_jitable(**NO_ENTRY)
def _entropy(p: float) -> float:
    """p·log p, 0 at 0."""
    return p * log(p if p > 0.0 else 1.0)


class Logistic(Loss, namedtuple("Logistic", ())):
    """log(1 + exp(−z))."""

    domain = (-1.0, 0.0)
    transcendental = True
    reach = 0.27846454276107

    def value(self, z):
        # Without overflow, and exact to the last digits where the loss is small.
        return log1p(exp(-abs(z))) + max(0.0, -z)

    def slope(self, z):
        e = exp(-abs(z))
        return -e / (1.0 + e) if z > 0.0 else -1.0 / (1.0 + e)

    def curvature(self, z):
        e = exp(-abs(z))
        return e / ((1.0 + e) * (1.0 + e))

    def conjugate(self, u):
        return _entropy(-u) + _entropy(1.0 + u)

    def dual_step(self, u, z, h):
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


class HuberisedHinge(Loss, namedtuple("HuberisedHinge", ("delta",), defaults=(0.5,))):
    """The hinge with a parabola of width δ in place of its kink."""

    domain = (-1.0, 0.0)
    reach = 1.0

    @property
    def conjugate_curvature(self):
        return self.delta

    def value(self, z):
        m = max(0.0, 1.0 - z)
        return m - 0.5 * self.delta if m > self.delta else 0.5 * m * m / self.delta

    def of_margin(self, m):
        return m - 0.5 * self.delta if m > self.delta else 0.5 * m * m / self.delta

    def slope(self, z):
        return -min(max(0.0, 1.0 - z) / self.delta, 1.0)

    def conjugate(self, u):
        return u + 0.5 * self.delta * u * u

    def conjugate_slope(self, u):
        return 1.0 + self.delta * u

    def dual_step(self, u, z, h):
        return min(max((h * u + z - 1.0) / (h + self.delta), -1.0), 0.0)


@register_jitable(**NO_ENTRY)
def _shrunk(t: float, by: float) -> float:
    """t, nearer to 0."""
    return math.copysign(max(abs(t) - by, 0.0), t)


class EpsilonInsensitive(Loss, namedtuple("EpsilonInsensitive", ("epsilon",), defaults=(0.1,))):
    """max(0, |z| − ε): deviations up to ε cost nothing."""

    regression = True
    domain = (-1.0, 1.0)
    conjugate_curvature = 0.0

    @property
    def conjugate_kinks(self):
        return (0.0,) if self.epsilon > 0.0 else ()

    def value(self, z):
        return max(0.0, abs(z) - self.epsilon)

    def slope(self, z):
        return math.copysign(1.0, z) if abs(z) > self.epsilon else 0.0

    def conjugate(self, u):
        return self.epsilon * abs(u)

    def dual_step(self, u, z, h):
        return min(max(_shrunk(u + z / h, self.epsilon / h), -1.0), 1.0)


class SquaredEpsilonInsensitive(
    Loss, namedtuple("SquaredEpsilonInsensitive", ("epsilon",), defaults=(0.1,))
):
    """max(0, |z| − ε)²."""

    regression = True
    domain = (-math.inf, math.inf)
    conjugate_curvature = 0.5

    @property
    def conjugate_kinks(self):
        return (0.0,) if self.epsilon > 0.0 else ()

    def value(self, z):
        beyond = max(0.0, abs(z) - self.epsilon)
        return beyond * beyond

    def slope(self, z):
        return 2.0 * _shrunk(z, self.epsilon)

    def curvature(self, z):
        return 2.0 if abs(z) > self.epsilon else 0.0

    def conjugate(self, u):
        return self.epsilon * abs(u) + 0.25 * u * u

    def dual_step(self, u, z, h):
        return _shrunk(h * u + z, self.epsilon) / (h + 0.5)


class Quantile(Loss, namedtuple("Quantile", ("quantile",), defaults=(0.5,))):
    """max(−τ·z, (1 − τ)·z), the pinball loss, whose best constant is the τ-quantile."""

    regression = True
    conjugate_curvature = 0.0

    @property
    def domain(self):
        return -self.quantile, 1.0 - self.quantile

    def value(self, z):
        return max(-self.quantile * z, (1.0 - self.quantile) * z)

    def slope(self, z):
        above = 1.0 - self.quantile if z > 0.0 else 0.0
        return -self.quantile if z < 0.0 else above

    def conjugate(self, u):
        return 0.0

    def conjugate_slope(self, u):
        return 0.0

    def dual_step(self, u, z, h):
        return min(max(u + z / h, -self.quantile), 1.0 - self.quantile)


class Huber(Loss, namedtuple("Huber", ("delta",), defaults=(1.0,))):
    """½z² where |z| ≤ δ, and δ(|z| − ½δ) beyond."""

    regression = True
    conjugate_curvature = 1.0

    @property
    def domain(self):
        return -self.delta, self.delta

    def value(self, z):
        inside = min(abs(z), self.delta)
        return inside * (abs(z) - 0.5 * inside)

    def slope(self, z):
        return min(max(z, -self.delta), self.delta)

    def conjugate(self, u):
        return 0.5 * u * u

    def conjugate_slope(self, u):
        return u

    def dual_step(self, u, z, h):
        return min(max((h * u + z) / (h + 1.0), -self.delta), self.delta)


LOSSES: dict[str, Any] = {
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "logistic": Logistic,
    "huberised_hinge": HuberisedHinge,
    "epsilon_insensitive": EpsilonInsensitive,
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
    "quantile": Quantile,
    "huber": Huber,
}
# The names for labels of two classes; the others are for regression.
CLASSIFICATION = tuple(name for name, loss in LOSSES.items() if not loss.regression)


# -- how compiled loops call a loss -------------------------------------------------------


def _method(function: Any) -> Any:
    """Let a compiled call of a function be one of the loss's method of the same name."""

    def method(*arguments: Any) -> Any:
        return getattr(arguments[0].instance_class, function.__name__)

    method.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    overload(function, jit_options=NO_ENTRY)(method)
    return function


@_method
def value(self, z):
    """ℓ(z)."""
    return self.value(z)


@_method
def slope(self, z):
    """A subgradient of ℓ at z."""
    return self.slope(z)


@_method
def curvature(self, z):
    """ℓ''(z), of a smooth loss."""
    return self.curvature(z)


@_method
def conjugate(self, u):
    """ℓ*(u)."""
    return self.conjugate(u)


@_method
def conjugate_slope(self, u):
    """ℓ*'(u)."""
    return self.conjugate_slope(u)


def domain(self):
    """The ends of the domain of ℓ*."""
    return self.domain


@_method
def of_margin(self, m):
    """ℓ where max(0, 1 − z) is m."""
    return self.of_margin(m)


@_method
def dual_step(self, u, z, h):
    """argmin over v of ℓ*(v) − z·v + ½h(v − u)²."""
    return self.dual_step(u, z, h)


def smoothed_slope(self, u, z, h):
    """The slope of the smoothed loss at z, whose shift is u; of ℓ itself if that is smooth."""
    return self.dual_step(u, z, h) if self.curvature is None else self.slope(z)


def smoothed_bend(loss, shift, z, h, u):
    """The derivative of the smoothed slope u at z: 0 where a bound of the domain holds u."""
    if loss.curvature is None:
        low, high = loss.domain
        step = 1e-3 * (high - low) * h  # u moves by that part of the domain, or not at all
        return (loss.dual_step(shift, z + step, h) - u) / step
    return loss.curvature(z)


def smoothing_cost(loss, z, u, lost):
    """By how much a loss, ``lost`` at z, is above the plane of a smoothed slope u; 0 if smooth."""
    return lost - u * z + loss.conjugate(u) if loss.curvature is None else 0.0


def highest(loss, z, low, error):
    """At least ℓ at z + low, off by ``error`` at most, whatever rounding does here.

    Near 0 z has all its digits for regression, and so has 1 − z near 1, so that ``low`` counts.
    """
    if loss.of_margin is not None:
        m = (1.0 - z) - low
        return loss.of_margin(max(0.0, m + (error + FEW_ROUNDINGS * abs(m))))
    z = z + low
    error = error + FEW_ROUNDINGS * abs(z)
    return max(loss.value(z - error), loss.value(z + error))  # of a convex function


def argument(loss, s, y):
    """z of a row with score s and label or target y."""
    return s - y if loss.regression else y * s


def direction(loss, y):
    """dz/ds."""
    return 1.0 if loss.regression else y


@overload(domain, jit_options=NO_ENTRY)
def _domain(self):
    ends = self.instance_class.domain
    return ends.fget if isinstance(ends, property) else lambda self: ends


@overload(smoothed_slope, jit_options=NO_ENTRY)
def _smoothed_slope(self, u, z, h):
    if self.instance_class.curvature is None:
        return self.instance_class.dual_step
    return lambda self, u, z, h: slope(self, z)


@overload(smoothed_bend, jit_options=NO_ENTRY)
def _smoothed_bend(loss, shift, z, h, u):
    if loss.instance_class.curvature is None:

        def bend(loss, shift, z, h, u):
            low, high = domain(loss)
            step = 1e-3 * (high - low) * h
            return (dual_step(loss, shift, z + step, h) - u) / step

        return bend
    return lambda loss, shift, z, h, u: curvature(loss, z)


@overload(smoothing_cost, jit_options=NO_ENTRY)
def _smoothing_cost(loss, z, u, lost):
    if loss.instance_class.curvature is None:
        return lambda loss, z, u, lost: lost - u * z + conjugate(loss, u)
    return lambda loss, z, u, lost: 0.0


@overload(highest, jit_options={"forceinline": True, **NO_ENTRY})
def _highest(loss, z, low, error):
    if loss.instance_class.of_margin is not None:

        def of_margins(loss, z, low, error):
            m = (1.0 - z) - low
            return of_margin(loss, max(0.0, m + (error + FEW_ROUNDINGS * abs(m))))

        return of_margins

    def of_ends(loss, z, low, error):
        z = z + low
        error = error + FEW_ROUNDINGS * abs(z)
        return max(value(loss, z - error), value(loss, z + error))

    return of_ends


# In just this order wherever it is called: two loops must find a row on the same side of a kink.
@overload(argument, jit_options={"fastmath": False, **NO_ENTRY})
def _argument(loss, s, y):
    if loss.instance_class.regression:
        return lambda loss, s, y: s - y
    return lambda loss, s, y: y * s


@overload(direction, jit_options=NO_ENTRY)
def _direction(loss, y):
    if loss.instance_class.regression:
        return lambda loss, y: 1.0
    return lambda loss, y: y
