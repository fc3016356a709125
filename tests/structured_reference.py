"""Structured problems by brute force: every labelling, and the QP with every constraint."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from cutplane.structured.chain import ChainShape, ChainWeights


def labellings(length: int, labels: int) -> list[np.ndarray]:
    return [np.array(z, dtype=np.int64) for z in itertools.product(range(labels), repeat=length)]


def chain_score(scores: np.ndarray, chain: Sequence[np.ndarray], z: np.ndarray) -> float:
    """``chain`` has second order, perhaps empty, transitions, begin and finish."""
    if len(z) == 0:
        return 0.0
    second, transitions, begin, finish = chain
    total = begin[z[0]] + finish[z[-1]] + sum(scores[t, k] for t, k in enumerate(z))
    total += sum(transitions[j, k] for j, k in itertools.pairwise(z))
    if second.size:
        total += sum(second[j, i, k] for i, j, k in zip(z, z[1:], z[2:], strict=False))
    return float(total)


def chain_loss(name: str, y: np.ndarray, z: np.ndarray) -> float:
    wrong = int(np.sum(np.asarray(y) != np.asarray(z)))
    return float(wrong if name == "hamming" else wrong > 0)


def chain_feature(shape: ChainShape, x: np.ndarray, z: Sequence[int]) -> np.ndarray:
    """Ψ(x, z), counted token by token."""
    parts = ChainWeights(
        np.zeros((shape.features, shape.labels)),
        np.zeros((shape.labels if shape.order == 2 else 0,) * 3),
        np.zeros((shape.labels, shape.labels)),
        np.zeros(shape.labels),
        np.zeros(shape.labels),
    )
    for t, k in enumerate(z):
        parts.emissions[:, k] += x[t]
        if t:
            parts.transitions[z[t - 1], k] += 1.0
        if t > 1 and shape.order == 2:
            parts.second[z[t - 1], z[t - 2], k] += 1.0
    if len(z):
        parts.begin[z[0]] += 1.0
        parts.finish[z[-1]] += 1.0
    return shape.pack(parts)


@dataclass(frozen=True)
class Enumerated:
    """A problem with all its outputs: per example, rows Ψ(x, z) − Ψ(x, y) and losses."""

    rows: list[np.ndarray]
    losses: list[np.ndarray]
    rescaling: str = "margin"

    @classmethod
    def make(
        cls,
        X: Sequence,
        Y: Sequence,
        outputs: Callable,
        feature: Callable,
        loss: Callable,
        rescaling: str = "margin",
    ) -> Enumerated:
        rows, losses = [], []
        for x, y in zip(X, Y, strict=True):
            every = outputs(x)
            delta = np.array([loss(y, z) for z in every], dtype=float)
            difference = np.array([feature(x, z) - feature(x, y) for z in every])
            rows.append(difference * delta[:, None] if rescaling == "slack" else difference)
            losses.append(delta)
        return cls(rows, losses, rescaling)

    def risks(self, w: np.ndarray) -> np.ndarray:
        """Per example the largest loss."""
        return np.array([np.max(d + r @ w) for r, d in zip(self.rows, self.losses, strict=True)])

    def objective(self, w: np.ndarray, C: float) -> float:
        return 0.5 * float(w @ w) + C * float(np.sum(self.risks(w)))

    def optimum(self, C: float) -> float:
        """By a general solver on (w, ξ) with every constraint, which starts at a feasible point."""
        examples, dimension = len(self.rows), self.rows[0].shape[1]
        C = C * examples  # of the mean
        A = np.vstack(
            [
                np.hstack([-r, np.tile(np.eye(examples)[i], (len(r), 1))])
                for i, r in enumerate(self.rows)
            ]
        )
        b = np.concatenate(self.losses)
        A[:, :dimension] *= np.sqrt(C)  # w = √C·u keeps all numbers of the same size
        start = np.concatenate([np.zeros(dimension), self.risks(np.zeros(dimension))])
        found = minimize(
            lambda v: 0.5 * v[:dimension] @ v[:dimension] + v[dimension:].mean(),
            start,
            jac=lambda v: np.concatenate([v[:dimension], np.full(examples, 1.0 / examples)]),
            constraints={"type": "ineq", "fun": lambda v: A @ v - b, "jac": lambda v: A},
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 2000},
        )
        assert found.success, found.message
        return C * float(found.fun)


def random_chains(
    seed: int = 0, *, lengths: Sequence[int] = (3, 1, 0, 2, 3), features: int = 2, labels: int = 3
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sequences of unequal lengths, one of them empty; every label occurs."""
    rng = np.random.default_rng(seed)
    Y = [rng.integers(0, labels, length) for length in lengths]
    flat = np.concatenate(Y)
    for k in range(labels):
        flat[k] = k
    Y = np.split(flat, np.cumsum(lengths)[:-1])
    centres = rng.normal(size=(labels, features))
    X = [centres[y] + 0.7 * rng.normal(size=(len(y), features)) for y in Y]
    return X, Y


def enumerated_chains(
    X: Sequence[np.ndarray], Y: Sequence[np.ndarray], shape: ChainShape, loss: str
) -> Enumerated:
    return Enumerated.make(
        X,
        Y,
        lambda x: labellings(len(x), shape.labels),
        lambda x, z: chain_feature(shape, x, z),
        lambda y, z: chain_loss(loss, y, z),
    )
