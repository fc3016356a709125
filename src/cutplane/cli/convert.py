"""Write data in another format. The name of OUT says which: svmlight text, compressed if
it ends in .gz, .bz2 or .xz; a NumPy archive (.npz); or a data set on disk (.cut), a
folder from which linear models can be trained on more data than fit into memory.
Several files follow each other as if they were one. Tables (.csv, .parquet, .arrow;
they need pyarrow) become data sets on disk: --label names the column to be learnt.

examples:
  cutplane convert train.svm train.cut
  cutplane convert part1.svm.gz part2.svm.gz train.cut
  cutplane convert --label price --features area,rooms houses.csv houses.cut
  cutplane convert --no-label new-houses.parquet new-houses.cut
  cutplane convert train.svm.xz train.npz
  cutplane convert train.npz train.svm.gz
  cutplane convert --zero-based data.svm - | head
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from . import inputs
from .errors import CommandError, ExitCode, UsageError
from .outputs import check_target, output_file
from .parser import Argument

FORMATS = ("svmlight", "npz", "cut")
TYPES = ("float64", "float32", "int16", "int8", "uint8")  # of the values of data sets on disk


FLAGS = {
    "": (
        Argument("DATA+", "Files to read; - is svmlight text from stdin."),
        Argument("OUT", "File or folder to write; - is svmlight text to stdout."),
        Argument("--to", "Format of OUT. (default: what its name says)", choices=FORMATS),
        Argument("--dense", "For .npz: store all values, also those that are 0."),
        Argument("--dtype", "For .cut: type of the values on disk. Small integer types make "
                 "training on data that hold only such integers faster. (default: the type of the "
                 "data, float64 for text)", choices=TYPES),
        Argument("--overwrite",
                 "For .cut: replace a data set that exists, which is otherwise an error."),
    ),
    **inputs.COLUMNS,
    "tables without labels": (
        Argument("--no-label",
                 "There are no labels: all columns that have no other use are features."),
    ),
    **inputs.READER_WITH_WIDTH,
}  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Convert; returns the exit code."""
    to = args.to or ("svmlight" if args.out == "-" else inputs.format_of(args.out))
    if args.dense and to != "npz":
        raise UsageError("--dense is for .npz")
    if args.dtype and to != "cut":
        raise UsageError("--dtype is for .cut")
    if to == "table":
        raise UsageError(f"{args.out}: tables are read, not written; see --to")
    text = (
        inputs.TEXT_FLAGS
        if to != "cut"
        else tuple(f for f in inputs.TEXT_FLAGS if f != "n_features")
    )
    inputs.check_reader_flags(args, *args.data, text=text)
    tables = [name for name in args.data if inputs.format_of(name) == "table"]
    if args.no_label and not tables:
        raise UsageError(f"--no-label is for tables, not for {args.data[0]}")
    if args.overwrite and to != "cut":
        raise UsageError("--overwrite is for .cut; files are replaced without it")
    if to == "cut":
        _write_dataset(args, tables)
        return ExitCode.OK
    if tables:
        raise UsageError("tables become data sets on disk: give OUT a name that ends in .cut")
    check_target(args.out, *args.data, binary=to == "npz")
    if to == "npz":
        _write_archive(args)
    else:
        _write_text(args)
    return ExitCode.OK


def _tables(args: argparse.Namespace) -> Iterator[inputs.Table]:
    return itertools.chain.from_iterable(inputs.read_chunks(name, args) for name in args.data)


def _write_dataset(args: argparse.Namespace, tables: list[str]) -> None:
    from .. import convert_dataset

    if args.out == "-":
        raise UsageError("a data set is a folder; it cannot go to standard output")
    if os.path.lexists(args.out) and not args.overwrite:
        raise CommandError(
            f"{args.out} exists; choose another name, or pass --overwrite to replace it"
        )
    if os.path.realpath(args.out) in map(os.path.realpath, args.data):
        raise CommandError(f"{args.out} is the input; the output needs another name")
    if tables:
        _check_label(args, tables[0])
    options: dict[str, Any] = {"label": args.label, "features": args.features}
    options["dtype"] = args.dtype
    options |= {"qid": args.qid or "auto", "cost": args.cost or "auto"}
    if not tables:
        options |= inputs.reader_options(args)
    convert_dataset(args.data, args.out, overwrite=args.overwrite, **options)


def _check_label(args: argparse.Namespace, name: str) -> None:
    """Refuse a table without --label or --no-label: the label must not become a feature."""
    if args.label is not None and args.no_label:
        raise UsageError("--label and --no-label exclude each other")
    if args.label is not None or args.no_label:
        return
    from ..data.tables import TABLE_SUFFIXES, column_names

    names = column_names([name], TABLE_SUFFIXES[Path(name).suffix.lower()])
    raise UsageError(
        f"{name}: which column holds the labels? Name it with --label, or pass --no-label if there "
        f"are none; the columns are {inputs.some_names(names)}"
    )


def _write_text(args: argparse.Namespace) -> None:
    """Write a data set part by part, so that the data need not fit into memory."""
    from ..data.svmlight import dump_svmlight

    with output_file(args.out) as file:
        for table in map(inputs.labelled, _tables(args)):
            if table.y.dtype.kind not in "fiub":
                raise CommandError(f"{table.name}: svmlight labels are numbers, not text")
            dump_svmlight(table.X, table.y, file, qid=table.qid, cost=table.cost)


def _write_archive(args: argparse.Namespace) -> None:
    import scipy.sparse

    parts = list(_tables(args))
    width = max(part.features for part in parts)
    table = inputs.joined(part.aligned(width)[0] for part in parts)
    X = table.X
    if scipy.sparse.issparse(X) and not args.dense:
        arrays = {
            "format": np.array(b"csr"),  # so that scipy.sparse.load_npz reads it, too
            "shape": np.array(X.shape),
            "data": X.data,
            "indices": X.indices,
            "indptr": X.indptr,
        }
    else:
        arrays = {"X": X.toarray() if scipy.sparse.issparse(X) else X}
    columns = {"y": table.y, "qid": table.qid, "cost": table.cost}
    arrays |= {name: values for name, values in columns.items() if values is not None}
    with output_file(args.out) as file:
        np.savez_compressed(file, **arrays)
