"""Orders to objects on workers and their answers, to all of them at the same time.

Where Dask itself speaks plain TCP, and the worker can be called, messages go on a line of our own
to each object. Otherwise they go to the object as a Dask actor, directly where that is possible,
without a task for the scheduler, and through the scheduler if not.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import lines
from .members import Failed, Lost, Member
from .orders import Order, Worker

logger = logging.getLogger("cutplane")

# Seconds after which those who are waited for are looked after.
POLL = lines.POLL
# Seconds that a worker may take to answer the first greeting before the scheduler is asked to pass
# messages on.
GREETING = 5.0
# What Dask's addresses begin with where its messages are not encrypted, and go over a network.
PLAIN = "tcp://"


@dataclass
class Messages:
    """Messages between a client and objects on workers.

    Parameters
    ----------
    client : dask.distributed.Client
    alive, ask : callable
        Ask the scheduler for its workers, in the client's event loop and outside of it.

    Attributes
    ----------
    late : tuple
        When the last messages were sent, and who has not answered yet.
    """

    client: Any
    alive: Callable[[], Coroutine[Any, Any, list[Worker]]]
    ask: Callable[[], list[Worker]]
    late: tuple[float, list[Member]] = (0.0, [])
    _greeted: set[str] = field(default_factory=set)
    _proxied: set[str] = field(default_factory=set)

    def send(self, members: Sequence[Member], orders: Sequence[Order]) -> list[Any]:
        """One answer per member: (answers, seconds), or what there is instead."""
        if members and all(member.line is not None for member in members):
            return self._send_on_lines(members, orders)
        return self.client.sync(self._send_all, members, orders)

    # -- lines ----------------------------------------------------------------

    def connect(self, members: Sequence[Member]) -> None:
        """Call objects that were made just now, where that is possible."""
        plain = [member for member in members if member.worker.address.startswith(PLAIN)]
        if plain:
            self.client.sync(self._call_all, plain)

    async def _call_all(self, members: Sequence[Member]) -> None:
        await asyncio.gather(*(self._call(member) for member in members))

    async def _call(self, member: Member) -> None:
        import dask
        from dask.utils import parse_timedelta
        from distributed.comm import get_address_host

        address, future = member.worker.address, member.future
        silence = parse_timedelta(dask.config.get("distributed.comm.timeouts.tcp"), "seconds")
        host, key = get_address_host(address), lines.new_key()
        try:
            if not await self._is_direct(address):
                return
            reply = await asyncio.wait_for(
                self.client.rpc(address).actor_execute(
                    actor=future.key,
                    function="listen",
                    args=[host, key, silence],
                    kwargs={},
                ),
                GREETING,
            )
            if reply["status"] != "OK" or reply["result"] is None:
                return
            line = await asyncio.wait_for(
                lines.call(host, reply["result"], key, silence), lines.CALL
            )
        except (OSError, KeyError) as error:  # lost meanwhile, or not to be called
            logger.debug("no line to %s: %r", address, error)
            return
        if member.future is not future:  # dismissed meanwhile
            line.close()
        else:
            member.line = line

    def _send_on_lines(self, members: Sequence[Member], orders: Sequence[Order]) -> list[Any]:
        begin = time.perf_counter()
        ends = [member.line for member in members if member.line is not None]
        same = all(order.shares is None for order in orders)
        messages = [
            lines.outgoing([order.for_one(member.number) for order in orders])
            for member in (members[:1] if same else members)
        ]
        answers: list[Any] = [Lost()] * len(members)
        waiting = list(members)
        self.late = (begin, waiting)

        def given_up(pending: set[int]) -> set[int]:
            alive = {worker.address for worker in self.ask()}
            return {k for k in pending if members[k].worker.address not in alive}

        try:
            for k, answer in lines.exchange(ends, messages * (len(ends) if same else 1), given_up):
                waiting = [member for member in waiting if member is not members[k]]
                self.late = (begin, waiting)
                if isinstance(answer, OSError):
                    logger.debug("no answer from %s: %r", members[k].worker, answer)
                    members[k].hang_up()
                else:
                    answers[k] = answer
                    members[k].seconds += time.perf_counter() - begin
        except BaseException:  # what comes on these lines now is no answer to what comes next
            for member in members:
                member.hang_up()
            raise
        return answers

    # -- by Dask --------------------------------------------------------------

    async def _send_all(self, members: Sequence[Member], orders: Sequence[Order]) -> list[Any]:
        tasks = [asyncio.ensure_future(self._send_one(member, orders)) for member in members]
        pending: set[Any] = set(tasks)
        begin = time.perf_counter()
        try:
            while pending:
                done, pending = await asyncio.wait(pending, timeout=POLL)
                late = [m for t, m in zip(tasks, members, strict=True) if t in pending]
                self.late = (begin, late)
                if not pending or done:
                    continue
                alive = {worker.address for worker in await self.alive()}
                for task, member in zip(tasks, members, strict=True):
                    if member.worker.address not in alive:
                        task.cancel()
        finally:
            for task in pending:
                task.cancel()
        return [Lost() if task.cancelled() else task.result() for task in tasks]

    async def _send_one(self, member: Member, orders: Sequence[Order]) -> Any:
        from distributed.protocol import to_serialize

        begin = time.perf_counter()
        message = {
            "actor": member.future.key,
            "function": "play",
            "args": [to_serialize([order.for_one(member.number) for order in orders])],
            "kwargs": {},
        }
        address = member.worker.address
        try:
            if await self._is_direct(address):
                reply = await self.client.rpc(address).actor_execute(**message)
            else:
                message["op"] = "actor_execute"
                reply = await self.client.scheduler.proxy(worker=address, msg=message)
        except (OSError, KeyError) as error:  # of the network; or it has no such actor
            logger.debug("no answer from %s: %r", address, error)
            return Lost()
        member.seconds += time.perf_counter() - begin
        if reply["status"] == "OK":
            return reply["result"]
        raised = reply["exception"]
        if isinstance(raised, RuntimeError) and "after shutdown" in str(raised):
            return Lost()  # it is closing and takes no more work
        return Failed(raised)

    async def _is_direct(self, address: str) -> bool:
        """Whether messages go to a worker directly; asked once."""
        if address in self._proxied:
            return False
        if address in self._greeted:
            return True
        if self.client.direct_to_workers is not False:
            try:
                await asyncio.wait_for(self.client.rpc(address).identity(), GREETING)
                self._greeted.add(address)
                return True
            except OSError:
                pass
        self._proxied.add(address)
        return False
