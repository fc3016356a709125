"""What a user writes for a new output space.

    R(w) = (1/N) Σ_i max_z [Δ(y_i, z) + <w, Ψ(x_i, z) − Ψ(x_i, y_i)>]        margin rescaling
    R(w) = (1/N) Σ_i max_z  Δ(y_i, z)·[1 + <w, Ψ(x_i, z) − Ψ(x_i, y_i)>]     slack rescaling

A problem knows Ψ (``joint_feature``), Δ (``loss``), the output at which the maximum is
attained (``most_violated``) and the output of highest score <w, Ψ(x, z)> (``predict``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import rows

# What the forms of a problem need besides the loss and inference.
LINEAR, PARTS, PAIRS = "linear", "parts", "pairs"
FORMS: dict[str, tuple[str, ...]] = {
    LINEAR: ("joint_feature",),
    PARTS: ("parts", "part_coefficients"),
    PAIRS: ("pair_kernel",),
}
MARGIN, SLACK = "margin", "slack"
RESCALINGS = {MARGIN: "most_violated", SLACK: "most_violated_slack"}

# Examples that are tried before a fit.
TRIED = 5
# Relative error of a score that is rounding.
ROUNDING = 1e-8


class Problem:
    """An output space for :class:`StructuredSVM`. Write a subclass with the first four methods.

    Inputs x and outputs y may be anything. w is an array of shape (dimension,), not to be changed;
    the dimension is that of the joint features. Methods must not keep state.

    Attributes
    ----------
    exact : bool, default=True
        Whether ``most_violated`` always finds the maximum. If not, as with beam search,
        the upper bound of the certificate is an estimate and its ``kind`` says so.
    releases_gil : bool, default=False
        Whether threads can run the inference side by side; if not, processes do.

    Notes
    -----
    Optional methods:

    ``prepare(X, Y)``
        Gives the problem for these training data, for instance with the labels that occur.
    ``most_violated_slack(x, y, w)``
        The z of the largest Δ(y, z)·(1 + <w, Ψ(x, z) − Ψ(x, y)>), for slack rescaling.
    ``joint_feature_batch(X, Y)``, ``loss_batch(Y, Z)``, ``most_violated_batch(X, Y, w)``,
    ``most_violated_slack_batch(X, Y, w)``, ``predict_batch(X, w)``
        The same for lists of examples at once: a matrix with a row per example, an array
        of numbers, lists of outputs.

    With a kernel between *parts* the score of an output is Σ_p Σ_k a_pk(x, z)·f_k(u_p(x)) plus
    plain terms, and these stand in for ``joint_feature``:

    ``parts(x)``
        The u_p: an array or sparse matrix with a row per part. ``parts_batch(X)`` gives
        those of all inputs, one below the other, and how many each has.
    ``part_coefficients(x, y)``
        The a: an array or sparse matrix, shape (parts of x, K). ``part_coefficients_batch(X, Y)``
        gives those of all examples, one below the other.
    ``plain_feature(x, y)``
        Optional: features with plain weights besides. ``plain_feature_batch(X, Y)`` as for the
        joint feature.

    With a kernel between *pairs*:

    ``pair_kernel(x, y, x2, y2)``
        A number; ``pair_kernel_batch(X, Y, X2, Y2)`` one for every two pairs, a row per (x, y).

    With a kernel inference gets a score object in the place of w. ``score(z)`` is the score of an
    output. With parts ``score.parts`` is the table f_k(u_p), shape (parts of x, K), and ``score.w``
    has the weights of the plain features; with pairs ``score.of(outputs)`` gives several at once.
    Batch forms get ``scores``, where ``scores[i]`` is the one of input i; with parts
    ``scores.parts`` is the table of all inputs, whose rows begin at ``scores.starts``.
    """

    exact: bool = True
    releases_gil: bool = False

    def prepare(self, X: Sequence[Any], Y: Sequence[Any]) -> Any:
        """The problem for these training data."""
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def check_problem(problem: Any, rescaling: str, form: str = LINEAR) -> None:
    """Raise unless the problem has all methods that are needed."""
    if isinstance(problem, type):
        raise ValueError(f"problem must be an object, not a class: write {problem.__name__}()")
    needed = (*FORMS[form], "loss", RESCALINGS[rescaling], "predict")
    missing = [name for name in needed if not has(problem, name)]
    if missing:
        names = ", ".join(f"{name}{_SIGNATURES[name]}" for name in missing)
        raise ValueError(f"{type(problem).__name__} lacks {names}{_why(problem, missing, form)}")


def _why(problem: Any, missing: Sequence[str], form: str) -> str:
    """Why it is needed, and what there is instead."""
    if missing == ["most_violated_slack"]:
        return "; slack rescaling needs it"
    if not set(missing) & set(FORMS[form]):
        return ""
    why = {PARTS: "; a kernel needs it", PAIRS: "; kernel='pairs' needs it", LINEAR: ""}[form]
    instead = {
        LINEAR: "kernel=None",
        PARTS: "kernel='linear' or another one",
        PAIRS: "kernel='pairs'",
    }
    ways = [instead[other] for other in FORMS if all(has(problem, name) for name in FORMS[other])]
    return why + (f"; it has what is needed for {' and '.join(ways)}" if ways else "")


_SIGNATURES = {
    "joint_feature": "(x, y)",
    "parts": "(x)",
    "part_coefficients": "(x, y)",
    "pair_kernel": "(x, y, x2, y2)",
    "loss": "(y, z)",
    "most_violated": "(x, y, w)",
    "most_violated_slack": "(x, y, w)",
    "predict": "(x, w)",
}


def has(problem: Any, name: str) -> bool:
    """Whether the problem has a method, in one form or the other."""
    return callable(getattr(problem, name, None)) or has_batch(problem, name)


def has_batch(problem: Any, name: str) -> bool:
    """Whether the problem has a method's form for many examples at once."""
    return callable(getattr(problem, f"{name}_batch", None))


def count_of(values: Any) -> int:
    """Number of examples in a list or matrix."""
    return values.shape[0] if hasattr(values, "shape") else len(values)


def take(values: Any, which: Sequence[int]) -> Any:
    """Some examples of a list or matrix."""
    return values[which] if hasattr(values, "shape") else [values[i] for i in which]


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Add to what the user's method raises for which example it did."""
    try:
        yield
    except Exception as error:
        error.add_note(where)
        raise


def call(problem: Any, name: str, first: rows.First, lists: Sequence[Any], *more: Any) -> Any:
    """A method for many examples, by its batch form if there is one.

    Parameters
    ----------
    problem : Problem
    name : str
    first : int or Numbers
        Number of the first example, or those of all.
    lists : sequence of lists
        Arguments per example.
    more : arguments that all examples share
    """
    count = count_of(lists[0])
    if has_batch(problem, name):
        with _at(f"raised by {name}_batch for examples {first} to {first + (count - 1)}"):
            answer = getattr(problem, f"{name}_batch")(*lists, *more)
        size = count_of(answer)
        if size != count:
            raise ValueError(f"{name}_batch gave {size} answers for {count} examples")
        return answer
    method: Callable[..., Any] = getattr(problem, name)
    answers = []
    for i in range(count):
        arguments = [values[i] for values in lists]
        with _at(f"raised by {name} for example {first + i}"):
            answers.append(method(*arguments, *more))
    return answers


def features_of(
    problem: Any,
    first: rows.First,
    X: Sequence[Any],
    Y: Sequence[Any],
    dimension: int | None,
    name: str = "joint_feature",
) -> rows.Rows:
    """Joint features, or other ones, as a matrix with a row per example."""
    answer = call(problem, name, first, (X, Y))
    return rows.stack(answer, first, dimension, name)


def losses_of(problem: Any, first: rows.First, Y: Sequence[Any], Z: Sequence[Any]) -> np.ndarray:
    """Losses, each a finite number ≥ 0."""
    answer = call(problem, "loss", first, (Y, Z))
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
            f"loss must be a finite number ≥ 0, got {losses[i]} for example {first + i}"
        )
    return losses


def tried(examples: int) -> list[int]:
    """Examples to try a problem on."""
    return sorted({examples * k // TRIED for k in range(TRIED)})


def check_truth(problem: Any, i: int, y: Any) -> None:
    """Raise unless the loss of the truth is 0."""
    own = losses_of(problem, i, y, y)[0]
    if own != 0.0:
        raise ValueError(
            f"loss(y, y) must be 0, got {own:g} for example {i} of {type(problem).__name__}"
        )


@dataclass(frozen=True)
class Trial:
    """Answers of inference for an example: scores of the truth and of what was found.

    Attributes
    ----------
    loss : float
        Of the most violated output.
    of_truth, of_worst, of_guess : float
        Scores of the truth, the most violated output and the prediction.
    """

    loss: float
    of_truth: float
    of_worst: float
    of_guess: float

    def check(self, problem: Any, i: int, rescaling: str) -> None:
        """Raise if one of the outputs found cannot be a maximum."""
        if not getattr(problem, "exact", True):
            return
        size = ROUNDING * (1.0 + abs(self.of_truth) + abs(self.of_worst) + self.loss)
        factor = self.loss if rescaling == SLACK else 1.0
        violation = self.loss + (self.of_worst - self.of_truth) * factor
        if violation < -size:
            raise ValueError(
                f"{RESCALINGS[rescaling]} gave an output for example {i} that is less violated "
                f"({violation:.3g}) than the true one (0); if inference is approximate say so "
                "with exact = False"
            )
        best = max(self.of_truth, self.of_worst)
        if self.of_guess < best - size and math.isfinite(best):
            raise ValueError(
                f"predict gave an output for example {i} of score {self.of_guess:.6g}, but "
                f"another one scores {best:.6g}; if inference is approximate say so with "
                "exact = False"
            )


def try_problem(problem: Any, X: Sequence[Any], Y: Sequence[Any], rescaling: str) -> int:
    """Try a problem on a few examples; returns the dimension.

    Checks that joint features have one length, the loss of the truth is 0, and, at w = 0 and at a
    random w, that the most violated output is at least as violated as the truth and the
    prediction scores at least as much as both.
    """
    dimension: int | None = None
    for i in tried(count_of(X)):
        x, y = take(X, [i]), take(Y, [i])
        truth = features_of(problem, i, x, y, dimension)
        dimension = truth.shape[1]
        check_truth(problem, i, y)
        w = np.random.default_rng(i).normal(size=dimension)
        for point in (np.zeros(dimension), w / (np.linalg.norm(w) or 1.0)):
            _try_at(problem, i, x, y, truth, rescaling, point)
    assert dimension is not None
    return dimension


def _try_at(
    problem: Any, i: int, x: Any, y: Any, truth: rows.Rows, rescaling: str, w: np.ndarray
) -> None:
    dimension = len(w)
    w.flags.writeable = False
    worst = call(problem, RESCALINGS[rescaling], i, (x, y), w)
    loss = float(losses_of(problem, i, y, worst)[0])
    guess = call(problem, "predict", i, (x,), w)
    scores = (
        float(rows.products(row, w)[0])
        for row in (
            truth,
            features_of(problem, i, x, worst, dimension),
            features_of(problem, i, x, guess, dimension),
        )
    )
    Trial(loss, *scores).check(problem, i, rescaling)
