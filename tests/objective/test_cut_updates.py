"""Cuts that are brought up to date by the rows that changed, against cuts computed anew."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from cutplane.data import as_blocks
from cutplane.exec import SerialExecutor
from cutplane.losses import Hinge
from cutplane.objective import RowOracle, linear
from cutplane.risks import LossRisk, Targets


@pytest.mark.parametrize("layout", ["rows", "columns", "sparse"])
@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_updated_cuts_are_those_computed_anew(monkeypatch, layout, constant):
    monkeypatch.setattr(linear, "WORTH_UPDATES", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 12))
    forms = {"rows": X, "columns": np.asfortranarray(X), "sparse": scipy.sparse.csr_array(X)}
    matrix = as_blocks(forms[layout], block_numbers=1000)
    targets = Targets.make(np.where(rng.random(500) < 0.5, 1.0, -1.0), rng.random(500))
    oracle = RowOracle(matrix, targets, LossRisk(Hinge()), SerialExecutor(), constant=constant)
    point = oracle.new_point()
    w = rng.normal(size=oracle.dimension)
    updated = 0
    for k in range(100):
        # Small steps, and now and then a large one.
        w = w + (0.01 if k % 20 else 1.0) * rng.normal(size=w.shape)
        oracle.evaluate(w, point)
        cut = oracle.cut(point)
        updated += int(np.count_nonzero(oracle._products.updated))
        signs = targets.labels
        margins = signs * (X @ w[:12] + (constant * w[-1] if constant else 0.0))
        coef = np.where(margins < 1.0, -signs * targets.weights, 0.0) / targets.total
        expected = X.T @ coef
        if constant:
            expected = np.append(expected, constant * coef.sum())
        np.testing.assert_allclose(cut.a, expected, rtol=0, atol=1e-13)
    assert updated > 200  # of 600 parts: else this test compares nothing
