"""The two products that every pass consists of, X·w and Xᵀ·c, against those of scipy and numpy.

Our products sum in double precision over rows as they are stored. The peer's time is the better one
of two: all numbers in single precision, or all in double. With both kinds it would copy the matrix
first. Further numbers explain a product that misses its target: ``kernel``, the time of the loop
alone on one thread over all rows, without blocks and partial sums; ``bytes`` that a product reads;
its share of the speed at which memory can be read; and ``round``, the time of a round in which two
threads do nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from cutplane._blas import single_threaded_blas
from cutplane.data import as_blocks
from cutplane.data.blocks import Block, CSRBlock
from cutplane.exec import SerialExecutor, ThreadExecutor
from cutplane.objective.linear import RowProducts

from ..datasets import SEED, DataSet
from ..measure import memory_speed, spread, usable_cores
from ..report import Check, Report, at_least, at_most

NAMES = ("covtype", "mnist8", "aclimdb", "a9a", "w8a", "celegans")
LAYOUTS = {"CSR": sp.csr_matrix, "dense": lambda X: X.toarray(order="C")}
MOST_DENSE = 1 << 30  # bytes
SECONDS = 0.4  # a product is repeated for so long
ERROR = 1e-5  # largest difference from the peer in float32, relative to the largest number
ON_TWO = 1.8  # two threads should be so many times as fast
CACHE_LINE = 64  # bytes

Products = dict[str, Callable[[], np.ndarray]]


def run(report: Report) -> None:
    """Run the section."""
    speeds = {k: memory_speed(k) for k in ((1, 2) if usable_cores() > 1 else (1,))}
    rounds = {k: _round(k) for k in speeds}
    for name in NAMES:
        data = report.load(name)
        if data is None:
            continue
        for layout, convert in LAYOUTS.items():
            if layout == "dense" and 4 * data.X.shape[0] * data.X.shape[1] > MOST_DENSE:
                continue
            with report.attempt(f"{name} {layout}"):
                X = convert(data.X.astype(np.float32))
                _measure(report, data, layout, X, speeds, rounds)


def _measure(
    report: Report,
    data: DataSet,
    layout: str,
    X: Any,
    speeds: dict[int, float],
    rounds: dict[int, float],
) -> None:
    threads = list(speeds)
    rng = np.random.default_rng(SEED)
    w, coef = rng.normal(size=X.shape[1]), rng.normal(size=X.shape[0])
    peers = _peers(X, w, coef)
    nbytes = sum(_bytes_read(block) for block in as_blocks(X).blocks)
    for product in ("X·w", "Xᵀ·c"):
        answers = {name: pair[product]() for name, pair in peers.items()}
        expected = next(iter(answers.values()))
        ours: dict[int, dict[str, Any]] = {}
        error = 0.0
        for count in threads:
            with SerialExecutor() if count == 1 else ThreadExecutor(count) as executor:
                own = _ours(X, w, coef, executor)[product]
                error = max(error, float(np.abs(own() - expected).max() / np.abs(expected).max()))
                ours[count] = spread(_times(own))
        with single_threaded_blas():
            times = {name: spread(_times(pair[product])) for name, pair in peers.items()}
        best = min(entry["median"] for entry in times.values())
        ratio = best / ours[1]["median"]
        gain = ours[1]["median"] / ours[threads[-1]]["median"]
        checks = [at_most("same product", error, ERROR, "certificate")]
        if layout == "CSR" and not report.settings.quick:
            checks += _targets(ratio, gain, threads)
        speed = {k: nbytes / t["median"] for k, t in ours.items()}
        kernel = spread(_times(_kernel(X, w, coef)[product]))
        case = {
            **data.facts(),
            "what": f"{data.name} {layout} {product}",
            "layout": layout,
            "product": product,
            "own": {str(count): entry for count, entry in ours.items()},
            "peer": times,
            "ratio": ratio,
            "gain": gain,
            "speed": {str(k): value for k, value in speed.items()},
            "memory_speed": {str(k): value for k, value in speeds.items()},
            "kernel": kernel,
            "kernel_ratio": best / kernel["median"],
            "bytes": nbytes,
            "share": {str(k): speed[k] / speeds[k] for k in speeds},
            "round": {str(k): value for k, value in rounds.items()},
        }
        report.add(case, checks, case["what"])
        report.say(f"{case['what']}: {ratio:.2f} times the peer, two threads {gain:.2f}")


def _bytes_read(block: Block) -> int:
    """The bytes that a product reads. Equal values of a row count as one line of the cache."""
    every = sum(array.nbytes for array in block.arrays())
    if not isinstance(block, CSRBlock) or not block.equal:
        return every
    return every - max(0, block.values.nbytes - CACHE_LINE * block.rows)


def _targets(ratio: float, gain: float, threads: Sequence[int]) -> list[Check]:
    checks = [at_least("one thread at least as fast as scipy", ratio, 1.0)]
    if len(threads) > 1:
        checks.append(at_least(f"two threads ≥ {ON_TWO:g} times one", gain, ON_TWO))
    return checks


def _ours(X: Any, w: np.ndarray, coef: np.ndarray, executor: Any) -> Products:
    products = RowProducts(as_blocks(X), w.shape, 0.0, executor, updates=False)
    scores = np.empty(len(coef))

    def own_scores() -> np.ndarray:
        products.scores(w, scores)
        return scores

    return {"X·w": own_scores, "Xᵀ·c": lambda: products.gradient(coef)}


def _kernel(X: Any, w: np.ndarray, coef: np.ndarray) -> Products:
    """Times of the loops alone, over all rows at once."""
    block = as_blocks(X).whole
    assert block is not None
    scores, gradient = np.empty(len(coef)), np.zeros(len(w))
    return {
        "X·w": lambda: block.scores(w, scores),
        "Xᵀ·c": lambda: block.add_gradient(coef, gradient),
    }


def _round(threads: int) -> float:
    """Seconds of a round of tasks that do nothing."""
    with SerialExecutor() if threads == 1 else ThreadExecutor(threads) as executor:
        return float(np.median(_times(lambda: executor.run(lambda k: None, threads))))


def _peers(X: Any, w: np.ndarray, coef: np.ndarray) -> dict[str, Products]:
    """Times of SciPy (sparse) or NumPy (dense), in double and in single precision."""
    return {
        kind.__name__: {
            "X·w": lambda x=x, v=v: x @ v,
            "Xᵀ·c": lambda x=x, c=c: x.T @ c,
        }
        for kind in (np.float64, np.float32)
        for x, v, c in [(X.astype(kind), w.astype(kind), coef.astype(kind))]
    }


def _times(product: Callable[[], Any]) -> list[float]:
    product()
    seconds: list[float] = []
    while sum(seconds) < SECONDS or len(seconds) < 5:
        begin = time.perf_counter()
        product()
        seconds.append(time.perf_counter() - begin)
    return seconds
