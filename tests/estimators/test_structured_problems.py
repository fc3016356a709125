"""Problems that lack something, contradict themselves, raise, or find less than the maximum."""

from __future__ import annotations

import numpy as np
import pytest

from cutplane.estimators.structured_svm import StructuredSVM
from cutplane.structured import Problem


class Fine(Problem):
    """Three classes, in plain Python."""

    def joint_feature(self, x, y):
        return np.kron(np.eye(3)[y], x)

    def loss(self, y, z):
        return float(y != z)

    def most_violated(self, x, y, score):
        return max(range(3), key=lambda z: self.loss(y, z) + score(z))

    def predict(self, x, score):
        return max(range(3), key=score)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    Y = [int(y) for y in np.arange(15) % 3]
    X = [rng.normal(size=2) + 1.5 * np.array([y == 1, y == 2]) for y in Y]
    return X, Y


def test_the_plain_problem_is_fine(data):
    model = StructuredSVM(Fine(), 0.7, tol=1e-5).fit(*data)
    assert model.certificate_.kind == "exact"
    assert model.certificate_.relative_gap <= 1e-5


# -- what is missing ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["joint_feature", "loss", "most_violated", "predict"])
def test_a_missing_method_is_named(data, name):
    methods = {key: value for key, value in vars(Fine).items() if key != name}
    lacking = type("Lacking", (Problem,), methods)
    with pytest.raises(ValueError, match=rf"Lacking lacks {name}\("):
        StructuredSVM(lacking()).fit(*data)


def test_all_missing_methods_are_named(data):
    with pytest.raises(ValueError, match=r"joint_feature.*loss.*most_violated.*predict"):
        StructuredSVM(Problem()).fit(*data)


def test_slack_rescaling_must_be_offered(data):
    with pytest.raises(ValueError, match=r"most_violated_slack.*slack rescaling needs it"):
        StructuredSVM(Fine(), rescaling="slack").fit(*data)


def test_a_class_is_no_problem(data):
    with pytest.raises(ValueError, match=r"write Fine\(\)"):
        StructuredSVM(Fine).fit(*data)


def test_problems_need_not_inherit(data):
    methods = {name: value for name, value in vars(Fine).items() if not name.startswith("__")}
    free = type("Free", (), methods)
    assert StructuredSVM(free(), 0.7).fit(*data).certificate_.kind == "exact"


# -- what is inconsistent -------------------------------------------------------------


def with_method(**methods):
    return type("Changed", (Fine,), methods)()


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            with_method(
                joint_feature=lambda self, x, y: np.ones(2 + int(x[0] > 1.0)),
                most_violated=lambda self, x, y, score: y,
                predict=lambda self, x, score: 0,
            ),
            "same length",
        ),
        (with_method(joint_feature=lambda self, x, y: np.ones((2, 2))), "2 dimensions"),
        (with_method(joint_feature=lambda self, x, y: "abc"), "array or a sparse vector"),
        (with_method(joint_feature=lambda self, x, y: [np.nan, 1.0]), "not finite"),
        (with_method(loss=lambda self, y, z: 1.0), r"loss\(y, y\) must be 0"),
        (with_method(loss=lambda self, y, z: -float(y != z)), "finite number ≥ 0"),
        (with_method(loss=lambda self, y, z: np.nan), "finite number ≥ 0"),
        (with_method(loss=lambda self, y, z: None), "loss must"),
        (
            with_method(
                most_violated=lambda self, x, y, score: min(range(3), key=score),
                loss=lambda self, y, z: 0.0,
            ),
            "less violated",
        ),
        (
            with_method(predict=lambda self, x, score: min(range(3), key=score)),
            "predict gave an output",
        ),
        (with_method(most_violated_batch=lambda self, X, Y, scores: [0]), "gave 1 answers for"),
    ],
)
def test_contradictions_are_named(data, problem, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(problem).fit(*data)


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([], [], "no examples"),
        ([np.zeros(2)], [0, 1], "X has 1 examples, but y has 2"),
        (3, [0], "X must be a list"),
        ([np.zeros(2)], "a", "y must be a list"),
    ],
)
def test_bad_data(X, Y, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(Fine()).fit(X, Y)


@pytest.mark.parametrize(
    ("parameter", "value"), [("C", 0.0), ("rescaling", "no"), ("cache_size", -1), ("solver", "sgd")]
)
def test_bad_parameters(data, parameter, value):
    with pytest.raises(ValueError, match=parameter):
        StructuredSVM(Fine(), **{parameter: value}).fit(*data)


def test_w_cannot_be_changed(data):
    def most_violated(self, x, y, score):
        score.w[0] = 1.0

    with pytest.raises(ValueError, match="read-only"):
        StructuredSVM(with_method(most_violated=most_violated)).fit(*data)


# -- what raises ----------------------------------------------------------------------


class TroubleError(Exception):
    """Has a constructor that unpickling cannot call."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class Raising(Fine):
    """Raises for one example, in every method but the first times."""

    def __init__(self, error):
        self.error = error

    def most_violated(self, x, y, score):
        if x[0] == 77.0 and np.any(score.w):
            raise self.error()
        return super().most_violated(x, y, score)


@pytest.mark.parametrize(("solver", "jobs"), [("auto", None), ("cpa", None), ("cpa", 2)])
def test_an_exception_comes_with_the_example(data, solver, jobs):
    X, Y = list(data[0]), list(data[1])
    X[7] = np.array([77.0, 0.0])
    with pytest.raises(ZeroDivisionError, match="trouble") as caught:
        problem = Raising(lambda: ZeroDivisionError("trouble"))
        StructuredSVM(problem, solver=solver, n_jobs=jobs).fit(X, Y)
    assert caught.value.__notes__ == ["raised by most_violated for example 7"]


def test_an_exception_that_cannot_be_pickled(data):
    X, Y = list(data[0]), list(data[1])
    X[7] = np.array([77.0, 0.0])
    with pytest.raises(RuntimeError, match="TroubleError: this and that") as caught:
        problem = Raising(lambda: TroubleError("this", "that"))
        StructuredSVM(problem, solver="cpa", n_jobs=2).fit(X, Y)
    assert caught.value.__notes__ == ["raised by most_violated for example 7"]


# -- inference that is not exact ------------------------------------------------------


class Lazy(Fine):
    """Always answers with the truth, which is never the most violated output."""

    def most_violated(self, x, y, score):
        return y


class Forgetful(Fine):
    """Finds the maximum for small w only."""

    def most_violated(self, x, y, score):
        return super().most_violated(x, y, score) if np.linalg.norm(score.w) < 0.5 else y


@pytest.mark.parametrize("problem", [Lazy(), Forgetful()], ids=["lazy", "forgetful"])
@pytest.mark.parametrize("solver", ["cpa", "ocas", "bcfw"])
@pytest.mark.parametrize("cache_size", [0, 5])
def test_missed_maxima_withhold_the_certificate(data, problem, solver, cache_size):
    with pytest.warns(UserWarning, match="not exact.*withheld"):
        model = StructuredSVM(problem, 0.7, solver=solver, cache_size=cache_size).fit(*data)
    assert model.certificate_.kind == model.results_[0].certificate.kind == "withheld"
    assert model.certificate_.gap == np.inf


def test_inference_that_says_so_is_estimated(data):
    class Honest(Lazy):
        exact = False

    model = StructuredSVM(Honest(), 0.7).fit(*data)
    assert model.certificate_.kind == "estimated"
