"""Several labels per row, problems side by side, and coefficients without small weights."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import hamming_loss
from sklearn.multiclass import OneVsRestClassifier
from svc_reference import binary_objective, quiet_fit

import cutplane.exec
from cutplane import LinearSVC, LinearSVCCV, Status, linear_svc_path, load_model, save_model
from cutplane.estimators import _base, _fit, _parallel

ROWS, FEATURES, LABELS = 300, 40, 7


def problem(rows=ROWS, features=FEATURES, labels=LABELS, seed=0):
    """Sparse rows, each with none, one or several labels."""
    rng = np.random.default_rng(seed)
    X = scipy.sparse.random(rows, features, 0.2, "csr", rng=rng)
    scores = X @ rng.standard_normal((features, labels)) + 0.3 * rng.standard_normal((rows, labels))
    return X, (scores > np.quantile(scores, 0.8, axis=0)).astype(int)


X, Y = problem()


@pytest.fixture
def side_by_side(monkeypatch):
    """Threads for any data; a list of how many threads solved problems side by side."""
    monkeypatch.setattr(cutplane.exec, "NUMBERS_PER_THREAD", 1)
    threads = []

    def counted(problems, settings, count, *rest, **options):
        threads.append(count)
        return _parallel.solve_in_parallel(problems, settings, count, *rest, **options)

    monkeypatch.setattr(_base, "solve_in_parallel", counted)
    return threads


def bits(model) -> tuple:
    """All that a fit has computed."""
    coef = model.coef_
    parts = (coef.data, coef.indices, coef.indptr) if scipy.sparse.issparse(coef) else (coef,)
    return (
        *(part.tobytes() for part in parts),
        model.intercept_.tobytes(),
        [(r.primal, r.dual, r.step) for result in model.results_ for r in result.trace],
        model.certificates_,
    )


# -- labels -------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": "squared_hinge"},
        {"loss": "logistic"},
        {"class_weight": "balanced"},
        {"class_weight": {1: 3.0}},
        {"fit_intercept": False},
        {"intercept_scaling": 2.0},
        {"solver": "ocas"},
    ],
    ids=str,
)
def test_labels_are_those_of_one_vs_rest(options, sparse):
    target = scipy.sparse.csr_matrix(Y) if sparse else Y
    model = LinearSVC(**options).fit(X, target)
    reference = OneVsRestClassifier(LinearSVC(**options)).fit(X, target)
    parts = reference.estimators_
    assert np.array_equal(model.coef_, np.vstack([part.coef_ for part in parts]))
    assert np.array_equal(model.intercept_, np.concatenate([part.intercept_ for part in parts]))
    assert model.certificates_ == [part.certificate_ for part in parts]
    assert model.certificate_.primal == sum(part.certificate_.primal for part in parts)
    assert np.array_equal(model.classes_, reference.classes_)
    assert model.multilabel_ is reference.multilabel_ is True
    np.testing.assert_allclose(model.decision_function(X), reference.decision_function(X))
    predicted, expected = model.predict(X), reference.predict(X)
    assert scipy.sparse.issparse(predicted) == scipy.sparse.issparse(expected) == sparse
    assert predicted.dtype == expected.dtype
    assert abs(predicted - expected).sum() == 0
    assert model.score(X, target) == reference.score(X, target)
    if options.get("loss") == "logistic":
        np.testing.assert_allclose(model.predict_proba(X), reference.predict_proba(X))
        np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))


def test_weights_of_many_labels_are_kept_once():
    assert all(len(result.w) == 0 for result in LinearSVC().fit(X, Y).results_)
    assert len(LinearSVC().fit(X, Y[:, 0]).results_[0].w) == X.shape[1]


def test_weights_of_rows_count_for_every_label():
    weights = np.random.default_rng(1).integers(0, 3, ROWS).astype(float)
    model = LinearSVC().fit(X, Y, sample_weight=weights)
    for k in range(LABELS):
        own = LinearSVC().fit(X, Y[:, k], sample_weight=weights)
        assert np.array_equal(model.coef_[k], own.coef_[0])
        assert model.intercept_[k] == own.intercept_[0]


def test_many_labels_are_scored_in_parts():
    many = np.hstack([Y] * 19)  # more than two parts, the last one not full
    model = LinearSVC(coef_threshold=0.0).fit(X, scipy.sparse.csr_matrix(many))
    expected = X @ model.coef_.toarray().T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), expected)
    assert np.array_equal(model.predict(X).toarray(), model.decision_function(X) > 0.0)
    model.sparse_labels_ = False
    assert np.array_equal(model.predict(X), expected > 0.0)


def test_one_column_that_is_sparse_is_one_label():
    model = LinearSVC().fit(X, scipy.sparse.csr_matrix(Y[:, :1]))
    assert np.array_equal(model.coef_, LinearSVC().fit(X, Y[:, 0]).coef_)
    assert model.decision_function(X).shape == model.predict(X).shape == (ROWS, 1)
    assert np.array_equal(model.predict(X).toarray(), model.decision_function(X) > 0.0)


@pytest.mark.parametrize(
    "form",
    [
        lambda Y: Y.astype(bool),
        lambda Y: Y.astype(float),
        lambda Y: Y.tolist(),
        scipy.sparse.coo_array,
        scipy.sparse.lil_matrix,
        lambda Y: scipy.sparse.csc_matrix(Y).astype(np.float32),
    ],
)
def test_forms_of_an_indicator(form):
    assert bits(LinearSVC().fit(X, form(Y))) == bits(LinearSVC().fit(X, Y))


def test_stored_zeros_are_no_labels():
    rows, labels = np.nonzero(np.ones_like(Y))
    full = scipy.sparse.csr_matrix((Y.ravel(), (rows, labels)), Y.shape)
    assert full.nnz > Y.sum()
    assert bits(LinearSVC().fit(X, full)) == bits(LinearSVC().fit(X, Y))


def test_a_fit_forgets_the_labels_before():
    model = LinearSVC().fit(X, Y).fit(X, Y[:, 0])
    assert model.multilabel_ is False
    assert model.predict(X).shape == (ROWS,)
    assert np.array_equal(model.coef_, LinearSVC().fit(X, Y[:, 0]).coef_)


def with_column(k, value):
    changed = Y.copy()
    changed[:, k] = value
    return changed


@pytest.mark.parametrize(
    ("options", "target", "message"),
    [
        ({}, with_column(3, 0), "Y: column 3 has no row of positive weight.*Leave such columns"),
        ({}, with_column(2, 1), "Y: column 2 has all rows of positive weight"),
        ({}, np.zeros_like(Y), "Y: columns 0, 1, 2, 3, 4, 5, 6 have no row"),
        ({}, np.zeros((ROWS, 20)), "columns 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 10 more have no row"),
        ({}, 2 * Y, r"Y .* 0 and 1, but has the value 2.*\(Y > 0\)"),
        ({}, -Y, "Y .* has the value -1"),
        ({}, Y.astype(str), "MultiLabelBinarizer"),
        ({}, np.where(Y, np.nan, 1.0), "Y contains NaN"),
        ({}, Y[:-1], "inconsistent numbers of samples"),
        ({"multi_class": "crammer_singer"}, Y, "multi_class='crammer_singer' is for one class"),
        ({"class_weight": {1: 0.0}}, Y, "Y, column 0: only one class has rows"),
    ],
)
def test_bad_labels(options, target, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC(**options).fit(X, target)


def test_a_label_whose_rows_have_no_weight():
    with pytest.raises(ValueError, match="column 1 has no row of positive weight"):
        LinearSVC().fit(X, Y, sample_weight=1.0 - Y[:, 1])


# -- side by side -------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"solver": "dcd", "random_state": 3},
        {"solver": "auto", "random_state": 3},
        {"solver": "sgd", "random_state": "a generator", "max_iter": 3},
        {"solver": "cpa"},
        {"coef_threshold": 0.1},
        {"max_iter": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("labels", [True, False])
def test_the_same_bits_side_by_side(side_by_side, options, labels):
    target = Y if labels else Y[:, :3] @ [1, 2, 4]  # several classes
    found = []
    for n_jobs in (1, 2, 3):
        own = dict(options)
        if own.get("random_state") == "a generator":
            own["random_state"] = np.random.RandomState(5)
        found.append(bits(quiet_fit(LinearSVC(n_jobs=n_jobs, **own), X, target)))
    assert side_by_side == [2, 3]
    assert found[1] == found[0]
    assert found[2] == found[0]


def test_warm_starts_side_by_side(side_by_side):
    found = []
    for n_jobs in (1, 3):
        model = LinearSVC(C=0.1, warm_start=True, n_jobs=n_jobs).fit(X, Y)
        found.append((bits(model), bits(model.set_params(C=1.0).fit(X, Y)), model.n_iter_))
    assert side_by_side == [3, 3]
    assert found[0] == found[1]


def test_a_dual_start_side_by_side(side_by_side):
    dual = np.random.default_rng(0).random((LABELS, ROWS))
    found = [bits(LinearSVC(n_jobs=n).fit(X, Y, dual_init=dual)) for n in (1, 2)]
    assert found[0] == found[1]


def test_folds_side_by_side(side_by_side):
    classes = Y[:, :3] @ [1, 2, 4] % 4
    found = [LinearSVCCV(Cs=[0.1, 1.0], cv=3, n_jobs=n).fit(X, classes) for n in (1, 3)]
    assert bits(found[0].best_estimator_) == bits(found[1].best_estimator_)
    assert np.array_equal(found[0].scores_, found[1].scores_)
    assert found[0].fold_certificates_ == found[1].fold_certificates_
    assert side_by_side == [3]  # the last fit


def test_callbacks_see_one_problem_after_the_other(side_by_side):
    seen = []
    LinearSVC(n_jobs=2, callback=lambda record: seen.append(record.problem)).fit(X, Y)
    assert not side_by_side
    assert list(dict.fromkeys(seen)) == [f"label {k}" for k in range(LABELS)]
    assert seen == sorted(seen)


def test_beyond_the_time_limit_every_problem_gets_an_iteration(side_by_side):
    model = quiet_fit(LinearSVC(solver="ocas", n_jobs=2, time_limit=1e-9, tol=1e-9), X, Y)
    assert side_by_side == [2]
    assert [result.n_iter for result in model.results_] == [1] * LABELS
    assert {result.status for result in model.results_} == {Status.TIME_LIMIT}


def interrupt_main(monkeypatch, at, raise_it):
    """Call something in the main thread at its n-th iteration; helpers wait until then."""
    original, calls, reached = _fit._Fit._observe, [], threading.Event()

    def observe(self, *arguments):
        if threading.current_thread() is threading.main_thread():
            calls.append(1)
            if len(calls) == at:
                reached.set()
                raise_it()
        elif len(calls) < at:
            reached.wait(30.0)
        return original(self, *arguments)

    monkeypatch.setattr(_fit._Fit, "_observe", observe)


def raise_interrupt():
    raise KeyboardInterrupt


def test_an_interrupt_leaves_a_complete_model(side_by_side, monkeypatch):
    interrupt_main(monkeypatch, 3, raise_interrupt)
    model = LinearSVC(solver="ocas", tol=1e-9, n_jobs=2)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X, Y)
    assert side_by_side == [2]
    assert {result.status for result in model.results_} == {Status.INTERRUPTED}
    assert model.coef_.shape == (LABELS, FEATURES)
    for k, certificate in enumerate(model.certificates_):
        signs = 2.0 * Y[:, k] - 1.0
        objective = binary_objective(model.coef_[k], model.intercept_[k], X, signs, 1.0)
        assert objective <= certificate.primal <= objective * (1.0 + 1e-9)


def test_an_interrupt_between_problems_leaves_a_complete_model(side_by_side, monkeypatch):
    calls = []

    def solve(*arguments, **options):
        if threading.current_thread() is threading.main_thread():
            calls.append(1)
            if len(calls) == 2:
                raise KeyboardInterrupt
        return _fit.solve(*arguments, **options)

    monkeypatch.setattr(_parallel, "solve", solve)
    model = quiet_fit(LinearSVC(n_jobs=2), X, np.hstack([Y] * 5))
    assert model.coef_.shape == (5 * LABELS, FEATURES)
    assert len(model.results_) == 5 * LABELS


def test_a_second_interrupt_is_raised(side_by_side, monkeypatch):
    def solve(*arguments, **options):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return _fit.solve(*arguments, **options)

    monkeypatch.setattr(_parallel, "solve", solve)
    try:
        LinearSVC(n_jobs=2).fit(X, Y)
    except KeyboardInterrupt:
        pass
    else:
        pytest.fail("the interrupts got lost")


def test_an_error_in_a_helper_is_raised(side_by_side, monkeypatch):
    failed = threading.Event()

    def solve(*arguments, **options):
        if threading.current_thread() is not threading.main_thread():
            failed.set()
            raise RuntimeError("no luck")
        failed.wait(30.0)
        return _fit.solve(*arguments, **options)

    monkeypatch.setattr(_parallel, "solve", solve)
    with pytest.raises(RuntimeError, match="no luck"):
        LinearSVC(n_jobs=2).fit(X, Y)


# -- without small weights ----------------------------------------------------


@pytest.mark.parametrize("threshold", [0.0, 0.05, 10.0])
@pytest.mark.parametrize(
    "options", [{}, {"intercept_scaling": 1.5}, {"fit_intercept": False}, {"loss": "logistic"}]
)
def test_certificates_are_of_the_model_without_small_weights(options, threshold):
    full = LinearSVC(tol=1e-6, **options).fit(X, Y)
    model = LinearSVC(tol=1e-6, coef_threshold=threshold, **options).fit(X, Y)
    kept = np.abs(full.coef_) >= threshold
    assert isinstance(model.coef_, scipy.sparse.csr_matrix)
    assert np.array_equal(model.coef_.toarray(), np.where(kept, full.coef_, 0.0))
    assert model.coef_.nnz == np.count_nonzero(full.coef_[kept])
    scaling = options.get("intercept_scaling")
    for k, certificate in enumerate(model.certificates_):
        signs, w, bias = 2.0 * Y[:, k] - 1.0, model.coef_[[k]].toarray()[0], model.intercept_[k]
        loss = options.get("loss", "hinge")
        objective = binary_objective(w, bias, X, signs, 1.0, loss, scaling=scaling)
        assert objective <= certificate.primal <= objective * (1.0 + 1e-9)
        assert certificate.dual == full.certificates_[k].dual
        if not options or "loss" in options:  # the bias is the best one for these weights
            for other in bias + np.array([-0.01, 0.01]):
                worse = binary_objective(w, other, X, signs, 1.0, loss)
                assert worse >= objective * (1.0 - 1e-6)
    assert all(len(result.w) == 0 for result in model.results_)


@pytest.mark.parametrize(
    ("target", "options"),
    [
        (Y[:, 0], {}),
        (Y[:, :2] @ [1, 2], {}),
        (Y[:, :2] @ [1, 2], {"multi_class": "crammer_singer"}),
        (Y[:, :2] @ [1, 2], {"multi_class": "multinomial", "loss": "logistic"}),
    ],
)
def test_classes_without_small_weights(target, options):
    full = LinearSVC(**options).fit(X, target)
    model = LinearSVC(coef_threshold=0.1, **options).fit(X, target)
    kept = np.abs(full.coef_) >= 0.1
    assert 0 < model.coef_.nnz < full.coef_.size
    assert np.array_equal(model.coef_.toarray(), np.where(kept, full.coef_, 0.0))
    assert model.certificate_.primal >= full.certificate_.dual
    scores = X @ model.coef_.toarray().T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X).reshape(ROWS, -1), scores)


def test_a_warm_start_from_sparse_coefficients():
    model = LinearSVC(coef_threshold=0.0, warm_start=True, solver="ocas").fit(X, Y)
    first = model.n_iter_
    assert model.fit(X, Y).n_iter_ < first


def test_sparsify_drops_small_weights():
    model = LinearSVC().fit(X, Y)
    full = model.coef_.copy()
    assert model.sparsify(0.2) is model
    assert np.array_equal(model.coef_.toarray(), np.where(np.abs(full) < 0.2, 0.0, full))
    assert np.all(np.abs(model.coef_.data) >= 0.2)
    assert np.array_equal(model.densify().coef_, np.where(np.abs(full) < 0.2, 0.0, full))
    with pytest.raises(ValueError, match="threshold"):
        model.sparsify(-1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coef_threshold": -0.1}, "coef_threshold must be"),
        ({"coef_threshold": "small"}, "coef_threshold must be"),
        ({"coef_threshold": 0.1, "checkpoint": "state"}, "leave out checkpoint or coef_threshold"),
    ],
)
def test_bad_thresholds(options, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC(**options).fit(X, Y)


def test_a_path_keeps_all_weights():
    with pytest.raises(TypeError, match="takes no coef_threshold"):
        linear_svc_path(X, Y[:, 0], [0.1, 1.0], coef_threshold=0.1)


# -- files --------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [None, 0.05])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_a_model_of_labels_in_a_file(tmp_path, threshold, form):
    model = LinearSVC(coef_threshold=threshold).fit(X, form(Y))
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert bits(loaded) == bits(model)
    assert loaded.multilabel_ is True
    predicted = loaded.predict(X)
    assert type(predicted) is type(model.predict(X))
    assert abs(predicted - model.predict(X)).sum() == 0
    assert hamming_loss(Y, predicted) == hamming_loss(Y, model.predict(X))


def test_a_file_that_does_not_fit_together(tmp_path):
    model = LinearSVC().fit(X, Y)
    for name, value in (("classes_", np.ones((7, 1))), ("sparse_labels_", 2)):
        right = getattr(model, name)
        setattr(model, name, value)
        save_model(model, tmp_path / "model")
        setattr(model, name, right)
        with pytest.raises(ValueError, match=name):
            load_model(tmp_path / "model")


def test_labels_in_onnx():
    from onnx.reference import ReferenceEvaluator

    from cutplane.models import to_onnx

    model = LinearSVC(coef_threshold=0.05).fit(X, Y)
    rows = X.toarray()
    label, scores = ReferenceEvaluator(to_onnx(model)).run(None, {"X": rows})
    np.testing.assert_allclose(scores, model.decision_function(rows))
    assert np.array_equal(label, model.predict(rows))
