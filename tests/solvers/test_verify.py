"""At every ending objective and bound are proved, and replaced, and no run passes its limits."""

from __future__ import annotations

import dataclasses
import time
from fractions import Fraction

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from cutplane import LinearSVC, load_model, save_model
from cutplane.cli.train import describe_certificate
from cutplane.data import as_blocks
from cutplane.exec import SerialExecutor
from cutplane.objective import LinearOracle, ListwiseScoreRisk
from cutplane.result import Certificate, Status
from cutplane.risks.measures import TableRisk
from cutplane.risks.pairs import PairRisk
from cutplane.solvers import (
    AdaptivePosition,
    AutoSolver,
    BundleSolver,
    CoordinateSolver,
    FixedPosition,
    NewtonSolver,
    StopRule,
    choose,
)
from cutplane.solvers import base as base
from cutplane.solvers.decomposition.problem import certificate_of
from cutplane.solvers.stochastic import StochasticSolver


def rng():
    return np.random.default_rng(0)


SOLVERS = {
    "ocas": lambda o, C, s, f=None: BundleSolver(o, C, s, FixedPosition(0.1), f),
    "cpa": lambda o, C, s, f=None: BundleSolver(o, C, s, None, f),
    "dcd": lambda o, C, s, f=None: CoordinateSolver(o, C, s, rng(), f),
    "newton": lambda o, C, s, f=None: NewtonSolver(o, C, s, f),
    "auto": lambda o, C, s, f=None: AutoSolver(o, C, s, rng(), f),
    "sgd": lambda o, C, s, f=None: StochasticSolver(o, C, s, "sgd", rng(), f),
}


@pytest.fixture(params=SOLVERS)
def make(request, monkeypatch):
    monkeypatch.setattr(choose, "SMALL", 0)  # let the solver that chooses have a choice
    return SOLVERS[request.param]


@pytest.fixture(params=[False, True], ids=["no bias", "free bias"])
def problem(request, all_cases, make_problem):
    return make_problem(all_cases["hinge"], seed=1, rows=200, free_bias=request.param)


def exact_objective(problem, w, bias, C) -> Fraction:
    """½|w|² + C times the mean hinge loss in rational numbers."""
    w, bias = [Fraction(v) for v in w.tolist()], Fraction(float(bias))
    total = Fraction(0)
    for x, y, weight in zip(problem.X.tolist(), problem.labels, problem.weights, strict=True):
        score = sum((Fraction(a) * b for a, b in zip(x, w, strict=True)), bias)
        total += Fraction(weight) * max(Fraction(0), 1 - int(y) * score)
    mean = total / Fraction(float(problem.weights.sum()))
    return sum(v * v for v in w) / 2 + Fraction(C) * mean


def assert_proved(problem, result, C, optimum):
    certificate = result.certificate
    exact = exact_objective(problem, result.w, result.bias, C)
    assert certificate.primal >= exact
    assert certificate.primal == pytest.approx(float(exact), rel=1e-9)
    assert certificate.dual <= optimum * (1.0 + 1e-12)


@pytest.mark.parametrize("ending", ["converged", "max_iter", "time", "callback", "interrupt"])
def test_every_ending_is_proved(make, problem, ending, monkeypatch):
    """A solver whose own objective is far too low cannot bring it into the certificate."""
    C = 50.0
    oracle = problem.oracle()
    optimum = BundleSolver(oracle, C, StopRule(relative=1e-9), AdaptivePosition()).run()
    keep = base.IterativeSolver._keep

    def keep_too_low(solver, point):
        keep(solver, point)
        solver._best = dataclasses.replace(solver._best, primal=0.5 * solver._best.primal)

    monkeypatch.setattr(base.IterativeSolver, "_keep", keep_too_low)

    def observer(record):
        if record.number == 3 and ending == "interrupt":
            raise KeyboardInterrupt
        return record.number == 3 and ending == "callback"

    rules = {"relative": 0.2 if ending == "converged" else 0.0, "max_iter": 60}
    if ending == "max_iter":
        rules["max_iter"] = 2
    if ending == "time":
        rules["time_limit"] = 0.0
    result = make(oracle, C, StopRule(**rules), observer).run()
    assert_proved(problem, result, C, optimum.certificate.primal)
    assert result.n_iter <= rules["max_iter"]
    if result.status is Status.CONVERGED:
        assert result.certificate.relative_gap <= rules["relative"]


def test_a_bound_that_is_not_proved_is_not_reported(problem):
    """Coordinate descent takes its bound from a w that it brings up to date row by row."""
    C = 50.0
    oracle = problem.oracle()
    optimum = BundleSolver(oracle, C, StopRule(relative=1e-9), AdaptivePosition()).run()

    def spoil(record):
        solver.dual = 2.0 * optimum.certificate.primal

    solver = CoordinateSolver(oracle, C, StopRule(relative=1e-9, max_iter=5), rng(), spoil)
    assert_proved(problem, solver.run(), C, optimum.certificate.primal)


@pytest.mark.parametrize("max_iter", [1, 4, 7, 500])
def test_proofs_that_fail_end_the_run_within_its_limits(make, problem, monkeypatch, max_iter):
    prove = LinearOracle.prove

    def higher(oracle, *arguments):
        proof = prove(oracle, *arguments)
        return dataclasses.replace(proof, risk=1.5 * proof.risk)

    monkeypatch.setattr(LinearOracle, "prove", higher)
    stop = StopRule(relative=0.05, max_iter=max_iter)
    result = make(problem.oracle(), 5.0, stop).run()
    assert result.n_iter <= max_iter
    assert result.status in (Status.MAX_ITER, Status.NUMERICALLY_LIMITED)
    assert result.certificate.relative_gap > 0.05


def test_proofs_that_fail_do_not_pass_the_time_limit(make, problem, monkeypatch):
    prove = LinearOracle.prove

    def higher(oracle, *arguments):
        proof = prove(oracle, *arguments)
        return dataclasses.replace(proof, risk=1.5 * proof.risk)

    monkeypatch.setattr(LinearOracle, "prove", higher)
    monkeypatch.setattr(base, "MOST_FAILURES", 10**9)
    begin = time.perf_counter()
    stop = StopRule(relative=0.05, max_iter=10**6, time_limit=0.3)
    result = make(problem.oracle(), 5.0, stop).run()
    assert result.status in (Status.TIME_LIMIT, Status.NUMERICALLY_LIMITED)
    assert time.perf_counter() - begin < 60.0  # which is far from 10**6 iterations


def test_the_callback_ends_a_run_whose_proofs_fail(make, problem, monkeypatch):
    monkeypatch.setattr(base.IterativeSolver, "_verified", lambda solver: False)
    seen = []

    def observer(record):
        seen.append(record)
        return len(seen) == 4

    result = make(problem.oracle(), 5.0, StopRule(relative=0.9, max_iter=500), observer).run()
    assert result.status is Status.STOPPED
    assert result.n_iter == 4


@pytest.mark.parametrize("times", [1, 2])
def test_a_second_interrupt_ends_the_proof(make, problem, monkeypatch, times):
    """One interrupt ends the run. Another one during the proof ends the fit without a result."""
    prove, left = LinearOracle.prove, [times]

    def interrupted(oracle, *arguments):
        left[0] -= 1
        if left[0] >= 0:
            raise KeyboardInterrupt
        return prove(oracle, *arguments)

    monkeypatch.setattr(LinearOracle, "prove", interrupted)
    solver = make(problem.oracle(), 5.0, StopRule(relative=0.5, max_iter=50))
    if times == 1:
        result = solver.run()
        assert result.status is Status.INTERRUPTED
        assert_proved(problem, result, 5.0, np.inf)
    else:
        with pytest.raises(KeyboardInterrupt):
            solver.run()


@pytest.fixture(params=[np.nan, np.inf], ids=str)
def no_proof(request, monkeypatch):
    """No objective can be proved: what comes out is not finite."""
    prove = LinearOracle.prove

    def broken(self, *arguments):
        return dataclasses.replace(prove(self, *arguments), risk=request.param)

    monkeypatch.setattr(LinearOracle, "prove", broken)


def assert_withheld(result):
    certificate = result.certificate
    assert result.status is Status.NUMERICALLY_LIMITED
    assert (certificate.primal, certificate.dual) == (np.inf, -np.inf)
    assert (certificate.kind, certificate.gap, certificate.relative_gap) == (
        "withheld",
        np.inf,
        np.inf,
    )
    assert np.all(np.isfinite(result.w)) and np.isfinite(result.bias)


def test_what_is_not_finite_is_no_certificate(make, problem, no_proof):
    assert_withheld(make(problem.oracle(), 5.0, StopRule(relative=1e-3)).run())


@pytest.mark.parametrize("solver", ["auto", "ocas", "dcd", "sgd"])
def test_a_model_without_a_certificate(no_proof, tmp_path, solver):
    """The user is told, and the model predicts, is stored and is described."""
    generator = rng()
    X = generator.normal(size=(40, 3))
    y = X[:, 0] + 0.3 * generator.normal(size=40) > 0
    model = LinearSVC(solver=solver, random_state=0)
    with pytest.warns(ConvergenceWarning, match="from the optimum is not known"):
        model.fit(X, y)
    assert_withheld(model.results_[0])
    assert np.mean(model.predict(X) == y) > 0.8
    save_model(model, tmp_path / "m")
    assert load_model(tmp_path / "m").certificate_ == model.certificate_
    said = describe_certificate(model.certificate_)
    assert said.startswith("objective not known, without a certificate")


@pytest.mark.parametrize("primal, dual", [(np.nan, 0.0), (1.0, np.nan), (np.inf, 0.0)])
def test_kernel_machines_keep_what_is_finite(primal, dual):
    found = certificate_of(primal, dual, "exact")
    known = primal if np.isfinite(primal) else np.inf
    assert found == Certificate(known, -np.inf, "withheld")
    assert found.gap == found.relative_gap == np.inf


def test_what_is_proved_costs_one_pass(problem, monkeypatch):
    """Scores on usual scales need no more digits; the data are read once."""
    names = []
    oracle = problem.oracle()
    for name in ("scores", "bounded", "gradient"):
        original = getattr(oracle._products, name)

        def counted(*arguments, name=name, original=original, **options):
            names.append((name, len(arguments)))
            return original(*arguments, **options)

        monkeypatch.setattr(oracle._products, name, counted)
    solver = BundleSolver(oracle, 5.0, StopRule(relative=1e-3), AdaptivePosition())
    result = solver.run()
    assert result.status is Status.CONVERGED
    # w, scores and errors: those of twice the digits would go to three arrays.
    assert [name for name in names if name[0] == "bounded"] == [("bounded", 3)]


@pytest.mark.parametrize("risk", ["roc", "f1"])
def test_risks_of_all_scores_are_proved(risk):
    """Against the definition, in rational numbers. Two columns nearly cancel each other."""
    generator = np.random.default_rng(2)
    X = generator.normal(size=(40, 4))
    X = np.column_stack([X, 1e7 * X[:, 0] + 1.0, 1e7 * X[:, 0]])
    labels = np.where(X[:, 0] + generator.normal(size=40) > 0, 1.0, -1.0)
    made = PairRisk(labels) if risk == "roc" else TableRisk(labels, "f1")
    score_risk = ListwiseScoreRisk(made, SerialExecutor())
    C = 1e6
    oracle = LinearOracle(as_blocks(X), score_risk)
    result = BundleSolver(oracle, C, StopRule(relative=1e-3, max_iter=80), AdaptivePosition()).run()
    w = [Fraction(v) for v in result.w.tolist()]
    scores = [sum(Fraction(a) * b for a, b in zip(x, w, strict=True)) for x in X.tolist()]
    positive = [s for s, y in zip(scores, labels, strict=True) if y > 0]
    negative = [s for s, y in zip(scores, labels, strict=True) if y < 0]
    if risk == "roc":
        losses = [max(Fraction(0), 1 - (a - b)) for a in positive for b in negative]
        value = sum(losses) / len(losses)
    else:
        value = exact_f1(positive, negative)
    exact = sum(v * v for v in w) / 2 + Fraction(C) * value
    assert result.certificate.primal >= exact
    # The sums over all rows in float64 are off by no more than this times C.
    assert result.certificate.primal - float(exact) <= 1e-13 * C * (
        1.0 + float(max(map(abs, scores)))
    )


def exact_f1(positive, negative) -> Fraction:
    positive, negative = sorted(positive, reverse=True), sorted(negative, reverse=True)
    p, m = len(positive), len(positive) + len(negative)
    return max(
        1 - Fraction(2 * a, p + a + b) + (sum(negative[:b]) - sum(positive[a:])) / m
        for a in range(p + 1)
        for b in range(len(negative) + 1)
    )
