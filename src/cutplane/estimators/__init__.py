"""Estimators in the scikit-learn API: validate, assemble, call, store."""

from .linear_svc import LinearSVC

__all__ = ["LinearSVC"]
