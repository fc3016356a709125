"""Certificates, traces and results as users see them."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from cutplane.result import Certificate, Iteration, SolveResult, Status
from cutplane.solvers import BundleSolver, FixedPosition, StopRule


@pytest.mark.parametrize(
    ("primal", "dual", "gap", "relative"),
    [
        (4.0, 3.0, 1.0, 0.25),
        (2.0, 2.0, 0.0, 0.0),
        (0.0, 0.0, 0.0, 0.0),
        (1.0, 1.0 + 1e-16, 0.0, 0.0),
        (1.0, 1.5, 0.0, 0.0),  # rounding never makes a gap negative
        (2.0, 0.0, 2.0, 1.0),
    ],
)
def test_gap(primal, dual, gap, relative):
    certificate = Certificate(primal, dual)
    assert certificate.gap == pytest.approx(gap)
    assert certificate.relative_gap == pytest.approx(relative)
    record = Iteration(1, primal, dual, trial=9.0, step=1.0, cuts=1, seconds=0.1)
    assert (record.gap, record.relative_gap) == (certificate.gap, certificate.relative_gap)


def test_certificate_in_words():
    text = str(Certificate(4.0, 3.0))
    for part in ("primal 4", "dual 3", "1.00e+00", "25 %"):
        assert part in text
    assert Certificate(4.0, 3.0).kind == "exact"


def test_every_status_has_a_reason():
    reasons = [status.reason for status in Status]
    assert all(reasons)
    assert len(set(reasons)) == len(reasons)
    assert len({status.value for status in Status}) == len(list(Status))


@pytest.mark.parametrize("kind", [Certificate, Iteration, SolveResult, StopRule])
def test_settings_and_results_are_frozen(kind):
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen


@pytest.fixture(scope="module")
def result(case, make_problem):
    oracle = make_problem(case, seed=1).oracle()
    return BundleSolver(oracle, 5.0, StopRule(relative=1e-3), FixedPosition(0.1)).run()


def test_as_dict_is_json(result):
    read = json.loads(json.dumps(result.as_dict()))
    assert read["status"] == "converged"
    assert read["n_iter"] == result.n_iter
    assert read["gap"] == result.certificate.gap
    assert read["primal"] - read["dual"] == pytest.approx(read["gap"])
    assert read["timings"]["total"] >= sum(v for k, v in read["timings"].items() if k != "total")


def test_columns(result):
    np.testing.assert_array_equal(result.column("number"), np.arange(1, result.n_iter + 1))
    gaps = result.column("primal") - result.column("dual")
    np.testing.assert_allclose(result.column("gap"), np.maximum(gaps, 0.0))
    assert np.all(np.diff(result.column("seconds")) >= 0.0)
    with pytest.raises(AttributeError):
        result.column("nonsense")


def test_numbers_are_plain(result):
    """They are Python's numbers, not numpy's, so they print and pickle as such."""
    assert type(result.bias) is float
    assert type(result.certificate.primal) is float
    assert type(result.certificate.dual) is float
    assert type(result.n_iter) is int
    for field in dataclasses.fields(Iteration):
        assert type(getattr(result.trace[-1], field.name)) in (int, float, str)
