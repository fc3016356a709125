"""SampledCutSVC by ascent on blocks of rows, against an independent QP and other methods."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from test_sampled_svc import box_qp, checkers, objective

from cutplane import SampledCutSVC, Status
from cutplane.solvers.row_ascent import RowAscentOracle


@pytest.mark.parametrize("C", [0.3, 20.0])
@pytest.mark.parametrize("size", [1, 40, 150])
def test_blocks_of_any_size_solve_the_qp(C, size):
    X, y = checkers(150)
    weights = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    best = box_qp(rbf_kernel(X, gamma=3.0), y, C * weights)
    options = {"gamma": 3.0, "method": "blocks", "sample_size": size, "tol": 1e-6}
    model = SampledCutSVC(C=C, **options).fit(X, y, sample_weight=weights)
    certificate = model.certificate_
    assert certificate.kind == "exact" and certificate.relative_gap <= 1e-6
    assert certificate.dual <= best * (1 + 1e-8)
    assert best <= certificate.primal * (1 + 1e-8)
    assert certificate.primal == pytest.approx(objective(model, X, y, weights), rel=1e-9)
    assert not np.any(weights[model.support_] == 0.0)
    assert model.sampling_bound() == certificate.gap


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_every_kernel_has_a_proof(kernel):
    X, y = checkers(700)
    X = np.concatenate([X, X**2], axis=1) / 16.0
    options = {"kernel": kernel, "gamma": 1.0, "coef0": 1.0, "sample_size": 100}
    model = SampledCutSVC(method="blocks", random_state=0, **options).fit(X, y)
    other = SampledCutSVC(method="exact", tol=1e-5, **options).fit(X, y).certificate_
    found = model.certificate_
    assert found.kind == "exact" and found.relative_gap <= 1e-3
    assert found.dual <= other.primal and other.dual <= found.primal


def test_single_precision_is_proved_in_double_precision():
    X, y = checkers(5000)  # more rows than start_rows: this is the default
    rough = SampledCutSVC(gamma=10.0, random_state=0).fit(X, y)
    fine = SampledCutSVC(gamma=10.0, random_state=0, tol=5e-5).fit(X, y)
    for model, tol in ((rough, 1e-3), (fine, 5e-5)):
        certificate = model.certificate_
        assert certificate.kind == "exact" and certificate.relative_gap <= tol
        assert certificate.primal == pytest.approx(objective(model, X, y), rel=1e-7)
    assert rough.certificate_.dual <= fine.certificate_.primal <= rough.certificate_.primal
    assert rough.score(X, y) > 0.97
    assert rough.n_basis_ < 0.5 * len(y)


def test_steps_that_are_off_do_not_spoil_the_certificate(monkeypatch):
    """The first proof fails, and ascent goes on from the true scores."""
    true, proof, calls, proofs = RowAscentOracle.scores, RowAscentOracle.bounded_scores, [], []

    def off(self, rows, coef):
        calls.append(len(rows))
        return true(self, rows, coef) * (1.0 if proofs else 1.02)

    def counted(self, coef):
        proofs.append(len(calls))
        return proof(self, coef)

    monkeypatch.setattr(RowAscentOracle, "scores", off)
    monkeypatch.setattr(RowAscentOracle, "bounded_scores", counted)
    X, y = checkers(600)
    best = SampledCutSVC(gamma=5.0, method="exact", tol=1e-5).fit(X, y).certificate_
    model = SampledCutSVC(gamma=5.0, method="blocks", sample_size=30, random_state=0).fit(X, y)
    certificate = model.certificate_
    assert len(proofs) > 1 and model.results_[0].status is Status.CONVERGED
    assert certificate.kind == "exact" and certificate.relative_gap <= 1e-3
    assert certificate.primal == pytest.approx(objective(model, X, y), rel=1e-7)
    assert certificate.dual <= best.primal and best.dual <= certificate.primal


def test_a_time_limit_leaves_an_estimate_and_other_ends_a_proof():
    X, y = checkers(3000)
    options = {"gamma": 10.0, "method": "blocks", "sample_size": 50, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        short = SampledCutSVC(time_limit=1e-9, **options).fit(X, y)
        few = SampledCutSVC(max_iter=25, **options).fit(X, y)
    assert short.certificate_.kind == "estimated" and short.n_iter_ == 1
    assert few.certificate_.kind == "exact" and few.n_iter_ == 25
    for model in (short, few):
        assert model.certificate_.primal == pytest.approx(objective(model, X, y), rel=1e-5)
    primals = [record.primal for record in few.results_[0].trace]
    duals = [record.dual for record in few.results_[0].trace]
    assert primals == sorted(primals, reverse=True) and duals == sorted(duals)


def test_seeds_and_threads():
    X, y = checkers(9000)  # enough for three threads
    models = []
    for seed, threads in ((0, 1), (0, 2), (0, 3), (1, 2)):
        model = SampledCutSVC(gamma=10.0, max_iter=12, random_state=seed, n_jobs=threads)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            models.append(model.fit(X, y))
    for other in models[1:3]:
        np.testing.assert_array_equal(models[0].support_, other.support_)
        np.testing.assert_array_equal(models[0].dual_coef_, other.dual_coef_)
        assert models[0].certificate_ == other.certificate_
    assert not np.array_equal(models[0].support_, models[3].support_)


def test_one_problem_per_class():
    X, _ = checkers(900)
    y = np.floor(X[:, 0]).clip(0, 2)
    model = SampledCutSVC(gamma=5.0, method="blocks", sample_size=100, random_state=0).fit(X, y)
    assert [c.kind for c in model.certificates_] == ["exact"] * 3
    assert model.score(X, y) > 0.95


def test_what_blocks_are_for():
    X, y = checkers(100)
    with pytest.raises(ValueError, match="method='blocks' is for multi_class='ovr'"):
        SampledCutSVC(method="blocks", multi_class="crammer_singer").fit(X, np.arange(100) % 3)
    model = SampledCutSVC(method="blocks", max_basis=20, gamma=3.0).fit(X, y)
    assert model.n_basis_ == 20 and model.basis_error_ > 0.0
