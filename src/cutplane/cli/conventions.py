"""C as other tools count it.

Here and in the estimators' documentation: n is the sum of the weights of the rows, P the number of
comparable pairs, Q that of queries. A tool minimises 1/2 |w|^2 + c * (its loss):

    scikit-learn, liblinear, SVM-light    sum of losses           c = C            (C per row)
    OCAS and BMRM papers                  mean loss               c = C n
    SVM-perf                              mean loss in per cent   c = C n / 100
    Pegasos, SGDClassifier                lambda/2 |w|^2 + mean   lambda = 1/(C n)
    SVM-rank                              pairs / queries         c = C n Q / P
    SVM-hmm                               mean over sequences     c = C S          (S sequences)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .inputs import Table, whole_labels


def conventions(model: Any, table: Table) -> dict[str, float]:
    """C by the names of the tools that count it so; empty where there is no C."""
    name = type(model).__name__
    if name not in _CONVENTIONS:
        return {}
    return {tool: float(value) for tool, value in _CONVENTIONS[name](model, table).items()}


def _rows(model: Any, table: Table) -> float:
    """The sum of the weights, those of classes included."""
    weights = table.weights
    labels = getattr(model, "multilabel_", False)  # each with class weights of its own
    if getattr(model, "class_weight", None) is not None and not labels:
        from .._checks import class_factors

        encoded = np.searchsorted(model.classes_, whole_labels(table.y))
        factors = class_factors(model.class_weight, model.classes_, encoded, weights)
        weights = weights * factors[encoded]
    return float(weights.sum())


def _sum(model: Any, table: Table) -> dict[str, float]:
    n = _rows(model, table)
    return {
        "scikit-learn, liblinear, SVM-light": model.C,
        "SVM-perf": model.C * n / 100.0,
        "mean loss: OCAS, BMRM": model.C * n,
        "lambda of Pegasos, SGD": 1.0 / (model.C * n),
    }


def _mean(model: Any, table: Table) -> dict[str, float]:
    other = "libsvm" if hasattr(model, "kernel") else "liblinear"
    return {
        f"scikit-learn, {other}, SVM-light": model.C,
        "mean loss": model.C * _rows(model, table),
    }


def _measure(model: Any, table: Table) -> dict[str, float]:
    mean = model.C * _rows(model, table)
    found = {"mean loss": mean, "SVM-perf": mean / 100.0}
    if model.measure == "error_rate":
        found["scikit-learn, liblinear, SVM-light"] = model.C
    return found


def _ranking(model: Any, table: Table) -> dict[str, float]:
    mean = model.C * model.weight_sum_
    if model.weighting == "queries":
        # SVM-rank's mean is over all queries, also those without a pair.
        share = 1.0 - model.n_idle_queries_ / model.n_queries_
        return {"mean over queries with a pair": mean, "SVM-rank -l 2": mean / share}
    per_pair = mean / model.n_pairs_
    return {
        "mean over pairs": mean,
        "SVM-rank": per_pair * model.n_queries_,
        "SVM-light, sum over pairs": per_pair,
    }


def _ordinal(model: Any, table: Table) -> dict[str, float]:
    mean = model.C * _rows(model, table)
    return {"mean over pairs": mean, "sum over pairs": mean / model.n_pairs_}


def _chain(model: Any, table: Table) -> dict[str, float]:
    sequences = len(np.unique(table.qid)) if table.qid is not None else 1
    return {"sum over sequences": model.C, "SVM-hmm, mean over sequences": model.C * sequences}


_CONVENTIONS = {
    "LinearSVC": _sum,
    "LinearSVR": _mean,
    "SVC": _mean,
    "SampledCutSVC": _mean,
    "SVR": _mean,
    "MeasureSVC": _measure,
    "RankSVM": _ranking,
    "OrdinalSVC": _ordinal,
    "ChainTagger": _chain,
}
