"""
Train for the measure that you report
=====================================

Only 5 % of the rows are positive. A plain SVM minimises errors, but F1, the ROC area and the
precision among the highest scores measure something else. ``MeasureSVC`` minimises a convex upper
bound on the loss of the measure. We train for four measures and evaluate every model by all of
them.
"""

# %%
# We train on the first 8,000 rows, choose C for each measure on the next 8,000, and test on the
# rest. For precision at k, k is half the number of positive rows.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import accuracy_score, f1_score, precision_recall_curve, roc_auc_score

from cutplane import MeasureSVC
from cutplane.metrics import precision_at_k

X, y = make_classification(
    30_000,
    40,
    n_informative=8,
    n_clusters_per_class=1,
    weights=[0.95],
    class_sep=0.6,
    random_state=0,
)
X_train, X_choose, X_test = np.split(X, [8000, 16_000])
y_train, y_choose, y_test = np.split(y, [8000, 16_000])

measures = {
    "error_rate": lambda y, s: accuracy_score(y, s > 0),
    "roc_auc": roc_auc_score,
    "f1": lambda y, s: f1_score(y, s > 0),
    "precision_at_k": lambda y, s: precision_at_k(y, s, int(y.sum()) // 2),
}

# %%
# The measures want different values of C, so each gets the best of four.

table = np.zeros((len(measures), len(measures)))
models = {}
for i, (name, own) in enumerate(measures.items()):
    fits = [MeasureSVC(name, C=C).fit(X_train, y_train) for C in (0.01, 0.1, 1.0, 10.0)]
    models[name] = max(fits, key=lambda fit: own(y_choose, fit.decision_function(X_choose)))
    scores = models[name].decision_function(X_test)
    table[i] = [measure(y_test, scores) for measure in measures.values()]
    print(
        f"{name:15s} C = {models[name].C:<5g} {models[name].n_iter_:4d} iterations, relative gap "
        f"{models[name].certificate_.relative_gap:.1e}"
    )

# %%
# A plain SVM can also get another threshold after training: the one with the best F1 on the rows
# that choose C. Here this is as good as training for F1, but it needs held-out rows. No threshold
# changes the ROC area or the precision at k. For these the weights must change.

plain = models["error_rate"]
precision, recall, thresholds = precision_recall_curve(y_choose, plain.decision_function(X_choose))
best = np.argmax(precision * recall / np.maximum(precision + recall, 1e-12))
moved = f1_score(y_test, plain.decision_function(X_test) >= thresholds[best])
print(f"F1 of the plain SVM {table[0, 2]:.3f}, with a threshold chosen for F1 {moved:.3f}")
print(f"F1 of the model trained for F1 {table[2, 2]:.3f}")

# %%
# A row of the table is a model, and a column is a measure on the test rows. Frames mark the best
# model of each column, and colours compare the models within a column. The best model for one
# measure may be the worst for another, as the model for the ROC area shows.

labels = ["accuracy", "ROC area", "F1", "precision at k"]
low, high = table.min(axis=0), table.max(axis=0)
fig, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
ax.imshow((table - low) / (high - low), cmap="Blues", vmax=1.6, aspect="auto")
for i, j in np.ndindex(table.shape):
    ax.text(j, i, f"{table[i, j]:.3f}", ha="center", va="center", color="black")
    if table[i, j] == high[j]:
        ax.add_patch(plt.Rectangle((j - 0.47, i - 0.47), 0.94, 0.94, fill=False, ec="C1", lw=2.5))
ax.set_xticks(range(len(labels)), labels)
ax.set_yticks(range(len(labels)), labels)
ax.set(xlabel="measured on the test rows", ylabel="trained for")
ax.set_title(
    f"Trained for F1: {table[2, 2] - table[0, 2]:+.2f} F1; "
    f"for the ROC area: {table[1, 1] - table[0, 1]:+.2f} area"
)
plt.show()
