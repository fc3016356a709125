"""The figures of the engine benchmark; ``figures`` and ``readme`` call them.

- ``linear``, ``file`` and ``small``: our seconds and the best peer's, problem by problem, and how
  the regrets are spread, by loss and bias.
- ``paths``: a path beside its dearest fit and beside all fits alone.
- ``growth``: time against the number of rows, by threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..figures import BLUE, COLOURS, GREEN, GREY, ORANGE, save

Case = dict[str, Any]


def draw(content: Case, folder: Path) -> list[Path]:
    """The figures of a section, as files in ``folder``."""
    cases, section = content["cases"], content["section"]
    if not cases:
        return []
    if section in ("linear", "file", "small"):
        return [
            *save(times(cases), folder / f"times-{section}"),
            *save(_regrets(cases), folder / f"regrets-{section}"),
        ]
    if section == "paths":
        return save(_paths(cases), folder / "paths")
    if section == "growth":
        return save(_growth([c for c in cases if "rows" in c]), folder / "growth")
    return []


def _regrets(cases: Sequence[Case]) -> Any:
    """Draw the share of problems with at most some regret: a line per loss and bias."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.0), layout="constrained")
    ax = figure.subplots()
    kinds: dict[tuple[str, str], list[float]] = {}
    for case in (c for c in cases if "regret" in c):
        kinds.setdefault((case["loss"], case["bias"]), []).append(case["regret"])
    colours = {loss: COLOURS[k] for k, loss in enumerate(dict.fromkeys(k[0] for k in kinds))}
    for (loss, bias), found in kinds.items():
        parts = [100.0 * (k + 1) / len(found) for k in range(len(found))]
        label = f"{loss.replace('_', ' ')}, {'no' if bias == 'none' else bias} bias ({len(found)})"
        dashes = "-" if bias == "free" else "--"
        ax.step(sorted(found), parts, dashes, where="post", color=colours[loss], label=label)
    ax.axvline(1.0, color=GREY, linewidth=0.8)
    ax.set_xscale("log")
    ax.set_xlabel("regret: our time until a certified 1e-3 / the best peer's until it is that good")
    ax.set_ylabel("problems, %")
    ax.grid(alpha=0.25)
    ax.legend(frameon=False, fontsize=9)
    return figure


def times(cases: Sequence[Case]) -> Any:
    """Draw our seconds against the best peer's: a point per problem, a colour per loss."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 5.0), layout="constrained")
    ax = figure.subplots()
    fits = [case for case in cases if "regret" in case]
    colours = {loss: COLOURS[k] for k, loss in enumerate(dict.fromkeys(c["loss"] for c in fits))}
    for loss, colour in colours.items():
        for marker, fill, good in (("o", "full", True), ("^", "none", False)):
            shown = [c for c in fits if c["loss"] == loss and (c["best_peer"] is not None) == good]
            ours = [c["ours"][max(c["ours"])]["median"] for c in shown]
            # If no peer was good enough, the regret is the bound at which the peers were stopped.
            theirs = [own / c["regret"] for own, c in zip(ours, shown, strict=True)]
            style = {"fillstyle": fill, "markersize": 5, "color": colour, "alpha": 0.7}
            label = loss.replace("_", " ") if good else None
            ax.plot(ours, theirs, marker, label=label, **style)
    ax.plot([], [], "^", color=GREY, fillstyle="none", label="no other was good in 10 × our time")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ends = [min(*ax.get_xlim(), *ax.get_ylim()), max(*ax.get_xlim(), *ax.get_ylim())]
    for factor, style in ((1.0, "-"), (10.0, ":")):
        ax.plot(ends, [factor * end for end in ends], style, color=GREY, linewidth=0.8)
    ax.set(xlim=ends, ylim=ends, aspect="equal")
    ax.text(0.03, 0.97, "cutplane is faster", transform=ax.transAxes, va="top", color=GREY)
    ax.text(0.97, 0.03, "another solver is faster", transform=ax.transAxes, ha="right", color=GREY)
    ax.set_xlabel("cutplane: seconds until 0.1 % is certified")
    ax.set_ylabel("best other solver: seconds until it is that good")
    ax.grid(alpha=0.25)
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


def _paths(cases: Sequence[Case]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 0.5 * len(cases) + 1.4), layout="constrained")
    ax = figure.subplots()
    for k, case in enumerate(cases):
        bars = (case["path"]["median"], max(case["alone"]), sum(case["alone"]))
        words = ("path of ten", "dearest fit alone", "all ten alone")
        for j, (value, word) in enumerate(zip(bars, words, strict=True)):
            colour = (BLUE, GREEN, ORANGE)[j]
            label = word if k == 0 else None
            ax.barh(k + 0.27 * (j - 1), value, height=0.25, color=colour, label=label)
        ax.annotate(
            f"{case['ratio']:.1f}×",
            (bars[0], k - 0.27),
            xytext=(4, -3),
            textcoords="offset points",
            fontsize=8,
        )
    ax.set_yticks(range(len(cases)), labels=[case["data"] for case in cases])
    ax.invert_yaxis()
    ax.set_xlabel("seconds (number: path / dearest fit)")
    ax.grid(alpha=0.25, axis="x")
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def _growth(cases: Sequence[Case]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    ax = figure.subplots()
    rows = [case["rows"] for case in cases]
    for threads, colour in (("1", ORANGE), ("2", BLUE)):
        known = [c for c in cases if threads in c["by_threads"]]
        at = [c["rows"] for c in known]
        seconds = [c["by_threads"][threads]["median"] for c in known]
        ax.plot(at, seconds, "o-", color=colour, label=f"{threads} thread(s)")
    last = min(c["median"] for c in cases[-1]["by_threads"].values())
    ax.plot(rows, [last * m / rows[-1] for m in rows], color=GREY, linewidth=0.8, label="slope 1")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("rows")
    ax.set_ylabel("seconds to a certified gap of 1e-3")
    ax.grid(alpha=0.25)
    ax.legend(frameon=False, fontsize=9)
    return figure
