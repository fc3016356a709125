"""The interface for a new output space: ``Problem``, which a user derives from.

    R(w) = (1/N) Σ_i max_z [Δ(y_i, z) + score(x_i, z) − score(x_i, y_i)]        margin rescaling
    R(w) = (1/N) Σ_i max_z  Δ(y_i, z)·[1 + score(x_i, z) − score(x_i, y_i)]     slack rescaling

A problem defines its scores in one of two ways:

    score(x, z) = <w, Ψ(x, z)>                                            joint features
    score(x, z) = Σ_p Σ_k a_pk(x, z)·f_k(u_p(x)) + <w, plain(x, z)>       parts

The parts u_p of an input do not depend on the output; their coefficients a do. The functions f_k
are linear, f_k(u) = <W_k, u>, or lie in the feature space of a kernel. Joint features are a case of
the second way, without parts and with plain = Ψ, so the code below handles only the second way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse

from . import rows

MARGIN, SLACK = "margin", "slack"
RESCALINGS = {MARGIN: "most_violated", SLACK: "most_violated_slack"}


class Problem:
    """An output space for :class:`~cutplane.StructuredSVM`: its outputs, and how to search them.

    Inputs x and outputs y may be anything. Write ``loss``, ``most_violated``, ``predict``, and
    either ``joint_feature`` or ``parts`` with ``part_coefficients``. With parts the model may have
    a kernel. If a problem has joint features and parts, its parts are used. Methods must not keep
    state.

    Every method except ``prepare`` has a form for many examples at once, with ``_batch`` after its
    name. It gets lists and returns a list, an array or a matrix with a row per example. If numpy or
    compiled code handles many examples faster, write this form in place of the other.

    Attributes
    ----------
    exact : bool, default=True
        Whether ``most_violated`` always finds the maximum. If not, as with beam search,
        the upper bound of the certificate is an estimate, and its ``kind`` says so.
    releases_gil : bool, default=False
        Whether threads can run the inference side by side. If not, processes run it.
    """

    exact: bool = True
    releases_gil: bool = False

    def prepare(self, X: Sequence[Any], Y: Sequence[Any]) -> Any:
        """Return the problem for these training data, for instance with the labels that occur."""
        return self

    def loss(self, y: Any, z: Any) -> float:
        """Δ(y, z) ≥ 0, the cost of the answer z if y is true; 0 for z = y."""
        raise NotImplementedError

    def most_violated(self, x: Any, y: Any, score: Score) -> Any:
        """The output z with the largest Δ(y, z) + score(z)."""
        raise NotImplementedError

    def most_violated_slack(self, x: Any, y: Any, score: Score) -> Any:
        """The output z with the largest Δ(y, z)·(1 + score(z) − score(y)), for slack rescaling."""
        raise NotImplementedError

    def predict(self, x: Any, score: Score) -> Any:
        """The output z with the largest score(z)."""
        raise NotImplementedError

    def joint_feature(self, x: Any, y: Any) -> Any:
        """Ψ(x, y): an array or a sparse vector, always of the same length."""
        raise NotImplementedError

    def parts(self, x: Any) -> Any:
        """The parts u_p of x: an array or sparse matrix with a row per part.

        ``parts_batch(X)`` returns the parts of all inputs, one below the other, and an array with
        the number of parts of each input.
        """
        raise NotImplementedError

    def part_coefficients(self, x: Any, y: Any) -> Any:
        """The coefficients a_pk: an array or sparse matrix, shape (parts of x, K)."""
        raise NotImplementedError

    def plain_feature(self, x: Any, y: Any) -> Any:
        """Optional features besides the parts, each with a weight, as from ``joint_feature``."""
        raise NotImplementedError

    def loss_batch(self, Y: Any, Z: Any) -> Any:
        """Losses of several outputs."""
        raise NotImplementedError

    def most_violated_batch(self, X: Any, Y: Any, scores: Scores) -> Any:
        """The most violated outputs of several examples."""
        raise NotImplementedError

    def most_violated_slack_batch(self, X: Any, Y: Any, scores: Scores) -> Any:
        """The most violated outputs of several examples, for slack rescaling."""
        raise NotImplementedError

    def predict_batch(self, X: Any, scores: Scores) -> Any:
        """The outputs with the highest scores, for several inputs."""
        raise NotImplementedError

    def joint_feature_batch(self, X: Any, Y: Any) -> Any:
        """Joint features of several examples: a matrix with a row per example."""
        raise NotImplementedError

    def parts_batch(self, X: Any) -> tuple[Any, Any]:
        """The parts of several inputs, one below the other, and how many each input has."""
        raise NotImplementedError

    def part_coefficients_batch(self, X: Any, Y: Any) -> Any:
        """The coefficients of the parts of several examples, one below the other."""
        raise NotImplementedError

    def plain_feature_batch(self, X: Any, Y: Any) -> Any:
        """Plain features of several examples: a matrix with a row per example."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Score:
    """The scores of a model for one input: ``score(z)`` is the score of an output. For inference.

    Parameters
    ----------
    problem : Problem
    x : input
    w : array-like
        Weights of the joint features. With parts, weights of the plain features.
    parts : array-like, shape (parts of the input, K), optional
        Scores of the parts: f_k of part p at [p, k].

    Attributes
    ----------
    w, parts : ndarray
        See the parameters. Do not change them.
    """

    def __init__(self, problem: Any, x: Any, w: Any, parts: Any = None) -> None:
        self._problem, self._x = problem, x
        self.w = np.asarray(w, dtype=np.float64)
        self.parts = np.zeros((0, 0)) if parts is None else np.asarray(parts, dtype=np.float64)

    def __call__(self, z: Any) -> float:
        """The score of an output."""
        X, Z = [self._x], [z]
        plain = plain_of(self._problem, [0], X, Z, len(self.w))
        score = float((plain @ self.w)[0])
        if self.parts.size:
            counts = np.array([len(self.parts)])
            coef = coefficients_of(self._problem, [0], X, Z, counts, self.parts.shape[1])
            score += float(np.einsum("ij,ij->", coef, self.parts))
        return score


class Scores:
    """The scores of a model for several inputs: ``scores[i]`` is the ``Score`` of input i.

    Batch forms get this object in place of a ``Score``.

    Attributes
    ----------
    w : ndarray
    parts : ndarray, shape (parts of all inputs, K)
    starts : ndarray, shape (inputs + 1,)
        Where the parts of each input begin.
    """

    def __init__(
        self, problem: Any, X: Sequence[Any], w: np.ndarray, parts: np.ndarray, counts: np.ndarray
    ) -> None:
        self._problem, self._X = problem, X
        self.parts, self.w = parts.view(), w.view()
        self.parts.flags.writeable = self.w.flags.writeable = False
        self.starts = np.concatenate([[0], np.cumsum(counts)])

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> Score:
        if not 0 <= i < len(self):
            raise IndexError(i)
        own = self.parts[self.starts[i] : self.starts[i + 1]]
        return Score(self._problem, self._X[i], self.w, own)


# -- what a problem has ---------------------------------------------------------------


def check_problem(problem: Any, rescaling: str, kernel: bool) -> None:
    """Raise an error if the problem lacks a method that a fit needs."""
    if isinstance(problem, type):
        raise ValueError(f"problem must be an object, not a class: write {problem.__name__}()")
    by_parts = kernel or has_parts(problem)
    features = ("parts", "part_coefficients") if by_parts else ("joint_feature",)
    needed = (*features, "loss", RESCALINGS[rescaling], "predict")
    missing = [name for name in needed if not has(problem, name)]
    if not missing:
        return
    why = ""
    if missing == ["most_violated_slack"]:
        why = "; slack rescaling needs it"
    elif kernel and set(missing) & set(features):
        why = "; a kernel needs it"
        if has(problem, "joint_feature"):
            why += "; it has what is needed for kernel=None"
    names = ", ".join(f"{name}({', '.join(_parameters(name))})" for name in missing)
    raise ValueError(f"{type(problem).__name__} lacks {names}{why}")


def _parameters(name: str) -> list[str]:
    """The parameters of a problem's method, for messages."""
    return list(inspect.signature(getattr(Problem, name)).parameters)[1:]


def _written(problem: Any, name: str) -> bool:
    """Whether a problem has a method that is not the placeholder of ``Problem``."""
    method = getattr(problem, name, None)
    return callable(method) and getattr(method, "__func__", method) is not getattr(
        Problem, name, None
    )


def has(problem: Any, name: str) -> bool:
    """Whether the problem has a method, in one form or the other."""
    return _written(problem, name) or has_batch(problem, name)


def has_batch(problem: Any, name: str) -> bool:
    """Whether the problem has a method's form for many examples at once."""
    return _written(problem, f"{name}_batch")


def has_parts(problem: Any) -> bool:
    """Whether the problem's scores are made of parts."""
    return has(problem, "parts")


# -- its answers, checked -------------------------------------------------------------


def count_of(values: Any) -> int:
    """Number of examples in a list or matrix."""
    return values.shape[0] if hasattr(values, "shape") else len(values)


def take(values: Any, which: Sequence[int]) -> Any:
    """Some examples of a list or matrix."""
    return values[which] if hasattr(values, "shape") else [values[i] for i in which]


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Add a note to an error of the user's method, which says for which example it was raised."""
    try:
        yield
    except Exception as error:
        error.add_note(where)
        raise


def call(problem: Any, name: str, numbers: Sequence[int], lists: Sequence[Any]) -> Any:
    """Call a method for many examples, by its batch form if there is one.

    Parameters
    ----------
    problem : Problem
    name : str
    numbers : sequence of int
        Numbers of the examples, for messages.
    lists : sequence of lists
        The arguments, each as a list with an entry per example.
    """
    count = count_of(lists[0])
    if has_batch(problem, name):
        with _at(f"raised by {name}_batch for examples {_range(numbers)}"):
            answer = getattr(problem, f"{name}_batch")(*lists)
        size = count_of(answer)
        if size != count:
            raise ValueError(f"{name}_batch gave {size} answers for {count} examples")
        return answer
    method: Callable[..., Any] = getattr(problem, name)
    answers = []
    for i in range(count):
        arguments = [values[i] for values in lists]
        with _at(f"raised by {name} for example {numbers[i]}"):
            answers.append(method(*arguments))
    return answers


def _range(numbers: Sequence[int]) -> str:
    return f"{numbers[0]} to {numbers[-1]}" if len(numbers) else "of an empty list"


def losses_of(
    problem: Any, numbers: Sequence[int], Y: Sequence[Any], Z: Sequence[Any]
) -> np.ndarray:
    """Losses, each a finite number ≥ 0."""
    answer = call(problem, "loss", numbers, (Y, Z))
    try:
        losses = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"loss must give a number: {error}") from error
    if losses.shape != (count_of(Y),):
        raise ValueError(f"loss must give one number per example, got shape {losses.shape}")
    bad = ~(np.isfinite(losses) & (losses >= 0.0))
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(
            f"loss must be a finite number ≥ 0, got {losses[i]} for example {numbers[i]}"
        )
    return losses


def plain_of(
    problem: Any, numbers: Sequence[int], X: Sequence[Any], Y: Sequence[Any], dimension: int | None
) -> rows.Rows:
    """The joint features of some examples, or with parts the plain features; a row per example.

    Rows have length 0 if the problem has parts and no plain features.
    """
    name = "plain_feature" if has_parts(problem) else "joint_feature"
    if not has(problem, name):
        return scipy.sparse.csr_array((count_of(X), 0))
    return rows.stack(call(problem, name, numbers, (X, Y)), numbers, dimension, name)


def parts_of(problem: Any, X: Sequence[Any]) -> tuple[Any, np.ndarray]:
    """The parts of inputs, one below the other, and how many each input has."""
    count = count_of(X)
    if not has_parts(problem):
        return np.zeros((0, 0)), np.zeros(count, dtype=np.int64)
    if has_batch(problem, "parts"):
        return _parts_batch(problem, X, count)
    found = [_part_matrix(p, i) for i, p in enumerate(call(problem, "parts", range(count), (X,)))]
    width = found[0].shape[1] if found else 0
    for i, matrix in enumerate(found):
        if matrix.shape[1] != width:
            raise ValueError(
                f"parts must always have the same width: it is {matrix.shape[1]} for example "
                f"{i}, {width} for others"
            )
    counts = np.array([matrix.shape[0] for matrix in found], dtype=np.int64)
    if any(scipy.sparse.issparse(matrix) for matrix in found):
        return scipy.sparse.csr_array(scipy.sparse.vstack(found, "csr")), counts
    return (np.concatenate(found) if found else np.zeros((0, 0))), counts


def _parts_batch(problem: Any, X: Sequence[Any], count: int) -> tuple[Any, np.ndarray]:
    answer = problem.parts_batch(X)
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise ValueError(
            "parts_batch must give a matrix with the parts of all inputs, and how many each has"
        )
    matrix = answer[0] if scipy.sparse.issparse(answer[0]) else np.asarray(answer[0])
    if matrix.ndim != 2:
        raise ValueError(f"parts_batch must give a matrix, got {matrix.ndim} dimensions")
    counts = np.asarray(answer[1], dtype=np.int64)
    if counts.shape != (count,) or counts.min(initial=0) < 0:
        raise ValueError(f"parts_batch must give one number of parts for each of {count} inputs")
    if counts.sum() != matrix.shape[0]:
        raise ValueError(
            f"parts_batch gave {matrix.shape[0]} parts, but the inputs have {counts.sum()}"
        )
    return matrix, counts


def _part_matrix(value: Any, example: int) -> Any:
    if scipy.sparse.issparse(value):
        return scipy.sparse.csr_array(value)
    matrix = rows.numbers_of(value, "parts must give a matrix of numbers", f"example {example}")
    if matrix.ndim != 2:
        raise ValueError(
            f"parts must give a matrix with a row per part, got {matrix.ndim} dimensions for "
            f"example {example}"
        )
    return matrix


def coefficients_of(
    problem: Any,
    numbers: Sequence[int],
    X: Sequence[Any],
    Y: Sequence[Any],
    counts: np.ndarray,
    outputs: int | None,
) -> np.ndarray:
    """The coefficients of the parts of some examples, one below the other.

    Parameters
    ----------
    numbers : sequence of int
        Of the examples, for messages.
    counts : ndarray
        Parts of each example.
    outputs : int or None
        K; None takes K from the first example.
    """
    if not has_parts(problem):
        return np.zeros((0, 0))
    if has_batch(problem, "part_coefficients"):
        where = f"examples {_range(numbers)}"
        answer = problem.part_coefficients_batch(X, Y)
        return _coefficients(answer, "part_coefficients_batch", where, counts.sum(), outputs)
    found = []
    for i, value in enumerate(call(problem, "part_coefficients", numbers, (X, Y))):
        where = f"example {numbers[i]}"
        found.append(_coefficients(value, "part_coefficients", where, counts[i], outputs))
        outputs = found[0].shape[1]
    return np.concatenate(found) if found else np.zeros((0, outputs or 1))


def _coefficients(value: Any, name: str, where: str, parts: int, outputs: int | None) -> np.ndarray:
    value = value.toarray() if scipy.sparse.issparse(value) else value
    coef = rows.numbers_of(value, f"{name} must give a matrix of numbers", where)
    if not np.all(np.isfinite(coef)):
        raise ValueError(f"{name} has a value that is not finite, for {where}")
    if outputs is None and coef.ndim == 2:
        outputs = coef.shape[1]
    if coef.shape != (parts, outputs) or outputs == 0:
        raise ValueError(
            "part_coefficients must give a matrix with a row per part and always the same "
            f"columns, ({parts}, {'K' if outputs is None else outputs}), got {coef.shape} for "
            f"{where}"
        )
    return coef
