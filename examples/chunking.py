"""Columns of words (CoNLL-2000: word, part of speech, tag) as files for `cutplane train --chain`.

    python chunking.py train.txt.gz test.txt.gz     writes train.svm, test.svm and tags.txt
    cutplane train --chain --C 1000 train.svm chunker
    cutplane evaluate test.svm chunker

Features are the words and parts of speech in a window of two around the token, with pairs and
triples of neighbours. Without arguments it makes up some sentences and trains on them.
"""

from __future__ import annotations

import gzip
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.sparse

from cutplane import ChainTagger, dump_svmlight

Sentence = list[tuple[str, str, str]]
LEAST = 3  # times that a feature must occur in the training sentences


def read(path: str) -> list[Sentence]:
    """Sentences of a file: a line per token, an empty line after each sentence."""
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        blocks = file.read().split("\n\n")
    found = [[tuple(line.split()[:3]) for line in block.splitlines()] for block in blocks]
    return [sentence for sentence in found if sentence]


def make_up(count: int, seed: int) -> list[Sentence]:
    """Sentences like "the cat sat on a mat"."""
    rng = np.random.default_rng(seed)
    kinds = {
        "DT": (["the", "a"], "B-NP"),
        "NN": (["cat", "mat", "dog", "hat"], "I-NP"),
        "VB": (["sat", "ran", "fell"], "B-VP"),
        "IN": (["on", "under"], "B-PP"),
    }
    pattern = ["DT", "NN", "VB", "IN", "DT", "NN"]
    return [
        [(str(rng.choice(kinds[kind][0])), kind, kinds[kind][1]) for kind in pattern[:length]]
        for length in rng.integers(3, 7, count)
    ]


def features(sentence: Sentence, i: int) -> list[str]:
    """Names of the features of token i."""

    def column(which: int, k: int) -> str:
        return sentence[i + k][which] if 0 <= i + k < len(sentence) else f"_{k}"

    names = [f"word{k}={column(0, k)}" for k in range(-2, 3)]
    names += [f"words{k}={column(0, k)}|{column(0, k + 1)}" for k in (-1, 0)]
    for width, name in ((1, "pos"), (2, "two"), (3, "three")):
        for k in range(-2, 4 - width):
            names.append(name + f"{k}=" + "|".join(column(1, k + j) for j in range(width)))
    return [*names, "constant"]


def rows(sentences: list[Sentence], numbers: dict[str, int]) -> scipy.sparse.csr_matrix:
    """A row per token; features that training did not see are left out."""
    tokens = [features(sentence, i) for sentence in sentences for i in range(len(sentence))]
    found = [sorted(numbers[name] for name in names if name in numbers) for names in tokens]
    starts = np.cumsum([0, *map(len, found)])
    columns = np.concatenate(found).astype(np.int32)
    return scipy.sparse.csr_matrix(
        (np.ones(len(columns)), columns, starts), shape=(len(tokens), len(numbers))
    )


if len(sys.argv) == 3:
    parts = {Path(name).name.split(".")[0]: read(name) for name in sys.argv[1:]}
else:
    parts = {"train": make_up(200, seed=0), "test": make_up(50, seed=1)}
train, test = parts.values()
counts = Counter(name for s in train for i in range(len(s)) for name in features(s, i))
kept = sorted(name for name, count in counts.items() if count >= LEAST)
numbers = {name: k for k, name in enumerate(kept)}
tags = sorted({token[2] for s in (*train, *test) for token in s})
matrices = [rows(part, numbers) for part in (train, test)]
labels = [np.array([token[2] for s in part for token in s]) for part in (train, test)]
lengths = [[len(s) for s in part] for part in (train, test)]
print(
    f"{len(train)} sentences, {matrices[0].shape[0]} tokens, {len(kept)} features, {len(tags)} tags"
)
if len(sys.argv) == 3:
    for name, X, y, length in zip(parts, matrices, labels, lengths, strict=True):
        qid = np.repeat(np.arange(1, len(length) + 1), length)
        dump_svmlight(X, np.searchsorted(tags, y) + 1, f"{name}.svm", qid=qid)
    Path("tags.txt").write_text("".join(f"{k} {tag}\n" for k, tag in enumerate(tags, 1)))
    print("written", *(f"{name}.svm" for name in parts), "tags.txt")
else:
    tagger = ChainTagger(C=0.01).fit(matrices[0], labels[0], lengths=lengths[0])
    print(tagger.certificate_)
    print(f"test accuracy {tagger.score(matrices[1], labels[1], lengths=lengths[1]):.3f}")
