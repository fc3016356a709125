"""Svmlight text in pieces: read, cut where a line ends, parsed one by one or in threads.

A piece holds whole lines. A line that is longer than a piece is cut between two tokens, and the
pieces that continue it are parsed one after the other, so that memory never depends on the length
of a line. Pieces come out in the order of the file, and so does the first mistake: neither the
size of the pieces nor the number of threads can be seen in the result.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..._checks import check_flag, check_flag_or_auto, check_integer, check_n_jobs
from ...loops import svmlight as loops
from ..files import Input, check_is_text
from ..rows import LARGEST_VALUE, MOST_FEATURES
from . import errors

PIECE = 1 << 20  # bytes: the text and what is made of it should stay in the cache
LONGEST_TOKEN = 1 << 16
MOST_THREADS = 1024  # two pieces are read ahead for each
_HEAD = 64  # bytes that show what a file is
_SLACK = 16  # bytes behind the text: a newline, and what a look at eight bytes may touch
_BOM = b"\xef\xbb\xbf"

Flag = bool | Literal["auto"]


@dataclass(frozen=True)
class Options:
    """The parameters of ``load_svmlight``, checked."""

    n_features: int | None
    zero_based: Flag
    dtype: Any
    qid: Flag | str  # "auto" is the only text
    cost: bool
    comments: bool
    sort: bool
    unseen: str
    max_features: int
    n_jobs: int | None

    def __post_init__(self) -> None:
        if self.n_features is not None:
            check_integer("n_features", self.n_features, at_least=1, at_most=MOST_FEATURES)
        check_integer("max_features", self.max_features, at_least=1, at_most=MOST_FEATURES)
        for name in ("zero_based", "qid"):
            check_flag_or_auto(name, getattr(self, name))
        for name in ("sort", "cost", "comments"):
            check_flag(name, getattr(self, name))
        if not any(kind == self.dtype for kind in LARGEST_VALUE):
            raise ValueError(f"dtype must be float64 or float32, got {self.dtype!r}")
        if self.unseen not in ("error", "ignore"):
            raise ValueError(f"unseen must be 'error' or 'ignore', got {self.unseen!r}")
        if self.unseen == "ignore" and self.n_features is None:
            raise ValueError("unseen='ignore' needs n_features, the number of features to keep")
        check_n_jobs(self.n_jobs)

    @property
    def first(self) -> int | None:
        """The first index, 0 or 1; None if that is to be found out."""
        return None if self.zero_based == "auto" else int(not self.zero_based)

    @property
    def value_type(self) -> np.dtype:
        """Of the values."""
        return np.dtype(self.dtype)

    @property
    def largest_value(self) -> float:
        return LARGEST_VALUE[self.value_type]

    @property
    def threads(self) -> int:
        """None or −1 stand for every core the process may use, −2 for all but one, …"""
        if self.n_jobs is not None and self.n_jobs > 0:
            return min(self.n_jobs, MOST_THREADS)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return max(1, (cores or 1) + 1 + (-1 if self.n_jobs is None else self.n_jobs))

    def largest_index(self, features: int) -> int:
        """The last of so many features; the larger answer where the first index is unknown."""
        return features - 1 if self.first == 0 else features

    def settings(self) -> np.ndarray:
        """For the compiled loop."""
        allowed = kept = self.largest_index(self.max_features)
        if self.n_features is not None:
            kept = min(allowed, self.largest_index(self.n_features))
            allowed = kept if self.unseen == "error" else allowed
        settings = np.empty(loops.SETTINGS, np.int64)
        settings[loops.SMALLEST] = self.first or 0
        settings[loops.LARGEST] = allowed
        settings[loops.KEPT] = kept
        settings[loops.ANY_ORDER] = self.sort
        return settings


class Piece:
    """Text, and the rows that were found in it. Used again for other text, to stay in the cache.

    Rows 0 to ``rows`` end in this piece. Numbers behind the end of the last one belong to a row
    that goes on in the next piece.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.buffer = bytearray(capacity + _SLACK)
        self.text = np.frombuffer(self.buffer, np.uint8)
        # Nothing is shorter than "1\n" or "1:1 ", and slow numbers have 20 digits.
        rows, numbers, slow = capacity // 2 + 2, capacity // 4 + 2, capacity // 20 + 2
        self.values = np.empty(numbers)
        self.indices = np.empty(numbers, np.int32)
        self._reals = np.empty((rows, loops.REALS))
        self._wholes = np.empty((rows, loops.WHOLES), np.int64)
        self._slow = np.empty((slow, loops.SLOWS), np.int64)
        self._disordered = np.empty(rows, np.int64)
        self.state = np.zeros(loops.STATE, np.int64)
        self._real_state = np.zeros(loops.REALS)
        self.end = 0
        self.partial = False  # stops inside a line
        self.resumed = False  # goes on inside a line
        self.resumed_row = False  # ... of a row
        self.comment: list[bytes] = []  # the part before this piece of that row's comment
        self.line = self.column = 1

    @property
    def late_row(self) -> bool:
        """Whether the first row, of which this piece holds the end only, must be sorted."""
        disordered = self._disordered[: self.state[loops.DISORDERED]]
        return self.resumed_row and 0 in disordered

    def line_of_first_row(self) -> int:
        """The number of the line in which the first row begins."""
        position = max(int(self.state[loops.FIRST_ROW]), 0)
        return self.line + self.buffer.count(b"\n", 0, position)

    def comments(self, first: int, last: int) -> list[str]:
        """Comments of rows, without blanks around them."""
        columns = [loops.COMMENT_START, loops.COMMENT_STOP]
        found = [bytes(self.buffer[a:b]) for a, b in self._wholes[first:last, columns].tolist()]
        if first == 0 and found and self.comment:
            found[0] = b"".join([*self.comment, found[0]])
        return [text.decode("utf-8", "backslashreplace").strip() for text in found]

    # -- parsing ------------------------------------------------------------------

    def start(self, previous: Piece | None, keep_comment: bool) -> None:
        """Get ready: afresh, or in the middle of the line at which the previous piece stops."""
        self.resumed = previous is not None
        if previous is None:
            self.state[:] = 0
            self.resumed_row, self.comment = False, []
            return
        self.state[:] = previous.state
        self._real_state[:] = previous._real_state
        self.resumed_row = bool(previous.state[loops.ROW_OPEN])
        self.comment = previous.comment
        if keep_comment and self.resumed_row and previous.state[loops.IN_COMMENT]:
            start = int(previous.state[loops.COMMENT])
            self.comment = [*self.comment, bytes(previous.buffer[start : previous.end])]

    def parse(self, settings: np.ndarray, largest: float) -> None:
        """Find the rows in the text."""
        state = (self.state, self._real_state)
        found = (self._reals, self._wholes, self.values, self.indices)
        left = (self._slow, self._disordered)
        loops.read_rows(self.text, self.end, settings, largest, *state, *found, *left)
        self.rows, self.n_stored = self.state[[loops.ROWS, loops.NUMBERS]].tolist()
        reals, wholes = self._reals[: self.rows], self._wholes[: self.rows]
        self.labels, self.costs = reals[:, loops.LABEL], reals[:, loops.COST]
        self.qids, self.row_ends = wholes[:, loops.ROW_QID], wholes[:, loops.ROW_END]
        self._convert(largest)
        if self.state[loops.DISORDERED]:
            self._sort()

    def _fail(self, code: int, position: int) -> None:
        """Note a mistake, unless there is one before it."""
        if not self.state[loops.CODE] or position < self.state[loops.POSITION]:
            self.state[loops.CODE], self.state[loops.POSITION] = code, position

    def _convert(self, largest: float) -> None:
        """Numbers of many digits."""
        for target, start, stop in self._slow[: self.state[loops.SLOW]].tolist():
            number = float(self.buffer[start:stop])
            if target >= 0:
                self.values[target] = number
                wrong, code = abs(number) > largest, loops.BAD_VALUE
            else:
                row, kind = divmod(-1 - target, loops.REALS)
                real = self._reals[row] if row < self.rows else self._real_state
                real[kind] = number
                code = loops.BAD_LABEL if kind == loops.LABEL else loops.BAD_COST
                wrong = np.isinf(number) or (kind == loops.COST and number < 0.0)
            if wrong:
                self._fail(code, start)
                return

    def _sort(self) -> None:
        """Bring the numbers of every row that is all here into the order of their indices."""
        first = int(self.resumed_row)
        ends = self.row_ends
        if len(ends) <= first:
            return
        begin, end = int(ends[0]) if first else 0, int(ends[-1])
        counts = np.diff(ends[first:], prepend=begin)
        keys = np.repeat(np.arange(first, len(ends), dtype=np.int64) << 32, counts)
        keys |= self.indices[begin:end]
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        self.indices[begin:end] = self.indices[begin:end][order]
        self.values[begin:end] = self.values[begin:end][order]
        repeats = np.flatnonzero(keys[1:] == keys[:-1])
        if len(repeats):
            row, index = divmod(int(keys[repeats[0]]), 1 << 32)
            # The first line may be the end of a row that begins in an earlier piece.
            start = self.buffer.index(b"\n") + 1 if first else 0
            text = bytes(self.buffer[start : self.end])
            position = start + errors.second_occurrence(text, row - first, index)
            self._fail(loops.REPEATED, position)


class _TokenTooLongError(Exception):
    """There is no place to cut."""


class _Cutter:
    """Fills pieces with the text of a file, in order."""

    def __init__(self, source: Input, size: int) -> None:
        self.source = source
        self.size = size
        self.left = b""
        self.begun = self.ended = False

    def fill(self, piece: Piece, previous: Piece | None) -> bool:
        """The next lines, or the next part of a long one; False at the end of the file."""
        if self.ended:
            return False
        buffer, held = piece.buffer, len(self.left)
        buffer[:held] = self.left
        while True:
            wanted = min(self.size, piece.capacity - held)
            if not self.begun:
                wanted = max(wanted, _HEAD)
            got = self.source.read_into(memoryview(buffer)[held : held + wanted])
            held += got
            if not self.begun:
                held = self._begin(buffer, held)
            if got < wanted:
                self.ended = True
                if held and buffer[held - 1] == 10:
                    end = held
                elif held or previous is not None:
                    buffer[held] = 10
                    end = held = held + 1
                else:
                    return False
                piece.partial = False
                break
            end = buffer.rfind(b"\n", 0, held) + 1
            piece.partial = not end
            end = end or _between_tokens(buffer, held, previous)
            if end:
                break
            if held > LONGEST_TOKEN:
                raise _TokenTooLongError
        self.left = bytes(buffer[end:held])
        buffer[end] = 10
        piece.end = end
        return True

    def _begin(self, buffer: bytearray, held: int) -> int:
        """Look at the first bytes; the byte order mark is no part of the text."""
        self.begun = True
        check_is_text(self.source.name, bytes(buffer[: min(held, _HEAD)]))
        if buffer.startswith(_BOM, 0, held):
            buffer[: held - len(_BOM)] = buffer[len(_BOM) : held]
            held -= len(_BOM)
        return held


def _between_tokens(buffer: bytearray, held: int, previous: Piece | None) -> int:
    """Where to cut text without a line end; 0 if nowhere."""
    in_comment = previous is not None and previous.state[loops.IN_COMMENT]
    if in_comment or buffer.find(b"#", 0, held) >= 0:
        return held
    return max(buffer.rfind(b" ", 0, held), buffer.rfind(b"\t", 0, held)) + 1


def read_pieces(source: Input, options: Options, size: int) -> Iterator[Piece]:
    """Parsed pieces in the order of the file. A piece is used again once the next is asked for."""
    cutter = _Cutter(source, size)
    settings, largest = options.settings(), options.largest_value
    small = source.size is not None and source.size <= size
    threads = 1 if small else options.threads
    pool = ThreadPoolExecutor(threads, thread_name_prefix="cutplane") if threads > 1 else None
    ahead: deque[tuple[Piece, Future[None] | None] | Exception] = deque()
    depth = 2 * threads if pool else 1
    free: list[Piece] = []
    previous: Piece | None = None  # the last piece, if the next one continues its line
    parked: Piece | None = None  # the same, if it has been handed out already
    any_qids = None
    line = column = 1
    more = True
    try:
        while True:
            while more and len(ahead) < depth:
                piece = free.pop() if free else Piece(size + LONGEST_TOKEN)
                try:
                    more = cutter.fill(piece, previous)
                except Exception as error:  # after what was read before
                    ahead.append(error)
                    more = False
                    break
                if not more:
                    break
                piece.start(previous, options.comments)
                if parked is not None:
                    free.append(parked)
                    parked = None
                future = None
                # Compiled by the calling thread, which an interrupt can stop.
                ready = getattr(loops.read_rows, "signatures", True)
                if pool is None or not ready or piece.partial or piece.resumed:
                    piece.parse(settings, largest)
                else:
                    future = pool.submit(piece.parse, settings, largest)
                previous = piece if piece.partial else None
                ahead.append((piece, future))
            if not ahead:
                return
            entry = ahead.popleft()
            if isinstance(entry, _TokenTooLongError):
                where = f"{source.name}:{line}:{column}"
                raise ValueError(f"{where}: more than {LONGEST_TOKEN} characters without a blank")
            if isinstance(entry, Exception):
                raise entry
            piece, future = entry
            if future is not None:
                future.result()
            piece.line, piece.column = line, column
            if piece.rows:  # all pieces must agree, as all rows of one do
                if any_qids not in (None, piece.state[loops.QIDS]):
                    position = int(piece.state[loops.FIRST_ROW])
                    raise errors.mistake(source.name, piece, options, loops.SOME_QIDS, position)
                any_qids = piece.state[loops.QIDS]
            if piece.state[loops.CODE]:
                raise errors.mistake(source.name, piece, options)
            yield piece
            line += int(piece.state[loops.LINES])
            column = column + piece.end if piece.partial else 1
            if piece is previous:
                parked = piece
            else:
                free.append(piece)
    finally:
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
