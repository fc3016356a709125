"""Any bytes are a model or are refused with a reason; a short run of it.

``tests/fuzz/fuzz_models.py`` goes on for as long as you like.
"""

from __future__ import annotations

import io
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_mutations import (
    CORPUS,
    check_checkpoint,
    check_file,
    check_text,
    crafted,
    damaged_bytes,
    damaged_text,
    good_checkpoint,
    good_files,
    good_texts,
)

from cutplane import load_model
from cutplane.models import describe
from cutplane.store import container

FILES, TEXTS = [], []


@pytest.fixture(scope="module", autouse=True)
def good():
    FILES[:], TEXTS[:] = good_files(), good_texts()


def test_the_good_ones_are_accepted():
    for data in FILES:
        load_model(io.BytesIO(data))
    assert all(check_file(data) is None for data in FILES)
    assert all(check_text(data) is None for data in TEXTS)


@pytest.mark.parametrize("file", sorted(CORPUS.iterdir()), ids=lambda file: file.name)
def test_corpus(file, tmp_path):
    data = file.read_bytes()
    assert check_file(data) is None
    assert check_text(data) is None
    assert check_checkpoint(data, tmp_path / "c") is None


@pytest.mark.parametrize("file", sorted(CORPUS.glob("[!fv]*.model")), ids=lambda file: file.name)
def test_files_of_this_version_can_be_read(file):
    """Whatever the format becomes."""
    model, told = load_model(file), describe(file)
    assert told["version"] == 2 and told["kind"] == type(model).__name__
    primal = [c.primal for c in model.certificates_]
    said = told["certificate"] if len(primal) > 1 else [told["certificate"]]
    assert primal == [c["primal"] for c in said]
    rows = np.ones((2, getattr(model, "n_features_in_", 6)))
    assert len(model.predict([rows, rows] if told["kind"] == "ChainTagger" else rows)) == 2


@given(st.binary(max_size=200))
def test_any_bytes(data):
    assert check_file(data) is None
    assert check_file(len(data).to_bytes(8, "little") + container.PREFIX + data) is None
    assert check_text(data) is None


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([damaged_bytes, crafted, crafted]))
def test_files_that_are_nearly_right(seed, mutate):
    rng = random.Random(seed)
    fault = check_file(mutate(rng.choice(FILES), rng))
    assert fault is None


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_texts_that_are_nearly_right(seed):
    rng = random.Random(seed)
    assert check_text(damaged_text(rng.choice(TEXTS), rng)) is None


def test_checkpoints_that_are_nearly_right(tmp_path):
    path = tmp_path / "c"
    data = good_checkpoint(path)
    for seed in range(40):
        rng = random.Random(seed)
        mutate = damaged_bytes if seed % 3 == 0 else crafted
        assert check_checkpoint(mutate(data, rng), path) is None, seed
