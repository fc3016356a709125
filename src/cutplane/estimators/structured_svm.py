"""Structural SVM for any output space."""

from __future__ import annotations

import dataclasses
import math
from contextlib import closing, nullcontext
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from .._checks import check_choice, check_integer, check_sparse
from ..cluster.executor import workers_of
from ..exec import make_executor, thread_count
from ..result import Certificate, SolveResult, Status
from ..structured.examples import Examples
from ..structured.linear import LinearExamples
from ..structured.parts import KernelProblem
from ..structured.problem import (
    RESCALINGS,
    Scores,
    call,
    check_problem,
    count_of,
    has_parts,
    losses_of,
    parts_of,
)
from ..structured.rows import part_scores
from ._attributes import check_basis
from ._fit import Settings, store_results, warn, warn_of, with_callbacks
from ._parts_fit import CONSTANT
from ._problems import JointProblem
from ._rows import FLOATS
from ._structured import OF_KERNELS, StructuredModel

# A risk that is below a lower bound on it by more than this part is not a rounding error.
BELOW_BOUND = 1e-7
# Fitted attributes that only models without a kernel, or only models with one, have.
OF_FORMS = ("coef_", "plain_coef_")


@dataclass(eq=False, repr=False)
class StructuredSVM(StructuredModel):
    """Structural SVM for outputs of any kind, described by a :class:`~cutplane.structured.Problem`.

    Minimises ½|w|² + C Σ_i max_z [Δ(y_i, z) + <w, Ψ(x_i, z) − Ψ(x_i, y_i)>] over all examples i by
    1-slack cutting planes. The lower bound of the certificate is always valid. The upper bound is
    valid if ``most_violated`` is exact.

    A score may be a sum over *parts* of the input instead, Σ_p Σ_k a_pk(x, z)·f_k(u_p(x)). With a
    kernel the f_k lie in its feature space, and cutting planes are made of all parts that are wrong
    or of samples of them (Yu & Joachims 2008).

    Parameters
    ----------
    problem : Problem
        The output space: joint features Ψ, loss Δ, and inference.
    C : float, default=1.0
        Weight of the sum of the losses of all examples.
    rescaling : {'margin', 'slack'}, default='margin'
        ``slack``: Δ(y_i, z)·(1 + <w, …>) instead of the sum; the problem must have
        ``most_violated_slack``.
    solver : {'cpa', 'ocas', 'auto', 'bcfw'}, default='cpa'
        ``cpa``: the plain cutting plane algorithm, with one pass of inference per iteration;
        ``ocas``: the optimised one, with fewer iterations of several passes: better at large C.
        ``bcfw``: block-coordinate ascent in the dual, some examples at a time (Lacoste-Julien et
        al. 2013), which keeps the outputs that it has found; better where there are many weights.
        ``auto`` begins with ``bcfw``, and changes to ``cpa`` if that is expected to end earlier.
        With a kernel, a checkpoint or a cluster it takes ``cpa`` from the start. The
        constant-time method always takes ``cpa``.
    tol : float, default=1e-2
        The fit stops when the gap is at most this. ``stopping`` says in which unit.
    stopping : {'relative', 'absolute', 'epsilon'}, default='relative'
        ``relative``: gap ≤ tol·objective. ``absolute``: gap ≤ tol. ``epsilon``: gap ≤ C·(number of
        examples)·tol.
    cache_size : int, default=5
        Without a kernel: for how many passes to keep the outputs of an example. Kept outputs give
        cuts without inference. 0 keeps none. The reported objective always comes from a full pass.
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'precomputed'} or callable, optional
        Between parts: the problem must have ``parts`` and ``part_coefficients``. None: w has a
        weight for each of the joint features, or functions of parts are linear. For a precomputed
        kernel parts are the rows of the matrix of its values.
    degree, gamma, coef0
        Parameters of the kernel, as for :class:`SVC`.
    method : {'auto', 'linear', 'constant', 'exact'}, default='auto'
        With a kernel. ``exact``: cuts are made of all parts with a coefficient; the
        certificate is exact. ``linear``: of a sample; the objective is known exactly, the lower
        bound estimated. ``constant``: cuts are made of a sample of all examples, and inference
        runs for these alone; the time of an iteration does not depend on their number, and the
        objective is an estimate as well. ``auto``: exact if the kernel values of all parts can be
        stored in half a gigabyte, otherwise linear.
    sample_size : int or None, default=None
        Number of parts in a sample, 1000 if None. A cut of at most so many parts is exact. With
        ``method='constant'`` it is a number of examples, 100 if None.
    passes : int, default=4
        The constant-time method ends when this many samples in a row show no violation.
    max_basis : int or None, default=None
        With a kernel: the largest number of training parts in the model. If the fit finds more, it
        chooses this many of them, and continues in their span.
    random_state : int, RandomState or None, default=None
        Seed of the samples.
    max_iter, time_limit, verbose, callback
        As for :class:`LinearSVC`.
    warm_start
        As for :class:`LinearSVC`; with a kernel every fit starts anew.
    checkpoint
        As for :class:`LinearSVC`; not with a kernel.
    n_jobs : int or None, default=None
        Number of processes for inference, because Python code is no faster with threads. None means
        1, because starting a process takes a second. If the problem has ``most_violated_batch`` or
        ``releases_gil``, it is the number of threads, and None means all cores. The answer does not
        depend on it, to the last bit. With ``method='constant'`` inference runs in this process.
    executor : dask.distributed.Client, DaskCluster or None, default=None
        A Dask cluster. Its workers run the inference. They get the problem and their examples once,
        pickled. A worker runs Python code in one thread, so start one worker per core; batch forms
        use all threads of a worker. The result is the same as with this solver on one machine, to
        the last bit, even if workers are lost. Not with a kernel.

    Attributes
    ----------
    coef_ : ndarray, shape (dimension,)
        w, without a kernel: weights of the joint features, or of the parts, (K, width) row by row,
        and then of the plain features.
    support_ : ndarray of int32, shape (n_basis,)
        With a kernel, as the next ones: numbers of the training parts, in the order
        of the examples, that predictions are computed from.
    support_vectors_ : ndarray or CSR matrix, shape (n_basis, width)
    dual_coef_ : ndarray, shape (K, n_basis)
        f_k(u) = Σ_s dual_coef[k, s]·kernel(support_vectors[s], u).
    plain_coef_ : ndarray, shape (dimension of the plain features,)
        Their weights, with a kernel.
    part_shape_ : (int, int)
        K and the width of the parts; (0, 0) for a problem with joint features.
    n_basis_ : int
        Number of kernel values per part in a prediction.
    basis_error_ : float
        The largest |f_k − projection of f_k| to the span of ``max_basis`` parts; 0 without.
    n_kernel_values_ : int
        Number of kernel values that the fit computed.
    problem_ : Problem
        What ``problem.prepare`` returned.
    n_iter_ : int
    certificate_ : Certificate
        ``primal, dual, gap, relative_gap, kind`` of the objective above. ``kind`` is 'estimated' if
        the problem has ``exact = False`` or cuts were sampled. It is 'withheld', with an infinite
        gap, if inference turned out not to be exact although the problem has ``exact = True``, or
        if the kernel is not positive semidefinite.
    certificates_, results_ : list of Certificate, list of SolveResult
        Lists with one entry: this certificate, and the result with status, trace and timings.

    See Also
    --------
    ChainTagger : For sequences of labels, much faster.
    LinearSVC : For classes.

    Examples
    --------
    >>> import numpy as np
    >>> from cutplane import StructuredSVM
    >>> from cutplane.structured import MulticlassProblem
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [-1.0, -1.0]])
    >>> model = StructuredSVM(MulticlassProblem()).fit(X, ["up", "right", "down"])
    >>> list(model.predict([[0.0, 2.0]]))
    [np.str_('up')]
    """

    _solvers = ("cpa", "ocas", "auto", "bcfw")
    _since: ClassVar = {"part_shape_": "problems got scores instead of weights"}

    problem: Any
    C: float = 1.0
    _: KW_ONLY
    rescaling: str = "margin"
    solver: str = "cpa"
    cache_size: int = 5

    @with_callbacks
    def fit(self, X: Any, y: Any) -> StructuredSVM:
        """Fit the model.

        Parameters
        ----------
        X : list of inputs, or a matrix with a row per input
        y : list of outputs

        Returns
        -------
        self
        """
        if self.kernel == "pairs":
            raise ValueError(
                "kernel='pairs' is gone: describe the score by parts(x) and part_coefficients(x, y)"
                ", and choose a kernel between parts, as kernel='rbf'; the kernel between two pairs"
                " is then the sum over their parts of coefficients times kernel values"
            )
        settings = self._check_common()
        if self.solver == "auto" and (self.kernel, self.checkpoint, self.executor) != (None,) * 3:
            settings = dataclasses.replace(settings, solver="cpa")
        check_choice("rescaling", self.rescaling, tuple(RESCALINGS))
        check_integer("cache_size", self.cache_size, at_least=0)
        inputs, outputs = _examples("X", X), _examples("y", y)
        if count_of(inputs) != count_of(outputs):
            raise ValueError(
                f"X has {count_of(inputs)} examples, but y has {count_of(outputs)} outputs"
            )
        if count_of(inputs) == 0:
            raise ValueError("X has no examples to train on")
        kernel = self.kernel is not None
        check_problem(self.problem, self.rescaling, kernel)
        problem = self.problem
        if hasattr(problem, "prepare"):
            problem = problem.prepare(inputs, outputs)
            check_problem(problem, self.rescaling, kernel)
        for name in (*OF_KERNELS, *(OF_FORMS if kernel else ())):
            self.__dict__.pop(name, None)  # of an earlier fit; the next may start from coef_
        self.problem_ = problem
        parts = self._parts(inputs, None)
        if has_parts(problem) and parts[0].shape[0] == 0:
            raise ValueError("parts gave none for any example: there is nothing to learn from")
        examples = Examples(problem, inputs, outputs, str(self.rescaling), parts, kernel)
        self.part_shape_ = (examples.outputs, examples.width)
        result = self._fitted((X, y), examples, parts[0], settings)
        result = self._judged(result, examples)
        warn_of(settings, None, [result])
        return self

    def _fitted(
        self, data: tuple[Any, Any], examples: Examples, parts: Any, settings: Settings
    ) -> SolveResult:
        """Fit w, or functions of parts in the kernel's feature space."""
        linear = LinearExamples(examples, int(self.cache_size)) if self.kernel is None else None
        start = self.coef_ if self.warm_start and hasattr(self, "coef_") else None
        local = self.executor is None
        with (
            nullcontext() if local else workers_of(self.executor) as crew,
            closing(examples.inference) as inference,
        ):
            if crew is not None:
                from ..cluster.examples import ChunksOnCluster

                assert linear is not None  # models with a kernel are trained on one machine
                chunks = ChunksOnCluster(crew, inference.chunks, examples.threads)
                linear.send(crew, chunks)
            elif self.method != CONSTANT:  # its samples are small, so this process handles them
                inference.start(1 if self.n_jobs is None else thread_count(self.n_jobs))
            if linear is not None:
                with make_executor(self.n_jobs, linear.numbers) as executor:
                    (result,) = self._solve(
                        data,
                        [JointProblem("structured", linear)],
                        settings,
                        executor,
                        lambda points: self._attributes(points[0][0]),
                        starts=lambda k: start,
                    )
            else:
                model = KernelProblem(examples)
                result = self._fit_kernel(data, "structured", parts, model, settings)
        if result.status is not Status.INTERRUPTED:  # after Ctrl-C the user waits for the end
            examples.audit(lambda which: self._table(parts[which]), self._plain_weights())
        return result

    def _parts(self, X: Any, width: int | None) -> tuple[Any, np.ndarray]:
        """The parts of all inputs in one checked matrix, and the number of parts of each input."""
        rows, counts = parts_of(self.problem_, X)
        if rows.shape[0] == 0:
            return rows, counts
        check_sparse(rows, "parts")
        rows = check_array(
            rows, accept_sparse="csr", dtype=FLOATS, estimator=self, input_name="parts"
        )
        if width is not None and rows.shape[1] != width:
            raise ValueError(
                f"parts are {rows.shape[1]} wide, but {type(self).__name__} was fitted with {width}"
            )
        return rows, counts

    def _table(self, parts: Any) -> np.ndarray:
        """Scores of parts."""
        if self.kernel is not None:
            return self._kernel_scores(parts)
        own = math.prod(self.part_shape_)
        return part_scores(parts, self.coef_[:own].reshape(self.part_shape_))

    def _plain_weights(self) -> np.ndarray:
        """The weights of plain features, or of the joint features of a problem without parts."""
        if self.kernel is not None:
            return self.plain_coef_
        return self.coef_[math.prod(self.part_shape_) :]

    def _judged(self, result: SolveResult, examples: Examples) -> SolveResult:
        """Store the result, with the certificate that the user's inference allows."""
        if result.certificate.kind == "withheld":
            return result
        exact = getattr(examples.problem, "exact", True)
        sampled = result.certificate.kind == "estimated"  # its lower bound proves nothing
        doubt = None
        if exact and examples.nonmaximal is not None:
            doubt = f"for example {examples.nonmaximal} it missed an output that is more violated"
        elif (
            exact
            and not sampled
            and any(r.trial < r.dual - BELOW_BOUND * abs(r.dual) for r in result.trace)
        ):
            doubt = "the objective it gave is below a lower bound on it"
        certificate = result.certificate
        if not exact:
            certificate = dataclasses.replace(certificate, kind="estimated")
        elif doubt is not None:
            certificate = Certificate(certificate.primal, -np.inf, "withheld")
            warn(
                UserWarning(
                    f"{RESCALINGS[self.rescaling]} of {type(examples.problem).__name__} is not "
                    f"exact: {doubt}. The certificate is withheld; if inference is approximate by "
                    "intention set exact = False"
                )
            )
        result = dataclasses.replace(result, certificate=certificate)
        store_results(self, [result])
        return result

    def _check_attributes(self) -> None:
        if not hasattr(self, "problem_"):
            raise ValueError("there is no problem_")
        shape = getattr(self, "part_shape_", (0, 0))
        outputs, width = (check_integer("part_shape_", number, at_least=0) for number in shape)
        name = "coef_" if self.kernel is None else "plain_coef_"
        coef = getattr(self, name, None)
        if not isinstance(coef, np.ndarray) or coef.ndim != 1 or coef.dtype != np.float64:
            raise ValueError(f"{name} must be a vector of numbers")
        if self.kernel is not None:
            check_basis(self, outputs, width)
        elif len(coef) < outputs * width:
            raise ValueError(f"coef_ must hold at least {outputs * width} numbers, got {len(coef)}")

    def predict(self, X: Any) -> Any:
        """Outputs of highest score.

        Parameters
        ----------
        X : list of inputs, or a matrix with a row per input

        Returns
        -------
        outputs : list, or array if the problem gives one
        """
        check_is_fitted(self)
        inputs = _examples("X", X)
        rows, counts = self._parts(inputs, self.part_shape_[1])
        scores = Scores(self.problem_, inputs, self._plain_weights(), self._table(rows), counts)
        return call(self.problem_, "predict", range(len(counts)), (inputs, scores))

    def score(self, X: Any, y: Any) -> float:
        """Minus the mean loss of the predictions: the larger the better, 0 at best.

        Parameters
        ----------
        X : list of inputs, or a matrix with a row per input
        y : list of outputs

        Returns
        -------
        score : float
        """
        outputs = _examples("y", y)
        return -float(
            np.mean(losses_of(self.problem_, range(count_of(outputs)), outputs, self.predict(X)))
        )

    def _attributes(self, w: np.ndarray) -> dict[str, Any]:
        name = "coef_" if self.kernel is None else "plain_coef_"
        return {name: w.copy(), "problem_": self.problem_, "part_shape_": self.part_shape_}


def _examples(name: str, values: Any) -> Any:
    """Examples as something that can be counted and sliced: a matrix stays one."""
    if scipy.sparse.issparse(values):
        check_sparse(values, name)
        return values.tocsr()
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise ValueError(f"{name} must be a list of examples, got {type(values).__name__}")
    return list(values)
