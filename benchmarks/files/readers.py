"""Readers of svmlight text: ours and the peers that can do it. Each returns X, y and maybe qid."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

Reader = Callable[[Path, bool], Any]


def ours(threads: int) -> Reader:
    """Our reader with this number of threads."""

    def read(path: Path, qid: bool) -> Any:
        from cutplane import load_svmlight

        return load_svmlight(path, qid=qid, zero_based=False, n_jobs=threads)

    return read


def scikit_learn(path: Path, qid: bool) -> Any:
    """``load_svmlight_file``."""
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(str(path), query_id=qid, zero_based=False)


def xgboost(path: Path, qid: bool) -> Any:
    """``DMatrix``, with one thread; float32 values."""
    from xgboost import DMatrix

    return DMatrix(f"{path}?format=libsvm", nthread=1, silent=True)


def polars(path: Path, qid: bool) -> Any:
    """A data frame without a reader: lines as a column, split, exploded and cast."""
    import polars as pl

    lines = pl.scan_csv(
        path, has_header=False, separator="\x01", quote_char=None, new_columns=["line"]
    ).with_row_index("row")
    words = lines.select("row", pl.col("line").str.split(" ")).with_columns(
        label=pl.col("line").list.first().cast(pl.Float64),
        **({"qid": pl.col("line").list.get(1).str.slice(4).cast(pl.Int64)} if qid else {}),
    )
    first = 2 if qid else 1
    pairs = (
        words.select("row", pl.col("line").list.slice(first))
        .explode("line")
        .select(
            "row",
            pl.col("line").str.split_exact(":", 1).struct.rename_fields(["index", "value"]),
        )
        .unnest("line")
        .select("row", pl.col("index").cast(pl.UInt32), pl.col("value").cast(pl.Float64))
    )
    columns = ["label", "qid"] if qid else ["label"]
    return pl.collect_all([pairs, words.select(columns)])


PEERS: dict[str, Reader] = {"scikit-learn": scikit_learn, "xgboost": xgboost, "polars": polars}
_MODULES = {"scikit-learn": "sklearn", "xgboost": "xgboost", "polars": "polars"}


def missing(name: str) -> bool:
    """Whether a peer is not installed."""
    return importlib.util.find_spec(_MODULES[name]) is None
