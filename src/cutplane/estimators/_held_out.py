"""Scores of held-out rows that came with those of the others: scorers see predictions alone."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from sklearn.metrics._scorer import _BaseScorer, _PassthroughScorer

from .linear_svc import LinearSVC


class HeldOut(LinearSVC):
    """A fitted model that knows its scores of some rows and takes any X for them."""

    known_scores: np.ndarray

    def _scores(self, X: Any) -> np.ndarray:
        return self.known_scores.copy()  # callers add the intercept in place


def looks_at_predictions(scorer: Any) -> bool:
    """Whether a scorer needs no rows: those of scikit-learn look at predictions alone."""
    return isinstance(scorer, _BaseScorer | _PassthroughScorer)


def takes_weights(scorer: Any) -> bool:
    """Whether a scorer's metric takes weights."""
    if not looks_at_predictions(scorer):
        return False
    function = getattr(scorer, "_score_func", None)
    return function is None or "sample_weight" in signature(function).parameters
