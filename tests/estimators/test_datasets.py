"""Fits and predictions on data sets on disk: the bits of memory, whatever is kept in memory."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import cutplane.data.blocks
import cutplane.data.dataset.read
import cutplane.exec
from cutplane import (
    LinearSVC,
    LinearSVCCV,
    MeasureSVC,
    OrdinalSVC,
    RankSVM,
    linear_svc_path,
    open_dataset,
    write_dataset,
)

ROWS, FEATURES = 1500, 8


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Many blocks, windows and partial sums on few rows."""
    monkeypatch.setattr(cutplane.data.blocks, "BLOCK_NUMBERS", 400)
    monkeypatch.setattr(cutplane.data.blocks, "BLOCK_NUMBERS_PER_WEIGHT", 1)
    monkeypatch.setattr(cutplane.data.sums, "PARTIAL_NUMBERS", 1)
    monkeypatch.setattr(cutplane.data.dataset.read, "WINDOW", 8000)
    monkeypatch.setattr(cutplane.exec, "NUMBERS_PER_THREAD", 1)


def problem(sparse: bool, dtype=np.float32):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(ROWS, FEATURES)).astype(dtype)
    y = np.clip(np.round(X @ rng.normal(size=FEATURES) + rng.normal(size=ROWS)), 0, 2).astype(int)
    if sparse:
        X = sp.csr_matrix(X * (rng.random(X.shape) < 0.5).astype(dtype))
    return X, y, rng.integers(0, 40, ROWS), rng.integers(1, 4, ROWS).astype(float)


def written(path, X, *columns, **options):
    def chunks():
        for first in range(0, ROWS, 370):
            part = slice(first, first + 370)
            yield X[part], *(None if c is None else c[part] for c in columns)

    write_dataset(path, chunks())
    return open_dataset(path, **options)


MODELS = {
    "hinge": LinearSVC(C=0.1),
    "logistic": LinearSVC(C=0.1, loss="logistic"),
    "regularised bias": LinearSVC(C=0.1, intercept_scaling=1.0),
    "crammer-singer": LinearSVC(C=0.01, multi_class="crammer_singer"),
    "ordinal": OrdinalSVC(),
    "ranking": RankSVM(),
    "roc": MeasureSVC("roc_auc"),
    "f1": MeasureSVC("f1"),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_the_bits_of_memory(tmp_path, name, sparse):
    """In one thread and in three, all of the data kept, part of it, or none."""
    X, y, qid, cost = problem(sparse)
    binary = isinstance(MODELS[name], MeasureSVC)
    y = np.where(y == 0, "no", "yes") if binary else y
    written(tmp_path / "a.cut", X, y, qid, cost)

    def fitted(data, n_jobs, **options):
        model = MODELS[name].__class__(**MODELS[name].get_params()).set_params(n_jobs=n_jobs)
        model.fit(data, **options)
        return model

    columns = {"y": y, "sample_weight": cost}
    if name == "ranking":
        columns["qid"] = qid
    expected = fitted(X, 1, **columns)
    scores = expected.predict(X)
    for limit, n_jobs in ((None, 1), (0, 1), (10_000, 3), (None, 3)):
        data = open_dataset(tmp_path / "a.cut", memory_limit=limit)
        model = fitted(data, n_jobs)
        assert np.array_equal(model.coef_, expected.coef_)
        assert np.array_equal(model.intercept_, expected.intercept_)
        assert model.n_iter_ == expected.n_iter_
        assert model.n_features_in_ == FEATURES
        assert np.array_equal(model.predict(data), scores)
        if hasattr(model, "decision_function"):
            assert np.array_equal(model.decision_function(data), expected.decision_function(X))


def test_labels_and_weights_that_are_given_win(tmp_path):
    X, y, _, cost = problem(False)
    data = written(tmp_path / "a.cut", X, y, None, cost)
    other, ones = (y + 1) % 2, np.ones(ROWS)
    model = LinearSVC(C=0.1).fit(data, other, sample_weight=ones)
    assert np.array_equal(model.coef_, LinearSVC(C=0.1).fit(X, other).coef_)
    assert 0.5 < model.score(data, other) < 1.0


def test_a_path_takes_labels_and_costs(tmp_path):
    X, y, _, cost = problem(False)
    data = written(tmp_path / "a.cut", X, y, None, cost)
    Cs = [0.01, 0.1]
    expected = linear_svc_path(X, y, Cs, sample_weight=cost, solver="ocas")
    path = linear_svc_path(data, Cs=Cs, solver="ocas")
    assert np.array_equal(path.coefs, expected.coefs)
    assert np.array_equal(path.model(1).predict(data), expected.model(1).predict(X))
    assert not np.array_equal(path.coefs, linear_svc_path(X, y, Cs, solver="ocas").coefs)
    unlabelled = written(tmp_path / "b.cut", X, None)
    with pytest.raises(ValueError, match="has no labels; pass y"):
        linear_svc_path(unlabelled, Cs=Cs)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_a_search_predicts_what_it_fits(tmp_path, sparse):
    X, y, _, cost = problem(sparse)
    data = written(tmp_path / "a.cut", X, y, None, cost)
    settings = {"Cs": [0.01, 0.1], "cv": 3, "solver": "ocas", "calibrate": "sigmoid"}
    expected = LinearSVCCV(**settings).fit(X, y, cost)
    model = LinearSVCCV(**settings).fit(data)
    assert np.array_equal(model.coef_, expected.coef_)
    assert np.array_equal(model.predict(data), expected.predict(X))
    assert np.array_equal(model.decision_function(data), expected.decision_function(X))
    assert np.array_equal(model.predict_proba(data), expected.predict_proba(X))
    assert model.score(data, data.y) == expected.score(X, y)
    narrow = written(tmp_path / "b.cut", X[:, 1:], y)
    with pytest.raises(
        ValueError, match=f"has {FEATURES - 1} features, but LinearSVC is expecting"
    ):
        model.predict(narrow)


@pytest.mark.parametrize("solver", ["dcd", "sgd", "pegasos"])
def test_solvers_with_random_access(tmp_path, solver):
    """They run if the data fit the budget, and say so if not."""
    X, y, _, _ = problem(True)
    data = written(tmp_path / "a.cut", X, y)
    model = LinearSVC(C=0.1, solver=solver, random_state=0, max_iter=2, tol=0.5)
    expected = clone(model).fit(X, y)
    found = model.fit(data)
    if solver == "dcd":  # in memory the rows lie in one piece and come in another order
        for mine, theirs in zip(found.certificates_, expected.certificates_, strict=True):
            assert mine.dual <= theirs.primal and theirs.dual <= mine.primal
    else:
        assert np.array_equal(found.coef_, expected.coef_)
    small = open_dataset(data.path, memory_limit=1000)
    with pytest.raises(ValueError, match=f"solver='{solver}' visits rows in random order.*ocas"):
        model.fit(small)


def test_a_warm_start_knows_the_data(tmp_path):
    X, y, _, _ = problem(False)
    y = np.minimum(y, 1)
    data = written(tmp_path / "a.cut", X, y)
    model = LinearSVC(C=0.1, warm_start=True).fit(data)
    first = model.n_iter_
    model.fit(open_dataset(data.path))
    assert model.n_iter_ < first and model.n_iter_ <= 2
    assert model.certificate_.relative_gap <= 1e-3


def test_names_of_columns(tmp_path):
    import pandas as pd

    X, y, _, _ = problem(False)
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    write_dataset(tmp_path / "a.cut", [(frame, y)])
    data = open_dataset(tmp_path / "a.cut")
    model = LinearSVC(C=0.1).fit(data)
    assert model.feature_names_in_.tolist() == list("abcdefgh")
    assert np.array_equal(model.predict(data), model.predict(frame))
    swapped = write_dataset(tmp_path / "b.cut", [(frame[list("bacdefgh")], y)])
    with pytest.raises(ValueError, match="named 'b' where the training data has 'a'"):
        model.predict(swapped)
    unnamed = write_dataset(tmp_path / "c.cut", [(X, y)])
    assert not hasattr(model.fit(unnamed), "feature_names_in_")


def test_test_data_with_other_columns(tmp_path):
    X, y, _, _ = problem(True)
    model = LinearSVC(C=0.1).fit(X, y)
    narrow = written(tmp_path / "n.cut", X[:, :5], y)
    with pytest.raises(ValueError, match=r"has 5 features.*expecting 8.*open it with n_features"):
        model.predict(narrow)
    padded = open_dataset(narrow.path, n_features=FEATURES)
    zeros = X.toarray()
    zeros[:, 5:] = 0.0
    assert np.array_equal(model.predict(padded), model.predict(zeros))
    wide = written(tmp_path / "w.cut", sp.hstack([X, X]).tocsr(), y)
    with pytest.raises(ValueError, match=r"has 16 features.*convert it with n_features"):
        model.predict(wide)


def test_bad_labels(tmp_path):
    X, y, _, _ = problem(False)
    unlabelled = written(tmp_path / "a.cut", X)
    for model in (LinearSVC(), MeasureSVC(), OrdinalSVC(), RankSVM()):
        with pytest.raises(ValueError, match="has no labels; pass y, or write"):
            model.fit(unlabelled)
        with pytest.raises(ValueError, match=f"y has 10 labels, but .* {ROWS} rows"):
            model.fit(unlabelled, y[:10])
    with pytest.raises(ValueError, match="contains NaN"):
        LinearSVC().fit(unlabelled, np.full(ROWS, np.nan))
    one = written(tmp_path / "b.cut", X, np.ones(ROWS))
    with pytest.raises(ValueError, match="one class only"):
        LinearSVC().fit(one)


@pytest.mark.parametrize("name", ["values", "indices"])
def test_a_file_that_shrinks_during_a_fit(tmp_path, name):
    X, y, _, _ = problem(True)
    data = written(tmp_path / "a.cut", X, np.minimum(y, 1))
    file = data.path / f"{name}.npy"

    def shrink(record):
        if record.number == 2:
            with open(file, "r+b") as stream:
                stream.truncate(file.stat().st_size - 4096)

    with pytest.raises(ValueError, match=f"{name}.npy has .* bytes instead of .* cut off"):
        LinearSVC(tol=1e-9, callback=shrink).fit(data)
    with pytest.raises(ValueError, match="cut off"):
        LinearSVC().fit(X, np.minimum(y, 1)).predict(data)


def test_a_read_only_folder_is_enough(tmp_path):
    X, y, _, _ = problem(False)
    data = written(tmp_path / "a.cut", X, y)
    for file in data.path.iterdir():
        file.chmod(0o444)
    data.path.chmod(0o555)
    try:
        model = LinearSVC(C=0.1).fit(open_dataset(data.path))
        assert np.array_equal(model.coef_, LinearSVC(C=0.1).fit(X, y).coef_)
    finally:
        data.path.chmod(0o755)
