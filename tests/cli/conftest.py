"""Small files of every kind, made once."""

from __future__ import annotations

import types

import numpy as np
import pytest
import scipy.sparse

from cutplane import dump_svmlight


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Paths of files by kind, and the arrays that are in them."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(7)
    X = rng.normal(size=(120, 6)).round(3)
    X[rng.random(X.shape) < 0.3] = 0.0
    X[0] = 1.0  # the last column is not empty
    score = X @ rng.normal(size=6) + 0.3 * rng.normal(size=120)
    qid = np.repeat(np.arange(1, 25), 5)
    labels = {
        "binary": np.where(score > 0.2, 1.0, -1.0),
        "classes": np.digitize(score, [-0.7, 0.9]) + 1.0,
        "grades": np.digitize(score, [-1.0, 0.0, 1.0]) + 1.0,
        "ranking": np.digitize(score, [-0.5, 0.8]) + 0.0,
        "numbers": score.round(4),
        "tags": np.digitize(score, [-0.7, 0.9]) + 1.0,
    }
    paths = {}
    for name, y in labels.items():
        paths[name] = folder / f"{name}.svm"
        queries = qid if name in ("ranking", "tags") else None
        dump_svmlight(scipy.sparse.csr_matrix(X), y, paths[name], qid=queries)
    return types.SimpleNamespace(
        folder=folder, X=scipy.sparse.csr_matrix(X), y=labels, qid=qid, **paths
    )
