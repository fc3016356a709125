"""Read svmlight text in pieces that end where lines end, and parse them, in threads if wanted.

A piece holds entire lines. A line that is longer than a piece is cut between two tokens, and the
pieces of this line are parsed one after the other, so memory never depends on the length of a line.
Pieces come out in the order of the file, and the mistake that is reported is the first one in the
file. So the result depends neither on the size of the pieces nor on the number of threads.
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

PIECE = 1 << 20  # bytes: the text and the numbers parsed from it should stay in the cache
LONGEST_TOKEN = 1 << 16
MOST_THREADS = 1024  # for each thread two pieces are read ahead
_HEAD = 64  # bytes from which the kind of the file is guessed
_SLACK = 16  # bytes behind the text: a newline, and room for the loop, which reads eight at once
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
        """The first index, 0 or 1; None if the file decides."""
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
        """Threads for ``n_jobs``: None or −1 means all cores of the process, −2 all but one."""
        if self.n_jobs is not None and self.n_jobs > 0:
            return min(self.n_jobs, MOST_THREADS)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return max(1, (cores or 1) + 1 + (-1 if self.n_jobs is None else self.n_jobs))

    def largest_index(self, features: int) -> int:
        """The largest index of ``features`` features; if the first index is unknown, it is 1."""
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
    """Text and the rows in it. A piece is used again for later text, so that it stays in the cache.

    ``rows`` rows end in this piece. Numbers behind the end of the last row belong to a row that
    continues in the next piece.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.buffer = bytearray(capacity + _SLACK)
        self.text = np.frombuffer(self.buffer, np.uint8)
        # The shortest row is "1\n", the shortest feature "1:1 ", and a number that the compiled
        # loop leaves to float() has at least 20 digits.
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
        self.partial = False  # the piece ends inside a line
        self.resumed = False  # the piece begins inside a line
        self.resumed_row = False  # the piece begins inside a line that holds a row
        self.comment: list[bytes] = []  # of this row's comment the part in earlier pieces
        self.line = self.column = 1

    @property
    def late_row(self) -> bool:
        """Whether the first row began in an earlier piece and its indices must be sorted."""
        disordered = self._disordered[: self.state[loops.DISORDERED]]
        return self.resumed_row and 0 in disordered

    def line_of_first_row(self) -> int:
        """The number of the line in which the first row begins."""
        position = max(int(self.state[loops.FIRST_ROW]), 0)
        return self.line + self.buffer.count(b"\n", 0, position)

    def comments(self, first: int, last: int) -> list[str]:
        """Comments of rows ``first`` to ``last``, without blanks around them."""
        columns = [loops.COMMENT_START, loops.COMMENT_STOP]
        found = [bytes(self.buffer[a:b]) for a, b in self._wholes[first:last, columns].tolist()]
        if first == 0 and found and self.comment:
            found[0] = b"".join([*self.comment, found[0]])
        return [text.decode("utf-8", "backslashreplace").strip() for text in found]

    # -- parsing ------------------------------------------------------------------

    def start(self, previous: Piece | None, keep_comment: bool) -> None:
        """Prepare to parse: a new line, or the rest of the line in which ``previous`` ends."""
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
        """Record a mistake, unless an earlier position has one already."""
        if not self.state[loops.CODE] or position < self.state[loops.POSITION]:
            self.state[loops.CODE], self.state[loops.POSITION] = code, position

    def _convert(self, largest: float) -> None:
        """Convert the numbers that the compiled loop left out, because they have many digits."""
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
        """Sort the numbers of each row by index, for rows that lie entirely in this piece."""
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
    """A token is so long that the text cannot be cut between two tokens."""


class _Cutter:
    """Cuts the text of a file into pieces, in order."""

    def __init__(self, source: Input, size: int) -> None:
        self.source = source
        self.size = size
        self.left = b""
        self.begun = self.ended = False

    def fill(self, piece: Piece, previous: Piece | None) -> bool:
        """Fill a piece with the next lines, or with a part of a long line; False at the end."""
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
        """Check that the first bytes are text, and remove a byte order mark."""
        self.begun = True
        check_is_text(self.source.name, bytes(buffer[: min(held, _HEAD)]))
        if buffer.startswith(_BOM, 0, held):
            buffer[: held - len(_BOM)] = buffer[len(_BOM) : held]
            held -= len(_BOM)
        return held


def _between_tokens(buffer: bytearray, held: int, previous: Piece | None) -> int:
    """Where to cut text that has no line end; 0 if there is no such place."""
    in_comment = previous is not None and previous.state[loops.IN_COMMENT]
    if in_comment or buffer.find(b"#", 0, held) >= 0:
        return held
    return max(buffer.rfind(b" ", 0, held), buffer.rfind(b"\t", 0, held)) + 1


def read_pieces(source: Input, options: Options, size: int) -> Iterator[Piece]:
    """Parsed pieces in the order of the file. The next piece may overwrite the one before it."""
    cutter = _Cutter(source, size)
    settings, largest = options.settings(), options.largest_value
    small = source.size is not None and source.size <= size
    threads = 1 if small else options.threads
    pool = ThreadPoolExecutor(threads, thread_name_prefix="cutplane") if threads > 1 else None
    ahead: deque[tuple[Piece, Future[None] | None] | Exception] = deque()
    depth = 2 * threads if pool else 1
    free: list[Piece] = []
    previous: Piece | None = None  # the last piece, if the next one continues its line
    any_qids = None
    line = column = 1
    more = True
    try:
        while True:
            while more and len(ahead) < depth:
                piece = free.pop() if free else Piece(size + LONGEST_TOKEN)
                try:
                    more = cutter.fill(piece, previous)
                except Exception as error:  # raised after the pieces that were read before
                    ahead.append(error)
                    more = False
                    break
                if not more:
                    break
                piece.start(previous, options.comments)
                future = None
                # The first parse compiles the loop. This thread does it: Ctrl-C can stop this one.
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
            if piece.rows:  # within a piece the loop has checked that all rows agree
                if any_qids not in (None, piece.state[loops.QIDS]):
                    position = int(piece.state[loops.FIRST_ROW])
                    raise errors.mistake(source.name, piece, options, loops.SOME_QIDS, position)
                any_qids = piece.state[loops.QIDS]
            if piece.state[loops.CODE]:
                raise errors.mistake(source.name, piece, options)
            yield piece
            line += int(piece.state[loops.LINES])
            column = column + piece.end if piece.partial else 1
            if not piece.partial:  # the next piece still reads the state of a partial one
                free.append(piece)
    finally:
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
