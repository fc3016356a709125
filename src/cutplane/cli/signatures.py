"""The parameters of the estimators, read from their source: names, types, defaults, explanations.

The flags of the commands are made from them. Nothing is imported for that, because the estimators
bring scikit-learn and numba with them, and ``--help`` should not wait for these.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

REFERENCE = re.compile(r"\b[Aa]s for :class:`(?:~?[\w.]+\.)?(\w+)`")
# Consoles that know ASCII only are still about.
ASCII = {
    "≤": "<=",
    "≥": ">=",
    "·": "*",
    "½": "1/2 ",
    "−": "-",
    "²": "^2",
    "⁶": "^6",
    "Σ": "sum ",
    "α": "alpha",
    "ν": "nu",
    "ρ": "rho",
    "φ": "phi",
    "ε": "epsilon",
    "λ": "lambda",
    "θ": "theta",
    "…": "...",
    "–": "-",
    "→": "->",
    "∞": "infinity",
    "×": "x",
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of an estimator.

    Attributes
    ----------
    name : str
    annotation : str
        Its type, as in the source.
    default : object
    choices : tuple
        The values in the curly braces of its documentation, if any.
    text : str
        What the documentation says, in ASCII.
    """

    name: str
    annotation: str
    default: Any
    choices: tuple[Any, ...]
    text: str

    @property
    def alternatives(self) -> set[str]:
        """The types it may have."""
        return {part.strip() for part in self.annotation.split("|")}


@dataclass(frozen=True)
class _Entry:
    """A parameter in a docstring."""

    kind: str
    text: str


def parameters_of(estimator: str) -> tuple[Parameter, ...]:
    """The parameters of an estimator, by the name of its class, in their order."""
    node = _class(estimator)
    entries = _entries(estimator)
    init = next(
        part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"
    )
    arguments = init.args
    plain = arguments.args[1:]  # without self
    missing: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    pairs = [
        *zip(plain, [*missing, *arguments.defaults], strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    found = []
    for argument, default in pairs:
        entry = entries.get(argument.arg, _Entry("", ""))
        annotation = "Any" if argument.annotation is None else ast.unparse(argument.annotation)
        found.append(
            Parameter(
                argument.arg, annotation, _value(default), _choices(entry.kind), _plain(entry.text)
            )
        )
    return tuple(found)


def has_estimator(name: str) -> bool:
    """Whether there is an estimator of this name."""
    return name in _modules()


# -- source -------------------------------------------------------------------


def _tree(module: str) -> ast.Module:
    source = resources.files("cutplane").joinpath("estimators", f"{module}.py")
    return ast.parse(source.read_text(encoding="utf-8"))


@cache
def _modules() -> dict[str, str]:
    """Where each public estimator is, as ``estimators/__init__.py`` has it."""
    return {
        alias.name: node.module
        for node in _tree("__init__").body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


@cache
def _class(name: str) -> ast.ClassDef:
    for node in _tree(_modules()[name]).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return node
    raise LookupError(name)


def _value(node: ast.expr | None) -> Any:
    try:
        return None if node is None else ast.literal_eval(node)
    except ValueError:
        assert node is not None
        return ast.unparse(node)


# -- docstrings ---------------------------------------------------------------


@cache
def _entries(estimator: str) -> dict[str, _Entry]:
    """What the section Parameters of a numpydoc docstring says, references followed."""
    docstring = ast.get_docstring(_class(estimator)) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+$|\Z)", docstring, re.M | re.S)
    found: dict[str, _Entry] = {}
    names: list[str] = []
    kind = ""
    lines: list[str] = []

    def close() -> None:
        text = "\n".join(lines)
        find = REFERENCE.match if kind else REFERENCE.search
        reference = find(" ".join(text.split()))
        for name in names:
            entry = _Entry(kind, text)
            if reference and reference[1] != estimator:
                entry = _entries(reference[1]).get(name, entry)
            found[name] = entry

    for line in (section[1] if section else "").splitlines():
        if line and not line.startswith(" "):
            close()
            head, _, kind = line.partition(" : ")
            names, lines = [name.strip() for name in head.split(",")], []
        else:
            lines.append(line.strip())
    close()
    return found


def _choices(kind: str) -> tuple[Any, ...]:
    braces = re.search(r"\{(.*?)\}", kind)
    if braces:
        return tuple(ast.literal_eval(f"[{braces[1]}]"))
    before = kind.partition(", default")[0].partition(", optional")[0]
    return tuple(re.findall(r"'(\w+)'", before))


def _plain(text: str) -> str:
    """Without markup, in ASCII, on one line."""
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"\1", text)
    text = text.replace("``", "").replace("*", "")
    for letter, spelled in ASCII.items():
        text = text.replace(letter, spelled)
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return " ".join(text.split())
