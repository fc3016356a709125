"""Markdown tables of the foundation benchmark."""

from __future__ import annotations

from ..tables import Content, Tables, case_name, iterations_text, markdown, seconds_text


def _iterations(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        ocas, cpa = case["runs"]
        more = "" if cpa["status"] == "converged" else "> "
        rows.append(
            [
                case_name(case),
                case["target"] or "–",
                iterations_text(ocas),
                iterations_text(cpa),
                f"{more}{cpa['n_iter'] / ocas['n_iter']:.1f}",
                seconds_text(ocas["seconds"]),
                seconds_text(cpa["seconds"]),
            ]
        )
    columns = ["problem", "at most", "OCAS", "CPA", "CPA / OCAS", "OCAS s", "CPA s"]
    return markdown(columns, rows)


def _objectives(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        loose, tight = case["runs"][:2]
        best = case["best_known"]
        peers = {record["solver"]: record for record in case["runs"][2:]}

        def above(record: Content | None, best: float = best) -> str:
            return "–" if record is None else f"{record['objective'] / best - 1:.1e}"

        rows.append(
            [
                case_name(case),
                f"{best:.8g}",
                f"{loose['primal']:.8g}",
                f"{loose['dual']:.8g}",
                f"{loose['relative_gap']:.1e}",
                above(loose),
                f"{tight['relative_gap']:.1e}",
                above(tight),
                above(peers.get("scikit-learn")),
                above(peers.get("liblinear")),
                "yes" if all(c["ok"] for c in case["checks"]) else "**NO**",
            ]
        )
    columns = [
        "problem",
        "best known F*",
        "primal",
        "dual",
        "gap",
        "above F*",
        "tight: gap",
        "above F*",
        "scikit-learn above F*",
        "liblinear above F*",
        "checks hold",
    ]
    return markdown(columns, rows)


def _speed(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        mine = {e["threads"]: e for e in case["solvers"] if "threads" in e}
        for entry in (e for e in case["solvers"] if "reached" in e):
            sign = "" if entry["reached"] else "> "
            effort = entry.get("effort", {})
            rows.append(
                [
                    case_name(case),
                    *(_median(mine.get(k)) for k in (2, 1)),
                    f"{entry['solver']} ({', '.join(f'{k} {v:g}' for k, v in effort.items())})"
                    if effort
                    else entry["solver"],
                    f"{sign}{seconds_text(entry['seconds_to_count'])}",
                    f"{sign}{entry['ratio']:.1f}" if "ratio" in entry else "–",
                    *(_share(mine.get(k)) for k in (2, 1)),
                ]
            )
    columns = [
        "problem",
        "ours, 2 threads, s",
        "1 thread, s",
        "peer",
        "its s",
        "peer / ours (2 threads)",
        "line search + QP, 2 threads",
        "1 thread",
    ]
    note = (
        "Ours: median to a certified gap of 1e-3. Peer: best time of a run that ends within 1e-3."
    )
    return markdown(columns, rows) + "\n\n" + note


def _median(entry: Content | None) -> str:
    return "–" if entry is None else seconds_text(entry["seconds"]["median"])


def _share(entry: Content | None) -> str:
    return "–" if entry is None else f"{100 * entry['light_share']:.0f} %"


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


def _latency(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        if case["what"] == "import":
            rows.append(
                ["`import cutplane`, best", f"{1000 * case['package']['best']:.0f} ms", "1 s"]
            )
            name = f"{1000 * case['name']['best']:.0f} ms"
            rows.append(["`from cutplane import LinearSVC`, best", name, "–"])
        elif case["what"] == "first fit":
            cold, cached = case["cold"], case["cached"]
            total = cold["import_seconds"] + cold["fit_seconds"]
            rows.append([f"import + first fit ever ({case['kind']})", f"{total:.2f} s", "15 s"])
            rows.append(
                [
                    f"first fit in the next process ({case['kind']})",
                    f"{cached['fit_seconds']:.2f} s",
                    "–",
                ]
            )
        else:
            median = f"{1000 * case['seconds']['median']:.1f} ms"
            rows.append(["fit on iris (150×4, 3 classes), median", median, "50 ms"])
    return markdown(["what", "time", "at most"], rows)


def _memory(cases: list[Content]) -> str:
    rows = [
        [
            case_name(case),
            f"{case['data_bytes'] / 1e6:.1f}",
            f"{case['extra_bytes'] / 1e6:.1f}",
            f"{case['allowed_bytes'] / 1e6:.1f}",
            f"{case['doubles_per_row']:.1f}",
            case["most_cuts"],
        ]
        for case in cases
    ]
    columns = [
        "problem",
        "data, MB",
        "peak above the data, MB",
        "allowed, MB",
        "doubles per row",
        "cuts",
    ]
    return markdown(columns, rows)


def _position(cases: list[Content]) -> str:
    if not cases:
        return ""
    names = [record["solver"] for record in cases[0]["runs"]]
    rows = [[case_name(case), *map(iterations_text, case["runs"])] for case in cases]
    return markdown(["problem", *names], rows)


TABLES: Tables = {
    "iterations": ("Iterations to relative gap 1e-3 (hinge, no bias)", _iterations),
    "objectives": ("Objectives and certificates", _objectives),
    "speed": ("Seconds to within 1e-3 of the best known objective", _speed),
    "threads": ("Two threads against one", _threads),
    "latency": ("Waiting times", _latency),
    "memory": ("Peak memory of a fit", _memory),
    "position": ("Position λ of the cut: iterations", _position),
}
