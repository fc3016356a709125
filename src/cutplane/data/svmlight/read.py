"""Read svmlight files, at once or in chunks.

The arrays of the result grow in place: on Linux ``realloc`` moves pages, and copies no numbers. An
array grows by an eighth, or to the length predicted from the part of the file read so far. So the
peak of the memory is at most the result, an eighth more, and a few pieces.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import scipy.sparse

from ..._checks import check_integer
from ...loops import svmlight as loops
from ..files import Input, opened
from ..rows import MOST_FEATURES, Rows
from .errors import mistake
from .parse import PIECE, Flag, Options, Piece, read_pieces

logger = logging.getLogger("cutplane")

CHUNK = 1 << 24  # bytes of text per chunk of ``iter_svmlight``, if nothing else is said
_SHORTEST = 1 << 10
_MARGIN = 1.02  # by which the room exceeds a predicted length


def load_svmlight(
    path_or_file: Any,
    *,
    n_features: int | None = None,
    zero_based: Flag = "auto",
    dtype: Any = np.float64,
    qid: Flag = False,
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
    qid : bool or 'auto', default=False
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
        Threads, at most 1024: None or −1 for all cores, −2 for all but one. The result does not
        depend on it.

    Returns
    -------
    X : scipy.sparse.csr_matrix, shape (rows, features)
        Indices increase in each row; stored zeros of the file stay stored.
    y : ndarray of float64, shape (rows,)
    qid : ndarray of int64, shape (rows,)
        Only with ``qid``.
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
    options = Options(
        n_features, zero_based, dtype, qid, cost, comments, sort, unseen, max_features, n_jobs
    )
    ((rows, texts),) = read_chunks(path_or_file, options, size=sys.maxsize)
    return _as_tuple(rows, texts, options)


def iter_svmlight(
    path_or_file: Any,
    *,
    rows: int | None = None,
    bytes: int | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: Any = np.float64,
    qid: Flag = False,
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
    options = Options(
        n_features, zero_based, dtype, qid, cost, comments, sort, unseen, max_features, n_jobs
    )
    if rows is not None:
        rows = check_integer("rows", rows, at_least=1)
    size = None if bytes is None else check_integer("bytes", bytes, at_least=1)
    chunks = read_chunks(path_or_file, options, rows, size)
    return (_as_tuple(found, texts, options) for found, texts in chunks)


def read_chunks(
    path_or_file: Any, options: Options, most: int | None = None, size: int | None = None
) -> Iterator[tuple[Rows, list[str]]]:
    """Rows of a file in chunks, with their comments.

    A chunk has ``most`` rows, or about ``size`` bytes of text if ``most`` is None.
    """
    size = CHUNK if size is None else size
    with opened(path_or_file) as source:
        seen = _Seen(source, options)
        current, taken = _RowBuilder(options, source.name), 0
        for piece in read_pieces(source, options, min(PIECE, size)):
            seen.look(piece)
            done = 0
            while most is not None and len(current) + piece.rows - done >= most:
                last = done + most - len(current)
                current.add(piece, done, last)
                yield seen.result(current), current.comments
                current, done = _RowBuilder(options, source.name), last
            current.add(piece, done, piece.rows)
            current.add_open(piece)
            total = source.size if most is None and not taken else None
            if total is not None and 2 * piece.end < total <= size:
                current.expect(total / piece.end)  # the chunk will hold all of the file
            taken += piece.end
            near = taken + min(PIECE, size) // 2 >= size  # closer to ``size`` than the next end
            if most is None and near and len(current) and not piece.partial:
                yield seen.result(current), current.comments
                current, taken = _RowBuilder(options, source.name), 0
        if not seen.rows:
            raise ValueError(
                f"{source.name}:1:1: no examples; the file is empty or holds comments only"
            )
        if len(current):
            yield seen.result(current), current.comments
        seen.report()


def _as_tuple(rows: Rows, comments: list[str], options: Options) -> tuple[Any, ...]:
    """The parts that the caller asked for, in the order of scikit-learn's reader."""
    found = [rows.X, rows.y]
    if options.qid:
        found.append(rows.qid)
    if options.cost:
        found.append(rows.weight)
    if options.comments:
        found.append(comments)
    return tuple(found)


# -- counts over the file -----------------------------------------------------


class _Seen:
    """Counts over the pieces read so far: indices, queries, costs and values left out."""

    def __init__(self, source: Input, options: Options) -> None:
        self._source = source
        self._options = options
        self.lowest = MOST_FEATURES + 1
        self.highest = -1
        self.rows = self.left_out = self.costs = 0
        self.any_qids: int | None = None
        self._edge: ValueError | None = None

    def look(self, piece: Piece) -> None:
        """Count a piece."""
        state, options = piece.state, self._options
        if piece.rows and self.any_qids is None:
            self.any_qids = int(state[loops.QIDS])
            if options.qid not in ("auto", False) and not self.any_qids:
                raise ValueError(
                    f"{self._source.name}:{piece.line_of_first_row()}:1: there is no qid; pass "
                    "qid=False or 'auto'"
                )
        if options.first is None and self._edge is None and state[loops.FIRST_EDGE] >= 0:
            position = int(state[loops.FIRST_EDGE])
            from_0 = replace(options, zero_based=True)
            self._edge = mistake(self._source.name, piece, from_0, loops.TOO_LARGE, position)
        self.lowest = min(self.lowest, int(state[loops.LOWEST]))
        self.highest = max(self.highest, int(state[loops.HIGHEST]))
        self.left_out += int(state[loops.LEFT_OUT])
        self.costs += int(state[loops.COSTS])
        self.rows += piece.rows

    def _first_index(self) -> int:
        """0 or 1: what the caller said, or what the smallest index shows, with a log message."""
        first = self._options.first
        if first is not None:
            return first
        if self.lowest > MOST_FEATURES:
            return 1
        if self.lowest == 0 and self._edge is not None and self._options.unseen == "error":
            raise self._edge
        return state_first_index(self._source.name, self.lowest)

    def report(self) -> None:
        """Log which queries, costs and values were left out."""
        name, options = self._source.name, self._options
        if self.any_qids and not options.qid:
            logger.info("%s: qid: is left out; pass qid=True to get it", name)
        if self.costs and not options.cost:
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
                options.n_features,
            )

    def result(self, builder: _RowBuilder) -> Rows:
        """The rows of a builder."""
        first = self._first_index()
        features = self.highest + 1 - first
        wanted = self._options.n_features
        X = builder.matrix(first, max(features, wanted or 0, 0))
        # With indices from 0, index ``wanted`` is one too many. The loop kept it, because the first
        # index was not known then.
        if wanted is not None and features > wanted:
            stored = X.nnz
            X = X[:, :wanted]
            self.left_out += stored - X.nnz
        qid = builder.qids.take() if self._options.qid and self.any_qids else None
        cost = builder.costs.take() if self._options.cost else None
        return Rows(X, builder.labels.take(), cost, qid)


def state_first_index(name: str, lowest: int) -> int:
    """0 or 1: the number from which indices are counted, guessed from the smallest index.

    The guess is logged. Most files count from 1, so a 0 is logged as a warning, which is shown by
    default.
    """
    first = 0 if lowest == 0 else 1
    logger.log(
        logging.WARNING if first == 0 else logging.INFO,
        "%s: the smallest index is %s, so indices are counted from %d; pass zero_based=%s to "
        "say so",
        name,
        lowest if lowest < MOST_FEATURES else "missing",
        first,
        first == 0,
    )
    return first


# -- rows put together --------------------------------------------------------


class _Column:
    """Numbers of one type, to which more can be added."""

    def __init__(self, dtype: np.dtype | type) -> None:
        self._numbers = np.empty(0, dtype)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def add(self, part: np.ndarray) -> None:
        end = self._used + len(part)
        if end > len(self._numbers):
            self._numbers.resize(max(end + (end >> 3), _SHORTEST), refcheck=False)
        self._numbers[self._used : end] = part
        self._used = end

    def expect(self, length: int) -> None:
        """Make room ahead. The system takes no memory for pages that are not written yet."""
        if length > len(self._numbers):
            with contextlib.suppress(MemoryError):  # a guess must not be a reason to fail
                larger = np.empty(length, self._numbers.dtype)
                larger[: self._used] = self._numbers[: self._used]
                self._numbers = larger

    def take(self) -> np.ndarray:
        """All numbers. Nothing can be added afterwards."""
        self._numbers.resize(self._used, refcheck=False)
        return self._numbers


class _RowBuilder:
    """Puts the rows of several pieces together."""

    def __init__(self, options: Options, name: str) -> None:
        self._options = options
        self._name = name
        self._values = _Column(options.value_type)
        self._indices = _Column(np.int32)
        self._ends = _Column(np.int64)
        self.labels = _Column(np.float64)
        self.qids = _Column(np.int64)
        self.costs = _Column(np.float64)
        self._late: list[tuple[int, int]] = []
        self.comments: list[str] = []

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, piece: Piece, first: int, last: int) -> None:
        """Add rows ``first`` to ``last`` of a piece."""
        if first == last:
            return
        ends = piece.row_ends
        begin = int(ends[first - 1]) if first else 0
        if first == 0 and piece.late_row:
            self._late.append((len(self), piece.line))
        self._ends.add(ends[first:last] + (len(self._values) - begin))
        self._add_values(piece, begin, int(ends[last - 1]))
        self.labels.add(piece.labels[first:last])
        if self._options.qid:
            self.qids.add(piece.qids[first:last])
        if self._options.cost:
            self.costs.add(piece.costs[first:last])
        if self._options.comments:
            self.comments += piece.comments(first, last)

    def add_open(self, piece: Piece) -> None:
        """Add the numbers of the row that continues in the next piece."""
        self._add_values(piece, int(piece.row_ends[-1]) if piece.rows else 0, piece.n_stored)

    def _add_values(self, piece: Piece, begin: int, end: int) -> None:
        self._values.add(piece.values[begin:end])
        self._indices.add(piece.indices[begin:end])

    def expect(self, times: float) -> None:
        """Make room for ``times`` as many numbers as there are now."""
        for column in (
            self._values,
            self._indices,
            self._ends,
            self.labels,
            self.qids,
            self.costs,
        ):  # columns that the caller did not ask for are empty, so they stay empty
            column.expect(int(len(column) * times * _MARGIN))

    def matrix(self, first_index: int, features: int) -> scipy.sparse.csr_matrix:
        """The features as a matrix, without a copy. Nothing can be added afterwards."""
        values, indices = self._values.take(), self._indices.take()
        self._sort_late_rows(values, indices)
        if first_index:
            indices -= first_index
        wide = len(values) > np.iinfo(np.int32).max
        starts = np.zeros(len(self) + 1, np.int64 if wide else np.int32)
        starts[1:] = self._ends.take()
        X = scipy.sparse.csr_matrix((values, indices, starts), shape=(len(self), features))
        X.has_sorted_indices = X.has_canonical_format = True
        return X

    def _sort_late_rows(self, values: np.ndarray, indices: np.ndarray) -> None:
        """Sort the rows that are spread over several pieces, which a piece cannot sort itself."""
        ends = self._ends.take() if self._late else None
        for row, line in self._late:
            numbers = slice(ends[row - 1] if row else 0, ends[row])  # type: ignore[index]
            order = np.argsort(indices[numbers], kind="stable")
            indices[numbers] = indices[numbers][order]
            values[numbers] = values[numbers][order]
            repeats = np.flatnonzero(np.diff(indices[numbers]) == 0)
            if len(repeats):
                index = indices[numbers][repeats[0]]
                where = f"{self._name}:{line}:1"
                raise ValueError(f"{where}: index {index} occurs twice in this row; keep one")
