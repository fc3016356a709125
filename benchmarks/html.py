"""One self-contained HTML page from the JSON files of all suites: tables, figures, machine.

python -m benchmarks.html benchmarks/results --out report.html

Nothing is fetched when it is opened: figures are inside as SVG, the style in the head. Wide tables
scroll in their own frame, so that the page fits a telephone too.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .figures import draw
from .tables import load, table, tables_of

STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8881; --link: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --link: #56b4e9; } }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 70rem;
  padding: 0 1rem 4rem; }
h1 { margin: 1.5rem 0 .5rem; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
h3 { margin: 2rem 0 .3rem; } a { color: var(--link); }
nav ul { columns: 18rem; padding-left: 1.2rem; } nav li { break-inside: avoid; }
.wide { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .25rem .7rem; text-align: left; white-space: nowrap; }
th { border-bottom: 2px solid var(--line); white-space: normal; vertical-align: bottom; }
tr:nth-child(even) td { background: var(--soft); }
figure { margin: 1rem 0; background: #fff; border-radius: 6px; overflow-x: auto; }
figure svg { width: 100%; height: auto; display: block; margin: 0 auto; }
.origin { font-size: .85rem; opacity: .75; }
"""

SIZES = (0.7, 1.3)  # a figure is shown at no less and no more of its own size

# Identifiers inside an SVG are those of its page once it is inside: they must differ.
_REFERENCE = re.compile(r'(\bid="|xlink:href="#|href="#|url\(#)')


def page(folders: Sequence[Path]) -> str:
    """The page for folders of sections' JSON files."""
    parts, entries = [], []
    for folder in folders:
        contents = _sections(folder)
        if not contents:
            continue
        suite = contents[0]["suite"]
        parts.append(f'<h2 id="{suite}">{html.escape(suite.capitalize())}</h2>')
        items = []
        for content in contents:
            name = f"{suite}-{content['section']}"
            title = tables_of(suite)[content["section"]][0]
            items.append(f'<li><a href="#{name}">{html.escape(title)}</a></li>')
            parts.append(_section(content, folder, name))
        entries.append(
            f'<li><a href="#{suite}">{html.escape(suite.capitalize())}</a>'
            f"<ul>{''.join(items)}</ul></li>"
        )
    if not parts:
        raise ValueError("no section's JSON file in these folders")
    made = datetime.now(UTC).strftime("%Y-%m-%d")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>cutplane benchmarks</title><style>{STYLE}</style></head><body>"
        f"<h1>cutplane benchmarks</h1><p>Drawn {made} from the JSON files, which hold every run. "
        "Times exclude compilation; every section says where and when it ran, and which of its "
        f"checks do not hold.</p><nav><ul>{''.join(entries)}</ul></nav>"
        f"<main>{''.join(parts)}</main></body></html>\n"
    )


def _sections(folder: Path) -> list[dict[str, Any]]:
    """The contents of a folder's files, in the order of their suite."""
    contents = [load(file) for file in sorted(folder.glob("*.json"))]
    return sorted(contents, key=lambda c: list(tables_of(c["suite"])).index(c["section"]))


def _section(content: dict[str, Any], folder: Path, name: str) -> str:
    text = table(folder / f"{content['section']}.json")
    body = _from_markdown(text).replace("<h2>", f'<h3 id="{name}">', 1).replace("</h2>", "</h3>", 1)
    body = body.replace("<p>", '<p class="origin">', 1)  # where and when it ran
    body = body.replace("<table>", '<div class="wide"><table>')
    body = body.replace("</table>", "</table></div>")
    with tempfile.TemporaryDirectory() as scratch:
        drawn = [file for file in draw(content, Path(scratch)) if file.suffix == ".svg"]
        figures = [_inline(file, f"{name}-{k}-") for k, file in enumerate(drawn)]
    return f"<section>{body}{''.join(figures)}</section>"


def _from_markdown(text: str) -> str:
    from markdown_it import MarkdownIt  # comes with rich

    return MarkdownIt("commonmark", {"html": False}).enable("table").render(text)


def _inline(file: Path, prefix: str) -> str:
    """An SVG file as a figure, its identifiers made unique."""
    text = file.read_text("utf-8")
    text = text[text.index("<svg") :]
    text = _REFERENCE.sub(lambda match: match.group(1) + prefix, text)
    label = html.escape(file.stem.replace("-", " "))
    # On a telephone it scrolls rather than shrinks until nobody can read it.
    width = float(re.search(r'<svg[^>]*?\bwidth="([0-9.]+)pt"', text).group(1))  # type: ignore[union-attr]
    limits = f"min-width: {SIZES[0] * width:.0f}pt; max-width: {SIZES[1] * width:.0f}pt"
    text = text.replace("<svg", f'<svg style="{limits}"', 1)
    return f'<figure aria-label="{label}" role="img">{text}</figure>'


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.html", description=__doc__.splitlines()[0]
    )
    parser.add_argument("folder", type=Path, help="of suites: folders with JSON files")
    parser.add_argument(
        "--out", type=Path, default=Path("report.html"), help="default: %(default)s"
    )
    args = parser.parse_args(argv)
    folders = sorted(
        path for path in args.folder.iterdir() if path.is_dir() and path.name != "quick"
    )
    try:
        text = page(folders)
    except (ValueError, OSError, json.JSONDecodeError) as error:
        print(f"{args.folder}: {error}", file=sys.stderr)
        return 1
    args.out.write_text(text, "utf-8")
    print(f"{args.out}: {len(text) / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
