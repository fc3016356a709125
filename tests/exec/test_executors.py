"""Executors: order, exceptions, the number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import joblib
import numpy as np
import pytest

from cutplane.exec import (
    NUMBERS_PER_THREAD,
    SerialExecutor,
    ThreadExecutor,
    available_threads,
    make_executor,
)

EXECUTORS = [SerialExecutor] + [lambda n=n: ThreadExecutor(n) for n in (2, 3, 8)]
IDS = ["serial", "2", "3", "8"]
LARGE = 100 * NUMBERS_PER_THREAD


@pytest.fixture(params=EXECUTORS, ids=IDS)
def executor(request):
    with request.param() as executor:
        yield executor


@pytest.mark.parametrize("count", [0, 1, 2, 3, 50])
def test_results_come_in_the_order_of_the_blocks(executor, count):
    def work(k: int) -> int:
        time.sleep(0.0005 * ((7 * k) % 5))  # finish out of order
        return k * k

    assert executor.run(work, count) == [k * k for k in range(count)]


@pytest.mark.parametrize("count", [0, 1, 50])
def test_a_function_gets_the_elements_of_all_sequences(executor, count):
    rows = [slice(k, k + 1) for k in range(count)]
    expected = [(k, slice(k, k + 1)) for k in range(count)]
    assert executor.map(lambda k, own: (k, own), range(count), rows) == expected


def test_every_block_runs_once(executor):
    calls = np.zeros(200, dtype=int)
    lock = threading.Lock()

    def work(k: int) -> None:
        with lock:
            calls[k] += 1

    executor.run(work, 200)
    assert calls.tolist() == [1] * 200


def test_threads_share_the_work():
    """With as many blocks as threads, all of them can be busy at the same time."""
    meeting = threading.Barrier(4, timeout=120)
    with ThreadExecutor(4) as executor:
        names = executor.run(lambda k: (meeting.wait(), threading.current_thread().name)[1], 4)
    assert len(set(names)) == 4


def test_the_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(64, 1000)) * 10.0 ** rng.integers(-8, 8, (64, 1))

    def sums(executor) -> np.ndarray:
        with executor:
            return sum(executor.run(lambda k: np.cumsum(data[k]), len(data)))

    expected = sums(SerialExecutor())
    for threads in (2, 8):
        np.testing.assert_array_equal(sums(ThreadExecutor(threads)), expected)


# -- exceptions -----------------------------------------------------------------------


class BlockError(Exception):
    pass


@pytest.mark.parametrize("bad", [0, 1, 7, 19])
def test_exceptions_propagate_and_the_executor_stays_usable(executor, bad):
    def work(k: int) -> int:
        if k == bad:
            raise BlockError(k)
        return k

    for _ in range(5):
        with pytest.raises(BlockError, match=f"^{bad}$"):
            executor.run(work, 20)
        assert executor.run(lambda k: k, 20) == list(range(20))


def test_when_every_block_fails(executor):
    def work(k: int) -> None:
        raise BlockError(k)

    with pytest.raises(BlockError):
        executor.run(work, 20)
    assert executor.run(lambda k: -k, 3) == [0, -1, -2]


@pytest.mark.parametrize("failing", ["MainThread", "cutplane_0", "cutplane_1"])
@pytest.mark.parametrize("error", [BlockError, KeyboardInterrupt])
def test_no_block_runs_on_after_a_failure(failing, error):
    """The buffers that blocks write to are the caller's again once run() has ended."""
    meeting = threading.Barrier(3, timeout=120)
    running = set()

    def work(k: int) -> None:
        name = threading.current_thread().name
        running.add(k)
        try:
            if k < 3:  # one block in each of the three threads
                meeting.wait()
                if name == failing:
                    raise error
            if name != "MainThread":
                time.sleep(0.2)
        finally:
            running.remove(k)

    with ThreadExecutor(3) as executor:
        with pytest.raises(error):
            executor.run(work, 6)
        assert running == set()
        assert executor.run(lambda k: k, 10) == list(range(10))


@pytest.mark.parametrize("where", ["caller", "helper"])
def test_remaining_blocks_are_skipped_after_a_failure(where):
    """A pass over a large file must not go on after its first block has failed."""
    caller = threading.current_thread()
    done = []

    def work(k: int) -> None:
        if (threading.current_thread() is caller) == (where == "caller"):
            raise BlockError
        time.sleep(0.001)
        done.append(k)

    with ThreadExecutor(3) as executor, pytest.raises(BlockError):
        executor.run(work, 4000)
    assert len(done) < 2000


def test_a_round_does_not_wait_for_helpers_that_are_busy_elsewhere():
    """It neither waits for a helper that has not begun, nor loses one that comes late."""
    begun, may_end = threading.Barrier(3, timeout=120.0), threading.Event()

    def occupied(k: int) -> None:
        begun.wait()
        may_end.wait(120)

    with ThreadExecutor(2) as executor:
        other = threading.Thread(target=executor.run, args=(occupied, 2))
        other.start()
        begun.wait()  # the helper and the other thread are both at work
        seen: set[str] = set()

        def work(k: int) -> int:
            seen.add(threading.current_thread().name)
            return k * k

        assert executor.run(work, 50) == [k * k for k in range(50)]
        assert seen == {"MainThread"}
        may_end.set()
        other.join()
        both = threading.Barrier(2, timeout=120.0)
        executor.run(lambda k: both.wait(), 2)  # each waits for the other
        assert executor.run(lambda k: -k, 3) == [0, -1, -2]


def test_leaving_shuts_the_threads_down():
    def ours() -> int:
        return sum(t.name.startswith("cutplane") for t in threading.enumerate())

    before = ours()
    with ThreadExecutor(4) as executor:
        executor.run(lambda k: time.sleep(0.001), 50)
        assert ours() > before
    assert ours() == before
    with pytest.raises(BlockError), ThreadExecutor(4) as executor:
        executor.run(lambda k: time.sleep(0.001), 50)
        raise BlockError
    assert ours() == before


def test_two_executors_at_once():
    """Fits in two threads share nothing."""
    results = {}

    def fit(name: int) -> None:
        with ThreadExecutor(3) as executor:
            results[name] = [executor.run(lambda k: k + name, 20) for _ in range(30)]

    threads = [threading.Thread(target=fit, args=(100 * i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, runs in results.items():
        assert runs == [[k + name for k in range(20)]] * 30


# -- how many threads -----------------------------------------------------------------

needs_affinity = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system has no CPU affinity"
)


@needs_affinity
def test_available_threads_respects_affinity():
    allowed = os.sched_getaffinity(0)
    assert available_threads() <= len(allowed)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert available_threads() == 1
        assert make_executor(None, LARGE).threads == 1
    finally:
        os.sched_setaffinity(0, allowed)


@needs_affinity
def test_available_threads_in_a_process_started_on_one_core():
    code = "from cutplane.exec import available_threads; print(available_threads())"
    core = min(os.sched_getaffinity(0))
    done = subprocess.run(
        [sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{core}}}); {code}"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.strip() == "1"


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_inside_a_joblib_worker_the_cores_are_taken(backend):
    found = joblib.Parallel(n_jobs=2, backend=backend)(
        joblib.delayed(available_threads)() for _ in range(4)
    )
    assert found == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("n_jobs", "cores", "threads"),
    [(None, 4, 4), (-1, 4, 4), (-2, 4, 3), (-9, 4, 1), (1, 4, 1), (3, 4, 3), (8, 4, 8)],
)
def test_n_jobs(n_jobs, cores, threads, monkeypatch):
    monkeypatch.setattr("cutplane.exec.available_threads", lambda: cores)
    with make_executor(n_jobs, LARGE) as executor:
        assert executor.threads == threads
        assert isinstance(executor, SerialExecutor) == (threads == 1)


@pytest.mark.parametrize("n_jobs", [None, -1, 2, 8])
def test_small_problems_run_serially(n_jobs):
    for numbers in (0, 1, NUMBERS_PER_THREAD):
        assert isinstance(make_executor(n_jobs, numbers), SerialExecutor)


def test_threads_grow_with_the_problem():
    with make_executor(8, 3 * NUMBERS_PER_THREAD) as executor:
        assert executor.threads == 3
