"""The same bits for any number of threads; fits side by side, after a fork, in workers."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
import scipy.sparse
from ranking_reference import CASES, FEW_CASES, MEASURE_CASES, RANK_CASES, case_name, make_data
from svc_reference import run_script

import cutplane.data.blocks
import cutplane.exec
import cutplane.objective.score_risk
import cutplane.risks.order
import cutplane.risks.pair_counter

JOBS = (1, 2, 3)


@pytest.fixture
def small_pieces(monkeypatch):
    """Divide even small data into many pieces of work, and use threads for them."""
    monkeypatch.setattr(cutplane.data.blocks, "BLOCK_NUMBERS", 1000)
    monkeypatch.setattr(cutplane.data.blocks, "BLOCK_NUMBERS_PER_WEIGHT", 1)
    monkeypatch.setattr(cutplane.exec, "NUMBERS_PER_THREAD", 1)
    monkeypatch.setattr(cutplane.objective.score_risk, "CHUNK_NUMBERS", 100)
    monkeypatch.setattr(cutplane.objective.score_risk, "WORTH_THREADS", 1)
    monkeypatch.setattr(cutplane.risks.order, "_FEW", 50)
    monkeypatch.setattr(cutplane.risks.order, "_ROWS_PER_PART", 100)
    monkeypatch.setattr(cutplane.risks.pair_counter, "_PIECE", 128)
    monkeypatch.setattr(cutplane.risks.pair_counter, "_SMALL", 12)
    monkeypatch.setattr(cutplane.risks.pair_counter, "_LEAF", 8)
    monkeypatch.setattr(cutplane.risks.pair_counter, "_MANY_PIECE", 64)


@pytest.fixture
def pools(monkeypatch):
    """Sizes of the pools that fits have made, so that a test knows threads were at work."""
    sizes = []
    original = cutplane.exec.ThreadExecutor.__init__

    def counted(executor, threads):
        sizes.append(threads)
        original(executor, threads)

    monkeypatch.setattr(cutplane.exec.ThreadExecutor, "__init__", counted)
    return sizes


def bits(model) -> tuple:
    """All that a fit has computed."""
    return (
        model.coef_.tobytes(),
        model.intercept_.tobytes(),
        np.asarray(getattr(model, "thresholds_", 0.0)).tobytes(),
        tuple((r.primal, r.dual, r.trial, r.step) for r in model.results_[0].trace),
        (model.certificate_.primal, model.certificate_.dual),
    )


@pytest.mark.parametrize(
    ("case", "share", "layout"),
    [
        *((case, 0.3, np.asarray) for case in CASES),
        *((case, 0.05, scipy.sparse.csr_array) for case in MEASURE_CASES),
        *((case, 0.3, scipy.sparse.csr_array) for case in RANK_CASES),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_same_bits_for_any_number_of_threads(small_pieces, pools, case, share, layout):
    data = make_data(600, queries=30, share=share)
    models = [case.fit(data, layout(data.X), C=1e3, n_jobs=jobs) for jobs in JOBS]
    assert {2, 3} <= set(pools)
    assert len({bits(model) for model in models}) == 1
    case.assert_certified(models[0], data)
    scores = {
        model.set_params(n_jobs=jobs)._scores(data.X).tobytes()
        for model, jobs in zip(models, JOBS, strict=False)
    }
    assert len(scores) == 1


@pytest.mark.parametrize("case", FEW_CASES, ids=case_name)
def test_pieces_change_nothing_but_rounding(small_pieces, case):
    data = make_data(1000, queries=60)
    parts = case.fit(data, C=1e3, tol=1e-6)
    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            (cutplane.data.blocks, "BLOCK_NUMBERS"),
            (cutplane.objective.score_risk, "CHUNK_NUMBERS"),
            (cutplane.risks.pair_counter, "_PIECE"),
            (cutplane.risks.pair_counter, "_SMALL"),
            (cutplane.risks.order, "_FEW"),
        ):
            patch.setattr(module, name, 1 << 20)
        whole = case.fit(data, C=1e3, tol=1e-6)
    assert parts.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=2e-6)


@pytest.mark.parametrize("case", FEW_CASES[1:], ids=case_name)
def test_the_same_bits_on_large_data(case, pools, monkeypatch):
    """With the package's own sizes of pieces, and threads where they do not pay yet."""
    monkeypatch.setattr(cutplane.exec, "NUMBERS_PER_THREAD", 1 << 17)
    data = make_data(60_000, 12, queries=100)
    models = [case.fit(data, C=10.0, n_jobs=jobs, max_iter=15, tol=1e-2) for jobs in JOBS]
    assert {2, 3} <= set(pools)
    assert len({bits(model) for model in models}) == 1


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_repeated_fits_are_identical(case):
    data = make_data()
    assert len({bits(case.fit(data)) for _ in range(3)}) == 1
    model = case.make()
    less = {name: array[:150] for name, array in case.extra(data).items()}
    for _ in range(2):  # also by the same object, for other data in between
        model.fit(data.X[:150], case.y(data)[:150], **less)
        model.fit(data.X, case.y(data), **case.extra(data))
        assert bits(model) == bits(case.fit(data))


# -- side by side ---------------------------------------------------------------------


def test_fits_in_several_threads_at_once(small_pieces):
    """No shared state: every fit gives what it gives alone."""
    jobs = [(case, make_data(200 + 10 * k)) for k, case in enumerate(CASES)]
    alone = [bits(case.fit(data, n_jobs=2)) for case, data in jobs]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda job: bits(job[0].fit(job[1], n_jobs=2)), jobs))
    assert together == alone


@pytest.mark.parametrize("case", FEW_CASES, ids=case_name)
def test_one_model_predicts_in_several_threads(small_pieces, case):
    data = make_data()
    model = case.fit(data, n_jobs=2)
    expected = model.predict(data.X)
    with ThreadPoolExecutor(4) as pool:
        for predicted in pool.map(lambda _: model.predict(data.X), range(8)):
            np.testing.assert_array_equal(predicted, expected)


def test_no_thread_outlives_a_fit(small_pieces):
    data = make_data()
    for case in FEW_CASES:
        case.fit(data, n_jobs=3)
        with pytest.raises(ZeroDivisionError):
            case.fit(data, n_jobs=3, callback=lambda record: 1 / 0)
    assert not [t.name for t in threading.enumerate() if t.name.startswith("cutplane")]


# -- other processes ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fit_in_a_forked_child_after_a_fit_in_the_parent():
    script = """
        import multiprocessing
        import numpy as np
        from cutplane import MeasureSVC
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40_000, 10))
        y = X[:, 0] + rng.normal(size=len(X)) > 1

        def fit(queue=None):
            coef = MeasureSVC("roc_auc", C=10.0, n_jobs=2, tol=1e-2).fit(X, y).coef_
            return coef if queue is None else queue.put(coef)

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


def fit_all(data):
    return [bits(case.fit(data)) for case in FEW_CASES]


@pytest.mark.parametrize("backend", [pytest.param("loky", marks=pytest.mark.slow), "threading"])
def test_fits_inside_joblib(backend):
    data = make_data()
    outcomes = joblib.Parallel(n_jobs=2, backend=backend)(
        joblib.delayed(fit_all)(data) for _ in range(2)
    )
    assert outcomes == [fit_all(data)] * 2
