"""C by cross-validation against scikit-learn's grid search over fits of their own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer, zero_one_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, ShuffleSplit
from sklearn.utils.estimator_checks import parametrize_with_checks
from svc_reference import assert_certified, run_script

from cutplane import LinearSVC, LinearSVCCV

CS = [0.003, 0.03, 0.3, 3.0]
TIGHT = {"tol": 1e-7}


@parametrize_with_checks(
    [
        LinearSVCCV(Cs=2, cv=2),
        LinearSVCCV(Cs=[1.0, 0.1], cv=2, loss="squared_hinge", scoring="balanced_accuracy"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def grid(X, y, scoring=None, cv=None, groups=None, **settings):
    search = GridSearchCV(LinearSVC(**TIGHT, **settings), {"C": CS}, scoring=scoring, cv=cv).fit(
        X, y, groups=groups
    )
    folds = range(search.n_splits_)
    scores = np.array([search.cv_results_[f"split{k}_test_score"] for k in folds])
    return search, scores


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"scoring": "roc_auc"},
        {"scoring": make_scorer(zero_one_loss, greater_is_better=False)},
        {"scoring": lambda model, X, y: -abs(model.decision_function(X)).sum() / X.shape[0]},
        {"cv": ShuffleSplit(3, test_size=0.3, random_state=1)},
        {"class_weight": "balanced", "scoring": "f1"},
        {"loss": "logistic", "cv": 3},
    ],
    ids=["accuracy", "roc_auc", "loss", "callable", "splitter", "balanced", "logistic"],
)
def test_scores_are_those_of_a_grid_search(cancer, settings):
    X, y = cancer
    search = LinearSVCCV(CS, **TIGHT, **settings).fit(X, y)
    reference, scores = grid(X, y, **settings)
    # At tol models differ a little: callables see that, counts of errors hardly ever do.
    np.testing.assert_allclose(search.scores_, scores, rtol=2e-3)
    assert reference.best_params_["C"] == search.C_
    assert search.best_score_ == pytest.approx(reference.best_score_, rel=2e-3)
    if "class_weight" not in settings:
        assert_certified(search.best_estimator_, X, y)
    gaps = [c.relative_gap for fold in search.fold_certificates_ for fits in fold for c in fits]
    assert len(gaps) == scores.size
    assert max(gaps) <= 1e-7
    np.testing.assert_array_equal(search.predict(X), search.best_estimator_.predict(X))
    agree = np.mean(search.predict(X) == reference.predict(X))
    assert agree > 0.99


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_several_classes(iris, multi_class):
    X, y = iris
    names = np.array(["a", "b", "c"])[y]
    search = LinearSVCCV(CS, multi_class=multi_class, **TIGHT).fit(X, names)
    _, scores = grid(X, names, multi_class=multi_class)
    np.testing.assert_allclose(search.scores_, scores, atol=0.04)  # a row of 30 may tip over
    assert search.scores_.mean() == pytest.approx(scores.mean(), abs=0.005)
    assert list(search.classes_) == ["a", "b", "c"]
    assert search.coef_.shape == (3, 4)


def test_groups_are_kept_together(cancer):
    X, y = cancer
    groups = np.arange(len(y)) // 20
    search = LinearSVCCV(CS, cv=GroupKFold(4), **TIGHT).fit(X, y, groups=groups)
    _, scores = grid(X, y, cv=GroupKFold(4), groups=groups)
    np.testing.assert_allclose(search.scores_, scores, atol=1e-9)


def test_held_out_rows_have_no_influence(cancer):
    """Folds share the matrix; whatever stands in the rows left out, their models are the same."""
    X, y = cancer
    folds = [(np.arange(0, 400), np.arange(400, len(y)))]
    search = LinearSVCCV(CS, cv=folds, refit=False, **TIGHT).fit(X, y)
    other = X.copy()
    other[400:] *= -7.0
    changed = LinearSVCCV(CS, cv=folds, refit=False, **TIGHT).fit(other, y)
    for ours, theirs in zip(
        search.fold_certificates_[0], changed.fold_certificates_[0], strict=True
    ):
        assert ours[0].primal == pytest.approx(theirs[0].primal, rel=2e-7)
    alone = LinearSVC(C=CS[-1], **TIGHT).fit(X[:400], y[:400])
    assert alone.certificate_.primal == pytest.approx(
        search.fold_certificates_[0][-1][0].primal, rel=2e-7
    )


def test_rows_that_a_fold_repeats_count_as_often(cancer):
    X, y = cancer
    rows = np.random.default_rng(0).integers(0, 300, size=300)  # a bootstrap sample
    held_out = np.arange(300, len(y))
    search = LinearSVCCV([0.1], cv=[(rows, held_out)], **TIGHT).fit(X, y)
    alone = LinearSVC(C=0.1, **TIGHT).fit(X[rows], y[rows])
    assert search.fold_certificates_[0][0][0].primal == pytest.approx(
        alone.certificate_.primal, rel=2e-7
    )
    assert search.scores_[0, 0] == alone.score(X[held_out], y[held_out])


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(20_000, 60, 0.4, "csr", rng=rng)
    y = X @ rng.normal(size=60) + 0.3 * rng.normal(size=20_000) > 0
    runs = [LinearSVCCV([1e-3, 1e-2], cv=3, n_jobs=n).fit(X, y) for n in (1, 2, 8)]
    for other in runs[1:]:
        np.testing.assert_array_equal(runs[0].coef_, other.coef_)
        np.testing.assert_array_equal(runs[0].scores_, other.scores_)
        assert runs[0].fold_certificates_ == other.fold_certificates_


@pytest.mark.parametrize("seed", [3, np.random.RandomState(3)], ids=["int", "state"])
def test_random_solvers_are_reproducible(cancer, seed):
    X, y = cancer
    search = LinearSVCCV([1e-3, 1e-2], solver="dcd", cv=3, random_state=seed, n_jobs=2, tol=1e-2)
    first = clone(search).fit(X, y)
    second = clone(search).set_params(n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_array_equal(first.scores_, second.scores_)


def test_the_smallest_of_equal_values_is_chosen(iris):
    X, y = iris
    search = LinearSVCCV([10.0, 0.1, 1.0], cv=3).fit(X, y == 0)  # separable: all are perfect
    assert np.all(search.scores_ == 1.0)
    assert search.C_ == 0.1
    np.testing.assert_array_equal(search.Cs_, [10.0, 0.1, 1.0])


def test_without_refit_there_is_no_model(iris):
    X, y = iris
    search = LinearSVCCV([0.1, 1.0], cv=3, refit=False)
    with pytest.raises(NotFittedError):
        search.predict(X)
    search.fit(X, y)
    assert search.C_ in (0.1, 1.0)
    with pytest.raises(AttributeError, match="refit=False"):
        search.predict(X)


def test_column_names_are_kept(iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd"))
    search = LinearSVCCV([0.1], cv=3, scoring=lambda model, X, y: float(list(X) == list("abcd")))
    search.fit(frame, y)
    assert search.best_score_ == 1.0  # a callable gets rows of what the user gave
    assert list(search.feature_names_in_) == list("abcd")
    search.predict(frame)
    with pytest.raises(ValueError, match="feature names"):
        search.predict(frame[["b", "a", "c", "d"]])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scoring": ["accuracy", "f1"]}, "scoring must be the name of one scorer"),
        ({"scoring": "no such"}, "scoring"),
        ({"Cs": [-1.0]}, r"Cs\[0\]"),
        ({"refit": "yes"}, "refit"),
        ({"tol": -1.0}, "tol"),
        ({"loss": "none"}, "loss"),
        ({"random_state": "x"}, "random_state"),
        ({"cv": [(np.arange(50), np.arange(50, 150))]}, "fold 0: only one class"),
    ],
)
def test_bad_parameters(iris, settings, message):
    X, y = iris
    with pytest.raises(ValueError, match=message):
        LinearSVCCV(**settings).fit(X, y)


def test_scores_that_are_never_numbers(iris):
    with pytest.raises(ValueError, match="nan for every C"):
        LinearSVCCV([1.0], cv=2, scoring=lambda model, X, y: np.nan).fit(*iris)


def test_an_error_in_a_scorer_reaches_the_user(iris):
    def scorer(model, X, y):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        LinearSVCCV([1.0], cv=2, scoring=scorer, n_jobs=2).fit(*iris)


def test_an_interrupt_ends_all_folds_soon():
    """Ctrl-C reaches the main thread only; the other folds must end, too."""
    done = run_script(
        """
        import signal, threading, time, numpy as np
        from cutplane import LinearSVCCV
        rng = np.random.default_rng(0)
        X = rng.normal(size=(20_000, 50))
        y = rng.random(20_000) < 0.5
        LinearSVCCV([1e-6], cv=2).fit(X, y)  # compiles
        threading.Timer(1.0, lambda: signal.raise_signal(signal.SIGINT)).start()
        begin = time.perf_counter()
        try:
            LinearSVCCV(np.geomspace(0.1, 1e3, 50), cv=4, n_jobs=2, tol=1e-12).fit(X, y)
        except KeyboardInterrupt:
            print(time.perf_counter() - begin)
        """
    )
    assert float(done.stdout) < 60.0  # all of it takes many minutes
