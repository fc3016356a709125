"""Problems over pairs and measures, and their solvers: ours and the peers.

    F(w) = ½|w|² + C·R(scores),   R the mean over pairs, or a measure's risk (``risks``),

plus ½b² for F1, whose bias is the weight of a constant feature. C multiplies the *mean*,
unlike the C of ``solvers.Problem``.
"""

from __future__ import annotations

import dataclasses
import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.svm

from cutplane import MeasureSVC, OrdinalSVC, RankSVM
from cutplane.objective import ListwiseScoreRisk
from cutplane.risks.pairs import PairRisk

from .. import risks
from ..datasets import DataSet
from ..dlib_solvers import dlib_missing, dlib_row_of, dlib_weights
from ..programs import SvmRank
from ..solvers import Effort, Model, Solver

PAIRS = ("roc_auc", "ordinal", "ranking")
TOP = ("precision_at_k", "recall_at_k", "prbep")
K = {"precision_at_k": 0.5, "recall_at_k": 2.0, "prbep": 1.0}  # k as a multiple of the positives
FEW_ROWS = 3000  # for compiling; enough for the code of large queries, too


@dataclass(frozen=True)
class MeasureProblem:
    """A data set with a risk, and with C, which multiplies the mean risk."""

    data: DataSet
    C: float
    loss: str

    def __post_init__(self) -> None:
        assert self.loss in (*PAIRS, *TOP, "f1", "error_rate")

    @property
    def bias(self) -> str:
        return "regularised" if self.loss == "f1" else "none"

    @property
    def top(self) -> int:
        """k of the measure."""
        return max(1, round(K[self.loss] * int(np.sum(self.data.y > 0))))

    def facts(self) -> dict[str, object]:
        facts = {**self.data.facts(), "C": self.C, "loss": self.loss, "bias": self.bias}
        if self.loss in PAIRS:
            facts["pairs"] = risks.count_pairs(self.data.y, self.data.qid)
            facts["ranks"] = len(np.unique(self.data.y))
        elif self.loss in TOP:
            facts["k"] = self.top
        return facts

    def risk(self, scores: np.ndarray) -> float:
        y = self.data.y
        if self.loss in PAIRS:
            return risks.pair_risk(scores, y, self.data.qid)
        if self.loss == "f1":
            return risks.f1_risk(scores, y)
        if self.loss == "error_rate":
            return float(np.mean(np.maximum(0.0, 1.0 - y * scores)))
        return risks.top_risk(scores, y, self.top, recall=self.loss == "recall_at_k")

    def objective(self, model: Model) -> float:
        w = np.asarray(model.w, dtype=np.float64)
        scores = self.data.X @ w + model.b
        regulariser = 0.5 * float(w @ w)
        if self.bias == "regularised":
            regulariser += 0.5 * float(model.b) ** 2
        return regulariser + self.C * self.risk(scores)

    def few_rows(self) -> MeasureProblem:
        """The same problem on few rows, with the same types and features."""
        data = self.data
        if data.qid is not None:
            rows = np.flatnonzero(data.qid <= np.sort(data.qid)[min(FEW_ROWS, len(data.y)) - 1])
        else:
            rows = np.linspace(0, len(data.y) - 1, min(FEW_ROWS, len(data.y))).astype(int)
            ends = [int(np.argmin(data.y)), int(np.argmax(data.y))]  # two classes at least
            rows = np.unique([*rows, *ends])
        return dataclasses.replace(self, data=data.take(rows))


# -- what a run does ------------------------------------------------------------------


class RiskWatch:
    """Counts the evaluations of listwise risks inside ``with``, separately in line searches.

    Every iteration evaluates the risk at the point w_t before its line search. This evaluation
    does not count as one of the line search.
    """

    def __init__(self) -> None:
        self.evaluations = 0
        self.seconds = 0.0
        self.searches = 0
        self.search_evaluations = 0

    def facts(self) -> dict[str, float]:
        return {
            "evaluations": self.evaluations,
            "evaluation_seconds": self.seconds,
            "line_searches": self.searches,
            "line_evaluations": self.search_evaluations,
        }

    def __enter__(self) -> RiskWatch:
        watch = self
        evaluate, descend = self._kept = ListwiseScoreRisk.evaluate, ListwiseScoreRisk.descend

        def counted_evaluate(score_risk: ListwiseScoreRisk, point: Any) -> None:
            begin = time.perf_counter()
            evaluate(score_risk, point)
            watch.seconds += time.perf_counter() - begin
            watch.evaluations += 1

        def counted_descend(score_risk: ListwiseScoreRisk, line: Any) -> float:
            before = watch.evaluations
            k = descend(score_risk, line)
            watch.searches += 1
            watch.search_evaluations += watch.evaluations - before
            return k

        ListwiseScoreRisk.evaluate, ListwiseScoreRisk.descend = counted_evaluate, counted_descend  # type: ignore[method-assign]
        return self

    def __exit__(self, *error: object) -> None:
        ListwiseScoreRisk.evaluate, ListwiseScoreRisk.descend = self._kept  # type: ignore[method-assign]


def line_evaluations(details: dict[str, Any]) -> float:
    """The mean number of evaluations per line search of a run."""
    return details["line_evaluations"] / max(1, details["line_searches"])


# -- ours -----------------------------------------------------------------------------


def estimator(problem: MeasureProblem, **settings: Any) -> Any:
    """The estimator of a problem. Its C multiplies the sum over rows."""
    y, qid = problem.data.y, problem.data.qid
    C = problem.C / len(y)
    if problem.loss == "ranking":
        queries = None if qid is None else np.unique(qid, return_inverse=True)[1]
        return RankSVM(problem.C / len(PairRisk(y, queries=queries).ranked_rows), **settings)
    if problem.loss == "ordinal":
        return OrdinalSVC(C, **settings)
    if problem.loss == "error_rate":
        settings["fit_intercept"] = False
    k = K[problem.loss] if problem.loss in TOP and problem.loss != "prbep" else None
    return MeasureSVC(problem.loss, C=C, k=k, **settings)


class MeasureCutplane(Solver):
    """``cutplane.MeasureSVC``, ``OrdinalSVC`` or ``RankSVM``."""

    ours = True

    def __init__(self, solver: str = "ocas") -> None:
        self.solver = solver
        self.name = f"cutplane {solver}"

    def train(self, problem: MeasureProblem, prepared: DataSet, effort: Effort) -> Any:
        model = estimator(
            problem,
            solver=self.solver,
            **effort.settings(),
        )
        more = {} if prepared.qid is None else {"qid": prepared.qid}
        with RiskWatch() as watch:
            model.fit(prepared.X, prepared.y, **more)
        return model, watch

    def finish(self, problem: MeasureProblem, trained: Any) -> tuple[Model, dict[str, Any], Any]:
        model, watch = trained
        # Other intercepts are thresholds, which are fitted after training.
        b = float(model.intercept_[0]) if problem.bias != "none" else 0.0
        details = {**model.results_[0].as_dict(), **watch.facts()}
        return Model(model.coef_[0], b), details, model.results_[0]


# -- peers ----------------------------------------------------------------------------


class Dlib(Solver):
    """dlib's svm_rank_trainer. All pairs of relevant and other rows count alike; C is as ours.

    Three grades become two problems per query: the rows of a grade against all lower rows.
    """

    name = "dlib"

    def missing(self) -> str | None:
        return dlib_missing()

    def solves(self, problem: MeasureProblem) -> bool:
        return problem.loss in PAIRS and len(np.unique(problem.data.y)) <= 32

    def prepare(self, problem: MeasureProblem) -> Any:
        dlib = importlib.import_module("dlib")
        data = problem.data
        row = dlib_row_of(data.X)
        queries = dlib.sparse_ranking_pairs()
        for upper, lower in levels(data.y, data.qid):
            pair = dlib.sparse_ranking_pair()
            for i in upper:
                pair.relevant.append(row(i))
            for i in lower:
                pair.nonrelevant.append(row(i))
            queries.append(pair)
        return queries

    def train(self, problem: MeasureProblem, prepared: Any, effort: Effort) -> Any:
        dlib = importlib.import_module("dlib")
        trainer = dlib.svm_rank_trainer_sparse()
        trainer.c = problem.C
        trainer.epsilon = effort.tol or 1e-3  # gap of the risk
        if effort.max_iter is not None:
            trainer.max_iterations = effort.max_iter
        return trainer.train(prepared)

    def finish(self, problem: MeasureProblem, trained: Any) -> tuple[Model, dict[str, Any], Any]:
        return Model(dlib_weights(trained, problem.data.X.shape[1]), 0.0), {}, None


def levels(y: np.ndarray, qid: np.ndarray | None) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each target but the lowest: its rows, and the rows of the query with lower targets."""
    groups = [np.arange(len(y))]
    if qid is not None:
        order = np.argsort(qid, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(qid[order])) + 1)
    return [
        (rows[y[rows] == target], rows[y[rows] < target])
        for rows in groups
        for target in np.unique(y[rows])[1:]
    ]


class PairDifferences(Solver):
    """scikit-learn's LinearSVC on all differences x_i − x_j, which must fit in memory."""

    name = "scikit-learn on pairs"

    def solves(self, problem: MeasureProblem) -> bool:
        return problem.loss in PAIRS

    def prepare(self, problem: MeasureProblem) -> tuple[sp.csr_matrix, np.ndarray]:
        data = problem.data
        X = sp.csr_matrix(data.X, dtype=np.float64)
        parts = [
            X[np.repeat(upper, len(lower))] - X[np.tile(lower, len(upper))]
            for upper, lower in levels(data.y, data.qid)
        ]
        differences = parts[0] if len(parts) == 1 else sp.vstack(parts, format="csr")
        signs = np.where(np.arange(differences.shape[0]) % 2, 1.0, -1.0)  # two classes
        # The signs are applied in place. A product with a diagonal matrix would make a second copy.
        differences.data *= np.repeat(signs, np.diff(differences.indptr))
        return differences, signs

    def train(self, problem: MeasureProblem, prepared: Any, effort: Effort) -> Any:
        differences, signs = prepared
        model = sklearn.svm.LinearSVC(
            C=problem.C / len(signs),
            loss="hinge",
            dual=True,
            fit_intercept=False,
            tol=effort.tol or 1e-3,
            max_iter=effort.max_iter or 1000,
            random_state=0,
        )
        return model.fit(differences, signs)

    def finish(self, problem: MeasureProblem, trained: Any) -> tuple[Model, dict[str, Any], Any]:
        n_iter = int(np.max(trained.n_iter_))
        status = "converged" if n_iter < trained.max_iter else "max_iter"
        return Model(trained.coef_[0], 0.0), {"n_iter": n_iter, "status": status}, None


PEERS: dict[str, Callable[[], Solver]] = {"dlib": Dlib, "SVM-rank": SvmRank}
