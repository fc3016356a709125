"""The figures of the kernels benchmark; ``figures`` calls them.

- ``svmlight``: Figure 1 of the SVM-light paper: time against rows, with the minimum.
- ``parts``: Figure 2: time against the working set's size, against the cache with and without
  shrinking.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..figures import BLUE, GREEN, GREY, ORANGE, save

Case = dict[str, Any]


def draw(content: Case, folder: Path) -> list[Path]:
    """The figures of a section, as files in ``folder``."""
    cases = content["cases"]
    if content["section"] == "svmlight" and cases:
        return save(_growth(cases), folder / "svmlight")
    if content["section"] == "parts" and cases:
        return save(_parts(cases), folder / "parts")
    return []


def _growth(cases: Sequence[Case]) -> Any:
    from matplotlib.figure import Figure

    cases = [case for case in cases if "σ²" in case["what"]]  # those that the paper ran
    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    for ax, case in zip(figure.subplots(1, len(cases), squeeze=False)[0], cases, strict=True):
        lines = case["lines"]
        rows = [line["rows"] for line in lines]
        known = case["published_exponents"]
        curves = (
            (
                "SVM-light 1998",
                [p["published"]["seconds"] for p in lines],
                known["time"],
                "o:",
                GREY,
            ),
            (
                "its minimum",
                [p["published"]["minimum"] for p in lines],
                known["minimum"],
                "s:",
                GREY,
            ),
            ("ours", [p["seconds"]["best"] for p in lines], case["exponent"], "o-", BLUE),
            ("minimum", [p["minimum"] for p in lines], case["exponent_minimum"], "s-", ORANGE),
        )
        for name, seconds, exponent, style, colour in curves:
            label = f"{name} (rows^{exponent:.2g})"
            ax.plot(rows, seconds, style, color=colour, markersize=4, label=label)
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter("")
        ax.set_yscale("log")
        ax.set_title(f"{case['what']}: {case['data']}, C = {case['C']:g}", loc="left", fontsize=10)
        ax.set(xlabel="rows", ylabel="seconds")
        ax.grid(alpha=0.25)
        ax.legend(frameon=False, fontsize=8)
    return figure


def _parts(cases: Sequence[Case]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 3.6 * len(cases)), layout="constrained")
    axes = figure.subplots(len(cases), 2, squeeze=False)
    for (left, right), case in zip(axes, cases, strict=True):
        _curve(left, case["sizes"], "working_set_size", "working set of q variables", BLUE, "-")
        left.set_title(case["what"], loc="left", fontsize=10)
        left.set_xlabel("working set size q")
        for q, colour in ((None, BLUE), (10, GREEN)):
            for shrinking, style in ((True, "-"), (False, ":")):
                some = [
                    r
                    for r in case["caches"]
                    if r["working_set_size"] == q and r["shrinking"] is shrinking
                ]
                name = "q of the library" if q is None else f"q = {q}"
                label = name + (", shrinking" if shrinking else ", no shrinking")
                _curve(right, some, "cache_size", label, colour, style)
        right.set_xlabel("cache in MB")
        for ax in (left, right):
            ax.axhline(case["limit"], color=GREY, linewidth=0.8, linestyle="--")
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter("{x:g}")
            ax.xaxis.set_minor_formatter("")
            ax.set(yscale="log", ylabel="seconds")
            ax.grid(alpha=0.25, which="both")
            ax.legend(frameon=False, fontsize=8)
    figure.supxlabel("triangle, dashed line: stopped at the limit", fontsize=8)
    return figure


def _curve(ax: Any, records: Sequence[Case], x: str, label: str, colour: str, style: str) -> None:
    at = [r[x] for r in records]
    ax.plot(at, [r["seconds"] for r in records], style, color=colour, label=label)
    for r in records:
        marker = "o" if r["status"] == "converged" else "^"
        ax.plot(r[x], r["seconds"], marker, color=colour, markersize=4)
