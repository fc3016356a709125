"""A fit as the commands see it: the estimator, how it ended, and the certificate in one line."""

from __future__ import annotations

import logging
import math
import sys
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _interrupts
from ..report.line import format_percent, format_seconds
from ..result import Certificate, SolveResult, Status
from .common import CommandError, ExitCode
from .inputs import Table, in_memory, whole_labels
from .kinds import Kind, Task

logger = logging.getLogger("cutplane")

# Which of several endings counts, and the code that tells it.
GRAVEST_FIRST = (
    Status.INTERRUPTED,
    Status.TIME_LIMIT,
    Status.MAX_ITER,
    Status.NUMERICALLY_LIMITED,
    Status.STOPPED,
    Status.CONVERGED,
)


@dataclass(frozen=True)
class Fit:
    """A fitted model.

    Attributes
    ----------
    model : estimator
    results : tuple of SolveResult
        One per problem.
    seconds : float
        That the fit took.
    """

    model: Any
    results: tuple[SolveResult, ...]
    seconds: float

    @property
    def status(self) -> Status:
        """How it ended."""
        found = {result.status for result in self.results}
        return next(status for status in GRAVEST_FIRST if status in found)

    @property
    def worst(self) -> SolveResult:
        """The problem with the largest relative gap among those that decide the status."""
        same = [result for result in self.results if result.status is self.status]
        return max(same, key=lambda result: result.certificate.relative_gap)

    @property
    def code(self) -> ExitCode:
        """For the shell."""
        return code_of(self.status)

    def as_dict(self) -> dict[str, Any]:
        """Status and certificates in JSON's types."""
        problems = [result.as_dict() for result in self.results]
        return {
            "status": self.status.value,
            "n_iter": max(result.n_iter for result in self.results),
            "certificate": certificate_dict(self.worst.certificate),
            "problems": problems,
            "fit_seconds": self.seconds,
        }


def code_of(status: Status) -> ExitCode:
    """The exit code of a solver's status."""
    if status is Status.CONVERGED:
        return ExitCode.OK
    if status is Status.INTERRUPTED:
        return ExitCode.INTERRUPTED
    return ExitCode.ABOVE_TOLERANCE


def certificate_dict(certificate: Certificate) -> dict[str, Any]:
    """A certificate in JSON's types."""
    return {
        name: getattr(certificate, name)
        for name in ("primal", "dual", "gap", "relative_gap", "kind")
    }


# -- fitting ------------------------------------------------------------------


def make_model(kind: Kind, parameters: dict[str, Any]) -> Any:
    """The estimator of a kind."""
    import cutplane

    return getattr(cutplane, kind.estimator)(**parameters)


def fit(model: Any, kind: Kind, table: Table) -> Fit:
    """Fit a model to a table. Warnings become messages; a missed tolerance is in the result."""
    from sklearn.exceptions import ConvergenceWarning

    _interrupts.check()  # compiled code was loaded to read the data
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _fit(model, kind, table if kind.on_disk else in_memory(table))
    if table.names is not None:  # of rows in memory the model does not know them
        model.feature_names_in_ = np.array(table.names, dtype=object)
    for warning in caught:
        if not issubclass(warning.category, ConvergenceWarning | DeprecationWarning):
            logger.warning("%s", warning.message)
    return Fit(model, results_of(model), time.perf_counter() - started)


NUMBERS = {Task.GRADES: "grades", Task.RANKING: "targets", Task.VALUES: "targets"}


def check_numbers(table: Table, kind: Kind) -> None:
    """Refuse labels that are text where their order or their size matters."""
    if kind.task in NUMBERS and table.y.dtype.kind not in "fiub":
        raise CommandError(
            f"{table.name}: the {NUMBERS[kind.task]} are text, such as {str(table.y[0])!r}, but "
            f"{kind.name} needs numbers; write them as numbers"
            + (" in their order: 1, 2, 3" if kind.task is Task.GRADES else "")
        )


def _fit(model: Any, kind: Kind, table: Table) -> None:
    match kind.task:
        case Task.SEQUENCES:
            sequences = chain_rows(table, table.y)
            model.fit(sequences.X, whole_labels(sequences.y), lengths=sequences.lengths)
        case Task.RANKING:
            model.fit(table.X, table.y, qid=table.qid, sample_weight=table.cost)
        case Task.VALUES | Task.NOVELTY:
            model.fit(table.X, table.y, sample_weight=table.cost)
        case _:
            model.fit(table.X, whole_labels(table.y), sample_weight=table.cost)


def chain_rows(table: Table, y: np.ndarray) -> Any:
    """Rows and labels as sequences."""
    from ..structured import sequences_from

    if table.qid is None:
        raise CommandError(
            f"{table.name}: a chain needs to know the sequences: every line must have a qid:, "
            "the same for the tokens of a sequence; of a table, name the column with --query-id"
        )
    if table.cost is not None:
        raise CommandError(f"{table.name}: cost: has no meaning for chains; remove it")
    return sequences_from(table.X, y, table.qid)


def results_of(model: Any) -> tuple[SolveResult, ...]:
    """The results of a fitted model's problems."""
    return tuple(model.results_)


# -- what is said -------------------------------------------------------------


def certificate_line(fit: Fit) -> str:
    """The proof of how far the model is from the optimum, in one line."""
    worst = fit.worst
    certificate = describe_certificate(worst.certificate)
    ending = f"{worst.status.reason} after {worst.n_iter:,} iterations"
    if len(fit.results) > 1:
        problems = f"{len(fit.results)} problems"
        return (
            f"worst of {problems}: {certificate}; {ending}; all {problems} took "
            f"{format_seconds(fit.seconds)}"
        )
    seconds = worst.timings.get("total", fit.seconds)
    return f"{certificate}; {ending} and {format_seconds(seconds)}"


def describe_certificate(certificate: Certificate) -> str:
    """A certificate, and what there is to know about its kind."""
    if not math.isfinite(certificate.gap):
        known = math.isfinite(certificate.primal)
        objective = f"objective {certificate.primal:.8g}" if known else "objective not known"
        return f"{objective}, without a certificate: its distance from the optimum is not known"
    text = str(certificate)
    return f"{text}, estimated" if certificate.kind == "estimated" else text


def tell_ending(
    command: str, status: Status, gap: float, *, asked: float | None, kept: str
) -> ExitCode:
    """Say on stderr that a solver stopped above its tolerance, if it did.

    Parameters
    ----------
    command : str
    status : Status
    gap : float
        Relative.
    asked : float or None
        The relative gap that was asked for.
    kept : str
        What became of the model.

    Returns
    -------
    code : ExitCode
    """
    if status is not Status.CONVERGED:
        where = "without a certificate"
        if math.isfinite(gap):
            goal = "" if asked is None else f", above the {format_percent(asked)} asked for"
            where = f"at a gap of {format_percent(gap)}{goal}"
        print(f"cutplane {command}: the solver {status.reason} {where}; {kept}", file=sys.stderr)
    return code_of(status)
