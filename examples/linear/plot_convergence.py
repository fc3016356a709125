"""
A warning that does not say how bad it is
=========================================

scikit-learn's ``LinearSVC`` often warns that "Liblinear failed to converge". The warning is the
same whether the answer is nearly perfect or useless. A lower bound on the objective tells the
difference, for the answer of any solver.
"""

# %%
# Both libraries minimise ½\|w\|² + ½b² + C Σ hinge here: ``intercept_scaling=1`` gives cutplane
# the regularised intercept of liblinear. We run liblinear with more and more iterations, on scaled
# and on raw features of the breast cancer data, and note whether it warns.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import sklearn.svm
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from cutplane import LinearSVC

raw, y = load_breast_cancer(return_X_y=True)
problems = {"scaled features": StandardScaler().fit_transform(raw), "raw features": raw}
limits = [10, 30, 100, 300, 1000, 3000, 10_000, 30_000]


def objective(model, X):
    """½|w|² + ½b² + Σ hinge, which both solvers minimise."""
    margins = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
    squares = np.sum(model.coef_**2) + np.sum(model.intercept_**2)
    return 0.5 * squares + np.sum(np.maximum(0.0, 1.0 - margins))


# %%
# cutplane needs one fit for each problem. No model has an objective below ``certificate_.dual``, so
# an objective of 1.5 times this number is at most 50 % too high.

excess, warned, gaps = {}, {}, {}
for name, X in problems.items():
    certificate = LinearSVC(C=1.0, intercept_scaling=1.0).fit(X, y).certificate_
    gaps[name] = 100 * certificate.relative_gap
    print(f"{name}: {certificate}")
    excess[name], warned[name] = [], []
    for limit in limits:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            theirs = sklearn.svm.LinearSVC(loss="hinge", max_iter=limit, random_state=0)
            reached = objective(theirs.fit(X, y), X)
        excess[name].append(100 * (reached / certificate.dual - 1))
        warned[name].append(bool(caught))
        print(
            f"  liblinear, max_iter={limit:6d}: at most {excess[name][-1]:8.3g} % above the "
            f"optimum{', and it warns' if caught else ''}"
        )

# %%
# Every filled point below came with the same warning. A dashed line is the gap of cutplane's own
# model, with its default tolerance of 0.1 %. On scaled features liblinear reaches a smaller gap
# after enough iterations. On raw features its gap stays large.

default = limits.index(1000)
fig, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for color, name in zip(("C0", "C1"), problems, strict=True):
    ax.plot(limits, excess[name], color=color, label=f"liblinear, {name}")
    for limit, value, bad in zip(limits, excess[name], warned[name], strict=True):
        ax.plot(limit, value, "o", color=color, mfc=color if bad else "white", ms=7)
    ax.axhline(gaps[name], color=color, ls="--", label=f"cutplane, {name}")
ax.plot([], [], "o", color="grey", label='with "failed to converge"')
ax.set(
    xscale="log",
    yscale="log",
    xlabel="max_iter of liblinear",
    ylabel="objective above the optimum, at most (%)",
    title=(
        f"At 1,000 iterations the warning means {excess['scaled features'][default]:.1g} % "
        f"or {excess['raw features'][default]:.0f} %"
    ),
)
ax.legend(fontsize="small")
plt.show()
