"""Sequences of the chains benchmark: OCR letters (Taskar's) and CoNLL-2000 chunks, or generated."""

from __future__ import annotations

import gzip
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .datasets import MissingDataError, Source

LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
SEED = 20000914
RAREST = 3  # a feature must occur so often in the training sentences


@dataclass(frozen=True)
class Sequences:
    """Rows of all tokens, their labels, the lengths of the sequences, and the fold of each."""

    X: Any
    y: np.ndarray
    lengths: np.ndarray
    fold: np.ndarray

    def of(self, chosen: np.ndarray) -> Sequences:
        """The sequences that a mask chooses."""
        tokens = np.repeat(chosen, self.lengths)
        return Sequences(self.X[tokens], self.y[tokens], self.lengths[chosen], self.fold[chosen])


def letters(source: Source) -> Sequences:
    """Words of letters of 8 × 16 pixels, in ten folds; no constant feature."""
    if source.generated:
        rng = np.random.default_rng(SEED)
        lengths = rng.integers(1, 9, size=max(40, (source.rows or 400) // 10))
        y = rng.integers(0, 26, lengths.sum())
        X = rng.random((26, 128))[y] > rng.random((len(y), 128))
        fold = np.arange(len(lengths)) % 10
        return Sequences(sp.csr_array(X.astype(np.float32)), LETTERS[y], lengths, fold)
    file = _file(source, "ocr-letters/letters.npz")
    with np.load(file) as archive:
        X = sp.csr_array(archive["X"].astype(np.float32))
        return Sequences(X, LETTERS[archive["y"]], archive["length"], archive["fold"])


def _file(source: Source, relative: str) -> Path:
    if source.folder is None:
        raise MissingDataError(f"{relative}: no data folder")
    file = source.folder / relative
    if not file.is_file():
        raise MissingDataError(f"{relative} is not in the data folder")
    return file


# -- chunking -----------------------------------------------------------------------------

Sentence = list[tuple[str, str, str]]  # word, part of speech, tag


def sentences(source: Source, part: str) -> list[Sentence]:
    """Sentences of CoNLL-2000, 'train' or 'test'."""
    if source.generated:
        return _generated(60 if part == "train" else 20, part)
    found: list[Sentence] = []
    current: Sentence = []
    with gzip.open(_file(source, f"conll2000/{part}.txt.gz"), "rt", encoding="utf-8") as lines:
        for line in lines:
            fields = line.split()
            if fields:
                current.append((fields[0], fields[1], fields[2]))
            elif current:
                found.append(current)
                current = []
    return [*found, current] if current else found


def _generated(count: int, part: str) -> list[Sentence]:
    rng = np.random.default_rng([SEED, part == "train"])
    tags = {"D": "B-NP", "N": "I-NP", "V": "B-VP", "P": "B-PP"}
    return [
        [(f"w{rng.integers(5)}{k}", k, tags[k]) for k in "DNVPDN"[: rng.integers(2, 7)]]
        for _ in range(count)
    ]


def features(sentence: Sentence, i: int) -> list[str]:
    """Words and parts of speech in a window of two, with pairs and triples: the usual templates."""

    def word(k: int) -> str:
        return sentence[i + k][0] if 0 <= i + k < len(sentence) else f"_{k}"

    def pos(k: int) -> str:
        return sentence[i + k][1] if 0 <= i + k < len(sentence) else f"_{k}"

    found = [f"w{k}={word(k)}" for k in range(-2, 3)]
    found += [f"ww{k}={word(k)}|{word(k + 1)}" for k in (-1, 0)]
    found += [f"p{k}={pos(k)}" for k in range(-2, 3)]
    found += [f"pp{k}={pos(k)}|{pos(k + 1)}" for k in range(-2, 2)]
    found += [f"ppp{k}={pos(k)}|{pos(k + 1)}|{pos(k + 2)}" for k in range(-2, 1)]
    return [*found, "constant"]


def vocabulary(train: list[Sentence]) -> dict[str, int]:
    """A number for every feature that is not too rare."""
    count = Counter(f for s in train for i in range(len(s)) for f in features(s, i))
    return {f: k for k, f in enumerate(sorted(f for f, c in count.items() if c >= RAREST))}


def as_rows(some: list[Sentence], numbers: dict[str, int]) -> Sequences:
    """Binary features of all tokens. Unknown features are left out."""
    indices: list[int] = []
    starts = [0]
    for sentence in some:
        for i in range(len(sentence)):
            indices += [numbers[f] for f in features(sentence, i) if f in numbers]
            starts.append(len(indices))
    values = np.ones(len(indices), np.float32)
    shape = (len(starts) - 1, len(numbers))
    X = sp.csr_array((values, np.array(indices, np.int32), np.array(starts)), shape=shape)
    X.sort_indices()
    lengths = np.array([len(s) for s in some])
    labels = np.array([token[2] for s in some for token in s])
    return Sequences(X, labels, lengths, np.zeros(len(some), np.int64))


def chunks(tags: np.ndarray, lengths: np.ndarray) -> set[tuple[int, int, int, str]]:
    """(sentence, first token, token after the last, type) of every chunk, as conlleval counts."""
    found = set()
    at = 0
    for number, length in enumerate(lengths):
        begin, kind = -1, ""
        for j in range(length + 1):
            prefix, _, here = (str(tags[at + j]) if j < length else "O").partition("-")
            if begin >= 0 and (prefix != "I" or here != kind):
                found.add((number, begin, j, kind))
                begin = -1
            if prefix == "B" or (prefix == "I" and begin < 0):
                begin, kind = j, here
        at += length
    return found
