"""Who runs a fit: threads here, or the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np

from .._checks import check_n_jobs, check_number
from ..data import BlockedMatrix, as_blocks
from ..data.dataset import Dataset
from ..data.parts import SumPlan, part_edges, share_parts
from ..data.shares import FolderShare, MemoryShare, travelling
from ..exec import make_executor
from ..oracles.holder import RowsHolder
from ..oracles.remote import RemoteMatrix

# Whose work is rounds over all rows.
IN_ROUNDS = ("auto", "ocas", "cpa")
DEFAULT_TIMEOUT = 60.0


class DaskCluster:
    """A Dask cluster as the ``executor`` of an estimator, with settings.

    A ``dask.distributed.Client`` alone means the same with the defaults.

    Parameters
    ----------
    client : dask.distributed.Client or str
        A client, or the address of a scheduler, such as ``"tcp://host:8786"``.
    timeout : float, default=60.0
        Seconds to wait for a worker when none is left, or for the scheduler to answer, before
        the fit ends with an error.

    Notes
    -----
    It is not copied by ``sklearn.base.clone``, and not pickled with a model: a model that was
    saved has ``executor=None``.
    """

    def __init__(self, client: Any, *, timeout: float = DEFAULT_TIMEOUT) -> None:
        self.client = client
        self.timeout = timeout

    def __repr__(self) -> str:
        return f"DaskCluster({self.client!r}, timeout={self.timeout!r})"


def threads_of(model: Any) -> int | None:
    """The number of threads here, as ``n_jobs`` or ``executor`` say."""
    executor = getattr(model, "executor", None)
    if isinstance(executor, Integral) and not isinstance(executor, bool):
        return int(executor)
    return model.n_jobs


def check_executor(model: Any) -> None:
    """Refuse an executor that is none, or that cannot run the solver."""
    executor = getattr(model, "executor", None)
    if executor is None:
        return
    if isinstance(executor, Integral):
        check_n_jobs(executor)
        if model.n_jobs is not None and model.n_jobs != executor:
            raise ValueError(
                f"executor={executor} and n_jobs={model.n_jobs} both say how many threads; give one"
            )
        return
    _cluster(executor)
    if model.solver not in IN_ROUNDS:
        raise ValueError(
            f"solver={model.solver!r} visits rows in random order, which a cluster cannot; with "
            "such an executor use 'auto', 'ocas' or 'cpa'"
        )


def _cluster(executor: Any) -> DaskCluster:
    if isinstance(executor, DaskCluster):
        check_number("timeout of the DaskCluster", executor.timeout, above=0.0)
        return executor
    kind = type(executor)
    if any(base.__module__.startswith("distributed") for base in kind.__mro__):
        return DaskCluster(executor)
    raise ValueError(
        "executor must be None, a number of threads, a dask.distributed.Client or a DaskCluster, "
        f"got {executor!r}"
    )


@contextmanager
def blocks_for(model: Any, X: Any, outputs: int = 1) -> Iterator[BlockedMatrix | RemoteMatrix]:
    """The rows in blocks, here or on the workers of the model's executor."""
    with make_executor(threads_of(model), getattr(X, "size", 0)) as threads:
        matrix = as_blocks(X, outputs=outputs, runner=threads)
    executor = getattr(model, "executor", None)
    if executor is None or isinstance(executor, Integral):
        yield matrix
        return
    from ..exec.cluster import Crew, connected
    from ..exec.orders import Order, Recipe

    cluster = _cluster(executor)
    with (
        connected(cluster.client, cluster.timeout) as client,
        Crew(client, float(cluster.timeout)) as crew,
    ):
        workers = crew.workers()
        crew.check_versions(workers)
        workers = crew.workers()
        edges = part_edges(len(matrix.blocks), len(matrix))
        runs = share_parts(np.diff(edges).tolist(), [worker.threads for worker in workers])
        plans = [SumPlan(edges, first, last) for first, last in runs]
        shares = [_share(X, matrix, plan, outputs) for plan in plans]
        on_disk = isinstance(X, Dataset)
        crew.hire(
            [
                Recipe(RowsHolder, (plan, share) if on_disk else (plan,))
                for plan, share in zip(plans, shares, strict=True)
            ],
            workers[: len(plans)],
        )
        if not on_disk:
            crew.round([Order("load", shares=shares, lasting=True)])
        yield RemoteMatrix(
            crew, plans, matrix.bounds, matrix.shape, matrix.numbers, matrix.digest()
        )


def _share(X: Any, matrix: BlockedMatrix, plan: SumPlan, outputs: int) -> FolderShare | MemoryShare:
    blocks = plan.blocks
    if isinstance(X, Dataset):
        return FolderShare(
            str(X.path.absolute()),
            X.digest(),
            X.n_features,
            X.given_memory_limit,
            outputs,
            blocks.start,
            blocks.stop,
        )
    return MemoryShare([travelling(matrix.blocks[k]) for k in blocks], matrix.shape[1])
