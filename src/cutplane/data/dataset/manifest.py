"""The manifest of a data set on disk: what its files hold, with digests.

JSON, readable and small. A digest covers all of its entries, so an edited manifest is detected.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..rows import MOST_FEATURES
from .arrays import ArrayRecord, new_digest, open_regular

NAME = "manifest.json"
FORMAT = "cutplane data set"
VERSION = 1

# The files that a data set may have, and the types that each of them may have.
TYPES: dict[str, tuple[str, ...]] = {
    "values": ("<f4", "<f8", "|i1", "|u1", "<i2"),
    "indices": ("<u2", "<u4"),
    "starts": ("<i8",),
    "y": ("<f8", "<i4"),
    "qid": ("<i8",),
    "cost": ("<f8",),
}
LARGEST_INTEGER = 2**53  # float64 cannot hold all integers beyond it


@dataclass(frozen=True)
class Manifest:
    """Sizes, arrays, labels and names of a data set."""

    rows: int
    features: int
    n_stored: int  # values: non-zeros, or rows times features
    sparse: bool
    arrays: dict[str, ArrayRecord]  # by name, see TYPES
    label_kind: str | None  # 'integer', 'real', 'text', or None if there are no labels
    labels: tuple[Any, ...] | None  # distinct labels; text is stored as positions in this list
    label_counts: tuple[int, ...] | None  # rows per label; both are None if there are too many
    feature_names: tuple[str, ...] | None

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(record.nbytes for record in self.arrays.values())

    def digest(self) -> bytes:
        """A fingerprint of everything in the data set."""
        return bytes.fromhex(_digest_of(self._entries()))

    def _entries(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "rows": self.rows,
            "features": self.features,
            "numbers": self.n_stored,
            "layout": "sparse" if self.sparse else "dense",
            "label_kind": self.label_kind,
            "labels": self.labels,
            "label_counts": self.label_counts,
            "feature_names": self.feature_names,
            "arrays": {
                name: {"dtype": array.dtype, "shape": array.shape, "digest": array.digest}
                for name, array in self.arrays.items()
            },
        }

    def text(self) -> str:
        """The manifest as JSON."""
        entries = self._entries()
        return json.dumps(entries | {"digest": _digest_of(entries)}, indent=1) + "\n"

    @staticmethod
    def read(folder: Path) -> Manifest:
        """Read and check the manifest of a folder."""
        path = folder / NAME
        if not folder.is_dir() and folder.exists():
            raise ValueError(f"{folder} is a file, not a data set; convert_dataset makes one of it")
        if not path.exists() and not path.is_symlink():
            reason = "holds no manifest.json" if folder.is_dir() else "does not exist"
            raise ValueError(
                f"{folder} {reason}; write_dataset and convert_dataset write data sets"
            )
        with open(open_regular(path), "rb") as file:
            content = file.read()
        try:
            entries = json.loads(content)
            if entries["format"] != FORMAT:
                raise ValueError("another format")
            version = int(entries["version"])
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
            raise ValueError(f"{path} is not the manifest of a data set") from None
        if version > VERSION:
            raise ValueError(
                f"{path}: written by a newer version of cutplane (format {version}, this one "
                f"reads {VERSION}); upgrade cutplane"
            )
        if version < 1:
            raise _damaged(path, f"there is no format {version}")
        digest = entries.pop("digest", None)
        if digest != _digest_of(entries):
            raise _damaged(path, "its digest does not fit")
        try:
            return _checked(entries)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise _damaged(path, str(error)) from None


def _damaged(path: Path, why: str) -> ValueError:
    return ValueError(
        f"{path} is damaged or was edited ({why}); write the data set again, or restore the file"
    )


def _digest_of(entries: dict[str, Any]) -> str:
    digest = new_digest()
    digest.update(json.dumps(entries, sort_keys=True, separators=(",", ":")).encode())
    return digest.hexdigest()


def _checked(entries: dict[str, Any]) -> Manifest:
    """The manifest; an error if its entries contradict each other."""
    rows, features, n_stored = (_count(entries[name]) for name in ("rows", "features", "numbers"))
    if not rows or not 1 <= features <= MOST_FEATURES:
        raise ValueError(f"{rows} rows of {features} features; there can be {MOST_FEATURES}")
    sparse = {"sparse": True, "dense": False}[entries["layout"]]
    arrays = {}
    for name, entry in entries["arrays"].items():
        if entry["dtype"] not in TYPES[name]:
            raise ValueError(f"{name} cannot be of type {entry['dtype']}")
        shape = tuple(_count(length) for length in entry["shape"])
        arrays[name] = ArrayRecord(entry["dtype"], shape, str(entry["digest"]))
    wanted: dict[str, tuple[int, ...]] = {"values": (n_stored,) if sparse else (rows, features)}
    if sparse:
        wanted |= {"indices": (n_stored,), "starts": (rows + 1,)}
    elif n_stored != rows * features:
        raise ValueError("numbers are not rows times features")
    wanted |= {name: (rows,) for name in ("y", "qid", "cost") if name in arrays}
    if wanted != {name: record.shape for name, record in arrays.items()}:
        raise ValueError("the shapes of the arrays do not fit")
    names, labels, counts = (
        entries[key] if entries[key] is None else tuple(entries[key])
        for key in ("feature_names", "labels", "label_counts")
    )
    if names is not None and not all(type(name) is str for name in names):
        raise ValueError("feature_names are not all text")
    kind = entries["label_kind"]
    kinds = {"<i4": ("text",), "<f8": ("integer", "real"), None: (None,)}
    if kind not in kinds[arrays["y"].dtype if "y" in arrays else None]:
        raise ValueError("label_kind does not fit")
    if names is not None and len(names) != features:
        raise ValueError("feature_names do not fit")
    if (labels is None) != (counts is None) or (kind == "text" and labels is None):
        raise ValueError("labels do not fit")
    if labels is not None and (
        len(labels) != len(counts or ()) or sum(map(_count, counts or ())) != rows
    ):
        raise ValueError("label_counts do not fit")
    types = {"text": (str,), "integer": (int,), "real": (int, float), None: ()}[kind]
    if labels is not None and not all(type(label) in types for label in labels):
        raise ValueError(f"labels are not all of the kind {kind}")
    return Manifest(rows, features, n_stored, sparse, arrays, kind, labels, counts, names)


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**62:
        raise ValueError(f"{value!r} is not a number of things")
    return value


def is_label(manifest: Manifest, stored: np.ndarray) -> np.ndarray:
    """For each row, whether the stored number is a label of the manifest's kind."""
    if manifest.label_kind == "text":
        return (stored >= 0) & (stored < len(manifest.labels or ()))
    fits = np.isfinite(stored)
    if manifest.label_kind == "integer":
        fits &= (np.abs(stored) <= LARGEST_INTEGER) & (stored == np.floor(stored))
    return fits


def label_array(manifest: Manifest, stored: np.ndarray) -> np.ndarray:
    """Labels as they were given, from the stored numbers."""
    if manifest.label_kind == "text":
        return np.array(manifest.labels)[stored]
    if manifest.label_kind == "integer":
        return stored.astype(np.int64)
    return stored
