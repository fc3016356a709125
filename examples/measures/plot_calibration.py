"""
Probabilities from scores
=========================

The score of an SVM says on which side of the boundary a row lies, not how probable its class is.
``calibrate`` learns probabilities from the scores of held-out rows. ``LinearSVCCV`` has these
scores anyway, and ``SVC`` makes one more fit per fold to get them.
"""

# %%
# A linear problem with 20 % wrong labels, and a curved one for the kernel machine:

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.datasets import make_classification, make_moons
from sklearn.metrics import brier_score_loss

from cutplane import SVC, LinearSVCCV

A, b = make_classification(12_000, 20, n_informative=4, flip_y=0.2, weights=[0.8], random_state=0)
M, c = make_moons(6000, noise=0.35, random_state=0)
problems = {
    "LinearSVCCV": (A[:2000], b[:2000], A[2000:], b[2000:]),
    "SVC, RBF kernel": (M[:1200], c[:1200], M[1200:], c[1200:]),
}


def make(name, calibrate):
    """A linear search over C, or a kernel machine."""
    if name == "LinearSVCCV":
        return LinearSVCCV([0.01, 0.1, 1.0], loss="squared_hinge", calibrate=calibrate)
    return SVC(C=10.0, gamma=2.0, calibrate=calibrate)


# %%
# The Brier score is the mean squared error of a probability. "squeezed" treats a score s as log
# odds: 1/(1 + exp(−s)).

curves, brier = {}, {}
for name, (X, y, X_test, y_test) in problems.items():
    for calibrate in ("sigmoid", "isotonic"):
        model = make(name, calibrate).fit(X, y)
        curves[name, calibrate] = model.predict_proba(X_test)[:, 1]
    curves[name, "squeezed"] = 1.0 / (1.0 + np.exp(-model.decision_function(X_test)))
    print(name)
    for kind in ("squeezed", "sigmoid", "isotonic"):
        brier[name, kind] = brier_score_loss(y_test, curves[name, kind])
        print(f"  {kind:9s} Brier score {brier[name, kind]:.4f}")

# %%
# On the diagonal, 30 of 100 rows with probability 0.3 are positive. The sigmoid has only two
# parameters and cannot follow every curve: on the linear problem about a fifth of the rows are
# positive however low the score is. Isotonic regression finds this. ``plot_calibration`` draws
# such a curve for one model. This picture also shows the squeezed scores.

fig, axes = plt.subplots(1, 2, figsize=(6.4, 3.9), sharey=True, layout="constrained")
for ax, (name, (_, _, _, y_test)) in zip(axes, problems.items(), strict=True):
    ax.plot([0, 1], [0, 1], color="grey", ls=":")
    for kind, color in {"squeezed": "C1", "sigmoid": "C0", "isotonic": "C2"}.items():
        observed, predicted = calibration_curve(
            y_test, curves[name, kind], n_bins=12, strategy="quantile"
        )
        label = f"{kind}: {brier[name, kind]:.3f}"
        ax.plot(predicted, observed, "o-", ms=4, color=color, label=label)
    ax.legend(title="Brier score", fontsize="small")
    ax.set(title=name, xlabel="predicted probability", aspect="equal")
axes[0].set_ylabel("observed share of positives")
lower = [100 * (1 - brier[name, "isotonic"] / brier[name, "squeezed"]) for name in problems]
fig.suptitle(
    f"Isotonic calibration lowers the Brier score by {lower[0]:.0f} % and {lower[1]:.0f} %"
)
plt.show()
