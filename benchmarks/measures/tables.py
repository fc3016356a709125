"""The tables of the measures benchmark; ``tables`` writes them."""

from __future__ import annotations

from itertools import groupby

from ..tables import Content, Tables, iterations_text, markdown, seconds_text, titled

NAMES = {
    "roc_auc": "ROC area",
    "f1": "F1",
    "precision_at_k": "Prec@k",
    "recall_at_k": "Rec@k",
    "partial_roc_auc": "partial ROC area",
    "average_precision": "average precision",
    "prbep": "PRBEP",
    "ranking": "ranking",
    "ordinal": "ordinal",
}


def _problem(case: Content) -> str:
    return f"{NAMES[case['loss']]}, {case['data']}, C={case['C']:.0e}".replace("e+0", "e")


def _iterations(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        ocas, cpa = case["runs"]
        more = "" if cpa["status"] == "converged" else "> "
        rows.append(
            {
                "problem": _problem(case),
                "prototype": case["target"] or "–",
                "OCAS": iterations_text(ocas),
                "CPA": iterations_text(cpa),
                "CPA / OCAS": f"{more}{cpa['n_iter'] / ocas['n_iter']:.1f}",
                "evaluations per line search": f"{case['line_evaluations']:.2f}",
                "OCAS s": seconds_text(ocas["seconds"]),
                "CPA s": seconds_text(cpa["seconds"]),
            }
        )
    note = (
        "C multiplies the mean risk. A line search is given the values at both of its ends; "
        "evaluations are those beyond them. k is half the positives for Prec@k, twice for Rec@k."
    )
    return titled(rows) + "\n\n" + note


def _quality(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        digits = 3 if case["measure"] == "MAE in ranks" else 4
        for record in case["methods"]:
            mine = record["method"] == case["ours"]
            parameters = sorted(set(record["parameters"]))
            chosen = " – ".join(f"{p:g}" for p in dict.fromkeys((parameters[0], parameters[-1])))
            rows.append(
                {
                    "data: measure": (
                        f"{case['data']}: {NAMES.get(case['measure'], case['measure'])}"
                    ),
                    "method (bold: trained for it)": (
                        f"**{record['method']}**" if mine else record["method"]
                    ),
                    "C or α chosen": (
                        chosen
                        + (" (edge)" if record["at_edge"] else "")
                        + (" (not converged)" if record.get("stopped") else "")
                    ),
                    "test": f"{record['test']:.{digits}f}",
                    "bold better by": "" if mine else f"{record['better_by']:+.{digits}f}",
                    "95 %": (
                        "" if mine else " … ".join(f"{v:+.{digits}f}" for v in record["interval"])
                    ),
                    "splits won": "" if mine else f"{record['wins']} of {case['splits']}",
                    "bold is": "" if mine else record["verdict"],
                }
            )
    note = (
        "Mean over the splits; C of every method by the validation rows and the measure in "
        "question. Swapped pairs and MAE are better if smaller. The interval is a paired "
        'bootstrap of the test rows (queries for mq2008); "open" means that it holds 0.'
    )
    return titled(rows) + "\n\n" + note


def _growth(cases: list[Content]) -> str:
    grown = [case for case in cases if "points" in case]
    if not grown:
        return ""
    sizes = [point["rows"] for point in grown[0]["points"]]
    rows = [
        [
            case["what"],
            *(seconds_text(point["seconds"]["best"]) for point in case["points"]),
            f"**{case['slope_fit']:.2f}**",
            f"{case['slope_evaluation']:.2f}",
            f"{case['slope_last_decade']:.2f}",
        ]
        for case in grown
    ]
    columns = [
        f"seconds per fit of {grown[0]['iterations']} iterations",
        *(f"{m:,}" for m in sizes),
        "slope",
        "slope of an evaluation",
        f"slope from {sizes[-3]:,}" if len(sizes) > 2 else "slope at the end",
    ]
    parts = [markdown(columns, rows)]
    ratios = [case for case in cases if "ratios" in case]
    if ratios:
        names = list(ratios[0]["ratios"])
        lines = [
            [case["what"], *(f"{case['ratios'].get(name, float('nan')):.2f}" for name in names)]
            for case in ratios
        ]
        columns = [f"{ratios[0]['rows']:,} rows, time / that of 2 ranks", *names]
        parts.append(markdown(columns, lines))
    return "\n\n".join(parts)


def _trained(cases: list[Content]) -> str:
    text = _quality(cases)
    seconds = "; ".join(
        f"{case['ours']} {seconds_text(case['seconds'])}" for case in cases if case["seconds"]
    )
    note = (
        "The parameter of LightGBM is the number of trees. In the time of a method means: within "
        "the seconds that all its fits took, binning excluded; without a limit of time beside it. "
        f"Seconds of all fits: {seconds}. Partial ROC area as scikit-learn reports it, up to a "
        "false positive rate of 0.05."
    )
    return text + "\n\n" + note


def _tables_growth(cases: list[Content]) -> str:
    sizes = [point["rows"] for point in cases[0]["points"]] if cases else []
    rows = []
    for case in cases:
        times = [seconds_text(p["seconds"]["best"]) for p in case["points"]]
        looked_at, rows_seen = case["points"][-1]["tables"], case["points"][-1]["rows"]
        rows.append(
            [
                case["what"],
                *times,
                *("–" for _ in range(len(sizes) - len(times))),
                f"**{case['last']:.2f}**" if case["promised"] else f"{case['last']:.2f}",
                "–" if looked_at is None else f"{looked_at / rows_seen:.2f}",
                seconds_text(case["points"][-1]["made"]),
            ]
        )
    columns = [
        "seconds of an evaluation, one thread",
        *(f"{m:,}" for m in sizes),
        "slope at the end (bold: m log m promised)",
        "tables per row",
        "made once, s",
    ]
    return markdown(columns, rows)


def _gib(value: float) -> str:
    return f"{value / 2**30:.3g}"


def _perf_table(cases: list[Content]) -> str:
    rows = []
    for case in (c for c in cases if "classification" in c):
        plain, pairs = case["classification"], case["ordinal"]
        peer = plain["runs"][2]
        against = peer["objective"] / plain["runs"][0]["objective"] - 1.0
        density = 100.0 * case["nonzeros"] / case["rows"] / case["features"]
        rows.append(
            [
                case["data"],
                f"{case['rows']:,}",
                f"{case['features']:,}",
                f"{density:.2g} %",
                *(seconds_text(r["seconds"]) for r in plain["runs"][:2]),
                " / ".join(iterations_text(r) for r in plain["runs"][:2]),
                f"{seconds_text(peer['seconds'])} ({against:+.0e})",
                *(seconds_text(r["seconds"]) for r in pairs["runs"][:2]),
                " / ".join(iterations_text(r) for r in pairs["runs"][:2]),
                f"{case['pair_matrix']['pairs']:.2g}",
                _gib(case["pair_matrix"]["bytes"]),
                f"{case['pair_matrix']['rows_that_fit']:,}",
            ]
        )
    columns = [
        "data",
        "rows",
        "features",
        "non-zero",
        "classification: OCAS s",
        "CPA s",
        "iterations",
        "scikit-learn s (objective against OCAS)",
        "ordinal: OCAS s",
        "CPA s",
        "iterations",
        "pairs",
        "as a matrix, GiB",
        "rows whose pairs fit in 24 GiB",
    ]
    parts = [markdown(columns, rows)]
    sampled = [c for c in cases if "ended" in c]
    if sampled:
        parts.append(_pair_samples(sampled))
    return "\n\n".join(parts)


def _pair_samples(cases: list[Content]) -> str:
    words = {
        "time": "not run: too long",
        "memory": f"not run: > {_gib(cases[0]['most_bytes_run'])} GiB with the copy",
        "budget": "does not fit in 24 GiB",
    }
    rows = []
    for _, group in groupby(cases, key=lambda c: c["data"]):
        for case in group:
            ours, *peer = case["runs"]
            matrix = case["pair_matrix"]
            cells = [words.get(case["ended"], ""), "–", "–"]
            if peer:
                against = peer[0]["objective"] / ours["objective"] - 1.0
                ratio = peer[0]["seconds"] / ours["seconds"]
                cells = [seconds_text(peer[0]["seconds"]), f"{against:+.0e}", f"{ratio:.1f}"]
            rows.append(
                [
                    f"{NAMES[case['loss']]}, {case['data']}",
                    f"{case['rows']:,}",
                    f"{matrix['pairs']:.2g}",
                    _gib(matrix["bytes"]),
                    _gib(matrix["bytes_with_copy"]),
                    ours["n_iter"],
                    seconds_text(ours["seconds"]),
                    *cells,
                ]
            )
    columns = [
        "problem",
        "rows",
        "pairs",
        "as a matrix, GiB",
        "with liblinear's copy",
        "OCAS iterations",
        "OCAS s",
        "scikit-learn on pairs, s",
        "objective against OCAS",
        "its s / ours",
    ]
    note = "Its time is without building the matrix; at most 200 passes, tol 1e-3."
    return markdown(columns, rows) + "\n\n" + note


def _speed(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        best, published = case["best_known"], case["published"]
        mine = {e["threads"]: e for e in case["solvers"] if "threads" in e}
        plain = next(e["runs"][0] for e in case["solvers"] if e["solver"].endswith("cpa"))
        more = "" if plain["status"] == "converged" else "> "
        peers = [e for e in case["solvers"] if "reached" in e]
        first = next(iter(mine.values()))["runs"][0]
        rows.append(
            [
                _problem(case),
                f"{first['objective']:.6g} ({first['objective'] / best - 1.0:.0e})",
                first["n_iter"],
                *(seconds_text(mine[k]["seconds"]["median"]) if k in mine else "–" for k in (2, 1)),
                f"{more}{seconds_text(plain['seconds'])}",
                f"{published['solver']} {published['cpu_seconds']:g}",
                f"**{published['ratio']:.1f}** (≥ {published['wanted']:g})"
                if "ratio" in published
                else "–",
                "; ".join(
                    f"{e['solver']} {'' if e['reached'] else '> '}"
                    f"{seconds_text(e['seconds_to_count'])}"
                    + (f" ({e['ratio']:.1f}×)" if "ratio" in e else "")
                    for e in peers
                )
                or "–",
            ]
        )
    columns = [
        "problem",
        "objective (above best known)",
        "iterations",
        "2 threads, s",
        "1 thread, s",
        "our CPA, s",
        "best peer measured beforehand, CPU s",
        "its / ours (2 threads)",
        "peers here",
    ]
    note = (
        "Ours: median to a certified relative gap of 1e-3, compiling excluded. The planned peers' "
        "seconds were measured elsewhere in time on the same kind of machine, at one thread."
    )
    return markdown(columns, rows) + "\n\n" + note


TABLES: Tables = {
    "iterations": ("Iterations to relative gap 1e-3, every risk", _iterations),
    "quality": ("The measure on test rows", _quality),
    "growth": ("Time against the number of rows", _growth),
    "tables-growth": ("One evaluation of every risk against the number of rows", _tables_growth),
    "trained-a9a": ("Trained for the measure: a9a", _trained),
    "trained-w8a": ("Trained for the measure: w8a", _trained),
    "trained-mq2008": ("Trained for the measure: mq2008", _trained),
    "perf-table": ("Classification and ordinal regression, as in the SVM-perf paper", _perf_table),
    "speed": ("Seconds to relative gap 1e-3 over pairs", _speed),
}
