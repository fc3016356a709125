"""Markdown tables and figures from the JSON files of a benchmark.

python -m benchmarks.tables benchmarks/results/engine
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Content = dict[str, Any]
Tables = dict[str, tuple[str, Callable[[list[Content]], str]]]  # title and drawing by section


def load(file: Path) -> Content:
    """The content of a section's file."""
    return json.loads(file.read_text("utf-8"))


def table(file: Path) -> str:
    """A section as Markdown: heading, machine and time, table, violated checks."""
    content = load(file)
    title, draw = tables_of(content["suite"])[content["section"]]
    parts = [f"## {title}", _origin(content), draw(content["cases"])]
    parts += _remarks(content)
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table. Words are aligned to the left, numbers to the right."""
    words = [k == 0 or any(str(row[k])[:1].isalpha() for row in rows) for k in range(len(columns))]
    lines = ["| " + " | ".join(columns) + " |"]
    lines.append("|" + "".join("---|" if left else "---:|" for left in words))
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def titled(rows: Sequence[Mapping[str, object]]) -> str:
    """A Markdown table of rows that map the columns' titles to cells."""
    return markdown(list(rows[0]), [list(row.values()) for row in rows]) if rows else ""


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
    """A case in few words."""
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
    """The iterations, or after how many a run was stopped and with which gap."""
    if record["status"] == "converged":
        return str(record["n_iter"])
    return f"> {record['n_iter']} ({record['status']}, gap {record['relative_gap']:.1e})"


def tables_of(suite: str) -> Tables:
    """The tables of a suite, in the order of its sections."""
    tables: Tables = importlib.import_module(f"benchmarks.{suite}.tables").TABLES
    return tables


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
