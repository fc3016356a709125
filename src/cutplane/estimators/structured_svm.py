"""Structural SVM for any output space."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from .._checks import check_choice, check_integer
from ..data.sparse import check_sparse
from ..exec import available_threads
from ..result import Certificate, Iteration, SolveResult, Status
from ..structured.examples import ProblemExamples
from ..structured.part_examples import PartExamples
from ..structured.part_scores import PartScores, parts_of, try_parts
from ..structured.problem import (
    LINEAR,
    PAIRS,
    PARTS,
    RESCALINGS,
    call,
    check_problem,
    count_of,
    losses_of,
    try_problem,
)
from ._callbacks import with_callbacks
from ._cluster import inference_for, is_cluster, threads_of
from ._fit import Settings, store_results, warn, warn_of
from ._kernel_pairs import KernelPairs
from ._kernel_parts import OF_KERNELS
from ._parts_fit import CONSTANT
from ._rows import FLOATS
from .checkpoint import Checkpoint

# A risk this much, relatively, below a bound on it is no rounding.
BELOW_BOUND = 1e-7
# Fitted attributes of one form only.
OF_FORMS = ("coef_", "plain_coef_", "support_pairs_")


class StructuredSVM(KernelPairs):
    """Structural SVM for outputs of any kind, described by a :class:`~cutplane.structured.Problem`.

    Minimises ½|w|² + (C/N) Σ_i max_z [Δ(y_i, z) + <w, Ψ(x_i, z) − Ψ(x_i, y_i)>] over N examples by
    1-slack cutting planes. The lower bound of the certificate always holds; the upper one
    does if ``most_violated`` is exact.

    With a kernel <w, Ψ(x, z)> is a function in its feature space: a sum over *parts* of the input,
    Σ_p Σ_k a_pk(x, z)·f_k(u_p(x)), or any function of the pair (x, z). Cutting planes are then made
    of all parts, or pairs, that are wrong or of samples of them (Yu & Joachims 2008).

    Parameters
    ----------
    problem : Problem
        The output space: joint features Ψ, loss Δ, and inference.
    C : float, default=100
        Weight of the mean loss.
    rescaling : {'margin', 'slack'}, default='margin'
        ``slack``: Δ(y_i, z)·(1 + <w, …>) instead of the sum; the problem must have
        ``most_violated_slack``.
    solver : {'cpa', 'ocas'}, default='cpa'
        The plain cutting plane algorithm, with one pass of inference per iteration, or the
        optimised one, with fewer iterations of several passes: better at large C. The
        constant-time method always takes the plain one.
    tol : float, default=1e-2
        Gap at which to stop, in the unit of ``stopping``.
    stopping : {'relative', 'absolute', 'epsilon'}, default='relative'
        ``relative``: gap ≤ tol·objective. ``absolute``: gap ≤ tol. ``epsilon``: gap ≤ C·tol.
    cache_size : int, default=5
        Passes whose outputs are kept per example: they give cuts without inference. 0 for none.
        Every bound that is reported as the objective comes from a full pass. Without a kernel.
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'precomputed', 'pairs'} or callable, optional
        None: w has a weight for each of the joint features. ``pairs``: the ``pair_kernel`` of the
        problem. Any other: a kernel between parts; the problem must have ``parts`` and
        ``part_coefficients``. For a precomputed kernel parts are the rows of the matrix of its
        values.
    degree, gamma, coef0
        Of the kernel, as for :class:`SVC`.
    method : {'auto', 'linear', 'constant', 'exact'}, default='auto'
        With a kernel. ``exact``: cuts are made of all parts with a coefficient, or all pairs; the
        certificate is exact. ``linear``: of a sample; the objective is known exactly, the lower
        bound estimated. ``constant``: samples of all examples, inference for these alone; neither
        the time of an iteration nor what is known depends on their number, and the objective is
        an estimate, too. ``auto``: exact if the kernel values of all parts can be stored in
        half a gigabyte, or up to 1000 examples with pairs, else linear.
    sample_size : int or None, default=None
        Parts, or examples with pairs, of a sample, 1000 if None; cuts of no more are exact. With
        ``method='constant'`` examples, 100 if None.
    passes : int, default=4
        Samples in a row that must show no violation before the constant-time method ends.
    max_basis : int or None, default=None
        With a kernel between parts: most training parts that predictions are computed from. If
        there are more so many of them are chosen, and the model is trained further in their span.
    random_state : int, RandomState or None, default=None
        Of the samples.
    max_iter, time_limit, verbose, callback
        As for :class:`LinearSVC`.
    warm_start
        As for :class:`LinearSVC`; with a kernel every fit starts anew.
    checkpoint
        As for :class:`LinearSVC`; not with a kernel.
    n_jobs : int or None, default=None
        Processes for inference, because Python code would wait for itself in threads; None for
        1, since starting one takes a second. Threads if the problem has
        ``most_violated_batch`` or ``releases_gil``; None is then all cores. The answer does not
        depend on it, to the last bit. With ``kernel='pairs'`` inference is in one thread, with
        ``method='constant'`` in this process.
    executor : None, int, dask.distributed.Client or DaskCluster, default=None
        Who runs the inference: a number is the same as ``n_jobs``; with a cluster its workers do,
        which get the problem and their examples once, pickled. A worker runs Python code in one
        thread, so start one worker per core; batch forms use all threads of a
        worker. The answer is the same, to the last bit, and workers may be lost. Not with a
        kernel.

    Attributes
    ----------
    coef_ : ndarray, shape (dimension,)
        w, without a kernel.
    support_ : ndarray of int32, shape (n_basis,)
        With a kernel between parts, as the next ones: numbers of the training parts, in the order
        of the examples, that predictions are computed from.
    support_vectors_ : ndarray or CSR matrix, shape (n_basis, width)
    dual_coef_ : ndarray, shape (K, n_basis)
        f_k(u) = Σ_s dual_coef[k, s]·kernel(support_vectors[s], u). With pairs (n_basis,).
    plain_coef_ : ndarray, shape (dimension of the plain features,)
        Their weights.
    support_pairs_ : list of (x, y)
        With ``kernel='pairs'``: what predictions are computed from.
    n_basis_ : int
        Kernel values per part, or per output that inference asks for.
    basis_error_ : float
        The largest |f_k − projection of f_k| to the span of ``max_basis`` parts; 0 without.
    n_kernel_values_ : int
        Computed in training.
    problem_ : Problem
        As ``problem.prepare`` gave it.
    n_iter_ : int
    certificate_ : Certificate
        ``primal, dual, gap, relative_gap, kind`` of the objective above. ``kind`` is 'estimated' if
        the problem says that its inference is not exact or cuts were sampled, and 'withheld', the
        gap infinite, if it says it is and turned out not to be, or if the kernel is not positive
        semidefinite.
    certificates_, results_ : list of Certificate, list of SolveResult
        With one entry: that certificate, and the same with status, trace and timings.

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

    def __init__(
        self,
        problem: Any,
        C: float = 100.0,
        *,
        rescaling: str = "margin",
        solver: str = "cpa",
        tol: float = 1e-2,
        stopping: str = "relative",
        cache_size: int = 5,
        kernel: str | Callable[[Any, Any], Any] | None = None,
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        method: str = "auto",
        sample_size: int | None = None,
        passes: int = 4,
        max_basis: int | None = None,
        random_state: Any = None,
        max_iter: int | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        executor: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        callback: Callable[[Iteration], bool | None] | None = None,
        checkpoint: Checkpoint | str | PathLike[str] | None = None,
    ) -> None:
        self.problem = problem
        self.C = C
        self.rescaling = rescaling
        self.solver = solver
        self.tol = tol
        self.stopping = stopping
        self.cache_size = cache_size
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.method = method
        self.sample_size = sample_size
        self.passes = passes
        self.max_basis = max_basis
        self.random_state = random_state
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.executor = executor
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint

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
        settings = self._check_common()
        check_choice("rescaling", self.rescaling, tuple(RESCALINGS))
        check_integer("cache_size", self.cache_size, at_least=0)
        inputs, outputs = _examples("X", X), _examples("y", y)
        if count_of(inputs) != count_of(outputs):
            raise ValueError(
                f"X has {count_of(inputs)} examples, but y has {count_of(outputs)} outputs"
            )
        if count_of(inputs) == 0:
            raise ValueError("X has no examples to train on")
        form = PAIRS if self.kernel == PAIRS else PARTS
        form = LINEAR if self.kernel is None else form
        if form != LINEAR and is_cluster(self.executor):
            raise ValueError(
                "executor: with a kernel all runs on this machine; leave it out, "
                "or train with kernel=None"
            )
        check_problem(self.problem, self.rescaling, form)
        problem = self.problem
        if hasattr(problem, "prepare"):
            problem = problem.prepare(inputs, outputs)
            check_problem(problem, self.rescaling, form)
        same = form == LINEAR  # whose coef_ may be a start
        for name in (*OF_KERNELS, *OF_FORMS[same:]):
            self.__dict__.pop(name, None)  # another model's
        self.problem_ = problem
        if form == LINEAR:
            result = self._fit_linear((X, y), inputs, outputs, settings)
        elif form == PAIRS:
            result = self._judged(*self._solve_pairs((X, y), inputs, outputs))
        else:
            result = self._fit_parts((X, y), inputs, outputs)
        warn_of(settings, None, [result])
        return self

    def _fit_linear(self, data: tuple[Any, Any], X: Any, Y: Any, settings: Settings) -> SolveResult:
        """Fit w."""
        dimension = try_problem(self.problem_, X, Y, self.rescaling)
        model = ProblemExamples(
            self.problem_,
            X,
            Y,
            dimension,
            rescaling=str(self.rescaling),
            cache_size=int(self.cache_size),
        )
        with inference_for(self, model, self._processes()):
            result = self._solve_joint(data, "structured", model, settings)
        if result.status is not Status.INTERRUPTED:  # who pressed Ctrl-C wants no more inference
            model.audit(result.w)
        return self._judged(result, model)

    def _fit_parts(self, data: tuple[Any, Any], X: Any, Y: Any) -> SolveResult:
        """Fit functions of parts in the kernel's feature space."""
        rows, counts = self._parts(X, None)
        if rows.shape[0] == 0:
            raise ValueError("parts gave none for any example: there is nothing to learn from")
        outputs, plain = try_parts(self.problem_, X, Y, counts, self.rescaling)
        model = PartExamples(self.problem_, X, Y, counts, outputs, plain, self.rescaling)
        # Samples are made here, and are small.
        here = self.method == CONSTANT
        with contextlib.nullcontext() if here else inference_for(self, model, self._processes()):
            result = self._fit_kernel(data, "structured", rows, model)
        if result.status is not Status.INTERRUPTED:
            model.audit(lambda which: self._table(rows[which]), self.plain_coef_)
        return self._judged(result, model)

    def _parts(self, X: Any, width: int | None) -> tuple[Any, np.ndarray]:
        """Parts of all inputs in one checked matrix, and how many each has."""
        rows, counts = parts_of(self.problem_, 0, X)
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

    def _table(self, rows: Any) -> np.ndarray:
        """Scores of parts."""
        scores = np.zeros((rows.shape[0], len(self.dual_coef_)))
        self._part_scores(rows, scores)
        return scores

    def _processes(self) -> int:
        jobs = threads_of(self)
        if jobs is None:
            return 1
        return jobs if jobs > 0 else max(1, available_threads() + 1 + jobs)

    def _judged(self, result: SolveResult, model: Any) -> SolveResult:
        """Store the result with the certificate that the inference allows for."""
        if result.certificate.kind == "withheld":
            return result
        exact = getattr(model.problem, "exact", True)
        sampled = result.certificate.kind == "estimated"  # the lower bound is none
        doubt = None
        if exact and model.nonmaximal is not None:
            doubt = f"for example {model.nonmaximal} it missed an output that is more violated"
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
                    f"{RESCALINGS[self.rescaling]} of {type(model.problem).__name__} is not exact: "
                    f"{doubt}. The certificate is withheld; if inference is approximate by "
                    "intention set exact = False"
                )
            )
        result = dataclasses.replace(result, certificate=certificate)
        store_results(self, [result])
        return result

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
        if self.kernel is None:
            return call(self.problem_, "predict", 0, (inputs,), self.coef_)
        if self.kernel == PAIRS:
            return self._predict_pairs(inputs)
        rows, counts = self._parts(inputs, self.shape_fit_[1])
        starts = np.concatenate([[0], np.cumsum(counts)])
        scores = PartScores(self.problem_, inputs, self._table(rows), starts, self.plain_coef_)
        return call(self.problem_, "predict", 0, (inputs, scores))

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
        return -float(np.mean(losses_of(self.problem_, 0, outputs, self.predict(X))))

    def _attributes(self, w: np.ndarray) -> dict[str, Any]:
        return {"coef_": w.copy(), "problem_": self.problem_}

    def _plain_attributes(self, plain: np.ndarray) -> dict[str, Any]:
        return {
            "plain_coef_": plain.copy(),
            "problem_": self.problem_,
        }

    def _flat(self) -> np.ndarray:
        return self.coef_


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
