"""Structured problems whose inference runs on the workers of a cluster, against the same here."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

from at_iteration import At
from cutplane import Checkpoint, DaskCluster, StructuredSVM
from cutplane.structured import MulticlassProblem, Score
from cutplane.structured.examples import Inference

distributed = pytest.importorskip("distributed")

SETTINGS = {"C": 300.0 / 70.0, "solver": "cpa", "tol": 1e-5, "cache_size": 2}


class Matching:
    """Outputs are permutations of three places; the loss counts the wrong ones."""

    orders = tuple(itertools.permutations(range(3)))

    def joint_feature(self, x, y):
        return np.concatenate([x[list(y)].sum(axis=0), x[y[0]] - x[y[2]]])

    def loss(self, y, z):
        return float(sum(a != b for a, b in zip(y, z, strict=True)))

    def most_violated(self, x, y, score):
        return max(self.orders, key=lambda z: self.loss(y, z) + score.w @ self.joint_feature(x, z))

    def predict(self, x, score):
        return max(self.orders, key=score)


class Raising(Matching):
    """Raises for one example once w is not 0."""

    def __init__(self, error):
        self.error = error

    def most_violated(self, x, y, score):
        if x[0, 0] == 77.0 and np.any(score.w):
            raise self.error
        return super().most_violated(x, y, score)


class TroubleError(Exception):
    """Has a constructor that unpickling cannot call."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class Locked(Matching):
    """Cannot be pickled."""

    def __init__(self):
        self.lock = threading.Lock()


class FromElsewhere:
    """Pickled as something of a module that is not there."""

    def __reduce__(self):
        return (_import_missing, ())


def _import_missing():
    import module_that_is_not_there  # noqa: F401


class Travelling(Matching):
    """Cannot be unpickled where its module is missing."""

    def __init__(self):
        self.part = FromElsewhere()


def start(workers):
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=":0"
    )


@pytest.fixture(scope="module")
def client():
    with start(2) as cluster, distributed.Client(cluster) as client:
        yield client


def _noisy(problem, x, w):
    return problem.predict(x, Score(problem, x, w))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    problem, w = Matching(), rng.normal(size=12)
    X = list(rng.normal(size=(70, 3, 6)))
    return X, [_noisy(problem, x + 0.7 * rng.normal(size=(3, 6)), w) for x in X]


@pytest.fixture(scope="module")
def here(data):
    return StructuredSVM(Matching(), **SETTINGS).fit(*data)


def same(model, other):
    assert model.certificate_ == other.certificate_
    np.testing.assert_array_equal(model.coef_, other.coef_)
    trace, others = model.results_[0].trace, other.results_[0].trace
    assert [(i.primal, i.dual) for i in trace] == [(i.primal, i.dual) for i in others]


# -- the same bits ------------------------------------------------------------


def test_the_same_bits_as_here(client, data, here):
    model = StructuredSVM(Matching(), executor=client, **SETTINGS).fit(*data)
    same(model, here)
    timings = model.results_[0].timings
    assert timings["rounds"] > model.n_iter_ and timings["losses"] == 0
    assert model.certificate_.relative_gap <= 1e-5
    address = DaskCluster(client.scheduler.address)
    same(StructuredSVM(Matching(), executor=address, **SETTINGS).fit(*data), here)


@pytest.mark.parametrize("sent", [0, 1 << 20])
def test_cuts_from_kept_outputs(client, data, here, monkeypatch, sent):
    """Whether workers send outputs along does not show but in rounds."""
    monkeypatch.setattr("cutplane.cluster.examples.SENT_NUMBERS", sent)
    model = StructuredSVM(Matching(), executor=client, **SETTINGS).fit(*data)
    same(model, here)
    rounds = model.results_[0].timings["rounds"]
    if sent == 1 << 20:
        assert rounds <= model.n_iter_ + 4
    else:
        assert rounds > 2 * model.n_iter_


def test_without_cache_with_ocas_and_with_batches(client, data, monkeypatch):
    monkeypatch.setattr("cutplane.structured.examples.BATCH", 20)
    settings = {"cache_size": 0, "solver": "ocas", "tol": 1e-3}
    for problem, X, y in (
        (Matching(), *data),
        (MulticlassProblem(), np.array([x[0] for x in data[0]]), [y[0] for y in data[1]]),
    ):
        model = StructuredSVM(problem, executor=client, **settings).fit(X, y)
        same(model, StructuredSVM(problem, **settings).fit(X, y))


def test_fewer_examples_than_workers(client, data):
    X, Y = data[0][:1], data[1][:1]
    model = StructuredSVM(Matching(), executor=client).fit(X, Y)
    same(model, StructuredSVM(Matching(), solver="cpa").fit(X, Y))


# -- losses and checkpoints ---------------------------------------------------


@pytest.mark.parametrize("numbers", [(1, 2), (9,)])
def test_lost_workers_change_no_bit(data, here, numbers):
    assert here.n_iter_ > max(numbers)
    with start(3) as cluster, distributed.Client(cluster) as client:

        def lose():
            worker = next(iter(cluster.workers.values()))
            cluster.sync(worker.close, nanny=False, reason="the test ends it")

        losses = [At(number, lose) for number in numbers]

        def watch(record):
            for loss in losses:
                loss(record)

        model = StructuredSVM(Matching(), executor=client, callback=watch, **SETTINGS).fit(*data)
    assert all(loss.done for loss in losses)
    assert model.results_[0].timings["losses"] >= 1
    same(model, here)


def test_a_fit_that_resumes_goes_the_same_way_here_and_there(client, data, here, tmp_path):
    class EndedError(Exception):
        pass

    def end():
        raise EndedError

    for executor, other in ((client, None), (None, client)):
        checkpoint = Checkpoint(tmp_path / ("here" if executor is None else "there"), every=0.0)
        model = StructuredSVM(Matching(), executor=executor, checkpoint=checkpoint, **SETTINGS)
        with pytest.raises(EndedError):
            model.set_params(callback=At(8, end)).fit(*data)
        model.set_params(callback=None, executor=other).fit(*data)
        same(model, here)


# -- bad input ----------------------------------------------------------------


def marked(data):
    X = list(data[0])
    X[7] = np.full((3, 6), 77.0)
    return X, data[1]


def test_an_exception_comes_with_the_example_and_the_worker(client, data):
    problem = Raising(ZeroDivisionError("trouble"))
    with pytest.raises(ZeroDivisionError, match="trouble") as caught:
        StructuredSVM(problem, executor=client).fit(*marked(data))
    assert caught.value.__notes__[0] == "raised by most_violated for example 7"
    assert caught.value.__notes__[1].startswith("raised on worker ")
    with pytest.raises(ValueError, match=r"worker \S+ at \S+: wrong") as caught:
        StructuredSVM(Raising(ValueError("wrong")), executor=client).fit(*marked(data))
    assert caught.value.__notes__ == ["raised by most_violated for example 7"]


def test_an_exception_that_cannot_be_pickled(client, data):
    class Own(Matching):
        def most_violated(self, x, y, score):
            if x[0, 0] == 77.0 and np.any(score.w):
                raise TroubleError("this", "that")
            return super().most_violated(x, y, score)

    with pytest.raises(RuntimeError, match="TroubleError: this and that") as caught:
        StructuredSVM(Own(), executor=client).fit(*marked(data))
    assert caught.value.__notes__[0] == "raised by most_violated for example 7"


def test_what_cannot_be_pickled(client, data):
    with pytest.raises(ValueError, match="Locked cannot be pickled for the workers: TypeError"):
        StructuredSVM(Locked(), executor=client).fit(*data)

    class WithLocks(Matching):
        def joint_feature(self, x, y):
            return super().joint_feature(x[0], y)

    X = [(x, None) for x in data[0]]
    X[41] = (X[41][0], threading.Lock())
    with pytest.raises(ValueError, match="example 41 cannot be pickled for the workers"):
        StructuredSVM(WithLocks(), executor=client).fit(X, data[1])


def test_a_module_that_workers_lack(client, data):
    with pytest.raises(ValueError, match=r"worker \S+ at \S+: the problem .* ModuleNotFoundError"):
        StructuredSVM(Travelling(), executor=client).fit(*data)


def test_executors_that_are_none(data, monkeypatch):
    with pytest.raises(ValueError, match="executor must be None"):
        StructuredSVM(Matching(), executor="tcp://nowhere:1").fit(*data)
    started = []
    monkeypatch.setattr(Inference, "start", lambda _, processes: started.append(processes))
    StructuredSVM(Matching(), n_jobs=2, **SETTINGS).fit(*data)
    assert started == [2]
    nobody = DaskCluster("tcp://127.0.0.1:1")
    with pytest.raises(ValueError, match="executor: with a kernel all runs on this machine"):
        StructuredSVM(Matching(), kernel="rbf", executor=nobody).fit(*data)
