"""The figures of the papers benchmark; ``figures`` calls them.

- ``ocas-curves``: Figures 1 (objective and bound against iterations) and 2 (distance against time).
- ``ocas-selection``: Table 3 as bars of time.
- ``ocas-scaling``: Figure 3, time against rows.
- ``perf-n``, ``perf-eps``, ``perf-c``: time and iterations against rows, ε and C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..figures import BLUE, COLOURS, GREY, ORANGE, convergence, save

Case = dict[str, Any]
FIGURE1 = 3  # number of data sets in Figure 1
LOWEST = 1e-6  # the smallest distance to the best known that is drawn


def draw(content: Case, folder: Path) -> list[Path]:
    """The figures of a section, as files in ``folder``."""
    cases, section = content["cases"], content["section"]
    if not cases:
        return []
    if section == "ocas-curves":
        first = save(convergence(cases[:FIGURE1]), folder / "ocas-figure1")
        return [*first, *save(_grid(cases, _distance), folder / "ocas-figure2")]
    if section == "ocas-selection":
        return save(_selection(cases), folder / "ocas-selection")
    if section == "ocas-scaling":
        return save(_grid(cases, _scaling), folder / "ocas-figure3")
    if section == "perf-n":
        return save(_two_rows(cases, "rows", "rows"), folder / "perf-rows")
    if section == "perf-eps":
        return save(_two_rows(cases, "epsilon", "ε"), folder / "perf-epsilon")
    if section == "perf-c":
        return save(_two_rows(cases, "C", "C, times the mean loss"), folder / "perf-c")
    return []


def _grid(cases: Sequence[Case], panel: Callable[[Any, Case], None]) -> Any:
    """Draw a panel per case, at most three in a row, with one legend."""
    from matplotlib.figure import Figure

    across = min(3, len(cases))
    down = -(-len(cases) // across)
    figure = Figure(figsize=(4.0 * across, 3.2 * down + 0.6), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False)
    for ax, case in zip(axes.flat, cases, strict=False):
        panel(ax, case)
        ax.set_title(f"{case['data']}, C = {case['C']:g}", loc="left", fontsize=10)
        ax.set(xscale="log", yscale="log")
        ax.grid(alpha=0.25)
    for ax in list(axes.flat)[len(cases) :]:
        ax.set_visible(False)
    _legend(figure, axes)
    return figure


def _legend(figure: Any, axes: Any) -> None:
    """Draw a legend with every name once, above all panels."""
    found: dict[str, Any] = {}
    for ax in axes.flat:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        list(found.values()),
        list(found),
        loc="outside upper center",
        ncols=min(4, len(found)),
        frameon=False,
        fontsize=9,
    )


def _distance(ax: Any, case: Case) -> None:
    """Draw the distance to the best known against time. A dashed line marks SGD's ten epochs."""
    best = case["best_known"]
    curves = [("default solver", case["auto"]["trace"]), ("OCAS", case["runs"][0]["trace"])]
    curves.append(("CPA", case["runs"][1]["trace"]))
    for k, (name, trace) in enumerate(curves):
        above = [max(v / best - 1.0, LOWEST) for v in trace["primal"]]
        ax.plot(trace["seconds"], above, color=COLOURS[k], linewidth=1.6, label=name)
    for k, curve in enumerate(case["peers"], len(curves)):
        seconds, objectives = _best_so_far(curve["points"])
        above = [max(v / best - 1.0, LOWEST) for v in objectives]
        ax.plot(seconds, above, ".-", color=COLOURS[k], linewidth=0.9, label=curve["solver"])
        ten = [p["seconds"] for p in curve["points"] if p["passes"] == 10]
        if curve["solver"] == "SGDClassifier" and ten:
            ax.axvline(ten[0], color=COLOURS[k], linestyle="--", linewidth=0.9)
    ax.axhline(1e-3, color=GREY, linestyle=":", linewidth=0.8)
    ax.set(ylim=(LOWEST, 10.0), xlabel="seconds, compiling excluded", ylabel="above the best known")


def _best_so_far(points: Sequence[Case]) -> tuple[list[float], list[float]]:
    """The runs that are better than all faster runs."""
    seconds: list[float] = []
    objectives: list[float] = []
    for point in sorted(points, key=lambda p: p["seconds"]):
        if not objectives or point["objective"] < objectives[-1]:
            seconds.append(point["seconds"])
            objectives.append(point["objective"])
    return seconds, objectives


def _scaling(ax: Any, case: Case) -> None:
    for k, curve in enumerate(case["curves"]):
        rows = [p["rows"] for p in curve["points"]]
        seconds = [p["seconds"] for p in curve["points"]]
        ax.plot(rows, seconds, "o-", color=COLOURS[k], markersize=3, label=curve["solver"])
    points = case["curves"][0]["points"]
    ends = [points[0]["rows"], points[-1]["rows"]]
    per_row = points[-1]["seconds"] / points[-1]["rows"]
    ax.plot(ends, [per_row * m for m in ends], color=GREY, linewidth=0.8, label="slope 1")
    ax.set(xlabel="rows", ylabel="seconds")


def _selection(cases: Sequence[Case]) -> Any:
    """Draw the seconds of all fits, with a group of bars per data set."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(r["method"] for case in cases for r in case["methods"]))
    palette = dict(zip(names, (*COLOURS, GREY, "#8C564B", "#BCBD22", "#17BECF"), strict=False))
    height = sum(len(case["methods"]) + 1 for case in cases)
    figure = Figure(figsize=(8.0, 0.2 * height + 1.2), layout="constrained")
    ax = figure.subplots()
    at, ticks = 0, []
    for case in cases:
        ticks.append((at + (len(case["methods"]) - 1) / 2, case["what"]))
        for record in case["methods"]:
            colour = palette.get(record["method"], GREY)
            known = record["method"] in ax.get_legend_handles_labels()[1]
            label = None if known else record["method"]
            ax.barh(at, record["seconds"], color=colour, height=0.85, label=label)
            more = "" if record["complete"] else "> "
            ax.annotate(
                f"{more}{record['ratio']:.1f}×",
                (record["seconds"], at),
                xytext=(4, -3),
                textcoords="offset points",
                fontsize=7,
            )
            at += 1
        at += 1
    ax.set_yticks([t for t, _ in ticks], labels=[text for _, text in ticks], fontsize=8)
    ax.invert_yaxis()
    ax.set_xscale("log")
    ax.margins(x=0.12)
    ax.set_xlabel("seconds of all fits (numbers: against the path)")
    ax.grid(alpha=0.25, axis="x")
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    return figure


def _two_rows(cases: Sequence[Case], key: str, label: str) -> Any:
    """Draw time above and iterations below against rows, ε or C; a column per data set."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.9 * len(cases) + 0.6, 5.6), layout="constrained")
    axes = figure.subplots(2, len(cases), squeeze=False)
    names = list(dict.fromkeys(name for case in cases for name in case["curves"]))
    colours = dict(zip(names, (ORANGE, BLUE, *COLOURS[2:]), strict=False))
    for column, case in zip(axes.T, cases, strict=True):
        for ax, what in zip(column, ("seconds", "n_iter"), strict=True):
            for name, points in case["curves"].items():
                used = [p for p in points if p.get(what) is not None]
                at, values = [p[key] for p in used], [p[what] for p in used]
                ax.plot(at, values, "o-", color=colours[name], markersize=3, label=name)
            ax.set(xscale="log", yscale="log")
            ax.grid(alpha=0.25)
        column[0].set_title(case["data"], loc="left", fontsize=10)
        column[1].set_xlabel(label)
    axes[0][0].set_ylabel("seconds")
    axes[1][0].set_ylabel("iterations")
    _legend(figure, axes)
    return figure
