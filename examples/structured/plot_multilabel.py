"""
Several labels per row
======================

A text may have several topics. ``LinearSVC`` takes an indicator matrix and solves one problem per
label. ``StructuredSVM(MultilabelProblem())`` solves one joint problem in which pairs of labels have
weights, too. This helps if labels depend on one another.
"""

# %%
# The labels are rain, sprinkler and wet grass. Rain or the sprinkler makes the grass wet, with one
# exception in twenty. Each label has a noisy sensor.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import f1_score

from cutplane import LinearSVC, StructuredSVM
from cutplane.structured import MultilabelProblem

NAMES = ["rain", "sprinkler", "wet grass", "slippery"]
rng = np.random.default_rng(0)


def draw(rows):
    """Sensors, and which of the four labels are true."""
    causes = rng.random((rows, 2)) < [0.5, 0.3]
    wet = causes.any(axis=1) ^ (rng.random(rows) < 0.05)
    slippery = wet & (rng.random(rows) < 0.8)
    labels = np.column_stack([causes, wet, slippery]).astype(int)
    return labels + rng.normal(size=labels.shape), labels


X_train, Y_train = draw(400)
X_test, Y_test = draw(5000)

# %%
# The joint problem has no intercept, so it gets a constant column.

single = LinearSVC(C=1.0).fit(X_train, Y_train)
for name, certificate in zip(NAMES, single.certificates_, strict=True):
    print(f"{name:10s} {certificate}")


def with_constant(X):
    """One more column, of ones."""
    return np.column_stack([X, np.ones(len(X))])


joint = StructuredSVM(MultilabelProblem(), C=5.0).fit(with_constant(X_train), Y_train)
print(f"joint      {joint.certificate_}")
predicted = {
    "one problem per label": np.asarray(single.predict(X_test)),
    "joint, with pairs": np.asarray(joint.predict(with_constant(X_test))),
}

# %%
# This is F1 of every label on new rows, and the share of rows with exactly the right labels:

exact, f1 = {}, {}
for name, Y in predicted.items():
    exact[name] = 100 * np.mean(np.all(Y_test == Y, axis=1))
    f1[name] = f1_score(Y_test, Y, average=None)
    print(f"{name:22s} all labels right {exact[name]:.1f} %, F1 {np.round(f1[name], 3)}")

places = np.arange(len(NAMES))
fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for shift, (name, values) in zip((-0.2, 0.2), f1.items(), strict=True):
    bars = ax.bar(places + shift, values, 0.4, label=f"{name}: {exact[name]:.0f} % all right")
    ax.bar_label(bars, fmt="%.2f", fontsize="small")
ax.set_xticks(places, NAMES)
change = exact["joint, with pairs"] - exact["one problem per label"]
ax.set(
    ylim=(0, 1.2),
    ylabel="F1 on new rows",
    title=f"Pairs of labels: {change:+.0f} points of rows that are completely right",
)
ax.legend(loc="upper left", fontsize="small")
plt.show()
