"""What is minimised, and our estimator on it.

    F(w, b) = ½|w|² + ½b² + C Σ_i loss(<w, x_i> + b − y_i)

Features and targets have mean 0 and variance 1, so that C = 1 means the same for all data, and the
bias is regularised as scikit-learn's ``LinearSVR`` does it. A peer without a regulariser minimises
the limit C → ∞. It is judged by C Σ loss alone, which must come as close to the best known F as the
F of the others: its optimum always does.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..datasets import SEED, DataSet, MissingDataError, Source
from ..solvers import Effort, Model, Solver

DATA = ("cpu_act", "california", "million")
MILLION, FEATURES = 1_000_000, 50
# Loss, and its parameter: ε in standard deviations of the target, or the quantile.
LOSSES = (
    ("epsilon_insensitive", 0.1),
    ("squared_epsilon_insensitive", 0.1),
    ("quantile", 0.1),
    ("quantile", 0.5),
    ("quantile", 0.9),
    ("huber", 0.5),
)


@dataclass(frozen=True)
class RegressionProblem:
    """Dense rows with real targets; a loss with its parameter; C."""

    data: DataSet
    loss: str
    parameter: float
    C: float = 1.0
    bias: str = "regularised"

    @property
    def name(self) -> str:
        return f"{self.data.name} {self.loss} {self.parameter:g}"

    def facts(self) -> dict[str, object]:
        return {
            **self.data.facts(),
            "what": self.name,
            "loss": self.loss,
            "parameter": self.parameter,
            "C": self.C,
            "bias": self.bias,
        }

    def losses(self, residuals: np.ndarray) -> np.ndarray:
        """The loss of each row, computed without the package."""
        if self.loss == "quantile":
            return np.maximum(-self.parameter * residuals, (1.0 - self.parameter) * residuals)
        size = np.abs(residuals)
        if self.loss == "huber":
            linear = self.parameter * (size - 0.5 * self.parameter)
            return np.where(size <= self.parameter, 0.5 * size * size, linear)
        beyond = np.maximum(0.0, size - self.parameter)
        return beyond if self.loss == "epsilon_insensitive" else beyond * beyond

    def objective(self, model: Model) -> float:
        """F of a model."""
        w = np.asarray(model.w, np.float64)
        size = 0.5 * float(w @ w)
        if self.bias == "regularised":
            size += 0.5 * float(model.b) ** 2
        return size + self.total_loss(model)

    def total_loss(self, model: Model) -> float:
        """C Σ loss of a model, summed in extended precision."""
        w = np.asarray(model.w, np.float64)
        residuals = self.data.X @ w + model.b - self.data.y
        return float(self.C * np.sum(self.losses(residuals), dtype=np.longdouble))

    def few_rows(self) -> RegressionProblem:
        """The same problem on few rows, with the same types and features."""
        rows = np.arange(min(500, len(self.data.y)))
        return dataclasses.replace(self, data=self.data.take(rows))


def load(name: str, source: Source) -> DataSet:
    """Dense rows in double precision, all columns and the target with mean 0 and variance 1.

    Raises
    ------
    MissingDataError
        If its file is not there.
    """
    if name == "million":
        X, y = generated(min(source.rows or MILLION, MILLION))
        return DataSet(name, X, y, "generated")
    if name not in DATA:
        raise MissingDataError(f"{name} is no data set of this suite")
    data = source.load(name)
    return DataSet(
        name, _standard(data.X.toarray().astype(np.float64)), _standard(data.y), data.origin
    )


def generated(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A linear function of correlated features, with noise that grows with one of them.

    The noise has Student's t-distribution with 3 degrees of freedom: quantiles are not parallel,
    and there are outliers.
    """
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((rows, FEATURES))
    X[:, 1:] += 0.5 * X[:, :-1]
    noise = rng.standard_t(3.0, rows) * (0.5 + 0.5 * np.abs(X[:, 0]))
    y = X @ np.linspace(1.0, 0.0, FEATURES) + noise
    return _standard(X), _standard(y)


def _standard(values: np.ndarray) -> np.ndarray:
    spread = values.std(axis=0)
    values -= values.mean(axis=0)
    values /= np.where(spread > 0.0, spread, 1.0)
    return values


class RegressionCutplane(Solver):
    """``cutplane.LinearSVR``."""

    ours = True
    name = "cutplane"

    def train(self, problem: RegressionProblem, prepared: DataSet, effort: Effort) -> Any:
        from cutplane import LinearSVR  # peers' processes do not load it

        own = "quantile" if problem.loss == "quantile" else "epsilon"
        model = LinearSVR(
            C=problem.C,
            loss=problem.loss,
            intercept_scaling=1.0 if problem.bias == "regularised" else None,
            **{own: problem.parameter},
            **effort.settings(),
        )
        return model.fit(prepared.X, prepared.y)

    def finish(self, problem: RegressionProblem, trained: Any) -> tuple[Model, dict[str, Any], Any]:
        result = trained.results_[0]
        return Model(trained.coef_, float(trained.intercept_[0])), result.as_dict(), result
