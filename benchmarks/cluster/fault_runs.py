"""Faults of a cluster, each in the middle of a fit: does it end, and with the same model?

    python -m benchmarks.cluster.fault_runs NAME --problem chains --tls --times 20

prints one line of JSON per run, and ends itself if a run hangs. A fault is prepared on a worker:
the n-th run of an order there ends or stops a process. So it happens at the same moment of every
fit. Problems differ in the orders that their fits give, and so in what is lost with a worker.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import itertools
import json
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .processes import ProcessCluster, is_stopped

ROWS, FEATURES = 30_000, 40
# Seconds that a fit waits for a worker: if none will come, and if one will. The scheduler must
# also answer within this time, even on a busy machine.
PATIENCE, LONG_PATIENCE = 5.0, 300.0
ROUNDING = 1e-8  # relative difference of objectives whose scores were computed anew
LATE = 1.0  # seconds until a new worker starts


@dataclass(frozen=True)
class Outcome:
    """The model of a fit and its certificate, to compare to the last bit."""

    certificate: Any
    n_iter: int
    w: bytes
    bias: float

    @classmethod
    def of(cls, model: Any) -> Outcome:
        """The outcome of a fitted model."""
        result = model.results_[0]
        return cls(result.certificate, result.n_iter, result.w.tobytes(), result.bias)


@dataclass
class Record:
    """A run with a fault.

    Attributes
    ----------
    same : bool
        Whether the model and its certificate have the bits of a run without cluster; after a fit
        that ended with an error, whether one that goes on from its checkpoint is as it should be.
    seconds, recovery_seconds : float
        Seconds of the fit, and the part in which lost work was done again.
    error : str or None
        What the fit ended with, if not with a model; ``error_seconds`` after the fault.
    """

    fault: str
    same: bool = False
    seconds: float = 0.0
    recovery_seconds: float = 0.0
    losses: int = 0
    rounds: int = 0
    error: str | None = None
    error_seconds: float | None = None
    differs: str | None = None  # what differs, and how


@dataclass(frozen=True)
class Problem:
    """Data and estimators, and the outcomes of fits without a cluster.

    Attributes
    ----------
    data : callable
        Returns the arguments of ``fit``.
    estimators : dict
        Estimators by name. The first one is the usual one.
    hold, cut, search : str
        Orders that a fit gives: to hold the data, for every cut, and several times between cuts.
    command : sequence of str
        Arguments of the command that does the same fit, without the files; empty if none does.
    file : path, optional
        The data, for the command line.
    """

    data: Callable[[], Sequence[Any]]
    estimators: dict[str, Any]
    hold: str
    cut: str
    search: str
    command: Sequence[str] = ()
    file: Path | None = None
    expected: dict[str, Outcome] = field(default_factory=dict)

    @property
    def usual(self) -> str:
        """The name of the usual estimator."""
        return next(iter(self.estimators))

    def fit(self, kind: str, **settings: Any) -> Any:
        """Fit the estimator of this name."""
        from sklearn.base import clone
        from sklearn.exceptions import ConvergenceWarning

        model = clone(self.estimators[kind]).set_params(**settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(*self.data())

    def outcome(self, kind: str) -> Outcome:
        """The outcome without a cluster, which is computed once."""
        if kind not in self.expected:
            self.expected[kind] = Outcome.of(self.fit(kind, n_jobs=1))
        return self.expected[kind]


@contextlib.contextmanager
def generated_rows(rows: int = ROWS) -> Iterator[Path]:
    """Sparse rows of two classes in a folder, enough of them that each worker gets some."""
    import scipy.sparse

    from cutplane import write_dataset

    rng = np.random.default_rng(11)
    X = scipy.sparse.random_array((rows, FEATURES), density=0.6, format="csr", rng=rng)
    X.data = rng.normal(size=X.nnz)
    y = np.where(X @ rng.normal(size=FEATURES) + rng.normal(size=rows) > 0.3, 1, -1)
    with tempfile.TemporaryDirectory(prefix="cutplane-faults-") as folder:
        yield Path(write_dataset(Path(folder) / "rows.cut", [(X, y)]).path)


@contextlib.contextmanager
def linear_problem() -> Iterator[Problem]:
    """Every loss that is a sum over rows. The scores of the rows stay with the workers."""
    from cutplane import LinearSVC, LinearSVR, open_dataset
    from cutplane.losses import LOSSES

    settings = {"solver": "ocas", "tol": 1e-2}
    estimators = {
        name: LinearSVR(loss=name, epsilon=0.1, quantile=0.3, **settings)
        if loss.regression
        else LinearSVC(loss=name, **settings)
        for name, loss in LOSSES.items()
    }
    orders = ("hold_rows", "gradients", "line_slopes")
    words = ("--solver", "ocas", "--tol", "1e-2")
    with generated_rows() as path:
        yield Problem(lambda: [open_dataset(path)], estimators, *orders, words, path)


@contextlib.contextmanager
def measure_problem() -> Iterator[Problem]:
    """A measure of all scores, which the workers send to the client. It sends coefficients back."""
    from cutplane import MeasureSVC, open_dataset

    estimators = {
        "roc_auc": MeasureSVC("roc_auc", solver="ocas", tol=1e-4),
        "f1": MeasureSVC("f1", solver="ocas", tol=1e-4),
    }
    with generated_rows() as path:
        yield Problem(
            lambda: [open_dataset(path)], estimators, "hold_rows", "gradients", "send_scores"
        )


@contextlib.contextmanager
def chain_problem() -> Iterator[Problem]:
    """Sequences. Their emissions and labellings stay with the workers."""
    from cutplane import ChainTagger, dump_svmlight

    rng = np.random.default_rng(0)
    emissions, transitions = rng.normal(size=(30, 6)), 2.0 * rng.normal(size=(6, 6))
    X, Y = [], []
    for length in rng.integers(1, 25, 300):
        x, y = rng.normal(size=(length, 30)), list[int]()
        for scores in x @ emissions + 3.0 * rng.normal(size=(length, 6)):
            y.append(int(np.argmax(scores + (transitions[y[-1]] if y else 0.0))))
        X.append(x)
        Y.append(y)
    settings = {"C": 1.0 / 32.0, "tol": 1e-3, "solver": "ocas"}
    estimators = {
        "first order": ChainTagger(**settings),
        "second order": ChainTagger(order=2, boundaries=True, **settings),
    }
    words = ("--chain", "--solver", "ocas", "--C", "0.03125", "--tol", "1e-3")
    with tempfile.TemporaryDirectory(prefix="cutplane-faults-") as folder:
        path = Path(folder) / "chains.svm"
        number = np.repeat(np.arange(len(Y)), [len(y) for y in Y])
        dump_svmlight(np.concatenate(X), np.concatenate(Y), path, qid=number)
        orders = ("ChainsOnWorker", "planes", "plane_slope")
        yield Problem(lambda: [X, Y], estimators, *orders, words, path)


class Ordering:
    """A problem whose outputs are the six orders of three vectors. Inference tries all of them."""

    def joint_feature(self, x: Any, y: Any) -> np.ndarray:
        """The first and the last vector of the order, one after the other."""
        return np.concatenate([x[y[0]], x[y[2]]])

    def loss(self, y: Any, z: Any) -> float:
        """The number of vectors in a wrong position."""
        return float(sum(a != b for a, b in zip(y, z, strict=True)))

    def most_violated(self, x: Any, y: Any, score: Any) -> Any:
        """Of all orders."""
        return max(itertools.permutations(range(3)), key=lambda z: self.loss(y, z) + score(z))

    def predict(self, x: Any, score: Any) -> Any:
        """Of all orders."""
        return max(itertools.permutations(range(3)), key=score)


@contextlib.contextmanager
def structured_problem() -> Iterator[Problem]:
    """Inference written in Python. The workers run it and keep its outputs."""
    from cutplane import StructuredSVM
    from cutplane.cluster import examples

    rng = np.random.default_rng(5)
    X = list(rng.normal(size=(70, 3, 6)))
    hidden = rng.normal(size=(2, 6))
    Y = []
    for x in X:
        noisy = x + 0.7 * rng.normal(size=x.shape)
        first = int(np.argmax(noisy @ hidden[0]))
        last = max({0, 1, 2} - {first}, key=lambda k: float(noisy[k] @ hidden[1]))
        Y.append((first, 3 - first - last, last))
    estimators = {
        "n-slack": StructuredSVM(Ordering(), 300.0 / 70.0, solver="cpa", tol=1e-5, cache_size=2)
    }
    sent, examples.SENT_NUMBERS = examples.SENT_NUMBERS, 0
    try:
        yield Problem(lambda: [X, Y], estimators, "ChunksOnWorker", "answer", "cut")
    finally:
        examples.SENT_NUMBERS = sent


# -- laying faults --------------------------------------------------------------------


def _lay(name: str, call: int, victims: dict[int, int]) -> None:
    """On a worker, send signals to processes in the n-th run of an order.

    The name "exchange" means the n-th message between workers.
    """
    from cutplane.cluster.session import Session

    # ``_send`` sends orders and sums to other workers. ``_run`` executes an order.
    method = "_send" if name == "exchange" else "_run"
    usual = getattr(Session, method)
    calls = 0

    def faulty(self: Any, *arguments: Any) -> Any:
        nonlocal calls
        meant = name in ("exchange", getattr(arguments[0], "name", None))
        calls += meant
        answer = usual(self, *arguments)
        if meant and calls == call:
            # The work is done but the answer is not sent, so all of it is lost.
            own = victims.pop(os.getpid(), None)
            for pid, number in victims.items():
                os.kill(pid, number)
            if own is not None:
                os.kill(os.getpid(), own)
        return answer

    setattr(Session, method, faulty)


def lay(
    cluster: ProcessCluster, worker: str, name: str, call: int, victims: dict[int, int]
) -> None:
    """Make a worker send these signals when it runs an order for the n-th time."""
    address = cluster.addresses()[worker]
    cluster.client.run(_lay, name, call, victims, workers=[address])


@contextlib.contextmanager
def crews_of_fits() -> Iterator[list[Any]]:
    """Collects the workers of every fit inside ``with``, with the costs of their rounds."""
    from cutplane.cluster.workers import Workers

    kept: list[Any] = []
    usual = Workers.__post_init__

    def keeping(self: Any) -> None:
        usual(self)
        kept.append(self)

    Workers.__post_init__ = keeping  # type: ignore[method-assign]
    try:
        yield kept
    finally:
        Workers.__post_init__ = usual  # type: ignore[method-assign]


# -- faults that a fit survives -------------------------------------------------------


def _survive(
    cluster: ProcessCluster, problem: Problem, name: str, kind: str = "", least_losses: int = 1
) -> Record:
    from cutplane import DaskCluster

    record = Record(name)
    kind = kind or problem.usual
    expected = problem.outcome(kind)
    with crews_of_fits() as crews:
        begin = time.perf_counter()
        model = problem.fit(kind, executor=DaskCluster(cluster.client, timeout=LONG_PATIENCE))
        record.seconds = time.perf_counter() - begin
    timings = crews[0].timings
    record.recovery_seconds = timings.recovery
    record.losses, record.rounds = timings.losses, timings.rounds
    found = Outcome.of(model)
    record.same = found == expected
    record.differs = None if record.same else f"{found} instead of {expected}"
    told = model.results_[0].timings
    if (told["recovery"], told["losses"]) != (record.recovery_seconds, record.losses):
        raise AssertionError(f"{name}: the result tells of {told}")
    if record.losses < least_losses:
        raise AssertionError(f"{name}: the fault came {record.losses} times")
    return record


def no_fault(cluster: ProcessCluster, problem: Problem, number: int) -> Record:
    """Nothing happens. This time is compared with the others."""
    return _survive(cluster, problem, "none", least_losses=0)


def killed_loading(cluster: ProcessCluster, problem: Problem, number: int) -> Record:
    """A worker is killed when it has read its rows."""
    name, pid = _one_of(cluster, number)
    lay(cluster, name, problem.hold, 1, {pid: signal.SIGKILL})
    return _survive(cluster, problem, "loading", least_losses=0)


def killed_in_a_cut(cluster: ProcessCluster, problem: Problem, number: int) -> Record:
    """A worker is killed when it has summed up its rows for a cut."""
    name, pid = _one_of(cluster, number)
    lay(cluster, name, problem.cut, 2 + number % 4, {pid: signal.SIGKILL})
    return _survive(cluster, problem, "cut")


def killed_in_the_line_search(cluster: ProcessCluster, problem: Problem, number: int) -> Record:
    """A worker is killed in the middle of a line search, with one estimator after the other."""
    name, pid = _one_of(cluster, number)
    kind = list(problem.estimators)[number % len(problem.estimators)]
    lay(cluster, name, problem.search, 3, {pid: signal.SIGKILL})
    return _survive(cluster, problem, "line search", kind)


def killed_at_any_moment(cluster: ProcessCluster, problem: Problem, number: int) -> Record:
    """A worker is killed at some moment of the fit."""
    name, _ = _one_of(cluster, number)
    usual = _survive(cluster, problem, "none", least_losses=0).seconds
    moment = usual * float(np.random.default_rng(number).random())
    clock = threading.Timer(moment, cluster.kill_worker, (name,))
    clock.start()
    try:
        return _survive(cluster, problem, "any moment", least_losses=0)
    finally:
        clock.join()


def killed_one_after_the_other(cluster: ProcessCluster, problem: Problem, number: int) -> Record:
    """The second worker is killed when it also has the rows of the first, and a new one comes."""
    (first, pid), (second, other) = list(cluster.pids().items())[:2]
    lay(cluster, first, problem.cut, 2, {pid: signal.SIGKILL})
    # It makes gradients for both shares from then on.
    lay(cluster, second, problem.cut, 6, {other: signal.SIGKILL})
    with _later(cluster.add_worker, lambda: other not in cluster.pids().values()):
        return _survive(cluster, problem, "both, one after the other", least_losses=2)


def replaced(cluster: ProcessCluster, problem: Problem, number: int) -> Record:
    """All workers are killed, and a new one comes a while later, within the timeout."""
    pids = cluster.pids()
    victims = dict.fromkeys(pids.values(), int(signal.SIGKILL))
    lay(cluster, next(iter(pids)), problem.cut, 3, victims)
    with _later(cluster.add_worker, lambda: not cluster.pids()):
        return _survive(cluster, problem, "replaced")


def stopped(cluster: ProcessCluster, problem: Problem, number: int) -> Record:
    """A worker is stopped until the progress line names it. It is slow, not lost."""
    name, pid = _one_of(cluster, number)
    lay(cluster, name, problem.cut, 3, {pid: signal.SIGSTOP})
    with crews_of_fits() as crews:

        def named() -> bool:
            return is_stopped(pid) and f"waiting for worker {name}" in crews[-1].note()

        with _later(lambda: os.kill(pid, signal.SIGCONT), named, 0.0):
            record = _survive(cluster, problem, "slow", least_losses=0)
    if record.losses:
        raise AssertionError("a slow worker was taken for a lost one")
    return record


def hangs(cluster: ProcessCluster, problem: Problem, number: int) -> Record:
    """The run hangs. A test checks what such a run leaves in its log."""
    threading.Event().wait()
    raise AssertionError("nobody sets this event")


# -- faults that end a fit ------------------------------------------------------------


@contextlib.contextmanager
def _struck(
    cluster: ProcessCluster, problem: Problem, victims: dict[int, int]
) -> Iterator[list[float]]:
    """Make a cut end processes; returns the time at which the first one was gone."""
    lay(cluster, next(iter(cluster.pids())), problem.cut, 4, victims)
    watched = next(iter(victims))
    moment: list[float] = []
    with _later(lambda: moment.append(time.perf_counter()), lambda: not _exists(watched), 0.0):
        yield moment


def _fail(cluster: ProcessCluster, problem: Problem, name: str, victims: dict[int, int]) -> Record:
    """The fit must end with our error in time, and continue from its checkpoint.

    Without cluster it goes on to the same certificate, up to rounding: scores are computed anew
    whenever the file of a fit on a cluster is written. On a cluster it goes on to the same bits as
    a fit that was never ended.
    """
    from cutplane import Checkpoint, ClusterError, DaskCluster

    record = Record(name)
    kind = problem.usual
    expected = problem.outcome(kind).certificate
    with tempfile.TemporaryDirectory(prefix="cutplane-faults-") as folder:
        checkpoint, copy = (Checkpoint(Path(folder) / k, every=0.0) for k in ("state", "copy"))
        on_cluster = {"executor": DaskCluster(cluster.client, timeout=LONG_PATIENCE)}
        impatient = {"executor": DaskCluster(cluster.client, timeout=PATIENCE)}
        whole = None
        if name == "all":
            other = Checkpoint(Path(folder) / "other", every=0.0)
            whole = Outcome.of(problem.fit(kind, checkpoint=other, **on_cluster))
        with _struck(cluster, problem, victims) as moment:
            begin = time.perf_counter()
            try:
                problem.fit(kind, checkpoint=checkpoint, **impatient)
            except ClusterError as error:
                record.error = _without_addresses(error)
            end = time.perf_counter()
        if record.error is None:
            raise AssertionError(f"{name}: the fit ended without an error")
        record.seconds, record.error_seconds = end - begin, end - moment[0]
        shutil.copy(checkpoint.path, copy.path)
        local = problem.fit(kind, checkpoint=checkpoint, n_jobs=1).results_[0]
        record.same = _agree(local.certificate, expected)
        if whole is not None:
            cluster.fill_up()
            resumed = problem.fit(kind, checkpoint=copy, **on_cluster)
            record.same &= Outcome.of(resumed) == whole
    return record


def _agree(one: Any, other: Any) -> bool:
    return all(
        abs(getattr(one, name) - getattr(other, name)) <= ROUNDING * abs(other.primal)
        for name in ("primal", "dual")
    )


def all_killed(cluster: ProcessCluster, problem: Problem, number: int) -> Record:
    """No worker is left. The fit continues from its checkpoint without and with a new cluster."""
    return _fail(cluster, problem, "all", dict.fromkeys(cluster.pids().values(), 9))


def scheduler_killed(cluster: ProcessCluster, problem: Problem, number: int) -> Record:
    """The scheduler is gone. The fit continues from its checkpoint without a cluster."""
    return _fail(cluster, problem, "scheduler", {cluster.scheduler_pid: 9})


def command_resumed(cluster: ProcessCluster, problem: Problem, number: int) -> Record:
    """No worker is left for the command, which continues with --resume without a cluster."""
    import dask

    from cutplane import load_model
    from cutplane.cli import main as command

    record = Record("command")
    expected = problem.outcome(problem.usual).certificate
    with (
        tempfile.TemporaryDirectory(prefix="cutplane-faults-") as folder,
        dask.config.set(cluster.tls_settings),
    ):
        model, state = Path(folder) / "model", Path(folder) / "state"
        usual = ["train", "--quiet", *problem.command]
        usual += ["--checkpoint-every", "1e-6", "--checkpoint", str(state)]
        files = [str(problem.file), str(model)]
        there = ["--scheduler", cluster.address, "--scheduler-timeout", str(PATIENCE)]
        told = io.StringIO()
        victims = dict.fromkeys(cluster.pids().values(), 9)
        with _struck(cluster, problem, victims) as moment, contextlib.redirect_stderr(told):
            begin = time.perf_counter()
            status = command([*usual, *there, *files])
            end = time.perf_counter()
        if status == 0 or model.exists() or not moment:
            raise AssertionError(f"the command ended with status {status}: {told.getvalue()}")
        record.seconds, record.error_seconds = end - begin, end - moment[0]
        record.error = _without_addresses(told.getvalue().strip().splitlines()[-1])
        if command([*usual, "--resume", *files]) != 0:
            raise AssertionError("the command did not go on")
        record.same = _agree(load_model(model).certificate_, expected)
    return record


def _without_addresses(error: Exception | str) -> str:
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return re.sub(r"\w+://[\w.:]+", "ADDRESS", text)


# -- the moments ----------------------------------------------------------------------


def _one_of(cluster: ProcessCluster, number: int) -> tuple[str, int]:
    """Name and process id of a worker, another one for each run."""
    pids = list(cluster.pids().items())
    return pids[number % len(pids)]


def _exists(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@contextlib.contextmanager
def _later(
    action: Callable[[], Any], condition: Callable[[], bool], delay: float = LATE
) -> Iterator[None]:
    """Inside ``with``, do something a while after a condition holds."""
    end = threading.Event()

    def watch() -> None:
        while not end.wait(0.01):
            if condition():
                if not end.wait(delay):
                    action()
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        if not delay:  # without a delay the action must be done when the block ends
            thread.join(10.0)
        end.set()
        thread.join()


FAULTS: dict[str, Callable[[ProcessCluster, Problem, int], Record]] = {
    "none": no_fault,
    "loading": killed_loading,
    "cut": killed_in_a_cut,
    "line-search": killed_in_the_line_search,
    "any-moment": killed_at_any_moment,
    "both": killed_one_after_the_other,
    "replaced": replaced,
    "slow": stopped,
    "all": all_killed,
    "command": command_resumed,
    "scheduler": scheduler_killed,
}
RUNS = {**FAULTS, "hangs": hangs}  # "hangs" never ends, so lists of faults are without it
ENDING = ("scheduler",)  # after these faults a cluster cannot be used again
PROBLEMS: dict[str, Callable[[], contextlib.AbstractContextManager[Problem]]] = {
    "linear": linear_problem,
    "chains": chain_problem,
    "measure": measure_problem,
    "structured": structured_problem,
}
# Fits of some problems differ only in their orders. These are run with the faults of orders only.
IN_ORDERS = ("loading", "cut", "line-search", "both", "all")


def cases() -> list[tuple[str, str, bool]]:
    """Faults and problems, each with and without TLS."""
    return [
        (fault, problem, tls)
        for problem in PROBLEMS
        for tls in (False, True)
        for fault in (FAULTS if problem in ("linear", "chains") else IN_ORDERS)
    ]


def main(argv: list[str] | None = None) -> int:
    """Run a fault as often as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster.fault_runs")
    parser.add_argument("name", choices=list(RUNS))
    parser.add_argument("--problem", choices=list(PROBLEMS), default="linear")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=300.0, help="after which a run hangs")
    arguments = parser.parse_args(argv)
    name = arguments.name
    # The log of a failed run is to be read afterwards.
    logging.basicConfig(format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("cutplane").setLevel(logging.DEBUG)

    def begun() -> ProcessCluster:
        return ProcessCluster(tls=arguments.tls)

    with PROBLEMS[arguments.problem]() as problem, contextlib.ExitStack() as stack:
        cluster = None if name in ENDING else stack.enter_context(begun())
        for number in range(arguments.times):
            logging.getLogger("cutplane").info("run %d begins", number)
            with begun() if cluster is None else contextlib.nullcontext(cluster) as used:
                used.fill_up()
                faulthandler.dump_traceback_later(arguments.seconds, exit=True)
                record = RUNS[name](used, problem, number)
                faulthandler.cancel_dump_traceback_later()
            print(json.dumps(vars(record)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
