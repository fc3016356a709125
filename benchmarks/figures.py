"""Finds, draws and writes figures. All suites use it.

Each suite has a module ``figures``, which draws figures from the JSON file of a section.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#8C564B")
RANGE = (0.2, 8.0)  # the range of objective / best known that figures show


def draw(content: dict[str, Any], folder: Path) -> list[Path]:
    """Draw the figures of a section as files in ``folder``. Some suites have no figures."""
    name = f"benchmarks.{content['suite']}.figures"
    if importlib.util.find_spec(name) is None:
        return []
    drawn: list[Path] = importlib.import_module(name).draw(content, folder)
    return drawn


def save(figure: Any, stem: Path, endings: Sequence[str] = (".png", ".svg")) -> list[Path]:
    """Write a figure to one file per ending."""
    files = [stem.with_name(stem.name + ending) for ending in endings]
    for file in files:
        # No date inside: the same JSON gives the same file.
        metadata = {"Date": None} if file.suffix == ".svg" else {}
        figure.savefig(file, dpi=150, metadata=metadata)
    return files


def convergence(cases: Sequence[dict[str, Any]]) -> Any:
    """Objective, lower bound and gap of OCAS and CPA, one row per case."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 3.0 * len(cases) + 0.7), layout="constrained")
    axes = figure.subplots(len(cases), 3, squeeze=False)
    for row, case in zip(axes, cases, strict=True):
        for ax, x in zip(row[:2], ("number", "seconds"), strict=True):
            for record, colour in zip(case["runs"], (BLUE, ORANGE), strict=True):
                _curve(ax, record, x, case["best_known"], colour)
            ax.axhline(1.0, color=GREY, linewidth=0.6)
            ax.set(xscale="log", yscale="log")
            ax.set_ylim(*RANGE)
            ax.set_yticks([0.2, 0.5, 1.0, 2.0, 5.0], labels=["0.2", "0.5", "1", "2", "5"])
            ax.minorticks_off()
            ax.grid(alpha=0.25)
        _gaps(row[2], case["runs"])
        row[0].set_ylabel("value / best known")
        name = case["data"] + (f" {case['loss']}" if case["loss"] != "hinge" else "")
        row[0].set_title(f"{name}, C = {case['C']:g}", loc="left", fontsize=10)
    axes[-1][0].set_xlabel("iterations")
    axes[-1][1].set_xlabel("seconds, compiling excluded")
    axes[-1][2].set_xlabel("iterations")
    handles, labels = axes[0][0].get_legend_handles_labels()
    by_row = [0, 3, 1, 4, 2, 5]  # legends fill columns first; this gives a row per algorithm
    figure.legend(
        [handles[k] for k in by_row],
        [labels[k] for k in by_row],
        loc="outside upper center",
        ncols=3,
        frameon=False,
        fontsize=9,
    )
    return figure


def _gaps(ax: Any, runs: Sequence[dict[str, Any]]) -> None:
    """Draw the relative gap, by which a run decides when to stop."""
    for record, colour in zip(runs, (BLUE, ORANGE), strict=True):
        trace = record["trace"]
        gaps = [1 - d / p for p, d in zip(trace["primal"], trace["dual"], strict=True)]
        ax.plot(trace["number"], gaps, color=colour, linewidth=1.6)
    ax.axhline(1e-3, color=GREY, linewidth=0.8, linestyle=":")
    ax.set(xscale="log", yscale="log", ylabel="relative gap")
    ax.grid(alpha=0.25)


def _curve(ax: Any, record: dict[str, Any], x: str, best: float, colour: str) -> None:
    trace, name = record["trace"], record["solver"].split()[-1].upper()
    at = trace[x]
    primal, dual, trial = ([v / best for v in trace[key]] for key in ("primal", "dual", "trial"))
    ax.plot(at, trial, color=colour, linewidth=0.6, alpha=0.35, label=f"{name} F(w_t)")
    ax.plot(at, primal, color=colour, linewidth=1.8, label=f"{name} best objective")
    ax.plot(at, dual, color=colour, linewidth=1.4, linestyle="--", label=f"{name} lower bound")
    if record["status"] == "converged":
        ax.plot(at[-1:], primal[-1:], "o", color=colour, markersize=6)
