"""Markdown tables and figures from the JSON files of a benchmark.

python -m benchmarks.tables benchmarks/results/foundation
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Content = dict[str, Any]
Tables = dict[str, tuple[str, Callable[[list[Content]], str]]]  # title and drawing by section


def load(file: Path) -> Content:
    """The content of a section's file."""
    return json.loads(file.read_text("utf-8"))


def table(file: Path) -> str:
    """A section as Markdown: heading, where and when, table, what did not hold."""
    content = load(file)
    title, draw = tables_of(content["suite"])[content["section"]]
    parts = [f"## {title}", _origin(content), draw(content["cases"])]
    parts += _remarks(content)
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table, words to the left and numbers to the right."""
    words = [k == 0 or any(str(row[k])[:1].isalpha() for row in rows) for k in range(len(columns))]
    lines = ["| " + " | ".join(columns) + " |"]
    lines.append("|" + "".join("---|" if left else "---:|" for left in words))
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _origin(content: Content) -> str:
    machine, settings = content["machine"], content["settings"]
    versions = machine["versions"]
    text = (
        f"{content['date'][:10]}, {machine['processor']}, {machine['cores']} cores, Python "
        f"{machine['python']}, cutplane {versions['cutplane']} ({machine['commit']}), "
        f"numba {versions.get('numba', '–')}, scikit-learn {versions.get('scikit-learn', '–')}"
    )
    if content["compile"]:
        seconds = sum(entry["compile_seconds"] for entry in content["compile"])
        text += f". Compiling or loading compiled code, not in the times: {seconds:.1f} s"
    if machine["load_average"] is not None:
        text += f". Load average at the start {machine['load_average']:.1f}"
    text += "."
    if settings["generated"]:
        text += " **Generated data: a smoke test, not a result.**"
    elif settings["quick"]:
        text += " **Quick run on subsamples: a smoke test, not a result.**"
    elif settings["rows"]:
        text += f" **At most {settings['rows']} rows of each data set.**"
    if not content["complete"]:
        text += " **The run was not finished.**"
    return text


def _remarks(content: Content) -> list[str]:
    checks = [(case, c) for case in content["cases"] for c in case["checks"]]
    broken = [
        f"- **{case_name(case)}: {c['claim']}**: {c['value']:.6g} against {c['bound']:.6g}"
        for case, c in checks
        if not c["ok"]
    ]
    parts = [f"Checks: {len(checks) - len(broken)} of {len(checks)} hold."]
    if broken:
        parts.append("**Violated:**\n\n" + "\n".join(broken))
    if content["failed"]:
        parts.append("**Failed:** " + "; ".join(f"{f['case']}" for f in content["failed"]))
    if content["skipped"]:
        parts.append("Skipped: " + "; ".join(content["skipped"]))
    return parts


def case_name(case: Content) -> str:
    """A case in a few words."""
    if "what" in case or "data" not in case:
        return case.get("what", "")
    words = [case["data"], case.get("loss", ""), f"C={case['C']:g}"]
    if case.get("bias", "none") != "none":
        words.append(f"{case['bias']} bias")
    return " ".join(word for word in words if word and word != "hinge")


def seconds_text(value: float) -> str:
    """Seconds with three digits."""
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def iterations_text(record: Content) -> str:
    """Iterations, or where and how far a run was stopped."""
    if record["status"] == "converged":
        return str(record["n_iter"])
    return f"> {record['n_iter']} ({record['status']}, gap {record['relative_gap']:.1e})"


# -- one function per section ---------------------------------------------------------


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


def tables_of(suite: str) -> Tables:
    """The tables of a suite, in their order."""
    from . import (
        cluster_tables,
        engine_tables,
        file_tables,
        kernel_tables,
        measure_tables,
        paper_tables,
        sampled_tables,
    )

    return {
        "foundation": TABLES,
        "measures": measure_tables.TABLES,
        "files": file_tables.TABLES,
        "kernels": kernel_tables.TABLES,
        "engine": engine_tables.TABLES,
        "papers": paper_tables.TABLES,
        "sampled": sampled_tables.SAMPLED,
        "chains": sampled_tables.CHAINS,
        "cluster": cluster_tables.TABLES,
    }[suite]


def main(argv: Sequence[str] | None = None) -> int:
    """Write ``tables.md`` and the figures beside the JSON files."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tables", description=__doc__.splitlines()[0]
    )
    parser.add_argument("folder", type=Path, help="with the JSON files of the sections")
    folder = parser.parse_args(argv).folder
    files = list(folder.glob("*.json"))
    order = {file: list(tables_of(load(file)["suite"])).index(file.stem) for file in files}
    files.sort(key=lambda file: order[file])
    if not files:
        print("no section's JSON file in that folder", file=sys.stderr)
        return 2
    text = "\n".join(table(file) for file in files)
    (folder / "tables.md").write_text(text, "utf-8")
    print(text)
    from .figures import draw

    for file in files:
        for drawn in draw(load(file), folder):
            print(f"drawn: {drawn.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
