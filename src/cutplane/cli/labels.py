"""Several labels per row in svmlight text, as scikit-learn's ``multilabel=True`` reads it.

    1,5,7 1:0.3 4:1
     2:0.5            a row without a label

In a ``Table`` the labels of a row are a tuple of numbers, in an array of objects; a model is
trained on their indicator matrix.
"""

from __future__ import annotations

import argparse
import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .errors import CommandError
from .inputs import Table, format_of, label_text, reader_options


def read_labels(name: str, args: argparse.Namespace) -> Table:
    """Read all of an svmlight file whose rows have any number of labels."""
    from ..data.files import opened
    from ..data.svmlight import load_svmlight

    if format_of(name) != "svmlight":
        raise CommandError(
            f"{name}: several labels per row are read from svmlight text, as in '1,5,7 1:0.3 4:1'; "
            "in Python LinearSVC().fit(X, Y) takes an indicator matrix"
        )
    with opened(name) as source:
        shown, text = source.name, source.read_all()
    y, plain = split_labels(shown, text)
    file: Any = io.BytesIO(plain)
    file.name = shown
    options = reader_options(args)
    X, _, qid, cost = load_svmlight(file, qid="auto", cost=True, **options)
    return Table(shown, X, y, qid, None if np.all(cost == 1.0) else cost)


def split_labels(name: str, text: bytes) -> tuple[np.ndarray, bytes]:
    """The labels of each row, and the text with a 0 in place of the labels."""
    lines = text.split(b"\n")
    rows: list[tuple[float, ...]] = []
    for number, line in enumerate(lines):
        tokens = line.split(None, 1)
        if not tokens or tokens[0].startswith(b"#"):
            continue
        first = tokens[0]
        if b":" in first:
            rows.append(())
            lines[number] = b"0 " + line
        else:
            column = line.index(first)
            rows.append(_numbers(first, f"{name}:{number + 1}:{column + 1}"))
            # Spaces keep the columns that messages name.
            rest = line[column + len(first) :]
            lines[number] = line[:column] + b"0".ljust(len(first)) + rest
    return as_column(rows), b"\n".join(lines)


def _numbers(token: bytes, where: str) -> tuple[float, ...]:
    try:
        found = {float(part) for part in token.split(b",")}
        if all(map(math.isfinite, found)) and b"_" not in token:
            return tuple(sorted(found))
    except ValueError:
        pass
    shown = token[:40].decode("utf-8", "replace")
    raise CommandError(f"{where}: {shown!r} is no list of labels; write numbers with commas: 1,5,7")


def read_predicted(name: str) -> np.ndarray:
    """The labels in a file of predictions: those of a row per line, separated by commas."""
    from ..data.files import opened

    with opened(name) as source:
        lines = source.read_all().split(b"\n")
        shown = source.name
    if lines and not lines[-1]:
        lines.pop()
    return as_column(
        [
            _numbers(line.strip(), f"{shown}:{number}:1") if line.strip() else ()
            for number, line in enumerate(lines, 1)
        ]
    )


def as_column(rows: Sequence[tuple[Any, ...]]) -> np.ndarray:
    """Tuples in an array of objects."""
    column = np.empty(len(rows), dtype=object)
    column[:] = rows
    return column


def classes_of(y: np.ndarray) -> np.ndarray:
    """All labels, in order; integers if all are."""
    found = np.array(sorted({label for row in y for label in row}), dtype=np.float64)
    whole = np.all(found == np.floor(found)) and np.all(np.abs(found) < 2.0**53)
    return found.astype(np.int64) if whole else found


def _binarizer(classes: np.ndarray) -> Any:
    from sklearn.preprocessing import MultiLabelBinarizer

    return MultiLabelBinarizer(classes=classes.tolist(), sparse_output=True).fit([])


def indicator(y: np.ndarray, classes: np.ndarray) -> Any:
    """The indicator matrix of labels, all of which are among the classes."""
    return _binarizer(classes).transform(y)


def fit_labels(model: Any, table: Table) -> None:
    """Fit a model to the labels of a table, and set ``classes_`` to these labels."""
    classes = classes_of(table.y)
    if not len(classes):
        raise CommandError(f"{table.name}: no row has a label")
    Y = indicator(table.y, classes)
    weights = table.weights
    held = (weights > 0.0) @ Y
    for bad, what in ((held == 0, "no row"), (held == np.count_nonzero(weights), "every row")):
        if np.any(bad):
            label = label_text(classes[np.argmax(bad)].item())
            raise CommandError(
                f"{table.name}: {what} of positive weight has the label {label}, and there is "
                "nothing to learn; leave it out"
            )
    model.fit(table.X, Y, sample_weight=table.cost)
    model.classes_ = classes


def predicted_labels(model: Any, X: Any) -> np.ndarray:
    """The predictions of a model, as the labels of every row."""
    import scipy.sparse

    Y = scipy.sparse.csr_matrix(model.predict(X))
    Y.sort_indices()
    return as_column(_binarizer(model.classes_).inverse_transform(Y))


def labels_text(labels: tuple[Any, ...]) -> str:
    """The labels of a row as a file has them."""
    return ",".join(map(label_text, labels))
