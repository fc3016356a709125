"""Who runs a fit: threads here, or the workers of a Dask cluster."""

from __future__ import annotations

import copy
import hashlib
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from numbers import Integral
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import _clone_parametrized
from sklearn.utils import column_or_1d

from .._checks import check_n_jobs, check_number
from ..data import BlockedMatrix, as_blocks, partitions
from ..data.dataset import Dataset
from ..data.partitions import FolderShare, MemoryShare, RowFiles, travelling
from ..data.rows import column_names, joined_column
from ..data.sums import SumPlan, part_edges, share_parts
from ..exec import make_executor
from ..exec.pieces import is_collection
from ..oracles.holder import RowsHolder, hold_partitions
from ..oracles.remote import RemoteMatrix

if TYPE_CHECKING:
    from ..exec.cluster import Crew
    from ..exec.orders import Worker
    from ..structured.chain import ChainExamples
    from ..structured.chain_cluster import ChainsOnCluster
    from ..structured.kernel_problem import KernelProblem
    from ..structured.linear import LinearExamples

# Whose work is rounds over all rows.
IN_ROUNDS = ("auto", "ocas", "cpa")
DEFAULT_TIMEOUT = 60.0
# Non-zeros whose indices are copied by several threads.
WORTH_SHARING = 1 << 22


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


class CollectionRows:
    """The rows of a Dask array or dataframe, or of files, checked by the workers.

    Attributes
    ----------
    shape : tuple of int
    names : tuple of str or None
        Of the columns.
    own_labels, own_queries, own_weights : ndarray or None
        From files.

    Parameters
    ----------
    executor : Client or DaskCluster
    X : Dask array or dataframe, or RowFiles
    """

    def __init__(self, executor: Any, X: Any) -> None:
        self._open = ExitStack()  # a client of our own, if there is only an address
        self.crew = self._open.enter_context(crew_of(executor))
        # If the fit ends with an error before the rows are held, nobody else closes it.
        weakref.finalize(self, self._open.close)
        try:
            self._read(X)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the cluster."""
        self._open.close()

    def _read(self, X: Any) -> None:
        from ..exec.pieces import pieces_of, spread

        client, workers = self.crew.client, _checked_workers(self.crew)
        self.own_labels: np.ndarray | None = None
        self.own_queries: np.ndarray | None = None
        self.own_weights: np.ndarray | None = None
        if isinstance(X, RowFiles):
            contents = spread(client, X.read, len(X), workers)
            raw = client.map(attrgetter("X"), contents, pure=False)
            names = client.map(attrgetter("names"), contents, pure=False)
            self._take_columns(contents)
        else:
            raw = pieces_of(client, X, workers)
            names = client.map(column_names, raw, pure=False)
        self.pieces = client.map(partitions.clean, range(len(raw)), raw, pure=False)
        found = client.map(partitions.facts, names, self.pieces, pure=False)
        self.facts = self.crew.collect(found)
        sparse_text = isinstance(X, RowFiles) and X.label is None
        partitions.check_alike(self.facts, widths=not sparse_text)
        width = max(facts.features for facts in self.facts if facts.rows)
        self.shape = (sum(facts.rows for facts in self.facts), width)
        self.names = next(facts.names for facts in self.facts if facts.rows)
        if sparse_text:  # each file knows its own largest index only
            widths = [width] * len(raw)
            self.pieces = client.map(partitions.widen, self.pieces, widths, pure=False)

    def _take_columns(self, contents: list[Any]) -> None:
        """Labels, queries and weights of files."""
        columns = []
        for field, what in (("y", "labels"), ("qid", "qid"), ("weight", "cost")):
            parts = self.crew.client.map(attrgetter(field), contents, pure=False)
            columns.append(joined_column(self.crew.collect(parts), what))
        self.own_labels, self.own_queries, weights = columns
        uniform = weights is None or bool(np.all(weights == 1.0))
        self.own_weights = None if uniform else weights

    def __len__(self) -> int:
        return self.shape[0]

    def labels(self, y: Any) -> np.ndarray:
        """Labels here, whatever they are."""
        if y is None and self.own_labels is None:
            raise ValueError("a Dask collection has no labels of its own; pass y")
        y = self.own_labels if y is None else y
        if is_collection(y):
            y = self.crew.collect([self.crew.client.compute(y)])[0]
        labels = column_or_1d(np.asarray(y), warn=True)
        if len(labels) != len(self):
            raise ValueError(f"y has {len(labels)} labels, but X {len(self)} rows")
        return labels

    @contextmanager
    def held(self, outputs: int) -> Iterator[RemoteMatrix]:
        """The rows in blocks, held by the workers."""
        from ..exec.orders import Recipe

        with self._open:
            crew, client = self.crew, self.crew.client
            outputs_of_all = [outputs] * len(self.pieces)
            bounds = crew.collect(
                client.map(partitions.block_bounds, self.pieces, outputs_of_all, pure=False)
            )
            rows, edges, first = partitions.all_parts(bounds)
            filled = [k for k, facts in enumerate(self.facts) if facts.rows]
            workers = crew.workers()
            numbers = [max(1, self.facts[k].numbers) for k in filled]
            runs = share_parts(numbers, [worker.threads for worker in workers])
            plans, recipes = [], []
            for a, b in runs:
                mine = filled[a:b]
                plans.append(SumPlan(edges, first[mine[0]], first[mine[-1] + 1]))
                pieces = tuple(self.pieces[k] for k in mine)
                facts = (plans[-1], self.shape[1], outputs)
                recipes.append(Recipe(hold_partitions, facts, pieces))
            crew.hire(recipes, workers[: len(recipes)])
            yield RemoteMatrix(crew, plans, rows, self.shape, sum(numbers), self.digest)

    def digest(self) -> bytes:
        """A fingerprint of all partitions."""
        digests = self.crew.collect(
            self.crew.client.map(partitions.digest, self.pieces, pure=False)
        )
        return hashlib.blake2b(b"".join(digests), digest_size=16).digest()


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


def _checked_workers(crew: Crew) -> list[Worker]:
    crew.check_versions(crew.workers())
    return crew.workers()


@contextmanager
def crew_of(executor: Any) -> Iterator[Crew]:
    """A crew on the cluster of an executor, with nobody hired yet."""
    from ..exec.cluster import Crew, connected

    cluster = _cluster(executor)
    with (
        connected(cluster.client, cluster.timeout) as client,
        Crew(client, float(cluster.timeout)) as crew,
    ):
        yield crew


def is_cluster(executor: Any) -> bool:
    """Whether an executor is the workers of a cluster, and not threads here."""
    return executor is not None and not isinstance(executor, Integral)


@contextmanager
def inference_for(
    model: Any, problem: LinearExamples | KernelProblem, processes: int
) -> Iterator[None]:
    """Processes here, or workers, that run the inference for structured outputs."""
    from ..structured.linear import LinearExamples

    if is_cluster(model.executor):
        assert isinstance(problem, LinearExamples)  # with a kernel all is on one machine
        with crew_of(model.executor) as crew:
            problem.send(crew, _checked_workers(crew))
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
    from ..structured.chain_cluster import ChainsOnCluster

    with crew_of(model.executor) as crew:
        yield ChainsOnCluster(examples, crew, _checked_workers(crew))


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
        with make_executor(threads_of(model), X.nnz) as threads:
            matrix = as_blocks(X, outputs=outputs, runner=threads)
    executor = getattr(model, "executor", None)
    if not is_cluster(executor):
        yield matrix
        return
    from ..exec.orders import Order, Recipe

    with crew_of(executor) as crew:
        workers = _checked_workers(crew)
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
