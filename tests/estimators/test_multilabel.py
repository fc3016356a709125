"""Several labels at once, against every subset and against one problem per label."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse

from cutplane import LinearSVC, StructuredSVM, load_model, save_model
from cutplane.structured import MultilabelProblem
from structured_reference import Enumerated


def data(rows: int = 20, labels: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The last label is there if exactly one of the first two is, or by chance."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2))
    Y = (X @ rng.normal(size=(2, labels)) + 0.5 * rng.normal(size=(rows, labels)) > 0).astype(int)
    Y[:, -1] = np.where(rng.random(rows) < 0.8, Y[:, 0] ^ Y[:, 1], Y[:, -1])
    return X, Y


def feature(x, y, pairwise):
    pairs = [y[j] * y[k] for j, k in itertools.combinations(range(len(y)), 2)]
    return np.concatenate([np.kron(y, x), pairs if pairwise else []])


def every_subset(labels):
    return [np.array(z) for z in itertools.product((0, 1), repeat=labels)]


@pytest.mark.parametrize("pairwise", [True, False])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_the_optimum_of_the_enumerated_problem(pairwise, rescaling):
    X, Y = data()
    every = Enumerated.make(
        X, Y, lambda x: every_subset(3), lambda x, z: feature(x, z, pairwise),
        lambda y, z: np.sum(y != z), rescaling=rescaling,
    )  # fmt: skip
    model = StructuredSVM(MultilabelProblem(pairwise), C=1.0, rescaling=rescaling, tol=1e-7)
    model.fit(X, Y)
    optimum = every.optimum(1.0)
    assert model.certificate_.kind == "exact"
    assert model.certificate_.dual <= optimum * (1 + 1e-8)
    assert optimum <= model.certificate_.primal * (1 + 1e-8)
    assert every.objective(model.coef_, 1.0) == pytest.approx(model.certificate_.primal, rel=1e-9)
    best = [
        max(every_subset(3), key=lambda z, x=x: model.coef_ @ feature(x, z, pairwise)) for x in X
    ]
    np.testing.assert_array_equal(model.predict(X), best)
    assert model.score(X, Y) == -np.mean(np.sum(model.predict(X) != Y, axis=1))


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array, list], ids=str)
def test_without_pairs_every_label_is_alone(layout):
    X, Y = data(60, 4)
    model = StructuredSVM(MultilabelProblem(pairwise=False), C=0.5, tol=1e-6).fit(layout(X), Y)
    # A label's part in the loss is the hinge of its score.
    alone = [
        LinearSVC(C=0.5, loss="hinge", fit_intercept=False, tol=1e-6).fit(X, y)
        for y in np.ascontiguousarray(Y.T)
    ]
    for k, single in enumerate(alone):
        np.testing.assert_allclose(model.coef_.reshape(4, 2)[k], single.coef_[0], atol=0.02)
    total = sum(single.certificate_.primal for single in alone)
    assert model.certificate_.primal == pytest.approx(total, rel=1e-5)


def test_ten_labels_in_threads_and_files(tmp_path):
    X, Y = data(150, 10)
    model = StructuredSVM(MultilabelProblem(), C=0.5, n_jobs=2).fit(X, Y)
    again = StructuredSVM(MultilabelProblem(), C=0.5, n_jobs=1).fit(list(X), list(Y))
    np.testing.assert_array_equal(model.coef_, again.coef_)
    save_model(model, tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m").predict(X), model.predict(X))
    pairs = StructuredSVM(MultilabelProblem(), C=0.5).fit(*data(300)).score(*data(300, seed=0))
    alone = StructuredSVM(MultilabelProblem(False), C=0.5).fit(*data(300)).score(*data(300))
    assert pairs > alone  # "one of the two" is a matter of pairs


@pytest.mark.parametrize(
    ("problem", "Y", "message"),
    [
        (MultilabelProblem(), np.zeros((20, 17), int), "not for 17; pairwise=False"),
        (MultilabelProblem(), np.full((20, 3), 2), "zeros and ones"),
        (MultilabelProblem(), ["a"] * 20, "MultiLabelBinarizer"),
        (MultilabelProblem(), [[0, 1]] * 19 + [[1]], "same number of labels"),
        (MultilabelProblem(labels=2), np.zeros((20, 3), int), "3 labels, but MultilabelProblem 2"),
    ],
)
def test_bad_outputs(problem, Y, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(problem).fit(data()[0], Y)


def test_many_labels_without_pairs():
    X, Y = data(40, 30)
    assert StructuredSVM(MultilabelProblem(False)).fit(X, Y).predict(X).shape == (40, 30)
    with pytest.raises(ValueError, match="rescaling='margin'"):
        StructuredSVM(MultilabelProblem(False), rescaling="slack").fit(X, Y)
