"""
Only the left end of the ROC curve counts
=========================================

If you can look at a few alarms only, the false positive rate must be small. The area under the
whole ROC curve also counts rates that you will never use. ``MeasureSVC("partial_roc_auc",
max_fpr=...)`` trains for small rates only.
"""

# %%
# We make data that show the difference. Most negative rows differ from the positive rows in the
# first feature. One in fifty looks like a positive row in this feature, and differs a little in the
# second. These rows are the false alarms. Eight more features are noise.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

from cutplane import LinearSVC, MeasureSVC

MAX_FPR = 0.01


def draw(rows, rng):
    """Half of the rows are positive."""
    y = rng.integers(0, 2, rows)
    hard = (y == 0) & (rng.random(rows) < 0.02)
    X = rng.normal(size=(rows, 10))
    X[:, 0] += np.where((y == 1) | hard, 3.0, -3.0)
    X[:, 1] += np.where(hard, -1.0, 1.0)
    return X, y


rng = np.random.default_rng(0)
X_train, y_train = draw(4000, rng)
X_choose, y_choose = draw(10_000, rng)
X_test, y_test = draw(50_000, rng)

# %%
# We fit three models: the plain SVM, one for the whole area and one for rates up to 1 %. For each
# of them we choose C by the partial area on separate rows. ``roc_auc_score(..., max_fpr=...)``
# computes this area, scaled so that guessing has 0.5 and a perfect model has 1.

candidates = {
    "plain SVM": lambda C: LinearSVC(C=C),
    "whole area": lambda C: MeasureSVC("roc_auc", C=C),
    "area up to 1 %": lambda C: MeasureSVC("partial_roc_auc", max_fpr=MAX_FPR, C=C),
}


def partial_area(model, X, y):
    """Area up to MAX_FPR, in scikit-learn's scale."""
    return roc_auc_score(y, model.decision_function(X), max_fpr=MAX_FPR)


models = {}
print("                     C   whole area   partial area   relative gap")
for name, make in candidates.items():
    fits = [make(C).fit(X_train, y_train) for C in (0.00003, 0.0003, 0.003, 0.03, 0.3, 3.0)]
    models[name] = max(fits, key=lambda fit: partial_area(fit, X_choose, y_choose))
    whole = roc_auc_score(y_test, models[name].decision_function(X_test))
    print(
        f"{name:16s} {models[name].C:6g}   {whole:10.3f}"
        f"   {partial_area(models[name], X_test, y_test):12.3f}"
        f"   {models[name].certificate_.relative_gap:12.1e}"
    )

# %%
# The horizontal axis is logarithmic, so that you can see small rates. The model for small rates is
# better on the left and worse on the right. A word of caution: if most positive rows score below
# the highest negative rows, the convex bound on the partial area is useless, and its optimum is w
# = 0. So look at held-out rows.

curves = {
    name: roc_curve(y_test, model.decision_function(X_test))[:2] for name, model in models.items()
}
fig, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for name, (false, true) in curves.items():
    area = partial_area(models[name], X_test, y_test)
    ax.plot(100 * false, 100 * true, label=f"{name}: {area:.3f}")
ax.axvspan(0.01, 100 * MAX_FPR, color="grey", alpha=0.2)
ax.set(xscale="log", xlim=(0.01, 100), ylim=(0, 102))
ax.set(xlabel="false positive rate (%), grey: up to 1 %", ylabel="positive rows found (%)")
ax.legend(title="trained for: partial area", loc="lower right")
found = {name: 100 * np.interp(0.005, *curve) for name, curve in curves.items()}
gain = found["area up to 1 %"] - found["whole area"]
ax.set_title(f"At 0.5 % false alarms: {gain:+.0f} points of recall over the whole-area model")
plt.show()
