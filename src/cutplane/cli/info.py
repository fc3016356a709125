"""Tell what FILE holds. Of data: the number of rows, features and stored values, the
labels, queries and weights, and whether the features should be scaled. Of a model: its
kind, its parameters and its certificate. Of a checkpoint: how far the fit is. Data are
read in parts, so they may be larger than memory.

examples:
  cutplane info train.svm.gz
  cutplane info data.npz
  cutplane info model
  cutplane info --json model
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..reporting.line import plural
from ..reporting.text import RUN_PARAMETERS, describe_certificate, print_facts, print_json
from ..result import Certificate, Status
from . import inputs
from .errors import ExitCode
from .parser import JSON, Argument

# Features of sizes that differ by this factor slow solvers down, and count unequally.
MOST_VALUES = 10  # of a list among the parameters
WIDE_SCALES = 1e3
MOST_LABELS = 100_000  # different ones; beyond this they are numbers, not classes


FLAGS = {
    "": (Argument("FILE", "Data, a model or a checkpoint; - is data from stdin."), JSON),
    **inputs.COLUMNS,
    **inputs.READER,
}


def run(args: argparse.Namespace) -> int:
    """Describe the file; returns the exit code."""
    inputs.check_reader_flags(args, args.file)
    if inputs.is_model(args.file):
        return _tell_model(args)
    summary = Summary()
    for table in inputs.read_chunks(args.file, args):
        summary.add(table)
    name = "<stdin>" if args.file == "-" else args.file
    if args.json:
        print_json({"command": "info", "name": name, **summary.as_dict()})
    else:
        print_facts({"data": name, **summary.facts()})
    return ExitCode.OK


# -- models -------------------------------------------------------------------


def _tell_model(args: argparse.Namespace) -> int:
    from ..models import describe

    found = describe(args.file)
    if args.json:
        print_json({"command": "info", "name": args.file, **found})
    else:
        print_facts({"model": args.file, **model_facts(found)})
    return ExitCode.OK


def model_facts(found: dict[str, Any]) -> dict[str, str]:
    """The description of a model for people."""
    facts = {"kind": found["kind"]}
    if "estimator" in found:
        facts["estimator"] = f"{found['estimator']}, {plural(found['solved'], 'problem')} solved"
    parameters = {
        name: value
        for name, value in found["parameters"].items()
        if str(value) != "None" and name not in RUN_PARAMETERS  # a checkpoint has texts
    }
    facts["parameters"] = ", ".join(f"{name}={_text(v)}" for name, v in parameters.items())
    if found.get("n_features") is not None:
        facts["features"] = f"{found['n_features']:,}"
    if found.get("classes") is not None:
        facts["classes"] = ", ".join(inputs.label_text(label) for label in found["classes"])
    facts["size"] = f"{found['sizes']['bytes']:,} bytes"
    facts["writer"] = str(found["writer"])
    facts["digest"] = found["digest"]
    certificates = found["certificate"]
    if certificates is not None:
        facts["certificate"] = _certificates(certificates, found["status"], found["n_iter"])
    return facts


def _certificates(certificates: Any, status: Any, n_iter: Any) -> str:
    """The certificate in one line; of several problems the one with the largest gap."""
    if isinstance(certificates, dict):
        certificates, status, n_iter = [certificates], [status], [n_iter]
    gaps = [entry["relative_gap"] for entry in certificates]
    k = int(np.nanargmax(gaps)) if not all(map(np.isnan, gaps)) else 0
    entry = certificates[k]
    text = describe_certificate(Certificate(entry["primal"], entry["dual"], entry["kind"]))
    ended = "in progress" if status[k] is None else Status(status[k]).reason
    worst = f"worst of {len(certificates)} problems: " if len(certificates) > 1 else ""
    return f"{worst}{text}; {ended} after {plural(n_iter[k], 'iteration')}"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_text(entry)}" for name, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        nested = any(isinstance(entry, list) for entry in value)
        more = ["..."] if len(value) > MOST_VALUES else []
        texts = [f"[{_text(v)}]" if nested else _text(v) for v in value[:MOST_VALUES]]
        return ", ".join(texts + more)
    return f"{value:.8g}" if isinstance(value, float) else " ".join(str(value).strip("'").split())


# -- data ---------------------------------------------------------------------


@dataclass
class Summary:
    """Counts over the parts read so far. ``largest`` is the largest |value| of each feature."""

    rows: int = 0
    features: int = 0
    names: tuple[str, ...] | None = None
    stored: int = 0
    labels: Counter[Any] = field(default_factory=Counter)
    lowest: float = np.inf
    highest: float = -np.inf
    queries: set[int] = field(default_factory=set)
    gaps: int = 0  # places where another query begins
    weights: tuple[float, float] | None = None
    largest: np.ndarray = field(default_factory=lambda: np.zeros(0))
    longest: int = 0
    empty: int = 0
    _last_query: int | None = None

    def add(self, table: inputs.Table) -> None:
        """Add a part."""
        self.rows += table.rows
        self.features = max(self.features, table.features)
        self.names = table.names
        if table.y is not None:
            self._add_labels(table.y)
        self._add_values(table.X)
        if table.qid is not None:
            self.gaps += int(np.count_nonzero(np.diff(table.qid)))
            if self._last_query is not None and self._last_query != table.qid[0]:
                self.gaps += 1
            self._last_query = int(table.qid[-1])
            self.queries.update(np.unique(table.qid).tolist())
        if table.cost is not None:
            low, high = self.weights or (1.0, 1.0)
            self.weights = min(low, table.cost.min()), max(high, table.cost.max())

    def _add_labels(self, y: np.ndarray) -> None:
        values, counts = np.unique(y, return_counts=True)
        if len(self.labels) <= MOST_LABELS:
            self.labels.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        if y.dtype.kind in "fiub":
            self.lowest = min(self.lowest, float(values[0]))
            self.highest = max(self.highest, float(values[-1]))

    def _add_values(self, X: Any) -> None:
        import scipy.sparse

        from ..data.memory import check_weights

        check_weights(X.shape[1], 1)  # as many numbers per feature as a model has
        X = scipy.sparse.csr_matrix(X)
        self.largest = np.pad(self.largest, (0, max(0, X.shape[1] - len(self.largest))))
        np.maximum.at(self.largest, X.indices, np.abs(X.data))
        lengths = np.diff(X.indptr)
        self.stored += X.nnz
        self.longest = max(self.longest, int(lengths.max(initial=0)))
        self.empty += int(np.count_nonzero(lengths == 0))

    @property
    def density(self) -> float:
        """Part of the matrix that is stored."""
        cells = self.rows * self.features
        return self.stored / cells if cells else 0.0

    def scales(self) -> tuple[float, float]:
        """The smallest and the largest of the features' largest |values|, without zeros."""
        used = self.largest[self.largest > 0.0]
        return (float(used.min()), float(used.max())) if len(used) else (0.0, 0.0)

    def warnings(self) -> list[str]:
        """Warnings about data that may cause trouble in training."""
        found = []
        low, high = self.scales()
        if low and high / low >= WIDE_SCALES:
            k = int(np.argmax(self.largest))
            j = int(np.argmin(np.where(self.largest > 0.0, self.largest, np.inf)))
            found.append(
                f"features differ in scale by {high / low:.1g}: the largest value of feature "
                f"{k + 1} is {high:g}, that of feature {j + 1} {low:g}; scale them, for instance "
                "to [0, 1]"
            )
        unused = int(np.count_nonzero(self.largest == 0.0))
        if unused:
            found.append(f"{unused:,} features are 0 in every row")
        if len(self.labels) == 1:
            found.append("all labels are the same")
        if self.queries and self.gaps + 1 > len(self.queries):
            found.append("rows of the same qid are not next to each other")
        return found

    def facts(self) -> dict[str, str]:
        """The summary as text for people."""
        low, high = self.scales()
        facts = {
            "rows": f"{self.rows:,}" + (f", {self.empty:,} of them empty" if self.empty else ""),
            "features": f"{self.features:,}",
            "stored": f"{self.stored:,} values, {100 * self.density:.3g} %; "
            f"{self.stored / self.rows:.1f} per row, at most {self.longest:,}",
            "largest": f"|value| per feature: from {low:g} to {high:g}",
            "labels": self._label_text(),
        }
        if self.names is not None:
            more = ", ..." if self.features > inputs.MOST_NAMES else ""
            facts["features"] += f": {', '.join(self.names[: inputs.MOST_NAMES])}{more}"
        if self.queries:
            each = self.rows / len(self.queries)
            facts["queries"] = f"{len(self.queries):,}, {each:.1f} rows each on average"
        if self.weights:
            facts["cost"] = f"from {self.weights[0]:g} to {self.weights[1]:g}"
        for k, warning in enumerate(self.warnings()):
            facts["warning" + " " * k] = warning  # names are keys, blanks are not seen
        return facts

    def _label_text(self) -> str:
        if not self.labels:
            return "none"
        if len(self.labels) <= inputs.MOST_CLASSES * 4:
            return inputs.label_counts(sorted(self.labels.items()))
        more = "more than " if len(self.labels) > MOST_LABELS else ""
        if self._range() is None:
            often = inputs.label_counts(self.labels.most_common(inputs.MOST_CLASSES))
            return f"{more}{len(self.labels):,} different, most often {often}"
        return f"{more}{len(self.labels):,} different, from {self.lowest:g} to {self.highest:g}"

    def _range(self) -> list[float] | None:
        """The smallest and the largest label; None if they are text."""
        return [self.lowest, self.highest] if self.lowest <= self.highest else None

    def as_dict(self) -> dict[str, Any]:
        """The summary in JSON's types."""
        low, high = self.scales()
        few = 0 < len(self.labels) <= 1000
        return {
            "rows": self.rows,
            "features": self.features,
            "stored": self.stored,
            "density": self.density,
            "empty_rows": self.empty,
            "labels": {inputs.label_text(k): n for k, n in sorted(self.labels.items())}
            if few
            else None,
            "label_range": self._range(),
            "feature_names": None if self.names is None else list(self.names),
            "queries": len(self.queries) or None,
            "cost_range": list(self.weights) if self.weights else None,
            "feature_scales": [low, high],
            "warnings": self.warnings(),
        }
