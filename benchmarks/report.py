"""The JSON file that a section writes, with machine, settings, cases and checks."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import measure
from .datasets import DataSet, MissingDataError, Source
from .solvers import PEERS, Effort, Problem, Run, Solver, run

if TYPE_CHECKING:
    from .measures.solvers import MeasureProblem

SCHEMA = 1
TOL = 1e-3  # the relative gap of all "loose" runs, and the distance at which a peer is done
ROUNDING = 1e-9  # relative difference of sums of the same numbers in another order
TRACE_POINTS = 300
WARM_UP_ITERATIONS = 40


@dataclass(frozen=True)
class Settings:
    """The settings that the command line chooses.

    Attributes
    ----------
    repeats : int
        Number of runs, of which the best and the median count.
    tight_seconds : float
        Time limit of each of our runs, also at a tight tolerance.
    cpa_iterations, cpa_seconds
        Limits of the plain cutting plane algorithm.
    peer_seconds : float
        Time limit of all runs of a peer on one case of section ``speed``.
    peers : tuple of str
        The peers of section ``speed``.
    before : Path or None
        Another checkout of the project, which section ``linear`` of engine times as well.
    """

    source: Source
    quick: bool = False
    repeats: int = 5
    tight_seconds: float = 120.0
    cpa_iterations: int = 5000
    cpa_seconds: float = 120.0
    peer_seconds: float = 300.0
    peers: tuple[str, ...] = ("scikit-learn",)
    before: Path | None = None

    def facts(self) -> dict[str, Any]:
        """The settings for the JSON file, without folders of this machine."""
        facts = dataclasses.asdict(self)
        source = facts.pop("source")
        facts["before"] = self.before is not None
        return {**facts, "rows": source["rows"], "generated": source["generated"]}


@dataclass(frozen=True)
class Check:
    """A claim, and whether it holds.

    Attributes
    ----------
    kind : {'certificate', 'target'}
        A certificate must never be wrong. A target is what the project promises.
    """

    claim: str
    ok: bool
    value: float
    bound: float
    kind: str


def at_most(claim: str, value: float, bound: float, kind: str = "target") -> Check:
    """The claim that value ≤ bound."""
    return Check(claim, bool(value <= bound), float(value), float(bound), kind)


def at_least(claim: str, value: float, bound: float, kind: str = "target") -> Check:
    """The claim that value ≥ bound."""
    return Check(claim, bool(value >= bound), float(value), float(bound), kind)


def best_objective(runs: Iterable[Run]) -> float:
    """The best known objective of a problem, the lowest of all runs."""
    return min(r.objective for r in runs)


def certificate_checks(runs: Sequence[Run]) -> list[Check]:
    """Check the certificates of our runs against the best of all runs on a problem.

    A lower bound must not be above an objective that some run has reached. The objective in a
    certificate must be that of the model. A run that converged must be as close as its tolerance.
    """
    best = best_objective(runs)
    checks = []
    for r in runs:
        if r.result is None:
            continue
        name = f"{r.solver}, {_effort_text(r.effort)}"
        primal, dual = r.details["primal"], r.details["dual"]
        error = abs(primal - r.objective) / max(abs(r.objective), 1e-300)
        checks += [
            at_most(f"{name}: dual ≤ best known", dual, best * (1 + ROUNDING), "certificate"),
            at_most(f"{name}: certified primal = objective", error, ROUNDING, "certificate"),
        ]
        relative = r.details.get("stopping", "relative") == "relative"
        if r.details["status"] == "converged" and relative:
            tol = r.effort.tol or TOL
            # The gap is relative to the primal: primal − dual ≤ tol·primal.
            bound = best / (1 - tol) * (1 + ROUNDING)
            claim = f"{name}: primal ≤ best known/(1 − {tol:g})"
            checks.append(at_most(claim, primal, bound, "certificate"))
    return checks


def _effort_text(effort: Effort) -> str:
    return ", ".join(f"{key} {value}" for key, value in effort.facts().items()) or "defaults"


def reached_check(done: Run, runs: Iterable[Run]) -> Check:
    """The claim that a run at TOL is within TOL of the best known. For a stopped run, a target."""
    bound = best_objective(runs) * (1 + TOL)
    kind = "certificate" if done.details["status"] == "converged" else "target"
    return at_most(f"primal ≤ best known·(1 + {TOL:g})", done.objective, bound, kind)


def converged_check(done: Run) -> Check:
    """The claim that a run has reached its tolerance."""
    gap, tol = done.details["relative_gap"], done.effort.tol or TOL
    ok = done.details["status"] == "converged"
    return Check(f"{done.solver} converges to {tol:g}", ok, gap, tol, "target")


def thin_trace(result: Any, points: int = TRACE_POINTS) -> dict[str, list[float]]:
    """A trace with about 300 points at most, dense at the beginning, and with the last point."""
    count = len(result.trace)
    chosen = sorted(
        {min(count - 1, round(count ** (k / (points - 1))) - 1) for k in range(points)}
        | {round(k * (count - 1) / (points // 2)) for k in range(points // 2 + 1)}
    )
    return {
        name: [float(getattr(result.trace[k], name)) for k in chosen]
        for name in ("number", "seconds", "primal", "dual", "trial", "cuts")
    }


class Report:
    """Collects the cases of a section and writes them as they come.

    Parameters
    ----------
    suite, section : str
    settings : Settings
    folder : Path
        The file is ``<section>.json`` in it.
    """

    def __init__(self, suite: str, section: str, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.section = section
        self.file = folder / f"{section}.json"
        self._loaded: tuple[str, DataSet] | None = None
        self._warm: set[tuple[str, ...]] = set()
        self._began = time.perf_counter()
        self.content: dict[str, Any] = {
            "schema": SCHEMA,
            "suite": suite,
            "section": section,
            "date": measure.now(),
            "machine": measure.machine_facts(),
            "settings": settings.facts(),
            "complete": False,
            "skipped": [],
            "failed": [],
            "compile": [],
            "cases": [],
        }

    # -- earlier runs -----------------------------------------------------------------

    def resume(self) -> str | None:
        """Keep the cases of the file, or return a sentence if they were measured in another way.

        Kept cases say when, and at which commit, they were measured.
        """
        if not self.file.exists():
            return None
        old = json.loads(self.file.read_text("utf-8"))
        own = json.loads(json.dumps(self.content["settings"]))
        if old["schema"] != SCHEMA:
            return f"{self.file} has another format"
        others = sorted(k for k in own if old["settings"].get(k) != own[k])
        if others:
            return f"{self.file} was measured with other settings: {', '.join(others)}"
        measured = {"date": old["date"], "commit": old["machine"]["commit"]}
        self.content["cases"] = [{"measured": measured, **case} for case in old["cases"]]
        self.content["compile"] = old["compile"]
        self.content["partial"] = old.get("partial", {})
        return None

    def known(self, what: str) -> dict[str, Any] | None:
        """The case with this ``what``, if it was measured before."""
        return next((c for c in self.content["cases"] if c.get("what") == what), None)

    def partial(self, what: str) -> list[Any]:
        """The content of an unfinished case. The caller changes it and calls ``save``."""
        return self.content.setdefault("partial", {}).setdefault(what, [])

    # -- words ------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Print progress."""
        print(f"[{self.section}] {text}", flush=True)

    def skip(self, text: str) -> None:
        """Print and store that something is left out; the same sentence only once."""
        if text not in self.content["skipped"]:
            self.content["skipped"].append(text)
            self.say(f"skipped: {text}")
            self.save()

    @contextmanager
    def attempt(self, label: str) -> Iterator[None]:
        """Catch and record errors of a case, so that the other cases still run."""
        try:
            yield
        except Exception as error:
            traceback.print_exc()
            self.content["failed"].append({"case": label, "error": type(error).__name__})
            print(f"!!! FAILED {self.section} {label}", file=sys.stderr, flush=True)
            self.save()

    # -- data and solvers -------------------------------------------------------------

    def load(self, name: str) -> DataSet | None:
        """Load a data set; None if it is missing. The last one stays in memory."""
        if self._loaded is not None and self._loaded[0] == name:
            return self._loaded[1]
        self._loaded = None
        try:
            self._loaded = name, self.settings.source.load(name)
        except MissingDataError as error:
            self.skip(str(error))
            return None
        return self._loaded[1]

    def peers(
        self,
        problem: Problem | MeasureProblem,
        names: Iterable[str] = tuple(PEERS),
        known: Mapping[str, Callable[[], Solver]] = PEERS,
    ) -> list[Solver]:
        """The peers that are installed and solve the problem."""
        found: list[Solver] = []
        for name in names:
            peer = known[name]()
            sentence = peer.missing()
            if sentence is not None:
                self.skip(sentence)
            elif peer.solves(problem):
                found.append(peer)
        return found

    def warm_up(self, solver: Solver, problem: Problem | MeasureProblem) -> None:
        """Compile and import what the problem needs, on a few of its rows. Store the seconds."""
        key = (solver.name, problem.data.name, problem.loss, problem.bias)
        if key in self._warm:
            return
        self._warm.add(key)
        few = problem.few_rows()
        trained = run(solver, few, Effort(max_iter=WARM_UP_ITERATIONS))
        self.content["compile"].append(
            {
                "solver": solver.name,
                "data": problem.data.name,
                "loss": problem.loss,
                "bias": problem.bias,
                "seconds": trained.seconds,
                "compile_seconds": trained.compile_seconds,
            }
        )

    def timed(
        self,
        solver: Solver,
        problem: Problem | MeasureProblem,
        effort: Effort,
        prepared: Any = None,
    ) -> Run:
        """A run in which nothing was compiled. A run that compiled something is repeated."""
        if prepared is None:
            prepared = solver.prepare(problem)
        for _ in range(3):
            done = run(solver, problem, effort, prepared)
            if done.compile_seconds == 0.0:
                return done
            self.content["compile"].append(
                {**problem.facts(), "solver": solver.name, "compile_seconds": done.compile_seconds}
            )
        return done

    # -- results ----------------------------------------------------------------------

    def add(self, case: dict[str, Any], checks: Sequence[Check] = (), label: str = "") -> None:
        """Store a case, and print which of its checks are violated.

        In a quick run only certificates are checked, because targets are about the full data.
        """
        judged = [c for c in checks if c.kind == "certificate" or not self.settings.quick]
        for check in judged:
            if not check.ok:
                what = "VIOLATED CERTIFICATE" if check.kind == "certificate" else "TARGET MISSED"
                print(
                    f"!!! {what} {self.section} {label}: {check.claim} "
                    f"({check.value:.10g} against {check.bound:.10g})",
                    file=sys.stderr,
                    flush=True,
                )
        self.content.get("partial", {}).pop(label, None)
        self.content["cases"].append({**case, "checks": [dataclasses.asdict(c) for c in judged]})
        self.save()

    def finish(self) -> bool:
        """Mark the file as complete. Returns whether all checks held."""
        self.content["complete"] = True
        self.content["seconds"] = time.perf_counter() - self._began
        self.content["machine"]["load_average_at_end"] = measure.load_average()
        self.save()
        checks = [c for case in self.content["cases"] for c in case["checks"]]
        violated = sum(not c["ok"] for c in checks)
        failed, skipped = len(self.content["failed"]), len(self.content["skipped"])
        self.say(
            f"{len(self.content['cases'])} cases, {len(checks)} checks, {violated} violated, "
            f"{failed} failed, {skipped} skipped, {self.content['seconds']:.1f} s"
        )
        return violated == 0 and failed == 0

    def save(self) -> None:
        """Write a temporary file and rename it."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        aside = self.file.with_suffix(".json.part")
        aside.write_text(json.dumps(self.content, indent=1, ensure_ascii=False) + "\n", "utf-8")
        os.replace(aside, self.file)
