"""Packages that import a module when one of its names is first used.

So a fit loads only the modules, and the compiled loops, that it needs. Such a package lists its
names once: in the imports under ``if TYPE_CHECKING``, which type checkers read, and we do, too.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def modules_of(package: str) -> dict[str, str]:
    """For each name that a package imports when it is used, the module that has the name."""
    spec: Any = importlib.util.find_spec(package)
    tree = ast.parse(spec.loader.get_source(package))
    listed = (node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.name: str(node.module)
        for part in listed
        for node in part.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def importing(package: str) -> tuple[Callable[[str], Any], list[str]]:
    """The ``__getattr__`` of a package, and the names that it finds.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    """
    where = modules_of(package)

    def find(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{where[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return find, sorted(where)
