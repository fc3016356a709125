"""Data for the commands, as a ``Table``: svmlight text, NumPy archives, data sets, tables.

A NumPy archive (.npz) holds either ``X`` or the parts of a sparse matrix as
``scipy.sparse.save_npz`` names them; ``y``, ``qid`` and ``cost`` may be there, too. Tables (CSV,
Parquet, Arrow) have names for their columns, and flags say which of them are no features.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .errors import CommandError, UsageError
from .kinds import Task
from .parser import Argument, count

logger = logging.getLogger("cutplane")

TABLES = (".csv", ".parquet", ".pq", ".arrow", ".feather", ".ipc")
MOST_NAMES = 10  # a message lists at most so many columns
MOST_CLASSES = 8  # a report lists at most so many classes


@dataclass(frozen=True)
class Table:
    """Rows with their labels, queries, costs and feature names."""

    name: str  # for messages
    X: Any  # array, CSR matrix or Dataset of shape (rows, features)
    y: Any  # shape (rows,); None if there are no labels
    qid: np.ndarray | None = None
    cost: np.ndarray | None = None  # weights of the rows; None if all are 1
    names: tuple[str, ...] | None = None  # of the features

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def features(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def weights(self) -> np.ndarray:
        """The weights of the rows."""
        return np.ones(self.rows) if self.cost is None else self.cost

    def aligned(self, features: int) -> tuple[Table, int]:
        """The table in memory with this many columns, and how many values that leaves out."""
        X, left_out = _aligned(in_memory(self).X, features)
        return replace(self, X=X), left_out


def _aligned(X: Any, features: int) -> tuple[Any, int]:
    import scipy.sparse

    width = X.shape[1]
    if width == features:
        return X, 0
    if width > features:
        rest = X[:, features:]
        beyond = rest.nnz if scipy.sparse.issparse(X) else np.count_nonzero(rest)
        return X[:, :features], int(beyond)
    if scipy.sparse.issparse(X):
        X = X.tocsr()
        return scipy.sparse.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], features)), 0
    return np.pad(X, ((0, 0), (0, features - width))), 0


# -- arguments ----------------------------------------------------------------


_TEXT = (
    Argument("--zero-based", "Feature indices count from 0, not from 1."),
    Argument("--sort", "Accept lines whose feature indices do not increase."),
    Argument(
        "--max-features N", "Refuse feature indices beyond this. (default: 2147483647)", count
    ),
)
_WIDTH = Argument(
    "--n-features N", "Number of features. (default: the largest index in the file)", count
)
_TEXT_TITLE = "how to read svmlight text"
READER = {_TEXT_TITLE: _TEXT}
READER_WITH_WIDTH = {_TEXT_TITLE: (*_TEXT, _WIDTH)}
COLUMNS = {
    "columns of tables (.csv, .parquet, .arrow)": (
        Argument("--label COLUMN", "Column with the labels."),
        Argument("--features COLUMN,...", "Columns with the features. (default: all that have no "
                 "other use)", lambda text: text.split(",")),
        Argument("--qid COLUMN", "Column with the query or sequence of each row (qid:)."),
        Argument("--cost COLUMN", "Column with the weight of each row."),
    )
}  # fmt: skip
TEXT_FLAGS = ("zero_based", "sort", "max_features", "n_features")
COLUMN_FLAGS = ("label", "features", "qid", "cost")


def check_reader_flags(
    args: argparse.Namespace, *names: str, text: Sequence[str] = TEXT_FLAGS
) -> None:
    """Refuse flags that have no effect for any of the files, so that none is silently ignored."""
    tagged = getattr(args, "parameter_template", None) is not None  # CoNLL columns
    formats = set() if tagged else {format_of(name) for name in names}
    listed = ", ".join(names)
    for flags, wanted, what in (
        (text, "svmlight", "svmlight text"),
        (COLUMN_FLAGS, "table", "tables (.csv, .parquet, .arrow)"),
    ):
        for flag in flags:
            if getattr(args, flag, None) and wanted not in formats:
                raise UsageError(f"--{flag.replace('_', '-')} is for {what}, not for {listed}")


def reader_options(args: argparse.Namespace) -> dict[str, Any]:
    """The reader's flags as arguments of the readers."""
    options: dict[str, Any] = {"zero_based": args.zero_based, "sort": args.sort}
    if args.max_features is not None:
        options["max_features"] = args.max_features
    if getattr(args, "n_features", None) is not None:
        options["n_features"] = args.n_features
    return options


# -- reading ------------------------------------------------------------------


def format_of(name: str) -> str:
    """The format of a file, by its name: svmlight, npz, cut or table."""
    path = Path(name)
    if path.suffix == ".npz":
        return "npz"
    if path.suffix == ".cut" or (name != "-" and path.is_dir()):
        return "cut"
    return "table" if path.suffix.lower() in TABLES else "svmlight"


def is_model(name: str) -> bool:
    """Whether a file begins like a model or a checkpoint. It may be damaged."""
    from ..data.files import opened
    from ..store.container import begins_like_ours

    if name == "-" or format_of(name) != "svmlight":
        return False
    begin = bytearray(64)
    with opened(name) as source:
        source.read_into(memoryview(begin))
    return begins_like_ours(bytes(begin))


def read_table(name: str, args: argparse.Namespace) -> Table:
    """Read all of a file with labels, or of stdin for '-'; a data set stays on disk.

    ``args`` has the reader's flags.
    """
    match format_of(name):
        case "cut":
            from .. import open_dataset

            data = open_dataset(name)
            return labelled(_table(name, data, data.y, data.qid, data.cost, data.feature_names))
        case "svmlight":
            from ..data.svmlight import load_svmlight
            from ..reporting.compiling import tell_of_compiling

            tell_of_compiling()
            options = reader_options(args)
            return _table(name, *load_svmlight(name, qid="auto", cost=True, **options))
        case "table" if not hasattr(args, "label"):
            raise CommandError(
                f"{name} is a table; convert it first: "
                f"cutplane convert --label COLUMN {name} data.cut"
            )
    return joined(map(labelled, read_chunks(name, args)))


def read_chunks(
    name: str, args: argparse.Namespace, features: Sequence[str] | None = None
) -> Iterator[Table]:
    """Read a file in parts, if its format allows it. There may be no labels.

    ``features`` are the columns that a model needs of a table, in its order.
    """
    try:
        yield from _chunks(name, args, features)
    except OSError as error:  # an error of the input, not of the output
        raise CommandError(f"{error.filename or name}: {error.strerror or error}") from error


def _chunks(name: str, args: argparse.Namespace, features: Sequence[str] | None) -> Iterator[Table]:
    match format_of(name):
        case "npz":
            yield _read_archive(name)
        case "cut":
            from .. import open_dataset

            with open_dataset(name) as dataset:
                for X, y, qid, cost in dataset.chunks():
                    yield _table(name, X, y, qid, cost, dataset.feature_names)
        case "table":
            yield from _table_chunks(name, args, features)
        case _:
            from ..data.svmlight import iter_svmlight
            from ..reporting.compiling import tell_of_compiling

            tell_of_compiling()
            options = reader_options(args)
            for X, y, qid, cost in iter_svmlight(name, qid="auto", cost=True, **options):
                yield _table(name, X, y, qid, cost)


def _table(
    name: str, X: Any, y: Any, qid: Any, cost: Any, names: Sequence[str] | None = None
) -> Table:
    uniform = cost is None or bool(np.all(cost == 1.0))
    return Table(
        "<stdin>" if name == "-" else name,
        X,
        y,
        qid,
        None if uniform else cost,
        None if names is None else tuple(names),
    )


def joined(tables: Iterable[Table]) -> Table:
    """The parts of a file as one, in memory."""
    parts = list(tables)
    weighted = any(part.cost is not None for part in parts)
    return replace(
        parts[0],
        X=stacked([part.X for part in parts]),
        y=stacked([part.y for part in parts]),
        qid=stacked([part.qid for part in parts]),
        cost=stacked([part.weights for part in parts]) if weighted else None,
    )


def stacked(parts: Sequence[Any]) -> Any:
    """The rows of all arrays in one array; None if an array is missing."""
    import scipy.sparse

    if any(part is None for part in parts):
        return None
    if len(parts) == 1:
        return parts[0]
    if any(map(scipy.sparse.issparse, parts)):
        return scipy.sparse.vstack(parts, "csr")
    return np.concatenate(parts)


def whole_labels(y: np.ndarray) -> np.ndarray:
    """Labels as integers, if all of them are integers."""
    if y.dtype.kind == "f" and np.all(y == np.floor(y)) and np.all(np.abs(y) < 2.0**53):
        return y.astype(np.int64)
    return y


def label_text(label: Any) -> str:
    """A label as text; an integer has no decimal point."""
    integer = isinstance(label, float) and label.is_integer()
    return str(int(label) if integer else label)


def label_counts(counts: Iterable[tuple[Any, int]]) -> str:
    """Labels and how often each occurs."""
    return ", ".join(f"{label_text(label)} ({n:,})" for label, n in counts)


def _read_archive(name: str) -> Table:
    from ..data.tables import read_archive

    X, y, qid, cost = read_archive(name)
    if X.dtype.kind in "iub" and X.dtype.itemsize <= 2:
        X = X.astype(np.float32)  # exact, and half the memory
    return _table(name, X, y, qid, cost)


def labelled(table: Table) -> Table:
    """The table, which must have labels."""
    if table.y is None:
        remedy = "; name their column with --label" if format_of(table.name) == "table" else ""
        raise CommandError(f"{table.name} has no labels{remedy}")
    return table


# -- tables -------------------------------------------------------------------


def _table_chunks(
    name: str, args: argparse.Namespace, features: Sequence[str] | None
) -> Iterator[Table]:
    from ..data.tables import TABLE_SUFFIXES, Columns, column_names, table_chunks

    kind = TABLE_SUFFIXES[Path(name).suffix.lower()]
    others = (args.label, args.qid, args.cost)
    if features is not None:
        chosen = args.features or [n for n in column_names([name], kind) if n not in others]
        match_names(chosen, features, name)
    columns = Columns(args.label, features or args.features, args.qid, args.cost)
    for rows in table_chunks([name], kind, columns):
        X, y, qid, cost = rows
        yield _table(name, X, y, qid, cost, rows.names)


def match_names(names: Sequence[str], wanted: Sequence[str], source: str) -> list[int]:
    """The positions of a model's features among the columns of data. Other columns are an error."""
    position = {name: k for k, name in enumerate(names)}
    missing = [name for name in wanted if name not in position]
    if missing:
        raise CommandError(
            f"{source} has no column {some_names(missing)}, on which the model was trained; it has "
            f"{some_names(names)}"
        )
    known = set(wanted)
    extra = [name for name in names if name not in known]
    if extra:
        remedy = (
            "say what it is with --label, --qid or --cost, or choose the model's columns with "
            "--features"
            if format_of(source) == "table"
            else "convert the data with the model's columns only"
        )
        raise CommandError(
            f"{source} has a column {some_names(extra)}, which the model does not know; {remedy}"
        )
    return [position[name] for name in wanted]


def some_names(names: Sequence[str]) -> str:
    """A few names in quotes."""
    return ", ".join(map(repr, names[:MOST_NAMES])) + (", ..." if len(names) > MOST_NAMES else "")


def in_memory(table: Table) -> Table:
    """The table with its rows as an array or a sparse matrix."""
    if hasattr(table.X, "memory_limit"):  # a data set on disk
        return replace(table, X=table.X.rows())
    return table


# -- rows of a task ------------------------------------------------------------


def read_rows(name: str, args: argparse.Namespace, task: Task) -> Table:
    """Read all of a file with the labels of a task; a data set stays on disk."""
    template = getattr(args, "parameter_template", None)
    if template is not None:
        return read_tagged(name, template, getattr(args, "parameter_min_count", 1))
    if task is Task.LABELS:
        from .labels import read_labels

        return read_labels(name, args)
    return read_table(name, args)


def training_rows(name: str, args: argparse.Namespace, task: Task) -> Table:
    """As ``read_rows``, for training: refuses rows from which nothing can be learnt."""
    table = read_rows(name, args, task)
    check_numbers(table, task)
    if table.features == 0:
        raise CommandError(f"{table.name}: no row has a feature: there is nothing to learn from")
    return table


def read_tagged(
    name: str, template: str, min_count: int = 1, features: Sequence[str] | None = None
) -> Table:
    """Tokens with their features, tags and sentences.

    ``features`` are those of a model. Without them, all names that occur often enough are features.
    """
    from ..structured.conll import read_sentences
    from ..structured.named import Template, named_tokens

    form = Template(template)
    found = read_sentences(name)
    found.check_columns(
        form.columns + 1, f"the template needs {form.columns}, and the tag one more"
    )
    tokens = named_tokens(found.tokens, form)
    names = tokens.vocabulary(min_count) if features is None else features
    tags = np.array([columns[-1] for sentence in found.tokens for columns in sentence])
    lengths = [len(sentence) for sentence in found.tokens]
    qid = np.repeat(np.arange(1, len(lengths) + 1), lengths)
    return Table(found.name, tokens.rows(names), tags, qid, names=tuple(names))


def chain_rows(table: Table, y: np.ndarray) -> Any:
    """Rows and labels as sequences."""
    from ..structured import sequences_from

    if table.qid is None:
        raise CommandError(
            f"{table.name}: a chain needs to know the sequences: every line must have a qid:, "
            "the same for the tokens of a sequence; for a table, name the column with --qid"
        )
    if table.cost is not None:
        raise CommandError(f"{table.name}: cost: has no meaning for chains; remove it")
    return sequences_from(table.X, y, table.qid)


NUMBERS = {Task.GRADES: "grades", Task.RANKING: "targets", Task.VALUES: "targets"}


def check_numbers(table: Table, task: Task) -> None:
    """Refuse labels that are text where their order or their size matters."""
    if task in NUMBERS and table.y.dtype.kind not in "fiub":
        raise CommandError(
            f"{table.name}: the {NUMBERS[task]} are text, such as {str(table.y[0])!r}, but "
            f"{task.value} needs numbers; write them as numbers"
            + (" in their order: 1, 2, 3" if task is Task.GRADES else "")
        )
