"""Tables of the sampled-cuts and the chains benchmark."""

from __future__ import annotations

from ..tables import Content, Tables, markdown, seconds_text, titled


def percent(entry: Content | float) -> str:
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
                percent(found["train_error"]),
                percent(found["test_error"]),
                percent(found["unseen_error"]) if "unseen_error" in found else "",
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
            percent(point["train_error"]),
            percent(point["test_error"]),
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
            percent(case["summary"]["train_error"]),
            percent(case["summary"]["test_error"]),
            percent(case["summary"]["unseen_error"]),
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
            percent(case["train_error"]),
            percent(case["test_error"]),
            f"{case['predictions_per_second']:.3g}",
        ]
        for case in cases
    ]
    columns = ["solver", "rows", "s", "CPU s", "train error, %", "test error, %"]
    return markdown([*columns, "predictions/s"], rows)


def _crossing(cases: list[Content]) -> str:
    rows = [
        {
            "rows": case["rows"],
            "estimator": case["solver"],
            "s": _stopped([case]) + seconds_text(case["seconds"]),
            "test error, %": percent(case["test_error"]),
            "basis rows": f"{case['n_basis']:.0f}" if "n_basis" in case else "",
            "predictions/s": f"{case['predictions_per_second']:.3g}",
        }
        for case in cases
    ]
    return titled(rows) + "\n\n>: stopped at the time limit."


TABLES: Tables = {
    "table": ("Table 1 of the sampled-cuts paper", _table),
    "growth": ("Time against rows", _growth),
    "samples": ("Sample size and C on Adult", _samples),
    "stabilised": ("The stabilised step against the plain one", _stabilised),
    "peers": ("Checkers: a million rows, and peers", _peers),
    "limits": ("Checkers: how far peers get in ten minutes", _peers),
    "crossing": ("Covertype with a narrow kernel: which estimator for how many rows", _crossing),
}
