"""The same optimum as libsvm's: dual objective and support vectors at a tight tolerance.

Both solve the same problem, libsvm with scikit-learn's kernel values, ours with its own. The dual
objectives are computed from both answers by one function. A row that is a support vector in one
answer only must lie on the margin.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from ..report import Report, at_most
from .solvers import KernelProblem, beta_of, fit_ours, sample

ROWS = 5000
TOL = 1e-6
CLOSE = 1e-6  # largest relative difference of the dual objectives
ON_MARGIN = 1e-3  # |y·f(x) − 1| of rows on which the support vectors may differ
SMALL = 1e-6  # α below this part of C counts as 0
# Data, C and γ of the RBF kernel, C and γ of the polynomial kernel.
DATA: tuple[tuple[str, float, float, float, float], ...] = (
    ("a9a", 1.0, 0.005, 1.0, 0.05),
    ("ijcnn1", 10.0, 1.0, 1.0, 0.5),
    ("w8a", 5.0, 0.005, 1.0, 0.05),
    ("usps", 10.0, 0.02, 1.0, 0.02),
    ("covtype", 10.0, 1.0, 1.0, 0.5),
)
UNBALANCED = (0.5, 5.0)


def run(report: Report) -> None:
    """Run the section."""
    for name, rbf_C, rbf_gamma, poly_C, poly_gamma in DATA:
        if report.load(name) is None:
            continue
        data = sample(report.settings.source, name, ROWS)
        for factors in ((1.0, 1.0), UNBALANCED):
            rbf = KernelProblem(data, rbf_C, rbf_gamma, factors=factors)
            poly = KernelProblem(data, poly_C, poly_gamma, "poly", 3, 1.0, factors)
            for problem in (rbf, poly):
                balance = "balanced" if factors == (1.0, 1.0) else "unbalanced"
                label = f"{name} {problem.kernel} {balance}"
                with report.attempt(label):
                    _case(report, problem, label)


def _case(report: Report, problem: KernelProblem, label: str) -> None:
    y, X = problem.data.y, problem.rows("dense")
    parameters: dict[str, Any] = {"gamma": problem.gamma}
    if problem.kernel == "poly":
        parameters.update(degree=problem.degree, coef0=problem.coef0)
    K = pairwise_kernels(X, metric=problem.kernel, **parameters)
    model, ours = fit_ours(problem, tol=TOL)
    begin = time.perf_counter()
    weights = problem.options()["class_weight"]
    peer = SVC(kernel="precomputed", C=problem.C, tol=TOL, class_weight=weights).fit(K, y)
    seconds = time.perf_counter() - begin
    mine, theirs = (beta_of(m, len(y)) for m in (model, peer))
    objectives = [float(y @ beta - 0.5 * beta @ K @ beta) for beta in (mine, theirs)]
    difference = abs(objectives[0] - objectives[1]) / abs(objectives[1])
    supports = [np.abs(beta) > SMALL * problem.bounds for beta in (mine, theirs)]
    apart = supports[0] != supports[1]
    margins = np.abs(y * (K @ mine + model.intercept_[0]) - 1.0)
    farthest = float(np.max(margins[apart], initial=0.0))
    report.say(
        f"{label}: relative difference {difference:.1e}, {int(apart.sum())} of "
        f"{int(supports[1].sum())} support vectors differ, at most {farthest:.1e} off the margin"
    )
    case = {
        "what": label,
        **problem.facts(),
        "tol": TOL,
        "ours": {**ours, "objective": objectives[0]},
        "libsvm": {"seconds": seconds, "objective": objectives[1]},
        "difference": difference,
        "support": [int(s.sum()) for s in supports],
        "apart": int(apart.sum()),
        "farthest": farthest,
    }
    above = (ours["dual"] - objectives[1]) / abs(objectives[1])
    checks = [
        at_most(f"relative difference of the duals ≤ {CLOSE:g}", difference, CLOSE),
        at_most(f"where support vectors differ |y·f − 1| ≤ {ON_MARGIN:g}", farthest, ON_MARGIN),
        at_most("certified dual ≤ libsvm's, up to 1e-6", above, CLOSE, "certificate"),
    ]
    report.add(case, checks, label)
