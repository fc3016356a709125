"""Random problems by name, "SVC-17" say: data, parameters, and what the estimator minimises.

The name seeds everything, so a case can be drawn again anywhere. ``TABLE`` is the one place
that knows how estimators are made, what their attributes are called and what they minimise.
"""

from __future__ import annotations

import dataclasses
import itertools
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import objectives
import scipy.sparse
from numpy.random import Generator
from objectives import Objective, Point

SIZES = {"tiny": (2, 5, 1, 4), "wide": (5, 15, 20, 60), "tall": (60, 120, 2, 6)}
SIZES["usual"] = (15, 45, 3, 10)
# Stored numbers from which on the default solver chooses among several.
LARGE = {"tall": (9000, 9500, 15, 16), "long": (1200, 1500, 120, 130), "wide": (300, 350, 450, 500)}
# Rows of which a kernel matrix is no longer judged as a whole.
MANY = {"many": (170, 200, 2, 5)}
SMALL = {"tiny": (2, 5, 1, 4), "wide": (4, 8, 10, 30), "usual": (6, 9, 2, 4)}
# Rows of which all rankings are listed.
FEW = {"tiny": (2, 4, 1, 4), "wide": (4, 6, 10, 30), "usual": (5, 6, 2, 4)}
RANKED = {"tiny": (2, 5, 1, 4), "wide": (4, 12, 15, 40), "usual": (12, 24, 2, 8)}


@dataclass(frozen=True)
class Case:
    """A problem and the estimator for it."""

    name: str
    kind: str  # key of TABLE
    parameters: dict[str, Any]
    X: Any  # as the estimator gets it
    y: Any
    fit: dict[str, Any] = field(default_factory=dict)  # further arguments of fit
    extra: dict[str, Any] = field(default_factory=dict)  # what only the objective needs
    story: str = ""

    @property
    def rows(self) -> np.ndarray:
        return self.X.toarray() if scipy.sparse.issparse(self.X) else self.X

    @property
    def weights(self) -> np.ndarray:
        weights = self.fit.get("sample_weight")
        return np.ones(len(self.rows)) if weights is None else weights

    def __str__(self) -> str:
        return f"{self.name}: {self.story}; {self.parameters}"


@dataclass(frozen=True)
class Entry:
    """How to draw, fit and read a kind of cases. ``points`` are those of ``objectives``."""

    draw: Callable[[Generator], dict[str, Any]]
    fit: Callable[[Case], Any]
    results: Callable[[Any], list[Any]]
    points: Callable[[Case, Any], list[Point]]
    objectives: Callable[[Case, float | None], list[Objective]]  # with the C that was chosen
    outputs: Callable[[Case, Any], Any]  # predictions or scores, which must be finite


def case_of(name: str) -> Case:
    kind, number = name.rsplit("-", 1)
    rng = np.random.default_rng([zlib.crc32(kind.encode()), int(number)])
    return Case(name=name, kind=kind, **TABLE[kind].draw(rng))


# -- data -----------------------------------------------------------------------------


def _rows(rng: Generator, sizes: dict[str, tuple[int, ...]] = SIZES) -> tuple[np.ndarray, str]:
    """Rows with something odd about them, and what it is."""
    family = str(rng.choice(list(sizes)))
    low, high, narrow, broad = sizes[family]
    m, n = int(rng.integers(low, high + 1)), int(rng.integers(narrow, broad + 1))
    X, story = rng.normal(size=(m, n)), [f"{family} {m}×{n}"]
    if rng.random() < 0.15:
        X = np.round(2.0 * X)
        story.append("whole numbers")
    if rng.random() < 0.2:
        X[rng.integers(m, size=m // 2)] = X[0]
        story.append("equal rows")
    if n > 1 and rng.random() < 0.2:
        X[:, -1] = X[:, 0]
        story.append("equal columns")
    if rng.random() < 0.15:
        X[:, rng.integers(n)] = 0.0
        story.append("a zero column")
    if rng.random() < 0.1:
        X[rng.integers(m)] = 0.0
        story.append("a zero row")
    scales = ["", "feature", "all", "offset", "huge"]
    scale = str(rng.choice(scales, p=[0.48, 0.2, 0.14, 0.14, 0.04]))
    if scale == "feature":
        exponent = int(rng.choice([-8, -4, 4, 8]))
        X[:, rng.integers(n)] *= 10.0**exponent
        story.append(f"a feature times 1e{exponent}")
    elif scale == "all":
        exponent = int(rng.choice([-3, 3]))
        X *= 10.0**exponent
        story.append(f"all times 1e{exponent}")
    elif scale == "offset":
        offset = 10.0 ** int(rng.integers(1, 5))
        X += offset
        story.append(f"offset {offset:g}")
    elif scale == "huge":
        exponent = int(rng.choice([-30, -20, 20, 30]))
        X *= 10.0**exponent
        story.append(f"all times 1e{exponent}")
    if rng.random() < 0.3:
        X = X.astype(np.float32)
        story.append("float32")
    return X, ", ".join(story)


def _given(rng: Generator, X: np.ndarray) -> Any:
    """X as a dense or a sparse matrix."""
    return scipy.sparse.csr_array(X) if rng.random() < 0.3 else X


def _classes(rng: Generator, X: np.ndarray, classes: int) -> np.ndarray:
    """Labels that rows more or less tell; every class occurs."""
    centred = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    spread = centred.std(axis=0)
    scores = centred / np.where(spread > 0, spread, 1.0) @ rng.normal(size=X.shape[1])
    noise = float(rng.choice([0.0, 0.5, 100.0]))
    scores = scores + noise * rng.normal(size=len(X))
    order = np.argsort(np.argsort(scores, kind="stable"), kind="stable")
    labels = np.minimum(order * classes // len(X), classes - 1)
    if rng.random() < 0.15:
        labels = rng.permutation(labels)
    return labels


def _weights(rng: Generator, y: np.ndarray, whole: bool = False) -> np.ndarray | None:
    """None, or weights with which every class keeps a positive one."""
    form = str(rng.choice(["none", "some", "zeros", "ratios"], p=[0.6, 0.15, 0.15, 0.1]))
    if form == "none":
        return None
    if whole:
        weights = rng.integers(0, 3, size=len(y)).astype(float)
    elif form == "ratios":
        weights = 10.0 ** rng.uniform(-6.0, 6.0, size=len(y))
    else:
        weights = rng.uniform(0.1, 2.0, size=len(y))
    if form == "zeros":
        weights[rng.random(len(y)) < 0.3] = 0.0
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        weights[rows[0]] = max(weights[rows[0]], 1.0)
    return weights


def _cost(rng: Generator) -> float:
    if rng.random() < 0.3:
        return float(10.0 ** rng.uniform(-12.0, 15.0))
    return float(10.0 ** rng.uniform(-3.0, 3.0))


def _ending(rng: Generator) -> dict[str, Any]:
    """Tolerance and limits."""
    ending: dict[str, Any] = {}
    ending["tol"] = float(rng.choice([0.0, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3, 1e-3, 1e-1]))
    limit = str(rng.choice(["none", "few", "many", "time"], p=[0.4, 0.2, 0.25, 0.15]))
    if limit in ("few", "many"):
        ending["max_iter"] = int(rng.integers(1, 6 if limit == "few" else 80))
    elif limit == "time":
        ending["time_limit"] = float(rng.choice([0.01, 0.1, 1.0]))
    return ending


def _stopping(rng: Generator) -> dict[str, Any]:
    stopping = str(rng.choice(["relative", "absolute", "epsilon"], p=[0.8, 0.1, 0.1]))
    return {} if stopping == "relative" else {"stopping": stopping}


def _bias(rng: Generator) -> dict[str, Any]:
    form = str(rng.choice(["free", "none", "scaled"], p=[0.5, 0.25, 0.25]))
    if form == "none":
        return {"fit_intercept": False}
    return {} if form == "free" else {"intercept_scaling": float(rng.choice([0.1, 1.0, 30.0]))}


def _bias_of(parameters: dict[str, Any]) -> float | None:
    if not parameters.get("fit_intercept", True):
        return None
    return float(parameters.get("intercept_scaling", np.inf))


def _dense(case: Case) -> objectives.Rows:
    return objectives.Rows(case.rows)


# -- linear ---------------------------------------------------------------------------


def _draw_linear(
    rng: Generator, solvers: bool = True, sizes: dict[str, tuple[int, ...]] = SIZES
) -> dict[str, Any]:
    X, story = _rows(rng, sizes)
    classes = 3 if len(X) > 5 and rng.random() < 0.2 else 2
    y = _classes(rng, X, classes)
    loss = str(rng.choice(["hinge", "squared_hinge", "logistic"], p=[0.5, 0.25, 0.25]))
    parameters = {"C": _cost(rng), "loss": loss, **_ending(rng), **_stopping(rng), **_bias(rng)}
    if solvers:
        # Twice auto: it is the default, and chooses among several.
        names = ["auto", "auto", "ocas", "cpa", "dcd", "sgd", "pegasos"]
        if loss == "logistic":
            names.remove("dcd")
        parameters["solver"] = str(rng.choice(names))
    parameters["random_state"] = int(rng.integers(1000))
    return {
        "parameters": parameters,
        "X": _given(rng, X),
        "y": y,
        "fit": {"sample_weight": _weights(rng, y)},
        "story": story,
    }


def _draw_large(rng: Generator) -> dict[str, Any]:
    drawn = _draw_linear(rng, solvers=False, sizes=LARGE)
    drawn["y"] = np.minimum(drawn["y"], 1)
    drawn["parameters"]["loss"] = str(rng.choice(["hinge", "squared_hinge"]))
    drawn["parameters"]["solver"] = str(rng.choice(["auto", "auto", "auto", "dcd"]))
    return drawn


def _linear_objectives(case: Case, Cs: list[float] | None = None) -> list[Objective]:
    classes = int(case.y.max()) + 1
    loss = case.parameters["loss"].replace("squared_hinge", "squared")
    return [
        objectives.signed_rows(
            _dense(case),
            np.where(case.y == k, 1.0, -1.0),
            C * case.weights,
            loss,
            _bias_of(case.parameters),
        )
        for C in (Cs or [case.parameters["C"]])
        for k in ([1] if classes == 2 else range(classes))
    ]


def _linear_points(case: Case, model: Any) -> list[Point]:
    free = case.parameters.get("fit_intercept", True)
    return [
        Point(coef, np.array([b]) if free else np.zeros(0))
        for coef, b in zip(model.coef_, model.intercept_, strict=True)
    ]


def _draw_path(rng: Generator) -> dict[str, Any]:
    drawn = _draw_linear(rng)
    C = drawn["parameters"].pop("C")
    return {**drawn, "extra": {"Cs": [C, 10.0 * C, 2.0 * C]}}


def _path_points(case: Case, path: Any) -> list[Point]:
    return [p for k in range(len(path)) for p in _linear_points(case, path.model(k))]


def _draw_search(rng: Generator) -> dict[str, Any]:
    while True:
        drawn = _draw_linear(rng, solvers=False)
        if np.min(np.bincount(drawn["y"])) >= 4:
            break
    C = drawn["parameters"].pop("C")
    weights = drawn["fit"]["sample_weight"]
    if weights is not None:
        weights[weights == 0.0] = 0.5  # every fold keeps all classes
    return {**drawn, "parameters": {**drawn["parameters"], "Cs": [C, 10.0 * C], "cv": 2}}


def _draw_joint(rng: Generator) -> dict[str, Any]:
    X, story = _rows(rng, {"tiny": (3, 6, 1, 4), "wide": (6, 15, 15, 30), "usual": (15, 30, 2, 8)})
    y = _classes(rng, X, 3)
    return {
        "parameters": {
            "C": _cost(rng),
            "multi_class": "crammer_singer",
            "solver": str(rng.choice(["auto", "ocas", "cpa"])),
            **_ending(rng),
            **_stopping(rng),
            **_bias(rng),
        },
        "X": _given(rng, X),
        "y": y,
        "fit": {"sample_weight": _weights(rng, y)},
        "story": story,
    }


def _joint_objectives(case: Case, C: float | None = None) -> list[Objective]:
    cost = case.parameters["C"] * case.weights
    bias = _bias_of(case.parameters)
    # A free bias is the weight of a constant feature of this size, of which the optimum is kept
    # free but not the primal that is reported.
    norms = np.sqrt(np.sum(case.rows.astype(objectives.LONG) ** 2, axis=1))
    nearly_free = 1e5 * float(np.max(norms[cost > 0.0]) or 1.0)
    return [objectives.crammer_singer(_dense(case), case.y, 3, cost, bias, nearly_free)]


def _joint_points(case: Case, model: Any) -> list[Point]:
    free = case.parameters.get("fit_intercept", True)
    return [Point(model.coef_.ravel(), model.intercept_ if free else np.zeros(0))]


# -- measures and ranking -------------------------------------------------------------


def _draw_measure(rng: Generator) -> dict[str, Any]:
    names = ("roc_auc", "f1", "precision_at_k", "recall_at_k", "prbep", "error_rate")
    name = str(rng.choice(names))
    pairs, by_row = name == "roc_auc", name == "error_rate"
    X, story = _rows(rng, SIZES if by_row else RANKED if pairs else SMALL)
    y = _classes(rng, X, 2)
    whole = not (pairs or by_row)
    weights = _weights(rng, y, whole=whole)
    if whole and weights is not None and weights.sum() > 10:
        weights = None  # all labellings of the copies are listed
    parameters = {"measure": name, "C": _cost(rng), **_ending(rng), **_stopping(rng)}
    parameters["solver"] = str(rng.choice(["ocas", "cpa"]))
    if name in ("f1", "error_rate"):
        parameters.update(_bias(rng))
    if name.endswith("at_k"):
        count = len(X) if weights is None else int(weights.sum())
        parameters["k"] = int(rng.integers(1, count + 1))
    return {
        "parameters": parameters,
        "X": _given(rng, X),
        "y": y,
        "fit": {"sample_weight": weights},
        "story": story,
    }


def _measure_objectives(case: Case, C: float | None = None) -> list[Objective]:
    name, C = case.parameters["measure"], case.parameters["C"]
    y, weights, bias = 2.0 * case.y - 1.0, case.weights, _bias_of(case.parameters)
    cost = C * float(np.sum(weights))
    if name == "error_rate":
        share = objectives.LONG(C) * weights.astype(objectives.LONG)
        return [objectives.signed_rows(_dense(case), y, share, "hinge", bias)]
    if name == "roc_auc":
        return [objectives.pairs(case.rows, y, cost, weights, np.zeros(len(y)))]
    copies = np.repeat(np.arange(len(y)), weights.astype(int))
    bias = (1.0 if bias == np.inf else bias) if name == "f1" else None
    k = case.parameters.get("k")
    return [objectives.measure(case.rows[copies], y[copies], cost, name, k, bias)]


def _measure_points(case: Case, model: Any) -> list[Point]:
    trained = case.parameters["measure"] in (*objectives.TABLE_LOSSES, "error_rate")
    trained = trained and case.parameters.get("fit_intercept", True)
    return [Point(model.coef_[0], model.intercept_ if trained else np.zeros(0))]


def _draw_table_measure(rng: Generator) -> dict[str, Any]:
    X, story = _rows(rng, SMALL)
    y = _classes(rng, X, 2)
    weights = _weights(rng, y, whole=True)
    if weights is not None and weights.sum() > 10:
        weights = None  # all labellings of the copies are listed
    name = str(rng.choice(list(objectives.TABLE_LOSSES)))
    parameters = {"measure": name, "C": _cost(rng), **_ending(rng), **_stopping(rng), **_bias(rng)}
    parameters["solver"] = str(rng.choice(["ocas", "cpa"]))
    if name in ("fbeta", "q_beta"):
        parameters["beta"] = float(rng.choice([0.1, 0.5, 2.0, 10.0]))
    return {
        "parameters": parameters,
        "X": _given(rng, X),
        "y": y,
        "fit": {"sample_weight": weights},
        "story": story,
    }


def _table_objectives(case: Case, C: float | None = None) -> list[Objective]:
    p, y, bias = case.parameters, 2.0 * case.y - 1.0, _bias_of(case.parameters)
    bias = 1.0 if bias == np.inf else bias
    copies = np.repeat(np.arange(len(y)), case.weights.astype(int))
    cost, beta = p["C"] * float(np.sum(case.weights)), p.get("beta", 1.0)
    rows = case.rows[copies]
    return [objectives.measure(rows, y[copies], cost, p["measure"], None, bias, beta)]


def _draw_order_measure(rng: Generator) -> dict[str, Any]:
    X, story = _rows(rng, FEW)
    y = _classes(rng, X, 2)
    name = str(rng.choice(["partial_roc_auc", "average_precision"]))
    parameters = {"measure": name, "C": _cost(rng), **_ending(rng), **_stopping(rng)}
    parameters["solver"] = str(rng.choice(["ocas", "cpa"]))
    k = 1
    if name == "partial_roc_auc":
        positives, negatives = int(np.sum(y == 1)), int(np.sum(y == 0))
        k = min(negatives, 2 if 2 * positives <= 6 else 1)  # all sets of pairs are listed
        parameters["max_fpr"] = k / negatives
    drawn = {"parameters": parameters, "X": _given(rng, X), "y": y, "extra": {"k": k}}
    return {**drawn, "story": story}


def _order_objectives(case: Case, C: float | None = None) -> list[Objective]:
    y, cost = 2.0 * case.y - 1.0, case.parameters["C"] * len(case.y)
    if case.parameters["measure"] == "partial_roc_auc":
        return [objectives.partial_area(case.rows, y, cost, case.extra["k"])]
    one = np.zeros(len(y))
    return [objectives.rankings(case.rows, y, cost, one, "average_precision", None)]


def _draw_ranking_objective(rng: Generator) -> dict[str, Any]:
    X, story = _rows(rng, FEW)
    y = _classes(rng, X, min(len(X), int(rng.integers(2, 4)))).astype(float)
    qid = None
    if len(X) == 6 and rng.random() < 0.5:
        qid = np.arange(6) % 2 + 7
        y[:4] = [0.0, 0.0, 1.0, 1.0]  # every query has a pair
    parameters = {
        "C": _cost(rng),
        "objective": str(rng.choice(["ndcg", "average_precision"])),
        "solver": str(rng.choice(["ocas", "cpa"])),
        **_ending(rng),
        **_stopping(rng),
    }
    if parameters["objective"] == "ndcg" and rng.random() < 0.5:
        parameters["k"] = int(rng.integers(1, len(X) + 1))
    given = {"parameters": parameters, "X": _given(rng, X), "y": y, "fit": {"qid": qid}}
    return {**given, "story": story}


def _ranking_objectives(case: Case, C: float | None = None) -> list[Objective]:
    p, qid = case.parameters, case.fit["qid"]
    qid = np.zeros(len(case.y)) if qid is None else qid
    y = case.y > 0 if p["objective"] == "average_precision" else case.y
    several = [q for q in np.unique(qid) if len(np.unique(y[qid == q])) > 1]
    cost = p["C"] * float(np.sum(np.isin(qid, several)))
    return [objectives.rankings(case.rows, case.y, cost, qid, p["objective"], p.get("k"))]


def _draw_linear_regression(rng: Generator) -> dict[str, Any]:
    X, story = _rows(rng)
    y = _classes(rng, X, len(X)) / len(X) + 0.1 * rng.normal(size=len(X))
    y = y * float(rng.choice([1.0, 1.0, 1e3, 1e-3])) + float(rng.choice([0.0, 0.0, 1e4]))
    loss = str(
        rng.choice(["epsilon_insensitive", "squared_epsilon_insensitive", "quantile", "huber"])
    )
    parameters = {"C": _cost(rng), "loss": loss, **_ending(rng), **_stopping(rng), **_bias(rng)}
    if loss == "quantile":
        parameters["quantile"] = float(rng.choice([0.001, 0.1, 0.5, 0.9, 0.99]))
    else:
        sizes = [0.01, 0.1, 1.0] if loss == "huber" else [0.0, 0.1, 1.0]
        parameters["epsilon"] = float(rng.choice(sizes)) * float(np.std(y))
    parameters["solver"] = str(rng.choice(["auto", "auto", "ocas", "cpa", "dcd"]))
    parameters["random_state"] = int(rng.integers(1000))
    return {
        "parameters": parameters,
        "X": _given(rng, X),
        "y": y,
        "fit": {"sample_weight": _weights(rng, np.zeros(len(y)))},
        "story": story,
    }


def _linear_regression_objectives(case: Case, C: float | None = None) -> list[Objective]:
    p = case.parameters
    parameter = p["quantile"] if p["loss"] == "quantile" else p["epsilon"]
    cost = objectives.LONG(p["C"]) * case.weights.astype(objectives.LONG)
    bias = _bias_of(p)
    return [objectives.residuals(case.rows, case.y, cost, p["loss"], parameter, bias)]


def _linear_regression_points(case: Case, model: Any) -> list[Point]:
    free = case.parameters.get("fit_intercept", True)
    return [Point(model.coef_, model.intercept_ if free else np.zeros(0))]


def _draw_ranking(rng: Generator) -> dict[str, Any]:
    X, story = _rows(rng, RANKED)
    y = _classes(rng, X, min(len(X), int(rng.integers(2, 5)))).astype(float)
    if rng.random() < 0.3:
        y = y + 0.1 * rng.normal(size=len(y))
    qid = None
    if len(X) >= 8 and rng.random() < 0.5:
        qid = np.arange(len(X)) % 2 + 7
        y[:4] = [0.0, 0.0, 1.0, 1.0]  # every query has a pair
    weights = _weights(rng, y)
    return {
        "parameters": {
            "C": _cost(rng),
            "weighting": str(rng.choice(["pairs", "queries"])),
            "solver": str(rng.choice(["ocas", "cpa"])),
            **_ending(rng),
            **_stopping(rng),
        },
        "X": _given(rng, X),
        "y": y,
        "fit": {"qid": qid, "sample_weight": weights},
        "story": story,
    }


def _draw_ordinal(rng: Generator) -> dict[str, Any]:
    X, story = _rows(rng, RANKED)
    y = _classes(rng, X, min(len(X), int(rng.integers(2, 5))))
    return {
        "parameters": {
            "C": _cost(rng),
            "solver": str(rng.choice(["ocas", "cpa"])),
            **_ending(rng),
            **_stopping(rng),
        },
        "X": _given(rng, X),
        "y": y,
        "fit": {"sample_weight": _weights(rng, y)},
        "story": story,
    }


def _pair_objectives(case: Case, C: float | None = None) -> list[Objective]:
    qid = case.fit.get("qid")
    qid = np.zeros(len(case.y)) if qid is None else qid
    weighting = case.parameters.get("weighting", "pairs")
    counted = case.weights > 0.0
    if "qid" in case.fit:  # of rankings, the rows in queries that have a pair
        several = [q for q in np.unique(qid) if len(np.unique(case.y[counted & (qid == q)])) > 1]
        counted &= np.isin(qid, several)
    cost = case.parameters["C"] * float(np.sum(case.weights[counted]))
    return [objectives.pairs(case.rows, case.y, cost, case.weights, qid, weighting)]


def _pair_points(case: Case, model: Any) -> list[Point]:
    return [Point(model.coef_[0], np.zeros(0))]


# -- kernels --------------------------------------------------------------------------


def _kernel(rng: Generator, X: np.ndarray) -> tuple[dict[str, Any], Any]:
    """The parameters of a kernel, and X for this kernel."""
    name = str(
        rng.choice(
            ["linear", "rbf", "poly", "sigmoid", "precomputed"], p=[0.3, 0.35, 0.1, 0.05, 0.2]
        )
    )
    spread = float(np.var(X, dtype=np.float64)) * X.shape[1] or 1.0
    gamma = float(10.0 ** rng.uniform(-1.5, 1.5)) / spread
    parameters: dict[str, Any] = {"kernel": name}
    if name in ("rbf", "poly", "sigmoid"):
        parameters["gamma"] = gamma
    if name in ("poly", "sigmoid"):
        parameters["coef0"] = float(rng.choice([0.0, 1.0]))
    if name == "poly":
        parameters["degree"] = int(rng.integers(1, 4))
    if name == "precomputed":
        values = X.astype(np.float64) @ X.T.astype(np.float64)
        values = (values + values.T) / 2
        odd = rng.random()
        if odd < 0.25:  # not positive definite
            noise = rng.normal(size=values.shape)
            values += 0.3 * np.abs(values).max() * (noise + noise.T)
        elif odd < 0.5:  # nor here, for one pair of rows
            values[0, 1] = values[1, 0] = 2.0 * np.abs(values).max()
        return parameters, values
    return parameters, _given(rng, X)


def _space(case: Case) -> objectives.Rows | objectives.Kernel:
    p = case.parameters
    gamma, degree = p.get("gamma", 0.0), p.get("degree", 3)
    values = objectives.kernel_values(p["kernel"], case.rows, gamma, p.get("coef0", 0.0), degree)
    return objectives.Kernel(values, objectives.kernel_work(p["kernel"], case.rows, gamma, degree))


def _draw_svc(rng: Generator) -> dict[str, Any]:
    X, story = _rows(rng, MANY if rng.random() < 0.08 else SIZES)
    classes = 3 if len(X) > 5 and rng.random() < 0.2 else 2
    y = _classes(rng, X, classes)
    kernel, given = _kernel(rng, X)
    parameters = {"C": _cost(rng), **kernel, **_ending(rng)}
    if rng.random() < 0.2:
        parameters["working_set_size"] = int(rng.choice([2, 8]))
    if classes > 2:
        parameters["multi_class"] = str(rng.choice(["ovo", "ovr"]))
    return {
        "parameters": parameters,
        "X": given,
        "y": y,
        "fit": {"sample_weight": _weights(rng, y)},
        "story": story,
    }


def _svc_problems(case: Case) -> list[tuple[int, int]]:
    """Of every problem the positive class and the negative one; −1 for all others."""
    classes = int(case.y.max()) + 1
    if classes == 2:
        return [(1, -1)]
    if case.parameters["multi_class"] == "ovr":
        return [(k, -1) for k in range(classes)]
    return list(itertools.combinations(range(classes), 2))


def _svc_objectives(case: Case, C: float | None = None) -> list[Objective]:
    space, found = _space(case), []
    sizes = None
    if case.parameters["kernel"] == "linear":  # whose rows are moved by the mean of all of them
        X = case.rows.astype(np.float64)
        X = np.abs(X - X.mean(axis=0))
        sizes = X @ X.T
    for positive, negative in _svc_problems(case):
        taken = (case.y == positive) | (case.y == negative) | (negative < 0)
        y = np.where(case.y == positive, 1.0, -1.0)
        cost = case.parameters["C"] * case.weights * taken
        both = np.outer(taken, taken)
        own = objectives.Kernel(
            space.values * both, space.work, None if sizes is None else sizes * both
        )
        found.append(objectives.signed_rows(own, y, cost, "hinge", np.inf))
    return found


def _all_coefficients(case: Case, model: Any) -> np.ndarray:
    """The coefficients of all rows. Kernel machines keep sparse ones if the rows are sparse."""
    kept = model.dual_coef_
    kept = kept.toarray() if scipy.sparse.issparse(kept) else kept
    whole = np.zeros((len(kept), len(case.rows)))
    whole[:, model.support_] = kept
    return whole


def _svc_points(case: Case, model: Any) -> list[Point]:
    """Coefficients of all rows, from scikit-learn's layout of them."""
    points = []
    whole = _all_coefficients(case, model)
    for k, (positive, negative) in enumerate(_svc_problems(case)):
        if negative < 0:
            beta = whole[k]
        else:
            beta = np.where(case.y == positive, whole[negative - 1], 0.0)
            beta = np.where(case.y == negative, whole[positive], beta)
        points.append(Point(beta, model.intercept_[[k]]))
    return points


def _draw_svr(rng: Generator) -> dict[str, Any]:
    X, story = _rows(rng, MANY if rng.random() < 0.08 else SIZES)
    kernel, given = _kernel(rng, X)
    y = _classes(rng, X, len(X)) / len(X) + 0.1 * rng.normal(size=len(X))
    y = y * float(rng.choice([1.0, 1.0, 1e3, 1e-3])) + float(rng.choice([0.0, 0.0, 1e4]))
    epsilon = float(rng.choice([0.0, 0.1, 1.0])) * float(np.std(y))
    parameters = {"C": _cost(rng), "epsilon": epsilon, **kernel}
    return {
        "parameters": {**parameters, **_ending(rng)},
        "X": given,
        "y": y,
        "fit": {"sample_weight": _weights(rng, np.zeros(len(y)))},
        "story": story,
    }


def _svr_objectives(case: Case, C: float | None = None) -> list[Objective]:
    p = case.parameters
    return [objectives.regression(_space(case), case.y, p["C"] * case.weights, p["epsilon"])]


def _one_point(case: Case, model: Any) -> list[Point]:
    return [Point(_all_coefficients(case, model)[0], model.intercept_)]


def _draw_one_class(rng: Generator) -> dict[str, Any]:
    X, story = _rows(rng, MANY if rng.random() < 0.08 else SIZES)
    kernel, given = _kernel(rng, X)
    return {
        "parameters": {"nu": float(rng.uniform(0.02, 1.0)), **kernel, **_ending(rng)},
        "X": given,
        "y": None,
        "fit": {"sample_weight": _weights(rng, np.zeros(len(X)))},
        "story": story,
    }


def _one_class_objectives(case: Case, C: float | None = None) -> list[Objective]:
    return [objectives.one_class(_space(case), case.weights, case.parameters["nu"])]


def _draw_sampled(rng: Generator) -> dict[str, Any]:
    X, story = _rows(rng)
    classes = 3 if 5 < len(X) < 30 and rng.random() < 0.3 else 2
    y = _classes(rng, X, classes)
    kernel, given = _kernel(rng, X)
    return {
        "parameters": {
            "C": _cost(rng),
            **kernel,
            "method": "exact",
            "solver": str(rng.choice(["ocas", "cpa"])),
            "multi_class": str(rng.choice(["ovr", "crammer_singer"])),
            "stopping": str(rng.choice(["relative", "epsilon"])),
            **_ending(rng),
        },
        "X": given,
        "y": y,
        "fit": {"sample_weight": _weights(rng, y)},
        "story": story,
    }


def _sampled_joint(case: Case) -> bool:
    return int(case.y.max()) == 2 and case.parameters["multi_class"] == "crammer_singer"


def _sampled_objectives(case: Case, C: float | None = None) -> list[Objective]:
    space, cost = _space(case), case.parameters["C"] * case.weights
    if _sampled_joint(case):
        return [objectives.crammer_singer(space, case.y, 3, cost, None)]
    return [
        objectives.signed_rows(space, np.where(case.y == k, 1.0, -1.0), cost, "hinge", None)
        for k in ([1] if case.y.max() == 1 else range(3))
    ]


def _sampled_points(case: Case, model: Any) -> list[Point]:
    whole = _all_coefficients(case, model)
    if _sampled_joint(case):
        return [Point(whole.ravel(), np.zeros(0))]
    return [Point(beta, np.zeros(0)) for beta in whole]


# -- structured -----------------------------------------------------------------------


def _draw_chain(rng: Generator) -> dict[str, Any]:
    classes, lengths = int(rng.integers(2, 4)), rng.integers(0, 5, size=int(rng.integers(1, 6)))
    lengths[0] = max(lengths[0], classes)
    X, story = _rows(rng, {"tokens": (int(lengths.sum()), int(lengths.sum()), 1, 5)})
    y = _classes(rng, X, classes)
    y[:classes] = np.arange(classes)
    return {
        "parameters": {
            "C": _cost(rng),
            "loss": str(rng.choice(["hamming", "zero_one"])),
            "order": int(rng.choice([1, 1, 2])),
            "boundaries": bool(rng.integers(2)),
            "solver": str(rng.choice(["auto", "auto", "ocas", "cpa"])),
            **_ending(rng),
            **_stopping(rng),
        },
        "X": _given(rng, X),
        "y": y,
        "fit": {"lengths": lengths},
        "story": f"{len(lengths)} chains, {story}",
    }


def _chain_feature(x: np.ndarray, z: tuple[int, ...], classes: int, order: int, ends: bool) -> Any:
    """Emissions, transitions, begin and finish, second transitions, one after another."""
    emissions = np.zeros((classes, x.shape[1]), dtype=objectives.LONG)
    moves = np.zeros((classes, classes), dtype=objectives.LONG)
    borders = np.zeros((2, classes), dtype=objectives.LONG)
    triples = np.zeros((classes,) * 3, dtype=objectives.LONG)
    for t, label in enumerate(z):
        emissions[label] += x[t]
        if t > 0:
            moves[z[t - 1], label] += 1
        if t > 1 and order == 2:
            triples[z[t - 2], z[t - 1], label] += 1
    if ends and z:
        borders[0, z[0]] += 1
        borders[1, z[-1]] += 1
    return np.concatenate([part.ravel() for part in (emissions, moves, borders, triples)])


def _chain_objectives(case: Case, C: float | None = None) -> list[Objective]:
    return [objectives.structured(_chain_examples(case, case.rows), case.parameters["C"])]


def _chain_examples(case: Case, tokens: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """δΨ and Δ of all labellings, by chain."""
    p, classes = case.parameters, int(case.y.max()) + 1
    rows, examples, start = tokens.astype(objectives.LONG), [], 0
    for length in case.fit["lengths"]:
        x, y = rows[start : start + length], tuple(case.y[start : start + length])
        start += length
        shape = (classes, p["order"], p["boundaries"])
        own, features, losses = _chain_feature(x, y, *shape), [], []
        for z in itertools.product(range(classes), repeat=int(length)):
            wrong = sum(a != b for a, b in zip(y, z, strict=True))
            features.append(_chain_feature(x, z, *shape) - own)
            losses.append(min(wrong, 1) if p["loss"] == "zero_one" else wrong)
        examples.append((np.array(features), np.array(losses, dtype=float)))
    return examples


def _chain_points(case: Case, model: Any) -> list[Point]:
    classes = len(model.classes_)
    triples = getattr(model, "second_transitions_", np.zeros((classes,) * 3))
    parts = (model.coef_, model.transitions_, model.begin_, model.finish_, triples)
    return [Point(np.concatenate([part.ravel() for part in parts]), np.zeros(0))]


def _draw_kernel_chain(rng: Generator) -> dict[str, Any]:
    drawn = _draw_chain(rng)
    X = drawn["X"].toarray() if scipy.sparse.issparse(drawn["X"]) else drawn["X"]
    kernel, given = _kernel(rng, X)
    return {**drawn, "X": given, "parameters": {**drawn["parameters"], **kernel, "method": "exact"}}


def _kernel_chain_objectives(case: Case, C: float | None = None) -> list[Objective]:
    """A function in the kernel's space for every label, and plain weights of the transitions."""
    tokens = len(case.rows)
    plain = objectives.structured(_chain_examples(case, np.eye(tokens)), case.parameters["C"])
    features, classes = plain.space.values, int(case.y.max()) + 1
    values = np.eye(features.shape[1], dtype=objectives.LONG)
    emissions = classes * tokens
    space = _space(case)
    values[:emissions, :emissions] = np.kron(np.eye(classes), space.values)
    return [dataclasses.replace(plain, space=objectives.Kernel(values, space.work), S=features)]


def _kernel_chain_points(case: Case, model: Any) -> list[Point]:
    whole = _all_coefficients(case, model)
    triples = getattr(model, "second_transitions_", np.zeros((len(whole),) * 3))
    parts = (whole, model.transitions_, model.begin_, model.finish_, triples)
    return [Point(np.concatenate([part.ravel() for part in parts]), np.zeros(0))]


class Choice:
    """A structured problem: x holds a row of features per output, y is one of them."""

    exact = True
    releases_gil = False

    def joint_feature(self, x: np.ndarray, y: int) -> np.ndarray:
        return x[y]

    def loss(self, y: int, z: int) -> float:
        return abs(y - z) / 2.0

    def most_violated(self, x: np.ndarray, y: int, score: Any) -> int:
        losses = np.abs(np.arange(len(x)) - y) / 2.0
        return int(np.argmax(losses + x @ score.w))

    def most_violated_slack(self, x: np.ndarray, y: int, score: Any) -> int:
        losses = np.abs(np.arange(len(x)) - y) / 2.0
        return int(np.argmax(losses * (1.0 + (x - x[y]) @ score.w)))

    def predict(self, x: np.ndarray, score: Any) -> int:
        return int(np.argmax(x @ score.w))


def _draw_structured(rng: Generator) -> dict[str, Any]:
    count = int(rng.integers(1, 12))
    X, story = _rows(rng, {"outputs": (4 * count, 4 * count, 1, 6)})
    return {
        "parameters": {
            "C": _cost(rng),
            "rescaling": str(rng.choice(["margin", "slack"])),
            "solver": str(rng.choice(["auto", "auto", "ocas", "cpa"])),
            **_ending(rng),
            **_stopping(rng),
        },
        "X": list(X.astype(np.float64).reshape(count, 4, -1)),
        "y": rng.integers(4, size=count).tolist(),
        "story": story,
    }


def _structured_objectives(case: Case, C: float | None = None) -> list[Objective]:
    examples, magnitudes = [], []
    for x, y in zip(case.X, case.y, strict=True):
        losses = np.abs(np.arange(len(x)) - y) / 2.0
        scale = losses[:, None] if case.parameters["rescaling"] == "slack" else 1.0
        features = x.astype(objectives.LONG) - x[y].astype(objectives.LONG)
        examples.append((scale * features, losses))
        magnitudes.append(scale * (np.abs(x) + np.abs(x[y])))
    return [objectives.structured(examples, case.parameters["C"], magnitudes)]


def _draw_kernel_structured(rng: Generator) -> dict[str, Any]:
    X, story = _rows(rng, {"usual": (6, 25, 1, 6)})
    kernel, given = _kernel(rng, X)
    parameters = {"C": _cost(rng), **kernel, "method": "exact"}
    parameters["solver"] = str(rng.choice(["ocas", "cpa"]))
    return {
        "parameters": {**parameters, **_ending(rng), **_stopping(rng)},
        "X": given,
        "y": _classes(rng, X, 3),
        "story": story,
    }


def _kernel_structured_objectives(case: Case, C: float | None = None) -> list[Objective]:
    cost = np.full(len(case.y), objectives.LONG(case.parameters["C"]))
    return [objectives.crammer_singer(_space(case), case.y, 3, cost, None)]


def _kernel_structured_points(case: Case, model: Any) -> list[Point]:
    return [Point(_all_coefficients(case, model).ravel(), np.zeros(0))]


# -- the table ------------------------------------------------------------------------


def _estimator(name: str, problem: Callable[[], Any] | None = None) -> Callable[[Case], Any]:
    def fit(case: Case) -> Any:
        import cutplane

        first = () if problem is None else (problem(),)
        estimator = getattr(cutplane, name)(*first, **case.parameters, n_jobs=1)
        data = (case.X,) if case.y is None else (case.X, case.y)
        return estimator.fit(*data, **case.fit)

    return fit


def _multiclass() -> Any:
    from cutplane.structured import MulticlassProblem

    return MulticlassProblem()


def _fit_path(case: Case) -> Any:
    import cutplane

    return cutplane.linear_svc_path(
        case.X, case.y, case.extra["Cs"], **case.fit, **case.parameters, n_jobs=1
    )


def _results(model: Any) -> list[Any]:
    return model.results_


def _scores(case: Case, model: Any) -> Any:
    return model.decision_function(case.X)


def _predictions(case: Case, model: Any) -> Any:
    return model.predict(case.X)


TABLE = {
    "LinearSVC": Entry(
        _draw_linear,
        _estimator("LinearSVC"),
        _results,
        _linear_points,
        _linear_objectives,
        _scores,
    ),
    "LargeLinearSVC": Entry(
        _draw_large,
        _estimator("LinearSVC"),
        _results,
        _linear_points,
        _linear_objectives,
        _scores,
    ),
    "CrammerSinger": Entry(
        _draw_joint, _estimator("LinearSVC"), _results, _joint_points, _joint_objectives, _scores
    ),
    "LinearSVCCV": Entry(
        _draw_search,
        _estimator("LinearSVCCV"),
        _results,
        _linear_points,
        lambda case, C: _linear_objectives(case, [C]),
        _scores,
    ),
    "linear_svc_path": Entry(
        _draw_path,
        _fit_path,
        lambda path: [result for results in path.results for result in results],
        _path_points,
        lambda case, C: _linear_objectives(case, case.extra["Cs"]),
        lambda case, path: path.model(len(path) - 1).decision_function(case.X),
    ),
    "MeasureSVC": Entry(
        _draw_measure,
        _estimator("MeasureSVC"),
        _results,
        _measure_points,
        _measure_objectives,
        _scores,
    ),
    "TableMeasure": Entry(
        _draw_table_measure,
        _estimator("MeasureSVC"),
        _results,
        _measure_points,
        _table_objectives,
        _scores,
    ),
    "OrderMeasure": Entry(
        _draw_order_measure,
        _estimator("MeasureSVC"),
        _results,
        _measure_points,
        _order_objectives,
        _scores,
    ),
    "RankingObjective": Entry(
        _draw_ranking_objective,
        _estimator("RankSVM"),
        _results,
        _pair_points,
        _ranking_objectives,
        _predictions,
    ),
    "LinearSVR": Entry(
        _draw_linear_regression,
        _estimator("LinearSVR"),
        _results,
        _linear_regression_points,
        _linear_regression_objectives,
        _predictions,
    ),
    "RankSVM": Entry(
        _draw_ranking, _estimator("RankSVM"), _results, _pair_points, _pair_objectives, _predictions
    ),
    "OrdinalSVC": Entry(
        _draw_ordinal,
        _estimator("OrdinalSVC"),
        _results,
        _pair_points,
        _pair_objectives,
        _predictions,
    ),
    "SVC": Entry(_draw_svc, _estimator("SVC"), _results, _svc_points, _svc_objectives, _scores),
    "SVR": Entry(_draw_svr, _estimator("SVR"), _results, _one_point, _svr_objectives, _predictions),
    "OneClassSVM": Entry(
        _draw_one_class,
        _estimator("OneClassSVM"),
        _results,
        _one_point,
        _one_class_objectives,
        _scores,
    ),
    "SampledCutSVC": Entry(
        _draw_sampled,
        _estimator("SampledCutSVC"),
        _results,
        _sampled_points,
        _sampled_objectives,
        _scores,
    ),
    "ChainTagger": Entry(
        _draw_chain,
        _estimator("ChainTagger"),
        _results,
        _chain_points,
        _chain_objectives,
        lambda case, model: model.decision_function(case.X, case.fit["lengths"]),
    ),
    "StructuredSVM": Entry(
        _draw_structured,
        _estimator("StructuredSVM", Choice),
        _results,
        lambda case, model: [Point(model.coef_, np.zeros(0))],
        _structured_objectives,
        lambda case, model: np.asarray(model.predict(case.X), dtype=float),
    ),
    "KernelChainTagger": Entry(
        _draw_kernel_chain,
        _estimator("ChainTagger"),
        _results,
        _kernel_chain_points,
        _kernel_chain_objectives,
        lambda case, model: model.decision_function(case.X, case.fit["lengths"]),
    ),
    "KernelStructuredSVM": Entry(
        _draw_kernel_structured,
        _estimator("StructuredSVM", _multiclass),
        _results,
        _kernel_structured_points,
        _kernel_structured_objectives,
        lambda case, model: np.asarray(model.predict(case.X), dtype=float),
    ),
}
