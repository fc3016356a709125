"""The same bits for any number of threads; fits side by side, after a fork, in workers."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
import scipy.sparse
from svc_reference import assert_certified, quiet_fit, results, run_script

import cutplane.data.blocks
import cutplane.exec
from cutplane import LinearSVC

VARIANTS = {
    "hinge": {},
    "no bias": {"fit_intercept": False},
    "cpa": {"solver": "cpa"},
    "squared_hinge": {"loss": "squared_hinge"},
    "logistic": {"loss": "logistic"},
    "crammer_singer": {"multi_class": "crammer_singer"},
}
LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "CSR": scipy.sparse.csr_array,
    "CSR float32": lambda X: scipy.sparse.csr_array(X.astype(np.float32)),
}


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS)
def variant(request):
    return request.param


@pytest.fixture
def small_blocks(monkeypatch):
    """Cut even small data into many blocks, and use threads for them."""
    monkeypatch.setattr(cutplane.data.blocks, "BLOCK_NUMBERS", 1000)
    monkeypatch.setattr(cutplane.data.blocks, "BLOCK_NUMBERS_PER_WEIGHT", 1)
    monkeypatch.setattr(cutplane.exec, "NUMBERS_PER_THREAD", 1)


class Pools:
    """Counts the pools that fits have made, so that a test knows threads were at work."""

    def __init__(self, monkeypatch) -> None:
        self.sizes = []
        original = cutplane.exec.ThreadExecutor.__init__

        def counted(executor, threads):
            self.sizes.append(threads)
            original(executor, threads)

        monkeypatch.setattr(cutplane.exec.ThreadExecutor, "__init__", counted)


def bits(model: LinearSVC) -> tuple:
    """All that a fit has computed."""
    return (
        model.coef_.tobytes(),
        model.intercept_.tobytes(),
        [(r.primal, r.dual, r.step) for result in results(model) for r in result.trace],
        model.certificate_,
    )


# -- the same bits --------------------------------------------------------------------


CASES = {
    **{name: (variant, LAYOUTS["C"]) for name, variant in VARIANTS.items()},
    **{f"hinge {name}": ({}, layout) for name, layout in LAYOUTS.items()},
    **{
        f"crammer_singer {name}": (VARIANTS["crammer_singer"], layout)
        for name, layout in LAYOUTS.items()
    },
}


@pytest.mark.parametrize(("variant", "layout"), CASES.values(), ids=CASES)
def test_the_same_bits_for_any_number_of_threads(small_blocks, monkeypatch, iris, variant, layout):
    rng = np.random.default_rng(0)
    X = np.repeat(iris[0], 10, axis=0) + 0.1 * rng.normal(size=(1500, 4))
    y = iris[1].repeat(10)
    pools = Pools(monkeypatch)
    models = [
        LinearSVC(n_jobs=jobs, tol=1e-3, **variant).fit(layout(X), y) for jobs in (1, 2, 8, None)
    ]
    assert pools.sizes[:2] == [2, 8]
    assert len({repr(bits(model)) for model in models}) == 1
    scores = [
        model.set_params(n_jobs=k).decision_function(layout(X)) for k, model in enumerate(models, 1)
    ]
    for other in scores[1:]:
        assert other.tobytes() == scores[0].tobytes()
    assert_certified(models[1], np.asarray(layout(X) @ np.eye(4), dtype=float), y)


@pytest.mark.parametrize("variant", [{}, {"loss": "logistic"}], ids=["hinge", "logistic"])
def test_the_same_bits_on_large_data(monkeypatch, variant):
    """With the package's own block sizes: 1,200,000 numbers are six blocks."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40_000, 30))
    y = X @ rng.normal(size=30) + rng.normal(size=len(X)) > 1.0
    pools = Pools(monkeypatch)
    models = [LinearSVC(C=1e-3, n_jobs=jobs, **variant).fit(X, y) for jobs in (1, 2, 8)]
    assert len(pools.sizes) == 2
    assert len({repr(bits(model)) for model in models}) == 1


def test_dear_rows_are_worth_threads(monkeypatch):
    """A row of the logistic loss takes as long as tens of stored numbers."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60_000, 5))
    y = X @ rng.normal(size=5) + rng.normal(size=len(X)) > 0.0
    pools = Pools(monkeypatch)
    LinearSVC(C=1e-3, n_jobs=2).fit(X, y)
    assert not pools.sizes
    models = [LinearSVC(C=1e-3, loss="logistic", n_jobs=jobs).fit(X, y) for jobs in (1, 2)]
    assert pools.sizes == [2]
    assert bits(models[0]) == bits(models[1])


@pytest.mark.parametrize("features", [40_000])
def test_the_same_bits_with_many_features(monkeypatch, features):
    """Long vectors are worked on in chunks of columns."""
    X = scipy.sparse.random_array((300, features), density=0.01, rng=0, format="csr")
    y = np.asarray(X.sum(axis=1)).ravel() > np.median(np.asarray(X.sum(axis=1)))
    monkeypatch.setattr(cutplane.exec, "NUMBERS_PER_THREAD", 1000)
    models = [LinearSVC(n_jobs=jobs).fit(X, y) for jobs in (1, 2, 8)]
    assert len({repr(bits(model)) for model in models}) == 1


def test_repeated_fits_are_identical(cancer, variant):
    models = [LinearSVC(**variant).fit(*cancer) for _ in range(3)]
    assert len({repr(bits(model)) for model in models}) == 1


@pytest.mark.parametrize("chunks", [1, 3, 17])
def test_blocks_change_nothing_but_rounding(monkeypatch, cancer, variant, chunks):
    X, y = cancer
    whole = quiet_fit(LinearSVC(tol=1e-9, **variant), X, y)
    monkeypatch.setattr(cutplane.data.blocks, "BLOCK_NUMBERS", X.size // chunks)
    monkeypatch.setattr(cutplane.data.blocks, "BLOCK_NUMBERS_PER_WEIGHT", 1)
    parts = quiet_fit(LinearSVC(tol=1e-9, **variant), X, y)
    assert parts.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-8)
    assert_certified(parts, X, y)


# -- side by side ---------------------------------------------------------------------


def test_fits_in_several_threads_at_once(small_blocks, cancer, noisy, iris):
    """No shared state: every fit gives what it gives alone."""
    jobs = [(data, variant) for data in (cancer, noisy, iris) for variant in VARIANTS.values()]
    alone = [bits(LinearSVC(n_jobs=2, **variant).fit(*data)) for data, variant in jobs]
    with ThreadPoolExecutor(4) as pool:
        together = list(
            pool.map(lambda job: bits(LinearSVC(n_jobs=2, **job[1]).fit(*job[0])), jobs * 2)
        )
    assert together == alone * 2


def test_one_model_predicts_in_several_threads(small_blocks, cancer):
    X, y = cancer
    model = LinearSVC(n_jobs=2).fit(X, y)
    expected = model.decision_function(X)
    with ThreadPoolExecutor(4) as pool:
        for scores in pool.map(lambda _: model.decision_function(X), range(20)):
            np.testing.assert_array_equal(scores, expected)


def test_no_thread_outlives_a_fit(small_blocks, cancer):
    LinearSVC(n_jobs=3).fit(*cancer)
    assert not [t.name for t in threading.enumerate() if t.name.startswith("cutplane")]
    with pytest.raises(ZeroDivisionError):
        LinearSVC(n_jobs=3, callback=lambda record: 1 / 0).fit(*cancer)
    assert not [t.name for t in threading.enumerate() if t.name.startswith("cutplane")]


# -- other processes ------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fit_in_a_forked_child_after_a_fit_in_the_parent():
    script = """
        import multiprocessing, sys
        import numpy as np
        from cutplane import LinearSVC
        rng = np.random.default_rng(0)
        X = rng.normal(size=(20_000, 30))
        y = X[:, 0] + rng.normal(size=len(X)) > 0

        def fit(queue=None):
            model = LinearSVC(C=1e-3, n_jobs=2).fit(X, y)
            return model.coef_ if queue is None else queue.put(model.coef_)

        parent = fit()
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        children = [context.Process(target=fit, args=(queue,)) for _ in range(2)]
        for child in children:
            child.start()
        for child in children:
            np.testing.assert_array_equal(queue.get(timeout=60), parent)
        for child in children:
            child.join(60)
            assert child.exitcode == 0
        np.testing.assert_array_equal(fit(), parent)
    """
    run_script(script)


def fit_in_worker(X, y, jobs):
    """Runs in a worker of joblib; tells also how many threads a default fit would take."""
    from cutplane.exec import available_threads

    return LinearSVC(n_jobs=jobs).fit(X, y).coef_, available_threads()


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_fits_inside_joblib(cancer, backend):
    X, y = cancer
    expected = LinearSVC().fit(X, y).coef_
    outcomes = joblib.Parallel(n_jobs=2, backend=backend)(
        joblib.delayed(fit_in_worker)(X, y, jobs) for jobs in (None, 1, 2)
    )
    for coef, threads in outcomes:
        np.testing.assert_array_equal(coef, expected)
        assert threads == 1  # the cores are taken by joblib's workers


def test_joblib_hands_out_read_only_memory_maps():
    """loky maps large arrays into its workers, read-only."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10))  # 1.6 MB: above joblib's threshold
    y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
    expected = LinearSVC(C=1e-3).fit(X, y).coef_
    (coef,) = joblib.Parallel(n_jobs=2, backend="loky")([joblib.delayed(_fit_mapped)(X, y)])
    np.testing.assert_array_equal(coef, expected)


def _fit_mapped(X, y):
    assert isinstance(X, np.memmap)
    assert not X.flags.writeable
    return LinearSVC(C=1e-3).fit(X, y).coef_
