"""A fit on a cluster in detail: rounds, the orders in them, bytes, and the parts of the time.

    python -m benchmarks.cluster.fit ADDRESS FOLDER [--loss LOSS] [...]

fits on the cluster of that scheduler and prints one line of JSON. On request it first prints a line
for every tenth round, so that another process can cause a fault in the middle of the fit.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import json
import statistics
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

EVERY = 10  # rounds between two lines
# Orders with the rows, or the labels of all rows. A fit gives them once, and they do not count.
BEGINNING = {"hold_rows", "hold_partitions", "begin", "begin_rows"}


@dataclass
class Account:
    """The rounds of a fit, counted.

    Attributes
    ----------
    timings : Timings or None
        The timings that the workers report.
    kinds : Counter
        The number of rounds by their orders, whose names are joined.
    sent, received : int
        Bytes between the client and all workers together, before compression, without the
        labels in the beginning. They are counted on request only, because that takes time.
    """

    timings: Any = None
    kinds: collections.Counter[str] = field(default_factory=collections.Counter)
    sent: int = 0
    received: int = 0
    load_seconds: float = 0.0
    seconds: list[float] = field(default_factory=list)  # of each round

    def facts(self) -> dict[str, Any]:
        """The account for the JSON file."""
        t = self.timings
        return {
            "rounds": t.rounds,
            "round_seconds": t.seconds,
            "median_round_seconds": statistics.median(self.seconds),
            "work_seconds": t.work,
            "recovery_seconds": t.recovery,
            "losses": t.losses,
            "load_seconds": self.load_seconds,
            "kinds": dict(self.kinds.most_common()),
            "sent_bytes": self.sent or None,
            "received_bytes": self.received or None,
        }


def _size(message: Any) -> int:
    from distributed.protocol import dumps, to_serialize

    return sum(memoryview(frame).nbytes for frame in dumps(to_serialize(message)))


@contextlib.contextmanager
def accounting(count_bytes: bool = False, lines: bool = False) -> Iterator[Account]:
    """Keeps account of the one fit inside ``with``."""
    from cutplane.cluster.workers import DirectConnection, Workers

    account = Account()
    usual = {name: getattr(Workers, name) for name in ("round", "start")}
    usual_ask = DirectConnection.ask
    counted = False

    def keeping(self: Any, orders: Sequence[Any]) -> Any:
        nonlocal counted
        account.timings = self.timings
        names = [order.name for order in orders]
        counted = count_bytes and not BEGINNING & set(names)
        account.kinds["+".join(names)] += 1
        begin = time.perf_counter()
        answers = usual["round"](self, orders)
        account.seconds.append(time.perf_counter() - begin)
        if lines and self.timings.rounds % EVERY == 0:
            print(f"round {self.timings.rounds}", flush=True)
        return answers

    def starting(self: Any, *arguments: Any) -> None:
        begin = time.perf_counter()
        usual["start"](self, *arguments)
        account.load_seconds = time.perf_counter() - begin

    async def asking(self: Any, message: Any, *arguments: Any) -> Any:
        answer = await usual_ask(self, message, *arguments)
        if counted:
            account.sent += _size(message)
            account.received += _size(answer)
        return answer

    Workers.round, Workers.start = keeping, starting  # type: ignore[method-assign]
    DirectConnection.ask = asking  # type: ignore[method-assign]
    try:
        yield account
    finally:
        DirectConnection.ask = usual_ask  # type: ignore[method-assign]
        for name, method in usual.items():
            setattr(Workers, name, method)


def measured(
    model: Any, data: Sequence[Any], *, count_bytes: bool = False, lines: bool = False
) -> dict[str, Any]:
    """Fit, and return what it took, with a digest of all bits of the model and certificate."""
    from sklearn.exceptions import ConvergenceWarning

    with (
        warnings.catch_warnings(),
        accounting(count_bytes, lines) as account,
    ):
        warnings.simplefilter("ignore", ConvergenceWarning)
        begin, cpu = time.perf_counter(), time.process_time()
        model.fit(*data)
        seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu
    result = model.results_[0]
    certificate = result.certificate
    digest = hashlib.blake2b(digest_size=8)
    digest.update(model.coef_.tobytes())
    digest.update(repr((certificate.primal, certificate.dual, result.n_iter)).encode())
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "n_iter": result.n_iter,
        "primal": float(certificate.primal),
        "dual": float(certificate.dual),
        "status": str(result.status.value),
        "digest": digest.hexdigest(),
        "phases": {name: float(value) for name, value in result.timings.items()},
        **(account.facts() if account.timings is not None else {}),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Fit on a cluster."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster.fit")
    parser.add_argument("address", help="of the scheduler; - for no cluster")
    parser.add_argument("folder", help="a data set on disk")
    parser.add_argument("--loss", default="hinge")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--workers", type=int, default=1, help="to wait for")
    parser.add_argument("--times", type=int, default=1, help="fits; the last one is told of")
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--bytes", action="store_true", help="count them in the last fit")
    parser.add_argument("--lines", action="store_true")
    arguments = parser.parse_args(argv)
    from cutplane import LinearSVC, open_dataset

    data = open_dataset(arguments.folder)
    model = LinearSVC(
        arguments.C, loss=arguments.loss, tol=arguments.tol, solver="ocas", fit_intercept=False
    )
    with contextlib.ExitStack() as stack:
        if arguments.address != "-":
            from distributed import Client

            from cutplane import DaskCluster

            client = stack.enter_context(Client(arguments.address, timeout=arguments.timeout))
            client.wait_for_workers(arguments.workers, timeout=arguments.timeout)
            model.set_params(executor=DaskCluster(client, timeout=arguments.timeout))
        for number in range(arguments.times):
            last = number == arguments.times - 1
            facts = measured(
                model, (data,), count_bytes=arguments.bytes and last, lines=arguments.lines and last
            )
        print(json.dumps(facts), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
