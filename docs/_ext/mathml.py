"""Formulas as MathML, which browsers draw themselves: no script, no image, no network.

The converter is that of docutils, which Sphinx brings.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml


def mathml(text: str, *, block: bool) -> str:
    """A formula in LaTeX as an element ``math``."""
    found: str = latex2mathml.tex2mathml(text, as_block=block)
    return found.replace('class="ams-align">', 'class="ams-align" displaystyle="true">')


def visit_math(self: Any, node: nodes.math) -> None:
    """A formula in a line."""
    self.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def visit_displaymath(self: Any, node: nodes.math_block) -> None:
    """A formula on lines of its own."""
    self.body.append(self.starttag(node, "div", CLASS="formula"))
    self.body.append(mathml(node.astext(), block=True))
    self.body.append("</div>")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"version": "1", "parallel_read_safe": True}
