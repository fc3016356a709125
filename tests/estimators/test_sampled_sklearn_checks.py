"""scikit-learn's own checks of the estimators of kernels at scale."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cutplane import CholeskyFeatures, SampledCutSVC

# Rows of weight 2 and equal rows must give the same scores to seven digits: they do where
# the tolerance is tight, and gamma is a number ('scale' does not look at weights).
TIGHT = [SampledCutSVC(gamma=0.01, tol=1e-12, stopping="relative")]
DEFAULTS = [
    SampledCutSVC(),
    SampledCutSVC(method="constant"),
    SampledCutSVC(method="exact", solver="cpa"),
    SampledCutSVC(multi_class="crammer_singer"),
    CholeskyFeatures(),
    CholeskyFeatures(selection="random"),
]
TO_TOLERANCE_ONLY = {
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}


@parametrize_with_checks(TIGHT)
def test_scikit_learn_checks_of_exact_fits(estimator, check):
    check(estimator)


@parametrize_with_checks(DEFAULTS)
def test_scikit_learn_checks(estimator, check):
    if check.func.__name__ in TO_TOLERANCE_ONLY:
        pytest.skip("equal to tol only, not to seven digits; TIGHT runs this check")
    check(estimator)
