"""The programs of the SVM-light family as peers, if they are on the PATH.

``svm_learn`` and ``svm_perf_learn`` solve linear problems, ``svm_rank_learn`` rankings. Data go to
them by a file in a temporary folder, the model comes back by another, in SVM-light's format.
Writing and reading these is not timed: what counts is the time that the program
itself says it computed ("Runtime in cpu-seconds"), or, if it says none, all of its run.

C of theirs: SVM-light's multiplies the sum of the losses, SVM-perf's their mean in per cent,
SVM-rank's the sum over pairs divided by the number of queries.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cutplane import dump_svmlight
from cutplane.models import load_svmlight_model

from .risks import count_pairs
from .solvers import Effort, Model, Problem, Solver

if TYPE_CHECKING:
    from .measures.solvers import MeasureProblem

SECONDS = 600.0  # a program that takes longer has failed
_RUNTIME = re.compile(r"Runtime in cpu-seconds:\s*([0-9.eE+-]+)")


class Program(Solver):
    """The base of the three programs."""

    name: str
    program: str

    def missing(self) -> str | None:
        if shutil.which(self.program) is None:
            return f"{self.name} is left out: {self.program} is not on the PATH"
        return None

    def options(self, problem: Any, effort: Effort) -> list[str]:
        """The options on the command line, before the names of the two files."""
        raise NotImplementedError

    def prepare(self, problem: Any) -> tempfile.TemporaryDirectory[str]:
        folder = tempfile.TemporaryDirectory(prefix="cutplane-peer-")
        data = problem.data
        dump_svmlight(data.X, data.y, Path(folder.name, "train"), qid=data.qid)
        return folder

    def train(self, problem: Any, prepared: Any, effort: Effort) -> Any:
        model = Path(prepared.name, "model")
        model.unlink(missing_ok=True)
        command = [self.program, *self.options(problem, effort), "train", "model"]
        limit = effort.time_limit or SECONDS
        begin = time.perf_counter()
        try:
            answer = subprocess.run(
                command, cwd=prepared.name, capture_output=True, text=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self.program}: not done in {limit:g} s") from None
        wall = time.perf_counter() - begin
        if answer.returncode != 0 or not model.is_file():
            last = (answer.stderr.strip() or answer.stdout.strip()).splitlines()[-1:]
            raise RuntimeError(f"{self.program} ended with {answer.returncode}: {''.join(last)}")
        said = _RUNTIME.search(answer.stdout)
        return model.read_bytes(), float(said.group(1)) if said else wall, wall

    def finish(self, problem: Any, trained: Any) -> tuple[Model, dict[str, Any], Any]:
        content, seconds, wall = trained
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model")
            file.write_bytes(content)
            model = load_svmlight_model(file, n_features=problem.data.X.shape[1])
        b = float(model.intercept_[0]) if problem.bias != "none" else 0.0
        return Model(model.coef_[0], b), {"seconds": seconds, "process_seconds": wall}, None


class SvmLight(Program):
    """``svm_learn``, a decomposition method. Without ``-b 0`` its bias is free, as ours is."""

    name, program = "SVM-light", "svm_learn"

    def solves(self, problem: Problem) -> bool:
        return problem.loss == "hinge" and problem.bias in ("none", "free")

    def options(self, problem: Problem, effort: Effort) -> list[str]:
        bias = "0" if problem.bias == "none" else "1"
        return ["-t", "0", "-b", bias, "-c", repr(problem.C), "-e", repr(effort.tol or 1e-3)]


class SvmPerf(Program):
    """``svm_perf_learn``, plain cutting planes. Its bias is the weight of a constant feature."""

    name, program = "SVM-perf", "svm_perf_learn"

    def solves(self, problem: Problem) -> bool:
        return problem.loss == "hinge" and problem.bias in ("none", "regularised")

    def options(self, problem: Problem, effort: Effort) -> list[str]:
        C = problem.C * len(problem.data.y) / 100.0
        bias = "0" if problem.bias == "none" else "1"
        tol = repr(effort.tol or 0.1)
        return ["-t", "0", "-l", "2", "--b", bias, "-w", "3", "-c", repr(C), "-e", tol]


class SvmRank(Program):
    """``svm_rank_learn``, which minimises swapped pairs within queries."""

    name, program = "SVM-rank", "svm_rank_learn"

    def solves(self, problem: MeasureProblem) -> bool:
        return problem.loss == "ranking"

    def options(self, problem: MeasureProblem, effort: Effort) -> list[str]:
        y, qid = problem.data.y, problem.data.qid
        C = problem.C * len(np.unique(qid)) / count_pairs(y, qid)
        return ["-t", "0", "-c", repr(C), "-e", repr(effort.tol or 1e-3)]
