"""One data set, five measures: how models trained for each of them do at all of them."""

from __future__ import annotations

from sklearn.datasets import make_classification
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score
from sklearn.model_selection import train_test_split

from cutplane import MeasureSVC
from cutplane.metrics import prbep, precision_at_k

C = {"error_rate": 0.3, "roc_auc": 0.01, "f1": 3.0, "precision_at_k": 3.0, "prbep": 3.0}


X, y = make_classification(
    12_000,
    40,
    n_informative=8,
    n_clusters_per_class=1,
    weights=[0.97],
    class_sep=0.6,
    random_state=0,
)
X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
k = int(y_test.sum() // 2)
print("trained for      accuracy  ROC area     F1   precision@k   PRBEP   iterations")
for measure, weight in C.items():
    model = MeasureSVC(measure, C=weight).fit(X, y)
    scores = model.decision_function(X_test)
    print(
        f"{measure:15s}  {accuracy_score(y_test, scores > 0):8.3f}"
        f"  {roc_auc_score(y_test, scores):8.3f}  {f1_score(y_test, scores > 0):5.3f}"
        f"  {precision_at_k(y_test, scores, k):12.3f}  {prbep(y_test, scores):6.3f}"
        f"  {model.n_iter_:11d}"
    )
