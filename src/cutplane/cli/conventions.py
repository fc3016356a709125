"""C in the conventions of other tools.

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
    """The value of C in the convention of each tool, by the tool's name; empty without a C."""
    name = type(model).__name__
    if name not in _LOSSES:
        return {}
    C = float(model.C)
    if name == "RankSVM":
        return _ranking(model)
    if name == "ChainTagger":
        sequences = 1 if table.qid is None else len(np.unique(table.qid))
        return {"sum over sequences": C, "SVM-hmm, mean over sequences": C * sequences}
    mean = C * _rows(model, table)
    if name == "OrdinalSVC":
        return {"mean over pairs": mean, "sum over pairs": mean / model.n_pairs_}
    if name == "MeasureSVC":
        alike = {_LOSSES["LinearSVC"]: C} if model.measure == "error_rate" else {}
        return {"mean loss": mean, "SVM-perf": mean / 100.0} | alike
    if name == "LinearSVC":
        return {
            _LOSSES[name]: C,
            "SVM-perf": mean / 100.0,
            "mean loss: OCAS, BMRM": mean,
            "lambda of Pegasos, SGD": 1.0 / mean,
        }
    return {_LOSSES[name]: C, "mean loss": mean}


# Estimators that have a C, and the tools that have the same convention.
_LOSSES = {
    **dict.fromkeys(("LinearSVC", "LinearSVR"), "scikit-learn, liblinear, SVM-light"),
    **dict.fromkeys(("SVC", "SampledCutSVC", "SVR"), "scikit-learn, libsvm, SVM-light"),
    **dict.fromkeys(("MeasureSVC", "RankSVM", "OrdinalSVC", "ChainTagger"), ""),
}


def _rows(model: Any, table: Table) -> float:
    """The sum of the weights of the rows, with class weights."""
    weights = table.weights
    labels = getattr(model, "multilabel_", False)  # each label has class weights of its own
    if getattr(model, "class_weight", None) is not None and not labels:
        from .._checks import class_factors

        encoded = np.searchsorted(model.classes_, whole_labels(table.y))
        factors = class_factors(model.class_weight, model.classes_, encoded, weights)
        weights = weights * factors[encoded]
    return float(weights.sum())


def _ranking(model: Any) -> dict[str, float]:
    mean = float(model.C * model.weight_sum_)
    if model.weighting == "queries":
        # SVM-rank's mean is over all queries, also those without a pair.
        share = 1.0 - model.n_idle_queries_ / model.n_queries_
        return {"mean over queries with a pair": mean, "SVM-rank -l 2": float(mean / share)}
    per_pair = float(mean / model.n_pairs_)
    return {
        "mean over pairs": mean,
        "SVM-rank": per_pair * model.n_queries_,
        "SVM-light, sum over pairs": per_pair,
    }
