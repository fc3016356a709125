"""Every layout of the data gives the same answer, and comes back as it was."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pandas
import polars
import pytest
import scipy.sparse
from svc_reference import assert_certified, certificates

from cutplane import LinearSVC

TOL = 1e-6
VARIANTS = {
    "hinge": {},
    "logistic": {"loss": "logistic"},
    "crammer_singer": {"multi_class": "crammer_singer"},
}


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS)
def variant(request):
    return request.param


@pytest.fixture(scope="module")
def data(digits):
    """200 × 64, many of them zero: small integers divided by 16, so exact in any format."""
    X, y = digits
    return np.ascontiguousarray(X[:200]), np.minimum(y[:200], 2)


# -- sparse ---------------------------------------------------------------------------


def shuffled_indices(matrix):
    """The same matrix with the entries of every row in another order."""
    rng = np.random.default_rng(0)
    matrix = matrix.copy()
    for first, last in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        order = first + rng.permutation(last - first)
        matrix.indices[first:last] = matrix.indices[order]
        matrix.data[first:last] = matrix.data[order]
    matrix.has_sorted_indices = False
    return matrix


def with_duplicates(matrix):
    """The same matrix with every entry in two halves."""
    out = matrix.copy()
    out.indptr = 2 * matrix.indptr
    out.indices = matrix.indices.repeat(2)
    out.data = 0.5 * matrix.data.repeat(2)
    out.has_canonical_format = False
    return out


def with_stored_zeros(matrix):
    out = matrix.copy()
    out.data[::5] = 0.0
    return out


def with_long_indices(matrix):
    out = matrix.copy()
    out.indices = out.indices.astype(np.int64)
    out.indptr = out.indptr.astype(np.int64)
    return out


CHANGES = {
    "unsorted": shuffled_indices,
    "duplicates": with_duplicates,
    "int64": with_long_indices,
    "int64 unsorted": lambda m: shuffled_indices(with_long_indices(m)),
    "stored zeros": with_stored_zeros,
}


def arrays_of(X) -> dict[str, np.ndarray]:
    """Everything a matrix holds."""
    if not scipy.sparse.issparse(X):
        return {"values": np.asarray(X)}
    names = ("data", "indices", "indptr", "row", "col", "offsets")
    found = {name: getattr(X, name) for name in names if hasattr(X, name)}
    if X.format == "lil":
        found = {"data": X.data, "rows": X.rows}
    if X.format == "dok":
        found = {"items": np.array(sorted(X.items()), dtype=object)}
    return found


def bits_of(X) -> dict[str, bytes]:
    def bits(array) -> bytes:
        if array.dtype == object:
            return repr(array.tolist()).encode()
        return repr((array.dtype, array.shape, array.strides)).encode() + array.tobytes()

    return {name: bits(array) for name, array in arrays_of(X).items()}


@functools.cache
def plain_fit(values: bytes, shape: tuple, labels: bytes, variant: tuple) -> LinearSVC:
    """The model for the plain dense array of float64."""
    X, y = np.frombuffer(values).reshape(shape), np.frombuffer(labels, dtype=np.int64)
    return LinearSVC(tol=TOL, **dict(variant)).fit(X, y)


def fit_and_check(X, y, variant, dense, rtol=2 * TOL) -> LinearSVC:
    """Fit, and compare with the fit on the plain dense array."""
    before = bits_of(X)
    labels = y.copy()
    model = LinearSVC(tol=TOL, **variant).fit(X, y)
    scores = model.decision_function(X)
    assert bits_of(X) == before
    np.testing.assert_array_equal(y, labels)
    reference = plain_fit(dense.tobytes(), dense.shape, y.tobytes(), tuple(variant.items()))
    for ours, theirs in zip(certificates(model), certificates(reference), strict=True):
        assert ours.primal == pytest.approx(theirs.primal, rel=rtol)
        assert ours.relative_gap <= TOL
    np.testing.assert_allclose(scores, reference.decision_function(dense), atol=2e-2)
    return model


@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_sparse_layouts(data, layout, kind, dtype):
    X, y = data
    dense = (16 * X).astype(dtype)
    sparse = getattr(scipy.sparse, f"{layout}_{kind}")(dense)
    assert sparse.dtype == dtype
    fit_and_check(sparse, y, {}, dense.astype(float))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_untidy_sparse_matrices(data, variant, layout, change):
    X, y = data
    sparse = change(getattr(scipy.sparse, f"{layout}_array")(X))
    fit_and_check(sparse, y, variant, sparse.toarray())


def test_coo_with_duplicates(data):
    X, y = data
    tidy = scipy.sparse.coo_array(X)
    double = scipy.sparse.coo_array(
        (0.5 * tidy.data.repeat(2), (tidy.row.repeat(2), tidy.col.repeat(2))), shape=X.shape
    )
    fit_and_check(double, y, {}, X)


def test_int64_indices_beyond_16_bits():
    """More than 65536 columns: the compact indices must not wrap around."""
    rng = np.random.default_rng(0)
    columns = np.array([0, 1, 65535, 65536, 70000, 131071, 131072, 199999])
    small = rng.normal(size=(60, len(columns)))
    y = rng.integers(0, 2, 60)
    wide = scipy.sparse.coo_array(
        (small.ravel(), (np.repeat(np.arange(60), 8), np.tile(columns, 60))), shape=(60, 200_000)
    ).tocsr()
    reference = LinearSVC(tol=TOL).fit(small, y)
    for matrix in (wide, with_long_indices(wide)):
        model = LinearSVC(tol=TOL).fit(matrix, y)
        np.testing.assert_allclose(model.coef_[:, columns], reference.coef_, atol=1e-4)
        assert np.count_nonzero(model.coef_) <= len(columns)


@pytest.mark.parametrize("features", [65535, 65536, 65537])
def test_int64_indices_at_the_edge_of_16_bits(features):
    X = scipy.sparse.csr_array(
        ([1.0, -1.0, 2.0], ([0, 1, 2], [features - 1, features - 1, 0])), shape=(3, features)
    )
    model = LinearSVC(tol=1e-6).fit(with_long_indices(X), [1, 0, 1])
    reference = LinearSVC(tol=1e-6).fit(X.toarray()[:, [0, features - 1]], [1, 0, 1])
    np.testing.assert_allclose(model.coef_[0, [0, features - 1]], reference.coef_[0], atol=1e-6)


# -- dense ----------------------------------------------------------------------------


def read_only(X):
    out = X.copy()
    out.flags.writeable = False
    return out


DENSE = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "rows reversed": lambda X: np.ascontiguousarray(X[::-1])[::-1],
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "transposed view": lambda X: np.ascontiguousarray(X.T).T,
    "read-only": read_only,
    "read-only Fortran": lambda X: read_only(np.asfortranarray(X)),
    "float32": lambda X: X.astype(np.float32),
    "float32 Fortran": lambda X: np.asfortranarray(X, dtype=np.float32),
    "float16": lambda X: X.astype(np.float16),
    "long double": lambda X: X.astype(np.longdouble),
    "big-endian": lambda X: X.astype(">f8"),
    "big-endian float32": lambda X: X.astype(">f4"),
    "int64": lambda X: (16 * X).astype(np.int64),
    "int8": lambda X: (16 * X).astype(np.int8),
    "big-endian int": lambda X: (16 * X).astype(">i4"),
    "bool": lambda X: X > 0.5,
    "object": lambda X: X.astype(object),
    "unaligned": lambda X: np.frombuffer(b"x" + X.tobytes(), dtype=float, offset=1).reshape(
        X.shape
    ),
}


@pytest.mark.parametrize("layout", DENSE.values(), ids=DENSE)
def test_dense_layouts(data, variant, layout):
    X, y = data
    given = layout(X)
    fit_and_check(given, y, variant, np.asarray(given, dtype=float))


@pytest.mark.parametrize("mode", ["r", "c", "r+"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_maps(data, tmp_path, mode, order):
    X, y = data
    path = tmp_path / "data.bin"
    first = np.memmap(path, dtype=float, mode="w+", shape=X.shape, order=order)
    first[:] = X
    first.flush()
    content = path.read_bytes()
    mapped = np.memmap(path, dtype=float, mode=mode, shape=X.shape, order=order)
    fit_and_check(mapped, y, {}, X)
    assert path.read_bytes() == content


def test_float32_is_as_exact_as_its_numbers(cancer):
    """Sums are in float64: the certificate holds for the float32 numbers to rounding."""
    X, y = cancer
    single = X.astype(np.float32)
    model = LinearSVC(tol=1e-9).fit(single, y)
    assert_certified(model, single.astype(float), y)
    double = LinearSVC(tol=1e-9).fit(single.astype(float), y)
    assert model.certificate_.primal == pytest.approx(double.certificate_.primal, rel=1e-8)
    assert model.coef_.dtype == np.float64


def test_lists(data):
    X, y = data
    model = LinearSVC().fit(X.tolist(), y.tolist())
    np.testing.assert_array_equal(model.coef_, LinearSVC().fit(X, y).coef_)


# -- frames ---------------------------------------------------------------------------

FRAMES = {
    "pandas": pandas.DataFrame,
    "polars": lambda X, columns: polars.DataFrame(X, schema=columns),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_frames(iris, make):
    X, y = iris
    names = ["a", "b", "c", "ä d"]
    frame = make(X, columns=names)
    model = LinearSVC(tol=1e-6).fit(frame, y)
    plain = LinearSVC(tol=1e-6).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-9)
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.predict(frame), plain.predict(X))
    np.testing.assert_array_equal(np.asarray(frame), X)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(make(X, columns=["a", "b", "d", "c"]))
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X)


def test_pandas_dtypes_and_targets(iris):
    X, y = iris
    plain = LinearSVC(tol=1e-6).fit(X, y)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    for given in (frame.astype("Float64"), frame.astype(pandas.SparseDtype(float, 0.0))):
        model = LinearSVC(tol=1e-6).fit(given, pandas.Series(y, index=range(500, 650)))
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-4)
    model = LinearSVC(tol=1e-6).fit(frame, pandas.Series(y).map({0: "x", 1: "y", 2: "z"}))
    assert model.classes_.tolist() == ["x", "y", "z"]
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-9)
    weights = pandas.Series(np.ones(150), index=range(150, 0, -1))
    model = LinearSVC(tol=1e-6).fit(frame, y, sample_weight=weights)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-9)


def test_polars_targets(iris):
    X, y = iris
    model = LinearSVC(tol=1e-6).fit(polars.DataFrame(X), polars.Series(y))
    np.testing.assert_allclose(model.coef_, LinearSVC(tol=1e-6).fit(X, y).coef_, atol=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array, pandas.DataFrame])
def test_missing_and_infinite_numbers_are_refused(iris, bad, make):
    X, y = iris[0].copy(), iris[1]
    X[7, 2] = bad
    with pytest.raises(ValueError, match=r"(?i)nan|infin"):
        LinearSVC().fit(make(X), y)
    model = LinearSVC().fit(*iris)
    with pytest.raises(ValueError, match=r"(?i)nan|infin"):
        model.predict(make(X))


@pytest.mark.parametrize(
    "labels",
    [[0, 1], [-1.0, 1.0], [3, 7], [False, True], np.array([1, 2], np.uint8), ["no", "yes"]],
    ids=str,
)
def test_two_classes_of_any_kind(cancer, labels):
    """Classes as np.unique finds them, also where two numbers need no sorting."""
    X, y = cancer
    named = np.asarray(labels)[np.searchsorted(np.unique(y), y)]
    model = LinearSVC().fit(X, named)
    np.testing.assert_array_equal(model.classes_, np.unique(named))
    assert model.classes_.dtype == np.unique(named).dtype
    np.testing.assert_array_equal(model.coef_, LinearSVC().fit(X, y).coef_)


def test_numbers_that_are_no_classes_are_refused(cancer):
    X, y = cancer
    with pytest.raises(ValueError, match="continuous"):
        LinearSVC().fit(X, np.where(y == y[0], 0.5, 1.5))


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csr_array])
def test_plain_arrays_are_taken_as_they_are(iris, make):
    """They skip what finds out about frames, and leave nothing behind of a fit on a frame."""
    X, y = iris
    frame = LinearSVC().fit(pandas.DataFrame(X, columns=list("abcd")), pandas.Series(y))
    plain = LinearSVC().fit(pandas.DataFrame(X, columns=list("abcd")), y).fit(make(X), y)
    assert not hasattr(plain, "feature_names_in_")
    assert plain.n_features_in_ == 4
    np.testing.assert_allclose(plain.coef_, frame.coef_, rtol=1e-12)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        LinearSVC().fit(make(X), y[1:])


def test_numbers_whose_sum_overflows_are_finite():
    X = np.array([[1e308], [1e308], [-1e308], [-1e308]])
    model = LinearSVC(fit_intercept=False).fit(X * 1e-300, [1, 1, 0, 0])
    large = LinearSVC(fit_intercept=False, max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert large.fit(X, np.array([1, 1, 0, 0])).n_features_in_ == 1
    assert model.n_features_in_ == 1
