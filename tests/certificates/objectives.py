"""Every estimator's objective in extended precision, written without the package.

All of them are one formula. With rows φ of a feature space, a weight vector w and biases b,

    t_r = <w, Σ_i S_ri φ_i> + <B_r, b> + d_r            affine functions, r = 1 … R
    F   = ½|w|² + <a, b> + ½|b/s|² + Σ_g c_g·f(max over the r of group g of t_r),

f(t) = max(0, t), max(0, t)², log(1 + eᵗ) or Huber's: ½t² up to a bend, then a line. A hinge loss is
a group of one function, a structured loss one of all outputs, a measure one of all labellings or
rankings. ``s`` is the constant feature behind a regularised bias, infinite for a free one; ``a`` is
−ν·Σ weights for the one-class machine.

``np.longdouble`` has 64 bits of mantissa on x86 and 113 on most 64-bit ARM; where it is a plain
double (Windows) sums here are no better than the package's, and FLOOR still covers them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

LONG = np.longdouble
DOUBLE_EPS = float(np.finfo(np.float64).eps)
# The part of the objective's size by which numbers may differ before it counts: nine digits hold
# at any C, scale and weight.
FLOOR = 1e-9


@dataclass(frozen=True)
class Point:
    """w in the space's coordinates, and the biases."""

    w: np.ndarray
    b: np.ndarray


class Rows:
    """The space of the rows themselves: w has a coordinate per feature."""

    definite, indefinite = True, False

    def __init__(self, X: np.ndarray, sizes: np.ndarray | None = None) -> None:
        self.values = np.asarray(X).astype(LONG)
        # Of what a fit has to add up, where values are differences of larger numbers.
        self.sizes = sizes
        self.terms = self.values.shape[1] + 8.0  # roundings behind a score

    def __len__(self) -> int:
        return len(self.values)

    def square(self, w: np.ndarray) -> LONG:
        return np.sum(w * w)

    def magnitude(self, w: np.ndarray) -> LONG:
        """The sum of the absolute values that ``square`` adds up, halved."""
        return self.square(w) / 2

    def features(self) -> np.ndarray:
        """Rows in double precision for an outside solver ..."""
        return self.values.astype(np.float64)

    def coordinates(self, v: np.ndarray) -> np.ndarray:
        """The weights of a model as coordinates of this space."""
        return v


class Kernel:
    """The space of a kernel: w = Σ_i β_i φ_i has the coordinates β.

    ``values`` is the matrix, ``work`` the number of roundings behind one of them in double
    precision.
    """

    def __init__(
        self, values: np.ndarray, work: float = 0.0, sizes: np.ndarray | None = None
    ) -> None:
        self.values = np.asarray(values).astype(LONG)
        self.sizes = sizes
        self.work = work
        self.terms = self.values.shape[1] + 8.0 + work
        # A common factor changes nothing here, and keeps huge kernels in range.
        self._unit = float(np.max(np.abs(self.values), initial=0.0)) or 1.0
        scaled = (self.values / LONG(self._unit)).astype(np.float64)
        self._levels, self._axes = np.linalg.eigh((scaled + scaled.T) / 2)
        self.definite = bool(self._levels[0] >= -1e-13 * len(scaled))
        self.indefinite = bool(self._levels[0] < -1e-6)

    def __len__(self) -> int:
        return len(self.values)

    def square(self, beta: np.ndarray) -> LONG:
        return np.sum(beta * (self.values @ beta))

    def magnitude(self, beta: np.ndarray) -> LONG:
        return np.sum(np.abs(beta) * (np.abs(self.values) @ np.abs(beta))) / 2

    def _kept(self) -> np.ndarray:
        return self._levels > 1e-13 * max(self._levels[-1], 0.0)

    def features(self) -> np.ndarray:
        kept = self._kept()
        return self._axes[:, kept] * np.sqrt(self._levels[kept] * self._unit)

    def coordinates(self, v: np.ndarray) -> np.ndarray:
        kept = self._kept()
        return self._axes[:, kept] @ (v / np.sqrt(self._levels[kept] * self._unit))


@dataclass(frozen=True)
class Objective:
    """F above. Left out: S is the identity, every function a group of its own.

    S may be the vector of its diagonal.
    """

    space: Rows | Kernel
    d: np.ndarray
    cost: np.ndarray
    S: np.ndarray | None = None
    B: np.ndarray | None = None
    a: np.ndarray | None = None
    scaling: float = np.inf
    loss: str = "hinge"
    group: np.ndarray | None = None
    unit: float = 1.0  # C·Σ weights: what stopping='epsilon' counts in
    nearly_free: float = np.inf  # the reported primal may have ½|b/this|² on top
    bend: float = np.inf  # of Huber's loss
    least: float = (
        0.0  # a gap that is small enough at any tolerance: rounding's share of large losses
    )
    border: float = 0.0  # the model's bias may be moved by this part of itself
    groups: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        group = np.arange(len(self.d)) if self.group is None else np.asarray(self.group)
        object.__setattr__(self, "groups", group)

    @property
    def biases(self) -> int:
        return 0 if self.B is None else self.B.shape[1]

    def combined(self, values: np.ndarray, absolute: bool = False) -> np.ndarray:
        """S·values, or |S|·values."""
        if self.S is None:
            return values
        S = (np.abs(self.S) if absolute else self.S).astype(values.dtype)
        return (S * values.T).T if S.ndim == 1 else S @ values

    def functions(self, point: Point) -> tuple[np.ndarray, np.ndarray]:
        """t, and the sum of the absolute values of its terms."""
        w, b = point.w.astype(LONG), point.b.astype(LONG)
        t, size = self.space.values @ w, np.abs(self.space.values) @ np.abs(w)
        t, size = self.combined(t), self.combined(size, absolute=True)
        if self.B is not None:
            B = self.B.astype(LONG)
            t, size = t + B @ b, size + np.abs(B) @ np.abs(b)
        d = np.asarray(self.d).astype(LONG)
        return t + d, size + np.abs(d)

    def evaluate(self, point: Point) -> tuple[LONG, LONG, LONG]:
        """F; its size, the sum of the absolute values of its terms; what rounding may do to it.

        The last one bounds the error of the losses if scores are computed in double precision.
        The error of a quadratic form of a kernel counts as size, at a part FLOOR of which it
        starts to matter.
        """
        t, size = self.functions(point)
        most = np.full(len(self.cost), -np.inf, dtype=LONG)
        np.maximum.at(most, self.groups, t)
        largest = np.ones(len(self.cost), dtype=LONG)  # margins and losses are of this size
        np.maximum.at(largest, self.groups, size)
        slope = LONG(1)
        if self.loss == "logistic":
            losses = np.logaddexp(LONG(0), most)
        else:
            losses = np.maximum(most, LONG(0))
            if self.loss == "squared":
                slope = 2 * losses
                losses = losses * losses
            elif self.loss == "huber":
                bend = LONG(self.bend)
                slope = np.minimum(losses, bend)
                losses = slope * (losses - slope / 2)
        terms = LONG(self.space.terms)
        error = terms * LONG(DOUBLE_EPS) * largest
        if self.loss == "squared":  # the square of an error matters where there is no loss
            slope = slope + error
        cost, b = np.asarray(self.cost).astype(LONG), point.b.astype(LONG)
        risk = np.sum(cost * losses)
        length = self.space.square(point.w.astype(LONG)) / 2
        linear = LONG(0) if self.a is None else np.sum(self.a.astype(LONG) * b)
        penalty = np.sum((b / LONG(self.scaling)) ** 2) / 2
        rounding = np.sum(cost * slope * error)
        size = abs(length) + abs(linear) + penalty + risk
        size += terms * LONG(DOUBLE_EPS / FLOOR) * self.space.magnitude(point.w.astype(LONG))
        return length + linear + penalty + risk, size, rounding

    def detour(self, point: Point) -> LONG:
        """A bound on the rounding error of a sum of hinge losses that passes larger numbers."""
        if self.space.sizes is None:
            return LONG(0)
        size = self.combined(self.space.sizes @ np.abs(point.w.astype(LONG)), absolute=True)
        largest = np.zeros(len(self.cost), dtype=LONG)
        np.maximum.at(largest, self.groups, size)
        terms = LONG(self.space.terms * DOUBLE_EPS)
        return terms * np.sum(np.asarray(self.cost).astype(LONG) * largest)


# -- the forms that estimators need ---------------------------------------------------


def signed_rows(
    space: Rows | Kernel, y: np.ndarray, cost: np.ndarray, loss: str, bias: float | None
) -> Objective:
    """Σ c_i·f(1 − y_i(s_i + b)); logistic without the 1. ``bias``: None, inf (free) or a scale."""
    return Objective(
        space,
        d=np.zeros(len(y)) if loss == "logistic" else np.ones(len(y)),
        cost=cost,
        S=-y,
        B=None if bias is None else -y[:, None],
        scaling=np.inf if bias is None else bias,
        loss=loss,
        unit=float(np.sum(cost)),
    )


def regression(space: Rows | Kernel, y: np.ndarray, cost: np.ndarray, epsilon: float) -> Objective:
    """Σ c_i·max(0, |y_i − s_i − b| − ε)."""
    rows = len(y)
    sides = np.concatenate([np.ones(rows), -np.ones(rows)])
    # In long double: y − ε in double is another problem where y is large.
    targets = np.tile(np.asarray(y), 2).astype(LONG)
    return Objective(
        space,
        d=sides * targets - LONG(epsilon),
        cost=cost,
        S=-np.vstack([np.eye(rows), -np.eye(rows)]),
        B=-sides[:, None],
        group=np.tile(np.arange(rows), 2),
        unit=float(np.sum(cost)),
    )


def residuals(
    X: np.ndarray, y: np.ndarray, cost: np.ndarray, loss: str, parameter: float, bias: float | None
) -> Objective:
    """Σ c_i·loss(s_i + b − y_i): ε-insensitive, its square, pinball with τ, Huber's with a bend."""
    rows, targets = len(y), np.asarray(y).astype(LONG)
    above, below, shift = LONG(1), LONG(1), LONG(0)
    if loss == "quantile":
        above, below = 1 - LONG(parameter), LONG(parameter)
    elif loss != "huber":
        shift = LONG(parameter)
    sides = np.concatenate([np.full(rows, above), np.full(rows, -below)])
    S = np.vstack([np.eye(rows, dtype=LONG) * above, -np.eye(rows, dtype=LONG) * below])
    size = 2 * np.abs(targets) + (2 * LONG(parameter) if loss != "quantile" else 0)
    far = size * (1 if loss != "squared_epsilon_insensitive" else size)
    return Objective(
        Rows(X),
        d=-sides * np.tile(targets, 2) - shift,
        cost=cost,
        S=S,
        B=None if bias is None else sides[:, None],
        scaling=np.inf if bias is None else bias,
        loss={"squared_epsilon_insensitive": "squared", "huber": "huber"}.get(loss, "hinge"),
        bend=parameter,
        least=4 * DOUBLE_EPS * float(np.sum(cost * far)) * (parameter if loss == "huber" else 1.0),
        group=np.tile(np.arange(rows), 2),
        unit=float(np.sum(cost)),
    )


def one_class(space: Rows | Kernel, weights: np.ndarray, nu: float) -> Objective:
    """−ν·ρ·Σ weights + Σ weight_i·max(0, ρ − s_i); the bias is −ρ."""
    return Objective(
        space,
        d=np.zeros(len(weights)),
        cost=weights,
        S=-np.ones(len(weights)),
        B=-np.ones((len(weights), 1)),
        a=np.array([LONG(nu) * np.sum(weights.astype(LONG))]),
        border=1e-9,
        unit=float(np.sum(weights)),
    )


def crammer_singer(
    space: Rows | Kernel,
    y: np.ndarray,
    classes: int,
    cost: np.ndarray,
    bias: float | None,
    nearly_free: float = np.inf,
) -> Objective:
    """Σ c_i·max_k (1[k ≠ y_i] + s_ik − s_i,y_i); w holds the classes' weights one after another."""
    rows = len(y)
    block = np.kron(np.eye(classes), space.values.astype(LONG))
    joint = Kernel(block, space.work) if isinstance(space, Kernel) else Rows(block)
    functions = rows * classes
    S, B = np.zeros((functions, functions)), np.zeros((functions, classes))
    r, i = np.arange(functions), np.tile(np.arange(rows), classes)
    k, own = np.repeat(np.arange(classes), rows), np.tile(y, classes)
    np.add.at(S, (r, k * rows + i), 1.0)
    np.add.at(S, (r, own * rows + i), -1.0)
    np.add.at(B, (r, k), 1.0)
    np.add.at(B, (r, own), -1.0)
    return Objective(
        joint,
        d=(k != own).astype(float),
        cost=cost,
        S=S,
        B=None if bias is None else B,
        scaling=np.inf if bias is None else bias,
        nearly_free=nearly_free if bias == np.inf else np.inf,
        group=i,
        unit=float(np.sum(cost)),
    )


def pairs(
    X: np.ndarray,
    y: np.ndarray,
    C: float,
    weights: np.ndarray,
    queries: np.ndarray,
    weighting: str = "pairs",
) -> Objective:
    """C·(mean over pairs y_i > y_j of a query of max(0, 1 − (s_i − s_j)))."""
    counts = np.outer(weights, weights).astype(LONG)
    comparable = (y[:, None] > y[None, :]) & (queries[:, None] == queries[None, :]) & (counts > 0)
    i, j = np.nonzero(comparable)
    share = counts[i, j]
    if weighting == "pairs":
        share = share / share.sum()
    else:
        of, totals = np.unique(queries[i]), {}
        for q in of:
            totals[q] = share[queries[i] == q].sum() * len(of)
        share = share / np.array([totals[q] for q in queries[i]])
    rows = np.asarray(X).astype(LONG)
    S = np.zeros((len(i), len(y)))
    S[np.arange(len(i)), i] = -1.0
    S[np.arange(len(i)), j] = 1.0
    return Objective(Rows(rows), d=np.ones(len(i)), cost=LONG(C) * share, S=S, unit=C)


def _kld(p: LONG, n: LONG, found: LONG) -> LONG:
    """KLD of the predicted from the true share of positives, smoothed by half a row."""
    true, said = (p + LONG(0.5)) / (p + n + 1), (found + LONG(0.5)) / (p + n + 1)
    return true * np.log(true / said) + (1 - true) * np.log((1 - true) / (1 - said))


def _matthews(a: LONG, b: LONG, p: LONG, n: LONG) -> LONG:
    if a + b == 0 or a + b == p + n:
        return LONG(0.5)
    root = np.sqrt((a + b) * p * n * (p + n - a - b))
    return (1 - (a * (n - b) - b * (p - a)) / root) / 2


def _q(a: LONG, b: LONG, p: LONG, n: LONG, beta: float) -> LONG:
    recall, right = a / p, 1 - abs(a + b - p) / max(p, n)
    if recall == 0 or right == 0:
        return LONG(1)
    square = LONG(beta) ** 2
    return 1 - (1 + square) / (square / right + 1 / recall)


def _fbeta(a: LONG, b: LONG, p: LONG, n: LONG, beta: float) -> LONG:
    square = LONG(beta) ** 2
    return 1 - (1 + square) * a / (square * p + a + b)


# Losses of a true and b false positives, of p positive and n negative rows.
TABLE_LOSSES: dict[str, Callable[..., LONG]] = {
    "f1": lambda a, b, p, n, beta: 1 - 2 * a / (p + a + b),
    "fbeta": _fbeta,
    "jaccard": lambda a, b, p, n, beta: 1 - a / (p + b),
    "balanced_error": lambda a, b, p, n, beta: (1 - a / p + b / n) / 2,
    "g_mean": lambda a, b, p, n, beta: 1 - np.sqrt(a * (n - b) / (p * n)),
    "matthews": lambda a, b, p, n, beta: _matthews(a, b, p, n),
    "absolute_error": lambda a, b, p, n, beta: abs(a + b - p) / (p + n),
    "relative_absolute_error": lambda a, b, p, n, beta: abs(a + b - p) / max(p, n),
    "nkld": lambda a, b, p, n, beta: np.tanh(_kld(p, n, a + b) / 2),
    "q_beta": _q,
}


def measure(
    X: np.ndarray,
    y: np.ndarray,
    C: float,
    name: str,
    k: int | None,
    bias: float | None,
    beta: float = 1.0,
) -> Objective:
    """C·R of losses of the table, precision or recall at k and the break-even point.

    Tables: Δ(a, b), R = max over all labellings of Δ + (1/2m) Σ (ȳ_i − y_i)s_i. The others, with
    a + b = k: R = max Δ + (e/m)(mean score of false positives − mean score of false negatives),
    where e = min(k, p) − a and Δ = 1 − a/k or 1 − a/p.
    """
    m, p = len(y), int(np.sum(y > 0))
    k = p if name == "prbep" else k
    S, d = [], []
    for labels in itertools.product((-1.0, 1.0), repeat=m):
        chosen = np.array(labels)
        a = int(np.sum((chosen > 0) & (y > 0)))
        b = int(np.sum((chosen > 0) & (y < 0)))
        if name in TABLE_LOSSES:
            S.append((chosen - y).astype(LONG) / (2 * m))
            d.append(TABLE_LOSSES[name](LONG(a), LONG(b), LONG(p), LONG(m - p), beta))
        elif a + b == k:
            row, e = np.zeros(m, dtype=LONG), min(k, p) - a
            if e > 0:
                row[(chosen > 0) & (y < 0)] = LONG(e) / m / b
                row[(chosen < 0) & (y > 0)] = -LONG(e) / m / (p - a)
            S.append(row)
            d.append(1 - LONG(a) / (p if name == "recall_at_k" else k))
    S = np.array(S)
    return Objective(
        Rows(X),
        d=np.array(d),
        cost=np.array([C]),
        S=S,
        B=None if bias is None else S.sum(axis=1)[:, None],
        scaling=np.inf if bias is None else bias,
        group=np.zeros(len(d), dtype=int),
        unit=C,
    )


def partial_area(X: np.ndarray, y: np.ndarray, C: float, k: int) -> Objective:
    """C·(mean over positives and the k highest negatives of max(0, 1 − (s_i − s_j))).

    A maximum over all sets of k negatives and, as a sum of hinges is, over all sets of pairs.
    """
    positives, negatives = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    total = LONG(len(positives) * k)
    S, d = [], []
    for highest in itertools.combinations(negatives, k):
        every = list(itertools.product(positives, highest))
        for counted in itertools.product((0, 1), repeat=len(every)):
            row = np.zeros(len(y), dtype=LONG)
            for (i, j), counts in zip(every, counted, strict=True):
                row[i] -= counts / total
                row[j] += counts / total
            S.append(row)
            d.append(sum(counted) / total)
    group = np.zeros(len(d), dtype=int)
    return Objective(Rows(X), np.array(d), np.array([C]), S=np.array(S), group=group, unit=C)


def rankings(
    X: np.ndarray, y: np.ndarray, C: float, queries: np.ndarray, name: str, k: int | None
) -> Objective:
    """C·(mean over queries of the worst of all rankings), for 1 − AP or 1 − NDCG@k.

    A ranking costs its loss less (2/pn) Σ (s_i − s_j) over the pairs that it swaps. Several
    grades are a mean of problems with two, weighted as NDCG weights them.
    """
    S, d, group, cost = [], [], [], []
    active = 0
    for query in np.unique(queries):
        rows = np.flatnonzero(queries == query)
        grades = (y[rows] > 0).astype(float) if name == "average_precision" else y[rows]
        levels = np.unique(grades)
        if len(levels) == 1:
            continue
        active += 1
        m = len(rows)
        worth = 1 / np.log2(np.arange(2, m + 2).astype(LONG))
        worth[m if k is None else k :] = 0
        gains = np.exp2(levels.astype(LONG)) - 1
        steps = np.array(
            [
                (gains[t] - gains[t - 1]) * np.sum(worth[: np.sum(grades >= levels[t])])
                for t in range(1, len(levels))
            ]
        )
        shares = steps / (np.sum(steps) + gains[0] * np.sum(worth))
        if name == "average_precision":
            shares = np.ones(1, dtype=LONG)
        orders = list(itertools.permutations(range(m)))
        for t in range(1, len(levels)):
            relevant = grades >= levels[t]
            p, n = int(relevant.sum()), int((~relevant).sum())
            for order in orders:
                hits = relevant[list(order)]
                if name == "average_precision":
                    found = np.cumsum(hits)[hits] / (1 + np.flatnonzero(hits)).astype(LONG)
                    lost = 1 - np.sum(found) / p
                else:
                    lost = 1 - np.sum(worth[hits]) / np.sum(worth[:p])
                row = np.zeros(len(y), dtype=LONG)
                for place, i in enumerate(order):
                    if relevant[i]:
                        for j in order[:place]:
                            if not relevant[j]:
                                row[rows[i]] -= LONG(2) / (p * n)
                                row[rows[j]] += LONG(2) / (p * n)
                S.append(row)
                d.append(lost)
                group.append(len(cost))
            cost.append(LONG(C) * shares[t - 1])
    cost = np.array(cost) / active
    space = Rows(X)
    space.terms *= np.log2(2.0 * len(y))  # the search compares sums again at every halving
    return Objective(space, np.array(d), cost, S=np.array(S), group=np.array(group), unit=C)


def structured(
    examples: list[tuple[np.ndarray, np.ndarray]],
    C: float,
    magnitudes: list[np.ndarray] | None = None,
) -> Objective:
    """C Σ_i max_z [Δ_i(z) + <w, δΨ_i(z)>]; an example is (all δΨ, all Δ).

    ``magnitudes`` are |Ψ(z)| + |Ψ(y)|, of which scores are differences.
    """
    sizes = [len(losses) for _, losses in examples]
    magnitude = None if magnitudes is None else np.vstack(magnitudes)
    return Objective(
        Rows(np.vstack([features for features, _ in examples]), magnitude),
        d=np.concatenate([losses for _, losses in examples]),
        cost=np.full(len(examples), LONG(C)),
        group=np.repeat(np.arange(len(examples)), sizes),
        unit=C * len(examples),
    )


# -- kernels --------------------------------------------------------------------------


def kernel_values(name: str, X: np.ndarray, gamma: float, coef0: float, degree: int) -> np.ndarray:
    rows = np.asarray(X).astype(LONG)
    if name == "precomputed":
        return rows
    if name == "rbf":
        square = ((rows[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2)
        return np.exp(-LONG(gamma) * square)
    products = rows @ rows.T
    if name == "linear":
        return products
    products = LONG(gamma) * products + LONG(coef0)
    return np.tanh(products) if name == "sigmoid" else products**degree


def kernel_work(name: str, X: np.ndarray, gamma: float, degree: int) -> float:
    """Roundings behind a value in double precision, those of an exponent as large as it is."""
    if name == "precomputed":
        return 0.0
    centred = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    reach = 4.0 * gamma * float(np.max(np.sum(centred**2, axis=1)))
    return X.shape[1] * {"rbf": 1.0 + reach, "poly": float(degree)}.get(name, 1.0)
