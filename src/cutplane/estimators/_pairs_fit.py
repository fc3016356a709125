"""A model with a kernel between pairs of input and output, trained by exact or sampled cuts."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from ..exec import SerialExecutor
from ..kernels import PrecomputedMatrix, has_negative_eigenvalue
from ..oracles.constant import ConstantOracle
from ..result import SolveResult
from ..structured.pairs import PairExamples, PairOracle, PairPopulation, basis_coefficients
from ._callbacks import FitTasks
from ._fit import Attributes, solve
from ._parts_fit import CONSTANT, PartsSettings, span_problem
from ._sampled import TESTED_ROWS, Sampling, qualified

# Examples up to which cuts are exact if nothing else is asked for.
EXACT_EXAMPLES = 1000


@dataclass(frozen=True)
class PairsFit:
    """A trained model of pairs.

    Attributes
    ----------
    result : SolveResult
        ``w`` has the coefficients of the basis.
    sampling : Sampling
    """

    result: SolveResult
    sampling: Sampling


def fit_pairs(
    model: PairExamples,
    settings: PartsSettings,
    tasks: FitTasks,
    attributes: Attributes,
) -> PairsFit:
    """Train a model with a kernel between pairs; ``tasks`` and ``attributes`` as for ``solve``."""
    oracle = _oracle(model, settings)
    problem = span_problem(
        settings,
        "structured",
        oracle,
        lambda w: basis_coefficients(model.pairs, oracle.span, w),
        "conditional",
    )
    result = solve(
        [problem], settings.common, oracle.executor, tasks=tasks, attributes=attributes
    ).results[0]
    coef = np.zeros(model.pairs.columns)
    coef[: len(result.w)] = result.w
    result = dataclasses.replace(result, w=coef)
    basis = np.array(model.pairs.basis, dtype=np.int64)
    radius, loss = 0.0, 1.0
    if len(basis):
        some = np.unique(np.linspace(0, len(basis) - 1, TESTED_ROWS).astype(np.int64))
        square = model.pairs.values(basis[some])[:, some]
        if has_negative_eigenvalue(PrecomputedMatrix(square), np.arange(len(some))):
            result = qualified(result, "withheld")
        losses = model.losses(basis)
        # |φ(x, z) − φ(x, y)| is at most twice the largest |φ|.
        largest, loss = (float(np.max(n, initial=0.0)) for n in (model.factors(losses), losses))
        radius = 2.0 * largest * float(np.sqrt(max(0.0, np.max(np.diagonal(square)))))
    sampling = Sampling(
        exact=oracle.exact,
        constant=settings.method == CONSTANT,
        centred=settings.common.solver == "ocas",
        size=settings.sample_size,
        radius=radius,
        C=settings.common.C,
        loss=loss,
    )
    return PairsFit(result, sampling)


def _oracle(model: PairExamples, settings: PartsSettings) -> PairOracle | ConstantOracle:
    rng, size = np.random.default_rng(settings.seed), settings.sample_size
    if settings.method == CONSTANT:
        oracle = ConstantOracle(PairPopulation(model), SerialExecutor(), rng, size=size)
        oracle.definite = False  # as far as anybody knows
        return oracle
    exact = {"auto": model.examples <= EXACT_EXAMPLES, "exact": True}.get(settings.method, False)
    centred = settings.common.solver == "ocas"
    return PairOracle(model, rng, size=None if exact else size, centred=centred)
