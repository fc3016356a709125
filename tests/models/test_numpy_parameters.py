"""Parameters as numpy's scalars: every estimator takes them for Python's numbers, everywhere."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest
from model_cases import CASES, assert_same_bits, predictions
from sklearn.base import clone

from cutplane import Checkpoint, LinearSVCCV
from cutplane.models import describe, load_model, save_model

# Parameters that are None by default, as plain numbers that change nothing.
LIMITS = {"max_iter": 100_000, "time_limit": 1e6, "n_jobs": 1, "random_state": 0}


def as_numpy(value: Any) -> Any:
    """Numpy's scalar of the same value, also in dictionaries."""
    if isinstance(value, dict):
        return {as_numpy(key): as_numpy(item) for key, item in value.items()}
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        return np.int64(value)
    if isinstance(value, float):
        return np.float64(value)
    return np.str_(value) if isinstance(value, str) else value


def pair_of(model: Any) -> tuple[Any, Any]:
    """The model with limits, and the same with numpy's scalars."""
    model.set_params(**{k: v for k, v in LIMITS.items() if k in model.get_params(deep=False)})
    parameters = model.get_params(deep=False)
    return model, clone(model).set_params(**{k: as_numpy(v) for k, v in parameters.items()})


def fitted(model: Any, case: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(case.X, case.y)


@pytest.mark.parametrize("name", CASES)
def test_fit_save_load_and_describe(tmp_path, name):
    case = CASES[name]
    plain, scalars = (fitted(model, case) for model in pair_of(case.make()))
    expected = predictions(plain, case.X)
    assert_same_bits(predictions(scalars, case.X), expected)
    files = tmp_path / "plain", tmp_path / "scalars"
    for model, path in zip((plain, scalars), files, strict=True):
        save_model(model, path)
    loaded = load_model(files[1])
    assert_same_bits(predictions(loaded, case.X), expected)
    one, two = (describe(path)["parameters"] for path in files)
    assert one == two
    json.dumps(describe(files[1]))
    fitted(loaded, case)
    repr(scalars)


def has_checkpoint(model: Any) -> bool:
    """Structured models with a kernel have none."""
    kernel = getattr(model, "kernel", None) if hasattr(model, "method") else None
    return hasattr(model, "checkpoint") and kernel is None


@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if has_checkpoint(case.make())]
)
def test_resume(tmp_path, name):
    """What was begun with the one goes on with the other, and the other way round."""
    case = CASES[name]
    models = pair_of(case.make())
    ends = []
    for k, (first, second) in enumerate((models, models[::-1], models[1:] * 2)):
        checkpoint = Checkpoint(tmp_path / str(k), every=np.float64(0.0), resume=np.bool_(True))
        fitted(clone(first).set_params(checkpoint=checkpoint, max_iter=np.int64(2)), case)
        json.dumps(describe(tmp_path / str(k)))
        fitted(clone(second).set_params(checkpoint=checkpoint), case)
        finer = clone(second).set_params(checkpoint=checkpoint, tol=np.float32(1e-5))
        ends.append(predictions(fitted(finer, case), case.X))
    for end in ends[1:]:
        assert_same_bits(end, ends[0])


def test_a_search():
    case = CASES["linear"]
    plain, scalars = pair_of(LinearSVCCV(Cs=3, cv=3))
    assert_same_bits(
        predictions(fitted(scalars, case), case.X), predictions(fitted(plain, case), case.X)
    )
    values = [np.float64(0.1), np.float32(1.0), np.int64(10)]
    assert fitted(scalars.set_params(Cs=values), case).C_ in (0.1, 1.0, 10.0)
