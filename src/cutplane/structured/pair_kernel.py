"""A kernel between pairs of input and output: its values, kept where they can be, and scores.

    score(x, z) = Σ_j coef_j·k((x_j, z_j), (x, z))

Pairs that inference has asked for are known by a number. Those in the sum, the *basis*, grow with
the cuts; values of all known pairs with the basis are kept, so that every value is computed
once, while they fit into memory.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from .problem import (
    RESCALINGS,
    Trial,
    call,
    check_truth,
    count_of,
    has_batch,
    losses_of,
    take,
    tried,
)

# Values that are kept, at most.
STORED_BYTES = 1 << 29
# Asymmetry, relative to the size of the values, that is rounding.
SYMMETRY = 1e-8


def key_of(z: Any) -> Hashable:
    """What tells outputs apart."""
    if isinstance(z, np.ndarray):
        return (z.shape, z.dtype.str, z.tobytes())
    if isinstance(z, list | tuple):
        return (type(z).__name__, *map(key_of, z))
    try:
        hash(z)
    except TypeError:
        return pickle.dumps(z)
    return z


def pair_values(problem: Any, X: Sequence[Any], Y: Any, X2: Sequence[Any], Y2: Any) -> np.ndarray:
    """The kernel of every pair (x, y) with every pair (x2, y2), checked."""
    if has_batch(problem, "pair_kernel"):
        values = problem.pair_kernel_batch(X, Y, X2, Y2)
    else:
        values = [
            [problem.pair_kernel(x, y, x2, y2) for x2, y2 in zip(X2, Y2, strict=True)]
            for x, y in zip(X, Y, strict=True)
        ]
    shape = (count_of(X), count_of(X2))
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"pair_kernel must give a number: {error}") from error
    if found.size == 0:
        found = found.reshape(shape)
    if found.shape != shape:
        raise ValueError(
            "pair_kernel must give a number, and pair_kernel_batch one for every two pairs: "
            f"{shape} of them, got {found.shape}"
        )
    if not np.all(np.isfinite(found)):
        raise ValueError(f"pair_kernel gave {found[~np.isfinite(found)][0]}, not a finite number")
    return found


class PairScore:
    """What inference is told of a model with a kernel between pairs, for one input.

    ``score(z)`` is the score of an output, ``score.of(outputs)`` an array of those of several.

    Parameters
    ----------
    of : callable
        Gives the scores of a list of outputs.
    """

    def __init__(self, of: Callable[[Sequence[Any]], np.ndarray]) -> None:
        self.of = of

    def __call__(self, z: Any) -> float:
        """The score of an output."""
        return float(self.of([z])[0])


class PairScores:
    """The same for several inputs: what batch forms get. ``scores[i]`` is that of the i-th."""

    def __init__(self, count: int, of: Callable[[int, Sequence[Any]], np.ndarray]) -> None:
        self._count = count
        self._of = of

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, i: int) -> PairScore:
        if not 0 <= i < self._count:
            raise IndexError(i)
        return PairScore(lambda outputs: self._of(i, outputs))


class KnownPairs:
    """Pairs that have a number, and their kernel values with those of the basis.

    The first N are the training examples.

    Attributes
    ----------
    computed : int
        Kernel values.
    inputs : list of int
        The example of each pair.
    outputs : list
        The output of each pair.
    basis : list of int
        Pairs that expansions are made of, by number.
    """

    dtype = np.dtype(np.float64)
    amplification = 0.0  # values are what the user's function says

    def __init__(self, problem: Any, X: Sequence[Any], Y: Sequence[Any]) -> None:
        self._problem, self._X = problem, X
        count = count_of(X)
        self.computed = 0
        self.inputs = list(range(count))
        self.outputs = [Y[i] for i in range(count)]
        self._number = {(i, key_of(Y[i])): i for i in range(count)}
        self.basis: list[int] = []
        self._place: dict[int, int] = {}
        self._diagonal: list[float] = []
        self._row: dict[int, int] = {}  # of the values of a pair that were asked for
        self._values: np.ndarray | None = np.zeros((8, 64))
        self._filled = np.zeros(8, dtype=np.int64)

    @property
    def columns(self) -> int:
        """Size of the basis."""
        return len(self.basis)

    @property
    def diagonal(self) -> np.ndarray:
        """Values of the basis' pairs with themselves."""
        for place in range(len(self._diagonal), self.columns):
            number = self.basis[place]
            row = self._row.get(number, -1)
            if self._values is not None and row >= 0 and self._filled[row] > place:
                self._diagonal.append(float(self._values[row, place]))
            else:
                self._diagonal.append(float(self._compute([number], [number])[0, 0]))
        return np.array(self._diagonal)

    def number(self, i: int, z: Any) -> int:
        """The number of a pair."""
        key = (i, key_of(z))
        if key not in self._number:
            self._number[key] = len(self.inputs)
            self.inputs.append(i)
            self.outputs.append(z)
        return self._number[key]

    def places(self, numbers: np.ndarray) -> np.ndarray:
        """Where pairs are in the basis, which they become part of."""
        for number in numbers.tolist():
            if number not in self._place:
                self._place[number] = len(self.basis)
                self.basis.append(number)
        return np.array([self._place[number] for number in numbers.tolist()], dtype=np.int64)

    def values(self, numbers: np.ndarray) -> np.ndarray:
        """Kernel values of pairs with the basis."""
        columns, row = self.columns, self._row
        if self._values is not None:
            at = np.array([row.setdefault(k, len(row)) for k in numbers.tolist()], dtype=np.int64)
        if not self._room(len(row), columns):
            return self._compute(numbers.tolist(), self.basis)
        assert self._values is not None
        _, firsts = np.unique(at, return_index=True)
        behind = firsts[self._filled[at[firsts]] < columns]
        for filled in np.unique(self._filled[at[behind]]):
            some = behind[self._filled[at[behind]] == filled]
            self._values[at[some], filled:columns] = self._compute(
                numbers[some].tolist(), self.basis[filled:]
            )
        self._filled[at[behind]] = columns
        return self._values[at, :columns]

    def _compute(self, left: list[int], right: list[int]) -> np.ndarray:
        """Values of pairs with others."""
        self.computed += len(left) * len(right)
        return pair_values(
            self._problem,
            take(self._X, [self.inputs[k] for k in left]),
            [self.outputs[k] for k in left],
            take(self._X, [self.inputs[k] for k in right]),
            [self.outputs[k] for k in right],
        )

    def _room(self, rows: int, columns: int) -> bool:
        """Make room for so many values; false if they are too many to be kept."""
        if self._values is None:
            return False
        have = self._values.shape
        if rows > have[0] or columns > have[1]:
            shape = tuple(
                max(h, n + n // 2) if n > h else h
                for h, n in zip(have, (rows, columns), strict=True)
            )
            if shape[0] * shape[1] * 8 > STORED_BYTES:
                self._values = None
                return False
            grown = np.zeros(shape)
            grown[: have[0], : have[1]] = self._values
            self._values = grown
            self._filled = np.concatenate([self._filled, np.zeros(shape[0] - have[0], np.int64)])
        return True


def try_pairs(problem: Any, X: Sequence[Any], Y: Sequence[Any], rescaling: str) -> None:
    """Try a problem with a kernel between pairs on a few examples.

    Checks that the kernel is symmetric, and what is checked of every problem.
    """
    which = tried(count_of(X))
    inputs, outputs = take(X, which), [Y[i] for i in which]
    values = pair_values(problem, inputs, outputs, inputs, outputs)
    apart = np.abs(values - values.T)
    if np.max(apart) > SYMMETRY * np.max(np.abs(values)):
        a, b = divmod(int(np.argmax(apart)), len(which))
        raise ValueError(
            f"pair_kernel must be symmetric, but it is {values[a, b]:g} for examples {which[a]} "
            f"and {which[b]}, and {values[b, a]:g} the other way round"
        )
    if np.min(np.diagonal(values)) < 0.0:
        a = int(np.argmin(np.diagonal(values)))
        raise ValueError(
            f"pair_kernel of a pair with itself must be ≥ 0, got {values[a, a]:g} for example "
            f"{which[a]}"
        )
    rng = np.random.default_rng(0)
    for coef in (np.zeros(len(which)), rng.normal(size=len(which))):
        for i in which:
            x, y = take(X, [i]), take(Y, [i])
            check_truth(problem, i, y)
            scores = new_scores(problem, x, inputs, outputs, coef)
            worst = call(problem, RESCALINGS[rescaling], i, (x, y, scores))
            loss = float(losses_of(problem, i, y, worst)[0])
            guess = call(problem, "predict", i, (x, scores))
            found = (scores[0](z[0]) for z in (y, worst, guess))
            Trial(loss, *found).check(problem, i, rescaling)


def new_scores(
    problem: Any, X: Sequence[Any], inputs: Sequence[Any], outputs: Any, coef: np.ndarray
) -> PairScores:
    """Scores of inputs under a model: Σ_j coef_j·k((input_j, output_j), ·)."""

    def of(i: int, found: Sequence[Any]) -> np.ndarray:
        values = pair_values(problem, [X[i]] * len(found), list(found), inputs, outputs)
        return values @ coef

    return PairScores(count_of(X), of)
