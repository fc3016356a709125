"""Svmlight files: ``label [qid:n] [cost:x] index:value … # comment``, one example per line.

The format of SVM-light, libsvm, liblinear and most public data sets. ``load_svmlight`` reads a
file, ``iter_svmlight`` reads it in chunks and ``dump_svmlight`` writes one. Numbers are exact: each
decimal number becomes the float64 nearest to it, and what is written reads back to the same bits.

A mistake is a ``ValueError`` that says where it is and what to do about it, for instance
``data.svm:17:23: index 5 follows 7; indices must increase (or pass sort=True)``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ..loops import svmlight as loops
from .arguments import Flag, flag, integer
from .files import Input, opened
from .svmlight_limits import LARGEST_VALUE, MOST_FEATURES, Limits, state_first_index
from .svmlight_pieces import PIECE, Piece, mistake, read_pieces
from .svmlight_rows import Rows, Wanted
from .svmlight_write import dump_svmlight

__all__ = ["dump_svmlight", "iter_svmlight", "load_svmlight"]

logger = logging.getLogger("cutplane")

CHUNK = 1 << 24  # bytes of text per chunk of ``iter_svmlight``, if nothing else is said


# -- arguments ----------------------------------------------------------------


def _threads(n_jobs: int | None) -> int:
    """None or −1 for every core the process may use, −2 for all but one, …"""
    if n_jobs is not None and n_jobs > 0:
        return integer("n_jobs", n_jobs, 1, 1024)
    integer("n_jobs", -1 if n_jobs is None else n_jobs, -1024, -1)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (cores or 1) + 1 + (-1 if n_jobs is None else n_jobs))


@dataclass(frozen=True)
class _Request:
    """The arguments that loading and iterating share, checked."""

    limits: Limits
    query_id: Flag
    cost: bool
    comments: bool
    threads: int

    @property
    def wanted(self) -> Wanted:
        return Wanted(bool(self.query_id), self.cost, self.comments)


def _request(
    *,
    n_features: Any,
    zero_based: Any,
    dtype: Any,
    query_id: Any,
    cost: Any,
    comments: Any,
    sort: Any,
    unseen: Any,
    max_features: Any,
    n_jobs: Any,
) -> _Request:
    if n_features is not None:
        n_features = integer("n_features", n_features, 1, MOST_FEATURES)
    kinds = [kind for kind in LARGEST_VALUE if kind == dtype]
    if not kinds:
        raise ValueError(f"dtype must be float64 or float32, got {dtype!r}")
    if unseen not in ("error", "ignore"):
        raise ValueError(f"unseen must be 'error' or 'ignore', got {unseen!r}")
    if unseen == "ignore" and n_features is None:
        raise ValueError("unseen='ignore' needs n_features, the number of features to keep")
    start = {True: 0, False: 1, "auto": None}[flag("zero_based", zero_based)]
    limits = Limits(
        first=start,
        n_features=n_features,
        max_features=integer("max_features", max_features, 1, MOST_FEATURES),
        ignore_unseen=unseen == "ignore",
        any_order=bool(flag("sort", sort, auto=False)),
        dtype=kinds[0],
    )
    return _Request(
        limits,
        flag("query_id", query_id),
        bool(flag("cost", cost, auto=False)),
        bool(flag("comments", comments, auto=False)),
        _threads(n_jobs),
    )


# -- what is seen on the way --------------------------------------------------


class _Seen:
    """What the pieces so far showed of the whole file."""

    def __init__(self, source: Input, request: _Request) -> None:
        self._source = source
        self._request = request
        self.lowest = MOST_FEATURES + 1
        self.highest = -1
        self.rows = self.left_out = self.costs = 0
        self.any_qids: int | None = None
        self._edge: ValueError | None = None

    def look(self, piece: Piece) -> None:
        """Take note of a piece."""
        state, limits = piece.state, self._request.limits
        if piece.rows and self.any_qids is None:
            self.any_qids = int(state[loops.QIDS])
            if self._request.query_id is True and not self.any_qids:
                raise ValueError(
                    f"{self._source.name}:{piece.line_of_first_row()}:1: there is no qid; pass "
                    "query_id=False or 'auto'"
                )
        if limits.first is None and self._edge is None and state[loops.FIRST_EDGE] >= 0:
            zero_based = replace(limits, first=0)
            position = int(state[loops.FIRST_EDGE])
            self._edge = mistake(self._source.name, piece, zero_based, loops.TOO_LARGE, position)
        self.lowest = min(self.lowest, int(state[loops.LOWEST]))
        self.highest = max(self.highest, int(state[loops.HIGHEST]))
        self.left_out += int(state[loops.LEFT_OUT])
        self.costs += int(state[loops.COSTS])
        self.rows += piece.rows

    def first_index(self) -> int:
        """0 or 1: as asked for, or as found, which is stated."""
        first = self._request.limits.first
        if first is not None:
            return first
        if self.lowest > MOST_FEATURES:
            return 1
        if self.lowest == 0 and self._edge is not None and not self._request.limits.ignore_unseen:
            raise self._edge
        return state_first_index(self._source.name, self.lowest)

    def check(self) -> None:
        """At the end of the file: is anything missing?"""
        if not self.rows:
            raise ValueError(
                f"{self._source.name}:1:1: no examples; the file is empty or holds comments only"
            )

    def report(self) -> None:
        """Say what was left out."""
        name, request = self._source.name, self._request
        if self.any_qids and not request.query_id:
            logger.info("%s: qid: is left out; pass query_id=True to get it", name)
        if self.costs and not request.cost:
            logger.warning(
                "%s: %d of %d rows have a cost:, which is left out; pass cost=True to get it",
                name,
                self.costs,
                self.rows,
            )
        if self.left_out:
            logger.warning(
                "%s: %d values of features beyond n_features=%d are left out",
                name,
                self.left_out,
                request.limits.n_features,
            )

    def result(self, rows: Rows, first: int) -> tuple[Any, ...]:
        """Features, labels and what else is asked for; ``first`` is the first index."""
        request = self._request
        features = self.highest + 1 - first
        wanted = request.limits.n_features
        X = rows.matrix(first, max(features, wanted or 0, 0))
        if wanted is not None and features > wanted:  # it was not known that indices start at 0
            stored = X.nnz
            X = X[:, :wanted]
            self.left_out += stored - X.nnz
        found: list[Any] = [X, rows.labels()]
        if request.query_id:
            found.append(rows.qids() if self.any_qids else None)
        if request.cost:
            found.append(rows.costs())
        if request.comments:
            found.append(rows.comments)
        return tuple(found)


# -- reading ------------------------------------------------------------------


def load_svmlight(
    path_or_file: Any,
    *,
    n_features: int | None = None,
    zero_based: Flag = "auto",
    dtype: Any = np.float64,
    query_id: Flag = False,
    cost: bool = False,
    comments: bool = False,
    sort: bool = False,
    unseen: Literal["error", "ignore"] = "error",
    max_features: int = MOST_FEATURES,
    n_jobs: int | None = None,
) -> tuple[Any, ...]:
    """Read an svmlight file into a sparse matrix and labels.

    Parameters
    ----------
    path_or_file : path, '-' or binary file
        A name that ends in .gz, .bz2 or .xz is decompressed; '-' is standard input.
    n_features : int, optional
        Columns of X. By default as many as the largest index asks for; give the number of the
        training data when reading test data.
    zero_based : bool or 'auto', default='auto'
        Whether indices are counted from 0. With 'auto' they are if there is an index 0 anywhere,
        and what was found is logged at INFO to ``cutplane``.
    dtype : float64 or float32, default=float64
        Type of the values. float32 is the float64 value, rounded.
    query_id : bool or 'auto', default=False
        Return the numbers behind ``qid:``. With 'auto' the answer is None if there are none; with
        True that is an error.
    cost : bool, default=False
        Return the numbers behind ``cost:``, a factor on C; 1 for rows without.
    comments : bool, default=False
        Return the comment of each row, the text behind ``#``.
    sort : bool, default=False
        Accept rows whose indices do not increase, and sort them.
    unseen : {'error', 'ignore'}, default='error'
        What to do with indices beyond ``n_features``: stop, or leave them out and log how many.
    max_features : int, default=2**31 - 1
        An index beyond this is an error, found before memory is taken for it.
    n_jobs : int, optional
        Threads: None or −1 for all cores, −2 for all but one. The result does not depend on it.

    Returns
    -------
    X : scipy.sparse.csr_matrix, shape (rows, features)
        Indices increase in each row; stored zeros of the file stay stored.
    y : ndarray of float64, shape (rows,)
    qid : ndarray of int64, shape (rows,)
        Only with ``query_id``.
    cost : ndarray of float64, shape (rows,)
        Only with ``cost``.
    comments : list of str
        Only with ``comments``.

    Raises
    ------
    ValueError
        With file, line and column, if there is a mistake in the file.

    Notes
    -----
    X is a matrix rather than a ``csr_array``, as from scikit-learn's loader: every library that
    takes sparse data takes that. ``scipy.sparse.csr_array(X)`` shares its memory.
    """
    request = _request(
        n_features=n_features,
        zero_based=zero_based,
        dtype=dtype,
        query_id=query_id,
        cost=cost,
        comments=comments,
        sort=sort,
        unseen=unseen,
        max_features=max_features,
        n_jobs=n_jobs,
    )
    with opened(path_or_file) as source:
        seen = _Seen(source, request)
        rows = Rows(request.limits, request.wanted, source.name)
        done = 0
        for piece in _pieces(source, request, PIECE):
            seen.look(piece)
            rows.add(piece, 0, piece.rows)
            rows.add_open(piece)
            if not done and source.size is not None and source.size > 2 * piece.end:
                rows.expect(source.size / piece.end)
            done += piece.end
        seen.check()
        result = seen.result(rows, seen.first_index())
        seen.report()
    return result


def iter_svmlight(
    path_or_file: Any,
    *,
    rows: int | None = None,
    bytes: int | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: Any = np.float64,
    query_id: Flag = False,
    cost: bool = False,
    comments: bool = False,
    sort: bool = False,
    unseen: Literal["error", "ignore"] = "error",
    max_features: int = MOST_FEATURES,
    n_jobs: int | None = None,
) -> Iterator[tuple[Any, ...]]:
    """Read an svmlight file in chunks, for files larger than memory.

    Parameters
    ----------
    path_or_file : path, '-' or binary file
        See :func:`load_svmlight`, also for the parameters that are not listed here.
    rows : int, optional
        Rows per chunk; the last one may have fewer.
    bytes : int, optional
        Text per chunk, about, instead of ``rows``; 16 MiB if neither is given. A chunk has at
        least one row.
    n_features : int, optional
        Columns of every chunk. By default each chunk has as many as the largest index so far asks
        for.
    zero_based : bool, default=False
        Whether indices are counted from 0. This cannot be found out before the end of the file,
        so there is no 'auto'.

    Yields
    ------
    chunk : tuple
        What :func:`load_svmlight` returns, for the rows of the chunk.
    """
    if rows is not None and bytes is not None:
        raise ValueError("give rows or bytes, not both")
    if isinstance(zero_based, str):
        raise ValueError(
            f"zero_based must be True or False, got {zero_based!r}: a chunk comes before the rest "
            "of the file is known"
        )
    request = _request(
        n_features=n_features,
        zero_based=zero_based,
        dtype=dtype,
        query_id=query_id,
        cost=cost,
        comments=comments,
        sort=sort,
        unseen=unseen,
        max_features=max_features,
        n_jobs=n_jobs,
    )
    if rows is not None:
        rows = integer("rows", rows, 1, 2**63 - 1)
    size = integer("bytes", CHUNK if bytes is None else bytes, 1, 2**63 - 1)
    return _chunks(path_or_file, request, rows, size)


def _chunks(
    path_or_file: Any, request: _Request, most: int | None, size: int
) -> Iterator[tuple[Any, ...]]:
    with opened(path_or_file) as source:
        seen = _Seen(source, request)
        first = seen.first_index()
        current, taken = Rows(request.limits, request.wanted, source.name), 0
        for piece in _pieces(source, request, min(PIECE, size)):
            seen.look(piece)
            done = 0
            while most is not None and len(current) + piece.rows - done >= most:
                last = done + most - len(current)
                current.add(piece, done, last)
                yield seen.result(current, first)
                current, done = Rows(request.limits, request.wanted, source.name), last
            current.add(piece, done, piece.rows)
            current.add_open(piece)
            taken += piece.end
            near = taken + min(PIECE, size) // 2 >= size  # pieces end where lines do
            if most is None and near and len(current) and not piece.partial:
                yield seen.result(current, first)
                current, taken = Rows(request.limits, request.wanted, source.name), 0
        seen.check()
        if len(current):
            yield seen.result(current, first)
        seen.report()


def _pieces(source: Input, request: _Request, size: int) -> Iterator[Piece]:
    small = source.size is not None and source.size <= size
    return read_pieces(
        source,
        request.limits,
        threads=1 if small else request.threads,
        size=size,
        keep_comments=request.comments,
    )
