"""Bad parameters are refused by name, before any work."""

from __future__ import annotations

import numpy as np
import pytest

from cutplane import LinearSVC

NOT_POSITIVE = [0, -1, -1e-300, np.nan, np.inf, -np.inf, "a", None, [1.0], True, 1j]
BAD = {
    "C": NOT_POSITIVE,
    "tol": [-1e-9, np.nan, np.inf, "a", None, [1e-3], True],
    "max_iter": [0, -1, 1.5, np.nan, "a", True],
    "time_limit": [0, -1.0, np.nan, "a", [1], True],
    "intercept_scaling": [0, -1, np.nan, np.inf, "a", True],
    "loss": ["huber", "", None, 1, ["hinge"], "HINGE"],
    "solver": ["lbfgs", "", None, 1, ["ocas"]],
    "stopping": ["primal", "", None, 1],
    "multi_class": ["ovo", "", None, 1],
    "n_jobs": [0, 1.5, "a", [2], np.nan, True],
    "fit_intercept": ["no", None, 2, 0.5, np.nan, []],
    "warm_start": ["no", None, 2, 0.5],
    "verbose": ["loud", None, -1, np.nan],
    "class_weight": ["heavy", 3.0, [1, 2]],
    "callback": [1, "print", [print]],
    "random_state": ["a", 1.5, -1],
}
CASES = [(name, value) for name, values in BAD.items() for value in values]
GOOD = {
    "C": [1, np.float32(0.5), np.int64(2), np.array(1.0)[()], 1e-300],
    "tol": [0, 1, np.float32(1e-2)],
    "max_iter": [None, 1, np.int32(5), 10**12],
    "time_limit": [None, 1, np.inf, np.float32(2)],
    "intercept_scaling": [None, 1, np.float64(0.5)],
    "n_jobs": [None, 1, -1, -2, -100, np.int64(2), 64],
    "fit_intercept": [True, False, np.True_, 0, 1],
    "warm_start": [True, False, np.False_],
    "verbose": [0, 1, 2, True, np.int64(1)],
    "random_state": [None, 0, np.random.RandomState(0)],
}


@pytest.mark.parametrize(("name", "value"), CASES, ids=[f"{n}={v!r}" for n, v in CASES])
def test_bad_values_are_named(cancer, name, value):
    """The message names the parameter and shows what it got."""
    solver = {"solver": "sgd"} if name == "random_state" else {}
    with pytest.raises(ValueError, match=rf"\b{name}\b") as error:
        LinearSVC(**{**solver, name: value}).fit(*cancer)
    if name not in ("class_weight", "random_state"):  # scikit-learn's messages
        assert repr(value) in str(error.value)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "values"), GOOD.items(), ids=GOOD)
def test_good_values_are_taken(noisy, name, values):
    for value in values:
        model = LinearSVC(**{"max_iter": 50, name: value}).fit(*noisy)
        assert model.get_params()[name] is value
        assert np.isfinite(model.coef_).all()


def test_parameters_are_checked_in_fit_only():
    """As scikit-learn wants it: __init__ stores, fit checks."""
    assert LinearSVC(C=-1).get_params()["C"] == -1


def test_parameters_are_checked_before_the_data():
    class Untouched:
        def __array__(self, *arguments, **keywords):
            raise AssertionError("the data was read")

    with pytest.raises(ValueError, match="C"):
        LinearSVC(C=0).fit(Untouched(), Untouched())


@pytest.mark.parametrize(
    "parameters", [{"loss": "logistic"}, {"loss": "squared_hinge"}, {"solver": "sgd"}], ids=str
)
def test_impossible_combinations_name_both_sides(iris, parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match="crammer_singer") as error:
        LinearSVC(multi_class="crammer_singer", **parameters).fit(*iris)
    assert name in str(error.value)


def test_unknown_parameters_are_refused():
    with pytest.raises(TypeError):
        LinearSVC(epsilon=0.1)
    with pytest.raises(ValueError, match="epsilon"):
        LinearSVC().set_params(epsilon=0.1)


def test_only_c_may_be_given_by_position():
    with pytest.raises(TypeError):
        LinearSVC(1.0, "hinge")


def test_the_loss_is_free_where_crammer_singer_is_not_used(cancer):
    """With two classes the joint problem is the binary one: any loss will do."""
    model = LinearSVC(multi_class="crammer_singer", loss="logistic").fit(*cancer)
    assert model.certificate_.relative_gap <= 1e-3
