"""Sequence tagging with linear chains."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from .._checks import check_choice, check_flag, check_integer, check_sparse
from ..cluster.executor import workers_of
from ..data import as_blocks
from ..exec import make_executor
from ..objective.structured import JointModel
from ..structured import chain
from ..structured.named import Template, named_tokens
from ..structured.parts import KernelChains
from ..structured.sequences import has_names, split, stack_labels, stack_rows, starts_of
from ._attributes import check_basis, check_stored, stored_classes, stored_features
from ._fit import Settings, warn_of, with_callbacks
from ._problems import JointProblem
from ._rows import FLOATS
from ._structured import OF_KERNELS, StructuredModel

# Fitted attributes of models without a kernel, and of second order.
OF_LINEAR = ("coef_", "second_transitions_")


@dataclass(eq=False, repr=False)
class ChainTagger(StructuredModel):
    """Labels the tokens of sequences with a linear chain, trained as a structural SVM.

    A labelling z of a sequence with rows x_1, …, x_L scores

        Σ_t <coef[z_t], x_t> + Σ_t transitions[z_{t−1}, z_t],

    and the objective is ½|w|² + C Σ_i max_z [loss(y_i, z) + score(x_i, z) − score(x_i, y_i)] over
    all sequences i, that of SVM-hmm with transitions of first or second order. All weights are
    regularised. Inference is exact, and so is the certificate without a kernel.

    With a kernel the emissions <coef[k], x> become functions f_k(x) in its feature space, sums over
    training tokens. Cutting planes are then made of all wrong tokens or of samples of them (Yu &
    Joachims 2008).

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of the losses of all *sequences*. As the loss counts tokens, longer
        sequences weigh more. SVM-hmm's ``-c`` weighs the mean: it is C times the number of
        sequences.
    loss : {'hamming', 'zero_one'}, default='hamming'
        The number of wrong tokens, or 1 for every sequence with a wrong token.
    order : {1, 2}, default=1
        The number of preceding labels that the score of a label depends on. With 2, every three
        labels in a row have a weight as well, and inference takes n_classes times as long.
    boundaries : bool, default=False
        Whether the first and the last label of a sequence have separate weights.
    solver : {'auto', 'bcfw', 'ocas', 'cpa'}, default='auto'
        ``bcfw``: block-coordinate ascent in the dual, one sequence after the other (Lacoste-Julien
        et al. 2013), which needs a small part of the inference that cutting planes need. ``ocas``
        and ``cpa``: the optimised cutting plane algorithm and the plain one, which run inference
        in threads or on a cluster. ``auto`` begins with ``bcfw``, and changes to ``ocas`` if that
        is expected to end earlier, as with few weights and large C. With a kernel, a checkpoint,
        a cluster or ``order=2`` it takes ``ocas`` from the start. The constant-time method always
        takes ``cpa``.
    tol : float, default=1e-2
        The fit stops when the gap is at most this. ``stopping`` says in which unit.
    stopping : {'relative', 'absolute', 'epsilon'}, default='relative'
        ``relative``: gap ≤ tol·objective. ``absolute``: gap ≤ tol. ``epsilon``:
        gap ≤ C·(number of sequences)·tol, the rule of SVM-hmm.
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'precomputed'} or callable, optional
        Of the emissions, between tokens. None: emissions that are linear in the features, with
        a weight for each of them, which is faster than the linear kernel. For a precomputed
        kernel tokens are the rows of the matrix of its values.
    degree, gamma, coef0
        Parameters of the kernel, as for :class:`SVC`.
    method : {'auto', 'linear', 'constant', 'exact'}, default='auto'
        With a kernel. ``exact``: a cut is made of all tokens that the most violated labellings
        have wrong; the certificate is exact. ``linear``: of a sample of these tokens; the time is
        linear in the number of tokens, the objective known exactly and the lower bound
        estimated. ``constant``: a cut is made of a sample of all sequences; the time of an
        iteration does not depend on their number, and the objective is an estimate as well.
        ``auto``: exact if the kernel values of all pairs of tokens can be stored in half a
        gigabyte, up to about 11,000 tokens, otherwise linear.
    sample_size : int or None, default=None
        Number of tokens in a sample, 1000 if None. A cut with at most so many wrong tokens is
        exact. With ``method='constant'`` it is a number of sequences, 100 if None.
    passes : int, default=4
        The constant-time method ends when this many samples in a row show no violation.
    max_basis : int or None, default=None
        With a kernel: the largest number of training tokens in the model. If the fit finds more, it
        chooses this many of them, and continues in their span, on all sequences, with any method.
        The certificate still compares with the optimum over all tokens. None means no limit.
    random_state : int, RandomState or None, default=None
        Seed of the samples.
    min_count : int, default=1
        If features have names: how often a name must occur in training to become a feature.
    template : str or None, default=None
        Lines of a CRF++ template, such as ``U01:%x[-1,0]``, which make names of features from the
        columns of tokens. A token is then a list of columns, such as word and part of speech; see
        :func:`cutplane.structured.read_conll`.
    max_iter, time_limit, n_jobs, verbose, callback
        As for :class:`LinearSVC`.
    warm_start
        As for :class:`LinearSVC`; with a kernel every fit starts anew.
    checkpoint
        As for :class:`LinearSVC`; not with a kernel.
    executor : dask.distributed.Client, DaskCluster or None, default=None
        A Dask cluster. Its workers get their sequences once and run the fit. The result is the same
        as with ``solver='ocas'`` on one machine, to the last bit, even if workers are lost. Not
        with a kernel.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        The labels.
    coef_ : ndarray, shape (n_classes, n_features)
        Emissions, without a kernel: the score of each label per feature.
    support_ : ndarray of int32, shape (n_basis,)
        With a kernel, as the next ones: training tokens that predictions are computed from.
    support_vectors_ : ndarray or CSR matrix, shape (n_basis, n_features)
    dual_coef_ : ndarray, shape (n_classes, n_basis)
        Emissions: the score of each label per kernel value with these tokens.
    n_basis_ : int
        Number of kernel values per token in a prediction.
    basis_error_ : float
        The largest |f_k − projection of f_k| to the span of ``max_basis`` tokens: how much of the
        larger model this span misses. 0 without ``max_basis``.
    n_kernel_values_ : int
        Number of kernel values that the fit computed.
    transitions_ : ndarray, shape (n_classes, n_classes)
        Score of two labels that follow one another: the row is the first, the column the second.
    second_transitions_ : ndarray, shape (n_classes, n_classes, n_classes)
        With ``order=2``: score of label k after j after i at [i, j, k].
    begin_, finish_ : ndarray, shape (n_classes,)
        Scores of the first and the last label; 0 without ``boundaries``.
    n_features_in_, n_iter_ : int
    feature_names_in_ : ndarray of str, shape (n_features,)
        If features have names: the names of the columns of ``coef_``, sorted.
    certificate_ : Certificate
        ``primal, dual, gap, relative_gap, kind`` of the objective above. ``kind`` is 'estimated'
        if cuts were sampled, and 'withheld' if the kernel is not positive semidefinite.
    certificates_, results_ : list of Certificate, list of SolveResult
        Lists with one entry: this certificate, and the result with status, trace and timings.

    See Also
    --------
    StructuredSVM : For output spaces of your own.
    cutplane.structured.sequences_from : Sequences from rows with a qid.
    cutplane.metrics.chunk_f1 : Precision and recall of entities in one number.

    Examples
    --------
    >>> import numpy as np
    >>> from cutplane import ChainTagger
    >>> X = [np.eye(3), np.eye(3)[[0, 2]], np.eye(3)[[1]]]
    >>> y = [["the", "cat", "sat"], ["the", "sat"], ["cat"]]
    >>> tagger = ChainTagger(C=10).fit(X, y)
    >>> [labels.tolist() for labels in tagger.predict([np.eye(3)[[0, 1]]])]
    [['the', 'cat']]

    Features may have names, as for CRFsuite; those that training has not seen are left out:

    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "the"}, {"word": "dog"}]]
    >>> tagger = ChainTagger(C=10).fit(X, [["det", "noun"], ["det", "noun"]])
    >>> tagger.feature_names_in_.tolist()
    ['word:cat', 'word:dog', 'word:the']
    >>> [labels.tolist() for labels in tagger.predict([[{"word": "the"}, {"word": "owl"}]])]
    [['det', 'noun']]
    """

    _solvers = ("auto", "bcfw", "ocas", "cpa")

    C: float = 1.0
    _: KW_ONLY
    loss: str = "hamming"
    order: int = 1
    boundaries: bool = False
    solver: str = "auto"
    min_count: int = 1
    template: str | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any, lengths: Any = None) -> ChainTagger:
        """Fit the model.

        Parameters
        ----------
        X : list of array-like or sparse matrix, shape (length, n_features) each
            A matrix per sequence, with a row per token; or one matrix of all tokens, with
            ``lengths``. Sequences may be empty. Or, as for CRFsuite, a list of tokens per sequence:
            dictionaries {name: value} or lists of names, of value 1. A value that is text is a
            part of the name, as ``word:the``; lists and dictionaries as values give a feature
            per entry. With ``template`` tokens are lists of columns.
        y : list of sequences of labels, or array of the labels of all tokens
            Numbers or names.
        lengths : array-like of int, optional
            Lengths of the sequences that make up the rows of X.

        Returns
        -------
        self
        """
        settings = self._check_common()
        rows, starts, names = self._tokens(X, lengths, fitted=False)
        if rows.shape[0] == 0:
            raise ValueError("X has no tokens to train on: every sequence is empty")
        labels = stack_labels(y, starts)
        classes, truth = _encoded(labels)
        shape = chain.ChainShape(
            rows.shape[1], len(classes), bool(self.boundaries), int(self.order)
        )
        same = np.array_equal(getattr(self, "classes_", classes), classes)
        same = same and getattr(self, "_shape", shape) == shape and self.kernel is None
        same = same and (names is None or names == list(getattr(self, "feature_names_in_", names)))
        for name in OF_KERNELS if same else (*OF_KERNELS, *OF_LINEAR):
            self.__dict__.pop(name, None)  # of an earlier fit of another kind
        self.n_features_in_ = rows.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.classes_ = classes
        self._shape = shape
        if self.kernel is None:
            examples = chain.ChainExamples.in_parts(rows, starts, truth, shape, str(self.loss))
            known = self.warm_start and hasattr(self, "coef_")
            start = shape.pack(self._chain_weights()) if known else None
            model: JointModel = examples
            local = self.executor is None
            with nullcontext() if local else workers_of(self.executor) as crew:
                if crew is not None:
                    from ..cluster.chains import ChainsOnCluster

                    model = ChainsOnCluster(examples, crew)
                with make_executor(self.n_jobs, model.numbers) as executor:
                    (result,) = self._solve(
                        (X, y),
                        [JointProblem("chain", model)],
                        settings,
                        executor,
                        lambda points: self._attributes(points[0][0]),
                        starts=lambda k: start,
                    )
        else:
            chains = chain.LabelledChains(starts, truth, shape, str(self.loss))
            result = self._fit_kernel((X, y), "chain", rows, KernelChains(chains), settings)
        warn_of(settings, None, [result])
        return self

    def _check_common(self) -> Settings:
        settings = super()._check_common()
        check_choice("loss", self.loss, chain.LOSSES)
        check_flag("boundaries", self.boundaries)
        check_integer("min_count", self.min_count, at_least=1)
        if self.template is not None:
            if not isinstance(self.template, str):
                raise ValueError(f"template must be text or None, got {self.template!r:.60}")
            Template(self.template)
        if check_integer("order", self.order, at_least=1) > 2:
            raise ValueError(f"order must be 1 or 2, got {self.order!r}")
        if self.solver == "bcfw" and self.order != 1:
            raise ValueError("solver='bcfw' is for chains of first order; take 'ocas' with order=2")
        return settings

    def _check_attributes(self) -> None:
        features, classes = stored_features(self), stored_classes(self)
        shape = getattr(self, "_shape", None)
        expected = chain.ChainShape(features, classes, bool(self.boundaries), int(self.order))
        if shape != expected or shape.order not in (1, 2):
            raise ValueError(f"the chain must have {expected}, got {shape!r:.100}")
        if self.kernel is None:
            check_stored(self, "coef_", (classes, features))
        else:
            check_basis(self, classes)
        check_stored(self, "transitions_", (classes, classes))
        for name in ("begin_", "finish_"):
            check_stored(self, name, (classes,))
        if shape.order == 2:
            check_stored(self, "second_transitions_", (classes,) * 3)

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """The labellings of highest score.

        Parameters
        ----------
        X : list of array-like or sparse matrix, or one matrix with ``lengths``
        lengths : array-like of int, optional

        Returns
        -------
        labels : list of ndarray, one per sequence; with ``lengths`` one array for all tokens
        """
        rows, starts, _ = self._tokens(X, lengths)
        labels = self.classes_[self._decoded(rows, starts)]
        return labels if lengths is not None else split(labels, starts)

    def decision_function(self, X: Any, lengths: Any = None) -> Any:
        """Scores of the labels for each token, those of transitions not included.

        Parameters
        ----------
        X : list of array-like or sparse matrix, or one matrix with ``lengths``
        lengths : array-like of int, optional

        Returns
        -------
        scores : list of ndarray, shape (length, n_classes); with ``lengths`` one array
        """
        rows, starts, _ = self._tokens(X, lengths)
        scores = self._emissions(rows)
        return scores if lengths is not None else split(scores, starts)

    def score(self, X: Any, y: Any, lengths: Any = None) -> float:
        """Fraction of the tokens labelled as in y; labels not seen in training count as wrong.

        Parameters
        ----------
        X : list of array-like or sparse matrix, or one matrix with ``lengths``
        y : list of sequences of labels, or array of the labels of all tokens
        lengths : array-like of int, optional

        Returns
        -------
        score : float
        """
        rows, starts, _ = self._tokens(X, lengths)
        truth = stack_labels(y, starts)
        if len(truth) == 0:
            raise ValueError("X has no tokens to score: every sequence is empty")
        return float(np.mean(self.classes_[self._decoded(rows, starts)] == truth))

    # -- parts ----------------------------------------------------------------

    def _tokens(
        self, X: Any, lengths: Any, fitted: bool = True
    ) -> tuple[Any, np.ndarray, list[str] | None]:
        """All tokens in one checked matrix, the starts of the sequences, and the features' names.

        The features are those of the fitted model if ``fitted``, otherwise those of X.
        """
        if fitted:
            check_is_fitted(self)
        width = self.n_features_in_ if fitted else None
        if has_names(X, lengths is not None):
            return self._named_tokens(X, lengths, fitted)
        if lengths is not None:
            check_sparse(X)
        rows, starts = (X, None) if lengths is not None else stack_rows(X, width)
        if lengths is not None or rows.shape[0]:
            rows = check_array(
                rows,
                accept_sparse="csr",
                dtype=FLOATS,
                ensure_min_samples=0,
                estimator=self,
                input_name="X",
            )
        if width is not None and rows.shape[1] != width:
            raise ValueError(
                f"X has {rows.shape[1]} features, but {type(self).__name__} was fitted with {width}"
            )
        return rows, starts_of(lengths, rows.shape[0]) if starts is None else starts, None

    def _named_tokens(
        self, X: Any, lengths: Any, fitted: bool
    ) -> tuple[Any, np.ndarray, list[str]]:
        """What ``_tokens`` returns, from tokens whose features have names."""
        if lengths is not None:
            X = split(X, starts_of(lengths, len(X)))
        tokens = named_tokens(X, None if self.template is None else Template(self.template))
        counts = np.array([len(sequence) for sequence in X], dtype=np.int64)
        starts = starts_of(counts, len(tokens.starts) - 1)
        if not fitted:
            names = tokens.vocabulary(int(self.min_count))
            if starts[-1] and not names:
                raise ValueError(
                    f"X has no feature that occurs min_count={self.min_count} times"
                    if tokens.names
                    else "X has no features: every token is empty"
                )
        elif hasattr(self, "feature_names_in_"):
            names = self.feature_names_in_.tolist()
        else:
            raise ValueError(
                f"X has features with names, but {type(self).__name__} was fitted with matrices "
                f"of {self.n_features_in_} features; give it such matrices"
            )
        return tokens.rows(names), starts, names

    def _decoded(self, rows: Any, starts: np.ndarray) -> np.ndarray:
        """The labellings of highest score, as numbers of labels for all tokens."""
        if rows.shape[0] == 0:
            return np.zeros(0, dtype=np.int64)
        scores = self._emissions(rows)
        chunks = chain.Chunks(starts, self._shape)
        work = 4 * rows.shape[0] * len(self.classes_) ** (self._shape.order + 1)
        with make_executor(self.n_jobs, work) as executor:
            return chain.decode(scores, chunks, self._chain_weights(), executor)

    def _emissions(self, rows: Any) -> np.ndarray:
        """Scores of all labels for all tokens, without those of transitions."""
        if self.kernel is not None:
            return self._kernel_scores(rows)
        scores = np.zeros((rows.shape[0], len(self.classes_)))
        if rows.shape[0] == 0:
            return scores
        matrix = as_blocks(rows, compact=False)
        with make_executor(self.n_jobs, chain.work(self._shape, matrix)) as executor:
            matrix.scores(self._chain_weights().emissions, scores, executor)
        return scores

    def _chain_weights(self) -> chain.ChainWeights:
        second = np.zeros((0, 0, 0))
        if self._shape.order == 2:
            second = np.ascontiguousarray(self.second_transitions_.transpose(1, 0, 2))
        coef = np.zeros((0, len(self.classes_)))
        if self.kernel is None:
            coef = np.ascontiguousarray(self.coef_.T)
        return chain.ChainWeights(coef, second, self.transitions_, self.begin_, self.finish_)

    def _attributes(self, w: np.ndarray) -> dict[str, Any]:
        linear = self.kernel is None
        shape = self._shape if linear else dataclasses.replace(self._shape, features=0)
        weights = shape.unpack(w)
        attributes = {
            "transitions_": weights.transitions.copy(),
            "begin_": weights.begin.copy(),
            "finish_": weights.finish.copy(),
            "classes_": self.classes_,
            "n_features_in_": self.n_features_in_,
            "_shape": self._shape,
        }
        if linear:
            attributes["coef_"] = np.ascontiguousarray(weights.emissions.T)
        if hasattr(self, "feature_names_in_"):
            attributes["feature_names_in_"] = self.feature_names_in_
        if self._shape.order == 2:
            attributes["second_transitions_"] = weights.second.transpose(1, 0, 2).copy()
        return attributes


def _encoded(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes in order, and for each label the number of its class."""
    try:
        classes, truth = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"labels in y cannot be ordered: {error}") from error
    if len(classes) < 2:
        raise ValueError(f"y has one label only, {classes[0]!r}; at least two are needed")
    return classes, truth.astype(np.int64)
