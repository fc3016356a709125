"""Rank documents within queries, and choose C by NDCG without splitting queries."""

from __future__ import annotations

import numpy as np
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold

from cutplane import RankSVM
from cutplane.metrics import ndcg_score, ndcg_scorer, swapped_pairs


def make_queries(queries: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Documents of unequal queries: some queries have better documents than others."""
    qid = rng.permutation(np.repeat(np.arange(queries), rng.integers(5, 40, queries)))
    X = rng.normal(size=(len(qid), 12))
    quality = X @ np.linspace(-1.0, 1.0, 12) + 4.0 * rng.normal(size=queries)[qid]
    grade = np.digitize(quality + 2.0 * rng.normal(size=len(qid)), [2.0, 5.0])
    return X, grade, qid


rng = np.random.default_rng(0)
X, y, qid = make_queries(200, rng)
X_test, y_test, qid_test = make_queries(100, rng)
with sklearn.config_context(enable_metadata_routing=True):
    search = GridSearchCV(
        RankSVM(weighting="queries").set_fit_request(qid=True),
        {"C": [0.0003, 0.003, 0.03, 0.3]},
        scoring=ndcg_scorer(k=10),
        cv=GroupKFold(4),
    ).fit(X, y, qid=qid, groups=qid)
model = search.best_estimator_
scores = model.predict(X_test)
print(f"C = {model.C:g} out of {search.param_grid['C']}")
print(f"{model.n_pairs_} pairs in {model.n_queries_} queries, {model.n_iter_} iterations")
print(model.risk_certificate_)
print(f"test NDCG@10      {ndcg_score(y_test, scores, qid=qid_test, k=10):.3f}")
print(f"test swapped pairs {swapped_pairs(y_test, scores, qid=qid_test):.3f}")
