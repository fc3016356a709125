"""The figures of the engine benchmark; ``figures`` and ``readme`` call them.

- a data set, or all of them: seconds until the objective is within 1e-3 of the best known.
- ``linear`` and ``small``: how the regrets are spread, by loss and bias.
- ``paths``: a path beside its dearest fit and beside all fits alone.
- ``growth``: time against the number of rows, by threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..figures import BLUE, COLOURS, GREEN, GREY, ORANGE, save
from ..tables import case_name

Case = dict[str, Any]
MIDDLE = "0.001"
MARKERS = "sDv^P*Xp"
TICKS = [a * 10**k for k in range(-4, 4) for a in (1, 2, 5)]


def draw(content: Case, folder: Path) -> list[Path]:
    """The figures of a section, as files in ``folder``."""
    cases, section = content["cases"], content["section"]
    if not cases:
        return []
    if section in ("linear", "small"):
        return save(regrets(cases), folder / f"regrets-{section}")
    if section == "paths":
        return save(_paths(cases), folder / "paths")
    if section == "growth":
        return save(_growth([c for c in cases if "rows" in c]), folder / "growth")
    if "best_known" in cases[0]:  # the time to an objective
        return save(times(cases), folder / f"times-{section}")
    return []


def regrets(cases: Sequence[Case]) -> Any:
    """Which part of the problems has at most some regret: a line per loss and bias."""
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
    """Ours with two threads and one, and every peer, one line per problem."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 0.3 * len(cases) + 1.6), layout="constrained")
    ax = figure.subplots()
    names = list(dict.fromkeys(peer["solver"] for case in cases for peer in case["peers"]))
    for k, case in enumerate(cases):
        ax.axhline(k, color=GREY, linewidth=0.4, alpha=0.5, zorder=0)
        for j, name in enumerate(names):
            peer = next((p for p in case["peers"] if p["solver"] == name), None)
            if peer is None:
                continue
            style = {"color": COLOURS[1:][j % (len(COLOURS) - 1)], "markersize": 5}
            good = peer["within"][MIDDLE]
            if good is not None:
                ax.plot(good, k, MARKERS[j % len(MARKERS)], **style)
            else:  # it was not good after that
                ax.plot(peer["longest"], k, MARKERS[j % len(MARKERS)], fillstyle="none", **style)
        for entry in case["ours"]:
            found = entry["within"][MIDDLE]
            if found is not None:
                fill = "full" if entry["threads"] > 1 else "none"
                ax.plot(found["median"], k, "o", color=BLUE, markersize=7, fillstyle=fill)
    ax.plot([], [], "o", color=BLUE, markersize=7, label="cutplane, 2 threads")
    ax.plot([], [], "o", color=BLUE, markersize=7, fillstyle="none", label="cutplane, 1 thread")
    for j, name in enumerate(names):
        colour = COLOURS[1:][j % (len(COLOURS) - 1)]
        ax.plot([], [], MARKERS[j % len(MARKERS)], color=colour, markersize=5, label=name)
    ax.set_yticks(range(len(cases)), labels=[case_name(case) for case in cases], fontsize=8)
    ax.set_ylim(len(cases) - 0.4, -0.6)
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ticks = [t for t in TICKS if low <= t <= high]
    ax.set_xticks(ticks, labels=[f"{t:g}" for t in ticks])
    ax.minorticks_off()
    ax.set_xlabel(
        "seconds until the objective is within 1e-3 of the best known\n"
        "(a peer's open marker: not within 1e-3 when it was stopped there)",
        fontsize=9,
    )
    ax.grid(alpha=0.25, axis="x")
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=8)
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
