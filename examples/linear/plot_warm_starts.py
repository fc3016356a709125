"""
Warm starts: what one fit teaches the next
==========================================

A cutting plane is a lower bound on the loss, whatever C is. So a fit can use the cuts of a fit with
another C, and its certificate is just as strong. In the same way you can continue a fit that
stopped early, and use the answer of another solver as the first cut.
"""

# %%
# We fit one model to eleven values of C by cutting planes (``solver="ocas"``): once from nothing
# at every C, and once with ``warm_start=True``, from small to large C.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import sklearn.svm
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from cutplane import LinearSVC

digits = load_digits()
X, y = digits.data / 16, digits.target % 2 == 1
Cs = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]

warm = LinearSVC(solver="ocas", warm_start=True)
cold_iterations, warm_iterations = [], []
print("       C   from nothing   warm   relative gap, warm")
for C in Cs:
    cold_iterations.append(LinearSVC(C=C, solver="ocas").fit(X, y).n_iter_)
    warm_iterations.append(warm.set_params(C=C).fit(X, y).n_iter_)
    print(
        f"{C:8.3g}   {cold_iterations[-1]:12d}   {warm_iterations[-1]:4d}"
        f"   {warm.certificate_.relative_gap:.1e}"
    )
print(f"     all   {sum(cold_iterations):12d}   {sum(warm_iterations):4d}")

# %%
# You can continue a fit that ended early. The first call stops after ten iterations, and the
# second one continues from its cuts.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    early = LinearSVC(solver="ocas", warm_start=True, max_iter=10).fit(X, y)
print(f"stopped:   {early.certificate_}")
early.set_params(max_iter=None).fit(X, y)
print(f"continued: {early.certificate_} after {early.n_iter_} more iterations")

# %%
# Dual variables of another solver become the first cut. Here scikit-learn's ``SVC`` has solved the
# problem, and cutplane certifies the answer.

svc = sklearn.svm.SVC(kernel="linear", C=1.0, tol=1e-5).fit(X, y)
alpha = np.zeros(len(y))
alpha[svc.support_] = np.abs(svc.dual_coef_[0])
seeded = LinearSVC(C=1.0, solver="ocas").fit(X, y, dual_init=alpha)
print(f"from scikit-learn's dual point: {seeded.certificate_}, {seeded.n_iter_} iterations")

# %%
# The picture shows the iterations at every C.

saved = 100 * (1 - sum(warm_iterations) / sum(cold_iterations))
places = np.arange(len(Cs))
fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.bar(places - 0.2, cold_iterations, 0.4, label="from nothing")
ax.bar(places + 0.2, warm_iterations, 0.4, label="from the cuts of the C before")
ax.set_xticks(places, [f"{C:g}" for C in Cs])
ax.set(xlabel="C", ylabel="iterations", title=f"Warm starts save {saved:.0f} % of all iterations")
ax.legend()
plt.show()
