"""What ChainTagger with a kernel takes, refuses, keeps and forgets."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold

from cutplane import ChainTagger, Status
from structured_reference import random_chains

GAMMA = 0.5


@pytest.fixture(scope="module", name="data")
def chains():
    return random_chains(3, lengths=(3, 1, 0, 2, 4, 1, 3, 5, 2))


def tagger(**parameters) -> ChainTagger:
    return ChainTagger(4.0, kernel="rbf", gamma=GAMMA, tol=1e-4).set_params(**parameters)


def rbf(A, B):
    return rbf_kernel(A, B, gamma=GAMMA)


def test_layouts_precomputed_and_callable_kernels_agree(data):
    X, Y = data
    rows, y, lengths = np.concatenate(X), np.concatenate(Y), [len(labels) for labels in Y]
    plain = tagger().fit(X, Y)
    values = rbf(rows, rows)
    others = [
        (tagger(), rows),
        (tagger(), scipy.sparse.csr_array(rows)),
        (tagger(), np.asfortranarray(rows)),
        (tagger(kernel=rbf), rows),
        (tagger(kernel="precomputed"), values),
        (tagger(kernel="precomputed"), scipy.sparse.csr_matrix(values)),
    ]
    scores = np.concatenate(plain.decision_function(X))
    for model, given in others:
        model.fit(given, y, lengths=lengths)
        assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-4)
        found = model.decision_function(given, lengths=lengths)
        np.testing.assert_allclose(found, scores, atol=0.1)
        labels = model.predict(given[:4], lengths=[3, 1])
        np.testing.assert_array_equal(labels, np.concatenate(plain.predict(X[:2])))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "gauss"}, "kernel must be one of"),
        ({"gamma": -1.0}, "gamma"),
        ({"gamma": "some"}, "gamma"),
        ({"degree": -1}, "degree"),
        ({"coef0": np.nan}, "coef0"),
        ({"method": "cubic"}, "method must be one of"),
        ({"sample_size": 0}, "sample_size"),
        ({"max_basis": 0}, "max_basis"),
        ({"random_state": "now"}, "random_state"),
        ({"checkpoint": "file"}, "checkpoint is not available with a kernel"),
        ({"kernel": "precomputed"}, "square"),
        ({"kernel": lambda A, B: np.zeros(3)}, "must return an array of shape"),
        ({"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)}, "returned nan for rows"),
    ],
)
def test_bad_parameters(data, parameters, message):
    with pytest.raises(ValueError, match=message):
        tagger(**parameters).fit(*data)


def test_bad_data(data):
    X, Y = data
    with pytest.raises(ValueError, match="sequence 1 of X has 3 features, expected 2"):
        tagger().fit([X[0], np.zeros((1, 3))], Y[:2])
    with pytest.raises(ValueError, match="no tokens to train on"):
        tagger().fit([[], []], [[], []])
    with pytest.raises(ValueError, match="one label only"):
        tagger().fit(X, [np.zeros(len(y), int) for y in Y])
    with pytest.raises(NotFittedError):
        tagger().predict(X)
    model = tagger().fit(X, Y)
    with pytest.raises(ValueError, match="sequence 0 of X has 3 features, expected 2"):
        model.predict([[[1.0, 2.0, 3.0]]])
    with pytest.raises(ValueError, match="confidence"):
        model.sampling_bound(1.5)
    # Labels that training did not have count as wrong.
    assert model.score(X, [y + 7 for y in Y]) == 0.0
    assert [len(labels) for labels in model.predict([X[0], [], X[1]])] == [3, 0, 1]
    assert [s.shape for s in model.decision_function([X[0], [], X[1]])] == [(3, 3), (0, 3), (1, 3)]


def test_a_kernel_that_is_none_has_no_certificate(data):
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model = tagger(kernel="sigmoid", gamma=1.0, coef0=-3.0, max_iter=20).fit(*data)
    assert model.certificate_.kind == "withheld"
    assert model.certificate_.gap == np.inf
    assert len(model.predict(data[0])) == len(data[0])

    def negative(A, B):
        return -rbf(A, B)

    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model = tagger(kernel=negative, max_iter=3).fit(*data)
    assert model.certificate_.kind == "withheld"


def test_a_fit_forgets_the_last_one(data):
    X, Y = data
    model = tagger(order=2, boundaries=True).fit(X, Y)
    assert not hasattr(model, "coef_")
    model.set_params(kernel=None, order=1).fit(X, Y)
    for name in ("support_", "support_vectors_", "dual_coef_", "n_basis_", "second_transitions_"):
        assert not hasattr(model, name)
    fresh = ChainTagger(4.0, tol=1e-4, boundaries=True).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, fresh.coef_)
    model.set_params(kernel="rbf", warm_start=True).fit(X, Y)
    model.fit(X, Y)
    assert not hasattr(model, "coef_")
    np.testing.assert_array_equal(model.dual_coef_, tagger(boundaries=True).fit(X, Y).dual_coef_)


def test_clone_pickle_and_grid_search(data):
    X, Y = data
    model = clone(tagger(max_basis=6)).fit(X, Y)
    assert model.n_basis_ <= 6
    copy = pickle.loads(pickle.dumps(model))
    for a, b in zip(copy.predict(X), model.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)
    search = GridSearchCV(tagger(), {"gamma": [0.1, 1.0]}, cv=KFold(3)).fit(X, Y)
    assert search.best_params_["gamma"] in (0.1, 1.0)


def test_callbacks_and_ctrl_c_keep_the_best_model(data):
    seen = []

    def stop(iteration):
        seen.append(iteration)
        return len(seen) == 3

    model = tagger(C=100.0, tol=1e-9, callback=stop).fit(*data)
    assert model.results_[0].status is Status.STOPPED
    assert (model.n_iter_, seen[0].problem) == (3, "chain")

    def interrupt(iteration):
        if iteration.number == 3:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        model = tagger(C=100.0, tol=1e-9, callback=interrupt).fit(*data)
    assert model.results_[0].status is Status.INTERRUPTED
    assert model.certificate_.gap < np.inf
    assert len(model.predict(data[0])) == len(data[0])


@pytest.mark.parametrize("C", [1e-12, 1e12])
@pytest.mark.filterwarnings("ignore")
def test_extreme_weights_of_the_loss(data, C):
    certificate = tagger(C=C, max_iter=200).fit(*data).certificate_
    assert certificate.gap >= 0.0
    assert np.isfinite(certificate.primal)


def test_features_that_are_all_zero(data):
    X, Y = data
    model = tagger(boundaries=True).fit([np.zeros_like(x) for x in X], Y)
    assert model.certificate_.relative_gap <= 1e-4
    assert np.ptp(model.decision_function([np.zeros((2, 2))])[0], axis=0).max() == 0.0
