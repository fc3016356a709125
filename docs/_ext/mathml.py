"""Formulas as MathML, which browsers draw themselves: no script, no image, no network.

The converter is that of docutils, which Sphinx brings.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml, pick_math_environment


def mathml(text: str, *, block: bool) -> str:
    """A formula in LaTeX as an element ``math``."""
    if block:
        environment = pick_math_environment(text)
        if environment != "equation*":
            text = rf"\begin{{{environment}}}{text}\end{{{environment}}}"
    return latex2mathml.tex2mathml(text, as_block=block)


def visit_math(self: Any, node: nodes.math) -> None:
    """A formula in a line."""
    self.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def visit_displaymath(self: Any, node: nodes.math_block) -> None:
    """A formula on lines of its own."""
    self.body.append(self.starttag(node, "div", CLASS="math"))
    self.body.append(mathml(node.astext(), block=True))
    self.body.append("</div>")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"version": "1", "parallel_read_safe": True}
