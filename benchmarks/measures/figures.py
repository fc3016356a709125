"""The figures of the measures benchmark; ``figures`` calls them.

- ``iterations``: OCAS against CPA for every risk, and the convergence of one case of each risk.
- ``growth``: time of a fit and of an evaluation against the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..figures import BLUE, COLOURS, GREY, ORANGE, convergence, save
from .tables import NAMES

Case = dict[str, Any]


def draw(content: Case, folder: Path) -> list[Path]:
    """The figures of a section, as files in ``folder``."""
    cases = content["cases"]
    if content["section"] == "iterations" and cases:
        hardest = {case["loss"]: case for case in cases}  # the last C of each risk
        return [
            *save(_iterations(cases), folder / "iterations"),
            *save(convergence(list(hardest.values())), folder / "convergence"),
        ]
    grown = [case for case in cases if "points" in case]
    if content["section"] == "growth" and grown:
        return save(_growth(grown), folder / "growth")
    return []


def _iterations(cases: Sequence[Case]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 0.3 * len(cases) + 1.2), layout="constrained")
    ax = figure.subplots()
    for k, case in enumerate(cases):
        ocas, cpa = (record["n_iter"] for record in case["runs"])
        ax.plot([ocas, cpa], [k, k], color=GREY, linewidth=1.0, zorder=1)
        ax.plot(ocas, k, "o", color=BLUE, label="OCAS" if k == 0 else None)
        stopped = case["runs"][1]["status"] != "converged"
        marker = ">" if stopped else "o"
        ax.plot(cpa, k, marker, color=ORANGE, label="CPA" if k == 0 else None)
        ax.annotate(
            f"{'> ' if stopped else ''}{cpa / ocas:.1f}×",
            (max(ocas, cpa), k),
            xytext=(7, -3),
            textcoords="offset points",
            fontsize=8,
        )
    labels = [f"{NAMES[c['loss']]}, {c['data']}, C={c['C']:.0e}" for c in cases]
    ax.set_yticks(range(len(cases)), labels=[text.replace("e+0", "e") for text in labels])
    ax.tick_params(axis="y", labelsize=8)
    ax.invert_yaxis()
    ax.set_xscale("log")
    ax.margins(x=0.1)
    ax.set_xlabel("iterations to relative gap 1e-3 (triangle: stopped before)")
    ax.grid(alpha=0.25, axis="x")
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


def _growth(cases: Sequence[Case]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    axes = figure.subplots(1, 2)
    for ax, what, slope in zip(
        axes, ("seconds", "evaluation_seconds"), ("slope_fit", "slope_evaluation"), strict=True
    ):
        kinds = list(dict.fromkeys((case["loss"], case["ranks"]) for case in cases))
        for case in cases:
            colour = COLOURS[kinds.index((case["loss"], case["ranks"]))]
            rows = [point["rows"] for point in case["points"]]
            seconds = [point[what]["best"] for point in case["points"]]
            style = "o-" if case["threads"] == 1 else "o:"
            label = f"{case['what']} ({case[slope]:.2f})"
            ax.plot(rows, seconds, style, color=colour, markersize=4, label=label)
        first = min(point[what]["best"] for case in cases for point in case["points"])
        ax.plot(rows, [first * m / rows[0] for m in rows], color=GREY, linewidth=0.8)
        ax.set(xscale="log", yscale="log", xlabel="rows (grey: slope 1)")
        ax.grid(alpha=0.25)
        ax.legend(frameon=False, fontsize=7)
    axes[0].set_ylabel(f"seconds per fit of {cases[0]['iterations']} iterations (slope)")
    axes[1].set_ylabel("seconds per evaluation of the risk (slope)")
    return figure
