"""What ChainTagger takes, refuses, and gives back.

scikit-learn's ``parametrize_with_checks`` does not apply: its checks pass one matrix with one
label per row, and a tagger takes sequences of rows with a label per token. The parts of the
contract that make sense for lists are tested here one by one.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold

from cutplane import Status, load_svmlight
from cutplane.estimators.chain_tagger import ChainTagger
from cutplane.structured import sequences_from
from structured_reference import random_chains


@pytest.fixture(scope="module")
def data():
    lengths = (3, 1, 0, 2, 4, 1, 3, 5, 2)
    return random_chains(3, lengths=lengths)


def test_label_names_are_kept(data):
    X, Y = data
    names = np.array(["noun", "verb", "other"])
    model = ChainTagger(10.0).fit(X, [list(names[y]) for y in Y])
    assert model.classes_.tolist() == ["noun", "other", "verb"]
    predicted = model.predict(X)
    assert all(set(labels) <= set(names) for labels in predicted)
    assert isinstance(predicted, list)
    hits = np.concatenate([p == names[y] for p, y in zip(predicted, Y, strict=True)])
    assert model.score(X, [names[y] for y in Y]) == pytest.approx(hits.mean())
    assert model.coef_.shape == (3, 2)
    assert model.transitions_.shape == (3, 3)
    assert model.n_features_in_ == 2


def test_tags_with_gaps(data):
    X, Y = data
    plain = ChainTagger(1.0).fit(X, Y)
    gaps = np.array([-7, 3, 1000])
    model = ChainTagger(1.0).fit(X, [gaps[y] for y in Y])
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    for labels, expected in zip(model.predict(X), plain.predict(X), strict=True):
        np.testing.assert_array_equal(labels, gaps[expected])


def test_one_matrix_with_lengths_is_the_same(data):
    X, Y = data
    lengths = [len(y) for y in Y]
    lists = ChainTagger(1.0).fit(X, Y)
    stacked = ChainTagger(1.0).fit(np.concatenate(X), np.concatenate(Y), lengths=lengths)
    mixed = ChainTagger(1.0).fit(np.concatenate(X), Y, lengths=lengths)
    sparse = ChainTagger(1.0, tol=1e-6).fit([scipy.sparse.csr_array(x) for x in X], Y)
    np.testing.assert_array_equal(stacked.coef_, lists.coef_)
    np.testing.assert_array_equal(mixed.coef_, lists.coef_)
    dense = ChainTagger(1.0, tol=1e-6).fit(X, Y)
    assert sparse.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=2e-6)
    flat = stacked.predict(np.concatenate(X), lengths=lengths)
    np.testing.assert_array_equal(flat, np.concatenate(lists.predict(X)))
    qid = np.repeat(np.arange(len(Y)), lengths)
    found = sequences_from(np.concatenate(X), np.concatenate(Y), qid)
    again = ChainTagger(1.0).fit(found.X, found.y, lengths=found.lengths)
    assert again.certificate_.primal == pytest.approx(lists.certificate_.primal, rel=2e-2)


def test_files_of_svm_hmm(tmp_path):
    """TAG qid:SEQUENCE index:value … # word."""
    path = tmp_path / "train.txt"
    path.write_text(
        "7 qid:1 1:1 # the\n3 qid:1 2:1 # cat\n9 qid:1 3:1 # sat\n"
        "7 qid:2 1:1 # the\n3 qid:2 4:1 # dog\n9 qid:3 3:1 # sat\n"
    )
    X, y, qid = load_svmlight(path, qid=True)
    found = sequences_from(X, y, qid)
    assert found.lengths.tolist() == [3, 2, 1]
    model = ChainTagger(3.0).fit(found.X, found.y, lengths=found.lengths)
    assert model.classes_.tolist() == [3, 7, 9]
    assert model.predict(found.X, lengths=found.lengths).tolist() == y.tolist()


def test_input_is_not_changed(data):
    X, Y = data
    copies = [x.copy() for x in X]
    for x in X:
        x.flags.writeable = False
    ChainTagger(1.0).fit(X, Y)
    for x, copy in zip(X, copies, strict=True):
        np.testing.assert_array_equal(x, copy)


def test_labels_not_seen_in_training_are_wrong(data):
    X, Y = data
    model = ChainTagger(1.0).fit(X, Y)
    assert model.score(X, [np.full(len(y), 99) for y in Y]) == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, Y: ([], []), "no tokens to train on"),
        (lambda X, Y: ([[], []], [[], []]), "no tokens to train on"),
        (lambda X, Y: (X, [np.zeros_like(y) for y in Y]), "one label only"),
        (lambda X, Y: (X, Y[:-1]), "must have 9 sequences"),
        (lambda X, Y: ([*X[:-1], np.zeros((2, 3))], Y), "sequence 8 of X has 3 features"),
        (lambda X, Y: ([*X[:-1], np.full((2, 2), np.nan)], Y), "NaN"),
        (lambda X, Y: ([*X[:-1], np.full((2, 2), np.inf)], Y), "infinity"),
        (lambda X, Y: (np.concatenate(X), np.concatenate(Y)), "pass lengths"),
    ],
)
def test_bad_data(data, change, message):
    with pytest.raises(ValueError, match=message):
        ChainTagger().fit(*change(*data))


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("C", 0.0),
        ("C", -1.0),
        ("C", np.nan),
        ("C", np.inf),
        ("loss", "hinge"),
        ("boundaries", "yes"),
        ("order", 0),
        ("order", 3),
        ("order", 1.5),
        ("solver", "sgd"),
        ("tol", -1.0),
        ("stopping", "soon"),
        ("max_iter", 0),
        ("n_jobs", 0),
        ("time_limit", 0.0),
        ("callback", 3),
        ("warm_start", 2),
        ("verbose", -1),
    ],
)
def test_bad_parameters(data, parameter, value):
    with pytest.raises(ValueError, match=parameter):
        ChainTagger(**{parameter: value}).fit(*data)


def test_prediction_with_another_width(data):
    X, Y = data
    model = ChainTagger(1.0).fit(X, Y)
    with pytest.raises(ValueError, match="sequence 0 of X has 5 features, expected 2"):
        model.predict([np.zeros((1, 5))])
    with pytest.raises(ValueError, match="fitted with 2"):
        model.predict(np.zeros((1, 5)), lengths=[1])
    assert [len(z) for z in model.predict([[], np.zeros((1, 2))])] == [0, 1]
    assert model.predict([]) == []


def test_not_fitted(data):
    with pytest.raises(NotFittedError):
        ChainTagger().predict(data[0])
    with pytest.raises(NotFittedError):
        ChainTagger().score(*data)


def test_all_zero_features(data):
    X, Y = data
    model = ChainTagger(1.0, tol=1e-6).fit([np.zeros_like(x) for x in X], Y)
    np.testing.assert_array_equal(model.coef_, 0.0)
    assert model.certificate_.relative_gap <= 1e-6


@pytest.mark.parametrize("C", [1e-12, 1e12])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_extreme_weights_of_the_loss(data, C):
    X, Y = data
    model = ChainTagger(C, max_iter=300).fit(X, Y)
    assert 0.0 <= model.certificate_.gap < np.inf
    assert np.all(np.isfinite(model.coef_))


def test_clone_pickle_and_grid_search(data):
    X, Y = data
    model = clone(ChainTagger(7.0, loss="zero_one")).fit(X, Y)
    assert model.get_params()["loss"] == "zero_one"
    copy = pickle.loads(pickle.dumps(model))
    for a, b in zip(copy.predict(X), model.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)
    search = GridSearchCV(ChainTagger(), {"C": [1.0, 10.0]}, cv=KFold(3)).fit(X, Y)
    assert search.best_params_["C"] in (1.0, 10.0)


def test_a_callback_can_stop_it(data):
    seen = []

    def callback(iteration):
        seen.append(iteration)
        return len(seen) == 3

    model = ChainTagger(100.0, tol=1e-9, callback=callback).fit(*data)
    assert model.results_[0].status is Status.STOPPED
    assert model.n_iter_ == 3
    assert seen[0].problem == "chain"


def test_ctrl_c_keeps_the_best_model(data):
    def callback(iteration):
        if iteration.number == 3:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        model = ChainTagger(100.0, tol=1e-9, callback=callback).fit(*data)
    assert model.results_[0].status is Status.INTERRUPTED
    assert model.certificate_.gap < np.inf
    assert len(model.predict(data[0])) == len(data[0])
