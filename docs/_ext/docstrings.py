"""Docstrings as they are written in the sources, made ready for reStructuredText.

They are read in editors and terminals first, so they say |w| and n_features_in_, and they indent
formulas. In reStructuredText the first is a substitution, the second a link and the third a
quotation: the signs are escaped, and indented formulas become literal blocks. Members that come
from scikit-learn are left out.
"""

from __future__ import annotations

import re
from typing import Any

LITERAL = re.compile(r"(``.*?``|:\w+:`[^`]*`|`[^`]*`)")
SPECIAL = re.compile(r"(?<!\\)\||(?<=\w)_(?!\w)")
ENTRIES = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "See Also")


def prepare(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Change the lines of a docstring in place."""
    out: list[str] = []
    title, formula = "", False
    for k, line in enumerate(lines):
        if k > 0 and line and set(line) == {"-"} and len(line) == len(lines[k - 1]):
            title = lines[k - 1]
        indented = line.startswith("    ")
        if line.strip():
            begins = indented and title not in ENTRIES and (not out or not out[-1].strip())
            if begins and not formula and not _within_example(out):
                out += ["::", ""]
            formula = indented and (formula or begins)
        if formula or line.lstrip().startswith((">>>", "...")):
            out.append(line)
        elif title in ENTRIES and not indented:  # numpydoc takes care of the name
            entry, colon, kind = line.partition(" : ")
            out.append(entry + colon + _escaped(kind))
        else:
            out.append(_escaped(line))
    lines[:] = out


def _within_example(lines: list[str]) -> bool:
    """Whether the last line that is not empty belongs to an example or a list."""
    last = next((line for line in reversed(lines) if line.strip()), "")
    return last.startswith((" ", ">>>", "...", "- ", "* "))


def _escaped(text: str) -> str:
    parts = LITERAL.split(text)
    parts[::2] = [SPECIAL.sub(r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)


def skip(app: Any, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out members that no class of ours defines."""
    function = getattr(obj, "fget", None) or getattr(obj, "func", None) or obj
    module = getattr(function, "__module__", None)
    return True if module is not None and not module.startswith("cutplane") else None


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", prepare, priority=400)  # before numpydoc
    app.connect("autodoc-skip-member", skip)
    return {"version": "1", "parallel_read_safe": True}
