"""Files that are nearly right, and what must become of them: a model, or a ValueError."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from model_cases import CASES, X, y

from cutplane import Checkpoint, LinearSVC, load_model, save_model
from cutplane.models import (
    describe,
    load_svmlight_model,
    load_weights,
    save_svmlight_model,
    save_weights,
)
from cutplane.store import container

CORPUS = Path(__file__).parents[1] / "fuzz" / "model_corpus"

NUMBERS = [0, 1, -1, 2, 3, 7, 64, 256, 1000, 2**31, 2**63, 2**64, -(2**63), 0.5, 1e300, 1e-300]
OTHERS = [None, True, False, "", "rbf", "precomputed", "ocas", [], {}, [1], {"float": "nan"}]
OTHERS += [{"array": 0, "shape": [1]}, {"function": "os.system"}, {"tuple": []}, {"dict": []}]
TEXTS = [b"1", b"-1", b" ", b"\n", b"#", b"1:2", b"3:1e5", b"nan", b"\0", b"99999999999", b"SVM-"]


def good_files() -> list[bytes]:
    """A model of every kind."""
    files = []
    for case in CASES.values():
        target = io.BytesIO()
        save_model(case.fitted(), target)
        files.append(target.getvalue())
    return files


def good_texts() -> list[bytes]:
    """Models as text."""
    texts = []
    for name, write in (
        ("linear", save_weights),
        ("linear", save_svmlight_model),
        ("rbf", save_svmlight_model),
        ("poly", save_svmlight_model),
    ):
        target = io.BytesIO()
        key = next(key for key in CASES if key.startswith(name))
        model = CASES[key].fitted()
        if len(model.classes_) > 2:
            model = type(model)(**model.get_params()).fit(X, y)
        write(model, target)
        texts.append(target.getvalue())
    return texts


def good_checkpoint(path: Path) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LinearSVC(max_iter=4, tol=1e-9, checkpoint=Checkpoint(path)).fit(X, y)
    return path.read_bytes()


# -- mutations ----------------------------------------------------------------


def damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    """Bits flipped, parts cut out, doubled, or replaced."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place = rng.randrange(len(changed) + 1)
        end = min(len(changed), place + rng.choice((1, 4, 8, 100)))
        match rng.randrange(5):
            case 0 if place < len(changed):
                changed[place] ^= 1 << rng.randrange(8)
            case 1:
                del changed[place:end]
            case 2:
                changed[place:place] = changed[place:end]
            case 3:
                changed[place:end] = rng.randbytes(end - place)
            case _:
                changed = changed[:place]
    return bytes(changed)


def damaged_text(data: bytes, rng: random.Random) -> bytes:
    """Words of a text replaced, and bytes damaged."""
    words = data.split(b" ")
    for _ in range(rng.choice((1, 1, 3))):
        words[rng.randrange(len(words))] = rng.choice(TEXTS)
    text = b" ".join(words)
    return damaged_bytes(text, rng) if rng.random() < 0.5 else text


def crafted(data: bytes, rng: random.Random) -> bytes:
    """Another header or other arrays, with digests that fit: what a bug or an enemy writes."""
    header, body = taken_apart(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        _change(header.get("content") if rng.random() < 0.9 else header, rng)
    changed = bytearray(body)
    if changed and rng.random() < 0.3:
        for _ in range(rng.choice((1, 2, 8))):
            place = rng.randrange(len(changed))
            changed[place : place + 1] = bytes([rng.choice((0, 1, 127, 128, 255, 7))])
    return put_together(header, bytes(changed))


def taken_apart(data: bytes) -> tuple[dict[str, Any], bytes]:
    """What a file says of itself, with its ``content`` and ``arrays``, and the arrays."""
    end = 8 + int.from_bytes(data[:8], "little")
    arrays = json.loads(data[8:end])
    header = arrays.pop("__metadata__")
    header["content"] = json.loads(header["content"])
    return {**header, "arrays": arrays}, data[end:]


def put_together(header: dict[str, Any], body: bytes, version: int = container.VERSION) -> bytes:
    """A file with digests that fit."""
    metadata = {key: value for key, value in header.items() if key != "arrays"}
    metadata |= {"cutplane": str(version), "sha256": "0" * 64}
    metadata["data"] = hashlib.sha256(body).hexdigest()
    if "content" in metadata:
        metadata["content"] = json.dumps(metadata["content"])
    order = {key: metadata.pop(key) for key in ("cutplane", "sha256")}
    arrays = header.get("arrays")
    entries = arrays if isinstance(arrays, dict) else {"arrays": arrays}
    text = json.dumps({"__metadata__": order | metadata, **entries}, separators=(",", ":"))
    head = bytearray(len(text.encode()).to_bytes(8, "little") + text.encode())
    head[container.DIGITS] = hashlib.sha256(head).hexdigest().encode()
    return bytes(head) + body


def _change(value: Any, rng: random.Random) -> None:
    """Change something in a tree of lists and dicts."""
    while isinstance(value, list | dict) and value:
        key = rng.randrange(len(value)) if isinstance(value, list) else rng.choice(list(value))
        inner = value[key]
        if isinstance(inner, list | dict) and inner and rng.random() < 0.85:
            value = inner
            continue
        match rng.randrange(6):
            case 0:
                del value[key]
            case 1:
                value[key] = rng.choice(NUMBERS)
            case 2:
                value[key] = copy.deepcopy(rng.choice(OTHERS))
            case 3 if isinstance(inner, int | float) and not isinstance(inner, bool):
                value[key] = inner + rng.choice((1, -1, 0.5))
            case 4 if isinstance(value, dict):
                value[rng.choice(("x_", "coef_", "predict", "shape", "order"))] = inner
            case _:
                other = rng.choice(list(value.values()) if isinstance(value, dict) else value)
                value[key] = copy.deepcopy(other)
        return


# -- the property -------------------------------------------------------------


def check_file(data: bytes) -> str | None:
    """What is wrong with how a file is treated; None if nothing."""
    fault = _attempt(lambda: describe(io.BytesIO(data)))
    if fault:
        return f"describe: {fault}"
    loaded: list[Any] = []
    fault = _attempt(lambda: loaded.append(load_model(io.BytesIO(data))))
    if fault or not loaded:
        return fault and f"load_model: {fault}"
    return _used(loaded[0])


def check_text(data: bytes) -> str | None:
    for load in (load_svmlight_model, load_weights):
        loaded: list[Any] = []
        fault = _attempt(lambda load=load, loaded=loaded: loaded.append(load(io.BytesIO(data))))
        if fault:
            return f"{load.__name__}: {fault}"
        if loaded and loaded[0].n_features_in_ < 10_000 and (fault := _used(loaded[0])):
            return f"{load.__name__}: {fault}"
    return None


def check_checkpoint(data: bytes, path: Path) -> str | None:
    path.write_bytes(data)
    model = LinearSVC(max_iter=8, tol=1e-9, checkpoint=path)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return _attempt(lambda: model.fit(X, y), name=str(path))


def _attempt(action: Any, name: str = "<file>") -> str | None:
    """Nothing but a ValueError that names the file is allowed."""
    try:
        action()
    except ValueError as error:
        return None if str(error).startswith(name) else f"ValueError: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _used(model: Any) -> str | None:
    """A model that was accepted must not end the process; it may refuse the rows."""
    features = getattr(model, "n_features_in_", X.shape[1])
    if not isinstance(features, int) or features > 10_000:
        return None
    model.n_jobs = 1
    rows = np.ones((3, features))
    some: Any = rows if type(model).__name__ != "ChainTagger" else [rows, rows[:1]]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for data in (some, scipy.sparse.csr_matrix(rows)):
            try:
                model.predict(data)
            except Exception:
                continue
    return None
