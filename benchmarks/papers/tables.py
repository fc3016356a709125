"""Markdown tables of the papers benchmark; ``tables`` writes them."""

from __future__ import annotations

from ..tables import Content, Tables, case_name, markdown, seconds_text, titled


def _curves(cases: list[Content]) -> str:
    """A table of the seconds until each curve is within 1e-2, 1e-3 and 1e-4 of the best known."""
    names = list(dict.fromkeys(curve["solver"] for case in cases for curve in case["peers"]))
    rows = []
    for case in cases:
        best = case["best_known"]
        ocas, cpa = case["runs"]
        cells = [
            _reached(r["trace"]["seconds"], r["trace"]["primal"], best)
            for r in (case["auto"], ocas, cpa)
        ]
        curves = {curve["solver"]: curve["points"] for curve in case["peers"]}
        for name in names:
            points = curves.get(name, [])
            seconds = [p["seconds"] for p in points]
            cells.append(_reached(seconds, [p["objective"] for p in points], best))
        rows.append([case_name(case), *cells])
    columns = ["seconds to 1e-2 / 1e-3 / 1e-4", "default solver", "OCAS", "CPA", *names]
    return markdown(columns, rows)


def _reached(seconds: list[float], values: list[float], best: float) -> str:
    """The first time at which a curve is within each distance."""
    words = []
    for distance in (1e-2, 1e-3, 1e-4):
        good = [t for t, v in zip(seconds, values, strict=True) if v <= best * (1 + distance)]
        words.append(seconds_text(min(good)) if good else "–")
    return " / ".join(words)


def _threads(cases: list[Content]) -> str:
    phases = list(dict.fromkeys(phase for case in cases for phase in case["phases"]))
    rows = [
        [
            case["data"] + f" C={case['C']:g}",
            case["n_iter"],
            seconds_text(case["one"]["best"]),
            seconds_text(case["two"]["best"]),
            f"**{case['ratio']:.2f}**",
            f"{case['memory']['ratio']:.2f} ({case['memory']['one'] / 1e9:.1f} GB/s)",
            *(
                f"{case['phases'][p]['ratio']:.2f} ({seconds_text(case['phases'][p]['one'])} s)"
                if p in case["phases"]
                else "–"
                for p in phases
            ),
        ]
        for case in cases
    ]
    columns = [
        "problem",
        "iterations",
        "1 thread, s",
        "2 threads, s",
        "ratio",
        "reading memory",
        *phases,
    ]
    return markdown(columns, rows)


def _peers(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        for record in case["solvers"]:
            if not record["finished"]:
                taken = f"> {seconds_text(record['seconds'])}"
                rows.append([case_name(case), record["solver"], "–", "–", "–", taken, "–"])
                continue
            name = record["solver"] + (" (with bias)" if record["bias"] != "none" else "")
            rows.append(
                [
                    case_name(case),
                    name,
                    f"{record['objective']:.5g}",
                    f"{record['above']:.1e}",
                    record.get("n_iter") or "–",
                    seconds_text(record["seconds"]),
                    f"{record['reads']:.0f}",
                ]
            )
    columns = ["problem", "solver", "objective", "above the best known", "iterations or passes"]
    columns += ["seconds", "reads of the data"]
    note = (
        "Everybody stops by a rule of their own: see how far above the best known that is. SGD "
        "makes the paper's ten passes, skglm a hundred."
    )
    return markdown(columns, rows) + "\n\n" + note


def _selection(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        for record in case["methods"]:
            more = "" if record["complete"] else "> "
            rows.append(
                [
                    case["what"],
                    record["method"],
                    f"{record['C']:g}",
                    f"{100 * record['test']:.2f}",
                    record["fits"],
                    more + seconds_text(record["seconds"]),
                    f"{more}{record['ratio']:.1f}",
                ]
            )
    columns = ["data", "method", "C chosen", "test ROC area, %", "fits", "seconds of all fits"]
    note = (
        'Ratio: to the first line of each. "> s": the grid was not finished in the time given. '
        "SGDClassifier makes ten passes and skglm a hundred, whether that is enough or not."
    )
    return markdown([*columns, "ratio"], rows) + "\n\n" + note


def _scaling(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        for curve in case["curves"]:
            last = curve["points"][-1]
            rows.append(
                [
                    case["data"],
                    curve["solver"],
                    *(_at(curve["points"], 10**k) for k in (2, 3, 4, 5)),
                    f"{last['rows']:,}",
                    seconds_text(last["seconds"]),
                    last["n_iter"] or "–",
                    f"{last['reads']:.0f}",
                    _slope(curve["slope"]),
                ]
            )
    columns = ["data", "solver", "100 rows", "1,000", "10,000", "100,000", "most rows", "seconds"]
    columns += ["iterations", "reads of the data", "slope from 1,000 rows"]
    return markdown(columns, rows)


def _at(points: list[Content], rows: int) -> str:
    """The seconds at the size nearest to ``rows``."""
    near = [p for p in points if 0.7 < p["rows"] / rows < 1.4]
    return seconds_text(near[0]["seconds"]) if near else "–"


def _slope(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _perf_rows(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        for name, points in case["curves"].items():
            if not points:
                continue
            last = points[-1]
            who = f"decomposition ({last['solver']})" if "solver" in last else name
            counts = [str(p["n_iter"]) for p in points if "n_iter" in p]
            rows.append(
                {
                    "data": case["data"],
                    "curve": who,
                    "most rows": f"{last['rows']:,}",
                    "seconds there": seconds_text(last["seconds"]),
                    "iterations by rows": " ".join(counts) or "–",
                    "slope": _slope(case["slopes"][name]),
                }
            )
    return titled(rows)


def _perf_tolerances(cases: list[Content]) -> str:
    return _quality(cases, "epsilon", "ε")


def _perf_weights(cases: list[Content]) -> str:
    return _quality(cases, "C", "C")


def _quality(cases: list[Content], key: str, symbol: str) -> str:
    rows = []
    for case in cases:
        for step, points in case["curves"].items():
            for point in points:
                exact = point.get("exact_quality", case.get("best_quality"))
                more = "" if point["status"] == "converged" else "> "
                rows.append(
                    {
                        "data, step": f"{case['data']}, {step.upper()}",
                        symbol: f"{point[key]:g}",
                        "iterations": f"{more}{point['n_iter']}",
                        "seconds": more + seconds_text(point["seconds"]),
                        "above the best known": f"{point['above']:.1e}",
                        "test, %": f"{point['quality']:.2f} ({case['measure']})",
                        "against the optimum's, points": f"{point['quality'] - exact:+.2f}",
                    }
                )
    return titled(rows)


TABLES: Tables = {
    "ocas-curves": ("OCAS paper, Figures 1 and 2: objective against time", _curves),
    "ocas-peers": ("OCAS paper, Table 2: everybody at their own stopping rule", _peers),
    "ocas-selection": ("OCAS paper, Table 3: time of a model selection", _selection),
    "ocas-scaling": ("OCAS paper, Figure 3: time against rows", _scaling),
    "ocas-threads": ("OCAS paper, Table 4: two threads", _threads),
    "perf-n": ("SVM-perf paper: time and iterations against rows", _perf_rows),
    "perf-eps": ("SVM-perf paper: what ε costs and brings", _perf_tolerances),
    "perf-c": ("SVM-perf paper: what C costs", _perf_weights),
}
