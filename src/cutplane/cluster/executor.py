"""The values that a user may pass as ``executor``: a Dask client, with or without settings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .._checks import check_number
from .workers import ClusterError, Workers

DEFAULT_TIMEOUT = 60.0


class DaskCluster:
    """A Dask cluster as the ``executor`` of an estimator, with settings.

    A ``dask.distributed.Client`` in its place means the same, with default settings.

    Parameters
    ----------
    client : dask.distributed.Client or str
        A client, or the address of a scheduler, such as ``"tcp://host:8786"``.
    timeout : float, default=60.0
        Seconds to wait for a worker when none is left, or for the scheduler to answer, before
        the fit ends with an error.

    Notes
    -----
    ``sklearn.base.clone`` does not copy it, and pickling a model leaves it out: a saved model has
    ``executor=None``.
    """

    def __init__(self, client: Any, *, timeout: float = DEFAULT_TIMEOUT) -> None:
        self.client = client
        self.timeout = timeout

    def __repr__(self) -> str:
        return f"DaskCluster({self.client!r}, timeout={self.timeout!r})"


def cluster_of(executor: Any) -> DaskCluster:
    """The cluster that an ``executor`` means, with its settings; refuses anything else."""
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
    """The workers of an executor, without any rows yet.

    At the end the client is closed, if it was made here from an address.
    """
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
