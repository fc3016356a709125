"""Chunks of tags against the chunks they were written from, and against conlleval's rules."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import make_scorer

from cutplane import ChainTagger, metrics

KINDS = ["NP", "VP", "X-Y"]


def draw_chunks(rng):
    """Random chunks that do not overlap, and the length of their sequence."""
    found, t = [], 0
    length = int(rng.integers(0, 12))
    while t < length:
        size = int(rng.integers(1, 4))
        if rng.random() < 0.6 and t + size <= length:
            found.append((str(rng.choice(KINDS)), t, t + size))
        t += size
    return found, length


def written(found, length, scheme):
    """Write chunks as tags, by the definition of the scheme."""
    tags = ["O"] * length
    for number, (kind, a, b) in enumerate(found):
        tags[a:b] = [f"I-{kind}"] * (b - a)
        last = found[number - 1] if number else None
        if scheme != "IOB1" or (last is not None and last[0] == kind and last[2] == a):
            tags[a] = f"B-{kind}"
        if scheme == "BIOES":
            tags[b - 1] = f"E-{kind}" if b - a > 1 else f"S-{kind}"
    return tags


@pytest.mark.parametrize("scheme", ["IOB2", "IOB1", "BIOES"])
def test_chunks_are_those_that_were_written(scheme):
    rng = np.random.default_rng(0)
    for _ in range(300):
        found, length = draw_chunks(rng)
        assert metrics.chunks(written(found, length, scheme), scheme=scheme) == found


def conlleval(tags):
    """The rules of conlleval.pl: startOfChunk and endOfChunk, one condition a line."""
    found, begin = [], None
    before, kind = "O", ""
    for t, tag in enumerate([*tags, "O"]):
        letter, _, here = tag.partition("-")
        end = (before, letter) in {("B", "B"), ("B", "S"), ("B", "O"), ("I", "B"), ("I", "S")}
        end |= (before, letter) == ("I", "O") or before in ("E", "S")
        end |= before != "O" and kind != here
        start = letter in ("B", "S")
        start |= before in ("E", "S", "O") and letter in ("E", "I")
        start |= letter != "O" and kind != here
        if end and begin is not None:
            found.append((kind, begin, t))
            begin = None
        if start:
            begin = t
        before, kind = letter, here
    return found


@pytest.mark.parametrize("scheme", ["IOB2", "BIOES"])
def test_tags_that_the_scheme_does_not_foresee_are_read_as_conlleval_does(scheme):
    rng = np.random.default_rng(1)
    letters = [letter for letter in metrics.SCHEMES[scheme] if letter != "O"]
    every = ["O", *(f"{letter}-{kind}" for letter in letters for kind in "ab")]
    for _ in range(500):
        tags = rng.choice(every, size=rng.integers(0, 9)).tolist()
        assert metrics.chunks(tags, scheme=scheme) == conlleval(tags)


def test_precision_recall_and_f1_count_chunks():
    rng = np.random.default_rng(2)
    every = ["O", "B-NP", "I-NP", "B-VP", "I-VP"]
    lengths = rng.integers(0, 9, 50)
    true = [rng.choice(every, n) for n in lengths]
    guess = [np.where(rng.random(len(y)) < 0.3, rng.choice(every, len(y)), y) for y in true]
    sides = [
        {(s, *chunk) for s, tags in enumerate(some) for chunk in conlleval(tags)}
        for some in (true, guess)
    ]
    for kind in (None, "NP", "VP"):
        own, other = ({c for c in side if kind in (None, c[1])} for side in sides)
        precision, recall = len(own & other) / len(other), len(own & other) / len(own)
        expected = (precision, recall, 2 * precision * recall / (precision + recall))
        for name, value in zip(("precision", "recall", "f1"), expected, strict=True):
            measure = getattr(metrics, f"chunk_{name}")
            found = measure(true, guess, by_type=kind is not None)
            assert (found if kind is None else found[kind]) == pytest.approx(value, rel=1e-12)
    flat = np.concatenate(true), np.concatenate(guess)
    assert metrics.chunk_f1(*flat, lengths=lengths) == metrics.chunk_f1(true, guess)


def test_without_chunks():
    assert metrics.chunk_f1([["O", "O"], []], [["O", "O"], []]) == 0.0
    assert metrics.chunk_f1([], []) == 0.0
    assert metrics.chunk_recall([["O"]], [["B-X"]]) == 0.0
    assert metrics.chunk_f1([["O"]], [["O"]], by_type=True) == {}


def test_a_scorer_for_model_selection():
    X = [[{"word": w} for w in ("a", "b", "c")]] * 4
    y = [["B-X", "I-X", "O"]] * 4
    tagger = ChainTagger(C=10.0).fit(X, y)
    assert make_scorer(metrics.chunk_f1)(tagger, X, y) == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([["B-NP"]], [["E-NP"]]), "sequence 0: token 0 has the tag 'E-NP', .* scheme IOB2"),
        (([["O"], ["NP"]], [["O"], ["O"]]), "sequence 1: token 0 has the tag 'NP'"),
        (([["O"]], [["O", "O"]]), "sequence 0 has 1 tags in y_true, 2 in y_pred"),
        (([["O"]], [["O"], ["O"]]), "y_true has 1 sequences, y_pred 2"),
        ((["O"], ["O"]), "y_true is one list of tags: give a list per sequence, or lengths"),
    ],
)
def test_errors_say_where(arguments, message):
    with pytest.raises(ValueError, match=message):
        metrics.chunk_f1(*arguments)
    with pytest.raises(ValueError, match="scheme"):
        metrics.chunks(["O"], scheme="IOB3")
    with pytest.raises(ValueError, match="y_true has 1 tags, but lengths sum to 2"):
        metrics.chunk_f1(["O"], ["O", "O"], lengths=[2])
