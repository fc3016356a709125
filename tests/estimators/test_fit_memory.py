"""What a fit needs is freed when it ends, not when Python next looks for cycles of objects.

Large arrays hang on few objects, so that Python seldom looks: the solvers of a hundred labels, or
the copy of the data of an earlier fit, would be there at the same time.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest

from cutplane import SVC, SVR, ChainTagger, LinearSVC, LinearSVCCV, LinearSVR, MeasureSVC, RankSVM

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
