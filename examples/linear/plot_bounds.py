"""
Weights whose signs are known
=============================

Sometimes the sign of a weight is known before the fit: a larger tumour must not count for
"benign". ``bounds`` and ``positive`` enforce that, and the certificate tells what it costs on the
training rows. The held-out rows tell what it costs there.
"""

# %%
# In the breast cancer data ``y`` is 1 for benign tumours. We demand that no feature counts for
# "benign" when it grows, except for the three features about symmetry.

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
# The lower bound of the model with signs is above the objective of the free model: the difference
# is what the signs cost at least, and no better solver can remove it. On these data the signs cost
# accuracy, too: choose them for what they guarantee, not in the hope of a better score.

for name, model in {"free": free, "signs": monotone}.items():
    print(f"{name:5s}  {model.certificate_}; held out {100 * model.score(X_test, y_test):.1f} %")
cost = monotone.certificate_.dual - free.certificate_.primal
print(f"the signs cost at least {cost:.2f} of the objective")
print(f"weights with the wrong sign without bounds: {np.sum(free.coef_[0] > high)}")
print(f"weights below 0.001 with bounds: {np.sum(np.abs(monotone.coef_[0]) < 1e-3)}")

# %%
# ``positive=True`` is the short form for "no negative weight". Here it is used with the labels
# turned round, so that larger features may only count for "malignant".

turned = LinearSVC(C=1.0, positive=True).fit(X_train, 1 - y_train)
print(f"positive=True: smallest weight {turned.coef_.min():.3g}, {turned.certificate_}")

# %%
# The bars are the weights of both models.

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
