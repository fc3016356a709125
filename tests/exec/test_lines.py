"""Messages on lines come as they were sent, from those who know the key; nobody waits in vain."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import numpy as np
import pytest

from cutplane.exec import lines


def silent():
    raise AssertionError("nothing came for a second")


@pytest.fixture
def pair():
    """The caller's end of a line, and the worker's."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(lines.POLL)
    with ours, theirs:
        yield lines.Line(ours), theirs


def serving(end, reply):
    """A thread that answers; what it ended with is kept."""
    ended = []

    def run():
        try:
            lines.serve(end, reply, silent)
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, ended


def ask(line, message):
    ((_, answer),) = lines.exchange([line], [lines.outgoing(message)], lambda pending: pending)
    return answer


def echo(parcel):
    return lines.outgoing(lines.opened(parcel))


MESSAGES = {
    "nothing": None,
    "small": [("value", 1.5), ("blend", 2, np.arange(3.0))],
    "long": [("scores", np.random.default_rng(0).normal(size=1 << 17))],
    "several": {"a": np.arange(1 << 15), "b": np.ones((300, 200), np.float32), "c": "text"},
    "empty": np.empty((0, 7)),
    "columns": np.asfortranarray(np.random.default_rng(1).normal(size=(400, 300))),
    "strided": np.arange(1 << 17)[::3],
    "very long": np.arange(3 << 20),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_what_comes_is_what_was_sent(name, pair):
    line, end = pair
    thread, ended = serving(end, echo)
    for _ in range(3):
        found = ask(line, MESSAGES[name])
        np.testing.assert_equal(found, MESSAGES[name])
        for array in found.values() if isinstance(found, dict) else [found]:
            assert not isinstance(array, np.ndarray) or array.flags.writeable
    line.close()
    thread.join(5)
    assert not thread.is_alive() and isinstance(ended[0], ConnectionResetError)


def test_memory_is_used_again_only_if_nobody_has_it(pair):
    """What a worker keeps of a message stays as it came, and what it does not keep makes room."""
    line, end = pair
    kept, places = [], []

    def reply(parcel):
        array, keep = lines.opened(parcel)
        places.append(array.ctypes.data)
        if keep:
            kept.append(array[10:20])  # a view is enough
        return lines.outgoing(float(array.sum()))

    serving(end, reply)
    size = 1 << 16
    for number, keep in enumerate([False, False, True, False, False]):
        assert ask(line, (np.full(size, float(number)), keep)) == size * number
        assert ask(line, (np.ones(3), False)) == 3.0  # short ones in between make no difference
        places.pop()
    assert places[0] == places[1] == places[2] and places[3] == places[4] != places[2]
    np.testing.assert_array_equal(kept[0], np.full(10, 2.0))


def test_an_answer_stays_as_it_came_while_somebody_has_it(pair):
    line, end = pair
    serving(end, echo)
    first = ask(line, np.full(1 << 16, 1.0))
    second = ask(line, np.full(1 << 16, 2.0))
    place = second.ctypes.data
    del second
    third = ask(line, np.full(1 << 16, 3.0))
    assert third.ctypes.data == place != first.ctypes.data
    assert np.all(first == 1.0) and np.all(third == 3.0)


def test_little_memory_is_kept(monkeypatch):
    monkeypatch.setattr(lines, "KEPT", 250)
    room = lines.Room()
    for size in (130, 120, 100):
        room.give_back([bytearray(size)])
    assert [len(array) for array in room._free] == [100, 120]
    for size in (100, 120, 130):
        assert len(room.take(size)) == size
    assert not room._free


def test_a_class_of_a_script_goes_along(pair):
    import __main__

    line, end = pair
    serving(end, echo)
    script = {"__name__": "__main__"}
    exec("class Local:\n    number = 7", script)
    local = script["Local"]
    assert not hasattr(__main__, "Local")
    found = ask(line, local())
    assert found.number == 7


def test_one_of_two_lines_is_cut_in_the_middle_of_an_answer(pair):
    line, end = pair
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    other = lines.Line(ours)
    serving(end, echo)

    def cut():
        with theirs:
            lines.fill(theirs, memoryview(bytearray(1000)), silent)
            theirs.sendall(bytes(lines.outgoing(np.zeros(1 << 16))[0])[:11])

    threading.Thread(target=cut, daemon=True).start()
    message = lines.outgoing(np.arange(1 << 18))
    answers = dict(lines.exchange([line, other], [message, message], lambda pending: set()))
    np.testing.assert_array_equal(answers[0], np.arange(1 << 18))
    assert isinstance(answers[1], ConnectionError)
    other.close()


def test_who_stands_still_is_given_up_when_somebody_says_so(pair, monkeypatch):
    monkeypatch.setattr(lines, "POLL", 0.02)
    line, _ = pair
    asked = []

    def late(pending):
        asked.append(set(pending))
        return pending if len(asked) == 3 else set()

    ((number, answer),) = lines.exchange([line], [lines.outgoing("?")], late)
    assert number == 0 and isinstance(answer, TimeoutError)
    assert asked == [{0}] * 3


def test_a_worker_looks_around_while_nothing_comes(pair):
    _, end = pair
    end.settimeout(0.02)

    class EndedError(OSError):
        pass

    looks = []

    def watch():
        looks.append(time.monotonic())
        if len(looks) == 3:
            raise EndedError

    with pytest.raises(EndedError):
        lines.serve(end, echo, watch)
    assert end.fileno() == -1


# -- who may speak ------------------------------------------------------------


def accepting(key):
    listener = lines.listen("127.0.0.1")
    found = []

    def run():
        try:
            found.append(lines.accept(listener, key, 30.0))
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return listener, listener.getsockname()[1], thread, found


def call(port, key):
    return asyncio.run(lines.call("127.0.0.1", port, key, 30.0))


def test_strangers_are_not_listened_to(monkeypatch):
    monkeypatch.setattr(lines, "CALL", 0.2)
    key = lines.new_key()
    listener, port, thread, found = accepting(key)
    with pytest.raises(OSError):  # the worker hangs up
        call(port, lines.new_key())
    with socket.create_connection(("127.0.0.1", port)):  # says nothing
        line = call(port, key)
    thread.join(5)
    (end,) = found
    assert listener.fileno() == -1  # nobody else can call
    serving(end, echo)
    assert ask(line, "here") == "here"
    line.close()


def test_a_caller_does_not_speak_to_strangers():
    """Somebody else took the port: nothing that he sends is unpickled."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def pretend():
            end, _ = listener.accept()
            with end:
                end.sendall(bytes(lines.KEY_BYTES))
                end.recv(2 * lines.KEY_BYTES)
                end.sendall(bytes(lines.KEY_BYTES))

        thread = threading.Thread(target=pretend, daemon=True)
        thread.start()
        with pytest.raises(lines.RefusedError):
            call(listener.getsockname()[1], lines.new_key())
        thread.join(5)


def test_nobody_calls(monkeypatch):
    monkeypatch.setattr(lines, "LISTEN", 0.05)
    listener, _, thread, found = accepting(lines.new_key())
    thread.join(5)
    assert isinstance(found[0], TimeoutError) and listener.fileno() == -1
