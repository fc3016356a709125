"""Dask arrays and dataframes as training data, against the same rows in memory."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_classification

from cutplane import DaskCluster, LinearSVC, MeasureSVC, RankSVM, RowFiles, dump_svmlight
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
    here = LinearSVC(n_jobs=1, tol=1e-4, solver="ocas").fit(X, y)
    assert model.certificate_.dual <= here.certificate_.primal * (1 + 1e-12)
    assert here.certificate_.dual <= model.certificate_.primal * (1 + 1e-12)
    np.testing.assert_allclose(model.coef_, here.coef_, rtol=0, atol=0.2 * np.abs(here.coef_).max())
    assert model.n_features_in_ == X.shape[1]


def fit(client, X, y, **settings):
    return LinearSVC(executor=client, tol=1e-4, solver="ocas", **settings).fit(X, y)


def test_dense_chunks_of_rows_and_columns(client, data):
    X, y = data
    chunks = ((1000, 4000, 1, 3999), (5, 7))
    model = fit(client, da.from_array(X, chunks=chunks), da.from_array(y, chunks=2500))
    near(model, X, y)
    assert model.classes_.tolist() == ["no", "yes"]


def test_the_same_bits_for_one_partition(client, data):
    X, y = data
    here = LinearSVC(n_jobs=1, tol=1e-4, solver="ocas").fit(X, y)
    model = fit(client, da.from_array(X, chunks=(9000, 12)), y)
    assert model.certificate_ == here.certificate_
    np.testing.assert_array_equal(model.coef_, here.coef_)


def test_no_client_is_left_after_an_error(client, data):
    """One that was made from an address, when labels turn out to be wrong."""
    X, _ = data
    cluster = DaskCluster(client.scheduler.address)
    before = len(client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.clients)))
    with pytest.raises(ValueError, match="class"):
        fit(cluster, da.from_array(X, chunks=(9000, 12)), np.zeros(len(X)))
    for _ in range(600):
        gc.collect()
        clients = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.clients))
        if len(clients) == before:
            return
        time.sleep(0.1)
    pytest.fail(f"{len(clients) - before} clients are left")


def test_the_address_of_a_scheduler(client, data, tmp_path):
    X, y = data
    cluster = DaskCluster(client.scheduler.address)
    chunks = da.from_array(X, chunks=(9000, 12))
    same = fit(cluster, chunks, y)
    np.testing.assert_array_equal(same.coef_, fit(client, chunks, y).coef_)
    path = tmp_path / "rows.svm"
    dump_svmlight(X[:500], np.where(y[:500] == "yes", 1.0, -1.0), path)
    files = fit(cluster, RowFiles([path]), None)
    assert files.certificate_.relative_gap <= 1e-4
    with pytest.raises(ValueError, match="y has 3 labels, but X 9000 rows"):
        fit(cluster, chunks, y[:3])


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
    from cutplane.cluster.workers import Workers

    available = Workers.available
    monkeypatch.setattr(Workers, "available", lambda self: available(self)[:1])
    alone = fit(client, rows, y)
    assert alone.certificate_ == model.certificate_
    np.testing.assert_array_equal(alone.coef_, model.coef_)


def test_checkpoints_know_the_data(client, data, tmp_path):
    X, y = data
    rows = da.from_array(X, chunks=(3000, 12))
    path = tmp_path / "state"
    fit(client, rows, y, checkpoint=path, max_iter=20)
    fit(client, rows, y, checkpoint=path)
    with pytest.raises(ValueError, match=r"other data \(X\)"):
        fit(client, rows + 1.0, y, checkpoint=path)


# -- files --------------------------------------------------------------------


@pytest.fixture
def texts(data, tmp_path):
    """Three svmlight files with costs; the last feature is not in the first one."""
    X, y = data
    X = scipy.sparse.csr_matrix(X * (np.abs(X) > 0.5))
    X = scipy.sparse.vstack([X[:3000].multiply(np.arange(12) < 11), X[3000:]]).tocsr()
    y = np.where(y == "yes", 1.0, -1.0)
    cost = np.where(np.arange(9000) % 3, 1.0, 2.0)
    paths = []
    for k in range(3):
        rows = slice(3000 * k, 3000 * (k + 1))
        paths.append(tmp_path / f"{k}.svm")
        dump_svmlight(X[rows], y[rows], paths[-1], cost=cost[rows], zero_based=False)
    return paths, X, y, cost


def test_svmlight_files(client, texts):
    paths, X, y, cost = texts
    model = LinearSVC(executor=client, tol=1e-4, solver="ocas").fit(RowFiles(paths))
    here = LinearSVC(n_jobs=1, tol=1e-4, solver="ocas").fit(X, y, cost)
    assert model.certificate_.dual <= here.certificate_.primal * (1 + 1e-12)
    assert here.certificate_.dual <= model.certificate_.primal * (1 + 1e-12)
    assert model.n_features_in_ == 12


def test_parquet_files(client, data, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, y = data
    frame = pandas.DataFrame(X, columns=[f"f{k}" for k in range(12)]).assign(label=y)
    paths = [tmp_path / f"{k}.parquet" for k in range(2)]
    frame[:4000].to_parquet(paths[0])
    frame[4000:].to_parquet(paths[1])
    model = fit(client, RowFiles(paths, label="label"), None)
    near(model, X, y)
    assert model.feature_names_in_.tolist() == [f"f{k}" for k in range(12)]


def test_ranking_with_queries_from_files(client, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 4)), rng.integers(0, 3, 400).astype(float)
    qid = np.repeat(np.arange(40), 10)
    paths = [tmp_path / "a.svm", tmp_path / "b.svm"]
    for path, rows in zip(paths, (slice(0, 200), slice(200, 400)), strict=True):
        sparse = scipy.sparse.csr_matrix(X[rows])
        dump_svmlight(sparse, y[rows], path, qid=qid[rows], zero_based=False)
    model = RankSVM(executor=client, tol=1e-4).fit(RowFiles(paths))
    here = RankSVM(n_jobs=1, tol=1e-4).fit(X, y, qid=qid)
    assert model.n_queries_ == 40
    assert model.certificate_.primal == pytest.approx(here.certificate_.primal, rel=1e-5)


def test_files_that_do_not_fit(client, texts, tmp_path):
    paths, *_ = texts
    with pytest.raises(ValueError, match=r"missing.svm cannot be read on \S+: No such file"):
        LinearSVC(executor=client).fit(RowFiles([*paths, tmp_path / "missing.svm"]))
    with pytest.raises(ValueError, match=r"0.svm is listed twice"):
        RowFiles([*paths, paths[0]])
    with pytest.raises(ValueError, match="files of one kind"):
        RowFiles([*paths, "a.parquet"], label="y")
    with pytest.raises(ValueError, match="tables need label"):
        RowFiles(["a.parquet"])
    with pytest.raises(ValueError, match="at least one path"):
        RowFiles([])
    with pytest.raises(ValueError, match="pass executor=Client"):
        LinearSVC().fit(RowFiles(paths))
    bad = tmp_path / "bad.svm"
    bad.write_text("1 1:x\n")
    with pytest.raises(ValueError, match=r"bad.svm"):
        LinearSVC(executor=client).fit(RowFiles([*paths, bad]))


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
