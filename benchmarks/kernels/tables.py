"""The tables of the kernels benchmark; ``tables`` writes them."""

from __future__ import annotations

from ..tables import Content, Tables, markdown, seconds_text, titled


def _optimum(cases: list[Content]) -> str:
    rows = [
        {
            "problem": case["what"],
            "rows": case["rows"],
            "C": f"{case['C']:g}",
            "γ": f"{case['gamma']:g}",
            "libsvm's dual": f"{case['libsvm']['objective']:.10g}",
            "ours": f"{case['ours']['objective']:.10g}",
            "relative difference": f"{case['difference']:.1e}",
            "our certified gap": f"{case['ours']['relative_gap']:.1e}",
            "support vectors": case["support"][1],
            "of them differ": case["apart"],
            "their \\|y·f − 1\\| at most": f"{case['farthest']:.1e}" if case["apart"] else "–",
        }
        for case in cases
    ]
    return titled(rows)


def _svmlight(cases: list[Content]) -> str:
    parts = []
    for case in cases:
        rows: list[list[object]] = [
            [
                line["rows"],
                seconds_text(line["seconds"]["best"]),
                seconds_text(line["minimum"]),
                line["support"],
                line["published"]["support"],
                line["bounded"],
                line["published"]["bounded"],
                line["published"]["seconds"],
                line["published"]["minimum"],
                f"{line['published']['seconds'] / line['seconds']['best']:.0f}",
            ]
            for line in case["lines"]
        ]
        known = case["published_exponents"]
        rows.append(
            [
                "scaling",
                f"**{case['exponent']:.2f}**",
                f"**{case['exponent_minimum']:.2f}**",
                *([""] * 4),
                known["time"],
                known["minimum"],
                "",
            ]
        )
        columns = [
            "rows",
            "s",
            "minimum, s",
            "SV",
            "SV in the paper",
            "bounded",
            "in the paper",
            "SVM-light 1998, s",
            "its minimum, s",
            "times as fast",
        ]
        title = f"**{case['what']}**: {case['data']}, C = {case['C']:g}, γ = {case['gamma']:g}"
        parts.append(f"{title}\n\n{markdown(columns, rows)}")
    note = (
        "SVM-light ran on a SPARC Ultra with 167 MHz. Smaller sets are random rows; the paper's "
        "were not to be had. The paper prints σ = 10; its support vectors are those of σ² = 10."
    )
    return "\n\n".join([*parts, note])


def _fit_text(record: Content) -> str:
    more = "" if record["status"] == "converged" else "> "
    return more + seconds_text(record["seconds"])


def _parts(cases: list[Content]) -> str:
    parts = []
    for case in cases:
        rows = [[f"q = {r['working_set_size']}", _fit_text(r), r["n_iter"]] for r in case["sizes"]]
        text = [f"**{case['what']}**", markdown(["working set", "s", "iterations"], rows)]
        sizes = sorted({r["cache_size"] for r in case["caches"]})
        kinds = [(q, s) for q in (None, 10) for s in (True, False)]
        table = []
        for size in sizes:
            line: list[object] = [f"{size:g} MB"]
            for q, shrinking in kinds:
                line += [
                    _fit_text(r)
                    for r in case["caches"]
                    if (r["cache_size"], r["working_set_size"], r["shrinking"])
                    == (size, q, shrinking)
                ]
            table.append(line)
        names = [
            f"q {'as the library likes' if q is None else f'= {q}'}, "
            f"{'shrinking' if s else 'no shrinking'}, s"
            for q, s in kinds
        ]
        parts += [*text, markdown(["cache", *names], table)]
    return "\n\n".join(parts)


def _speed(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        for peer in case["peers"]:
            more = "" if peer["finished"] else "> "
            rows.append(
                {
                    "problem": f"{case['what']}, C={case['C']:g}, γ={case['gamma']:g}",
                    "ours, s": seconds_text(case["seconds"]["median"]),
                    "peer": peer["solver"] + (f" ({peer['form']})" if peer["finished"] else ""),
                    "its s": more + seconds_text(peer["seconds"]),
                    "peer / ours": f"**{more}{peer['ratio']:.1f}**",
                    "our SV": case["runs"][0]["support"],
                    "its SV": peer.get("support", "–"),
                    "our gap": f"{case['runs'][0]['relative_gap']:.1e}",
                }
            )

    note = (
        "Two threads, tolerance 1e-3. Ours: median; peer: one run, in the form that it likes "
        "better."
    )
    return titled(rows) + "\n\n" + note


def _wide(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        for entry in case["runs"]:
            more = "" if entry["finished"] else "> "
            ours = entry is case["runs"][0]
            rows.append(
                [
                    f"{case['what']}: {case['kernel']}, C={case['C']:g}" if ours else "",
                    f"{case['rows']} × {case['features']}" if ours else "",
                    entry["solver"],
                    more + seconds_text(entry["fit"]),
                    more + seconds_text(entry["predict"]),
                    entry.get("support", "–"),
                    f"{entry['accuracy']:.4f}" if entry["finished"] else "–",
                    " / ".join(f"**{r:.2f}**" for r in case["regret"].values()) if ours else "",
                ]
            )
    columns = ["problem", "size", "solver", "fit, s", "predict, s", "SV", "accuracy"]
    table = markdown([*columns, "regret, fit / predict"], rows)
    worst = max((r for case in cases for r in case["regret"].values()), default=0.0)
    return f"{table}\n\nRegret: our time / the best peer's. The worst is {worst:.2f}."


def _small(cases: list[Content]) -> str:
    rows = [
        {
            "set": case["set"],
            "size": f"{case['rows']} × {case['features']}",
            "classes": case["classes"],
            "options": ", ".join(f"{k}={v}" for k, v in case["options"].items()) or "defaults",
            "ours, ms": f"{1e3 * case['ours']['best']:.1f}",
            "scikit-learn, ms": f"{1e3 * case['peer']['best']:.1f}",
            "difference": f"{1e3 * (case['ours']['best'] - case['peer']['best']):+.1f}",
        }
        for case in cases
    ]
    return titled(rows)


def _memory(cases: list[Content]) -> str:
    rows = [
        {
            "problem": case["what"],
            "cache, MB": f"{point['cache_size']:g}",
            "peak above the data, MB": f"{point['extra_bytes'] / 1e6:.1f}",
            "copies of the rows, at most, MB": f"{point['copies_bytes'] / 1e6:.1f}",
            "rest in doubles per row": f"{point['doubles_per_row']:.1f}",
            "growth of peak / of cache": f"{case['slope']:.3f}",
        }
        for case in cases
        for point in case["points"]
    ]
    return titled(rows)


def _warm(cases: list[Content]) -> str:
    rows: list[list[object]] = []
    for case in cases:
        rows += [
            [
                f"{case['what']}: C = {p['C']:g}",
                *(p[kind]["n_iter"] for kind in ("warm", "cold")),
                *(seconds_text(p[kind]["seconds"]) for kind in ("warm", "cold")),
            ]
            for p in case["points"]
        ]
        totals = case["totals"]
        rows.append(
            [
                f"**{case['what']}: together**",
                *(totals[kind]["n_iter"] for kind in ("warm", "cold")),
                *(f"**{seconds_text(totals[kind]['seconds'])}**" for kind in ("warm", "cold")),
            ]
        )
    return markdown(["problem", "iterations, warm", "cold", "warm, s", "cold, s"], rows)


TABLES: Tables = {
    "optimum": ("The same optimum as libsvm's", _optimum),
    "svmlight": ("Tables 1 and 2 of the SVM-light paper", _svmlight),
    "parts": ("Working set, cache, shrinking", _parts),
    "speed": ("Seconds on large sets", _speed),
    "wide": ("Fit and prediction on kinds of data that nobody tuned for", _wide),
    "small": ("Milliseconds on small sets", _small),
    "memory": ("Peak memory of a fit with kernels", _memory),
    "warm": ("Warm start along a path of C", _warm),
}
