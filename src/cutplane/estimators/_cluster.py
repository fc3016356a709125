"""Who runs a fit: threads here, or the workers of a Dask cluster."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import _clone_parametrized

from ..cluster.executor import DaskCluster, cluster_of, is_cluster
from ..cluster.executor import workers_of as crew_of
from ..cluster.orders import Each
from ..cluster.partitions import CollectionRows, checked_workers, is_collection
from ..cluster.rows import HoldRows, RemoteMatrix
from ..data import BlockedMatrix, as_blocks
from ..data.dataset import Dataset
from ..data.partitions import FolderShare, MemoryShare, RowFiles, travelling
from ..data.sums import SumPlan, part_edges, share_parts
from ..exec import make_executor

if TYPE_CHECKING:
    from ..cluster.chains import ChainsOnCluster
    from ..structured.chain import ChainExamples
    from ..structured.kernel_problem import KernelProblem
    from ..structured.linear import LinearExamples

__all__ = [
    "CollectionRows",
    "DaskCluster",
    "WithExecutor",
    "blocks_for",
    "chains_for",
    "check_executor",
    "crew_of",
    "inference_for",
    "is_cluster",
    "is_stored",
    "training_collection",
]

# Whose work is rounds over all rows.
IN_ROUNDS = ("auto", "ocas", "cpa")
# Non-zeros whose indices are copied by several threads.
WORTH_SHARING = 1 << 22


class WithExecutor:
    """Has a parameter ``executor``; a cluster there is of here and now."""

    def __getstate__(self) -> dict[str, Any]:
        """Without the cluster."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        if is_cluster(state.get("executor")):
            state = {**state, "executor": None}
        return state

    def __sklearn_clone__(self) -> Any:
        """A clone on the same cluster, which is not copied."""
        executor = getattr(self, "executor", None)
        if executor is None:
            return _clone_parametrized(self)
        without = copy.copy(self)
        without.executor = None  # type: ignore[attr-defined]
        clone = _clone_parametrized(without)
        clone.executor = executor
        return clone


def is_stored(X: Any) -> bool:
    """Whether rows are not in memory: a data set on disk, files, or a Dask collection."""
    return isinstance(X, Dataset | RowFiles) or is_collection(X)


def check_executor(model: Any) -> None:
    """Refuse an executor that is no cluster, or that cannot run the solver."""
    if isinstance(model.executor, Integral):
        raise ValueError(
            f"executor must be None or a cluster, got {model.executor!r}; for threads give "
            f"n_jobs={model.executor!r}"
        )
    cluster_of(model.executor)
    if model.solver not in IN_ROUNDS:
        raise ValueError(
            f"solver={model.solver!r} visits rows in random order, which a cluster cannot; with "
            "such an executor use 'auto', 'ocas' or 'cpa'"
        )


def training_collection(model: Any, X: Any, y: Any) -> tuple[CollectionRows, np.ndarray]:
    """Check a Dask collection and the labels. Sets what scikit-learn's checks set."""
    executor = getattr(model, "executor", None)
    if not is_cluster(executor):
        raise ValueError(
            f"X is a {type(X).__module__}.{type(X).__name__}: pass executor=Client(…) to train on "
            "a cluster, or bring it here first"
        )
    rows = CollectionRows(executor, X)
    try:
        labels = rows.labels(y)
    except BaseException:
        rows.close()
        raise
    model.n_features_in_ = rows.shape[1]
    if rows.names is not None:
        model.feature_names_in_ = np.array(rows.names, dtype=object)
    elif hasattr(model, "feature_names_in_"):
        del model.feature_names_in_
    return rows, labels


@contextmanager
def inference_for(
    model: Any, problem: LinearExamples | KernelProblem, processes: int
) -> Iterator[None]:
    """Processes here, or workers, that run the inference for structured outputs."""
    from ..structured.linear import LinearExamples

    if is_cluster(model.executor):
        from ..cluster.examples import ChunksOnCluster

        assert isinstance(problem, LinearExamples)  # with a kernel all is on one machine
        with crew_of(model.executor) as crew:
            workers = checked_workers(crew)
            chunks = problem.examples.inference.chunks
            problem.send(crew, ChunksOnCluster(crew, workers, chunks, problem.examples.threads))
            yield
        return
    try:
        problem.examples.inference.start(processes)
        yield
    finally:
        problem.examples.inference.close()


@contextmanager
def chains_for(model: Any, examples: ChainExamples) -> Iterator[ChainExamples | ChainsOnCluster]:
    """The sequences here, or on the workers of the model's executor."""
    if not is_cluster(model.executor):
        yield examples
        return
    from ..cluster.chains import ChainsOnCluster

    with crew_of(model.executor) as crew:
        yield ChainsOnCluster(examples, crew, checked_workers(crew))


@contextmanager
def blocks_for(model: Any, X: Any, outputs: int = 1) -> Iterator[BlockedMatrix | RemoteMatrix]:
    """The rows in blocks, here or on the workers of the model's executor."""
    if isinstance(X, CollectionRows):
        with X.held(outputs) as held:
            yield held
        return
    if getattr(X, "nnz", 0) < WORTH_SHARING:
        matrix = as_blocks(X, outputs=outputs)
    else:
        with make_executor(model.n_jobs, X.nnz) as threads:
            matrix = as_blocks(X, outputs=outputs, runner=threads)
    executor = getattr(model, "executor", None)
    if not is_cluster(executor):
        yield matrix
        return
    with crew_of(executor) as crew:
        workers = checked_workers(crew)
        edges = part_edges(len(matrix.blocks), len(matrix))
        runs = share_parts(np.diff(edges).tolist(), [worker.threads for worker in workers])
        plans = [SumPlan(edges, first, last) for first, last in runs]
        shares = [_share(X, matrix, plan, outputs) for plan in plans]
        hold = [HoldRows(plan, share) for plan, share in zip(plans, shares, strict=True)]
        crew.start(workers[: len(plans)], Each(hold), plans)
        yield RemoteMatrix(crew, plans, matrix.bounds, matrix.shape, matrix.numbers, matrix.digest)


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
