"""``cutplane convert``: the same data in another format."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from .common import CommandError, ExitCode, UsageError, add_verbose
from .inputs import Table, add_reader_flags, format_of, read_chunks, read_table
from .streams import check_target, text_output

FORMATS = ("svmlight", "npz", "cut")

DESCRIPTION = """\
Write data in another format: svmlight text, compressed by its suffix (.gz, .bz2, .xz);
a NumPy archive (.npz); or a data set on disk (.cut), a folder from which models are
trained that do not fit into memory. The format of OUT is that of its name.
"""

EPILOG = """\
examples:
  cutplane convert train.svm train.cut
  cutplane convert train.svm.xz train.npz
  cutplane convert train.npz train.svm.gz
  cutplane convert --zero-based data.svm - | head
"""


def add_parser(subparsers: Any) -> None:
    """Offer the command to argparse."""
    parser = subparsers.add_parser(
        "convert",
        help="data in another format",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    parser.add_argument("data", metavar="DATA", help="file to read; - is svmlight text from stdin")
    parser.add_argument("out", metavar="OUT", help="file or folder to write; - is stdout")
    parser.add_argument("--to", choices=FORMATS, help="format of OUT, if its name does not tell")
    parser.add_argument(
        "--dense", action="store_true", help="for .npz: store all values, also those that are 0"
    )
    add_reader_flags(parser, width=True)
    add_verbose(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Convert; returns the exit code."""
    to = args.to or ("svmlight" if args.out == "-" else format_of(args.out))
    if args.dense and to != "npz":
        raise UsageError("--dense is for .npz")
    if to == "cut":
        from .datasets import write_table

        if args.out == "-":
            raise UsageError("a data set is a folder; it cannot go to standard output")
        write_table(args.out, read_chunks(args.data, args))
        return ExitCode.OK
    check_target(args.out, args.data)
    if to == "npz":
        if args.out == "-" and sys.stdout.isatty():
            raise CommandError("an archive is binary, it would spoil the terminal; redirect it")
        _write_archive(args, read_table(args.data, args))
    else:
        _write_text(args)
    return ExitCode.OK


def _write_text(args: argparse.Namespace) -> None:
    """Part by part; one file in memory's place."""
    from ..data.svmlight import dump_svmlight

    with text_output(args.out) as file:
        for table in read_chunks(args.data, args):
            y = table.y
            if y.dtype.kind not in "fiub":
                raise CommandError(f"{table.name}: svmlight labels are numbers, not {y.dtype}")
            dump_svmlight(table.X, y, file, qid=table.qid, cost=table.cost)


def _write_archive(args: argparse.Namespace, table: Table) -> None:
    import scipy.sparse

    X = table.X
    if scipy.sparse.issparse(X) and not args.dense:
        parts = {
            "format": np.array(b"csr"),  # so that scipy.sparse.load_npz reads it, too
            "shape": np.array(X.shape),
            "data": X.data,
            "indices": X.indices,
            "indptr": X.indptr,
        }
    else:
        parts = {"X": X.toarray() if scipy.sparse.issparse(X) else np.asarray(X)}
    columns = {"y": table.y, "qid": table.qid, "cost": table.cost}
    parts |= {name: column for name, column in columns.items() if column is not None}
    with text_output(args.out) as file:
        np.savez_compressed(file, **parts)
