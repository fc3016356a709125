"""The figures of the sampled-cuts benchmark; ``figures`` calls them.

- ``growth``: Figures 1 to 3 of the paper: time, training and test error against rows.
- ``samples``: Figures 4 to 7: time, iterations, training and test error against sample size.
- ``stabilised``: distance from the optimum against iterations, both steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..figures import BLUE, COLOURS, GREY, ORANGE, save

Case = dict[str, Any]
METHODS = {
    "linear": ("linear time", "o-", BLUE),
    "constant": ("constant time", "s-", ORANGE),
    "exact": ("decomposition (SVC)", "^:", GREY),
}
NAMES = {"checkers": "Checkers", "a9a": "Adult", "covtype": "Covertype"}


def draw(content: Case, folder: Path) -> list[Path]:
    """The figures of a section, as files in ``folder``."""
    cases = content["cases"]
    drawings = {"growth": _growth, "samples": _samples, "stabilised": _stabilised}
    if content["section"] not in drawings or not cases:
        return []
    return save(drawings[content["section"]](cases), folder / content["section"])


def _growth(cases: Sequence[Case]) -> Any:
    from matplotlib.figure import Figure

    sets = list(dict.fromkeys(case["data"] for case in cases))
    figure = Figure(figsize=(11.0, 3.2 * len(sets)), layout="constrained")
    axes = figure.subplots(len(sets), 3, squeeze=False)
    for row, name in zip(axes, sets, strict=True):
        for case in (c for c in cases if c["data"] == name):
            label, style, colour = METHODS[case["method"]]
            label += f" r = {case['sample_size']}" if case["sample_size"] else ""
            if case.get("fixed_C"):
                label, style = f"{label}, C fixed", f"{style[0]}--"
            rows = [point["rows"] for point in case["points"]]
            slope = case["slopes"]["seconds"]
            slope = f" (rows^{slope:.2f})" if math.isfinite(slope) else ""
            for ax, key, factor in zip(row, _QUANTITIES, (1, 100, 100), strict=True):
                values = [factor * point[key]["mean"] for point in case["points"]]
                text = label + (slope if key == "cpu_seconds" else "")
                if key == "cpu_seconds" or not case.get("fixed_C"):  # other C, other errors
                    ax.plot(rows, values, style, color=colour, markersize=4, label=text)
        for ax, title in zip(
            row, ("CPU seconds", "training error, %", "test error, %"), strict=True
        ):
            ax.set_xscale("log")
            ax.xaxis.set_minor_formatter("")
            ax.set(xlabel="rows", ylabel=title)
            ax.grid(alpha=0.25)
        row[0].set_yscale("log")
        row[0].yaxis.set_minor_formatter("")
        row[0].set_title(NAMES[name], loc="left", fontsize=10)
        row[0].set_ylim(top=10.0 * row[0].get_ylim()[1])  # room for the legend
        row[0].legend(frameon=False, fontsize=7, loc="upper left")
    return figure


_QUANTITIES = ("cpu_seconds", "train_error", "test_error")


def _samples(cases: Sequence[Case]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.0, 6.2), layout="constrained")
    axes = figure.subplots(2, 4, squeeze=False)
    shown = (("cpu_seconds", "CPU seconds", 1), ("n_iter", "iterations", 1))
    shown += (("train_error", "training error, %", 100), ("test_error", "test error, %", 100))
    for row, method in zip(axes, ("constant", "linear"), strict=True):
        mine = [case for case in cases if case["method"] == method]
        for colour, C in zip(COLOURS, sorted({case["C"] for case in mine}), strict=False):
            line = sorted((c for c in mine if c["C"] == C), key=lambda c: c["sample_size"])
            for ax, (key, title, factor) in zip(row, shown, strict=True):
                at = [case["sample_size"] for case in line]
                values = [factor * case["summary"][key]["mean"] for case in line]
                ax.plot(at, values, "-", color=colour, label=f"C = {C:g}·N")
                for x, y, case in zip(at, values, line, strict=True):
                    ax.plot(x, y, "o" if case["converged"] else "^", color=colour, markersize=4)
                ax.set(xscale="log", ylabel=title)
                ax.grid(alpha=0.25)
        row[0].set_yscale("log")
        row[1].set_yscale("log")
        row[0].set_title(METHODS[method][0], loc="left", fontsize=10)
    handles, labels = axes[0][0].get_legend_handles_labels()
    options = {"frameon": False, "fontsize": 9, "ncols": len(labels)}
    figure.legend(handles, labels, loc="outside upper center", **options)
    figure.supxlabel("sample size r (triangle: stopped at the time limit)", fontsize=9)
    return figure


def _stabilised(cases: Sequence[Case]) -> Any:
    from matplotlib.figure import Figure

    sets = list(dict.fromkeys((case["data"], case["rows"]) for case in cases))
    sizes = sorted({case["sample_size"] for case in cases})
    figure = Figure(figsize=(4.2 * len(sets), 3.0 * len(sizes)), layout="constrained")
    axes = figure.subplots(len(sizes), len(sets), squeeze=False)
    for row, size in zip(axes, sizes, strict=True):
        for ax, (name, rows) in zip(row, sets, strict=True):
            here = [c for c in cases if (c["data"], c["sample_size"]) == (name, size)]
            for case in here:
                first = case is here[0]
                for step, colour in (("stabilised", BLUE), ("plain", ORANGE)):
                    trace = case[step]["trace"]
                    above = [100 * (p / case["optimum"]["dual"] - 1) for p in trace["primal"]]
                    label = step if first else None
                    ax.plot(trace["number"], above, color=colour, linewidth=1.2, label=label)
                    ax.plot(trace["number"][-1:], above[-1:], "o", color=colour, markersize=4)
            ax.set(xscale="log", yscale="log")
            ax.set_title(f"{NAMES[name]} {rows} rows, r = {size}", loc="left", fontsize=9)
            ax.set(xlabel="iterations", ylabel="objective above F*, %")
            ax.grid(alpha=0.25)
    axes[0][0].legend(frameon=False, fontsize=8)
    return figure
