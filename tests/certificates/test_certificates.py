"""Every certificate must hold: random problems, extended precision, an outside solver.

A case is drawn from its name. By default some of each estimator run, ``-m slow`` runs 10,000;
``pytest tests/certificates --case SVC-17`` runs one and says all about it.

``problems`` draws cases and knows the estimators, ``objectives`` computes what they minimise in
extended precision, ``optimum`` asks an outside solver, ``checks`` compares, ``fits`` runs fits in
a process that can be killed.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

pytest.importorskip("cvxpy")
pytest.importorskip("clarabel")

import checks
import optimum
from fits import SECONDS, Fits
from problems import TABLE, case_of

EACH = 20
QUICK = [kind for kind in TABLE if kind != "LargeLinearSVC"]  # whose checks take seconds
# Cases beyond these that were wrong once.
ONCE_WRONG = [
    "LinearSVC-73",
    "LinearSVC-178",
    "linear_svc_path-27",
    "linear_svc_path-536",
    "LinearSVR-103",
    "LinearSVR-241",
    "LinearSVR-308",
    "SVC-483",
    "SVR-531",
    "ChainTagger-49",
    "ChainTagger-56",
    "ChainTagger-333",
    "LinearSVCCV-23",
    "StructuredSVM-42",
    "StructuredSVM-211",
    "KernelChainTagger-53",
    "KernelChainTagger-57",
    "KernelChainTagger-79",
    "KernelStructuredSVM-75",
    "SampledCutSVC-151",
    "SampledCutSVC-193",
    "SampledCutSVC-1011",
    "MeasureSVC-398",
    "SVC-409",
    "SVC-410",
    "SVC-620",
    "SVC-673",
    "SVR-588",
    "SVR-673",
    "SVC-3015",
]
DEFAULT = [f"{kind}-{number}" for kind in QUICK for number in range(EACH)] + ONCE_WRONG
CHUNK = 70
MANY = 10_000 // len(QUICK) // CHUNK + 1  # chunks of each estimator
CHUNKS = [(kind, chunk) for kind in QUICK for chunk in range(MANY)] + [("LargeLinearSVC", 0)]

# What does not hold yet: estimators and check, and why. To be emptied.
KNOWN: dict[tuple[tuple[str, ...], str], str] = {}
# Cases of the default run that never end yet: not run. To be emptied.
ENDLESS: tuple[str, ...] = ()


def known(kind, violation):
    """The reason why this violation is expected, or None."""
    reasons = [
        why for (kinds, check), why in KNOWN.items() if kind in kinds and check == violation.check
    ]
    return reasons[0] if reasons else None


def found(name, fits):
    """The case, and what is wrong with its fit; a fit that comes late gets a second chance."""
    case = case_of(name)
    wrong = checks.violations(case, fits.run(name))
    if any(v.check in ("hang", "time_limit") for v in wrong):  # compiling takes time once
        wrong = checks.violations(case, fits.run(name))
    return case, wrong


def report(case, wrong):
    lines = [f"  {violation}" for violation in wrong]
    return "\n".join([str(case), *lines, f"  pytest tests/certificates --case {case.name}"])


def test_certificate(name, fits, request):
    alone = request.config.getoption("--case", default=None)  # which wants to know
    if name in ENDLESS and not alone:
        pytest.xfail("never ends")
    case, wrong = found(name, fits)
    if wrong and not alone and all(known(case.kind, violation) for violation in wrong):
        pytest.xfail("; ".join(sorted({known(case.kind, v) for v in wrong})))
    assert not wrong, report(case, wrong)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "chunk"), CHUNKS)
def test_many_certificates(kind, chunk, fits):
    failures = []
    for number in range(EACH + chunk * CHUNK, EACH + (chunk + 1) * CHUNK):
        case, wrong = found(f"{kind}-{number}", fits)
        if not all(known(kind, violation) for violation in wrong):
            failures.append(report(case, wrong))
    assert not failures, "\n".join([f"{len(failures)} of {CHUNK}:", *failures])


# -- the checks themselves ------------------------------------------------------------


@pytest.fixture(scope="module", params=QUICK)
def right(request, fits):
    """An ordinary case of each kind, with a right answer."""
    for number in range(1000):
        case = case_of(f"{request.param}-{number}")
        C = case.parameters.get("C", case.extra.get("Cs", [1.0])[0])
        odd = case.story.count(",") > case.story.count("chains,")
        if odd or case.name in ENDLESS or not 1e-2 < C < 1e3:
            continue
        answer = fits.run(case.name)
        states = {(p["kind"], p["status"]) for p in answer["problems"]}
        if states == {("exact", "converged")} and not checks.violations(case, answer):
            return case, answer
    raise AssertionError(f"no case of {request.param} is right")


def test_wrong_certificates_are_seen(right):
    case, answer = right
    problem = answer["problems"][-1]
    size = abs(problem["primal"])
    limited = dataclasses.replace(case, parameters={**case.parameters, "max_iter": 1})

    def seen(case=case, **changed):
        problems = [*answer["problems"][:-1], {**problem, **changed}]
        wrong = checks.violations(case, {**answer, "problems": problems})
        return {violation.check for violation in wrong}

    assert seen() == set()
    assert seen(primal=problem["primal"] - 1e-6 * size) & {"primal below", "primal rounding"}
    assert "primal above" in seen(primal=problem["primal"] + 2.0 * size)
    assert "dual" in seen(dual=problem["primal"] + 1e-6 * size)
    assert "rule" in seen(dual=problem["dual"] - 100.0 * size - 100.0)
    assert "not finite" in seen(primal=np.nan)
    assert "max_iter" in seen(limited, n_iter=2)


def test_the_outside_solver_finds_the_optimum(right):
    case, answer = right
    for objective, problem in zip(
        TABLE[case.kind].objectives(case, answer["C"]), answer["problems"], strict=True
    ):
        value, size, _ = objective.evaluate(problem["point"])
        other = optimum.solve(objective, float(abs(value)))
        best, _, _ = objective.evaluate(other)
        assert problem["dual"] - 1e-9 * size <= best <= value + 1e-7 * size


def test_hanging_fits_are_killed():
    fits = Fits()
    answer = fits.run("SVC-0", seconds=-SECONDS)  # no time but that for the start
    assert [v.check for v in checks.violations(case_of("SVC-0"), answer)] == ["hang"]
    fits.close()
