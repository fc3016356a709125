"""The worker's side: a plugin of Dask's worker, and the session that the worker has for one fit.

The plugin adds one handler to the worker's own server. A client connects to it with Dask's own
connection (plain, TLS or another protocol of the cluster) and thereby opens a session: it sends
orders and gets answers. When the connection ends, for any reason, the session frees all it holds.
Other workers connect to the same handler, to pass on orders and to send sums.

A session runs the orders of a round once. If a worker is lost in the middle of a round, the client
asks all sessions again. A session that waits for another worker then stops waiting, and answers
with the sums that it has computed itself.

This module needs Dask; the other modules of this folder can be imported without it.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from distributed import WorkerPlugin, get_worker
from distributed.comm import connect
from distributed.protocol import pickle, to_serialize

from ..data.sums import Node
from ..exec import portable
from .orders import Answer, Apart, Done, Failed, Hold, Means, Message, Order, Peer
from .routes import Route

NAME = "cutplane"
# Names what one worker sends to another: () for the orders of a round, and (place, a, b) for the
# sum of the node (a, b) that answers the order at this place.
Key = tuple[int, ...]
ORDERS: Key = ()
Result = TypeVar("Result")
# An array of at least so many bytes travels beside the message, without a copy. Dask needs a tenth
# of a millisecond for each such array. Copying 64 kB a few times is faster.
ASIDE = 1 << 16


def packed(content: Any) -> list[Any]:
    """The content as it travels: a pickle, and the buffers of its arrays.

    Dask's own serialisers need half a millisecond, however small the content is; that was half of
    an empty round. So only long buffers go through Dask's serialisers.
    """
    buffers: list[Any] = []
    data = pickle.dumps(content, buffer_callback=buffers.append)
    raw = [buffer.raw() for buffer in buffers]
    return [
        data,
        *(
            bytearray(some) if some.nbytes < ASIDE else to_serialize(np.frombuffer(some, np.uint8))
            for some in raw
        ),
    ]


def unpacked(content: Sequence[Any]) -> Any:
    """The content, from what ``packed`` made. Its arrays may be read-only."""
    data, *buffers = content
    return pickle.loads(data, buffers=buffers)


class Service(WorkerPlugin):
    """Sessions on a worker."""

    name = NAME
    sessions: weakref.WeakValueDictionary[str, Session]

    def setup(self, worker: Any) -> None:
        self.worker = worker
        self.sessions = weakref.WeakValueDictionary()
        worker.handlers[NAME] = self.serve

    def teardown(self, worker: Any) -> None:
        worker.handlers.pop(NAME, None)

    async def serve(self, comm: Any, session: str, peer: bool) -> None:
        """Handle the messages on a connection, of the client or of a worker, until it ends."""
        try:
            await (self._hear_peer if peer else self._hear_client)(comm, session)
        except OSError:  # the connection has ended
            pass
        finally:
            comm.abort()

    async def _hear_client(self, comm: Any, name: str) -> None:
        session = Session(self.worker, name)
        tasks: set[asyncio.Task[None]] = set()
        turn = asyncio.Lock()  # one write at a time

        async def write(content: dict[str, Any]) -> None:
            async with turn:
                await comm.write(content)

        async def reply(number: int, message: Message) -> None:
            try:
                answer = await session.answer(message, lambda: write({"number": number}))
                if answer is not None:
                    await write({"number": number, "answer": packed(answer)})
            except Exception:  # end the connection, so that the client takes the session for lost
                comm.abort()

        try:
            while True:
                heard = await comm.read()
                task = asyncio.create_task(reply(heard["number"], unpacked(heard["message"])))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                del heard, task
        finally:
            for task in tasks:
                task.cancel()
            session.close()

    async def _hear_peer(self, comm: Any, name: str) -> None:
        while True:
            heard = await comm.read()
            session = self.sessions.get(name)
            if session is None:
                return
            session.receive(heard["number"], tuple(heard["what"]), unpacked(heard["content"]))
            del heard, session


async def install(dask_worker: Any) -> None:
    """Add the plugin, if it is not there. The client has every worker run this."""
    if NAME not in dask_worker.plugins:
        await dask_worker.plugin_add(plugin=Service(), name=NAME)


def hand_over(session: str, inputs: Sequence[Any]) -> None:
    """A Dask task: give its inputs, results of other tasks, to a session of this worker."""
    service: Any = get_worker().plugins[NAME]
    service.sessions[session].inputs = inputs


class Session:
    """A worker's state for one fit, and the messages around it.

    Parameters
    ----------
    worker : distributed.Worker
    name : str
        Chosen by the client.
    """

    inputs: Sequence[Any] = ()

    def __init__(self, worker: Any, name: str) -> None:
        self._worker = worker
        self._state: Any = None
        self._number = -1  # of the last round
        self._work: asyncio.Future[Done | Failed] | None = None
        self._summed: list[bool] = []  # for each order of the round, whether workers add its answer
        self._asked = 0  # how often the client has asked
        self._exchanging: asyncio.Future[Done] | None = None
        self._mail: dict[tuple[int, Key], asyncio.Future[Any]] = {}
        self._sending: list[asyncio.Future[None]] = []
        self._peers: dict[Peer, Any] = {}  # connections
        self._turns: dict[Peer, asyncio.Lock] = {}
        worker.plugins[NAME].sessions[name] = self

    async def answer(
        self, message: Message, computed: Callable[[], Awaitable[None]] | None = None
    ) -> Answer | None:
        """The answer for the client; None if the client has asked again meanwhile.

        The session calls ``computed`` when it has run its orders and begins to exchange sums with
        other workers.
        """
        self._asked += 1
        asked = self._asked
        if self._exchanging is not None:  # an earlier answer still waits for other workers
            self._exchanging.cancel()
        if message.orders is not None:
            self.receive(message.number, ORDERS, message.orders)
        if message.number != self._number:
            self._number = message.number
            self._mail = {key: mail for key, mail in self._mail.items() if key[0] >= self._number}
            self._sending = []
            self._work = asyncio.ensure_future(self._perform(message))
        assert self._work is not None
        done = await asyncio.shield(self._work)
        if asked != self._asked:
            return None
        if isinstance(done, Failed) or not (message.route or message.hand_on):
            return done
        if computed is not None:
            await computed()
        self._exchanging = asyncio.ensure_future(self._exchange(message, done))
        try:
            return await self._exchanging
        except asyncio.CancelledError:
            if asked == self._asked:  # cancelled because the session ends
                raise
            return None
        except OSError as error:
            return Apart(f"worker {self._worker.address}: {error}")

    async def _perform(self, message: Message) -> Done | Failed:
        """Get the orders, pass them on, and run them, in the one thread that Dask has for actors.

        One thread for all sessions: fits that share a worker take turns.
        """
        common = await self._await_mail(message.number, ORDERS)
        for peer in message.hand_on:
            self._send(peer, message.number, ORDERS, common)
        orders = [message.own.get(k, order) for k, order in enumerate(common)]
        self._summed = [order.summed for order in orders]
        return await self._in_thread(self.do, orders)

    async def _in_thread(self, function: Callable[..., Result], *arguments: Any) -> Result:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker.executors["actor"], function, *arguments)

    # -- between workers ------------------------------------------------------

    async def _exchange(self, message: Message, done: Done) -> Done:
        """Add up the vectors of all workers, in those answers that are to be summed."""
        answers = list(done.answers)
        if message.route is not None:
            for k in np.flatnonzero(self._summed).tolist():
                answers[k] = await self._add_up(message, message.route, k, answers[k])
        await asyncio.gather(*self._sending)
        return Done(answers, done.seconds)

    async def _add_up(
        self, message: Message, route: Route, place: int, sums: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """On the first worker the sum over all workers, on the others an empty list."""
        known: dict[Node, np.ndarray] = dict(zip(route.nodes, sums, strict=True))
        mine: set[Node] = set()  # nodes whose array was made here, so that it may be overwritten

        def send(node: Node) -> None:
            if node in route.sends:
                peer = message.peers[route.sends[node]]
                self._send(peer, message.number, (place, *node), known.pop(node))

        for node in route.nodes:
            send(node)
        for a, middle, b in route.adds:
            left, right = known.pop((a, middle)), known.pop((middle, b), None)
            if right is None:
                right = await self._await_mail(message.number, (place, middle, b))
            out = left if (a, middle) in mine else None
            known[a, b] = await self._in_thread(np.add, left, right, out)
            mine.add((a, b))
            send((a, b))
        return list(known.values())

    def receive(self, number: int, what: Key, content: Any) -> None:
        """Keep what the client or another worker has sent, for the order that waits for it."""
        mail = self._mail_for(number, what)
        if not mail.done():
            mail.set_result(content)

    def _mail_for(self, number: int, what: Key) -> asyncio.Future[Any]:
        if (number, what) not in self._mail:
            self._mail[number, what] = asyncio.get_running_loop().create_future()
        return self._mail[number, what]

    async def _await_mail(self, number: int, what: Key) -> Any:
        content = await asyncio.shield(self._mail_for(number, what))
        if what != ORDERS:  # orders stay, because the client may send the same round again
            del self._mail[number, what]
        return content

    def _send(self, peer: Peer, number: int, what: Key, content: Any) -> None:
        """Begin to send something to another worker; ``_exchange`` waits for the end."""

        async def send() -> None:
            async with self._turns.setdefault(peer, asyncio.Lock()):
                if peer not in self._peers:
                    comm = await connect(peer.address, **self._worker.connection_args)
                    self._peers[peer] = comm
                    await comm.write(
                        {"op": NAME, "session": peer.session, "peer": True, "reply": False}
                    )
                mail = {"number": number, "what": what, "content": packed(content)}
                await self._peers[peer].write(mail)

        task = asyncio.ensure_future(send())
        # Look at the error, so that asyncio does not report it as never retrieved.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._sending.append(task)

    # -- in the worker's thread -----------------------------------------------

    def do(self, orders: Sequence[Order]) -> Done | Failed:
        """Run the orders of a round, one after the other."""
        begin = time.perf_counter()
        try:
            answers = [self._run(order) for order in orders]
        except Exception as error:
            return Failed(portable(error))
        return Done(answers, time.perf_counter() - begin)

    def _run(self, order: Order) -> Any:
        if isinstance(order, Hold):
            limit = self._worker.memory_manager.memory_limit
            inputs, self.inputs = self.inputs, ()
            means = Means(self._worker.state.nthreads, int(limit) if limit else None, inputs)
            self._state = order.function(means, *order.arguments)
            return None
        return order.run(self._state)

    def close(self) -> None:
        """Stop all tasks, close connections to other workers, and free the state."""
        for task in (self._work, self._exchanging, *self._sending):
            if task is not None:
                task.cancel()
        for comm in self._peers.values():
            comm.abort()
        self._state, self.inputs, self._work = None, (), None
        self._mail.clear()


class RelayedSession(Session):
    """A session as a Dask actor, for a client that reaches the worker only via the scheduler."""

    def __init__(self, name: str) -> None:
        super().__init__(get_worker(), name)
