"""Fits run in a process of their own, which is killed if one does not end."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from problems import TABLE, case_of

# A fit of these sizes takes milliseconds; the first one of a fresh machine compiles for seconds.
SECONDS = 40.0


def run(name: str) -> dict[str, Any]:
    """Fit a case, and all that a check needs to know of it, in plain types."""
    case = case_of(name)
    entry = TABLE[case.kind]
    answer: dict[str, Any] = {"error": None, "problems": []}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.perf_counter()
        try:
            model = entry.fit(case)
            answer["seconds"] = time.perf_counter() - began
            answer["C"] = getattr(model, "C_", None)
            answer["finite"] = bool(np.all(np.isfinite(entry.outputs(case, model))))
            points = entry.points(case, model)
            for point, result in zip(points, entry.results(model), strict=True):
                certificate = result.certificate
                answer["problems"].append(
                    {
                        "point": point,
                        "primal": certificate.primal,
                        "dual": certificate.dual,
                        "kind": certificate.kind,
                        "status": result.status.value,
                        "n_iter": int(result.n_iter),
                    }
                )
        except Exception as error:
            answer["error"] = f"{type(error).__name__}: {error}"
    answer["warnings"] = [str(warning.message) for warning in caught]
    return answer


def _serve(connection: Connection) -> None:
    while True:
        connection.send(run(connection.recv()))


class Fits:
    """A process that fits cases by name. If it hangs or dies, another one takes its place."""

    def __init__(self) -> None:
        self._process: Any = None
        self._connection: Any = None

    def run(self, name: str, seconds: float = SECONDS) -> dict[str, Any]:
        """The answer of :func:`run`, or one whose ``error`` says that there is none."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._connection, other = context.Pipe()
            self._process = context.Process(target=_serve, args=(other,), daemon=True)
            self._process.start()
            other.close()
            seconds += SECONDS  # to start, and to load or compile
        self._connection.send(name)
        try:
            if self._connection.poll(seconds):
                return self._connection.recv()
            error = f"hang: no end within {seconds:g} s"
        except (EOFError, ConnectionError):
            self._process.join()
            error = f"crash: the process ended with code {self._process.exitcode}"
        self.close()
        return {"error": error, "problems": [], "warnings": []}

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
        self._process = self._connection = None
