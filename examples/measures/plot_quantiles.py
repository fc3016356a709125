"""
Quantile bands that do not cross
================================

A range often says more than a single number. ``LinearSVR(loss="quantile")`` fits several quantiles
to one copy of the data, each with a certificate. ``crossing="sort"`` keeps the quantiles in order,
even where there are few rows.
"""

# %%
# The noise grows with x. Splines of x make the linear model follow curves.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from cutplane import LinearSVR

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


def draw(rows, rng):
    """Noise of a width that grows with x, and longer upwards than downwards."""
    x = np.sort(rng.uniform(0.0, 10.0, rows))
    y = np.sin(x) + 0.5 * x + (0.1 + 0.15 * x) * (rng.gamma(2.0, 1.0, rows) - 2.0)
    return x[:, None], y


rng = np.random.default_rng(0)
X, y = draw(1500, rng)
X_test, y_test = draw(20_000, rng)
splines = SplineTransformer(n_knots=8, extrapolation="linear")
model = make_pipeline(
    splines, LinearSVR(C=10.0, loss="quantile", quantile=LEVELS, crossing="sort")
).fit(X, y)

# %%
# At most a share τ of the training rows lies below the τ-quantile, because the bias is exact. On
# new rows the share is close to τ, but not equal to it.

train, test = model.predict(X), model.predict(X_test)
print("level   below on training rows   below on new rows   relative gap")
for k, level in enumerate(LEVELS):
    print(
        f"{level:5.2f}   {100 * np.mean(y < train[:, k]):20.1f} %"
        f"   {100 * np.mean(y_test < test[:, k]):15.1f} %"
        f"   {model[-1].certificates_[k].relative_gap:12.1e}"
    )

# %%
# Each quantile is a separate fit. Without sorting they may cross, in this example beyond the range
# of the data:

beyond = np.linspace(-1.5, 12.0, 600)[:, None]
sorted_bands = model.predict(beyond)
raw = splines.transform(beyond) @ model[-1].coef_.T + model[-1].intercept_
crossed = np.any(np.diff(raw, axis=1) < 0, axis=1)
print(f"before sorting, bands cross at {crossed.sum()} of {len(beyond)} places")
print(f"after sorting at {np.any(np.diff(sorted_bands, axis=1) < 0, axis=1).sum()}")

inside = np.mean((y_test >= test[:, 0]) & (y_test <= test[:, -1]))
fig, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
ax.scatter(X[:, 0], y, s=4, color="grey", alpha=0.5)
line = beyond[:, 0]
ax.fill_between(line, sorted_bands[:, 0], sorted_bands[:, 4], color="C0", alpha=0.25, label="90 %")
ax.fill_between(line, sorted_bands[:, 1], sorted_bands[:, 3], color="C0", alpha=0.45, label="50 %")
ax.plot(line, sorted_bands[:, 2], color="C0", label="median")
ax.axvspan(-1.5, 0.0, color="grey", alpha=0.15)
ax.axvspan(10.0, 12.0, color="grey", alpha=0.15, label="no training rows")
ax.set(
    xlim=(-1.5, 12.0),
    xlabel="x",
    ylabel="y",
    title=f"{100 * inside:.1f} % of the new rows lie in the band of 90 %",
)
ax.legend(loc="upper left", fontsize="small")
plt.show()
