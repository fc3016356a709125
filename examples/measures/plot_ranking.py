"""
Ranking documents within queries
================================

A search engine orders the documents of one query. It never compares documents of different
queries. ``RankSVM`` trains on the pairs within queries, or for NDCG. A regression on the grades
also tries to explain why some queries have better documents than others, and this makes the order
worse.
"""

# %%
# Queries have 5 to 39 documents with grades 0, 1 and 2. All documents of an easy query have better
# grades, which says nothing about their order. Three features tell, with noise, how easy the query
# is. Regression uses them, and their noise disturbs the order.

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold

from cutplane import LinearSVR, RankSVM
from cutplane.metrics import ndcg_score, ndcg_scorer, swapped_pairs


def make_queries(queries, rng):
    """Features, grades and the query of each document."""
    qid = np.repeat(np.arange(queries), rng.integers(5, 40, queries))
    level = 4.0 * rng.normal(size=queries)[qid]
    features = rng.normal(size=(len(qid), 12))
    quality = features[:, :9] @ np.linspace(-1.0, 1.0, 9)
    grade = np.digitize(quality + level + rng.normal(size=len(qid)), [1.0, 4.0])
    features[:, 9:] += 0.5 * level[:, None]
    return features, grade, qid


rng = np.random.default_rng(0)
X, y, qid = make_queries(200, rng)
X_test, y_test, qid_test = make_queries(200, rng)

# %%
# We choose C by NDCG at 10, with folds that do not split queries. scikit-learn's metadata routing
# passes ``qid`` to the estimator and to the scorer.

with sklearn.config_context(enable_metadata_routing=True):
    search = GridSearchCV(
        RankSVM().set_fit_request(qid=True),
        {"C": [0.0001, 0.001, 0.01, 0.1, 1.0]},
        scoring=ndcg_scorer(k=10),
        cv=GroupKFold(4),
    ).fit(X, y, qid=qid, groups=qid)
C = search.best_params_["C"]
models = {
    "regression on grades": LinearSVR(C=C).fit(X, y),
    "pairs": search.best_estimator_,
    "NDCG": RankSVM(objective="ndcg", C=C).fit(X, y, qid=qid),
}
print(f"C = {C:g}; {models['pairs'].n_pairs_} pairs in {models['pairs'].n_queries_} queries")
print(f"certificate of the pairs, in units of the measure: {models['pairs'].risk_certificate_}")

# %%
# This is NDCG at 1 to 20 on new queries, and the share of pairs in the wrong order:

positions = np.arange(1, 21)
curves = {}
for name, model in models.items():
    scores = model.predict(X_test)
    curves[name] = [ndcg_score(y_test, scores, qid=qid_test, k=int(k)) for k in positions]
    swapped = swapped_pairs(y_test, scores, qid=qid_test)
    print(f"{name:21s} NDCG@10 {curves[name][9]:.3f}, swapped pairs {100 * swapped:.1f} %")

fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for name, curve in curves.items():
    ax.plot(positions, curve, "o-", ms=4, label=f"{name}: {curve[9]:.3f} at 10")
gain = curves["pairs"][9] - curves["regression on grades"][9]
ax.set(
    xlabel="k, the number of documents that a reader looks at",
    ylabel="NDCG at k on new queries",
    title=f"Training on pairs within queries: {gain:+.3f} NDCG at 10",
)
ax.set_xticks([1, 5, 10, 15, 20])
ax.legend()
plt.show()
