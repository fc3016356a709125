"""What the tests of LinearSVC compare with: formulas in numpy, and other solvers' answers.

The objective is always the user's own, ½|w|² + C·Σ weight·loss, recomputed by
hand from ``coef_`` and ``intercept_``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.optimize
import scipy.special
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as Liblinear

import cutplane
from cutplane import LinearSVC, Status

LOSSES = {
    "hinge": lambda margins: np.maximum(0.0, 1.0 - margins),
    "squared_hinge": lambda margins: np.maximum(0.0, 1.0 - margins) ** 2,
    "logistic": lambda margins: np.logaddexp(0.0, -margins),
}

# Sums of many floating point numbers, in another order than the package's own.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Bounds:
    """Where another solver says that the optimal objective lies."""

    lower: float
    upper: float


# -- objectives by hand ---------------------------------------------------------------


def binary_objective(w, bias, X, signs, C, loss="hinge", weights=None, scaling=None) -> float:
    """½|w|² + C·Σ weight·loss, plus ½(bias/scaling)² where the bias is regularised."""
    losses = LOSSES[loss](signs * (X @ w + bias))
    weights = np.ones(len(signs)) if weights is None else np.asarray(weights, dtype=float)
    extra = 0.0 if scaling is None else 0.5 * (bias / scaling) ** 2
    return 0.5 * float(w @ w) + extra + C * float(weights @ losses)


def joint_objective(coef, intercept, X, labels, C, weights=None, scaling=None) -> float:
    """The objective with Crammer and Singer's loss. Labels are class numbers."""
    scores = X @ coef.T + intercept
    rows = np.arange(len(labels))
    wrong = np.ones_like(scores)
    wrong[rows, labels] = 0.0
    losses = (scores + wrong).max(axis=1) - scores[rows, labels]
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=float)
    extra = 0.0 if scaling is None else 0.5 * float(np.sum((intercept / scaling) ** 2))
    return 0.5 * float(np.sum(coef * coef)) + extra + C * float(weights @ losses)


def objectives(model: LinearSVC, X, y, weights=None) -> list[float]:
    """The objective of every problem that a fitted model has solved, by hand."""
    scaling = model.intercept_scaling if model.fit_intercept else None
    classes = list(model.classes_)
    if model.multi_class == "crammer_singer" and len(classes) > 2:
        labels = np.searchsorted(model.classes_, y)
        value = joint_objective(model.coef_, model.intercept_, X, labels, model.C, weights, scaling)
        return [value]
    return [
        binary_objective(w, bias, X, signs_of(y, positive), model.C, model.loss, weights, scaling)
        for w, bias, positive in zip(
            model.coef_, model.intercept_, classes if len(classes) > 2 else classes[1:], strict=True
        )
    ]


def signs_of(y, positive) -> np.ndarray:
    """+1 for one class, −1 for the others."""
    return np.where(np.asarray(y) == positive, 1.0, -1.0)


def certificates(model: LinearSVC) -> list:
    """One per problem, also where there is only one."""
    return model.certificates_


def results(model: LinearSVC) -> list:
    return model.results_


def assert_certified(model, X, y, weights=None, references=None, rounding=ROUNDING) -> None:
    """The certificate tells the truth about the stored model.

    Its primal is the objective of ``coef_`` and ``intercept_``; its dual lies
    below every known objective; its gap is theirs, and within the tolerance
    if the fit is said to have converged.

    Parameters
    ----------
    references : list of float, optional
        Per problem the objective of any other point: none can be below the dual.
    """
    by_hand = objectives(model, X, y, weights)
    proofs = certificates(model)
    assert len(proofs) == len(by_hand)
    for k, (proof, value) in enumerate(zip(proofs, by_hand, strict=True)):
        assert np.isfinite([proof.primal, proof.dual]).all()
        assert proof.kind == "exact"
        # A loss near 0 is the difference of two numbers near 1: C times its rounding counts.
        noise = 1e-14 * model.C * (len(y) if weights is None else float(np.sum(weights)))
        np.testing.assert_allclose(proof.primal, value, rtol=rounding, atol=noise)
        assert 0.0 <= proof.dual <= proof.primal
        assert proof.gap == proof.primal - proof.dual
        assert proof.relative_gap == (proof.gap / proof.primal if proof.primal else 0.0)
        if results(model)[k].status is Status.CONVERGED:
            total = len(y) if weights is None else float(np.sum(weights))
            scale = {"relative": proof.primal, "absolute": 1.0, "epsilon": model.C * total}
            assert proof.gap <= model.tol * scale[model.stopping] * (1.0 + rounding)
        if references is not None:
            assert proof.dual <= references[k] * (1.0 + rounding)


# -- other solvers --------------------------------------------------------------------


def best_bias(scores, signs, weights=None) -> float:
    """The bias that minimises the hinge risk, by trying every kink."""
    kinks = np.unique(signs - scores)
    weights = np.ones(len(signs)) if weights is None else weights
    risks = np.maximum(0.0, 1.0 - signs * (scores + kinks[:, None])) @ weights
    return float(kinks[np.argmin(risks)])


def libsvm(X, signs, C, weights=None, tol=1e-10) -> Bounds:
    """Bounds on the hinge objective with a free bias, from libsvm's dual and primal."""
    model = SVC(kernel="linear", C=C, tol=tol).fit(X, signs, sample_weight=weights)
    w = model.dual_coef_[0] @ X[model.support_]
    alpha = np.abs(model.dual_coef_[0])
    bias = best_bias(X @ w, signs, weights)
    upper = binary_objective(w, bias, X, signs, C, "hinge", weights)
    return Bounds(float(alpha.sum() - 0.5 * w @ w), upper)


def libsvm_dual(X, signs, C, tol=1e-10) -> np.ndarray:
    """libsvm's dual point, one number between 0 and C per row."""
    model = SVC(kernel="linear", C=C, tol=tol).fit(X, signs)
    alpha = np.zeros(len(X))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return alpha


def liblinear(X, y, C, tol=1e-9, weights=None, **parameters) -> Liblinear:
    """scikit-learn's LinearSVC, run to a tight tolerance."""
    model = Liblinear(
        C=C, tol=tol, max_iter=1_000_000, random_state=0, **{"dual": True, **parameters}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return model.fit(X, y, sample_weight=weights)


def smooth_optimum(X, signs, C, loss, *, bias=True, weights=None, penalty=None) -> float:
    """The optimum of a smooth loss with a free bias, by quasi-Newton steps and then Newton's.

    ``penalty`` are factors on the squares of w, for features that are better
    solved for in another scale.
    """
    weights = np.ones(len(signs)) if weights is None else weights
    extended = np.hstack([X, np.ones((len(X), 1))]) if bias else X
    penalty = np.ones(X.shape[1]) if penalty is None else penalty
    penalty = np.pad(penalty, (0, extended.shape[1] - X.shape[1]))

    def terms(v):
        margins = signs * (extended @ v)
        if loss == "logistic":
            u = scipy.special.expit(-margins)
            slopes, curvatures = -u, u * (1.0 - u)
        else:
            inside = margins < 1.0
            slopes, curvatures = -2.0 * np.where(inside, 1.0 - margins, 0.0), 2.0 * inside
        value = 0.5 * np.sum(penalty * v * v) + C * weights @ LOSSES[loss](margins)
        gradient = penalty * v + C * extended.T @ (weights * signs * slopes)
        hessian = np.diag(penalty) + C * (extended.T * (weights * curvatures)) @ extended
        return value, gradient, hessian

    start = np.zeros(extended.shape[1])
    v = scipy.optimize.minimize(lambda v: terms(v)[:2], start, jac=True, method="L-BFGS-B").x
    value, gradient, hessian = terms(v)
    for _ in range(300):
        direction = -np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        step = 1.0
        while step > 1e-10 and terms(v + step * direction)[0] >= value:
            step *= 0.5
        if step <= 1e-10:
            break
        v = v + step * direction
        value, gradient, hessian = terms(v)
    return float(value)


# -- fits -----------------------------------------------------------------------------


def quiet_fit(model: LinearSVC, *arguments, **keywords) -> LinearSVC:
    """Fit without the warning of a run that does not converge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*arguments, **keywords)


# -- processes ------------------------------------------------------------------------

PACKAGE = Path(cutplane.__file__).parent


def run_script(script: str, *arguments: object, environment=None, before=None):
    """Run Python code in a process of its own, with this package; it must end well.

    ``before`` is called in the new process before Python starts.
    """
    path = os.pathsep.join([str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, **(environment or {})},
        preexec_fn=before,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done
