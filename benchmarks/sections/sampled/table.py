"""Table 1 of the paper: time and errors of both methods and of Cholesky features, three seeds."""

from __future__ import annotations

from typing import Any

from ...report import Report, at_most
from ...sampled_problems import NAMES, record, sample_sizes, seeds, split_of, summary, warm_up

SIZES = (400, 1000)
BASES = {"checkers": (250,), "a9a": (250, 500, 5000), "covtype": (250, 500)}
# Test error in per cent and CPU seconds (2 GHz Opteron) of the paper's Table 1.
PAPER = {
    ("checkers", "constant", 400): (3.23, 1411),
    ("checkers", "constant", 1000): (3.14, 1854),
    ("checkers", "linear", 400): (2.99, 60101),
    ("checkers", "linear", 1000): (2.95, 151759),
    ("a9a", "constant", 400): (10.45, 17487),
    ("a9a", "constant", 1000): (10.29, 38617),
    ("a9a", "linear", 400): (10.19, 11136),
    ("a9a", "linear", 1000): (10.19, 15191),
    ("covtype", "constant", 400): (18.61, 3496),
    ("covtype", "constant", 1000): (18.55, 12946),
    ("covtype", "linear", 400): (18.28, 62184),
    ("covtype", "linear", 1000): (18.22, 155196),
    ("checkers", "cholesky", 250): (3.32, 2447),
    ("a9a", "cholesky", 250): (15.09, 604),
    ("a9a", "cholesky", 500): (14.50, 537),
    ("a9a", "cholesky", 5000): (12.43, 3386),
    ("covtype", "cholesky", 250): (21.85, 1937),
    ("covtype", "cholesky", 500): (20.35, 3093),
}
WITHIN = 0.3  # points of the paper's test error, or better


def run(report: Report) -> None:
    """Run the section."""
    from cutplane import SampledCutSVC

    limit = report.settings.tight_seconds
    for name in NAMES:
        split = split_of(report, name)
        if split is None:
            continue
        warm_up(split)
        for method in ("constant", "linear"):
            for size in sample_sizes(report, SIZES):
                label = f"{NAMES[name]} {method} r={size}"
                with report.attempt(label):
                    runs = [
                        record(
                            split,
                            SampledCutSVC(
                                C=split.C,
                                gamma=split.gamma,
                                method=method,
                                sample_size=size,
                                random_state=seed,
                                time_limit=limit,
                            ),
                        )
                        for seed in seeds(report)
                    ]
                    _add(report, split.facts(), method, size, runs, label)
        for size in BASES[name]:
            label = f"{NAMES[name]} cholesky {size}"
            with report.attempt(label):
                model = _cholesky(split, 50 if report.settings.quick else size, limit)
                _add(report, split.facts(), "cholesky", size, [record(split, model)], label)


def _cholesky(split: Any, size: int, limit: float) -> Any:
    from sklearn.pipeline import make_pipeline

    from cutplane import CholeskyFeatures, LinearSVC

    features = CholeskyFeatures(
        gamma=split.gamma, n_components=size, selection="random", random_state=0
    )
    return make_pipeline(features, LinearSVC(C=split.C, fit_intercept=False, time_limit=limit))


def _add(
    report: Report,
    facts: dict[str, Any],
    method: str,
    size: int,
    runs: list[dict[str, Any]],
    label: str,
) -> None:
    found = summary(runs)
    paper = PAPER.get((facts["data"], method, size))
    checks = []
    if paper is not None and method != "cholesky":
        error = 100.0 * found["test_error"]["mean"]
        claim = f"test error ≤ the paper's + {WITHIN}"
        checks.append(at_most(claim, error, paper[0] + WITHIN))
    report.say(
        f"{label}: test error {100 * found['test_error']['mean']:.2f} %, "
        f"{found['seconds']['mean']:.1f} s"
    )
    case = {**facts, "method": method, "sample_size": size, "summary": found, "runs": runs}
    if paper is not None:
        case["paper"] = {"test_error": paper[0], "cpu_seconds": paper[1]}
    report.add(case, checks, label)
