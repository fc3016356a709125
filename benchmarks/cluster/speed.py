"""Two worker processes of a cluster on one machine against two threads, hinge.

Both read the same data set on disk, whose pages are in memory. Runs take turns. The time of a round
is the slowest worker's own work, and the rest: the network, Dask, and waiting for the processor.
Between rounds the client works alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cutplane import LinearSVC, open_dataset, write_dataset

from ..datasets import DataSet
from ..files.disk import workspace
from ..measure import spread
from ..report import Report, at_most
from .fit import measured

# Data, how often its rows are repeated, C, and whether there is a bias.
CASES = tuple(
    (name, times, C, bias)
    for name, times in (("covtype", 10), ("aclimdb", 1))
    for C in (1.0, 10.0)
    for bias in (False, True)
)
MOST = 300  # largest number of iterations; both sides do the same ones
SLOWER = 1.5  # workers may take so many times as long as threads
WORKERS = 2
FEW = 8  # bytes are counted in a fit of so many iterations
LARGE = 3_000_000  # with so many rows, runs are repeated less often


def run(report: Report) -> None:
    """Run the section."""
    with local_client(WORKERS) as client, workspace() as folder:
        for name in dict.fromkeys(case[0] for case in CASES):
            data = report.load(name)
            if data is None:
                continue
            times = next(case[1] for case in CASES if case[0] == name)
            path = folder / f"{name}.cut"
            write_rows(path, data, times)
            for other, times, C, bias in CASES:
                label = f"{name} ×{times} C={C:g}" + ", bias" * bias
                if other == name:
                    with report.attempt(label):
                        _case(report, client, path, data, times, C, bias, label)


@contextmanager
def local_client(workers: int) -> Iterator[Any]:
    """A client of a cluster on this machine, with one thread per worker."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit=0,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def write_rows(path: Path, data: DataSet, times: int) -> None:
    """Write a data set to disk, with its rows repeated ``times`` times."""
    write_dataset(path, [(data.X, data.y)] * times)


def _case(
    report: Report,
    client: Any,
    path: Path,
    data: DataSet,
    times: int,
    C: float,
    bias: bool,
    label: str,
) -> None:
    dataset = open_dataset(path)

    def model(executor: Any = None, **settings: Any) -> LinearSVC:
        """The estimator, for the workers of a client or for as many threads here."""
        who = {"n_jobs": WORKERS} if executor is None else {"executor": executor}
        usual = {"solver": "ocas", "fit_intercept": bias, "max_iter": MOST}
        return LinearSVC(C, **usual | who | settings)

    # This fit compiles, reads the pages into memory, and counts bytes.
    counted = measured(model(client, max_iter=FEW), (dataset,), count_bytes=True)
    measured(model(max_iter=FEW), (dataset,))
    threads, cluster = [], []
    repeats = min(2, report.settings.repeats) if dataset.n_rows > LARGE else report.settings.repeats
    for _ in range(repeats):
        threads.append(measured(model(), (dataset,)))
        cluster.append(measured(model(client), (dataset,)))
    one = {
        name: spread([run["seconds"] for run in runs])
        for name, runs in (("threads", threads), ("cluster", cluster))
    }
    middle = sorted(cluster, key=lambda run: run["seconds"])[(len(cluster) - 1) // 2]
    ratio = one["cluster"]["median"] / one["threads"]["median"]
    case = {
        **data.facts(),
        "what": label,
        "rows": dataset.n_rows,
        "nonzeros": int(data.X.nnz) * times,
        "C": C,
        "bias": bias,
        "workers": WORKERS,
        **one,
        "ratio": ratio,
        "n_iter": middle["n_iter"],
        **breakdown(middle),
        "sent_bytes_per_round": counted["sent_bytes"] / counted["rounds"] / WORKERS,
        "received_bytes_per_round": counted["received_bytes"] / counted["rounds"] / WORKERS,
        "kinds": middle["kinds"],
        "phases": middle["phases"],
        "threads_phases": threads[-1]["phases"],
        "cpu_seconds": {"threads": threads[-1]["cpu_seconds"], "client": middle["cpu_seconds"]},
    }
    digests = {run["digest"] for run in (*threads, *cluster)}
    report.say(
        f"{label}: threads {one['threads']['median']:.2f} s, cluster {one['cluster']['median']:.2f}"
        f" s, {middle['rounds'] / middle['n_iter']:.1f} rounds per iteration"
    )
    checks = [
        at_most("different models, to the last bit", len(digests), 1, "certificate"),
        at_most(f"cluster ≤ {SLOWER:g} times the threads' time", ratio, SLOWER),
    ]
    report.add(case, checks, label)


def breakdown(run: dict[str, Any]) -> dict[str, float]:
    """The time of a fit on a cluster by its parts, per round and in total."""
    rounds = run["rounds"]
    rest = run["seconds"] - run["load_seconds"] - run["round_seconds"]
    return {
        "rounds": rounds,
        "rounds_per_iteration": rounds / run["n_iter"],
        "load_seconds": run["load_seconds"],
        "client_seconds_per_round": rest / rounds,
        "network_seconds_per_round": (run["round_seconds"] - run["work_seconds"]) / rounds,
        "work_seconds_per_round": run["work_seconds"] / rounds,
        "work_seconds": run["work_seconds"],
        "round_seconds": run["round_seconds"],
    }
