"""Any bytes are read as the reference reads them, or refused with a place; a short run of it.

``tests/fuzz/fuzz_svmlight.py`` goes on for as long as you like.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from svmlight_check import check
from svmlight_reference import CORPUS, PARTS, random_text

SEEDS = sorted(CORPUS.iterdir())


@pytest.mark.parametrize("file", SEEDS, ids=lambda file: file.stem)
@pytest.mark.parametrize("sort", [False, True])
def test_corpus(file, sort):
    for zero_based in ("auto", True, False):
        assert check(file.read_bytes(), zero_based=zero_based, sort=sort) is None


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes(text, sort):
    assert check(text, sizes=(1, 7), sort=sort) is None


@given(
    st.lists(st.sampled_from(PARTS), max_size=30),
    st.sampled_from([b"", b" ", b"\n"]),
    st.booleans(),
)
def test_parts(parts, glue, sort):
    assert check(glue.join(parts), sizes=(1, 5, 16), sort=sort) is None


@pytest.mark.parametrize("seed", range(8))
def test_texts_that_are_nearly_right(seed):
    rng = random.Random(seed)
    seeds = [file.read_bytes() for file in SEEDS]
    for _ in range(60):
        text, sort = random_text(rng, seeds), rng.random() < 0.3
        fault = check(text, sizes=(rng.choice((1, 2, 3, 5, 7, 11, 16, 64)),), sort=sort)
        assert fault is None, text
