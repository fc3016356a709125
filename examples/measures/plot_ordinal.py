"""
Classes with an order
=====================

Grades such as "none, mild, moderate, severe" are more than names: it is worse to mistake severe for
none than for moderate. ``OrdinalSVC`` learns one score and the thresholds between the classes. An
ordinary classifier ignores the order.
"""

# %%
# The target says in which quarter of the patients the progression of the diabetes is. Half of
# the rows are for testing.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.metrics import accuracy_score, mean_absolute_error
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler

from cutplane import LinearSVC, OrdinalSVC

X, progression = load_diabetes(return_X_y=True)
X = StandardScaler().fit_transform(X)
y = np.searchsorted(np.quantile(progression, [0.25, 0.5, 0.75]), progression)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)

# %%
# Both models choose C by the mean absolute error in five folds.

models = {}
for name, model in {"ordinal": OrdinalSVC(), "unordered": LinearSVC()}.items():
    search = GridSearchCV(
        model, {"C": np.logspace(-3, 1, 9)}, scoring="neg_mean_absolute_error", cv=5
    )
    models[name] = search.fit(X_train, y_train).best_estimator_
errors = {}
for name, model in models.items():
    predicted = model.predict(X_test)
    errors[name] = mean_absolute_error(y_test, predicted)
    far = np.mean(np.abs(y_test - predicted) >= 2)
    print(
        f"{name:9s} C = {model.C:<6.3g} mean absolute error {errors[name]:.3f}, off by two or "
        f"more {100 * far:.1f} %, right {100 * accuracy_score(y_test, predicted):.1f} %"
    )
print(f"thresholds between the quarters: {np.round(models['ordinal'].thresholds_, 2)}")
print(models["ordinal"].certificate_)

# %%
# The ordinal model has the smaller mean absolute error and fewer gross errors. The other model is
# exactly right more often, but its errors are larger. The picture shows the scores of the test
# rows, class by class, and the thresholds between the classes.

ordinal = models["ordinal"]
scores = ordinal.score_samples(X_test)
fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
rng = np.random.default_rng(0)
for k in range(4):
    inside = y_test == k
    jitter = k + rng.uniform(-0.3, 0.3, np.sum(inside))
    right = ordinal.predict(X_test)[inside] == k
    ax.scatter(scores[inside][right], jitter[right], s=18, color=f"C{k}")
    ax.scatter(scores[inside][~right], jitter[~right], s=18, fc="none", ec=f"C{k}")
for threshold in ordinal.thresholds_:
    ax.axvline(threshold, color="grey", ls="--")
ax.set_yticks(range(4), ["1st", "2nd", "3rd", "4th"])
change = 100 * (errors["ordinal"] / errors["unordered"] - 1)
ax.set(
    xlabel="score (dashed: thresholds; filled: predicted right)",
    ylabel="quarter of the progression",
    title=f"The order changes the mean absolute error by {change:+.0f} %",
)
plt.show()
