"""The worker's side: a plugin of Dask's worker, and what the worker holds for one fit.

The plugin adds one handler to the worker's own server. A client that connects there, over Dask's
own connection (plain, TLS or whatever the cluster speaks), opens a session: it sends orders, and
gets answers. What the session holds is freed when the connection ends, for whatever reason.

This module, unlike the others, is imported where Dask is installed only.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Sequence
from typing import Any

from distributed import WorkerPlugin, get_worker
from distributed.protocol import to_serialize

from ..exec import portable
from .orders import Done, Failed, Hold, Means, Order

NAME = "cutplane"


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

    async def serve(self, comm: Any, session: str) -> None:
        """Answer orders that come on a connection until it ends."""
        own = Session(self.worker, session)
        try:
            while True:
                message = await comm.read()
                answer = await own.answer(message["orders"])
                del message
                await comm.write({"answer": to_serialize(answer)})
                del answer
        except OSError:  # the connection has ended
            pass
        finally:
            own.close()
            comm.abort()


async def install(dask_worker: Any) -> None:
    """Run on a worker: add the plugin, if it is not there."""
    if NAME not in dask_worker.plugins:
        await dask_worker.plugin_add(plugin=Service(), name=NAME)


def hand_over(session: str, inputs: Sequence[Any]) -> None:
    """A Dask task: give a session of this worker what the task got."""
    service: Any = get_worker().plugins[NAME]
    service.sessions[session].inputs = inputs


class Session:
    """What a worker holds for one fit.

    Parameters
    ----------
    worker : distributed.Worker
    name : str
        Known to the client.
    """

    inputs: Sequence[Any] = ()

    def __init__(self, worker: Any, name: str) -> None:
        self._worker = worker
        self._state: Any = None
        worker.plugins[NAME].sessions[name] = self

    async def answer(self, orders: Sequence[Order]) -> Done | Failed:
        """Do what is ordered, in the thread that Dask has for actors: one thing at a time."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker.executors["actor"], self.do, orders)

    def do(self, orders: Sequence[Order]) -> Done | Failed:
        """Do what is ordered, one after the other."""
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
            self._state = order.make(means)
            return None
        return order.run(self._state)

    def close(self) -> None:
        """Let go of everything."""
        self._state, self.inputs = None, ()


class RelayedSession(Session):
    """A session as a Dask actor: for a client whose messages go through the scheduler."""

    def __init__(self, name: str) -> None:
        super().__init__(get_worker(), name)
