"""
Weights whose signs are known
=============================

Sometimes you know the sign of a weight before the fit: a larger tumour must not count as "benign".
``bounds`` and ``positive`` enforce such signs. The certificate shows how much they cost on the
training rows, and held-out rows show how much accuracy they cost.
"""

# %%
# In the breast cancer data ``y`` is 1 for benign tumours. No weight may be positive, so that no
# feature counts as "benign" when it grows. Only the three features about symmetry stay free.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from cutplane import LinearSVC

data = load_breast_cancer()
X_train, X_test, y_train, y_test = train_test_split(data.data, data.target, random_state=0)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

high = np.where(["symmetry" in name for name in data.feature_names], np.inf, 0.0)
free = LinearSVC(C=1.0).fit(X_train, y_train)
monotone = LinearSVC(C=1.0, bounds=(-np.inf, high)).fit(X_train, y_train)

# %%
# The lower bound of the model with signs is above the objective of the free model. So the signs
# cost at least this difference, whatever the solver. On these data they also cost accuracy: use
# them for what they guarantee, not in the hope of a better score.

for name, model in {"free": free, "signs": monotone}.items():
    print(f"{name:5s}  {model.certificate_}; held out {100 * model.score(X_test, y_test):.1f} %")
cost = monotone.certificate_.dual - free.certificate_.primal
print(f"the signs cost at least {cost:.2f} of the objective")
print(f"weights with the wrong sign without bounds: {np.sum(free.coef_[0] > high)}")
print(f"weights below 0.001 with bounds: {np.sum(np.abs(monotone.coef_[0]) < 1e-3)}")

# %%
# ``positive=True`` means "no negative weight". Here the labels are exchanged, so that larger
# features can only count as "malignant".

turned = LinearSVC(C=1.0, positive=True).fit(X_train, 1 - y_train)
print(f"positive=True: smallest weight {turned.coef_.min():.3g}, {turned.certificate_}")

# %%
# The bars show the weights of both models.

scores = [100 * model.score(X_test, y_test) for model in (free, monotone)]
places = np.arange(len(data.feature_names))
fig, ax = plt.subplots(figsize=(6.4, 6.8), layout="constrained")
ax.barh(places - 0.2, free.coef_[0], 0.4, label=f"free, held out {scores[0]:.1f} %")
ax.barh(places + 0.2, monotone.coef_[0], 0.4, label=f"with signs, held out {scores[1]:.1f} %")
ax.axvline(0.0, color="black", lw=0.8)
ax.set_yticks(places, data.feature_names, fontsize="small")
ax.invert_yaxis()
ax.margins(y=0.01)
ax.set(
    xlabel='weight (positive counts for "benign")',
    title=f"Without bounds {np.sum(free.coef_[0] > high)} of 27 weights have the wrong sign",
)
ax.legend(loc="upper right", fontsize="small")
plt.show()
