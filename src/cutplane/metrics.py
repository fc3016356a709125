"""Measures of rankings, of retrieval and of chunks of tags, and scorers for model selection.

Rows of one query are compared with each other, rows of different queries never;
without ``qid`` all rows are one query. With gain g_i of row i and its position
p_i = 1, 2, … in its query by falling score,

    DCG@k = Σ_{p_i ≤ k} g_i / log2(1 + p_i),     NDCG@k = DCG@k / best DCG@k

(Järvelin and Kekäläinen, 2002). A pair i, j of a query with y_i > y_j is
comparable; it is swapped if f_i < f_j and tied if f_i = f_j:

    swapped pairs = (#swapped + ½ #tied) / #comparable     τ = 1 − 2·swapped pairs

Rows with equal scores have no order. Every measure here is then the mean over all orders
of the tied rows, so it depends on the scores and not on the order of the rows.

A chunk is a run of tokens with a type, such as the name of a person, written as a tag per token:
B-PER I-PER O. A predicted chunk is right if its first token, its last token and its type are right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ._checks import check_choice, query_codes

__all__ = [
    "chunk_f1",
    "chunk_precision",
    "chunk_recall",
    "chunks",
    "ndcg_score",
    "ndcg_scorer",
    "prbep",
    "precision_at_k",
    "recall_at_k",
    "somers_d",
    "swapped_pairs",
    "swapped_pairs_scorer",
]


# -- rankings -----------------------------------------------------------------


def ndcg_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    k: int | None = None,
    gains: Literal["exponential", "linear"] = "exponential",
    ties: Literal["average", "worst"] = "average",
    empty: float | Literal["skip"] = 0.0,
) -> float:
    """Normalised discounted cumulative gain, mean over queries.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Relevance ≥ 0; 0 means not relevant.
    y_score : array-like of shape (n_samples,)
        Scores; rows with the largest scores come first.
    qid : array-like of shape (n_samples,), default=None
        Query of each row, integers ≥ 0 in any order. None: all rows are one query.
    k : int, default=None
        Only the first k positions count. With None all count.
    gains : {'exponential', 'linear'}, default='exponential'
        Gain of a row: 2^y − 1 as in the LETOR and web search tasks, or y itself
        as in :func:`sklearn.metrics.ndcg_score`.
    ties : {'average', 'worst'}, default='average'
        Rows of equal score share their mean gain, or come in the least
        favourable order.
    empty : {0, 1, 'skip'}, default=0
        The value of a query without a relevant row, in which no order is better
        than another. The LETOR evaluation counts 0, so a mean of 1 is out of
        reach on such data. 'skip' leaves these queries out of the mean.

    Returns
    -------
    score : float
        In [0, 1], 1 is best.

    Examples
    --------
    >>> from cutplane.metrics import ndcg_score
    >>> relevance = [2, 0, 1, 0, 1]
    >>> scores = [0.9, 0.1, 0.4, 0.7, 0.2]
    >>> query = [1, 1, 1, 2, 2]
    >>> ndcg_score(relevance, scores, qid=query)
    0.815464...
    >>> ndcg_score(relevance, scores, qid=query, k=1)
    0.5
    """
    truth, scores = _check_columns(y_true, y_score)
    query = query_codes(qid, len(truth))
    first = len(truth) if k is None else _check_k(k)
    check_choice("gains", gains, ("exponential", "linear"))
    check_choice("ties", ties, ("average", "worst"))
    if empty not in (0, 1, "skip"):
        raise ValueError(f"empty must be 0, 1 or 'skip', got {empty!r}")
    values, relevant = ndcg_by_query(truth, scores, query, first, gains, ties)
    if empty == "skip" and not relevant.any():
        raise ValueError("y_true has no relevant row in any query: empty='skip' leaves none")
    values[~relevant] = 0.0 if empty == "skip" else float(empty)
    return float(np.mean(values[relevant] if empty == "skip" else values))


def ndcg_by_query(
    truth: np.ndarray,
    scores: np.ndarray,
    query: np.ndarray,
    k: int,
    gains: str,
    ties: str = "average",
) -> tuple[np.ndarray, np.ndarray]:
    """NDCG@k of every query, 0 without a relevant row, and which queries have one.

    ``query`` numbers the queries of the rows from 0.
    """
    gain = _row_gains(truth, gains)
    order = np.lexsort((gain, -scores, query))  # among tied rows the best come last
    placed, query_placed = gain[order], query[order]
    if ties == "average":
        placed = _tied_means(placed, query_placed, scores[order])
    sizes = np.bincount(query)
    position = np.arange(len(gain)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    discount = np.where(position < k, 1.0 / np.log2(2.0 + position), 0.0)
    reached = np.bincount(query_placed, placed * discount)
    best = np.bincount(query_placed, gain[np.lexsort((-gain, query))] * discount)
    relevant = best > 0.0
    values = np.zeros(len(best))
    np.divide(np.minimum(reached, best), best, out=values, where=relevant)
    return values, relevant


def swapped_pairs(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    average: str = "pairs",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Fraction of comparable pairs that the scores put in the wrong order.

    A pair is comparable if its targets differ and its rows share a query. Equal
    scores count one half. For two classes, 1 minus this is the area under the
    ROC curve.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Targets: ranks, relevance, classes as numbers, or real values.
    y_score : array-like of shape (n_samples,)
        Scores; larger for larger targets.
    qid : array-like of shape (n_samples,), default=None
        Query of each row, integers ≥ 0 in any order. None: all rows are one query.
    average : {'pairs', 'queries'}, default='pairs'
        'pairs': all pairs count equally. 'queries': all queries count equally.
        Queries without a comparable pair do not count.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights ≥ 0. The weight of a pair is the product of its rows' weights.

    Returns
    -------
    fraction : float
        In [0, 1], 0 is best.

    Examples
    --------
    >>> from cutplane.metrics import swapped_pairs
    >>> swapped_pairs([3, 1, 2, 1], [0.9, 0.5, 0.5, 0.1])
    0.1
    """
    from .risks.pairs import pair_statistics  # loads numba

    truth, scores = _check_columns(y_true, y_score)
    query = query_codes(qid, len(truth))
    check_choice("average", average, ("pairs", "queries"))
    weights = None
    if sample_weight is not None:
        weights = _check_column("sample_weight", sample_weight, len(truth))
        if np.any(weights < 0.0):
            raise ValueError("sample_weight must not be negative")
    pairs = pair_statistics(truth, scores, query, weights)
    # With weights the sums have rounding errors, so keep the result between 0 and 1.
    wrong = np.clip(pairs.swapped + 0.5 * pairs.tied, 0.0, pairs.comparable)
    comparable, counted = pairs.comparable, pairs.comparable > 0
    if not counted.any():
        place = "" if qid is None else " within a query"
        place += "" if weights is None else " of positive weight"
        raise ValueError(f"y_true has no comparable pair: no two rows{place} differ in it")
    if average == "pairs":
        return float(wrong.sum() / comparable.sum())
    return float(np.mean(wrong[counted] / comparable[counted]))


def somers_d(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    average: str = "pairs",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Somers' D of the scores given the targets: (#in order − #swapped) / #comparable pairs.

    Pairs of equal targets are left out. Pairs of equal scores count only in the denominator. The
    value is 1 − 2·:func:`swapped_pairs`. Without ties it is Kendall's τ. With ties other measures
    differ: Goodman and Kruskal's γ leaves pairs of equal scores out, and τ-b divides by
    √(comparable · pairs of different scores).

    Parameters
    ----------
    y_true, y_score, qid, average, sample_weight
        As for :func:`swapped_pairs`.

    Returns
    -------
    d : float
        In [−1, 1], 1 is best.

    Examples
    --------
    >>> from cutplane.metrics import somers_d
    >>> somers_d([1, 2, 3, 4], [0.1, 0.3, 0.2, 0.4])
    0.666666...
    """
    swapped = swapped_pairs(y_true, y_score, qid=qid, average=average, sample_weight=sample_weight)
    return 1.0 - 2.0 * swapped


# -- retrieval ----------------------------------------------------------------


def precision_at_k(y_true: ArrayLike, y_score: ArrayLike, k: int) -> float:
    """Share of positive rows among the k rows with the largest scores.

    If several rows tie for the last places, these places count the share of positives among the
    tied rows.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Classes 0 and 1, or −1 and 1.
    y_score : array-like of shape (n_samples,)
        Scores; the largest come first.
    k : int
        Number of rows taken, at most all.

    Returns
    -------
    precision : float
        In [0, 1], 1 is best.

    Examples
    --------
    >>> from cutplane.metrics import precision_at_k
    >>> precision_at_k([1, 0, 1, 0], [0.9, 0.8, 0.3, 0.1], k=2)
    0.5
    """
    positive, scores = _check_classes(y_true, y_score)
    return _expected_hits(positive, scores, k) / k


def recall_at_k(y_true: ArrayLike, y_score: ArrayLike, k: int) -> float:
    """Share of the positive rows that are among the k rows with the largest scores.

    Parameters
    ----------
    y_true, y_score, k
        As for :func:`precision_at_k`; there must be a positive row.

    Returns
    -------
    recall : float
        In [0, 1], 1 is best. Below 1 if k is smaller than the number of positives.

    Examples
    --------
    >>> from cutplane.metrics import recall_at_k
    >>> recall_at_k([1, 0, 1, 0], [0.9, 0.8, 0.3, 0.1], k=3)
    1.0
    """
    positive, scores = _check_classes(y_true, y_score)
    return _expected_hits(positive, scores, k) / _count_positive(positive)


def prbep(y_true: ArrayLike, y_score: ArrayLike) -> float:
    """Precision/recall break-even point.

    Precision and recall are equal if as many rows are taken as there are positives.

    Parameters
    ----------
    y_true, y_score
        As for :func:`precision_at_k`; there must be a positive row.

    Returns
    -------
    value : float
        In [0, 1], 1 is best.

    Examples
    --------
    >>> from cutplane.metrics import prbep
    >>> prbep([1, 0, 1, 0], [0.9, 0.8, 0.3, 0.1])
    0.5
    """
    positive, scores = _check_classes(y_true, y_score)
    count = _count_positive(positive)
    return _expected_hits(positive, scores, count) / count


# -- chunks of tags -----------------------------------------------------------

# First letters of tags. O marks a token outside of every chunk.
SCHEMES = {"IOB2": "BIO", "IOB1": "BIO", "BIOES": "BIOES"}
Scheme = Literal["IOB2", "IOB1", "BIOES"]


def chunks(tags: Any, *, scheme: Scheme = "IOB2") -> list[tuple[str, int, int]]:
    """The chunks that the tags of one sequence stand for.

    A chunk begins at a tag B or S, after a tag E, S or O, and wherever the type changes. It ends at
    E or S, and before the next chunk or O. conlleval reads tags in this way, also tags that break
    the rules of the scheme, such as I after O in IOB2.

    Parameters
    ----------
    tags : sequence of str
        ``O``, or a letter, a hyphen and a type, such as ``B-NP``; a letter alone has the type ''.
    scheme : {'IOB2', 'IOB1', 'BIOES'}, default='IOB2'
        IOB2: every chunk begins with B. IOB1: a chunk begins with I, and with B only if it directly
        follows a chunk of the same type. BIOES: as IOB2, but the last token of a chunk is E, and a
        chunk of a single token is S.

    Returns
    -------
    chunks : list of (str, int, int)
        Type, first token, and the token after the last one.

    Examples
    --------
    >>> from cutplane.metrics import chunks
    >>> chunks(["B-PER", "I-PER", "O", "B-LOC"])
    [('PER', 0, 2), ('LOC', 3, 4)]
    """
    check_choice("scheme", scheme, tuple(SCHEMES))
    found: list[tuple[str, int, int]] = []
    begin, before, kind = -1, "O", ""
    for t, tag in enumerate([*tags, "O"]):
        letter, hyphen, here = str(tag).partition("-")
        if letter not in SCHEMES[scheme] or len(letter) != 1 or (letter == "O" and hyphen):
            raise ValueError(
                f"token {t} has the tag {str(tag)!r:.40}, which is not of the scheme {scheme}: "
                f"tags are O, {', '.join(f'{k}-TYPE' for k in SCHEMES[scheme] if k != 'O')}"
            )
        starts = letter in "BS" or before in "ESO" or here != kind
        if begin >= 0 and (letter == "O" or starts):
            found.append((kind, begin, t))
            begin = -1
        if letter != "O" and starts:
            begin = t
        before, kind = letter, here
    return found


def scheme_of(tags: Any) -> Scheme | None:
    """The scheme of the tags, BIOES or IOB2; None if the tags do not stand for chunks."""
    names = {str(tag) for tag in np.unique(tags)}
    letters = {name.partition("-")[0] for name in names}
    if not letters <= set("BIOES") or not any("-" in name for name in names):
        return None
    return "BIOES" if letters & set("ES") else "IOB2"


def chunk_precision(
    y_true: Any,
    y_pred: Any,
    *,
    scheme: Scheme = "IOB2",
    lengths: ArrayLike | None = None,
    by_type: bool = False,
) -> float | dict[str, float]:
    """The share of the predicted chunks that are right; 0 if there are none.

    Parameters
    ----------
    y_true, y_pred, scheme, lengths, by_type
        As for :func:`chunk_f1`.

    Returns
    -------
    precision : float, or dict of float by type
    """
    counts = chunk_counts(y_true, y_pred, scheme, lengths)
    return _share_of_chunks("precision", counts, by_type)


def chunk_recall(
    y_true: Any,
    y_pred: Any,
    *,
    scheme: Scheme = "IOB2",
    lengths: ArrayLike | None = None,
    by_type: bool = False,
) -> float | dict[str, float]:
    """The share of the true chunks that are predicted; 0 if there are none.

    Parameters
    ----------
    y_true, y_pred, scheme, lengths, by_type
        As for :func:`chunk_f1`.

    Returns
    -------
    recall : float, or dict of float by type
    """
    counts = chunk_counts(y_true, y_pred, scheme, lengths)
    return _share_of_chunks("recall", counts, by_type)


def chunk_f1(
    y_true: Any,
    y_pred: Any,
    *,
    scheme: Scheme = "IOB2",
    lengths: ArrayLike | None = None,
    by_type: bool = False,
) -> float | dict[str, float]:
    """F1 of chunks, the harmonic mean of their precision and recall; 0 if there are none.

    It equals the value of conlleval, the program of the CoNLL shared tasks on named entities and
    chunking.

    Parameters
    ----------
    y_true, y_pred : list of sequences of tags; with ``lengths`` the tags of all tokens
        As :meth:`cutplane.ChainTagger.predict` returns them.
    scheme : {'IOB2', 'IOB1', 'BIOES'}, default='IOB2'
        Scheme of the tags, see :func:`chunks`.
    lengths : array-like of int, optional
        Lengths of the sequences.
    by_type : bool, default=False
        Whether to return one value for each type of chunk, not one value for all.

    Returns
    -------
    f1 : float, or dict of float by type

    Examples
    --------
    >>> from cutplane.metrics import chunk_f1
    >>> true = [["B-PER", "I-PER", "O", "B-LOC"]]
    >>> chunk_f1(true, [["B-PER", "I-PER", "O", "B-ORG"]])
    0.5
    >>> chunk_f1(true, [["B-PER", "I-PER", "O", "B-ORG"]], by_type=True)
    {'LOC': 0.0, 'ORG': 0.0, 'PER': 1.0}
    """
    counts = chunk_counts(y_true, y_pred, scheme, lengths)
    return _share_of_chunks("f1", counts, by_type)


# Of the numbers of right, true and predicted chunks; 0 if there are no chunks.
CHUNK_SHARES: dict[str, Callable[[int, int, int], float]] = {
    "precision": lambda right, true, guessed: right / max(1, guessed),
    "recall": lambda right, true, guessed: right / max(1, true),
    "f1": lambda right, true, guessed: 2.0 * right / max(1, true + guessed),
}
ChunkCounts = dict[str, tuple[int, int, int]]


def _share_of_chunks(name: str, counts: ChunkCounts, by_type: bool) -> Any:
    share = CHUNK_SHARES[name]
    if by_type:
        return {kind: share(*three) for kind, three in counts.items()}
    return share(*all_chunks(counts))


def all_chunks(counts: ChunkCounts) -> tuple[int, int, int]:
    """The numbers of right, true and predicted chunks of all types together."""
    right, true, guessed = np.sum([(0, 0, 0), *counts.values()], axis=0).tolist()
    return right, true, guessed


def chunk_counts(
    y_true: Any, y_pred: Any, scheme: Scheme = "IOB2", lengths: ArrayLike | None = None
) -> ChunkCounts:
    """For each type of chunk, the numbers of right, of true and of predicted chunks."""
    sides = []
    for name, tags in (("y_true", y_true), ("y_pred", y_pred)):
        if lengths is not None:
            ends = np.cumsum(np.asarray(lengths, dtype=np.int64))
            if len(tags) != (ends[-1] if len(ends) else 0):
                raise ValueError(f"{name} has {len(tags)} tags, but lengths sum to {ends[-1]}")
            tags = np.split(np.asarray(tags), ends[:-1])
        elif any(isinstance(sequence, str) for sequence in tags):
            raise ValueError(f"{name} is one list of tags: give a list per sequence, or lengths")
        sides.append(list(tags))
    true, guessed = sides
    if len(true) != len(guessed):
        raise ValueError(f"y_true has {len(true)} sequences, y_pred {len(guessed)}")
    right, there, found = Counter[str](), Counter[str](), Counter[str]()
    for s, both in enumerate(zip(true, guessed, strict=True)):
        if len(both[0]) != len(both[1]):
            raise ValueError(
                f"sequence {s} has {len(both[0])} tags in y_true, {len(both[1])} in y_pred"
            )
        try:
            own, other = (set(chunks(tags, scheme=scheme)) for tags in both)
        except ValueError as error:
            raise ValueError(f"sequence {s}: {error}") from None
        for counts, some in ((right, own & other), (there, own), (found, other)):
            counts.update(kind for kind, _, _ in some)
    return {kind: (right[kind], there[kind], found[kind]) for kind in sorted(there | found)}


# -- scorers ------------------------------------------------------------------


def ndcg_scorer(
    k: int | None = None,
    *,
    gains: Literal["exponential", "linear"] = "exponential",
    ties: Literal["average", "worst"] = "average",
    empty: float | Literal["skip"] = 0.0,
    qid: bool = True,
) -> Any:
    """:func:`ndcg_score` for ``cross_val_score``, ``GridSearchCV`` and the like.

    Parameters
    ----------
    k, gains, ties, empty
        As for :func:`ndcg_score`.
    qid : bool, default=True
        With True the scorer requests ``qid`` by scikit-learn's metadata routing, and
        raises an error if it gets none: without ``qid`` it would compare rows of
        different queries. With False all test rows are one query.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y, qid=qid)`` scores the predictions; larger is better.

    Examples
    --------
    Folds must not split queries:

    >>> import sklearn
    >>> from sklearn.model_selection import GroupKFold, cross_val_score
    >>> from cutplane.metrics import ndcg_scorer
    >>> sklearn.set_config(enable_metadata_routing=True)  # doctest: +SKIP
    >>> cross_val_score(
    ...     RankSVM().set_fit_request(qid=True),
    ...     X,
    ...     y,
    ...     cv=GroupKFold(5),
    ...     scoring=ndcg_scorer(k=10),
    ...     params={"qid": qid, "groups": qid},
    ... )  # doctest: +SKIP
    """
    return _scorer(ndcg_score, 1, qid, k=k, gains=gains, ties=ties, empty=empty)


def swapped_pairs_scorer(*, average: str = "pairs", qid: bool = True) -> Any:
    """Minus :func:`swapped_pairs`, for ``cross_val_score``, ``GridSearchCV`` and the like.

    Parameters
    ----------
    average
        As for :func:`swapped_pairs`.
    qid : bool, default=True
        As for :func:`ndcg_scorer`; use False if there are no queries.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y, qid=qid)``, larger is better, 0 is best.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from cutplane.metrics import swapped_pairs_scorer
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 2, 1, 3]
    >>> swapped_pairs_scorer(qid=False)(Ridge().fit(X, y), X, y)
    -0.166666...
    """
    return _scorer(swapped_pairs, -1, qid, average=average)


def _scorer(metric: Callable[..., float], sign: int, qid: bool, **options: Any) -> Any:
    from sklearn import config_context
    from sklearn.metrics import make_scorer

    better = sign > 0
    if not qid:
        return make_scorer(metric, greater_is_better=better, **options)
    scorer = make_scorer(_by_query, greater_is_better=better, metric=metric, **options)
    with config_context(enable_metadata_routing=True):  # set_score_request needs routing enabled
        return scorer.set_score_request(qid=True)


def _by_query(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    metric: Callable[..., float],
    qid: ArrayLike | None = None,
    **options: Any,
) -> float:
    """The metric with queries; an error if there are none."""
    if qid is None:
        raise ValueError(
            "the scorer got no qid: call sklearn.set_config(enable_metadata_routing=True) and pass "
            "qid in params, or make the scorer with qid=False to take all rows as one query"
        )
    return metric(y_true, y_score, qid=qid, **options)


# -- checks, gains and ties ---------------------------------------------------


def _check_column(name: str, values: Any, rows: int | None = None) -> np.ndarray:
    """The values as finite numbers in one dimension; with ``rows`` their number must agree."""
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from error
    if column.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {column.shape}")
    if not np.all(np.isfinite(column)):
        row = int(np.argmin(np.isfinite(column)))
        raise ValueError(f"{name} must be finite, got {column[row]} in row {row}")
    if rows is not None and len(column) != rows:
        raise ValueError(f"{name} has {len(column)} rows, y_true has {rows}")
    return column


def _check_columns(y_true: Any, y_score: Any) -> tuple[np.ndarray, np.ndarray]:
    """Targets and scores as columns of the same length."""
    truth = _check_column("y_true", y_true)
    scores = _check_column("y_score", y_score, len(truth))
    if not len(truth):
        raise ValueError("y_true is empty")
    return truth, scores


def _check_classes(y_true: Any, y_score: Any) -> tuple[np.ndarray, np.ndarray]:
    """Which rows are positive, and the scores."""
    truth, scores = _check_columns(y_true, y_score)
    found = set(np.unique(truth).tolist())
    if not (found <= {0.0, 1.0} or found <= {-1.0, 1.0}):
        raise ValueError("y_true must hold the classes 0 and 1, or −1 and 1, and no others")
    return truth == 1.0, scores


def _count_positive(positive: np.ndarray) -> int:
    """Number of positive rows, at least one."""
    count = int(np.count_nonzero(positive))
    if not count:
        raise ValueError("y_true has no positive row")
    return count


def _check_k(k: Any, most: float = np.inf) -> int:
    """k as an integer from 1 to ``most``."""
    if not isinstance(k, Integral) or isinstance(k, bool) or not 1 <= int(k) <= most:
        bound = "" if most == np.inf else f" and ≤ {most}, the number of rows"
        raise ValueError(f"k must be an integer ≥ 1{bound}, got {k!r}")
    return int(k)


def _row_gains(truth: np.ndarray, gains: str) -> np.ndarray:
    """The gain of each row: its contribution to the DCG at position 1."""
    if truth.min() < 0.0:
        raise ValueError(f"y_true must not be negative, got {truth.min():g}")
    if gains == "linear":
        return truth
    if truth.max() > 1000.0:  # 2^1024 is infinite, and the sum of several gains sooner
        raise ValueError(
            f"y_true up to {truth.max():g} is too large for gains='exponential'; use 'linear'"
        )
    return np.exp2(truth) - 1.0


def _tied_means(gain: np.ndarray, query: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """For sorted rows, the mean gain of all rows with the same query and score."""
    new = np.ones(len(gain), dtype=bool)
    new[1:] = (query[1:] != query[:-1]) | (scores[1:] != scores[:-1])
    first = np.flatnonzero(new)
    sizes = np.diff(first, append=len(gain))
    return np.repeat(np.add.reduceat(gain, first) / sizes, sizes)


def _expected_hits(positive: np.ndarray, scores: np.ndarray, k: Any) -> float:
    """Expected number of positive rows among the k rows with the largest scores."""
    k = _check_k(k, len(scores))
    last = np.partition(scores, len(scores) - k)[len(scores) - k]
    above, tied = scores > last, scores == last
    missing = k - np.count_nonzero(above)
    return float(np.count_nonzero(positive & above) + missing * np.mean(positive[tied]))
