"""Write docs/api.md from the docstrings of the public names.

    python docs/make_api.py

Docstrings are in numpydoc form. Sections that list names become bullets,
other sections are kept as they are, examples become code blocks.
"""

from __future__ import annotations

import enum
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cutplane
import cutplane.metrics
import cutplane.models
import cutplane.structured

PAGE = Path(__file__).with_name("api.md")

# In the order in which a reader meets them.
NAMES = (
    "LinearSVC",
    "LinearSVR",
    "LinearSVCCV",
    "linear_svc_path",
    "LinearSVCPath",
    "MeasureSVC",
    "RankSVM",
    "OrdinalSVC",
    "SVC",
    "SVR",
    "OneClassSVM",
    "SampledCutSVC",
    "CholeskyFeatures",
    "ChainTagger",
    "StructuredSVM",
    "Certificate",
    "SolveResult",
    "Status",
    "Iteration",
    "plot_convergence",
    "plot_path",
    "plot_calibration",
    "report",
    "load_svmlight",
    "iter_svmlight",
    "dump_svmlight",
    "open_dataset",
    "write_dataset",
    "DaskCluster",
    "ClusterError",
    "RowFiles",
    "Rows",
    "convert_dataset",
    "Dataset",
    "save_model",
    "load_model",
    "Checkpoint",
)
MODULES = (cutplane.structured, cutplane.metrics, cutplane.models)

HEAD = """\
# API reference

Written from the docstrings by `python docs/make_api.py`. Change those, not this page.
Names are imported from `cutplane`, unless a module is named. The [user guide](user-guide.md)
explains how they work together.
"""

LISTS = ("Parameters", "Attributes", "Returns", "Yields")
INDENT = "    "


def render() -> str:
    """The whole page."""
    missing = set(cutplane.__all__) - set(NAMES) - {"__version__"}
    if missing:
        raise SystemExit(f"add these public names to NAMES in {__file__}: {sorted(missing)}")
    entries = [_entry(name, getattr(cutplane, name)) for name in NAMES]
    contents = [f"- [`{name}`](#{name.lower()})" for name in NAMES]
    for module in MODULES:
        title = module.__name__
        contents.append(f"- [`{title}`](#{title.replace('.', '')})")
        entries += [f"## {title}\n", _markdown(inspect.getdoc(module)), ""]
        names = [name for name in module.__all__ if callable(getattr(module, name))]
        entries += [_entry(name, getattr(module, name), "###") for name in names]
    page = "\n".join([HEAD, *contents, "", *entries])
    return re.sub(r"\n{3,}", "\n\n", page).rstrip() + "\n"


def _entry(name: str, value: Any, level: str = "##") -> str:
    parts = [f"{level} {name}", ""]
    if isinstance(value, type) and issubclass(value, enum.Enum):
        parts += [_markdown(inspect.getdoc(value)), "", "**Members**", ""]
        parts += [f"- **`{member.name}`** = `{member.value!r}`" for member in value]
        parts.append("")
    else:
        parts += [_code(f"{name}{_signature(value)}"), _markdown(inspect.getdoc(value)), ""]
    if isinstance(value, type):
        parts += [line for method in _members(value) for line in _member(value, method)]
    return "\n".join(parts)


def _members(cls: type) -> Iterator[str]:
    """Public methods and properties that the class itself defines, in the order of the source."""
    for name, member in vars(cls).items():
        ours = inspect.isfunction(member) and member.__module__.startswith("cutplane")
        if not name.startswith("_") and (ours or isinstance(member, property)):
            yield name


def _member(cls: type, name: str) -> list[str]:
    member = vars(cls)[name]
    heading = f"### {cls.__name__}.{name}"
    if isinstance(member, property):
        text = inspect.getdoc(member) or ""
        kind = str(member.fget.__annotations__.get("return", ""))
        return [heading, "", f"Property, `{kind}`. {_inline(text)}".rstrip(), ""]
    signature = _code(f"{name}{_signature(member, drop_self=True)}")
    return [heading, "", signature, _markdown(inspect.getdoc(member)), ""]


# -- signatures ---------------------------------------------------------------


def _signature(function: Any, *, drop_self: bool = False) -> str:
    """As written in the source: annotations unquoted, a line per parameter if it is long."""
    signature = inspect.signature(function)
    parts: list[str] = []
    starred = False
    for parameter in list(signature.parameters.values())[drop_self:]:
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        parts.append(_parameter(parameter))
    returns = "" if isinstance(function, type) else _arrow(signature.return_annotation)
    line = f"({', '.join(parts)}){returns}"
    if len(line) <= 88:
        return line
    return "(\n" + "".join(f"{INDENT}{part},\n" for part in parts) + f"){returns}"


def _parameter(parameter: inspect.Parameter) -> str:
    text = parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {_type(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        default = parameter.default
        text += f" = {default:_}" if type(default) is int else f" = {default!r}"
    return text


def _arrow(annotation: Any) -> str:
    return "" if annotation is inspect.Signature.empty else f" -> {_type(annotation)}"


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _code(text: str) -> str:
    """A code block. Examples that doctest skips are coloured but not run."""
    language = "text"
    if text.startswith(">>>"):
        language = "pycon" if "# doctest: +SKIP" in text else "python"
    text = re.sub(r" *# doctest: \+SKIP$", "", textwrap.dedent(text), flags=re.MULTILINE)
    return f"```{language}\n{text}\n```\n"


# -- docstrings ---------------------------------------------------------------


def _markdown(docstring: str | None) -> str:
    """A numpydoc docstring as Markdown."""
    out: list[str] = []
    for title, lines in _sections((docstring or "").splitlines()):
        if title:
            out += [f"**{title}**", ""]
        if title in LISTS:
            out += _bullets(lines)
        else:
            out += _paragraphs(lines)
        out.append("")
    return "\n".join(out).rstrip() + "\n"


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Pairs of title and lines; the first has no title."""
    title, begin = "", 0
    for k, line in enumerate(lines):
        if k > 0 and line and set(line) == {"-"} and len(line) == len(lines[k - 1]):
            yield title, lines[begin : k - 1]
            title, begin = lines[k - 1], k + 1
    yield title, lines[begin:]


def _bullets(lines: list[str]) -> list[str]:
    """One item per name, its type in brackets, its description behind."""
    out: list[str] = []
    for line in filter(str.strip, lines):
        if line.startswith(" "):
            out[-1] += ":" if out[-1].startswith("- ") else ""
            out.append(f"  {_inline(line.strip())}")
        else:
            names, _, kind = line.partition(" : ")
            bold = ", ".join(f"**`{name}`**" for name in names.split(", "))
            out.append(f"- {bold}" + (f" (`{kind}`)" if kind else ""))
    return out


def _paragraphs(lines: list[str]) -> list[str]:
    """Text, with doctests and indented formulas as code."""
    out: list[str] = []
    code: list[str] = []
    for line in [*lines, ""]:
        if line.startswith((">>>", "...", INDENT)) or (code and line.strip()):
            code.append(line)
            continue
        if code:
            out += [_code("\n".join(code)).rstrip()]
            code = []
        out.append(_inline(line))
    return out


def _inline(text: str) -> str:
    """Roles and literals as Markdown code; angle brackets are no HTML."""
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text)
    text = text.replace("``", "`")
    parts = text.split("`")
    parts[::2] = [part.replace("<", "&lt;").replace(">", "&gt;") for part in parts[::2]]
    return "`".join(parts)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
