"""Processes that hold objects: order, errors, and what cannot be sent."""

from __future__ import annotations

import os
import threading

import pytest

from cutplane.exec import ProcessPool


class Counter:
    def __init__(self, number: int) -> None:
        self.number = number
        self.calls = 0

    def times(self, factor: int) -> tuple[int, int, int]:
        self.calls += 1
        return self.number * factor, self.calls, os.getpid()

    def fail(self) -> None:
        if self.number % 2:
            raise KeyError(f"number {self.number}")


class BadGuest:
    """Pickles, but cannot be unpickled."""

    def __reduce__(self):
        return int, ("not a number",)


@pytest.fixture(scope="module")
def pool():
    pool = ProcessPool([Counter(k) for k in range(5)], 2)
    yield pool
    pool.close()


def test_answers_come_in_order_from_other_processes(pool):
    answers = pool.call_each(Counter.times, [(10,)] * 5)
    assert [value for value, _, _ in answers] == [0, 10, 20, 30, 40]
    assert os.getpid() not in {process for _, _, process in answers}


def test_the_first_error_in_order_comes_through(pool):
    with pytest.raises(KeyError, match="number 1"):
        pool.call_each(Counter.fail, [()] * 5)
    answers = pool.call_each(Counter.times, [(1,)] * 5)  # it still works
    assert [value for value, _, _ in answers] == [0, 1, 2, 3, 4]


def test_what_cannot_be_pickled_is_said_so():
    with pytest.raises(TypeError) as caught:
        ProcessPool([threading.Lock()], 2)
    assert "raised by pickling" in caught.value.__notes__[0]


def test_what_cannot_be_unpickled_is_said_so():
    pool = ProcessPool([BadGuest(), BadGuest()], 1)
    try:
        with pytest.raises(ValueError, match="invalid literal") as caught:
            pool.call_each(str, [(), ()])
        assert "another process received" in caught.value.__notes__[0]
    finally:
        pool.close()
