"""Figures of the foundation benchmark, each as PNG and SVG.

- ``iterations``: Figure 1 of the OCAS paper: objective and lower bound of OCAS and CPA against
  iterations and against time, one figure per data set, one row per C.
- ``position``: iterations against λ, with the library's own rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..figures import COLOURS, convergence, save


def draw(content: dict[str, Any], folder: Path) -> list[Path]:
    """The figures of a section, as files in ``folder``."""
    cases = content["cases"]
    if content["section"] == "iterations":
        names = list(dict.fromkeys(case["data"] for case in cases))
        drawn = []
        for name in names:
            figure = convergence([case for case in cases if case["data"] == name])
            drawn += save(figure, folder / f"figure1-{name}")
        return drawn
    if content["section"] == "position" and cases:
        return save(_positions(cases), folder / "position")
    return []


def _positions(cases: Sequence[dict[str, Any]]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.2), layout="constrained")
    ax = figure.subplots()
    for k, case in enumerate(cases):
        colour = COLOURS[k % len(COLOURS)]
        fixed = [r for r in case["runs"] if r["solver"].startswith("λ = ")]
        at = [float(r["solver"].removeprefix("λ = ")) for r in fixed]
        own = next(r for r in case["runs"] if r["solver"] == case["automatic"])
        label = f"{case['data']} C={case['C']:g}"
        needed = [r["n_iter"] if r["status"] == "converged" else math.nan for r in fixed]
        ax.plot(at, needed, "o-", color=colour, markersize=4, label=label)
        stopped = [r["n_iter"] if r["status"] != "converged" else math.nan for r in fixed]
        ax.plot(at, stopped, "^", color=colour, markersize=7, fillstyle="none")
        if own["status"] == "converged":
            ax.axhline(own["n_iter"], color=colour, linestyle=":", linewidth=1.2)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ticks = sorted(
        {float(r["solver"][4:]) for c in cases for r in c["runs"] if r["solver"][0] == "λ"}
    )
    ax.set_xticks(ticks, labels=[f"{t:g}" for t in ticks])
    ax.minorticks_off()
    ax.set_xlabel("fixed λ (dotted: the library's own rule; triangle: stopped before)")
    ax.set_ylabel("iterations to relative gap 1e-3")
    ax.grid(alpha=0.25)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    return figure
