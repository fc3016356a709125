"""What is solved: minimise ½|w|² + C·total·risk over the data at hand."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..cluster.rows import RemoteMatrix
from ..data import BlockedMatrix
from ..exec import Executor
from ..oracles import LinearOracle, Oracle, RowOracle, WholeSurface
from ..oracles.structured import JointModel, StructuredOracle
from ..risks import Risk, Targets, WholeRisk
from ._form import NearlyFreeBias


class Data(Protocol):
    """What a session needs to know of its data itself; the problems know the rest."""

    def digest(self) -> bytes:
        """A fingerprint."""
        ...


@dataclass(frozen=True)
class Problem(ABC):
    """One risk on the session's data.

    Attributes
    ----------
    label : str
        For progress and logs.
    constant : float
        Value of the constant feature behind a regularised bias; 0 for none.
    """

    label: str
    constant: float

    @property
    @abstractmethod
    def total(self) -> float:
        """What turns the risk of the loop into that of the user's objective."""

    @abstractmethod
    def oracle(self, matrix: Any, executor: Executor) -> Oracle:
        """The problem on the session's data."""

    @abstractmethod
    def digest(self) -> bytes:
        """Identifies the risk and its targets."""


@dataclass(frozen=True)
class RowProblem(Problem):
    """A risk that is a sum over rows: C multiplies the sum of the losses.

    Attributes
    ----------
    targets : Targets
    risk : Risk
    free_bias : bool
        Whether there is an unregularised bias.
    nearly_free : NearlyFreeBias or None
        If the constant feature stands for an unregularised bias.
    """

    targets: Targets
    risk: Risk
    free_bias: bool
    nearly_free: NearlyFreeBias | None = None

    @property
    def total(self) -> float:
        return self.targets.total

    def oracle(self, matrix: BlockedMatrix | RemoteMatrix, executor: Executor) -> RowOracle:
        return RowOracle(
            matrix,
            self.targets,
            self.risk,
            executor,
            constant=self.constant,
            free_bias=self.free_bias,
            slack=self.nearly_free.slack if self.nearly_free else None,
        )

    def digest(self) -> bytes:
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr((self.risk, self.constant, self.free_bias)).encode())
        digest.update(self.targets.labels.data)
        digest.update(self.targets.weights.data)
        return digest.digest()

    def carried(self, dual_point: np.ndarray, factor: float) -> np.ndarray:
        """A dual point divided by C, for another C: ``factor`` is the old one by the new one.

        Rows of a loss with kinks stay at their bound. Where the others' margins are 1 their α
        hardly depends on C, so that α/C changes by the factor.
        """
        if self.risk.smooth:
            return dual_point
        weights = self.targets.weights
        held = dual_point >= weights * (1.0 - 1e-12)
        return np.where(held, weights, np.minimum(dual_point * factor, weights))


@dataclass(frozen=True)
class WholeProblem(Problem):
    """A risk of all scores at once: C multiplies the risk."""

    risk: WholeRisk

    @property
    def total(self) -> float:
        return 1.0

    def oracle(self, matrix: BlockedMatrix | RemoteMatrix, executor: Executor) -> LinearOracle:
        return LinearOracle(matrix, WholeSurface(self.risk, executor), constant=self.constant)

    def digest(self) -> bytes:
        return self.risk.digest() + repr(self.constant).encode()


@dataclass(frozen=True)
class JointProblem(Problem):
    """A structured problem, whose model is the session's data: C multiplies the mean risk."""

    @property
    def total(self) -> float:
        return 1.0

    def oracle(self, matrix: JointModel, executor: Executor) -> StructuredOracle:
        return StructuredOracle(matrix, executor)

    def digest(self) -> bytes:
        return b""
