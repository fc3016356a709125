"""Fits on a cluster of workers in this process: losses, checkpoints, errors, scikit-learn."""

from __future__ import annotations

import pickle
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

import cutplane
from at_iteration import At
from cutplane import (
    Checkpoint,
    ClusterError,
    DaskCluster,
    LinearSVC,
    LinearSVCCV,
    MeasureSVC,
    linear_svc_path,
    open_dataset,
    write_dataset,
)
from cutplane.cli import main
from cutplane.cluster import rows, workers
from cutplane.solvers import cutting_plane

distributed = pytest.importorskip("distributed")

SETTINGS = {"solver": "ocas", "tol": 1e-3}


def start(workers=2):
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=":0"
    )


@pytest.fixture(scope="module")
def client():
    with start() as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def own():
    """A cluster that a test may wreck: the cluster and its client."""
    with start(3) as cluster, distributed.Client(cluster) as client:
        yield cluster, client


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    X, y = make_classification(24_000, 45, n_informative=20, flip_y=0.2, random_state=3)
    path = tmp_path_factory.mktemp("data") / "rows.cut"
    write_dataset(path, [(X, y)])
    return path


@pytest.fixture
def data(folder):
    return open_dataset(folder)


@pytest.fixture(scope="module")
def here(folder):
    return LinearSVC(n_jobs=1, **SETTINGS).fit(open_dataset(folder))


def same(model, other):
    assert model.certificate_ == other.certificate_
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_array_equal(model.intercept_, other.intercept_)


def close_worker(cluster, k=0):
    worker = list(cluster.workers.values())[k]
    cluster.sync(worker.close, nanny=False, reason="the test ends it")


# -- losses -------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 6])
def test_a_lost_worker_changes_no_bit(own, data, here, number):
    cluster, client = own
    at = At(number, lambda: close_worker(cluster))
    model = LinearSVC(executor=client, callback=at, **SETTINGS).fit(data)
    assert at.done
    same(model, here)


def test_losses_one_after_the_other_and_points_computed_anew(monkeypatch, own, data):
    """The log begins anew every few iterations; what is lost then comes from the short one."""
    monkeypatch.setattr(cutting_plane, "REFRESH", 4)
    cluster, client = own
    here = LinearSVC(n_jobs=1, **SETTINGS).fit(data)
    assert here.n_iter_ > 9
    first, second = At(5, lambda: close_worker(cluster)), At(8, lambda: close_worker(cluster))
    model = LinearSVC(executor=client, callback=lambda r: first(r) or second(r), **SETTINGS).fit(
        data
    )
    assert first.done and second.done
    same(model, here)


def test_a_lost_worker_with_rows_from_memory_and_a_risk_of_all_scores(own, data):
    cluster, client = own
    X, y = data.rows(), data.y
    at = At(3, lambda: close_worker(cluster, 1))
    model = MeasureSVC("f1", C=50.0, executor=client, callback=at).fit(X, y)
    assert at.done
    same(model, MeasureSVC("f1", C=50.0, n_jobs=1).fit(X, y))


def test_the_log_of_a_risk_of_all_scores_is_bounded(monkeypatch, own, data):
    """Coefficients of all rows, 8 bytes each, are kept up to a limit; then the sums they led to."""
    limit = 3 * 8 * len(data)
    monkeypatch.setattr(rows, "LOG_BYTES", limit)
    cluster, client = own
    sizes, usual = [], workers.Workers.round

    def measured(self, orders):
        answers = usual(self, orders)
        orders = [order for each in self.log for order in getattr(each, "orders", ())]
        sizes.append(sum(o.arguments[0].nbytes for o in orders if o.name == "gradients"))
        return answers

    monkeypatch.setattr(workers.Workers, "round", measured)
    here = MeasureSVC("roc_auc", C=1e4, n_jobs=1).fit(data)
    assert here.n_iter_ > 14
    # One worker is lost just after the log was cut short, and one a while later.
    first, second = At(4, lambda: close_worker(cluster)), At(10, lambda: close_worker(cluster))
    model = MeasureSVC(
        "roc_auc", C=1e4, executor=client, callback=lambda r: first(r) or second(r)
    ).fit(data)
    assert first.done and second.done
    same(model, here)
    assert limit < max(sizes) <= limit + 8 * len(data)


def test_no_worker_left(own, data, tmp_path):
    cluster, client = own

    def close_all():
        for k in range(3):
            close_worker(cluster, k)

    seconds, at = set(), At(6, close_all)

    def watch(record):
        seconds.add(record.seconds)
        at(record)

    checkpoint = Checkpoint(tmp_path / "state", every=0.0)
    model = LinearSVC(
        executor=DaskCluster(client, timeout=4.0),
        callback=watch,
        checkpoint=checkpoint,
        **SETTINGS,
    )
    with pytest.raises(ClusterError, match=r"no worker is left: .* had none for 4 s"):
        model.fit(data)
    resumed = LinearSVC(n_jobs=1, checkpoint=checkpoint, **SETTINGS).fit(data)
    assert resumed.certificate_.relative_gap <= 1e-3
    assert len({record.seconds for record in resumed.results_[0].trace[:5]} & seconds) == 5


@pytest.mark.slow  # Dask takes half a minute to close such a cluster
def test_the_scheduler_is_lost(data, tmp_path):
    checkpoint = Checkpoint(tmp_path / "state", every=0.0)
    with start() as cluster, distributed.Client(cluster, timeout=5) as client:
        at = At(6, lambda: cluster.sync(cluster.scheduler.close))
        model = LinearSVC(
            executor=DaskCluster(client, timeout=10.0), callback=at, checkpoint=checkpoint
        )
        model.set_params(**SETTINGS)
        with pytest.raises(ClusterError, match=r"the scheduler .* does not answer"):
            model.fit(data)
    resumed = LinearSVC(n_jobs=1, checkpoint=checkpoint, **SETTINGS).fit(data)
    assert resumed.certificate_.relative_gap <= 1e-3


# -- checkpoints and paths ----------------------------------------------------


def test_a_fit_that_resumes_goes_the_same_way(client, data, tmp_path):
    class EndedError(Exception):
        pass

    def end():
        raise EndedError

    def fit(name, callback=None):
        checkpoint = Checkpoint(tmp_path / name, every=0.0)
        return LinearSVC(executor=client, checkpoint=checkpoint, callback=callback, **SETTINGS).fit(
            data
        )

    whole = fit("whole")
    with pytest.raises(EndedError):
        fit("parts", At(5, end))
    resumed = fit("parts")
    same(resumed, whole)
    assert [i.primal for i in resumed.results_[0].trace] == [
        i.primal for i in whole.results_[0].trace
    ]


def test_what_began_here_goes_on_there(client, data, tmp_path):
    checkpoint = Checkpoint(tmp_path / "state", every=0.0)
    LinearSVC(max_iter=5, n_jobs=1, checkpoint=checkpoint, **SETTINGS).fit(data)
    model = LinearSVC(executor=client, checkpoint=checkpoint, **SETTINGS).fit(data)
    assert model.certificate_.relative_gap <= 1e-3


@pytest.mark.parametrize("solver", ["auto", "ocas", "cpa"])
def test_a_path(client, data, solver):
    X, y = data.rows(), data.y
    Cs = [1e-4, 1e-3]
    there = linear_svc_path(X, y, Cs, executor=client, solver=solver)
    here = linear_svc_path(X, y, Cs, n_jobs=1, solver="ocas" if solver == "auto" else solver)
    np.testing.assert_array_equal(there.coefs, here.coefs)


def test_a_path_of_a_data_set_and_a_lost_worker(own, data):
    cluster, client = own
    at = At(4, lambda: close_worker(cluster))
    Cs, settings = [1e-4, 1e-3], {"solver": "ocas", "callback": at}
    there = linear_svc_path(data, data.y, Cs, executor=client, **settings)
    assert at.done
    here = linear_svc_path(data, data.y, Cs, n_jobs=1, solver="ocas")
    np.testing.assert_array_equal(there.coefs, here.coefs)
    assert there.certificates == here.certificates


# -- C chosen by cross-validation ---------------------------------------------


def same_search(search, other):
    np.testing.assert_array_equal(search.scores_, other.scores_)
    assert search.certificates_ == other.certificates_
    assert (search.C_, search.n_features_in_) == (other.C_, other.n_features_in_)
    same(search, other)


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_folds_on_a_cluster(client, tmp_path, multi_class):
    X, y = make_classification(900, 8, n_informative=6, n_classes=3, flip_y=0.2, random_state=3)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y))
    settings = {"Cs": [1e-4, 1e-2], "cv": 3, "solver": "ocas", "multi_class": multi_class}
    settings["calibrate"] = "isotonic"
    here = LinearSVCCV(n_jobs=2, **settings).fit(X, y, weights)
    there = LinearSVCCV(executor=client, **settings).fit(X, y, weights)
    same_search(there, here)
    same_search(
        LinearSVCCV(executor=client, **{**settings, "solver": "auto"}).fit(X, y, weights), here
    )
    np.testing.assert_array_equal(there.predict_proba(X), here.predict_proba(X))
    assert (
        there.results_[0].timings["rounds"] if multi_class != "ovr" else there.results_[0].timings
    )
    stored = write_dataset(tmp_path / "rows.cut", [(X, y)])
    for executor in (client, None):
        search = LinearSVCCV(executor=executor, **settings).fit(stored, sample_weight=weights)
        same_search(search, here)
    assert clone(there).executor is client and pickle.loads(pickle.dumps(there)).executor is None


def test_folds_of_dask_arrays_and_a_lost_worker(own):
    da = pytest.importorskip("dask.array")
    cluster, client = own
    X, y = make_classification(900, 8, flip_y=0.2, random_state=3)
    settings = {"Cs": [1e-3, 1e-1], "cv": 3, "solver": "ocas", "scoring": "roc_auc", "tol": 1e-6}
    here = LinearSVCCV(**settings).fit(X, y)
    closing = threading.Timer(0.3, lambda: close_worker(cluster))
    closing.start()
    there = LinearSVCCV(executor=client, **settings).fit(da.from_array(X, chunks=(300, 8)), y)
    closing.join()
    np.testing.assert_allclose(there.scores_, here.scores_, atol=1e-3)
    assert there.C_ == here.C_
    assert there.certificate_.dual <= here.certificate_.primal * (1 + 1e-12)
    assert here.certificate_.dual <= there.certificate_.primal * (1 + 1e-12)


def test_scorers_that_need_rows(client, data):
    with pytest.raises(ValueError, match="those of a Dataset are not in memory"):
        LinearSVCCV(scoring=lambda model, X, y: 0.0, executor=client).fit(data)
    with pytest.raises(ValueError, match="use 'auto', 'ocas' or 'cpa'"):
        LinearSVCCV(solver="dcd", executor=client).fit(data)


# -- scikit-learn, files ------------------------------------------------------


def test_clones_share_the_cluster_and_files_forget_it(client, data, tmp_path):
    model = clone(LinearSVC(executor=client, max_iter=2))
    assert model.executor is client
    with pytest.warns(ConvergenceWarning):
        model.fit(data)
    assert pickle.loads(pickle.dumps(model)).executor is None
    cutplane.save_model(model, tmp_path / "model")
    again = cutplane.load_model(tmp_path / "model")
    assert again.executor is None
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_the_address_of_a_scheduler(client, data, here):
    address = client.scheduler.address
    same(LinearSVC(executor=DaskCluster(address), **SETTINGS).fit(data), here)


def test_the_command_line(client, folder, here, tmp_path, capsys):
    model, state = str(tmp_path / "model"), str(tmp_path / "state")
    command = ["train", "--quiet", "--solver", "ocas", "--tol", str(SETTINGS["tol"])]
    address = client.scheduler.address
    assert main([*command, "--scheduler", address, str(folder), model]) == 0
    same(cutplane.load_model(model), here)
    wrong = ["--scheduler", "tcp://127.0.0.1:9", "--scheduler-timeout", "0.5"]
    assert main([*command, *wrong, "--checkpoint", state, str(folder), model]) == 1
    assert "there is no scheduler at tcp://127.0.0.1:9" in capsys.readouterr().err
    assert main(["train", "--kernel", "rbf", "--scheduler", address, str(folder), model]) == 2
    assert "--scheduler is not available for SVC" in capsys.readouterr().err


# -- bad input ----------------------------------------------------------------


@pytest.mark.parametrize("executor", ["tcp://nowhere:1", object(), 0, True, 2.5])
def test_executors_that_are_none(executor, data):
    with pytest.raises(ValueError, match=r"executor|n_jobs"):
        LinearSVC(executor=executor).fit(data)


def test_executor_and_n_jobs_contradict(data):
    with pytest.raises(ValueError, match="None or a cluster, got 2; for threads give n_jobs=2"):
        LinearSVC(executor=2).fit(data)


@pytest.mark.parametrize("solver", ["dcd", "sgd", "pegasos"])
def test_solvers_that_need_all_rows(client, data, solver):
    with pytest.raises(ValueError, match="use 'auto', 'ocas' or 'cpa'"):
        LinearSVC(executor=client, solver=solver).fit(data)


def test_no_scheduler_there(data):
    with pytest.raises(ClusterError, match="there is no scheduler at tcp"):
        LinearSVC(executor=DaskCluster("tcp://127.0.0.1:9", timeout=0.5)).fit(data)


def test_a_folder_that_workers_cannot_read(client, folder, tmp_path):
    moved = tmp_path / "moved.cut"
    write_dataset(moved, [(np.eye(4), [0, 1, 0, 1])])
    dataset = open_dataset(moved)
    moved.rename(tmp_path / "elsewhere.cut")
    with pytest.raises(ValueError, match=r"worker \S+ at inproc\S+: .*moved.cut cannot be read"):
        LinearSVC(executor=client).fit(dataset)


def test_other_versions_on_workers(client, data, monkeypatch):
    monkeypatch.setattr(workers, "_facts", _facts_of_another_numpy)
    with pytest.raises(ClusterError, match=r"worker inproc\S+ has numpy 0.1 instead of \S+"):
        LinearSVC(executor=client).fit(data)


def _facts_of_another_numpy():
    here = threading.current_thread() is threading.main_thread()
    return {"numpy": np.__version__ if here else "0.1"}


def test_missing_packages_on_workers(client, data, monkeypatch):
    monkeypatch.setattr(workers, "_facts", _no_facts)
    with pytest.raises(ClusterError, match=r"worker inproc\S+ cannot be used: ModuleNotFoundError"):
        LinearSVC(executor=client).fit(data)


def _no_facts():
    if threading.current_thread() is not threading.main_thread():
        raise ModuleNotFoundError("No module named 'numba'")
    return {}


def test_fewer_rows_than_workers(client):
    model = LinearSVC(executor=client, solver="ocas").fit([[0.0], [1.0]], ["no", "yes"])
    same(model, LinearSVC(n_jobs=1, solver="ocas").fit([[0.0], [1.0]], ["no", "yes"]))


# -- slow workers -------------------------------------------------------------


def test_a_slow_worker_is_named(client):
    """While it is waited for, and afterwards."""
    with workers.Workers(client) as crew:
        names = ["fast", "slow", "other"]
        crew.members = [
            workers.Member(k, workers.Worker(name, name, 1)) for k, name in enumerate(names)
        ]
        fast, slow, other = crew.members
        assert crew.note() == ""
        crew._awaited = (time.perf_counter() - workers.SLOW, [slow])
        assert crew.note().startswith("waiting for worker slow (3 s")
        crew._awaited = (time.perf_counter() - workers.SLOW, crew.members)
        assert crew.note() == ""  # nobody has answered
        crew._awaited = (0.0, [])
        fast.seconds, slow.seconds, other.seconds = 10.0, 21.0, 10.0
        assert crew.note() == "slow worker slow"
        slow.seconds = 19.0
        assert crew.note() == ""
        crew.members = []


def test_the_progress_line_names_it(client, data, monkeypatch):
    from cutplane.reporting.line import Line

    monkeypatch.setattr(workers.Workers, "note", lambda self: "slow worker 1")
    shown = []

    class Watched(Line):
        def __init__(self, label, target, note):
            super().__init__(label, target, note)
            self.watched = note

        def add(self, record):
            shown.append(self.watched())
            super().add(record)

    monkeypatch.setattr(sys.modules["cutplane.estimators._fit"], "Line", Watched)
    LinearSVC(executor=client, verbose=1, **SETTINGS).fit(data)
    assert set(shown) == {"slow worker 1"}


def test_workers_that_stand_still_when_asked_for_versions(client, data, monkeypatch):
    monkeypatch.setattr(workers, "_facts", _slow_facts)
    with pytest.raises(ClusterError, match=r"did not tell their versions within 1 s"):
        LinearSVC(executor=DaskCluster(client, timeout=1.0)).fit(data)


def _slow_facts():
    if threading.current_thread() is not threading.main_thread():
        time.sleep(2.0)
    return {}
