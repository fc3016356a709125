"""One property: the reader agrees with the reference, whatever the size of pieces and threads."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from svmlight_reference import Content, parse

import cutplane.data.svmlight.read as svmlight

SIZES = (1, 2, 3, 5, 7, 11, 16, 64, 1 << 20)


def attempt(text: bytes, size: int, **options: Any) -> tuple[Any, ...] | str:
    """The result, or the message."""
    saved, svmlight.PIECE = svmlight.PIECE, size
    try:
        return svmlight.load_svmlight(io.BytesIO(text), **options)
    except ValueError as error:
        return str(error)
    finally:
        svmlight.PIECE = saved


def same(a: Any, b: Any) -> bool:
    """Whether two results are equal to the last bit."""
    X, Y = a[0], b[0]
    arrays = [(X.indices, Y.indices), (X.indptr, Y.indptr), (X.data, Y.data), (a[1], b[1])]
    arrays += [(p, q) for p, q in zip(a[2:], b[2:], strict=True) if isinstance(p, np.ndarray)]
    bits = all(p.dtype == q.dtype and p.tobytes() == q.tobytes() for p, q in arrays)
    return bits and X.shape == Y.shape and a[-1] == b[-1]


def agrees(found: Any, content: Content, zero_based: Any) -> bool:
    X, y, qid, cost, comments = found
    indices = [index for row in content.rows for index, _ in row]
    least = min(indices, default=1)
    first = (0 if least == 0 else 1) if zero_based == "auto" else 1 - bool(zero_based)
    values = [value for row in content.rows for _, value in row]
    return (
        X.shape == (len(content.rows), max(indices, default=first - 1) + 1 - first)
        and X.indices.tolist() == [index - first for index in indices]
        and X.data.tobytes() == np.array(values, float).tobytes()
        and np.diff(X.indptr).tolist() == [len(row) for row in content.rows]
        and y.tobytes() == np.array(content.labels).tobytes()
        and (qid.tolist() if qid is not None else [None] * len(y)) == content.qids
        and cost.tolist() == content.costs
        and comments == content.comments
    )


def check(text: bytes, sizes: tuple[int, ...] = SIZES, **options: Any) -> str | None:
    """What is wrong with the reader, if anything shows on this text."""
    everything: dict[str, Any] = {"qid": "auto", "cost": True, "comments": True, **options}
    zero_based = options.get("zero_based", "auto")
    sort = options.get("sort", False)
    expected: Content | None
    try:
        least = 1 if zero_based is False else 0
        expected = parse(text, least=least, sort=sort)
        indices = [index for row in expected.rows for index, _ in row]
        if zero_based is True or (zero_based == "auto" and 0 in indices):
            parse(text, most=2**31 - 2, sort=sort)
    except ValueError:
        expected = None
    whole = attempt(text, 1 << 20, n_jobs=1, **everything)
    if isinstance(whole, str):
        if expected is not None and "is not plain text" not in whole:
            return f"refused: {whole}"
        if not whole.startswith("<file>:"):
            return f"without place: {whole}"
    elif expected is None:
        return "accepted"
    elif not agrees(whole, expected, zero_based):
        return "other numbers"
    for size in sizes:
        part = attempt(text, size, n_jobs=1 + size % 2, **everything)
        if isinstance(whole, str) or isinstance(part, str):
            # Repeats in long rows that need sorting are found later than other mistakes.
            if not isinstance(part, str) or not isinstance(whole, str):
                return f"size {size}: {part!r} for {whole!r}"
            if not sort and part != whole:
                return f"size {size}: {part!r} for {whole!r}"
        elif not same(part, whole):
            return f"size {size}: other numbers"
    return None
