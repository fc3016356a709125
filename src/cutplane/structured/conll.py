"""Read files in columns, as the CoNLL shared tasks, CRF++ and CRFsuite have them.

A line holds a token: columns separated by blanks or tabs, with the tag in the last column. An empty
line ends a sentence.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..data.files import check_is_text, opened


@dataclass(frozen=True)
class Sentences:
    """The sentences of a file, and the lines on which they stand.

    Attributes
    ----------
    name : str
        Name of the file, for messages.
    lines : list of str
        All lines, without line ends.
    tokens : list of list of list of str
        For each sentence and token its columns.
    numbers : list of list of int
        For each sentence and token its line number, from 0.
    """

    name: str
    lines: list[str]
    tokens: list[list[list[str]]]
    numbers: list[list[int]]

    def check_columns(self, needed: int, why: str) -> None:
        """Refuse a token with fewer columns, or sentences without a token."""
        if not self.tokens:
            raise ValueError(f"{self.name} has no token: every line is empty")
        for numbers, tokens in zip(self.numbers, self.tokens, strict=True):
            for number, columns in zip(numbers, tokens, strict=True):
                if len(columns) < needed:
                    last = len(self.lines[number].rstrip()) + 1
                    raise ValueError(
                        f"{self.name}:{number + 1}:{last}: {len(columns)} columns, but {why}"
                    )

    def tagged(self, tags: Sequence[Sequence[Any]]) -> list[str]:
        """The lines with the tags as an additional column."""
        lines = list(self.lines)
        for number, tag in zip(itertools.chain(*self.numbers), itertools.chain(*tags), strict=True):
            line = lines[number].rstrip()
            lines[number] = line + ("\t" if "\t" in line else " ") + str(tag)
        return lines


def read_sentences(path: Any) -> Sentences:
    """Read a file in columns; all lines must have as many columns as the first one."""
    with opened(path) as source:
        name, content = source.name, source.read_all()
    check_is_text(name, content[:256])
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise ValueError(f"{name}:{row}:{column}: this is not UTF-8 text; convert it") from None
    lines = text.replace("\r\n", "\n").split("\n")
    tokens: list[list[list[str]]] = []
    numbers: list[list[int]] = []
    width, inside = None, False
    for number, line in enumerate(lines):
        columns = line.split()
        if not columns:
            inside = False
            continue
        width = len(columns) if width is None else width
        if len(columns) != width:
            raise ValueError(
                f"{name}:{number + 1}:{len(line.rstrip()) + 1}: {len(columns)} columns, but the "
                f"tokens before have {width}"
            )
        if not inside:
            tokens.append([])
            numbers.append([])
            inside = True
        tokens[-1].append(columns)
        numbers[-1].append(number)
    return Sentences(name, lines, tokens, numbers)


def read_conll(path: Any) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Read sentences and tags from a file in columns.

    Parameters
    ----------
    path : path, '-' or binary file
        A line holds the columns of a token, separated by blanks or tabs, with the tag in the last
        column. An empty line ends a sentence. If the name ends in .gz, .bz2 or .xz, the file is
        decompressed.

    Returns
    -------
    X : list of list of list of str
        For each sentence and token the columns without the tag, as ``ChainTagger(template=...)``
        takes them.
    y : list of list of str
        Tags.

    Examples
    --------
    >>> import io
    >>> from cutplane.structured import read_conll
    >>> X, y = read_conll(io.BytesIO(b"He PRP B-NP\\nran VBD B-VP\\n\\nWhy WRB B-ADVP\\n"))
    >>> X[0], y
    ([['He', 'PRP'], ['ran', 'VBD']], [['B-NP', 'B-VP'], ['B-ADVP']])
    """
    found = read_sentences(path)
    found.check_columns(2, "a token needs one at least, and a tag")
    X = [[columns[:-1] for columns in tokens] for tokens in found.tokens]
    return X, [[columns[-1] for columns in tokens] for tokens in found.tokens]
