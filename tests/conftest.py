"""What several test files share: risks with their formulas in numpy, problems, exact arithmetic.

Everything here is handed out by fixtures, so that no test imports this file.
The reference formulas are written in plain numpy, apart from the package's own.
"""

from __future__ import annotations

import importlib
import signal
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import settings

from cutplane.data import as_blocks
from cutplane.exec import SerialExecutor
from cutplane.losses import LOSSES
from cutplane.objective import RowOracle
from cutplane.objective.structured import StructuredOracle
from cutplane.risks import LossRisk, Risk, Targets
from cutplane.risks.multiclass import CrammerSingerRisk, MultinomialRisk

CLASSES = 4

# The first example may compile kernels, and the same examples run everywhere.
settings.register_profile(
    "cutplane", deadline=None, derandomize=True, database=None, max_examples=60
)
settings.load_profile("cutplane")

# A shell has the commands that it runs in the background ignore Ctrl-C. Tests send it to themselves
# and to the commands that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# -- risks ----------------------------------------------------------------------------


def _crammer_singer_losses(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    rows = np.arange(len(labels))
    wrong = np.ones_like(scores)
    wrong[rows, labels] = 0.0
    return (wrong + scores - scores[rows, labels][:, None]).max(axis=1)


def _multinomial_losses(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.logaddexp.reduce(scores - scores[np.arange(len(labels)), labels][:, None], axis=1)


def _simplex_minus_label(rng: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    p = rng.dirichlet(np.full(CLASSES, 0.5), size=len(labels))
    p[np.arange(len(labels)), labels] -= 1.0
    return p


@dataclass(frozen=True)
class RiskCase:
    """A risk with its loss in numpy, and random dual points per unit of weight."""

    name: str
    make: Callable[[], Risk]
    losses: Callable[[np.ndarray, np.ndarray], np.ndarray]
    dual: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    classes: int | None = None
    regression: bool = False

    def labels(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """Random labels, every class among the first rows; or random targets."""
        if self.regression:
            return np.round(4.0 * rng.normal(size=rows)) / 2.0
        if self.classes is None:
            labels = rng.choice([-1.0, 1.0], rows)
            labels[:2] = [1.0, -1.0][:rows]
            return labels
        labels = rng.integers(0, self.classes, rows)
        labels[: self.classes] = np.arange(self.classes)[:rows]
        return labels

    def scores(self, rng: np.random.Generator, rows: int, scale: float = 2.0) -> np.ndarray:
        tail = () if self.classes is None else (self.classes,)
        return scale * rng.normal(size=(rows, *tail))

    def risk(self, scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
        """The mean risk, computed by numpy."""
        return float(np.average(self.losses(scores, labels), weights=weights))

    def sum(self, scores: np.ndarray, bias: float, targets: Targets) -> float:
        """Σ weight·loss, computed by numpy."""
        return float(targets.weights @ self.losses(scores + bias, targets.labels))

    def dual_point(self, rng: np.random.Generator, targets: Targets) -> np.ndarray:
        """Random coefficients in the domain of the conjugate."""
        unit = self.dual(rng, targets.labels)
        return (targets.weights * unit.T).T


class Numpy:
    """The functions that formulas are made of, as cvxpy calls them."""

    abs = staticmethod(np.abs)

    @staticmethod
    def pos(t: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, t)

    @staticmethod
    def logistic(t: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, t)

    @staticmethod
    def huber(t: np.ndarray, M: float) -> np.ndarray:
        return np.where(np.abs(t) <= M, np.minimum(np.abs(t), M) ** 2, M * (2.0 * np.abs(t) - M))


# Every loss of the table, with the parameters that it has if none are given: a new one needs its
# formula here. z is y·s, or s − y for regression; f is Numpy or the module cvxpy.
FORMULAS: dict[str, Callable[[Any, Any], Any]] = {
    "hinge": lambda z, f: f.pos(1.0 - z),
    "squared_hinge": lambda z, f: f.pos(1.0 - z) ** 2,
    "logistic": lambda z, f: f.logistic(-z),
    "huberised_hinge": lambda z, f: f.huber(f.pos(1.0 - z), 0.5),
    "epsilon_insensitive": lambda z, f: f.pos(f.abs(z) - 0.1),
    "squared_epsilon_insensitive": lambda z, f: f.pos(f.abs(z) - 0.1) ** 2,
    "quantile": lambda z, f: 0.5 * f.abs(z),
    "huber": lambda z, f: 0.5 * f.huber(z, 1.0),
}


@pytest.fixture(scope="session")
def formulas() -> dict[str, Callable[[Any, Any], Any]]:
    """The losses by name, as functions of z and of a module that has what they call."""
    return FORMULAS


def _loss_case(name: str) -> RiskCase:
    loss = LOSSES[name]()

    def losses(s: np.ndarray, y: np.ndarray) -> np.ndarray:
        return FORMULAS[name](s - y if loss.regression else y * s, Numpy)

    def dual(rng: np.random.Generator, y: np.ndarray) -> np.ndarray:
        ends = np.clip(loss.domain, -8.0, 8.0)
        return rng.uniform(*ends, len(y)) * (1.0 if loss.regression else y)

    return RiskCase(name, lambda: LossRisk(loss), losses, dual, regression=loss.regression)


def _minimise(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray, loss: str, free_bias: bool, C: float
) -> tuple[float, np.ndarray, float]:
    """The least ½|w|² + C·(mean loss), its w and its bias, by an interior point method."""
    import cvxpy

    w, bias = cvxpy.Variable(X.shape[1]), cvxpy.Variable()
    s = X @ w + (bias if free_bias else 0.0)
    losses = FORMULAS[loss](s - y if LOSSES[loss].regression else cvxpy.multiply(y, s), cvxpy)
    risk = cvxpy.sum(cvxpy.multiply(weights / weights.sum(), losses))
    problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(w) + C * risk))
    precise = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    value = float(problem.solve(solver=cvxpy.CLARABEL, **precise))
    return value, w.value, float(bias.value) if free_bias else 0.0


@pytest.fixture(scope="session")
def optimum() -> Callable[..., float]:
    """The optimum for any loss; the bias is 'none', 'free', or 'constant', a feature of value 2."""

    def find(
        X: np.ndarray, y: np.ndarray, weights: np.ndarray, loss: str, bias: str, C: float
    ) -> float:
        if bias == "constant":
            X = np.column_stack([X, np.full(len(y), 2.0)])
        return _minimise(X, y, weights, loss, bias == "free", C)[0]

    return find


RISKS = [
    *map(_loss_case, LOSSES),
    RiskCase(
        "crammer_singer",
        lambda: CrammerSingerRisk(CLASSES),
        _crammer_singer_losses,
        _simplex_minus_label,
        CLASSES,
    ),
    RiskCase(
        "multinomial",
        lambda: MultinomialRisk(CLASSES),
        _multinomial_losses,
        _simplex_minus_label,
        CLASSES,
    ),
]


@pytest.fixture(scope="session", params=RISKS, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> RiskCase:
    """Every risk."""
    return request.param


@pytest.fixture(scope="session")
def all_cases() -> dict[str, RiskCase]:
    """All risks, by name."""
    return {case.name: case for case in RISKS}


WITH_BIAS = [case for case in RISKS if case.make().has_bias]


@pytest.fixture(scope="session", params=WITH_BIAS, ids=lambda case: case.name)
def binary_case(request: pytest.FixtureRequest) -> RiskCase:
    """Every risk that can have a free bias."""
    return request.param


# -- problems -------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Data with labels and weights, an oracle for it, and its objective in numpy."""

    case: RiskCase
    X: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    constant: float
    free_bias: bool

    def oracle(
        self, executor=None, *, block_numbers: int | None = None, sparse: bool = False
    ) -> RowOracle:
        X = scipy.sparse.csr_array(self.X) if sparse else self.X
        return RowOracle(
            as_blocks(X, block_numbers=block_numbers),
            Targets.make(self.labels, self.weights),
            self.case.make(),
            executor or SerialExecutor(),
            constant=self.constant,
            free_bias=self.free_bias,
        )

    def scores(self, w: np.ndarray) -> np.ndarray:
        """X·w with the constant feature, without the free bias."""
        if self.constant:
            column = np.full((len(self.X), 1), self.constant)
            return np.hstack([self.X, column]) @ w
        return self.X @ w

    def risk(self, w: np.ndarray, bias: float = 0.0) -> float:
        return self.case.risk(self.scores(w) + bias, self.labels, self.weights)

    def objective(self, w: np.ndarray, bias: float, C: float) -> float:
        return 0.5 * float(np.sum(w * w)) + C * self.risk(w, bias)

    def minimiser(self, C: float) -> tuple[np.ndarray, float]:
        """(w, bias) by an interior point method, for the losses of the table."""
        X = self.X
        if self.constant:
            X = np.column_stack([X, np.full(len(X), self.constant)])
        loss = self.case.name
        return _minimise(X, self.labels, self.weights, loss, self.free_bias, C)[1:]

    def random_w(self, rng: np.random.Generator, scale: float = 1.0) -> np.ndarray:
        tail = () if self.case.classes is None else (self.case.classes,)
        shape = (self.X.shape[1] + (self.constant != 0.0), *tail)
        return scale * rng.normal(size=shape)


def _make_problem(
    case: RiskCase,
    seed: int = 0,
    *,
    rows: int = 60,
    features: int = 5,
    constant: float = 0.0,
    free_bias: bool = False,
    weighted: bool = False,
    separable: bool = False,
) -> Problem:
    rng = np.random.default_rng(seed)
    labels = case.labels(rng, rows)
    X = rng.normal(size=(rows, features))
    if separable:  # push every class along a direction of its own
        directions = rng.normal(size=(case.classes or 2, features))
        directions[1] = -directions[0]
        number = labels.astype(int) if case.classes else (labels > 0).astype(int)
        X = 0.1 * X + directions[number]
        if case.regression:  # targets that a w meets
            labels = X @ rng.normal(size=features)
    weights = rng.integers(0, 4, rows).astype(float) if weighted else np.ones(rows)
    weights[:4] = 1.0
    return Problem(case, X, labels, weights, constant, free_bias)


@pytest.fixture(scope="session")
def make_problem() -> Callable[..., Problem]:
    return _make_problem


# -- an exact reference for the reduced problem ---------------------------------------


def _solve_linear(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Gaussian elimination with pivoting on arrays of Decimal."""
    table = np.hstack([matrix, right[:, None]])
    size = len(right)
    for k in range(size):
        pivot = k + int(np.argmax(np.abs(table[k:, k])))
        table[[k, pivot]] = table[[pivot, k]]
        below = table[k + 1 :]
        below[:, k:] -= np.outer(below[:, k] / table[k, k], table[k, k:])
    x = np.empty(size, dtype=object)
    for k in reversed(range(size)):
        x[k] = (table[k, -1] - table[k, k + 1 : size] @ x[k + 1 :]) / table[k, k]
    return x


def _exact(array: np.ndarray) -> np.ndarray:
    flat = [Decimal(float(v)) for v in np.ravel(array)]
    return np.array([*flat, None], dtype=object)[:-1].reshape(np.shape(array))


def _exact_reduced(
    cuts: np.ndarray, offsets: np.ndarray, C: float, beta: np.ndarray
) -> tuple[Decimal, Decimal]:
    """(optimum, value at β) of the reduced problem's dual, by 200-digit arithmetic.

    β includes the zero cut and is normalised first. The optimum is found by an
    active-set method from β's support; a ridge far below every other number
    keeps dependent cuts apart.
    """
    with localcontext() as context:
        context.prec = 200
        context.Emin = -99999
        A = _exact(np.vstack([np.zeros((1, cuts.shape[1])), cuts]))
        b = _exact(np.concatenate([[0.0], offsets]))
        C = Decimal(C)
        weights = _exact(beta)
        weights = weights / weights.sum()

        def dual(weights: np.ndarray) -> Decimal:
            w = weights @ A
            return C * (weights @ b) - C * C * (w @ w) / 2

        given = dual(weights)
        H = C * (A @ A.T)
        scale = max(np.diagonal(H).max(), Decimal(1))
        for j in range(len(b)):
            H[j, j] += scale * Decimal("1e-80")
        one, zero = Decimal(1), Decimal(0)
        support = [j for j in range(len(b)) if weights[j] > 0]
        for _ in range(2000):
            while True:
                size = len(support)
                system = np.full((size + 1, size + 1), one)
                system[:size, :size] = H[np.ix_(support, support)]
                system[size, size] = zero
                x = _solve_linear(system, np.append(b[support], one))[:size]
                old = weights[support]
                ratios = [o / (o - v) if v <= 0 else None for o, v in zip(old, x, strict=True)]
                leaving = [r for r in ratios if r is not None]
                if not leaving:
                    weights[support] = x
                    break
                step = min(leaving)
                weights[support] = old + step * (x - old)
                place = ratios.index(step)
                weights[support[place]] = zero
                support.pop(place)
            gradient = H @ weights - b
            entering = int(np.argmin(gradient))
            if gradient[entering] >= weights @ gradient - scale * Decimal("1e-60"):
                return dual(weights), given
            support.append(entering)
        raise AssertionError("the reference did not finish")


@pytest.fixture(scope="session")
def exact_reduced() -> Callable[..., tuple[Decimal, Decimal]]:
    return _exact_reduced


# -- benchmarks -----------------------------------------------------------------------


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Imports a module of the benchmarks, which are not installed."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1]))

    def module(name: str) -> ModuleType:
        return importlib.import_module(f"benchmarks.{name}")

    return module


# -- structured problems --------------------------------------------------------------


@pytest.fixture
def oracles(monkeypatch: pytest.MonkeyPatch) -> list[StructuredOracle]:
    """The oracles of structured problems that the test makes, which count their inference."""
    made: list[StructuredOracle] = []

    class Noted(StructuredOracle):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr("cutplane.objective.structured.StructuredOracle", Noted)
    return made
