"""Pages about the benchmarks, written from the JSON files under benchmarks/results.

Every build writes a page per suite, with the tables and figures of its sections, and two texts that
the page ``benchmarks.md`` includes. A section that its suite does not know is left out; a folder
without files gives no page.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from benchmarks import readme
from benchmarks.figures import draw
from benchmarks.tables import load, table, tables_of

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"

TITLES = {
    "engine": "Linear models against other solvers",
    "measures": "Measures and rankings",
    "regression": "Regression and quantiles",
    "kernels": "Kernels",
    "sampled": "Kernels on many rows",
    "chains": "Sequences",
    "files": "Files, and more data than memory",
    "cluster": "Clusters",
    "papers": "Figures and tables of the OCAS and SVM-perf papers",
}


def write(app: Any) -> None:
    """Write everything anew, below ``generated/benchmarks``."""
    folder = Path(app.srcdir) / "generated" / "benchmarks"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        readme.draw_figure(RESULTS, folder / "linear.svg")
        text = f"![{readme.PICTURED}](generated/benchmarks/linear.svg)\n\n{readme.linear(RESULTS)}"
    except ValueError:
        text = "The section `linear` of the suite `engine` has not been run."
    (folder / "linear.txt").write_text(text, "utf-8")
    (folder / "memory.txt").write_text(readme.larger_than_memory(RESULTS), "utf-8")
    found = [path.name for path in sorted(RESULTS.iterdir()) if path.is_dir()]
    known = [name for name in TITLES if name in found]
    others = [name for name in found if name not in TITLES and name != "quick"]
    for number, suite in enumerate([*known, *others]):
        text = _suite(suite, folder)
        if text:
            # The number gives the order in the table of contents.
            (folder / f"{number:02d}-{suite}.md").write_text(text, "utf-8")


def _suite(suite: str, folder: Path) -> str:
    """The page of a suite; empty if none of its sections can be shown."""
    sections = tables_of(suite) if _exists(suite) else {}
    contents = {file.stem: load(file) for file in (RESULTS / suite).glob("*.json")}
    parts = []
    for name in sections:
        if name not in contents:
            continue
        parts.append(table(RESULTS / suite / f"{name}.json"))
        for file in draw(contents[name], folder):
            if file.suffix == ".svg":
                parts.append(f"![{name}]({file.name})\n")
            else:
                file.unlink()
    title = TITLES.get(suite, suite.capitalize())
    return "\n".join([f"# {title}\n", *parts]) if parts else ""


def _exists(suite: str) -> bool:
    return (ROOT / "benchmarks" / suite / "tables.py").is_file()


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", write)
    return {"version": "1", "parallel_read_safe": True}
