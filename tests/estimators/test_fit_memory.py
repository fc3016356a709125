"""What a fit needs is freed when it ends, not when Python next looks for cycles of objects.

Large arrays hang on few objects, so that Python seldom looks: the solvers of a hundred labels, or
the copy of the data of an earlier fit, would be there at the same time.
"""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from cutplane import SVC, SVR, ChainTagger, LinearSVC, LinearSVCCV, LinearSVR, MeasureSVC, RankSVM
from cutplane.estimators._base import ModelForm

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5))
SIGNS = np.where(X[:, 0] + 0.3 * RNG.normal(size=60) > 0.0, 1, -1)
GRADES = RNG.integers(0, 3, 60)
QID = np.repeat(np.arange(6), 10)
LABELS = (RNG.random((60, 3)) < 0.5).astype(int)
SEQUENCES = [X[k : k + 6] for k in range(0, 60, 6)]
TAGS = [GRADES[k : k + 6] for k in range(0, 60, 6)]


@pytest.fixture
def no_collection():
    """Python looks for cycles only where a test asks."""
    gc.disable()
    yield
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


@pytest.mark.parametrize(
    ("model", "data"),
    [
        *((LinearSVC(solver=solver), (X, SIGNS)) for solver in ("auto", "ocas", "cpa", "dcd")),
        (LinearSVC(loss="logistic"), (X, GRADES)),
        (LinearSVC(positive=True), (X, SIGNS)),
        (LinearSVC(coef_threshold=0.01), (X, LABELS)),
        (LinearSVR(), (X, X[:, 1])),
        (LinearSVCCV(), (X, SIGNS)),
        (MeasureSVC("f1"), (X, SIGNS)),
        (RankSVM(), (X, GRADES, QID)),
        (SVC(), (X, SIGNS)),
        (SVR(), (X, X[:, 1])),
        (ChainTagger(), (SEQUENCES, TAGS)),
        (ChainTagger(kernel="rbf"), (SEQUENCES, TAGS)),
    ],
)
def test_a_fit_leaves_no_cycles_of_objects(model, data, no_collection):
    model.fit(*data)
    gc.collect()
    model.fit(*data)
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    ours = [type(o).__name__ for o in gc.garbage if type(o).__module__.startswith("cutplane")]
    assert not ours


@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_sparse_weights_of_many_labels_are_not_there_twice(constant):
    """They are moved, not copied: each label's matrix is freed once the model has its values."""
    labels, features = 40, 20_000
    form = ModelForm(labels, constant=constant)
    dense = np.random.default_rng(0).normal(size=(labels, features + bool(constant)))
    dense[:, ::3] = 0.0
    expected = dense[:, :features].copy()
    tracemalloc.start()
    try:
        points = [(scipy.sparse.csr_matrix(dense[k]), 1.0) for k in range(labels)]
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        coef, intercept = form.model(points)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The arrays of the model, and what is freed is gone: empty arrays count here in full.
    assert peak - before < 1.2 * before
    assert not points and coef.has_sorted_indices
    np.testing.assert_array_equal(coef.toarray(), expected)
    np.testing.assert_array_equal(intercept, constant * dense[:, -1] if constant else 1.0)
