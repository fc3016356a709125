"""The pieces of a self-contained HTML page: escaped text, tables, figures, the page around them.

The page loads nothing and runs no script: it contains its figures as SVG and its style. Wide tables
and figures scroll in their own frame, so the page fits a telephone. Figures have a white
background; the rest is light or dark, as the reader's browser asks.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8881; --link: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --link: #56b4e9; } }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 70rem;
  padding: 0 1rem 4rem; overflow-wrap: anywhere; }
h1 { margin: 1.5rem 0 .3rem; line-height: 1.2; }
h2 { margin: 2.5rem 0 .5rem; border-bottom: 1px solid var(--line); }
h3 { margin: 1.5rem 0 .3rem; }
a { color: var(--link); }
.lead { font-size: 1.1rem; max-width: 45rem; } .note { font-size: .9rem; opacity: .8; }
.tiles { display: flex; flex-wrap: wrap; gap: .6rem; padding: 0; margin: 1rem 0; }
.tiles div { border: 1px solid var(--line); border-radius: 6px; padding: .4rem .9rem; }
.tiles dt { font-size: .85rem; opacity: .8; }
.tiles dd { margin: 0; font-size: 1.3rem; font-variant-numeric: tabular-nums; }
.figures { display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); }
figure { margin: .8rem 0; min-width: 0; max-width: 38rem; } figcaption { font-size: .9rem; }
.card { background: #fff; color: #000; border-radius: 6px; overflow-x: auto; }
.card svg { display: block; width: 100%; height: auto; margin: 0 auto; }
.wide { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
@media (min-width: 40rem) { caption { white-space: nowrap; } }
th, td { padding: .25rem .7rem; text-align: right; vertical-align: top; }
th:first-child, td:first-child { text-align: left; }
tbody th { font-weight: normal; max-width: 28rem; min-width: 6rem; }
thead th { border-bottom: 2px solid var(--line); vertical-align: bottom; }
tbody tr:nth-child(even) { background: var(--soft); }
td { white-space: nowrap; } thead th { overflow-wrap: normal; }
.facts td { text-align: left; white-space: normal; }
"""

LONGEST_NAME = 80  # characters of a name in a table; the rest is in its title
SMALLEST = 0.65  # part of its own size to which a figure shrinks before it scrolls: 350 of 540

# Identifiers inside an SVG are those of the page once it is inside: they must differ.
_REFERENCE = re.compile(r'(\bid="|href="#|url\(#)')
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def clean(value: Any) -> str:
    """A name as one line of printable text."""
    return " ".join(_UNPRINTABLE.sub("\ufffd", str(value)).split())


def shortened(value: Any, most: int = LONGEST_NAME) -> str:
    """A name as one line of at most ``most`` characters."""
    text = clean(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def text(value: Any) -> str:
    """Any value as HTML."""
    return escape(clean(value))


def name_cell(value: Any) -> str:
    """A name as the first cell of a row. A long name is cut, and shown in full as a tooltip."""
    full, short = clean(value), shortened(value)
    title = f' title="{escape(full[:1000])}"' if short != full else ""
    return f'<th scope="row"{title}>{escape(short)}</th>'


def _table(caption: str, kind: str, titles: str, body: str) -> str:
    """A table in a frame of its own, in which it can scroll."""
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{text(caption)}">'
        f'<table class="{kind}"><caption>{text(caption)}</caption>'
        f"<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>"
    )


class Page:
    """An HTML page, written section by section.

    Parameters
    ----------
    title : str
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.parts: list[str] = []
        self._figures = 0

    def add(self, *parts: str) -> None:
        """Append pieces of HTML."""
        self.parts += parts

    def section(self, title: str) -> None:
        """Begin a section."""
        self.add(f"<h2>{text(title)}</h2>")

    def say(self, content: str, kind: str = "") -> None:
        """Append a paragraph of plain text."""
        self.add(f'<p class="{kind}">{text(content)}</p>' if kind else f"<p>{text(content)}</p>")

    def tiles(self, values: Mapping[str, str]) -> None:
        """Append a few important numbers in large type."""
        items = "".join(
            f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>"
            for name, value in values.items()
        )
        self.add(f'<dl class="tiles">{items}</dl>')

    def table(
        self, caption: str, head: Sequence[Any], rows: Iterable[Sequence[Any]], kind: str = ""
    ) -> None:
        """Append a table. The first column holds the names of the rows."""
        titles = "".join(f'<th scope="col">{escape(shortened(title))}</th>' for title in head)
        body = "".join(
            f"<tr>{name_cell(row[0])}{''.join(f'<td>{text(cell)}</td>' for cell in row[1:])}</tr>"
            for row in rows
        )
        self.add(_table(caption, kind, titles, body))

    def counts(
        self, caption: str, corner: str, labels: Sequence[Any], counts: Sequence[Sequence[float]]
    ) -> None:
        """Append a square table. The larger a cell's share of its row, the darker the cell."""
        titles = "".join(f'<th scope="col">{escape(shortened(label, 24))}</th>' for label in labels)
        body = ""
        for label, row in zip(labels, counts, strict=True):
            total = float(sum(row)) or 1.0
            cells = "".join(
                f'<td style="background: rgba(0, 114, 178, {0.55 * float(value) / total:.2f})">'
                f"{value:,.6g}</td>"
                for value in row
            )
            body += f"<tr>{name_cell(label)}{cells}</tr>"
        self.add(_table(caption, "counts", f'<th scope="col">{text(corner)}</th>{titles}', body))

    def figures(self, *figures: tuple[Figure, str]) -> None:
        """Append figures with their captions, side by side if the page is wide enough."""
        self.add('<div class="figures">')
        for figure, caption in figures:
            self._figures += 1
            drawing = as_svg(figure, f"f{self._figures}-", clean(caption))
            self.add(
                f'<figure><div class="card">{drawing}</div>'
                f"<figcaption>{text(caption)}</figcaption></figure>"
            )
        self.add("</div>")

    def render(self) -> str:
        """The page as text."""
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{text(self.title)}</title><style>{STYLE}</style></head>\n<body><main>\n"
            + "\n".join(self.parts)
            + "\n</main></body></html>\n"
        )


def as_svg(figure: Figure, prefix: str, alt: str) -> str:
    """A figure as an SVG element whose identifiers begin with ``prefix``."""
    import matplotlib

    file = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    # Keep text as text, so that the reader's fonts draw it: they know more scripts.
    with (
        matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "cutplane"}),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure.savefig(file, format="svg", metadata=nothing)
    drawing = file.getvalue()
    drawing = drawing[drawing.index("<svg") :]
    drawing = re.sub(r"<!--.*?-->", "", drawing, flags=re.DOTALL)
    drawing = _REFERENCE.sub(lambda match: match.group(1) + prefix, drawing)
    width = 72.0 * figure.get_figwidth()
    size = f"min-width: {SMALLEST * width:.0f}pt; max-width: {width:.0f}pt"
    return drawing.replace(
        "<svg", f'<svg role="img" aria-label="{escape(alt)}" style="{size}"', 1
    ).strip()
