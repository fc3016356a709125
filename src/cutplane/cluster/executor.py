"""What a user gives as ``executor``: a client of Dask, with settings if need be."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .._checks import check_number
from .workers import ClusterError, Workers

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


def cluster_of(executor: Any) -> DaskCluster:
    """An executor that is a cluster, with its settings; refuses what is none."""
    if isinstance(executor, DaskCluster):
        check_number("timeout of the DaskCluster", executor.timeout, above=0.0)
        return executor
    kind = type(executor)
    if any(base.__module__.startswith("distributed") for base in kind.__mro__):
        return DaskCluster(executor)
    raise ValueError(
        f"executor must be None, a dask.distributed.Client or a DaskCluster, got {executor!r}"
    )


@contextlib.contextmanager
def workers_of(executor: Any) -> Iterator[Workers]:
    """The workers of an executor, who hold nothing yet. A client made from an address is closed."""
    cluster = cluster_of(executor)
    client, timeout = cluster.client, float(cluster.timeout)
    with contextlib.ExitStack() as stack:
        if isinstance(client, str):
            from distributed import Client

            try:
                made = Client(client, timeout=timeout, set_as_default=False)
            except (OSError, ValueError) as error:
                raise ClusterError(f"there is no scheduler at {client}: {error}") from error
            client = stack.enter_context(made)
        yield stack.enter_context(Workers(client, timeout))
