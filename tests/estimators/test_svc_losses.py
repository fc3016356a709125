"""Every loss of LinearSVC, by the formula in numpy that its risk has among the tests' risks."""

from __future__ import annotations

import numpy as np
import pytest

from cutplane import LinearSVC
from cutplane.estimators._problems import SOLVERS
from cutplane.estimators.linear_svc import LOSSES_OF
from cutplane.losses import CLASSIFICATION

BIASES = {"free": {}, "none": {"fit_intercept": False}, "regularised": {"intercept_scaling": 1.0}}


def objective(model, X, signs, formula) -> float:
    w, bias = model.coef_[0], float(model.intercept_[0])
    constant = model.intercept_scaling
    extra = 0.0 if constant is None else 0.5 * (bias / constant) ** 2
    return 0.5 * float(w @ w) + extra + model.C * float(np.sum(formula(X @ w + bias, signs)))


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", CLASSIFICATION)
def test_every_solver_certifies_the_formula(all_cases, loss, bias):
    """No solver's bound is above another one's model, and all come within their gaps."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(150, 5))
    signs = np.where(X[:, 0] + 0.8 * rng.normal(size=150) > 0, 1.0, -1.0)
    certificates = []
    for solver in SOLVERS:
        settings = {"loss": loss, "solver": solver, "random_state": 0, **BIASES[bias]}
        rough = solver in ("sgd", "pegasos")
        model = LinearSVC(0.5, tol=0.2 if rough else 1e-6, max_iter=200 if rough else None)
        model.set_params(**settings)
        if loss not in LOSSES_OF.get(solver, CLASSIFICATION):
            with pytest.raises(ValueError, match=f"solver='{solver}' takes loss=.*got '{loss}'"):
                model.fit(X, signs)
            continue
        model.fit(X, signs)
        value = objective(model, X, signs, all_cases[loss].losses)
        assert model.certificate_.primal == pytest.approx(value, rel=1e-9)
        certificates.append(model.certificate_)
    lowest = min(certificate.primal for certificate in certificates)
    assert len(certificates) >= 3
    assert all(certificate.dual <= lowest * (1 + 1e-9) for certificate in certificates)
    assert min(certificate.relative_gap for certificate in certificates) <= 1e-6
