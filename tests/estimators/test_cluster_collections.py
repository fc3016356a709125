"""Dask arrays and dataframes as training data, against the same rows in memory."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_classification

from cutplane import LinearSVC, MeasureSVC
from cutplane.data import as_blocks
from cutplane.data.blocks import BLOCK_NUMBERS
from cutplane.data.partitions import all_parts, block_bounds

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(9_000, 12, flip_y=0.2, random_state=3)
    assert X.size < BLOCK_NUMBERS
    return X, np.where(y > 0, "yes", "no")


def near(model, X, y):
    """The same problem: both certificates hold for both models."""
    here = LinearSVC(n_jobs=1, tol=1e-6, solver="ocas").fit(X, y)
    assert model.certificate_.dual <= here.certificate_.primal * (1 + 1e-12)
    assert here.certificate_.dual <= model.certificate_.primal * (1 + 1e-12)
    np.testing.assert_allclose(
        model.coef_, here.coef_, rtol=0, atol=0.02 * np.abs(here.coef_).max()
    )
    assert model.n_features_in_ == X.shape[1]


def fit(client, X, y, **settings):
    return LinearSVC(executor=client, tol=1e-6, solver="ocas", **settings).fit(X, y)


def test_dense_chunks_of_rows_and_columns(client, data):
    X, y = data
    chunks = ((1000, 4000, 1, 3999), (5, 7))
    model = fit(client, da.from_array(X, chunks=chunks), da.from_array(y, chunks=2500))
    near(model, X, y)
    assert model.classes_.tolist() == ["no", "yes"]


def test_the_same_bits_for_one_partition(client, data):
    X, y = data
    here = LinearSVC(n_jobs=1, tol=1e-6, solver="ocas").fit(X, y)
    model = fit(client, da.from_array(X, chunks=(9000, 12)), y)
    assert model.certificate_ == here.certificate_
    np.testing.assert_array_equal(model.coef_, here.coef_)


def test_sparse_chunks(client, data):
    X, y = data
    X = X * (np.abs(X) > 0.5)
    chunks = da.from_array(X, chunks=(2000, 12)).map_blocks(scipy.sparse.csr_matrix)
    near(fit(client, chunks, y), X, y)


def test_dataframes_with_an_empty_partition(client, data):
    pandas = pytest.importorskip("pandas")
    X, y = data
    names = [f"f{k}" for k in range(12)]
    frame = pandas.DataFrame(X, columns=names)
    whole = dd.from_pandas(frame, npartitions=3)
    frames = dd.concat([whole, whole.partitions[:1].query("f0 > 1e9")], interleave_partitions=False)
    model = fit(client, frames, y)
    near(model, X, y)
    assert model.feature_names_in_.tolist() == names


def test_a_partition_of_one_class_and_a_risk_of_all_scores(client, data):
    X, y = data
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    model = MeasureSVC(C=100.0, executor=client).fit(da.from_array(X, chunks=(3000, 12)), y)
    here = MeasureSVC(C=100.0, n_jobs=1).fit(X, y)
    assert model.certificate_.dual <= here.certificate_.primal
    assert here.certificate_.dual <= model.certificate_.primal


def test_bits_do_not_depend_on_who_holds_the_partitions(client, data, monkeypatch):
    X, y = data
    rows = da.from_array(X, chunks=(700, 12))
    model = fit(client, rows, y)
    from cutplane.exec import cluster as crews

    workers = crews.Crew.workers
    monkeypatch.setattr(crews.Crew, "workers", lambda crew: workers(crew)[:1])
    alone = fit(client, rows, y)
    assert alone.certificate_ == model.certificate_
    np.testing.assert_array_equal(alone.coef_, model.coef_)


def test_checkpoints_know_the_data(client, data, tmp_path):
    X, y = data
    rows = da.from_array(X, chunks=(3000, 12))
    path = tmp_path / "state"
    fit(client, rows, y, checkpoint=path, max_iter=200)
    fit(client, rows, y, checkpoint=path)
    with pytest.raises(ValueError, match=r"other data \(X\)"):
        fit(client, rows + 1.0, y, checkpoint=path)


# -- bad input ----------------------------------------------------------------


def broken(pieces):
    import dask

    parts = [dask.delayed(lambda piece: piece)(piece) for piece in pieces]
    arrays = [da.from_delayed(part, (np.nan, 3), float) for part in parts]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([np.ones((4, 3)), np.ones((2, 5))], "partition 1 of X has 5 features, but partition 0"),
        ([np.ones((4, 3)), np.full((2, 3), np.nan)], "partition 1 of X has NaN or infinity in its"),
        ([np.ones((4, 3)), np.full((2, 3), "a")], "partition 1 of X does not hold numbers"),
        ([np.ones((0, 3)), np.ones((0, 3))], "X has no rows"),
    ],
)
def test_partitions_that_do_not_fit(client, pieces, message):
    with pytest.raises(ValueError, match=message):
        fit(client, broken(pieces), [0, 1, 0, 1, 0, 1])


def test_labels_that_do_not_fit(client, data):
    X, y = data
    with pytest.raises(ValueError, match="y has 8999 labels, but X 9000 rows"):
        fit(client, da.from_array(X, chunks=(3000, 12)), y[1:])
    with pytest.raises(ValueError, match="pass y"):
        fit(client, da.from_array(X, chunks=(3000, 12)), None)


def test_a_collection_without_a_cluster(data):
    X, y = data
    with pytest.raises(ValueError, match=r"pass executor=Client"):
        LinearSVC().fit(da.from_array(X, chunks=(3000, 12)), y)


def test_parts_end_where_partitions_end(data):
    X, _ = data
    pieces = [X[:5000], X[:0], X[5000:]]
    rows, edges, first = all_parts([block_bounds(piece, 1) for piece in pieces])
    assert rows.tolist() == [0, 5000, 9000]
    assert edges.tolist() == [0, 1, 2]
    assert first == [0, 1, 1, 2]
    assert len(as_blocks(X).blocks) == 1
