"""
A false alarm rate that must hold
=================================

"At most 5 % false alarms" is a demand on new rows. A threshold with 5 % false alarms on the
training rows usually has more on new rows. ``MeasureSVC("recall_at_fpr")`` sets the threshold so
that it meets the demand with a given confidence (Neyman-Pearson classification).
"""

# %%
# We draw 60 training sets from one distribution and measure the false alarm rate of each model on
# 100,000 new negative rows.

import matplotlib.pyplot as plt
import numpy as np

from cutplane import MeasureSVC

MAX_FPR, CONFIDENCE = 0.05, 0.9
rng = np.random.default_rng(0)
shift = 3.0 * np.ones(8) / np.sqrt(8)


def draw(rows, positive):
    """Rows of one class; the positive ones are shifted by a fixed vector."""
    return rng.normal(size=(rows, 8)) + (shift if positive else 0.0)


new_negative, new_positive = draw(100_000, False), draw(20_000, True)
y = np.repeat([0, 1], (1000, 300))
safe, naive = [], []
for seed in range(60):
    X = np.concatenate([draw(1000, False), draw(300, True)])
    model = MeasureSVC(
        "recall_at_fpr", max_fpr=MAX_FPR, confidence=CONFIDENCE, random_state=seed
    ).fit(X, y)
    safe.append((model.predict(new_negative).mean(), model.predict(new_positive).mean()))

    # The usual way: the threshold that has 5 % on the training rows themselves.
    usual = MeasureSVC("partial_roc_auc", max_fpr=MAX_FPR).fit(X, y)
    threshold = np.quantile(usual.decision_function(X[y == 0]), 1 - MAX_FPR)
    new = (new_negative, new_positive)
    naive.append([np.mean(usual.decision_function(rows) > threshold) for rows in new])
safe, naive = 100 * np.array(safe), 100 * np.array(naive)

# %%
# The guarantee costs recall: half of the negative rows are needed for the threshold and cannot
# train, and the threshold needs a margin.

for name, rates in {"training threshold": naive, "recall_at_fpr": safe}.items():
    print(
        f"{name:18s}  above {100 * MAX_FPR:g} % in {np.sum(rates[:, 0] > 100 * MAX_FPR):2d} of "
        f"{len(rates)} sets; mean false alarms {rates[:, 0].mean():.2f} %, "
        f"mean recall {rates[:, 1].mean():.1f} %"
    )

# %%
# The picture shows the false alarm rates of all models.

broken = [np.mean(rates[:, 0] > 100 * MAX_FPR) for rates in (naive, safe)]
bins = np.linspace(0.5, 1.02 * max(naive[:, 0].max(), safe[:, 0].max()), 26)
fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.hist(naive[:, 0], bins, alpha=0.7, label="5 % of the training rows", color="C1")
ax.hist(safe[:, 0], bins, alpha=0.7, label="recall_at_fpr, confidence 90 %", color="C0")
ax.axvline(100 * MAX_FPR, color="black", ls="--", label="the limit")
ax.set(
    xlabel="false alarms among new negative rows (%)",
    ylabel="training sets",
    title=(
        f"The limit is broken in {100 * broken[0]:.0f} % of the sets, "
        f"or in {100 * broken[1]:.0f} % with the guarantee"
    ),
)
ax.legend(fontsize="small")
plt.show()
