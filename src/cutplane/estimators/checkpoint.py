"""Checkpoints: the state of a fit in a file, so that a later fit can continue from it.

The file holds the results of the solved problems (classes in one-vs-rest), and the state of the
current problem: its cuts with their Gram matrix and factor, the best point, the scores of the data
there, and the trace. A fit that resumes repeats the iterations after this state to the last bit.
The state of a kernel machine is its dual point. The file also holds digests of the data, of each
problem and of the parameters that determine the iterations. A fit with other digests refuses it.
"""

from __future__ import annotations

import logging
import math
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import check_flag, check_number, plain
from ..result import Certificate, Iteration, SolveResult, Status

logger = logging.getLogger("cutplane")

KIND = "checkpoint"
# Parameters that a resumed fit may change: they determine when it ends, not what it computes.
FREE = (
    *("tol", "stopping", "max_iter", "time_limit", "n_jobs", "executor", "verbose", "callback"),
    *("checkpoint", "warm_start", "random_state", "cache_size", "shrinking", "working_set_size"),
)
REMEDY = "give another path, or start anew with Checkpoint(..., resume=False)"
# A problem that ended with one of these is done; other problems continue when the fit resumes.
DONE = (Status.CONVERGED, Status.NUMERICALLY_LIMITED, Status.MAX_ITER)


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a fit saves its state, so that you can continue it after an interruption.

    Parameters
    ----------
    path : str or path
        The file. A fit replaces it in one step, so it is always complete.
    every : float, default=60.0
        Seconds between writes; 0 writes at every iteration. A fit also writes the file at the
        start, at the end, and after Ctrl-C.
    resume : bool, default=True
        Whether to continue from an existing file. If the file is from other data or parameters, the
        fit raises an error. False starts from scratch and replaces the file.

    Notes
    -----
    A continued fit gives the same model, to the last bit, as an uninterrupted one, and
    the same certificate. Kernel machines continue from their dual point: they compute kernel values
    anew and count iterations from 0, and the model is the same up to ``tol``. You may change
    ``tol``, ``stopping``, ``max_iter``, ``time_limit`` and ``n_jobs``: ``time_limit`` starts anew,
    and ``max_iter`` counts all iterations. The file stays after the fit; remove it when you have
    saved the model. Parallel fits need different paths.

    A fit with a checkpoint sums over all rows in every iteration; a fit without one updates the
    last sum for the rows that changed. With a checkpoint, ``solver='auto'`` means ``'ocas'``. So a
    linear model has other last bits with a checkpoint than without; both are within ``tol``.

    On a cluster the workers keep the scores of the rows, and compute them anew from w when the fit
    writes the file. So the bits of a fit depend on the times of writing. You can continue a fit of
    a cluster on one machine, and vice versa.

    Examples
    --------
    >>> import os
    >>> from sklearn.datasets import load_breast_cancer
    >>> from cutplane import Checkpoint, LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVC(C=1e-3, checkpoint=Checkpoint("fit.checkpoint", every=10.0)).fit(X, y)
    >>> os.path.exists("fit.checkpoint")
    True
    >>> os.remove("fit.checkpoint")
    """

    path: str | os.PathLike[str]
    every: float = 60.0
    resume: bool = True


def check_checkpoint(value: Any) -> Checkpoint | None:
    """The parameter ``checkpoint`` of an estimator: None, a path or a Checkpoint."""
    if value is None:
        return None
    value = Checkpoint(value) if isinstance(value, str | os.PathLike) else value
    if not isinstance(value, Checkpoint):
        raise ValueError(f"checkpoint must be None, a path or a Checkpoint, got {value!r}")
    if not isinstance(value.path, str | os.PathLike) or str(value.path) in ("", "-"):
        raise ValueError(f"checkpoint must have the path of a file, got {value.path!r}")
    check_number("every of checkpoint", value.every, at_least=0.0)
    check_flag("resume of checkpoint", value.resume)
    return value


@dataclass(frozen=True)
class Known:
    """What a checkpoint knows about a problem: its result, a state to continue from, or a start."""

    result: SolveResult | None = None
    state: dict[str, Any] | None = None
    start: np.ndarray | None = None


@dataclass
class CheckpointFile:
    """The checkpoint file of one fit.

    Attributes
    ----------
    before : dict of str to str
        The parameters of the fit that wrote the file, as text; empty if there was none.

    Parameters
    ----------
    checkpoint : Checkpoint
    estimator : str
        Name of the class.
    parameters : dict
        Of the estimator.
    fit_key : str
        What determines the iterations of the fit, besides the data and the problems.
    data : bytes
        Digest of the data.
    """

    checkpoint: Checkpoint
    estimator: str
    parameters: dict[str, Any]
    fit_key: str
    data: bytes
    before: dict[str, str] = field(init=False, default_factory=dict)
    # For each problem that is done, its result and its digest.
    _solved: list[tuple[SolveResult, bytes]] = field(init=False, default_factory=list)
    # The same, read from the file, for problems that this fit has not reached yet; and the state
    # of the problem after these.
    _waiting: list[tuple[SolveResult, bytes]] = field(init=False, default_factory=list)
    _state: dict[str, Any] | None = field(init=False, default=None)
    _state_digest: bytes = field(init=False, default=b"")
    _others: str = field(init=False, default="")  # parameters that are not the same as in the file
    _last: dict[str, Any] | None = field(init=False, default=None)  # state of the current problem
    _last_digest: bytes = field(init=False, default=b"")
    _written: float = field(init=False, default=-math.inf)
    _closed: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._path = Path(self.checkpoint.path)
        self._parameters = {k: f"{plain(value)!r:.100}" for k, value in self.parameters.items()}
        if self.checkpoint.resume and self._path.exists():
            self._open()

    # -- going on -------------------------------------------------------------

    def _open(self) -> None:
        from ..store import container
        from ..store.values import Decoder

        name = str(self._path)
        file = container.read(self._path)
        if file.header.kind != KIND:
            raise ValueError(f"{name} is not a checkpoint but a model file of {file.header.kind}")
        with container.reading(name):
            content = Decoder(file.arrays).decode(file.header.content)
            facts = (content["estimator"], content["parameters"], content["course"])
            data, state, of_state = content["data"], content["state"], content["problem"]
            solved = [(result, digest) for result, digest in content["solved"]]
            if not isinstance(facts[1], dict) or not isinstance(state, dict):
                raise ValueError("parameters or state are missing")
            for result, _ in solved:
                _check_result(result)
                # In a linear model the w of all problems have the same shape. The state of a kernel
                # machine is compared with its problem.
                if "best" in state and result.w.shape != state["best"]["w"].shape:
                    raise ValueError("a result has weights of another length")
        self._check(*facts, data)
        self.before = facts[1]
        self._waiting, self._state, self._state_digest = solved, state, of_state
        logger.info("going on from the checkpoint %s", name)

    def _check(self, estimator: str, was: dict[str, str], fit_key: str, data: bytes) -> None:
        now = self._parameters
        differences = [
            f"{key} was {was.get(key)}, is {now.get(key)}"
            for key in sorted(set(was) | set(now), key=str)
            if key not in FREE and was.get(key) != now.get(key)
        ]
        self._others = "; ".join(differences)
        if estimator != self.estimator:
            raise ValueError(
                f"{self._path} is a checkpoint of {estimator}, not of {self.estimator}; {REMEDY}"
            )
        if fit_key != self.fit_key:
            raise ValueError(
                f"{self._path} is a checkpoint of a fit with other parameters ({self._others}); "
                f"{REMEDY}"
            )
        if data != self.data:
            raise self._refusal("X")

    def _refusal(self, data: str) -> ValueError:
        cause = f"parameters ({self._others})" if self._others else f"data ({data})"
        return ValueError(f"{self._path} is a checkpoint of a fit with other {cause}; {REMEDY}")

    def begin(self, digest: bytes, done: Callable[[SolveResult], bool]) -> Known:
        """What the file contains about the next problem.

        Parameters
        ----------
        digest : bytes
            Digest of the problem.
        done : callable
            Takes a result; returns whether it is good enough, or cannot become better.
        """
        self._last, self._last_digest = None, digest
        if self._waiting:
            result, known = self._waiting.pop(0)
            if known != digest:
                raise self._refusal("y or sample_weight")
            if not done(result):  # the stopping rule is stricter than in the first fit
                return Known(start=result.w)
            self._solved.append((result, digest))
            return Known(result=result)
        if self._state is None:
            return Known()
        state, self._state = self._state, None
        if self._state_digest != digest:
            raise self._refusal("y or sample_weight")
        return Known(state=state)

    def damaged(self, error: Exception) -> ValueError:
        """The error for a state from which a solver cannot continue."""
        from ..store import container

        return container.damaged(str(self._path), f"its state does not fit together ({error})")

    # -- writing --------------------------------------------------------------

    def due(self) -> bool:
        """Whether to write now: it is time, or the file has no state of the current problem yet."""
        return self._last is None or time.monotonic() - self._written >= self.checkpoint.every

    def record(self, state: dict[str, Any]) -> None:
        """Keep the state of the current problem, and write it if it is time."""
        self._last = state
        if self.due():
            self._write(strict=self._written == -math.inf)

    def end(self, result: SolveResult, last: bool) -> None:
        """The current problem has ended; ``last`` tells whether it was the fit's last problem."""
        if self._closed:
            return
        done = result.status in DONE
        if self._last is not None and (last or not done):
            self._write(strict=False)
        if done:
            self._solved.append((result, self._last_digest))
        self._closed = not done

    def _write(self, strict: bool) -> None:
        """Write the file. A failure during a fit is logged, and the fit continues."""
        if self._closed:
            return
        from ..store import container
        from ..store.values import Encoder

        encoder = Encoder()
        content = encoder.encode(
            {
                "estimator": self.estimator,
                "parameters": self._parameters,
                "course": self.fit_key,
                "data": self.data,
                "solved": self._solved,
                "problem": self._last_digest,
                "state": self._last,
            }
        )
        try:
            container.write(self._path, KIND, content, encoder.arrays)
        except OSError as error:
            if strict:
                raise
            message = f"the checkpoint could not be written, the last one stays: {error}"
            logger.warning(message)
            warnings.warn(message, UserWarning, stacklevel=2)
        self._written = time.monotonic()


def _check_result(result: Any) -> None:
    """Refuse a result that a fit would not have written."""
    if not isinstance(result, SolveResult) or not isinstance(result.certificate, Certificate):
        raise ValueError("results are missing")
    w, certificate = result.w, result.certificate
    if not isinstance(w, np.ndarray) or w.dtype != np.float64 or not np.isfinite(w).all():
        raise ValueError("the weights of a result are not finite numbers")
    numbers = (result.bias, certificate.primal, certificate.dual, *result.timings.values())
    if not all(type(number) is float for number in numbers) or not math.isfinite(result.bias):
        raise ValueError("what should be numbers of a result is something else")
    if not (
        isinstance(result.status, Status)
        and type(result.n_iter) is int
        and type(certificate.kind) is str
        and isinstance(result.trace, tuple)
        and all(isinstance(record, Iteration) for record in result.trace)
    ):
        raise ValueError("a result is not as it was written")
