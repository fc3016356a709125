"""Chains on a Dask cluster: the same bits as here, and workers that are lost."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import cutplane
from at_iteration import At
from cutplane import ChainTagger, Checkpoint, DaskCluster
from cutplane.cli import main
from cutplane.cluster.workers import ClusterError

distributed = pytest.importorskip("distributed")

SETTINGS = {"C": 1.0 / 32.0, "tol": 1e-3, "solver": "ocas"}


def start(workers):
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=":0"
    )


@pytest.fixture(scope="module")
def client():
    with start(3) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    """Sequences of six labels, some of them empty."""
    rng = np.random.default_rng(0)
    emissions, transitions = rng.normal(size=(30, 6)), 2.0 * rng.normal(size=(6, 6))
    X, Y = [], []
    for length in rng.integers(0, 25, 300):
        x, y = rng.normal(size=(length, 30)), []
        for scores in x @ emissions + 3.0 * rng.normal(size=(length, 6)):
            y.append(int(np.argmax(scores + (transitions[y[-1]] if y else 0.0))))
        X.append(x)
        Y.append(y)
    return X, Y


@pytest.fixture(scope="module")
def here(data):
    return ChainTagger(**SETTINGS).fit(*data)


def same(model, other):
    assert model.certificate_ == other.certificate_
    for name in ("coef_", "transitions_", "begin_", "finish_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name))
    trace, others = model.results_[0].trace, other.results_[0].trace
    facts = ("primal", "dual", "trial", "step")
    assert [[getattr(i, name) for name in facts] for i in trace] == [
        [getattr(i, name) for name in facts] for i in others
    ]


def close_worker(cluster):
    worker = next(iter(cluster.workers.values()))
    cluster.sync(worker.close, nanny=False, reason="the test ends it")


# -- the same bits ------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"order": 2, "boundaries": True, "max_iter": 12},
        {"solver": "cpa", "loss": "zero_one", "max_iter": 15},
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_same_bits_as_here(client, data, settings):
    settings = {**SETTINGS, **settings}
    here = ChainTagger(n_jobs=1, **settings).fit(*data)
    same(ChainTagger(n_jobs=2, **settings).fit(*data), here)
    there = ChainTagger(executor=client, **settings).fit(*data)
    same(there, here)
    timings = there.results_[0].timings
    assert timings["losses"] == 0
    assert timings["rounds"] <= (3.0 if there.solver == "cpa" else 10.0) * there.n_iter_ + 5.0


def test_sparse_tokens_the_address_and_points_computed_anew(client, data, monkeypatch):
    monkeypatch.setattr("cutplane.solvers.cutting_plane.REFRESH", 5)
    X = [scipy.sparse.csr_array(np.where(np.abs(x) > 0.8, x, 0.0)) for x in data[0]]
    here = ChainTagger(**SETTINGS).fit(X, data[1])
    assert here.n_iter_ > 10
    same(
        ChainTagger(executor=DaskCluster(client.scheduler.address), **SETTINGS).fit(X, data[1]),
        here,
    )


def test_fewer_parts_than_workers(client, data):
    X, Y = data[0][:6], data[1][:6]
    same(ChainTagger(executor=client).fit(X, Y), ChainTagger(solver="ocas").fit(X, Y))


def test_the_command_line(client, data, tmp_path, capsys):
    lengths = np.array([len(y) for y in data[1]])
    rows, tags = np.concatenate(data[0]), np.concatenate(data[1]).astype(int)
    qid = np.repeat(np.arange(300), lengths)
    cutplane.dump_svmlight(rows, tags, tmp_path / "chains.svm", qid=qid)
    files = str(tmp_path / "chains.svm"), str(tmp_path / "model")
    address = client.scheduler.address
    flags = ["train", "--quiet", "--chain", "--C", "0.03125", "--tol", "0.001"]
    assert main([*flags, "--scheduler", address, *files]) == 0
    filled = lengths[lengths > 0]
    sparse = scipy.sparse.csr_array(rows)  # as they are read
    here = ChainTagger(**SETTINGS).fit(sparse, tags, lengths=filled)
    same(cutplane.load_model(files[1]), here)
    kernel = ["--kernel", "rbf", "--scheduler", address]
    assert main(["train", "--quiet", "--chain", *kernel, *files]) == 1
    assert "with a kernel all runs on this machine" in capsys.readouterr().err


# -- losses and checkpoints ---------------------------------------------------


@pytest.mark.parametrize("numbers", [(1, 2), (9,)])
def test_lost_workers_change_no_bit(data, here, numbers):
    assert here.n_iter_ > max(numbers)
    with start(3) as cluster, distributed.Client(cluster) as client:
        losses = [At(number, lambda: close_worker(cluster)) for number in numbers]

        def watch(record):
            for loss in losses:
                loss(record)

        model = ChainTagger(executor=client, callback=watch, **SETTINGS).fit(*data)
    assert all(loss.done for loss in losses)
    assert model.results_[0].timings["losses"] >= 1
    same(model, here)


def test_no_worker_left(data):
    with start(1) as cluster, distributed.Client(cluster) as client:
        end = At(3, lambda: close_worker(cluster))
        model = ChainTagger(executor=DaskCluster(client, timeout=3.0), callback=end, **SETTINGS)
        with pytest.raises(ClusterError, match="no worker is left"):
            model.fit(*data)


def test_a_fit_that_resumes_goes_the_same_way(client, data, here, tmp_path):
    class EndedError(Exception):
        pass

    def end():
        raise EndedError

    def checkpointed(name, executor, **settings):
        checkpoint = Checkpoint(tmp_path / name, every=0.0)
        return ChainTagger(checkpoint=checkpoint, executor=executor, **SETTINGS, **settings)

    whole = checkpointed("whole", client).fit(*data)
    assert whole.certificate_.primal == pytest.approx(here.certificate_.primal, rel=1e-3)
    for other in (client, None):
        model = checkpointed(f"ended {other is None}", client, callback=At(8, end))
        with pytest.raises(EndedError):
            model.fit(*data)
        model.set_params(callback=None, executor=other).fit(*data)
        if other is client:
            same(model, whole)
        assert model.n_iter_ > 8
        assert model.certificate_.relative_gap <= 1e-3
    model = checkpointed("here", None, callback=At(8, end))
    with pytest.raises(EndedError):
        model.fit(*data)
    model.set_params(callback=None, executor=client).fit(*data)
    assert model.n_iter_ > 8
    assert model.certificate_.relative_gap <= 1e-3


# -- bad input ----------------------------------------------------------------


def test_kernels_stay_here(client, data):
    with pytest.raises(ValueError, match="with a kernel all runs on this machine"):
        ChainTagger(kernel="rbf", executor=client).fit(*data)


@pytest.mark.parametrize("executor", ["threads", 0, 2.5])
def test_executors_that_are_none(executor, data):
    with pytest.raises(ValueError, match=r"executor|n_jobs"):
        ChainTagger(executor=executor).fit(*data)
