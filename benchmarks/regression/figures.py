"""The figure of the regression benchmark: seconds of every solver, one row per loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..figures import BLUE, COLOURS, save
from .peers import PEERS
from .tables import NAMES


def draw(content: dict[str, Any], folder: Path) -> list[Path]:
    """The figure of a section, as files in ``folder``."""
    cases = content["cases"]
    return save(_speed(cases), folder / content["section"]) if cases else []


def _speed(cases: list[dict[str, Any]]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 0.45 * len(cases) + 1.6), layout="constrained")
    ax = figure.subplots()
    colours = dict(zip(PEERS, COLOURS[1:], strict=False))
    for k, case in enumerate(cases):
        ax.plot(case["seconds"]["median"], k, "o", color=BLUE, label="cutplane" if k == 0 else None)
        for peer in case["peers"]:
            marker = "o" if peer["reached"] else ">"
            ax.plot(peer["seconds"], k, marker, color=colours[peer["solver"]])
    for name, colour in colours.items():
        ax.plot([], [], "o", color=colour, label=name)
    labels = [f"{NAMES[c['loss']]} {c['parameter']:g}" for c in cases]
    ax.set_yticks(range(len(cases)), labels=labels)
    ax.invert_yaxis()
    ax.set_xscale("log")
    ax.set_xlabel("seconds to within 1e-3 of the best known objective (triangle: given up)")
    ax.grid(alpha=0.25, axis="x")
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    return figure
