"""Every layout of the data gives the same answer, and comes back as it was."""

from __future__ import annotations

import numpy as np
import pandas
import polars
import pytest
import scipy.sparse
from ranking_reference import CASES, FEW_CASES, MEASURE_CASES, Data, case_name, make_data
from sklearn.exceptions import NotFittedError

TOL = 1e-6


@pytest.fixture(params=CASES, ids=case_name)
def case(request):
    return request.param


@pytest.fixture(scope="module")
def data() -> Data:
    """Small multiples of 1/8, many of them zero: exact in any format."""
    plain = make_data()
    X = np.round(np.maximum(0.0, plain.X) * 8.0) / 8.0
    X.flags.writeable = False
    return Data(X, plain.labels, plain.levels, plain.values, plain.qid)


def with_long_indices(X):
    out = scipy.sparse.csr_array(X)
    out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
    return out


def unsorted(X):
    """Every row's entries backwards."""
    out = scipy.sparse.csr_array(X)
    for first, last in zip(out.indptr[:-1], out.indptr[1:], strict=True):
        out.indices[first:last] = out.indices[first:last][::-1].copy()
        out.data[first:last] = out.data[first:last][::-1].copy()
    out.has_sorted_indices = False
    return out


LAYOUTS = {
    "Fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "float32 Fortran": lambda X: np.asfortranarray(X, dtype=np.float32),
    "big-endian": lambda X: X.astype(">f8"),
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "CSR": scipy.sparse.csr_array,
    "CSR matrix": scipy.sparse.csr_matrix,
    "CSR float32": lambda X: scipy.sparse.csr_array(X.astype(np.float32)),
    "CSR int64": with_long_indices,
    "CSR unsorted": unsorted,
    "CSC": scipy.sparse.csc_array,
    "COO": scipy.sparse.coo_array,
}


def arrays_of(X) -> list[np.ndarray]:
    if not scipy.sparse.issparse(X):
        return [X]
    names = ("data", "indices", "indptr", "row", "col")
    return [getattr(X, name) for name in names if hasattr(X, name)]


@pytest.fixture(scope="module")
def plain_fits(data):
    """The models for the plain dense array."""
    return {case.name: case.fit(data, C=100.0, tol=TOL) for case in CASES}


@pytest.mark.parametrize("case", [*FEW_CASES, MEASURE_CASES[-1]], ids=case_name)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_layouts(case, data, plain_fits, layout):
    """Read-only as well: whoever writes to it fails."""
    X, y = layout(data.X), case.y(data)
    for array in arrays_of(X):
        array.flags.writeable = False
    before = [(a.dtype, a.strides, a.tobytes()) for a in arrays_of(X)]
    model = case.fit(data, X, C=100.0, tol=TOL)
    predicted = model.predict(X)
    assert [(a.dtype, a.strides, a.tobytes()) for a in arrays_of(X)] == before
    assert not y.flags.writeable
    plain = plain_fits[case.name]
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2 * TOL)
    case.assert_certified(model, data)
    assert model.coef_.dtype == np.float64
    np.testing.assert_allclose(X @ model.coef_[0], data.X @ plain.coef_[0], atol=0.1)
    same = model.predict(data.X)
    if same.dtype.kind == "f":
        np.testing.assert_allclose(predicted, same, rtol=1e-5, atol=1e-9)
    else:
        np.testing.assert_array_equal(predicted, same)


def test_writeable_data_are_not_changed(case, data):
    X, y = data.X.copy(), case.y(data).copy()
    extra = {name: array.copy() for name, array in case.extra(data).items()}
    weights = np.ones(200)
    weights[::3] = 2.0
    case.make().fit(X, y, sample_weight=weights, **extra)
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(y, case.y(data))
    np.testing.assert_array_equal(weights, np.where(np.arange(200) % 3 == 0, 2.0, 1.0))
    for name, array in extra.items():
        np.testing.assert_array_equal(array, case.extra(data)[name])


@pytest.mark.parametrize("case", FEW_CASES, ids=case_name)
@pytest.mark.parametrize("order", ["C", "F"])
def test_read_only_memory_maps(case, data, tmp_path, order):
    path = tmp_path / "data.bin"
    first = np.memmap(path, dtype=float, mode="w+", shape=data.X.shape, order=order)
    first[:] = data.X
    first.flush()
    content = path.read_bytes()
    mapped = np.memmap(path, dtype=float, mode="r", shape=data.X.shape, order=order)
    model = case.fit(data, mapped, C=100.0)
    case.assert_certified(model, data)
    assert path.read_bytes() == content


def test_lists(case, data):
    extra = {name: array.tolist() for name, array in case.extra(data).items()}
    model = case.make(C=100.0 / len(data.X)).fit(data.X.tolist(), case.y(data).tolist(), **extra)
    np.testing.assert_array_equal(model.coef_, case.fit(data, C=100.0).coef_)


def in_columns(case, data):
    """A fit to the layout that frames have: other layouts add up in another order."""
    X = np.asfortranarray(data.X)
    return case.make(C=100.0 / len(data.X)).fit(X, case.y(data), **case.extra(data))


def test_pandas(case, data):
    names = list("abcdeä")
    frame = pandas.DataFrame(data.X, columns=names, index=range(500, 700))
    series = {
        name: pandas.Series(array, index=range(200, 0, -1))
        for name, array in {"y": case.y(data), **case.extra(data)}.items()
    }
    model = case.make(C=100.0 / len(data.X)).fit(frame, **series)
    plain = in_columns(case, data)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9)
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_allclose(model.predict(frame), plain.predict(data.X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[names[::-1]])


def test_polars(case, data):
    frame = polars.DataFrame(data.X, schema=list("abcdef"))
    extra = {name: polars.Series(array) for name, array in case.extra(data).items()}
    model = case.make(C=100.0 / len(data.X)).fit(frame, polars.Series(case.y(data)), **extra)
    np.testing.assert_allclose(model.coef_, in_columns(case, data).coef_, rtol=1e-9)


@pytest.mark.parametrize("case", FEW_CASES, ids=case_name)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array])
def test_missing_and_infinite_numbers_are_refused(case, data, bad, make):
    X = data.X.copy()
    X[7, 2] = bad
    with pytest.raises(ValueError, match=r"(?i)nan|infin"):
        case.fit(data, make(X))
    with pytest.raises(ValueError, match=r"(?i)nan|infin"):
        case.fit(data).predict(make(X))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_and_infinite_targets_are_refused(case, data, bad):
    y = case.y(data).astype(float)
    y[11] = bad
    with pytest.raises(ValueError, match=r"(?i)nan|infin"):
        case.make().fit(data.X, y, **case.extra(data))


def test_not_fitted(case, data):
    for method in ("predict", "decision_function", "score_samples"):
        if hasattr(case.make(), method):
            with pytest.raises(NotFittedError):
                getattr(case.make(), method)(data.X)


def test_another_number_of_features_is_refused(case, data):
    with pytest.raises(ValueError, match="features"):
        case.fit(data).predict(data.X[:, :4])


def test_attributes_have_their_documented_shapes(case, data):
    model = case.fit(data)
    assert model.coef_.shape == (1, 6)
    assert model.intercept_.shape == (1,)
    assert model.n_features_in_ == 6
    assert model.n_iter_ == model.results_[0].n_iter
    assert model.certificate_ is model.results_[0].certificate
    if case not in MEASURE_CASES:
        assert model.intercept_[0] == 0.0
