"""Ranking: scores whose order follows the targets, within queries if there are any."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._checks import check_choice, check_integer, query_codes
from ..metrics import swapped_pairs
from ..risks.pairs import PairRisk
from ..risks.rankings import RankingRisk
from ._base import LinearModel, ModelForm
from ._fit import Settings, divided, warn, warn_of, with_callbacks
from ._problems import ListwiseProblem, bounds_of
from ._rows import open_rows

logger = logging.getLogger("cutplane")

WEIGHTINGS = ("pairs", "queries")
OBJECTIVES = ("pairs", "average_precision", "ndcg")


@dataclass(eq=False, repr=False, kw_only=True)
class RankSVM(LinearModel):
    """Linear ranking SVM: learns scores that put rows of larger target first.

    By default minimises ½|w|² + C·m·(mean over comparable pairs of max(0, 1 − (s_i − s_j))), where
    a pair is comparable if both rows are of the same query and y_i > y_j, and m is the number of
    rows, or the sum of their weights, in queries that have a pair. The certificate limits how far
    the model is from the optimum. Targets may be grades or any real numbers. The fit never lists
    the pairs: its cost is O(m log m) for any number of distinct targets.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses per row, as for all estimators: C times m multiplies the mean over
        pairs here, as it multiplies the mean over rows in :class:`LinearSVC`. SVM-rank's c with its
        default loss is C·m·(queries)/(pairs) with ``weighting='pairs'``; with its ``-l 2`` it is
        C·m with ``weighting='queries'``.
    objective : {'pairs', 'average_precision', 'ndcg'}, default='pairs'
        ``pairs``: pairs in the right order. ``average_precision``: rows of positive target are
        relevant, the others not. ``ndcg``: targets are grades of relevance from 0 on, with gain
        2^y - 1; the cost grows with the number of different grades. The risk of the last two is the
        mean over queries of a convex bound on one minus the measure.
    k : int or None, default=None
        For ``ndcg``: only the first k positions count. None counts all.
    weighting : {'pairs', 'queries'}, default='pairs'
        For ``pairs``: whether every pair counts the same, or every query that has a pair. For the
        other objectives every such query does.
    solver : {'ocas', 'cpa'}, default='ocas'
        The optimised cutting plane algorithm, or the plain one of SVM-rank.
    tol : float, default=1e-3
        The fit stops when the gap is at most this. ``stopping`` says in which unit.
    stopping : {'relative', 'absolute', 'epsilon'}, default='relative'
        ``relative``: gap ≤ tol·objective. ``absolute``: gap ≤ tol. ``epsilon``:
        gap ≤ C·m·tol.
    positive : bool, default=False
        Whether to forbid negative coefficients, as for :class:`LinearSVC`.
    bounds : pair (low, high) or None, default=None
        Bounds on the coefficients, as for :class:`LinearSVC`.
    max_iter, time_limit, n_jobs, executor, warm_start, verbose, callback, checkpoint
        As for :class:`LinearSVC`.

    Attributes
    ----------
    coef_ : ndarray, shape (1, n_features)
    intercept_ : ndarray, shape (1,)
        0: a ranking has no threshold.
    n_pairs_ : int
        Number of comparable pairs in the training data.
    n_queries_, n_idle_queries_ : int
        Queries in the training data, and how many of them have no comparable pair.
    weight_sum_ : float
        m.
    n_iter_ : int
    certificate_ : Certificate
        ``primal, dual, gap, relative_gap, kind`` of the objective above.
    risk_certificate_ : Certificate
        ``certificate_`` divided by C·m, in units of the fraction of swapped pairs.
    certificates_, results_ : list of Certificate, list of SolveResult
        Lists with one entry: this certificate, and the result with status, trace and timings.
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Names of the columns, if X had names.

    See Also
    --------
    OrdinalSVC : Predicts one of a few ordered classes.
    cutplane.metrics : NDCG, swapped pairs, and scorers for model selection.

    Examples
    --------
    >>> import numpy as np
    >>> from cutplane import RankSVM
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [5.0, 0.0], [6.0, 1.0]])
    >>> y, qid = [0, 1, 2, 0, 1], [7, 7, 7, 3, 3]
    >>> model = RankSVM().fit(X, y, qid=qid)
    >>> model.n_pairs_, model.score(X, y, qid=qid)
    (4, 1.0)
    """

    objective: str = "pairs"
    k: int | None = None
    weighting: str = "pairs"

    @with_callbacks
    def fit(self, X: Any, y: Any = None, qid: Any = None, sample_weight: Any = None) -> RankSVM:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)
        y : array-like, shape (n_samples,), optional for a Dataset that has labels
            Real numbers, the larger the better.
        qid : array-like of int, shape (n_samples,), optional
            Query of each row, in any order. None for those of a Dataset. Without any, all rows
            are ranked as one query, and a warning says so; a constant qid means one query.
        sample_weight : array-like, shape (n_samples,), optional
            A pair counts as often as the product of its rows' weights says. By default the costs
            of a Dataset.

        Returns
        -------
        self
        """
        settings = self._check_common()
        rows = open_rows(self, X, y, sample_weight, qid, y_numeric=True, ensure_min_samples=2)
        qid = rows.qid
        if qid is None:
            warn(
                UserWarning(
                    "RankSVM: there is no qid, so all rows are ranked as one query; give the query "
                    "of each row as qid (qid: in a file), or qid=np.zeros(len(y), int) if they are "
                    "one"
                )
            )
        risk = self._risk(
            np.asarray(rows.y, dtype=np.float64),
            None if qid is None else query_codes(qid, len(rows)),
            rows.weights,
        )
        self.n_pairs_, self.n_queries_ = risk.pairs, risk.queries
        self.n_idle_queries_ = risk.idle_queries
        if risk.idle_queries:
            logger.info(
                "%d of %d queries have no pair of rows with different targets and do not count",
                risk.idle_queries,
                risk.queries,
            )
        self.weight_sum_ = float(rows.weights[np.sort(risk.ranked_rows)].sum())
        with rows.blocks() as matrix:
            bounds = bounds_of(self, matrix.shape[1])
            problem = ListwiseProblem("ranking", matrix, 0.0, risk, self.weight_sum_, bounds)
            results = self._fit_linear((X, y), ModelForm(), [problem], settings)
        self.risk_certificate_ = divided(results[0].certificate, settings.C * problem.total)
        warn_of(settings, None, results)
        return self

    def _check_common(self) -> Settings:
        check_choice("weighting", self.weighting, WEIGHTINGS)
        check_choice("objective", self.objective, OBJECTIVES)
        if self.k is not None:
            check_integer("k", self.k, at_least=1)
            if self.objective != "ndcg":
                raise ValueError(
                    f"k has no meaning for objective={self.objective!r}; leave it out, or use "
                    "objective='ndcg'"
                )
        return super()._check_common()

    def _risk(
        self, targets: np.ndarray, queries: np.ndarray | None, weights: np.ndarray
    ) -> PairRisk | RankingRisk:
        if self.objective == "pairs":
            return PairRisk(targets, queries=queries, weights=weights, weighting=self.weighting)
        if not np.all(weights == 1.0):
            raise ValueError(
                f"sample_weight has no meaning for objective={self.objective!r}: it counts "
                "positions in a ranking, and a row has one position; leave it out, or use "
                "objective='pairs'"
            )
        return RankingRisk(targets, self.objective, queries=queries, k=self.k)

    def predict(self, X: Any) -> np.ndarray:
        """Scores, the larger the better; only their order within a query means something.

        Parameters
        ----------
        X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray, shape (n_samples,)
        """
        return self._scores(X)

    def score(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> float:
        """Fraction of the comparable pairs in the right order, ties counting one half.

        Parameters
        ----------
        X : array-like, sparse matrix or Dataset, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
        qid : array-like of int, shape (n_samples,), optional
        sample_weight : array-like, shape (n_samples,), optional

        Returns
        -------
        score : float
        """
        return 1.0 - swapped_pairs(
            y, self.predict(X), qid=qid, average=self.weighting, sample_weight=sample_weight
        )

    def __sklearn_tags__(self) -> Any:
        """Targets are needed."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
