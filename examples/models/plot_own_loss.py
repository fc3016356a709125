"""
A loss of your own
==================

A loss is a small class: its value, its slope, its conjugate and one step of the dual. cutplane adds
everything else: solvers, exact bias, weights, threads and the certificate. This example adds the
modified Huber loss, which is the squared hinge near the margin and linear beyond, so that far
outliers have a limited influence.
"""

# %%
# With z = y·score, the loss is max(0, 1 − z)² for z ≥ −1 and −4z below. Its slope u lies between
# −4 and 0, and there the conjugate max_z uz − loss(z) is u + u²/4. ``dual_step`` minimises
# conjugate(v) − zv + ½h(v − u)² over v. The module ``cutplane.losses`` explains what each function
# is for, and the contributor's guide how a loss becomes part of the library, with its tests.

from collections import namedtuple

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

from cutplane import LinearSVC
from cutplane.losses import LOSSES, Loss


class ModifiedHuber(Loss, namedtuple("ModifiedHuber", ())):
    """max(0, 1 − z)² for z ≥ −1, −4z below."""

    domain = (-4.0, 0.0)

    def value(self, z):
        return max(0.0, 1.0 - z) ** 2 if z > -1.0 else -4.0 * z

    def slope(self, z):
        return -2.0 * min(max(0.0, 1.0 - z), 2.0)

    def conjugate(self, u):
        return u + 0.25 * u * u

    def dual_step(self, u, z, h):
        return min(max((h * u + z - 1.0) / (h + 0.5), -4.0), 0.0)


LOSSES["modified_huber"] = ModifiedHuber

# %%
# Two clouds of rows, and a few rows of class 1 that lie far away on the wrong side. The functions
# above are compiled with the solver, which takes some seconds.

rng = np.random.default_rng(0)


def clouds(rows):
    """Two classes that overlap a little."""
    y = rng.integers(0, 2, rows)
    return rng.normal(size=(rows, 2)) + np.where(y == 1, 1.5, -1.5)[:, None] * [1.0, 0.3], y


X, y = clouds(300)
outliers = (rng.random(300) < 0.04) & (y == 1)
X[outliers] += [-15.0, 0.0]
X_test, y_test = clouds(20_000)

models, scores = {}, {}
for loss in ("squared_hinge", "modified_huber", "hinge"):
    models[loss] = LinearSVC(C=1.0, loss=loss).fit(X, y)
    scores[loss] = 100 * models[loss].score(X_test, y_test)
    print(f"{loss:14s} {models[loss].certificate_}; {scores[loss]:.1f} % of new rows are right")

# %%
# The new loss is better than the squared hinge. The plain hinge, whose slope is at most 1, is even
# better: outliers have still less influence. Is the certificate right? A general-purpose minimiser,
# which uses only the formula, cannot get below the lower bound.


def objective(v):
    """½|w|² + Σ loss, with numpy."""
    z = np.where(y == 1, 1.0, -1.0) * (X @ v[:2] + v[2])
    return 0.5 * v[:2] @ v[:2] + np.sum(np.where(z > -1, np.maximum(0, 1 - z) ** 2, -4 * z))


found = minimize(objective, np.zeros(3), method="BFGS").fun
certificate = models["modified_huber"].certificate_
print(f"scipy finds {found:.6f}; the certificate says {certificate.dual:.6f} or more")
assert certificate.dual <= found * (1 + 1e-9)

# %%
# The left picture shows the losses, and the right one the boundaries of the three models.

z = np.linspace(-4, 2, 200)
fig, (left, right) = plt.subplots(
    1, 2, figsize=(6.4, 3.8), width_ratios=[2, 3], layout="constrained"
)
left.plot(z, np.maximum(0, 1 - z) ** 2, color="C1", label="squared hinge")
left.plot(z, [ModifiedHuber().value(t) for t in z], color="C0", ls="--", label="modified Huber")
left.plot(z, np.maximum(0, 1 - z), color="grey", ls=":", label="hinge")
left.set(xlabel="z = y · score", ylabel="loss", ylim=(0, 25))
left.legend(fontsize="small")
right.scatter(*X[y == 1].T, s=7, color="tab:green", label="class 1")
right.scatter(*X[y == 0].T, s=7, color="tab:purple", label="class 0")
heights = np.array([-8.0, 8.0])
for (loss, model), color, style in zip(
    models.items(), ("C1", "C0", "grey"), ("-", "--", ":"), strict=True
):
    (a, b), c = model.coef_[0], model.intercept_[0]
    name = f"{loss}: {scores[loss]:.1f} %"
    right.plot(-(b * heights + c) / a, heights, style, color=color, lw=2.5, label=name)
right.set(xlim=(-19, 6), ylim=(-5, 8), xlabel="first feature", ylabel="second feature")
right.legend(fontsize="x-small", loc="upper left")
gain = scores["modified_huber"] - scores["squared_hinge"]
fig.suptitle(f"Outliers pull less than with the squared hinge: {gain:+.1f} points")
plt.show()
