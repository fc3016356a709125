"""Lines: a connection of our own to an object on a worker, for rounds that take a millisecond.

A message is pickled, with its long arrays beside it, and goes out and comes in without a copy:

    count, size     16 bytes
    lengths         8 bytes for each of ``count`` arrays
    pickle          ``size`` bytes
    arrays          one after the other

The worker listens for one caller and for a few seconds only. Both ends show that they know a key,
which came through Dask, before anything is unpickled. Knows neither Dask nor what is said.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import pickle
import secrets
import selectors
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from .processes import pickled

KEY_BYTES = 32
# Seconds that a worker listens for its caller, and a caller tries to be heard.
LISTEN, CALL = 3.0, 1.0
# Seconds after which whoever waits for the other end looks around.
POLL = 1.0
# Arrays that go beside the pickle; a shorter one is quicker copied into it.
BESIDE = 1 << 14
# Bytes of arrays whose memory is used again for the next message.
KEPT = 1 << 28

_HEAD = struct.Struct("<QQ")
Watch = Callable[[], None]
Parcel = tuple[memoryview, list[bytearray]]
Incoming = Generator[memoryview, None, Parcel]


def new_key() -> bytes:
    """A key for one line."""
    return secrets.token_bytes(KEY_BYTES)


# -- messages -----------------------------------------------------------------


def outgoing(message: Any) -> list[memoryview]:
    """The bytes of a message, in pieces."""
    arrays: list[memoryview] = []

    def beside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= BESIDE:
            arrays.append(raw)
        return raw.nbytes < BESIDE

    try:
        body = pickle.dumps(message, 5, buffer_callback=beside)
        travels = b"__main__" not in body
    except (pickle.PicklingError, AttributeError, TypeError):
        travels = False
    if not travels:  # a class of a script, which goes along
        arrays, body = [], pickled(message)
    lengths = struct.pack(f"<{len(arrays)}Q", *(array.nbytes for array in arrays))
    head = _HEAD.pack(len(arrays), len(body)) + lengths + body
    return [memoryview(head), *arrays]


def incoming(room: Callable[[int], bytearray] = bytearray) -> Incoming:
    """Yields room that is to be filled, one after the other; returns what came."""
    head = bytearray(_HEAD.size)
    yield memoryview(head)
    count, size = _HEAD.unpack(head)
    body = bytearray(8 * count + size)
    yield memoryview(body)
    arrays = [room(length) for length in struct.unpack_from(f"<{count}Q", body)]
    for array in arrays:
        yield memoryview(array)
    return memoryview(body)[8 * count :], arrays


def opened(parcel: Parcel) -> Any:
    """The message in what came."""
    body, arrays = parcel
    return pickle.loads(body, buffers=arrays)


class Room:
    """Memory for arrays that come in, used again when nobody has the last ones any more.

    New memory costs more than the copy that goes there, page by page; most of all in a worker,
    where Dask has it given back to the system at once.
    """

    def __init__(self) -> None:
        self._free: list[bytearray] = []

    def take(self, size: int) -> bytearray:
        for k, array in enumerate(self._free):
            if len(array) == size:
                return self._free.pop(k)
        return bytearray(size)

    def give_back(self, arrays: list[bytearray]) -> None:
        """Keep those that nobody else has."""
        alone = _holders([bytearray()])[0]
        holders = _holders(arrays)
        free = [a for a, count in zip(arrays, holders, strict=True) if count == alone]
        self._free = [*free, *self._free]
        while sum(map(len, self._free)) > KEPT:  # those that have not been wanted for long
            self._free.pop()


def _holders(arrays: list[bytearray]) -> list[int]:
    """How many have each of them, this function included."""
    return [sys.getrefcount(array) for array in arrays]


def _tune(end: socket.socket, silence: float) -> None:
    """Send at once; take a peer that is silent for so many seconds for lost, as Dask does."""
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    probes = 5
    pause = max(1, int(silence) // (2 * probes))
    wanted = {
        "TCP_KEEPIDLE": max(1, int(silence) - probes * pause),
        "TCP_KEEPINTVL": pause,
        "TCP_KEEPCNT": probes,
        "TCP_USER_TIMEOUT": int(1000 * silence),
    }
    for name, value in wanted.items():
        if hasattr(socket, name):
            end.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


# -- who may speak ------------------------------------------------------------


def _proof(key: bytes, role: bytes, challenge: bytes) -> bytes:
    return hmac.digest(key, role + challenge, "sha256")


class RefusedError(ConnectionError):
    """The other end does not know the key."""


async def call(host: str, port: int, key: bytes, silence: float) -> Line:
    """A line to whoever listens there and knows the key."""
    loop = asyncio.get_running_loop()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    end = socket.socket(family, socket.SOCK_STREAM)
    try:
        end.setblocking(False)
        _tune(end, silence)
        await loop.sock_connect(end, (host, port))
        theirs = await _exactly(loop, end, KEY_BYTES)
        ours = secrets.token_bytes(KEY_BYTES)
        await loop.sock_sendall(end, _proof(key, b"asks", theirs) + ours)
        proof = await _exactly(loop, end, KEY_BYTES)
        if not hmac.compare_digest(proof, _proof(key, b"answers", ours)):
            raise RefusedError("the worker does not know the key")
    except BaseException:
        end.close()
        raise
    return Line(end)


async def _exactly(loop: asyncio.AbstractEventLoop, end: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = await loop.sock_recv(end, size - len(received))
        if not piece:
            raise ConnectionResetError("the line was cut")
        received += piece
    return received


def listen(host: str) -> socket.socket:
    """Listen at a port of this host that nobody uses."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, 0), family=family, backlog=4)


def accept(listener: socket.socket, key: bytes, silence: float) -> socket.socket:
    """The first caller who knows the key; nobody else is listened to afterwards."""
    deadline = time.monotonic() + LISTEN
    with listener:
        while (left := deadline - time.monotonic()) > 0.0:
            listener.settimeout(left)
            end, _ = listener.accept()
            try:
                _welcome(end, key)
                _tune(end, silence)
                end.settimeout(POLL)
                return end
            except OSError:
                end.close()
            except BaseException:
                end.close()
                raise
    raise TimeoutError("nobody called")


def _welcome(end: socket.socket, key: bytes) -> None:
    end.settimeout(CALL)
    ours = secrets.token_bytes(KEY_BYTES)
    end.sendall(ours)
    answer = bytearray(2 * KEY_BYTES)
    fill(end, memoryview(answer), _too_late)
    proof, theirs = bytes(answer[:KEY_BYTES]), bytes(answer[KEY_BYTES:])
    if not hmac.compare_digest(proof, _proof(key, b"asks", ours)):
        raise RefusedError("the caller does not know the key")
    end.sendall(_proof(key, b"answers", theirs))


def _too_late() -> None:
    raise TimeoutError("the caller is silent")


# -- the worker's end ---------------------------------------------------------


def fill(end: socket.socket, view: memoryview, watch: Watch) -> None:
    """Receive as many bytes as there is room; looks around while nothing comes."""
    while view:
        try:
            count = end.recv_into(view)
        except TimeoutError:
            watch()
            continue
        if count == 0:
            raise ConnectionResetError("the line was cut")
        view = view[count:]


def serve(end: socket.socket, reply: Callable[[Parcel], list[memoryview]], watch: Watch) -> None:
    """Answer every message that comes in, until the line is cut, which ends with an OSError.

    ``reply`` gets what came and gives what ``outgoing`` makes; ``watch`` is called while nothing
    comes, and raises if nothing will.
    """
    room = Room()
    with end:
        while True:
            pieces = incoming(room.take)
            try:
                while True:
                    fill(end, next(pieces), watch)
            except StopIteration as stop:
                parcel = stop.value
            answer = reply(parcel)
            while answer:
                _push(end, answer.pop(0), watch)
            room.give_back(parcel[1])


def _push(end: socket.socket, piece: memoryview, watch: Watch) -> None:
    while piece:
        try:
            piece = piece[end.send(piece) :]
        except TimeoutError:
            watch()


# -- the caller's end ---------------------------------------------------------


class Line:
    """The caller's end of a line: a message goes out, an answer comes in.

    Parameters
    ----------
    end : socket
        Does not block.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._room = Room()
        self._arrays: list[bytearray] = []  # of the last answer
        self.begin(())

    def fileno(self) -> int:
        """For selectors."""
        return self._end.fileno()

    @property
    def waits_for(self) -> int:
        """Events of selectors that it needs to go on."""
        return selectors.EVENT_WRITE if self._unsent else selectors.EVENT_READ

    def begin(self, pieces: Sequence[memoryview]) -> None:
        """A message is to be sent."""
        self._unsent = deque(piece for piece in pieces if piece)
        self._room.give_back(self._arrays)
        self._arrays = []
        self._incoming: Incoming = incoming(self._room.take)
        self._view = next(self._incoming)

    def go_on(self) -> tuple[Any] | None:
        """Send and receive what can be without waiting; the answer, once it is there."""
        try:
            while self._unsent:
                count = self._end.send(self._unsent[0])
                rest = self._unsent.popleft()[count:]
                if rest:
                    self._unsent.appendleft(rest)
            while True:
                count = self._end.recv_into(self._view)
                if count == 0:
                    raise ConnectionResetError("the line was cut")
                self._view = self._view[count:]
                while not self._view:
                    self._view = next(self._incoming)
        except BlockingIOError:
            return None
        except StopIteration as stop:
            self._arrays, self._view = stop.value[1], memoryview(b"")
            return (opened(stop.value),)

    def close(self) -> None:
        """Cut the line."""
        with contextlib.suppress(OSError):
            self._end.close()


def exchange(
    lines: Sequence[Line],
    messages: Sequence[Sequence[memoryview]],
    late: Callable[[set[int]], set[int]],
) -> Iterator[tuple[int, Any]]:
    """Send a message on each line; the answers as they come, by number of the line.

    In place of the answer of a line that was cut comes the OSError.

    Parameters
    ----------
    lines : sequence of Line
    messages : sequence
        What ``outgoing`` made.
    late : callable
        Gets the numbers of lines that are waited for, whenever nothing has come for a while;
        returns those that need not be waited for any more.
    """
    pending = set(range(len(lines)))
    for line, message in zip(lines, messages, strict=True):
        line.begin(message)

    def step(k: int) -> tuple[Any] | None:
        try:
            return lines[k].go_on()
        except OSError as error:
            return (error,)

    with selectors.DefaultSelector() as selector:
        for k in range(len(lines)):
            answer = step(k)
            if answer is None:
                selector.register(lines[k], lines[k].waits_for, k)
                continue
            pending.discard(k)
            yield k, answer[0]
        while pending:
            events = selector.select(POLL)
            for key, _ in events:
                k = key.data
                answer = step(k)
                if answer is not None:
                    selector.unregister(lines[k])
                    pending.discard(k)
                    yield k, answer[0]
                elif key.events != lines[k].waits_for:
                    selector.modify(lines[k], lines[k].waits_for, k)
            if not events:
                for k in late(set(pending)):
                    selector.unregister(lines[k])
                    pending.discard(k)
                    yield k, TimeoutError("given up")
