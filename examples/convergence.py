"""The same warning for a good answer and a bad one, and a certificate that tells them apart.

scikit-learn's LinearSVC is run on the breast cancer data twice: with scaled features and with
raw ones. It says "failed to converge" both times. cutplane solves the same problems
(``intercept_scaling=1`` is scikit-learn's intercept), and its lower bound judges both answers.
"""

from __future__ import annotations

import warnings

import numpy as np
import sklearn.svm
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from cutplane import LinearSVC

C = 1.0


def objective(model, X: np.ndarray, y: np.ndarray) -> float:
    """½|w|² + ½b² + C·Σ hinge, which both minimise here."""
    margins = np.where(y == model.classes_[1], 1.0, -1.0) * model.decision_function(X)
    squares = np.sum(model.coef_**2) + np.sum(model.intercept_**2)
    return float(0.5 * squares + C * np.sum(np.maximum(0.0, 1.0 - margins)))


raw, y = load_breast_cancer(return_X_y=True)
scaled = StandardScaler().fit_transform(raw)

for name, X in {"scaled features": scaled, "raw features": raw}.items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        theirs = sklearn.svm.LinearSVC(C=C, loss="hinge", random_state=0).fit(X, y)
    ours = LinearSVC(C=C, intercept_scaling=1.0).fit(X, y)
    bound = ours.certificate_.dual
    reached = objective(theirs, X, y)
    print(f"{name}")
    print(f"  scikit-learn: objective {reached:.4f}")
    for warning in caught:
        print(f'                warning "{warning.message}"')
    print(f"                at most {100 * (reached / bound - 1):.3g} % above the optimum")
    print(f"  cutplane:     {ours.certificate_}")
    print(f"                {ours.results_[0].status.reason} after {ours.n_iter_} iterations")
