"""Sparse matrices whose arrays do not fit together are refused at every entry, by name."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import cutplane
from cutplane._checks import check_sparse
from cutplane.data.partitions import clean
from cutplane.structured import MulticlassProblem, sequences_from

ROWS, FEATURES = 12, 5
y = np.arange(ROWS) % 2


def good(layout="csr"):
    values = np.random.default_rng(0).normal(size=(ROWS, FEATURES))
    return scipy.sparse.csr_array(values).asformat(layout, copy=True)


def _index_too_large(X):
    X.indices[7] = max(X.shape)


def _negative_index(X):
    X.indices[7] = -1


def _decreasing_starts(X):
    X.indptr[2] = 0


def _first_start(X):
    X.indptr[0] = -3


def _last_start(X):
    X.indptr[-1] += 1000


def _too_few_starts(X):
    X.indptr = X.indptr[:-1]


def _too_few_values(X):
    X.data = X.data[:-20]


DAMAGES = [
    _index_too_large,
    _negative_index,
    _decreasing_starts,
    _first_start,
    _last_start,
    _too_few_starts,
    _too_few_values,
]


ESTIMATORS = {
    "LinearSVC": (cutplane.LinearSVC, {}),
    "LinearSVC, joint": (cutplane.LinearSVC, {"multi_class": "crammer_singer"}),
    "LinearSVCCV": (cutplane.LinearSVCCV, {"Cs": [1.0], "cv": 2}),
    "MeasureSVC": (cutplane.MeasureSVC, {"measure": "f1"}),
    "RankSVM": (cutplane.RankSVM, {}),
    "OrdinalSVC": (cutplane.OrdinalSVC, {}),
    "SVC": (cutplane.SVC, {}),
    "SVR": (cutplane.SVR, {}),
    "OneClassSVM": (cutplane.OneClassSVM, {}),
    "SampledCutSVC": (cutplane.SampledCutSVC, {"random_state": 0}),
    "CholeskyFeatures": (cutplane.CholeskyFeatures, {"n_components": 3}),
    "ChainTagger": (cutplane.ChainTagger, {}),
    "ChainTagger, kernel": (cutplane.ChainTagger, {"kernel": "rbf"}),
    "StructuredSVM": (cutplane.StructuredSVM, {"problem": MulticlassProblem()}),
    "StructuredSVM, kernel": (
        cutplane.StructuredSVM,
        {"problem": MulticlassProblem(), "kernel": "rbf"},
    ),
}


@pytest.fixture(scope="module", params=ESTIMATORS)
def entry(request):
    """An estimator and what fit takes besides X and y."""
    make, parameters = ESTIMATORS[request.param]
    fit = {"RankSVM": {"qid": np.zeros(ROWS)}, "ChainTagger": {"lengths": [ROWS]}}
    return make(**parameters), fit.get(make.__name__, {})


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_fit_refuses(entry, damage, layout):
    model, arguments = entry
    X = good(layout)
    damage(X)
    with pytest.raises(ValueError, match=r"^X is a damaged sparse matrix: .*Build it anew"):
        model.fit(X, y, **arguments)


@pytest.fixture(scope="module")
def fitted(entry):
    model, arguments = entry
    return model.fit(good(), y, **arguments), {k: v for k, v in arguments.items() if k != "qid"}


@pytest.mark.parametrize("damage", DAMAGES)
def test_answers_refuse(fitted, damage):
    model, arguments = fitted
    X = good()
    damage(X)
    names = ("predict", "decision_function", "transform", "score_samples")
    for name in (name for name in names if hasattr(model, name)):
        with pytest.raises(ValueError, match=r"^X is a damaged sparse matrix: .*Build it anew"):
            getattr(model, name)(X, **arguments)


@pytest.mark.parametrize("damage", DAMAGES)
def test_other_entries_refuse(damage):
    X = good()
    damage(X)
    with pytest.raises(ValueError, match=r"^X is a damaged sparse matrix"):
        cutplane.linear_svc_path(X, y, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"^X is a damaged sparse matrix"):
        sequences_from(X, y, np.zeros(ROWS))
    with pytest.raises(ValueError, match=r"^sequence 1 of X is a damaged sparse matrix"):
        cutplane.ChainTagger().fit([good(), X], [y, y])
    with pytest.raises(ValueError, match=r"^partition 3 of X is a damaged sparse matrix"):
        clean(3, X)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr", "dok", "lil", "dia"])
def test_right_matrices_pass(layout):
    check_sparse(good(layout))
    check_sparse(scipy.sparse.csr_array((4, 3)).asformat(layout))
    check_sparse(scipy.sparse.csr_array((0, 3)).asformat(layout))


def test_more_values_than_are_used_pass():
    X = good()
    X.indices, X.data = np.append(X.indices, -5), np.append(X.data, 1.0)  # after the last row
    check_sparse(X)


def test_indices_of_pairs_are_checked():
    X = good("coo")
    X.col[3] = FEATURES
    with pytest.raises(ValueError, match="col must be from 0 to 4, but one is 5"):
        check_sparse(X)
