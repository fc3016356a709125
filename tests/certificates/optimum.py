"""A good point of an objective from an outside solver: Clarabel, through cvxpy.

The solver is not trusted. Its point is evaluated in extended precision by ``objectives``, and the
objective of any point is an upper bound of the optimum.
"""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
from objectives import LONG, Objective, Point

TIGHT = {
    "tol_gap_abs": 1e-10,
    "tol_gap_rel": 1e-10,
    "tol_feas": 1e-10,
    "max_iter": 100,
    "max_threads": 1,
}


def solve(objective: Objective, size: float) -> Point | None:
    """Clarabel's point; ``size`` is the objective of some point: then |w|² ≤ 2·size.

    In units where F = size is 1 and |w| ≤ 1 the solver's tolerances mean the same at any C.
    """
    if not (0.0 < size < 1e30) or not objective.space.definite:
        return None
    features = objective.combined(objective.space.features())
    if not np.any(features):
        return None
    unit = float(np.sqrt(2.0 * size))
    cost = (np.asarray(objective.cost) / LONG(size)).astype(np.float64)
    d = np.asarray(objective.d).astype(np.float64)
    v = cp.Variable(features.shape[1])
    b = cp.Variable(objective.biases) if objective.biases else None
    t = (unit * features) @ v + d
    total = cp.sum_squares(v)
    if b is not None:
        t = t + np.asarray(objective.B, dtype=np.float64) @ b
        if np.isfinite(objective.scaling):
            total += cp.sum_squares(b / (objective.scaling * unit))
        if objective.a is not None:
            total += (objective.a / LONG(size)).astype(np.float64) @ b
    constraints = []
    if objective.loss == "logistic":
        total += cost @ cp.logistic(t)
    else:
        losses = cp.Variable(len(cost), nonneg=True)
        constraints = [t <= losses[objective.groups]]
        if objective.loss == "squared":
            losses = cp.square(losses)
        elif objective.loss == "huber":
            losses = 0.5 * cp.huber(losses, objective.bend)
        total += cost @ losses
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cp.Problem(cp.Minimize(total), constraints).solve(
                solver=cp.CLARABEL, canon_backend=cp.SCIPY_CANON_BACKEND, **TIGHT
            )
    except (cp.SolverError, ValueError, ArithmeticError):
        return None
    biases = np.zeros(0) if b is None else b.value
    if v.value is None or biases is None or not np.all(np.isfinite(v.value)):
        return None
    w = objective.space.coordinates(unit * v.value)
    return _best_bias(objective, Point(w, biases))


def _best_bias(objective: Objective, point: Point) -> Point:
    """The best free bias for this w. With hinges it is at a kink of a loss."""
    if objective.biases != 1 or objective.loss != "hinge" or np.isfinite(objective.scaling):
        return point
    t, _ = objective.functions(Point(point.w, np.zeros(1)))
    slopes = objective.B[:, 0].astype(LONG)
    kinks = -t[slopes != 0] / slopes[slopes != 0]
    near = np.argsort(np.abs(kinks - point.b[0]))[:200]
    kinks = np.append(kinks[near], point.b.astype(LONG))
    losses = np.zeros((len(objective.cost), len(kinks)), dtype=LONG)
    np.maximum.at(losses, objective.groups, t[:, None] + slopes[:, None] * kinks)
    risks = np.asarray(objective.cost).astype(LONG) @ losses
    if objective.a is not None:
        risks = risks + objective.a.astype(LONG)[0] * kinks
    return Point(point.w, kinks[[int(np.argmin(risks))]])
