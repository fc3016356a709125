"""Tokens whose features have names: dictionaries, lists of names, or columns with a template.

    {"word": "the", "upper": False, "length": 3.0}     word:the = 1, upper = 0, length = 3
    ["word=the", "pos=DT"]                             each name = 1
    ("the", "DT"), template "U00:%x[0,0]"              U00:the = 1

CRFsuite takes the first two forms and gives features the same names: a text value becomes a part of
the name, and a list or dictionary as a value gives a feature for each of its entries. Templates
have the form of CRF++: they make names from the columns of the tokens around a token.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse

from .sequences import is_list

MACRO = re.compile(r"%x\[(-?\d+),(\d+)\]")
NO_MACRO = re.compile(r"%x(?!\[-?\d+,\d+\])")


@dataclass(frozen=True)
class NamedTokens:
    """Names and values of the features of all tokens, one token after the other.

    Attributes
    ----------
    names : list of str
    values : ndarray of float64
    starts : ndarray of int64, shape (tokens + 1,)
        Where the features of each token begin.
    """

    names: list[str]
    values: np.ndarray
    starts: np.ndarray

    def vocabulary(self, min_count: int = 1) -> list[str]:
        """The names that occur at least ``min_count`` times, sorted."""
        counts = Counter(self.names)
        return sorted(name for name, count in counts.items() if count >= min_count)

    def rows(self, vocabulary: Iterable[str]) -> scipy.sparse.csr_array:
        """A matrix with a row per token and a column per name. Other names are left out."""
        columns = {name: column for column, name in enumerate(vocabulary)}
        found = np.array([columns.get(name, -1) for name in self.names], dtype=np.int32)
        known = found >= 0
        ends = np.concatenate([[0], np.cumsum(known)])[self.starts]
        shape = (len(self.starts) - 1, len(columns))
        rows = scipy.sparse.csr_array((self.values[known], found[known], ends), shape=shape)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        return rows


def named_tokens(X: Any, template: Template | None = None) -> NamedTokens:
    """The features of the tokens of sequences.

    Parameters
    ----------
    X : list of sequences of tokens
        Tokens are dictionaries or lists of names. With a template they are lists of columns.
    template : Template, optional
    """
    names: list[str] = []
    values: list[float] = []
    ends = [0]
    for s, sequence in enumerate(X):
        if not is_list(sequence):
            raise ValueError(
                f"sequence {s} of X must be a list of tokens, got {type(sequence).__name__}"
            )
        if template is not None:
            sequence = template.apply(sequence, s)
        for t, token in enumerate(sequence):
            if isinstance(token, Mapping):
                for name, value in token.items():
                    _add(names, values, name, value, s, t)
            elif isinstance(token, str) or not isinstance(token, Iterable):
                raise ValueError(
                    f"token {t} of sequence {s} of X is {token!r:.40}: a token is a dictionary "
                    "{name: value} or a list of names, such as ['word=the']"
                )
            else:
                names.extend(token)
            values.extend([1.0] * (len(names) - len(values)))
            ends.append(len(names))
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"X has a feature {name!r:.40}: names of features must be text")
    return NamedTokens(names, np.array(values, dtype=np.float64), np.array(ends, dtype=np.int64))


def _add(names: list[str], values: list[float], name: Any, value: Any, s: int, t: int) -> None:
    """Append the features of an entry of a dictionary, with CRFsuite's names."""
    if isinstance(value, str):
        names.append(f"{name}:{value}")
        values.append(1.0)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            _add(names, values, f"{name}:{key}", inner, s, t)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            _add(names, values, f"{name}:{inner}", 1.0, s, t)
    elif isinstance(value, Real | np.bool_) and math.isfinite(value):
        names.append(name)
        values.append(float(value))
    else:
        raise ValueError(
            f"token {t} of sequence {s} of X: the feature {name!r:.40} is {value!r:.40}; values "
            "must be finite numbers, text, or lists of text"
        )


class Template:
    """Names of features from the columns around a token, in the form of CRF++.

    A line such as ``U05:%x[-1,0]/%x[0,1]`` makes one feature per token. Its name is the line, with
    the macros replaced by column 0 of the token before and column 1 of the token itself. Beyond
    the ends of a sequence a column reads ``_B-1``, ``_B-2`` or ``_B+1``, ``_B+2``. A line ``B``
    asks for a weight for every pair of labels; chains always have such weights. Empty lines and
    lines that begin with # are ignored.

    Attributes
    ----------
    columns : int
        Number of columns that tokens must have at least.

    Parameters
    ----------
    text : str
    name : str, default='template'
        For messages.
    """

    def __init__(self, text: str, name: str = "template") -> None:
        # For each line the format of the names, and (row, column) of each macro in it.
        self._lines: list[tuple[str, list[tuple[int, int]]]] = []
        for number, line in enumerate(text.splitlines(), 1):
            line = line.strip()
            if not line or line.startswith("#") or line == "B":
                continue
            where = f"{name}:{number}"
            if line.startswith("B"):
                raise ValueError(
                    f"{where}:1: {line!r:.60}: features of pairs of labels are not available; "
                    "write B alone"
                )
            if not line.startswith("U"):
                raise ValueError(f"{where}:1: expected U00:%x[0,0] or B, got {line!r:.60}")
            wrong = NO_MACRO.search(line)
            if wrong is not None:
                raise ValueError(
                    f"{where}:{wrong.start() + 1}: expected %x[ROW,COLUMN] with two integers, such "
                    f"as %x[-1,0], got {line[wrong.start() :]!r:.60}"
                )
            *pieces, last = MACRO.split(line.replace("{", "{{").replace("}", "}}"))
            form = "".join(f"{piece}{{}}" for piece in pieces[::3]) + last
            at = [(int(row), int(column)) for row, column in MACRO.findall(line)]
            self._lines.append((form, at))
        if not self._lines:
            raise ValueError(f"{name} has no line that makes a feature, such as U00:%x[0,0]")
        self.columns = 1 + max((column for _, at in self._lines for _, column in at), default=0)

    def apply(self, sequence: Sequence[Any], number: int) -> Iterator[list[str]]:
        """The names of each token's features. The sequence's ``number`` is for messages."""
        for t, token in enumerate(sequence):
            if not is_list(token) or len(token) < self.columns:
                has = f"{len(token)} columns" if is_list(token) else f"no columns: {token!r:.40}"
                raise ValueError(
                    f"token {t} of sequence {number} of X has {has}, but the template needs "
                    f"{self.columns}"
                )
        columns = {at: _moved(sequence, *at) for _, found in self._lines for at in found}
        names = [
            list(map(form.format, *(columns[at] for at in found)))
            if found
            else [form.format()] * len(sequence)
            for form, found in self._lines
        ]
        return map(list, zip(*names, strict=True))


def _moved(sequence: Sequence[Any], row: int, column: int) -> list[str]:
    """For every token of a sequence, a column of the token ``row`` tokens further on."""
    length = len(sequence)
    rows = range(row, row + length)
    return [
        sequence[r][column] if 0 <= r < length else f"_B{r}" if r < 0 else f"_B+{r - length + 1}"
        for r in rows
    ]
