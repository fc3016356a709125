"""Objects on the workers of a Dask cluster, each rebuilt elsewhere when its worker is lost.

A crew has one object per worker, made there from a recipe. A round sends every object the same
few orders (a method, its arguments) in one message and gets all answers. Orders that change an
object are kept in a log: an object that is lost with its worker is made again from its recipe on
another worker and gets the log once more, which brings it to the same state, to the last bit.

The objects are Dask actors; how messages come to them is the affair of ``messages``. Knows no
mathematics.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
import time
import uuid
from asyncio import CancelledError
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .members import Member, is_lost, refusal, told
from .members import versions as _facts
from .messages import POLL, Messages
from .orders import Order, Recipe, Timings, Worker
from .station import make

logger = logging.getLogger("cutplane")

# How often an object may be lost without a round in between.
MOST_LOSSES = 5
# A worker that others wait for so many seconds, or that takes so many times as long, is named.
SLOW = 3.0
MUCH_SLOWER = 2.0
# Orders of the log that are sent at a time.
REPLAY = 8


class ClusterError(RuntimeError):
    """The cluster cannot go on: no worker is left, or the scheduler is gone."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


def check_client(client: Any) -> None:
    """Refuse what is not a client that can be used from here."""
    from distributed import Client

    if not isinstance(client, Client):
        raise ValueError(f"expected a dask.distributed.Client, got {client!r}")
    if client.asynchronous:
        raise ValueError("the client is asynchronous; make one with Client(address)")
    if client.status != "running":
        raise ClusterError(f"the client's connection to the scheduler is {client.status}")


@dataclass
class Crew:
    """Objects on the workers of a cluster.

    Parameters
    ----------
    client : dask.distributed.Client
    timeout : float, default=60
        Seconds to wait for a worker when none is left, or for the scheduler to answer.
    """

    client: Any
    timeout: float = 60.0
    timings: Timings = field(default_factory=Timings)
    log: list[Order] = field(default_factory=list)
    _members: list[Member] = field(default_factory=list)
    _bad: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        check_client(self.client)
        self._id = uuid.uuid4().hex[:12]
        self._attempts = 0
        self._messages = Messages(self.client, self._alive, self._ask_scheduler)

    def __len__(self) -> int:
        return len(self._members)

    @property
    def members(self) -> Sequence[Member]:
        """The objects with their workers."""
        return self._members

    # -- who is there ---------------------------------------------------------

    def workers(self) -> list[Worker]:
        """Workers that can be used, in a fixed order; waits for the first one."""
        deadline = time.monotonic() + self.timeout
        while True:
            found = [w for w in self._ask_scheduler() if w.address not in self._bad]
            if found:
                return sorted(found, key=lambda worker: (worker.name, worker.address))
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"no worker is left: the scheduler {self._scheduler()} had none for "
                    f"{self.timeout:g} s"
                )
            time.sleep(0.1)

    def _scheduler(self) -> str:
        return str(getattr(self.client.scheduler, "address", "") or "of the client")

    def _ask_scheduler(self) -> list[Worker]:
        if self.client.status != "running":
            raise self._gone()
        try:
            return self.client.sync(self._alive, callback_timeout=self.timeout + 5.0)
        except (RuntimeError, OSError) as error:
            if isinstance(error, ClusterError):
                raise
            raise self._gone() from error

    async def _alive(self) -> list[Worker]:
        try:
            known = await asyncio.wait_for(self.client.scheduler.identity(), self.timeout)
        except (OSError, RuntimeError) as error:
            raise self._gone() from error
        return [
            Worker(address, str(facts["name"]), int(facts["nthreads"]))
            for address, facts in known["workers"].items()
        ]

    def _gone(self) -> ClusterError:
        return ClusterError(
            f"the scheduler {self._scheduler()} does not answer: it is gone, or the network is"
        )

    def check_versions(self, workers: Sequence[Worker]) -> None:
        """Refuse workers without our packages, or with other versions of them."""
        ours, addresses = _facts(), [worker.address for worker in workers]
        while addresses:
            try:
                answers = self.client.sync(self._ask_facts, addresses)
            except ClusterError:
                raise
            except (OSError, RuntimeError) as error:
                raise self._gone() from error
            for address, theirs in answers.items():
                if isinstance(theirs, OSError):  # lost meanwhile
                    self._bad.add(address)
                elif words := refusal(theirs, ours):
                    raise ClusterError(f"worker {address} {words}")
            addresses = [address for address in addresses if address not in answers]

    async def _ask_facts(self, addresses: Sequence[str]) -> dict[str, Any]:
        """Versions of workers, or of those that are lost meanwhile that they are."""
        asked = self.client.run(_facts, workers=addresses, on_error="return")
        task = asyncio.ensure_future(asked)
        deadline = time.monotonic() + self.timeout
        while not (await asyncio.wait({task}, timeout=min(POLL, self.timeout)))[0]:
            if time.monotonic() > deadline:
                task.cancel()
                raise ClusterError(
                    f"workers did not tell their versions within {self.timeout:g} s, one of "
                    f"{', '.join(addresses)}; do they stand still?"
                )
            alive = {worker.address for worker in await self._alive()}
            if lost := [address for address in addresses if address not in alive]:
                task.cancel()  # it would try to connect for half a minute
                return dict.fromkeys(lost, ConnectionError())
        return {**dict.fromkeys(addresses, ConnectionError()), **task.result()}

    def collect(self, futures: Sequence[Any]) -> list[Any]:
        """What Dask futures hold; what went wrong there is raised."""
        from distributed import wait

        futures = list(futures)
        while True:
            with self.client.as_current(), contextlib.suppress(TimeoutError, CancelledError):
                wait(futures, timeout=POLL)
                return self.client.gather(futures)
            self.workers()  # nobody is left to compute them?

    # -- making objects -------------------------------------------------------

    def hire(self, recipes: Sequence[Recipe], workers: Sequence[Worker]) -> None:
        """Make one object from each recipe, each on a worker of its own."""
        self._members = [
            Member(k, recipe, worker)
            for k, (recipe, worker) in enumerate(zip(recipes, workers, strict=True))
        ]
        lost = self._build(self._members)
        before = self.timings.recovery
        self._recover(lost)
        self.timings.seconds += self.timings.recovery - before

    def _build(self, members: Sequence[Member]) -> list[Member]:
        """Make objects where they should be; returns those whose workers were lost meanwhile."""
        from distributed import wait

        for member in members:
            self._attempts += 1
            member.future = self.client.submit(
                make,
                pickle.dumps((member.recipe.factory, member.recipe.arguments)),
                list(member.recipe.inputs),
                actor=True,
                workers=[member.worker.address],
                pure=False,
                key=f"cutplane-{self._id}-{member.number}-{self._attempts}",
            )
        pending, lost = list(members), []
        while pending:
            # Waiting is done by the current client, which need not be ours.
            with self.client.as_current(), contextlib.suppress(TimeoutError, CancelledError):
                wait([m.future for m in pending], timeout=POLL, return_when="FIRST_COMPLETED")
            pending = [member for member in pending if member.future.status != "finished"]
            alive = {worker.address for worker in self._ask_scheduler()} if pending else set()
            for member in list(pending):
                if member.worker.address not in alive:
                    pending.remove(member)
                    lost.append(member)
                elif member.future.status not in ("pending", "finished"):
                    pending.remove(member)
                    logger.debug("making an object on %s: %s", member.worker, member.future.status)
                    if not self._was_lost(member):
                        raise told(member, member.future.exception())
                    lost.append(member)
        self._messages.connect([member for member in members if member not in lost])
        return lost

    def _was_lost(self, member: Member) -> bool:
        from distributed.scheduler import KilledWorker

        if member.future.status != "error":
            return True
        return isinstance(member.future.exception(), KilledWorker)

    def _recover(self, lost: Sequence[Member]) -> None:
        """Make lost objects again, until all of them are there."""
        begin = time.perf_counter()
        while lost:
            lost = self._move(lost)
        self.timings.recovery += time.perf_counter() - begin

    def _move(self, members: Sequence[Member]) -> list[Member]:
        """Make lost objects again on other workers; returns those that were lost again."""
        for member in members:
            member.dismiss()
            self._bad.add(member.worker.address)
            member.losses += 1
            if member.losses > MOST_LOSSES:
                raise ClusterError(
                    f"{member.losses} workers in a row were lost with the same share of the rows, "
                    f"the last one at {member.worker.address}; does a share fit into the memory of "
                    "a worker? More workers make shares smaller"
                )
        for member in members:
            workers = self.workers()
            busy = [m.worker.address for m in self._members if m not in members]
            chosen = min(workers, key=lambda w: (busy.count(w.address), w.name))
            logger.warning(
                "worker %s was lost; its rows go to %s", member.worker.address, chosen.address
            )
            member.worker = chosen
        self.timings.losses += len(members)
        self.check_versions([member.worker for member in members])
        lost = self._build(members)
        for first in range(0, len(self.log), REPLAY):
            here = [member for member in members if member not in lost]
            answers = self._send(here, self.log[first : first + REPLAY])
            lost += [m for m, answer in zip(here, answers, strict=True) if is_lost(answer, m)]
        return lost

    def close(self) -> None:
        """Let the workers forget the objects."""
        for member in self._members:
            member.dismiss()
        self._members = []
        self.log = []

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def note(self) -> str:
        """Which worker the others wait for, in words; nothing if none."""
        begin, late = self._messages.late
        waited = time.perf_counter() - begin
        if 0 < len(late) < len(self._members) and waited > SLOW:
            return f"waiting for worker {late[0].worker.name} ({waited:.0f} s)"
        if len(self._members) < 2:
            return ""
        *others, slowest = sorted(self._members, key=lambda member: member.seconds)
        if slowest.seconds > max(SLOW, MUCH_SLOWER * others[len(others) // 2].seconds):
            return f"slow worker {slowest.worker.name}"
        return ""

    # -- rounds ---------------------------------------------------------------

    def round(self, orders: Sequence[Order]) -> list[list[Any]]:
        """Send the same orders to all objects.

        Returns
        -------
        answers : list of list
            By object and order.
        """
        begin = time.perf_counter()
        answers: list[list[Any]] = [[] for _ in self._members]
        waiting = list(self._members)
        slowest = 0.0
        while waiting:
            lost = []
            for member, answer in zip(waiting, self._send(waiting, orders), strict=True):
                if is_lost(answer, member):
                    lost.append(member)
                    continue
                answers[member.number], seconds = answer
                member.losses = 0
                slowest = max(slowest, seconds)
            self._recover(lost)
            waiting = lost
        self.log += [order for order in orders if order.lasting]
        self.timings.rounds += 1
        self.timings.seconds += time.perf_counter() - begin
        self.timings.work += slowest
        return answers

    def _send(self, members: Sequence[Member], orders: Sequence[Order]) -> list[Any]:
        """One answer per member: (answers, seconds), or what there is instead."""
        if not members:
            return []
        if self.client.status != "running":
            raise self._gone()
        return self._messages.send(members, orders)


def worker_threads() -> int:
    """Threads that belong to the worker this runs on."""
    from distributed import get_worker

    return int(get_worker().state.nthreads)


def worker_memory() -> int | None:
    """Bytes that the worker this runs on may use; None if there is no limit."""
    from distributed import get_worker

    limit = get_worker().memory_manager.memory_limit
    return int(limit) if limit else None


@contextlib.contextmanager
def connected(client: Any, timeout: float) -> Iterator[Any]:
    """A client, made from an address if it is one and closed then."""
    if not isinstance(client, str):
        yield client
        return
    from distributed import Client

    try:
        made = Client(client, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(f"there is no scheduler at {client}: {error}") from error
    with made:
        yield made
