"""The client's side: a session on each of several workers, rounds of orders, recovery.

All messages go through Dask's own connections and event loop. A round sends the same few orders to
every worker and collects all answers. Lasting orders go to the log. If a worker is lost, another
worker takes its place: its session runs the log again. A session runs each order at most once. If
its connection ends before the answer has come, the client takes the session for lost, with its
state.

Long vectors go from worker to worker (see ``routes``), so the client sends and gets each vector
once, however many workers there are. If a worker is lost in such a round, the client asks all
workers again, and each of them sends its own sums to the client.

If the user interrupts a round, the round continues in the background, so that the workers and the
log agree. The next round waits for its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import itertools
import logging
import sys
import time
import uuid
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from ..data.sums import SumPlan, add_nodes
from .orders import (
    Answer,
    Apart,
    Done,
    Each,
    Failed,
    Message,
    Order,
    Peer,
    Timings,
    common_bytes,
    order_for,
)
from .routes import Route, handed_on, routes_of

logger = logging.getLogger("cutplane")
Result = TypeVar("Result")

# While an answer does not come, the client asks the scheduler once in so many seconds whether the
# worker is still there.
POLL = 1.0
# If a worker does not accept a connection within so many seconds, messages go through the
# scheduler.
CONNECT = 5.0
# How often the worker with the same rows may be lost without a complete round in between.
MOST_LOSSES = 5
# Progress names a worker if all wait for it for so many seconds, or if it has taken more than so
# many times as long as the median worker.
SLOW = 3.0
MUCH_SLOWER = 2.0
# A vector of at least so many bytes goes from worker to worker. Each step from worker to worker
# takes about a millisecond, as long as such a vector takes at 10 Gbit/s. A client that sends the
# vector itself takes as long for each worker.
LONG = 1 << 20
# Number of orders of the log that are sent at a time.
REPLAY = 8
# Packages whose versions must be the same on client and workers.
PACKAGES = ("numpy", "scipy", "numba")


class ClusterError(RuntimeError):
    """The cluster cannot go on: no worker is left, or the scheduler is gone."""


class WorkerLostError(Exception):
    """A worker is lost, and with it the state of its session."""


@dataclass(frozen=True)
class Worker:
    """A worker as the scheduler knows it."""

    address: str
    name: str
    threads: int


def _facts() -> dict[str, str]:
    """The versions that client and workers must share. Every worker is asked for them."""
    own = __name__.split(".")[0]
    found = {"python": ".".join(map(str, sys.version_info[:2]))}
    for name in (own, *PACKAGES):
        found[name] = importlib.import_module(name).__version__
    return found


def _refusal(theirs: Any, ours: dict[str, str]) -> str:
    """Why a worker with these versions cannot be used; "" if it can."""
    if isinstance(theirs, BaseException):
        return (
            f"cannot be used: {type(theirs).__name__}: {theirs}; install the same packages on "
            "every worker"
        )
    others = ", ".join(
        f"{name} {theirs.get(name)} instead of {version}"
        for name, version in ours.items()
        if theirs.get(name) != version
    )
    return others and f"has {others}; install the same versions on every worker"


def check_client(client: Any) -> None:
    """Refuse anything but a running, synchronous Dask client."""
    from distributed import Client

    if not isinstance(client, Client):
        raise ValueError(f"expected a dask.distributed.Client, got {client!r}")
    if client.asynchronous:
        raise ValueError("the client is asynchronous; make one with Client(address)")
    if client.status != "running":
        raise ClusterError(f"the client's connection to the scheduler is {client.status}")


# -- connections to a session -------------------------------------------------


class DirectConnection:
    """A Dask connection from the client straight to the worker.

    ``ask`` sends a message and returns the session's answer. If the session must wait for other
    workers, ``computed`` is called when it has run its own orders. ``close`` ends the session; call
    it in the event loop.
    """

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._count = 0
        self._turn = asyncio.Lock()  # one write at a time
        self._awaited: dict[int, tuple[asyncio.Future[Answer], Callable[[], None]]] = {}
        self._tasks = {asyncio.ensure_future(self._read())}

    @classmethod
    async def open(cls, client: Any, address: str, session: str) -> DirectConnection:
        """Connect with the client's own settings, certificates included."""
        from distributed.comm import connect

        from .session import NAME

        comm = await connect(address, timeout=CONNECT, **client.connection_args)
        await comm.write({"op": NAME, "session": session, "peer": False, "reply": False})
        return cls(comm)

    def ask(self, message: Message, computed: Callable[[], None]) -> asyncio.Future[Answer]:
        from .session import packed

        self._count += 1
        number = self._count
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._awaited[number] = (future, computed)
        future.add_done_callback(lambda done: self._awaited.pop(number))
        # A task of its own, so that a cancelled wait for the answer does not cut the message off.
        writing = asyncio.ensure_future(self._write({"number": number, "message": packed(message)}))
        self._tasks.add(writing)
        writing.add_done_callback(self._tasks.discard)
        return future

    async def _write(self, content: dict[str, Any]) -> None:
        try:
            async with self._turn:
                await self._comm.write(content)
        except Exception as error:
            self._fail(error)

    async def _read(self) -> None:
        """Receive answers. Drop answers for which nobody waits any more."""
        from .session import unpacked

        try:
            while True:
                heard = await self._comm.read()
                future, computed = self._awaited.get(heard["number"], (None, None))
                if future is not None and computed is not None and not future.done():
                    if "answer" in heard:
                        future.set_result(unpacked(heard["answer"]))
                    else:
                        computed()
                del heard
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """The connection has ended: pass the error to all who wait for an answer."""
        for future, _ in self._awaited.values():
            if not future.done():
                future.set_exception(error)
        self._comm.abort()

    def close(self) -> None:
        self._comm.abort()


class RelayedConnection:
    """A connection through the scheduler. The session is a Dask actor."""

    def __init__(self, client: Any, future: Any, actor: Any) -> None:
        self._client, self._future, self._actor = client, future, actor

    @classmethod
    async def open(cls, client: Any, address: str, session: str) -> RelayedConnection:
        """Make the session on the worker."""
        from .session import RelayedSession

        future = client.submit(
            RelayedSession, session, actor=True, workers=[address], pure=False, key=session
        )
        return cls(client, future, await future)

    async def ask(self, message: Message, computed: Callable[[], None]) -> Answer:
        with self._client.as_current():  # Dask sends calls of actors through the current client
            asked = self._actor.answer(message)
        answer: Answer = await asked
        return answer

    def close(self) -> None:
        self._actor = None  # it holds another reference to the future
        self._future.release()


# -- the workers of a fit -----------------------------------------------------


@dataclass(eq=False)
class Member:
    """A place in the fit: a share of the rows, and the worker that holds this share now.

    Attributes
    ----------
    number : int
        From 0. An ``Each`` has one order for each number.
    worker : Worker
        The worker that has the place now.
    inputs : sequence of Future
        Futures whose results the session gets before the first order.
    session : str
        Name of the session on the worker.
    losses : int
        Workers that were lost in this place since the last answer.
    seconds : float
        Sum of the times from orders to answers.
    """

    number: int
    worker: Worker
    inputs: Sequence[Any] = ()
    session: str = ""
    connection: DirectConnection | RelayedConnection | None = None
    losses: int = 0
    seconds: float = 0.0

    def close(self) -> None:
        """End the session, if there is one. Called in the event loop."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()

    def told(self, error: BaseException) -> BaseException:
        """The error, with the name of the worker that raised it."""
        place = f"worker {self.worker.name} at {self.worker.address}"
        if type(error) is ValueError:  # a mistake of the user's: begin the message with the worker
            placed = ValueError(f"{place}: {error}")
            for note in getattr(error, "__notes__", []):
                placed.add_note(note)
            return placed
        error.add_note(f"raised on {place}")
        return error


@dataclass(eq=False)
class Workers:
    """The workers of a fit.

    Parameters
    ----------
    client : dask.distributed.Client
    timeout : float, default=60
        Seconds to wait for a worker when none is left, or for the scheduler to answer.

    Attributes
    ----------
    timings : Timings
    log : list of Order
        Lasting orders so far. They bring a new worker to the state of a lost one.
    vector_bytes : int
        Size of the vectors that workers add up, in bytes.
    """

    client: Any
    timeout: float = 60.0
    timings: Timings = field(default_factory=Timings)
    log: list[Order | Each] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    vector_bytes: int = 0
    _lost: set[str] = field(default_factory=set)  # addresses
    _relayed: set[str] = field(default_factory=set)
    _posted: list[Order | Each] = field(default_factory=list)
    _base: int = 0  # the first so many orders of the log are kept until the end
    _plans: Sequence[SumPlan] = ()
    _routes: list[Route] = field(default_factory=list)
    _together: bool = True  # whether workers can reach one another
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _running: asyncio.Future[Any] | None = None
    # When the round began, and the members that have not answered yet.
    _awaited: tuple[float, list[Member]] = (0.0, [])
    # When the scheduler was asked for its workers, and its answer.
    _known: tuple[float, list[Worker]] = (0.0, [])

    def __post_init__(self) -> None:
        check_client(self.client)
        self._id = uuid.uuid4().hex[:12]
        self._sessions = 0
        self._ours = _facts()

    def _sync(self, function: Callable[..., Awaitable[Result]], *arguments: Any) -> Result:
        """Run a coroutine in Dask's event loop."""
        if self.client.status != "running":
            raise self._gone()
        result: Result = self.client.sync(function, *arguments)
        return result

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def close(self) -> None:
        """End all sessions."""
        members, self.members, self.log = self.members, [], []
        running, self._running = self._running, None

        def end() -> None:
            if running is not None:
                running.cancel()
            for member in members:
                member.close()

        self.client.loop.add_callback(end)

    # -- who is there ---------------------------------------------------------

    def available(self) -> list[Worker]:
        """Workers that can be used, in a fixed order; waits for the first one."""
        return self._sync(self._available)

    async def _available(self) -> list[Worker]:
        deadline = time.monotonic() + self.timeout
        while True:
            found = [w for w in await self._alive() if w.address not in self._lost]
            if found:
                return sorted(found, key=lambda worker: (worker.name, worker.address))
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"no worker is left: the scheduler {self._scheduler()} had none for "
                    f"{self.timeout:g} s"
                )
            await asyncio.sleep(0.1)

    def _scheduler(self) -> str:
        return str(getattr(self.client.scheduler, "address", "") or "of the client")

    async def _alive(self) -> list[Worker]:
        """Workers that the scheduler knows."""
        try:
            known = await asyncio.wait_for(self.client.scheduler.identity(), self.timeout)
        except (OSError, RuntimeError) as error:
            raise self._gone() from error
        found = [
            Worker(address, str(facts["name"]), int(facts["nthreads"]))
            for address, facts in known["workers"].items()
        ]
        self._known = (time.monotonic(), found)
        return found

    def _gone(self) -> ClusterError:
        return ClusterError(
            f"the scheduler {self._scheduler()} does not answer: it is gone, or the network is"
        )

    async def _unless_lost(self, address: str, awaitable: Awaitable[Result]) -> Result:
        """Wait for ``awaitable``; WorkerLostError if the scheduler no longer knows the worker."""
        task = asyncio.ensure_future(awaitable)
        try:
            while not (await asyncio.wait({task}, timeout=POLL))[0]:
                asked, known = self._known
                if time.monotonic() - asked > 0.5 * POLL:  # one question serves all who wait
                    known = await self._alive()
                if address not in {worker.address for worker in known}:
                    raise WorkerLostError(address)
            return task.result()
        finally:
            task.cancel()

    def checked(self) -> list[Worker]:
        """Workers that can be used; refuses those without our packages, or with other versions."""
        self._sync(self._prepare, self.available())
        return self.available()

    async def _prepare(self, workers: Sequence[Worker]) -> None:
        """Check the workers' versions, and install our plugin on each."""
        from .session import install

        addresses = [worker.address for worker in workers]
        for address, theirs in (await self._everywhere(_facts, addresses)).items():
            if isinstance(theirs, OSError):  # lost meanwhile
                self._lost.add(address)
            elif words := _refusal(theirs, self._ours):
                raise ClusterError(f"worker {address} {words}")
        left = [address for address in addresses if address not in self._lost]
        for address, error in (await self._everywhere(install, left)).items():
            if isinstance(error, OSError):
                self._lost.add(address)
            elif error is not None:
                raise error

    async def _everywhere(self, function: Any, addresses: Sequence[str]) -> dict[str, Any]:
        """Call a function on each worker: its answers, or an OSError if a worker is lost."""

        async def ask(address: str) -> Any:
            run = self.client.run(function, workers=[address], on_error="return")
            try:
                answers = await asyncio.wait_for(self._unless_lost(address, run), self.timeout)
            except TimeoutError:
                raise ClusterError(
                    f"workers did not tell their versions within {self.timeout:g} s, one at "
                    f"{address}; does it hang?"
                ) from None
            except WorkerLostError:
                return ConnectionError(address)
            return answers.get(address, ConnectionError(address))

        answers = await asyncio.gather(*map(ask, addresses))
        return dict(zip(addresses, answers, strict=True))

    def collect(self, futures: Sequence[Any]) -> list[Any]:
        """The results of Dask futures. An error of a task is raised here."""
        from distributed import wait

        futures = list(futures)
        while True:
            with self.client.as_current(), contextlib.suppress(TimeoutError, CancelledError):
                wait(futures, timeout=POLL)
                return self.client.gather(futures)
            self.available()  # raises ClusterError if no worker is left to compute them

    def note(self) -> str:
        """A text that names a worker for which the others wait; "" if there is none."""
        begin, late = self._awaited
        waited = time.perf_counter() - begin
        if 0 < len(late) < len(self.members) and waited > SLOW:
            return f"waiting for worker {late[0].worker.name} ({waited:.0f} s)"
        if len(self.members) < 2:
            return ""
        *others, slowest = sorted(self.members, key=lambda member: member.seconds)
        if slowest.seconds > max(SLOW, MUCH_SLOWER * others[len(others) // 2].seconds):
            return f"slow worker {slowest.worker.name}"
        return ""

    # -- sessions -------------------------------------------------------------

    def start(
        self,
        workers: Sequence[Worker],
        hold: Order | Each,
        plans: Sequence[SumPlan] = (),
        inputs: Sequence[Sequence[Any]] | None = None,
    ) -> None:
        """Open a session on each of some workers, and run the first order, which makes its state.

        Parameters
        ----------
        workers : sequence of Worker
        hold : Order
            The first order.
        plans : sequence of SumPlan, optional
            The parts of each worker, if later orders sum over them.
        inputs : sequence of sequences of Future, optional
            For each worker, futures whose results the first order needs.
        """
        self.members = [
            Member(k, worker, inputs[k] if inputs is not None else ())
            for k, worker in enumerate(workers)
        ]
        self._plans, self._routes = plans, routes_of(plans)
        self._sync(self._start)
        self.round([hold])
        self._base = len(self.log)

    async def _start(self) -> None:
        before = self.timings.recovery
        await self._recover(await self._open(self.members))
        self.timings.seconds += self.timings.recovery - before

    async def _open(self, members: Sequence[Member]) -> list[Member]:
        """Open sessions; returns the members whose workers were lost meanwhile."""

        async def one(member: Member) -> bool:
            address = member.worker.address
            self._sessions += 1
            member.session = f"cutplane-{self._id}-{self._sessions}"
            try:
                await self._unless_lost(address, self._connect(member))
                if member.inputs:
                    await self._hand_over(member)
            except (OSError, WorkerLostError) as error:
                logger.debug("no session on %s: %r", address, error)
                member.close()
                return False
            return True

        found = await _all(*(one(member) for member in members))
        return [member for member, there in zip(members, found, strict=True) if not there]

    async def _connect(self, member: Member) -> None:
        address, session = member.worker.address, member.session
        if self.client.direct_to_workers is not False and address not in self._relayed:
            try:
                member.connection = await DirectConnection.open(self.client, address, session)
                return
            except OSError as error:
                if address not in {worker.address for worker in await self._alive()}:
                    raise
                if not self._relayed:
                    logger.warning(
                        "worker %s cannot be reached from here (%s): messages go through the "
                        "scheduler, which is slower; run the client inside the cluster's network",
                        address,
                        error,
                    )
                self._relayed.add(address)
        member.connection = await RelayedConnection.open(self.client, address, session)

    async def _hand_over(self, member: Member) -> None:
        """Give a session the results of its futures."""
        from distributed import wait
        from distributed.scheduler import KilledWorker

        from .session import hand_over

        address = member.worker.address
        given = self.client.submit(
            hand_over, member.session, list(member.inputs), workers=[address], pure=False
        )

        async def done() -> None:
            # Dask waits with the current client, which may be another than ours.
            with self.client.as_current(), contextlib.suppress(CancelledError):
                await wait([given])

        await self._unless_lost(address, done())
        if given.status == "finished":
            return
        error = await given.exception() if given.status == "error" else None
        if error is None or isinstance(error, KilledWorker):
            raise WorkerLostError(address)
        raise member.told(error)

    async def _recover(self, lost: Sequence[Member]) -> None:
        """Give the places of lost workers to other workers, until all places are taken."""
        begin = time.perf_counter()
        while lost:
            lost = await self._replace(lost)
        self.timings.recovery += time.perf_counter() - begin

    async def _replace(self, members: Sequence[Member]) -> list[Member]:
        """Give places to other workers, which run the log; returns members that were lost again."""
        for member in members:
            member.close()
            self._lost.add(member.worker.address)
            member.losses += 1
            if member.losses > MOST_LOSSES:
                raise ClusterError(
                    f"{member.losses} workers in a row were lost with the same share of the rows, "
                    f"the last one at {member.worker.address}; does a share fit into the memory of "
                    "a worker? More workers make shares smaller"
                )
        for member in members:
            workers = await self._available()
            busy = [m.worker.address for m in self.members if m not in members]
            chosen = min(workers, key=lambda w: (busy.count(w.address), w.name))
            logger.warning(
                "worker %s was lost; its rows go to %s", member.worker.address, chosen.address
            )
            member.worker = chosen
        self.timings.losses += len(members)
        await self._prepare([member.worker for member in members])
        lost = await self._open(members)
        for first in range(0, len(self.log), REPLAY):
            here = [member for member in members if member not in lost]
            orders = self.log[first : first + REPLAY]
            answers = await self._ask_all(here, next(self._numbers), orders)
            lost += [member for member, answer in zip(here, answers, strict=True) if answer is None]
        return lost

    # -- rounds ---------------------------------------------------------------

    def post(self, order: Order | Each) -> None:
        """Send an order whose answer does not matter together with the next round."""
        self._posted.append(order)

    def ask(self, order: Order | Each) -> list[Any]:
        """A round with all posted orders and this one; returns the workers' answers to this one."""
        orders, self._posted = [*self._posted, order], []
        return [answers[-1] for answers in self.round(orders)]

    def gather(self, order: Order | Each) -> list[Any]:
        """As ``ask``, for answers that are lists: joins the lists in the order of the workers."""
        return [entry for answer in self.ask(order) for entry in answer]

    def sum(self, order: Order | Each) -> np.ndarray:
        """As ``ask``, for answers with one vector per node of the plan: the sum of all vectors."""
        sums = self.gather(order)
        if len(sums) == 1:  # the workers have added them up
            return sums[0]
        nodes = [node for plan in self._plans for node in plan.nodes]
        parts = len(self._plans[0].edges) - 1
        total: np.ndarray = add_nodes(dict(zip(nodes, sums, strict=True)), parts)
        return total

    def keep(self) -> None:
        """Keep the log so far until the end; ``forget`` does not remove it."""
        if self._posted:
            orders, self._posted = self._posted, []
            self.round(orders)
        self._base = len(self.log)

    def forget(self, base: int | None = None) -> None:
        """Remove all of the log after its first ``base`` orders, or after the kept part."""
        self._base = self._base if base is None else base
        self._posted = []
        self.log = self.log[: self._base]

    def round(self, orders: Sequence[Order | Each]) -> list[list[Any]]:
        """Send the same orders to all workers.

        Returns
        -------
        answers : list of list
            For each worker, the answer to each order.
        """
        return self._sync(self._round_to_its_end, orders)

    async def _round_to_its_end(self, orders: Sequence[Order | Each]) -> list[list[Any]]:
        if self._running is not None and not self._running.done():  # it was interrupted
            await asyncio.wait({self._running})
        self._running = asyncio.ensure_future(self._round(orders))
        # Look at the error, or asyncio would report the error of an interrupted round as lost.
        self._running.add_done_callback(lambda done: done.cancelled() or done.exception())
        answers: list[list[Any]] = await asyncio.shield(self._running)
        return answers

    async def _round(self, orders: Sequence[Order | Each]) -> list[list[Any]]:
        begin = time.perf_counter()
        number = next(self._numbers)
        answers: list[list[Any]] = [[] for _ in self.members]
        waiting = list(self.members)
        slowest = 0.0
        apart, losses = "", self.timings.losses
        found: Any = await self._ask_together(number, orders)
        if isinstance(found, str):
            apart, found = found, None
        while waiting:
            lost = []
            found = found or await self._ask_all(waiting, number, orders)
            for member, done in zip(waiting, found, strict=True):
                if done is None:
                    lost.append(member)
                    continue
                answers[member.number] = done.answers
                member.losses = 0
                slowest = max(slowest, done.seconds)
            if lost:
                await self._recover(lost)
            waiting, found = lost, None
        if apart and losses == self.timings.losses:
            self._together = False
            logger.warning("%s: long vectors go through the client, which is slower", apart)
        self.log += [order for order in orders if order.lasting]
        self.timings.rounds += 1
        self.timings.seconds += time.perf_counter() - begin
        self.timings.work += slowest
        return answers

    async def _ask_together(self, number: int, orders: Sequence[Order | Each]) -> Any:
        """Try a round in which long vectors go from worker to worker.

        Returns the answers. Returns None if there are no long vectors, or if a worker was lost or
        failed; then the caller must ask all workers again. Returns the reason as a text if one
        worker could not reach another.
        """
        members = self.members
        if len(members) < 2 or not self._together:
            return None
        hand_on = common_bytes(orders) >= LONG
        add_up = self.vector_bytes >= LONG and any(order.summed for order in orders)
        if not (hand_on or add_up):
            return None
        peers = {m.number: Peer(m.worker.address, m.session) for m in members}
        common = [None if isinstance(order, Each) else order for order in orders]

        def message(k: int) -> Message:
            own = {
                place: order_for(orders[place], k) for place, o in enumerate(common) if o is None
            }
            return Message(
                number,
                None if hand_on and k else common,
                own,
                [peers[j] for j in handed_on(k, len(members))] if hand_on else [],
                self._routes[k] if add_up else None,
                {j: peers[j] for j in self._routes[k].sends.values()} if add_up else {},
            )

        tasks = self._ask_each(members, [message(k) for k in range(len(members))])
        try:
            for done in asyncio.as_completed(tasks):
                answer = await done
                if isinstance(answer, Apart):
                    return answer.error
                if not isinstance(answer, Done):
                    return None
        finally:
            for task in tasks:
                task.cancel()
        return [task.result() for task in tasks]

    async def _ask_all(
        self, members: Sequence[Member], number: int, orders: Sequence[Order | Each]
    ) -> list[Done | None]:
        """The answer of each member, without exchange between workers; None for a lost member."""
        messages = [
            Message(number, [order_for(order, member.number) for order in orders])
            for member in members
        ]
        answers = await _all(*self._ask_each(members, messages))
        for member, answer in zip(members, answers, strict=True):
            if isinstance(answer, Failed):
                raise member.told(answer.error)
        return answers  # type: ignore[return-value]

    def _ask_each(
        self, members: Sequence[Member], messages: Sequence[Message]
    ) -> list[asyncio.Future[Answer | None]]:
        """Send each member its message; returns futures of the answers, None for lost members."""
        begin = time.perf_counter()
        late = list(members)
        self._awaited = (begin, late)

        async def one(member: Member, message: Message) -> Answer | None:
            address = member.worker.address
            connection = member.connection

            def computed() -> None:
                if member in late:
                    late.remove(member)
                    member.seconds += time.perf_counter() - begin

            try:
                if connection is None:
                    raise WorkerLostError(address)
                return await self._unless_lost(address, connection.ask(message, computed))
            except (OSError, WorkerLostError) as error:
                logger.debug("no answer from %s: %r", address, error)
                member.close()
                return None
            finally:
                computed()

        return [
            asyncio.ensure_future(one(member, message))
            for member, message in zip(members, messages, strict=True)
        ]


async def _all(*awaitables: Awaitable[Result]) -> list[Result]:
    """Wait for all; then return the results, or raise the first error."""
    results = await asyncio.gather(*awaitables, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results  # type: ignore[return-value]
