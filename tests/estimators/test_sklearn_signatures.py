"""scikit-learn's parameters and attributes: taken, honoured, or refused with a remedy."""

from __future__ import annotations

import inspect
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
import sklearn.svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification

import cutplane
from cutplane import SVC, SVR, LinearSVC, OneClassSVM
from cutplane.models import load_model, save_model, save_svmlight_model, save_weights

X, y = make_classification(120, 8, class_sep=0.8, random_state=0)
three = np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7])
SPARSE = scipy.sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
KERNEL = {"SVC": (SVC(), y), "SVR": (SVR(), X[:, 0]), "OneClassSVM": (OneClassSVM(), None)}


@pytest.mark.parametrize("name", ["SVC", "SVR", "OneClassSVM", "LinearSVC", "LinearSVR"])
def test_every_parameter_of_scikit_learn_is_taken(name):
    """With its default, so that parameters of the one can be given to the other."""
    theirs = getattr(sklearn.svm, name)
    ours = getattr(cutplane, name)
    missing = set(inspect.signature(theirs).parameters) - set(inspect.signature(ours).parameters)
    assert not missing
    model = ours(**theirs().get_params())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)


def test_scikit_learns_defaults_give_its_optimum():
    theirs = sklearn.svm.LinearSVC(tol=1e-10, max_iter=100_000, random_state=0).fit(X, y)
    ours = LinearSVC(**theirs.get_params()).set_params(tol=1e-8, max_iter=None).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)


@pytest.mark.parametrize("dual", [True, False, "auto", np.True_])
def test_what_cannot_change_the_answer_does_not(dual):
    plain = LinearSVC().fit(X, y)
    assert np.array_equal(LinearSVC(dual=dual, penalty="l2").fit(X, y).coef_, plain.coef_)
    one, two = SVC(random_state=0).fit(X, y), SVC(probability="deprecated").fit(X, y)
    assert np.array_equal(one.dual_coef_, two.dual_coef_)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SVC(probability=True), r"probability must be False, got True; .*CalibratedClassifierCV"),
        (LinearSVC(penalty="l1"), r"penalty must be 'l2', got 'l1'.*sklearn\.svm\.LinearSVC"),
        (LinearSVC(penalty=None), r"penalty must be 'l2', got None"),
        (LinearSVC(dual="yes"), r"dual must be True or False, got 'yes'"),
    ],
)
def test_what_is_refused_says_what_to_do(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_the_remedy_for_probabilities_works():
    model = CalibratedClassifierCV(SVC(), ensemble=False).fit(X, three)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.mean(model.predict(X) == three) > 0.8


# -- sparse coefficients ----------------------------------------------------------------


@pytest.mark.parametrize("container", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", KERNEL)
def test_sparse_rows_have_sparse_coefficients(tmp_path, name, kernel, container):
    model, target = KERNEL[name]
    model = model.set_params(kernel=kernel, tol=1e-6)
    dense = model.fit(SPARSE.toarray(), target)
    scores, coef = dense.predict(SPARSE), dense.dual_coef_
    weights = dense.coef_ if kernel == "linear" else None
    rows = container(SPARSE)
    model.fit(rows, target)
    assert type(model.dual_coef_) is type(model.support_vectors_) is type(rows)
    np.testing.assert_allclose(model.dual_coef_.toarray(), coef, atol=1e-3)
    np.testing.assert_allclose(model.predict(rows), scores, atol=1e-3)
    if weights is not None:
        assert scipy.sparse.issparse(model.coef_)
        np.testing.assert_allclose(model.coef_.toarray(), weights, atol=1e-3)
        with pytest.raises(ValueError, match="read-only"):
            model.coef_.data[0] = 1.0
        with pytest.raises(ValueError, match="read-only"):
            weights[0, 0] = 1.0
    save_model(model, tmp_path / "m")
    for again in (load_model(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        assert type(again.dual_coef_) is type(rows)
        np.testing.assert_array_equal(again.predict(rows), model.predict(rows))


@pytest.mark.parametrize("target", [y, three], ids=["two classes", "three"])
def test_sparsify_and_densify(tmp_path, target):
    model = LinearSVC(warm_start=True).fit(X, target)
    coef, scores = model.coef_.copy(), model.decision_function(X)
    assert model.sparsify() is model
    assert scipy.sparse.issparse(model.coef_)
    np.testing.assert_array_equal(model.decision_function(X), scores)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    np.testing.assert_array_equal(loaded.decision_function(X), scores)
    if target is y:
        save_weights(model, tmp_path / "w")
        save_svmlight_model(model, tmp_path / "s")
    assert model.densify() is model
    assert isinstance(model.coef_, np.ndarray)
    np.testing.assert_array_equal(model.coef_, coef)
    assert isinstance(loaded.set_params(warm_start=True).fit(X, target).coef_, np.ndarray)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        LinearSVC().sparsify()
