"""The same certificate, to the last bit: serial, threads, memory-mapped, and on a Dask cluster."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from cutplane import (
    LinearSVC,
    LinearSVR,
    MeasureSVC,
    OrdinalSVC,
    RankSVM,
    open_dataset,
    write_dataset,
)
from cutplane.data import as_blocks
from cutplane.losses import LOSSES

distributed = pytest.importorskip("distributed")

ROWS, FEATURES = 30_000, 40
REGRESSION = {"epsilon": 0.1, "quantile": 0.3, "max_iter": 6}
CASES = {
    **{
        name: LinearSVR(loss=name, **REGRESSION)
        if loss.regression
        else LinearSVC(loss=name, max_iter=None if name in ("hinge", "logistic") else 6)
        for name, loss in LOSSES.items()
    },
    "no bias": LinearSVC(fit_intercept=False),
    "regularised bias": LinearSVC(intercept_scaling=1.0),
    "cpa": LinearSVC(solver="cpa", max_iter=12),
    "logistic, no bias": LinearSVC(loss="logistic", fit_intercept=False, max_iter=6),
    "three classes": LinearSVC(class_weight="balanced", max_iter=6),
    "crammer_singer": LinearSVC(multi_class="crammer_singer", max_iter=6),
    "multinomial": LinearSVC(multi_class="multinomial", loss="logistic", max_iter=6),
    "roc_auc": MeasureSVC("roc_auc"),
    "f1": MeasureSVC("f1", C=100.0, max_iter=6),
    "bounds": LinearSVC(bounds=(-0.1, 0.2)),
    "ranking": RankSVM(C=100.0),
    "ordinal": OrdinalSVC(C=100.0),
}
THREE = ("three classes", "crammer_singer", "multinomial", "ranking", "ordinal")


@pytest.fixture(scope="module")
def client():
    """Two worker processes, as on two machines."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=True
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Sparse rows with two and with three labels, as data sets on disk."""
    rng = np.random.default_rng(7)
    X = scipy.sparse.random_array((ROWS, FEATURES), density=0.6, format="csr", rng=rng)
    X.data = rng.normal(size=X.nnz)
    signal = X @ rng.normal(size=FEATURES) + rng.normal(size=ROWS)
    folder = tmp_path_factory.mktemp("data")
    assert len(as_blocks(X).blocks) >= 4  # both workers get some, and sums have an order
    return {
        classes: write_dataset(folder / f"{classes}.cut", [(X, np.digitize(signal, edges))]).path
        for classes, edges in ((2, [0.3]), (3, [-0.5, 0.8]))
    }


def outcome(model, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(*data)
    results = model.results_
    return (
        [(r.certificate, r.n_iter, r.status) for r in results],
        model.coef_.tobytes(),
        model.intercept_.tobytes() if hasattr(model, "intercept_") else b"",
        [[(i.primal, i.dual, i.trial, i.step) for i in r.trace] for r in results],
    )


@pytest.fixture(scope="module")
def serial(folders):
    """Outcomes of one thread in memory, computed once for each case."""
    known = {}

    def find(case):
        if case not in known:
            dataset = open_dataset(folders[3 if case in THREE else 2])
            known[case] = outcome(with_solver(case, n_jobs=1), dataset.rows(), dataset.y)
        return known[case]

    return find


def with_solver(case, **settings):
    from sklearn.base import clone

    model = clone(CASES[case]).set_params(**settings)
    return model.set_params(solver="ocas" if model.solver == "auto" else model.solver)


@pytest.mark.parametrize("where", ["threads", "memory-mapped", "dask", "dask, from memory"])
def test_the_same_bits_wherever_it_runs(where, serial, folders, request):
    """All cases in one test, so that tests in parallel do not start a cluster each."""
    runs = {"threads": {"n_jobs": 2}, "memory-mapped": {"n_jobs": 1}}.get(where)
    if runs is None:
        runs = {"executor": request.getfixturevalue("client")}
    cases = ("hinge", "ordinal") if where == "dask, from memory" else CASES
    for case in cases:
        dataset = open_dataset(folders[3 if case in THREE else 2])
        data = (dataset,) if where in ("memory-mapped", "dask") else (dataset.rows(), dataset.y)
        found = outcome(with_solver(case, **runs), *data)
        assert found == serial(case), f"{case} differs"


def test_rounds_per_iteration(client, folders):
    """Beside those at the beginning and the end of a fit."""
    dataset = open_dataset(folders[2])
    for case, most in (
        ("no bias", 6.0),
        ("regularised bias", 6.0),
        ("hinge", 11.0),
        ("squared_hinge", 13.0),
        ("logistic", 11.0),
        ("logistic, no bias", 6.0),
    ):
        rounds = {}
        for count in (4, 12):
            model = with_solver(case, executor=client, max_iter=count, tol=1e-9)
            outcome(model, dataset)
            rounds[count] = model.results_[0].timings["rounds"]
        assert rounds[12] - rounds[4] <= 8.0 * most, case
