"""Markdown tables of the engine benchmark."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tables import case_name, markdown, seconds_text, titled

Content = dict[str, Any]


def _products(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        most = max(case["own"], key=int)
        limit = case["speed"][most] / case["memory_speed"][most]
        rows.append(
            [
                case["what"],
                *(f"{1e3 * case['own'][k]['median']:.2f}" for k in ("1", most)),
                *(f"{1e3 * case['peer'][k]['median']:.2f}" for k in ("float32", "float64")),
                f"{case['ratio']:.2f}",
                f"{case['kernel_ratio']:.2f}" if "kernel_ratio" in case else "–",
                f"{case['gain']:.2f}",
                f"{case['speed'][most] / 1e9:.1f} GB/s ({100 * limit:.0f} %)",
            ]
        )
    columns = ["product, milliseconds", "ours, 1 thread", "ours, 2 threads"]
    columns += ["scipy or numpy, single precision", "in double", "best peer / ours, 1 thread"]
    columns += ["best peer / our loop alone", "2 threads against 1", "read (of what memory gives)"]
    return markdown(columns, rows)


def _paths(cases: list[Content]) -> str:
    rows = [
        {
            "path of 10": case["data"],
            "C": f"{case['Cs'][0]:g} … {case['Cs'][-1]:g}",
            "seconds": seconds_text(case["path"]["median"]),
            "dearest fit alone": seconds_text(max(case["alone"])),
            "ratio": f"{case['ratio']:.2f}",
            "all fits alone": seconds_text(sum(case["alone"])),
        }
        for case in cases
    ]

    text = titled(rows)
    counted = [case for case in cases if "fits" in case]
    return f"{text}\n\n{_path_work(counted)}" if counted else text


def _path_work(cases: list[Content]) -> str:
    """The average work of the fits of paths: of the first one, and of those that start warm."""
    names = ("passes", "X·w", "Xᵀ·c", "certificates")
    rows = []
    for case in cases:
        first, others = case["fits"][0], case["fits"][1:]
        rows.append(
            [
                case["data"],
                *(f"{first[name]:.1f}" for name in names),
                *(f"{sum(fit[name] for fit in others) / len(others):.1f}" for name in names),
            ]
        )
    columns = ["work of a path", *(f"first fit: {name}" for name in names)]
    columns += [f"each of the others: {name}" for name in names]
    return markdown(columns, rows)


def _growth(cases: list[Content]) -> str:
    rows = []
    for case in (c for c in cases if "rows" in c):
        times = case["by_threads"]
        rows.append(
            [
                f"{case['rows']:,}",
                *(seconds_text(times[k]["median"]) if k in times else "–" for k in ("2", "1")),
                f"{case['speed_up']:.2f}",
                case["n_iter"],
                f"{case['reads']:.0f}",
            ]
        )
    columns = ["rows", "2 threads, s", "1 thread, s", "speed-up", "iterations"]
    text = markdown([*columns, "reads of the data"], rows)
    for case in (c for c in cases if "slope" in c):
        steps = ", ".join(f"{s:.2f}" for s in case["between"])
        text += f"\n\nSlope in log-log scale: {case['slope']:.2f}; between the sizes {steps}."
    return text


def _labels(cases: list[Content]) -> str:
    best = np.min([case["objectives"] for case in cases], axis=0)
    rows = [
        [
            case["what"],
            seconds_text(case["seconds"]),
            seconds_text(case["cpu_seconds"]),
            f"{(case['peak_bytes'] - case['before_bytes']) / 2**20:.0f}",
            f"{case['kept_weights']:,}",
            f"{np.median(above := np.array(case['objectives']) / best - 1.0):.0e}",
            f"{above.max():.0e}",
        ]
        for case in cases
    ]
    columns = ["solver", "s", "CPU s", "memory beside the data, MiB", "weights kept"]
    return markdown([*columns, "above the best known, median", "worst label"], rows)


def _linear(cases: list[Content]) -> str:
    fits = [case for case in cases if "regret" in case]
    parts = [regrets(cases), worst(cases), _fits(fits)]
    compared = [case for case in fits if "before" in case]
    return "\n\n".join([*parts, _before(compared)] if compared else parts)


def regrets(cases: list[Content]) -> str:
    """The distribution of the regrets of sections ``linear`` or ``small``, by loss and bias."""
    by_kind: dict[str, list[float]] = {"all": []}
    for case in (c for c in cases if "regret" in c):
        bias = "without bias" if case["bias"] == "none" else f"{case['bias']} bias"
        for kind in (f"{case['loss'].replace('_', ' ')}, {bias}", "all"):
            by_kind.setdefault(kind, []).append(case["regret"])
    by_kind["all"] = by_kind.pop("all")  # the last row
    rows = []
    for kind, found in by_kind.items():
        logs = np.log(found)
        middle = np.exp([logs.mean(), *np.quantile(logs, (0.5, 0.75, 0.9, 0.95, 1.0))])
        ahead = f"{100 * np.mean(logs <= 0.0):.0f} %"
        rows.append([kind, len(found), *(f"{value:.2f}" for value in middle), ahead])
    heads = ["regret", "cases", "geometric mean", "median", "75 %", "90 %", "95 %", "worst"]
    return markdown([*heads, "ahead"], rows)


def worst(cases: list[Content], count: int = 10) -> str:
    """The problems of sections ``linear`` or ``small`` with the largest regrets."""
    fits = [case for case in cases if "regret" in case]
    fits.sort(key=lambda case: -case["regret"])
    return _fits(fits[:count], f"the {min(count, len(fits))} largest regrets")


def _fits(fits: list[Content], title: str = "fit with default settings") -> str:
    rows = [
        [
            case["what"],
            *(seconds_text(case["ours"][k]["median"]) if k in case["ours"] else "–" for k in "21"),
            f"{case['relative_gap']:.0e}",
            case["best_peer"] or "none was good",
            seconds_text(min(p["seconds"] for p in case["peers"] if p["seconds"] is not None))
            if case["best_peer"]
            else "–",
            f"{case['regret']:.2f}" if case["best_peer"] else "< 0.1",
        ]
        for case in fits
    ]
    columns = [title, "2 threads, s", "1 thread, s", "certified gap"]
    return markdown([*columns, "best peer", "its time, s", "regret"], rows)


def _before(cases: list[Content]) -> str:
    rows = [
        [
            case["what"],
            *(seconds_text(case[key]["median"]) for key in ("before", "after")),
            f"{case['after']['median'] / case['before']['median']:.2f}",
        ]
        for case in cases
    ]
    return markdown(["before and after", "before, s", "after, s", "quotient"], rows)


def _cold(cases: list[Content]) -> str:
    rows = [
        [
            case["what"],
            f"{case['cold']['fit']:.2f}",
            f"{case['warm']['median']:.2f}",
            f"{case['cold']['others']:.2f}",
        ]
        for case in cases
    ]
    columns = ["CPU seconds, iris", "first fit ever", "import and first fit of a later process"]
    return markdown([*columns, "importing scikit-learn and numba"], rows)


def _constants(cases: list[Content]) -> str:
    rows = [
        [
            case["what"],
            f"{case['value']:g}",
            *(f"{case[k]['mean']:.2f} ({case[k]['worst']:.1f})" for k in ("0.5", "2.0")),
            case["2.0"]["where"],
            f"{max(case['left_out'].values()):.2f}",
        ]
        for case in cases
        if "value" in case
    ]
    columns = ["constant", "value", "time at half (worst)", "at double (worst)", "worst at double"]
    return markdown([*columns, "fixed without a data set: its time at most"], rows)


def _memory(cases: list[Content]) -> str:
    rows = [
        {
            "problem": case_name(case),
            "data, MB": f"{case['data_bytes'] / 1e6:.1f}",
            "peak above the data, MB": f"{case['extra_bytes'] / 1e6:.1f}",
            "allowed, MB": f"{case['allowed_bytes'] / 1e6:.1f}",
            "doubles per row": f"{case['doubles_per_row']:.1f}",
            "cuts": case["most_cuts"],
        }
        for case in cases
    ]
    return titled(rows)


TABLES = {
    "linear": ("What the default settings give, against every peer", _linear),
    "file": ("A file given, against every peer", _linear),
    "small": ("Small data, against scikit-learn", _linear),
    "cold": ("The first fit of a process", _cold),
    "constants": ("What half and double of each constant does", _constants),
    "products": ("The products that a pass consists of", _products),
    "paths": ("Paths over C", _paths),
    "labels": ("Many labels per row", _labels),
    "memory": ("Peak memory of a fit", _memory),
    "growth": ("Growth with the number of rows", _growth),
}
