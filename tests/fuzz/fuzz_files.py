"""Fuzz all files of ours: ``python tests/fuzz/fuzz_files.py COUNT [SEED]``.

Data sets (every file of a folder: bytes, lengths, types, shapes, values, signed again or not),
models and checkpoints of all kinds of solvers are changed and used. Each must end in a ValueError
that names the file, or in an answer of finite numbers. A signal ends the process: the seed of the
file at hand is the last line of output.
"""

from __future__ import annotations

import faulthandler
import io
import json
import random
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

from model_cases import CASES, X, sequences, tags, three, y
from model_mutations import _change, check_file, crafted, damaged_bytes

from cutplane import (
    SVC,
    ChainTagger,
    LinearSVC,
    MeasureSVC,
    OrdinalSVC,
    RankSVM,
    StructuredSVM,
    open_dataset,
    save_model,
    write_dataset,
)
from cutplane.data.dataset.arrays import header, new_digest
from cutplane.data.dataset.manifest import _digest_of
from cutplane.structured import MulticlassProblem

HANG = 120.0  # seconds
wide = np.tile(X, 30) + np.arange(180) * 0.01

FITS = {  # whose checkpoints are changed
    "ocas": (LinearSVC, {"tol": 1e-9}, X, y),
    "wide": (LinearSVC, {"tol": 1e-9}, wide, y),
    "classes": (LinearSVC, {"tol": 1e-3}, X, three),
    "joint": (LinearSVC, {"tol": 1e-9, "multi_class": "crammer_singer"}, X, three),
    "measure": (MeasureSVC, {"tol": 1e-9, "measure": "f1"}, X, y),
    "rank": (RankSVM, {"tol": 1e-9}, X, X[:, 1].round(1)),
    "ordinal": (OrdinalSVC, {"tol": 1e-9}, X, three),
    "chain": (ChainTagger, {"tol": 1e-9, "C": 10.0}, sequences, tags),
    "order 2": (ChainTagger, {"tol": 1e-9, "order": 2}, sequences, tags),
    "structured": (StructuredSVM, {"problem": MulticlassProblem(), "tol": 1e-9}, X, three),
    "kernel": (SVC, {"tol": 1e-9}, X, y),
    "pairs": (SVC, {"tol": 1e-3}, X, three),
}


# -- folders ------------------------------------------------------------------


def good_folders(folder: Path) -> list[Path]:
    """Data sets of every layout and with every kind of labels."""
    sparse = scipy.sparse.csr_matrix(np.where(np.abs(X) > 0.8, X, 0.0))
    qid, cost, real = np.arange(90) // 6, np.linspace(0.5, 2.0, 90), X[:, 0].round(1)
    chunks: list[tuple[Any, Any, dict[str, Any]]] = [
        ("sparse", (sparse, real, qid, cost), {"n_features": 9}),
        ("wide", (sparse, (y == "yes").astype(int)), {"n_features": 70_000, "dtype": "float32"}),
        ("text", (sparse, y), {}),
        ("dense", (X, three, None, cost), {"feature_names": list("abcdef")}),
        ("bytes", (np.round(X), y), {"dtype": "int8"}),
    ]
    return [
        write_dataset(folder / f"{name}.cut", [chunk], **options).path
        for name, chunk, options in chunks
    ]


def change_folder(path: Path, rng: random.Random) -> None:
    """Change one of the files of a data set, perhaps so that all digests fit."""
    names = [file.stem for file in path.glob("*.npy")]
    if rng.random() < 0.25:
        manifest = json.loads((path / "manifest.json").read_text())
        for _ in range(rng.choice((1, 1, 3))):
            _change(manifest, rng)
        _write_manifest(path, manifest)
        return
    name = rng.choice(names)
    if rng.random() < 0.3:
        file = path / rng.choice([f"{name}.npy", "manifest.json"])
        file.write_bytes(damaged_bytes(file.read_bytes(), rng))
        return
    array = _changed_array(np.load(path / f"{name}.npy"), rng)
    (path / f"{name}.npy").write_bytes(header(array.dtype.str, array.shape) + array.tobytes())
    if rng.random() < 0.8:
        manifest = json.loads((path / "manifest.json").read_text())
        digest = new_digest()
        digest.update(array.tobytes())
        manifest["arrays"][name] = {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "digest": digest.hexdigest(),
        }
        if rng.random() < 0.3 and array.ndim == 1:  # the others say so, too
            key = "numbers" if name in ("values", "indices") else "rows"
            manifest[key] = len(array) - (name == "starts")
        _write_manifest(path, manifest)


def _write_manifest(path: Path, manifest: Any) -> None:
    if isinstance(manifest, dict):
        manifest.pop("digest", None)
        manifest["digest"] = _digest_of(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))


def _changed_array(array: np.ndarray, rng: random.Random) -> np.ndarray:
    array = array.copy()
    flat = array.reshape(-1)
    match rng.randrange(6):
        case 0:  # another length
            return array[: rng.randrange(len(array) + 1)]
        case 1:
            return np.concatenate([array, array[: rng.choice((1, 7))]])
        case 2:  # the same bytes as something else
            kind = rng.choice(("<f4", "<f8", "|i1", "|u1", "<i2", "<u2", "<u4", "<i4", "<i8"))
            return np.frombuffer(array.tobytes()[: array.nbytes // 8 * 8], kind)
        case 3:
            rng.shuffle(flat)
            return array
    for _ in range(rng.choice((1, 1, 3))):
        place = rng.choice((0, len(flat) - 1, rng.randrange(len(flat))))
        with np.errstate(all="ignore"):
            few = np.array([0, 1, -1, 7, 255, 65535, 2**31 - 1, 10**5, 10**12, np.nan, np.inf])
            value = rng.choice(few.tolist()) + rng.choice((0.0, float(flat[place])))
            info = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
            flat[place] = value if info is None else _within(value, info)
    return array


def _within(value: float, info: np.iinfo) -> int:
    return 0 if np.isnan(value) else int(min(max(value, info.min), info.max // 2))


def use_folder(path: Path, rng: random.Random) -> None:
    """All that can be done with a data set."""
    with open_dataset(path, verify=rng.random() < 0.3) as data:
        n = data.n_rows
        for column in (data.y, data.qid, data.cost):
            assert column is None or len(column) == n
        if data.n_features > 10**6:
            return
        assert sum(chunk.X.shape[0] for chunk in data.chunks(17)) == n
        labels = np.arange(n) % 2 if rng.random() < 0.5 or data.y is None else data.y
        make = rng.choice((LinearSVC, RankSVM)) if labels.dtype.kind in "if" else LinearSVC
        if data.y is not None and len(np.unique(labels)) > 5:
            make = RankSVM
        model = make(max_iter=3, tol=0.5, n_jobs=rng.choice((1, 2))).fit(data, labels)
        scores = model.predict(data) if make is RankSVM else model.decision_function(data)
        assert np.isfinite(scores).all()


# -- one file -----------------------------------------------------------------


def attempt(seed: int, folder: Path, good: dict[str, Any]) -> str | None:
    """Change and use one file; what is wrong with what became of it."""
    rng = random.Random(seed)
    kind = rng.random()
    if kind < 0.5:
        path = folder / "changed.cut"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(rng.choice(good["folders"]), path)
        change_folder(path, rng)
        return _tried(path, lambda: use_folder(path, rng))
    mutate = rng.choice((damaged_bytes, crafted, crafted, crafted))
    if kind < 0.75:
        return check_file(mutate(rng.choice(good["models"]), rng))
    name = rng.choice(list(FITS))
    path = folder / "changed.checkpoint"
    path.write_bytes(mutate(good["checkpoints"][name], rng))
    return _tried(path, lambda: _fit(name, path, 6))


def _fit(name: str, path: Path, rounds: int) -> None:
    make, options, data, labels = FITS[name]
    model = make(**options, max_iter=rounds, checkpoint=path).fit(data, labels)
    model.predict(data)


def _tried(path: Path, action: Any) -> str | None:
    try:
        action()
    except ValueError as error:
        # What was changed may be right in itself, and then what it says no fit can do.
        allowed = (str(path), "y must", "The number of classes", "no pair", "one class")
        return None if any(word in str(error) for word in allowed) else f"ValueError: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def main() -> int:
    faulthandler.enable()
    warnings.simplefilter("ignore")
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    faults = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = []
        for case in CASES.values():
            target = io.BytesIO()
            save_model(case.fitted(), target)
            models.append(target.getvalue())
        good: dict[str, Any] = {"folders": good_folders(folder), "models": models}
        good["checkpoints"] = {}
        for kind in FITS:
            path = folder / "good.checkpoint"
            path.unlink(missing_ok=True)
            _fit(kind, path, 3)
            good["checkpoints"][kind] = path.read_bytes()
            _fit(kind, path, 6)
        for path in good["folders"]:
            use_folder(path, random.Random(0))
        for seed in range(first, first + count):
            print(f"seed {seed}", flush=True)
            faulthandler.dump_traceback_later(HANG, exit=True)
            with np.errstate(all="ignore"):
                fault = attempt(seed, folder, good)
            faulthandler.cancel_dump_traceback_later()
            if fault:
                faults += 1
                print(f"fault at seed {seed}: {fault}", flush=True)
    print(f"{count} files, {faults} faults")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
