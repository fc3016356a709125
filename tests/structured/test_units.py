"""Kernel values with units for plain numbers, against the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from cutplane.exec import SerialExecutor
from cutplane.kernels import Kernel, PrecomputedMatrix, ProductMatrix, training_points
from cutplane.structured.examples import parts_at
from cutplane.structured.parts import WithUnits

PARTS, UNITS = 7, 3


@pytest.fixture(name="both", params=["stored", "computed"])
def both_forms(request):
    """The matrix, and all its values."""
    X = np.random.default_rng(0).normal(size=(PARTS, 2))
    own = X @ X.T
    if request.param == "stored":
        matrix = PrecomputedMatrix(own)
    else:
        kernel = Kernel("linear")
        points = training_points(kernel, X, single=False)
        matrix = ProductMatrix(kernel, points, None, SerialExecutor())
    return WithUnits(matrix, UNITS), scipy.linalg.block_diag(own, np.eye(UNITS))


@pytest.mark.parametrize("columns", [None, [0, 4, 8], [7, 9], [1, 2], [9, 3, 0, 9, 3, 7]])
def test_sums_are_those_of_the_whole_matrix(both, columns):
    matrix, values = both
    if columns is not None:
        matrix, values = matrix.restricted(np.array(columns)), values[:, columns]
    assert matrix.columns == values.shape[1]
    rng = np.random.default_rng(1)
    for which in ([8, 2, 0, 9, 2, 8], [3, 1], [7], []):
        which = np.array(which, dtype=np.int64)
        np.testing.assert_allclose(matrix.rows(which), values[which], atol=1e-12)
        for shape in ((len(which),), (len(which), 2)):
            coef = rng.normal(size=shape)
            sums = np.tensordot(values[which], coef, axes=(0, 0))
            np.testing.assert_allclose(matrix.combine(which, coef), sums, atol=1e-12)


def test_the_diagonal_and_what_values_cost(both):
    matrix, values = both
    np.testing.assert_allclose(matrix.diagonal, np.diagonal(values))
    some = matrix.restricted(np.array([1, 5, 8]))
    stored = matrix.values_of(np.array([0])) == 0
    assert matrix.values_of(np.array([0, 3, 9])) == (0 if stored else 2 * PARTS)
    assert some.values_of(np.array([0, 3, 9])) == (0 if stored else 2 * 2)


def test_parts_of_some_examples():
    starts = np.array([0, 2, 2, 5, 6])
    assert parts_at(starts, np.array([0, 1, 3])).tolist() == [0, 1, 5]
    assert parts_at(starts, np.array([2])).tolist() == [2, 3, 4]
    assert parts_at(starts, np.array([1])).tolist() == []
