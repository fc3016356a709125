"""Which part imports which, read from the source: only what the table in CONTRIBUTING.md allows."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(importlib.util.find_spec("cutplane").origin).parent
FILES = sorted(ROOT.rglob("*.py"))
PACKAGES = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
MODULES = {path.stem for path in ROOT.glob("*.py")} - {"__init__"}

# What the code of each part may import of the package. A part that is not
# listed may import anything: estimators, cli and reporting sit at the end of the walk.
ALLOWED: dict[str, set[str]] = {
    "_jit": set(),
    "result": set(),
    "_elementary": {"_jit"},
    "losses": {"_elementary", "_jit"},
    "loops": {"_jit", "losses"},
    "exec": set(),
    "_blas": set(),
    "_checks": set(),
    "data": {"_checks", "_lazy", "loops"},
    "_lazy": set(),
    "risks": {"_lazy", "loops", "losses", "exec"},
    "kernels": {"_blas", "loops"},
    "objective": {"_blas", "data", "exec", "kernels", "loops", "risks"},
    "solvers": {
        *("_blas", "_lazy", "data", "exec", "kernels", "loops", "losses", "objective", "result"),
        *("risks", "structured"),
    },
    "structured": {"_checks", "data", "exec", "kernels", "loops", "objective", "result", "risks"},
    "cluster": {"_checks", "data", "exec", "loops", "objective", "risks", "structured"},
    "store": {"__version__", "data", "result"},
    "models": {
        *("_checks", "_lazy", "data", "estimators", "exec", "result", "solvers", "store"),
        "structured",
    },
}

# What each part may import from outside, besides the standard library.
OUTSIDE: dict[str, set[str]] = {
    "_jit": {"llvmlite", "numba"},
    "_elementary": {"numba"},
    "losses": {"numba"},
    "result": {"numpy"},
    "loops": {"numpy", "numba"},
    "exec": {"joblib"},
    "risks": {"numpy", "scipy"},
    "objective": {"numpy"},
}

# Slow or optional: imported where they are used, never with the module.
LAZY = {
    "dask",
    "distributed",
    "matplotlib",
    "rich",
    "pandas",
    "polars",
    "pyarrow",
    "joblib",
    "onnx",
    "argcomplete",
}
LAZY_WHERE_ALLOWED = {
    "rich": {"reporting", "cli"},
    "matplotlib": {"reporting", "cli"},
    "distributed": {"cluster"},  # in one file, which the others import where they use it
}

# The only places that print.
PRINTING = {"reporting", "cli", "__main__"}


@dataclass(frozen=True)
class Import:
    """One imported name: where it stands, what it names, and whether it runs on import."""

    file: Path
    line: int
    target: str
    top_level: bool

    @property
    def where(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}"

    @property
    def own(self) -> str | None:
        """The part of the package that is imported, if any."""
        parts = self.target.split(".")
        if parts[0] != "cutplane":
            return None
        return parts[1] if len(parts) > 1 else ""


def part_of(file: Path) -> str:
    """The part a file belongs to: its package, or the module itself."""
    relative = file.relative_to(ROOT)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def walk(node: ast.AST, top_level: bool = True) -> Iterator[tuple[ast.AST, bool]]:
    """Every node with whether it runs on import; what only type checkers see is left out."""
    for child in ast.iter_child_nodes(node):
        if is_type_checking(child):
            continue
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield child, top_level
        yield from walk(child, top_level and not inside)


def imports_of(file: Path) -> list[Import]:
    package = ("cutplane", *file.relative_to(ROOT).parent.parts)
    found = []
    for node, top_level in walk(ast.parse(file.read_text())):
        targets: list[str] = []
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else [])))
            # "from .. import x" and "from ..x import y" name the part x alike
            targets = [module]
            if module in ("cutplane", ""):
                targets = [f"{module}.{alias.name}" for alias in node.names]
        found += [Import(file, node.lineno, target, top_level) for target in targets]
    return found


IMPORTS = [entry for file in FILES for entry in imports_of(file)]


def breaches(condition) -> list[str]:
    return [f"{entry.where} imports {entry.target}" for entry in IMPORTS if condition(entry)]


def test_the_parser_sees_the_imports():
    """A check that finds no imports would always pass."""
    assert len(FILES) > 25
    targets = {(part_of(entry.file), entry.own) for entry in IMPORTS if entry.own}
    assert {("solvers", "objective"), ("objective", "risks"), ("risks", "loops")} <= targets
    assert ("loops", "_jit") in targets


@pytest.mark.parametrize("part", ALLOWED)
def test_imports_within_the_package(part):
    if part not in PACKAGES | MODULES:
        pytest.skip("not written yet")
    allowed = ALLOWED[part] | {part}

    def breach(entry: Import) -> bool:
        return part_of(entry.file) == part and entry.own is not None and entry.own not in allowed

    assert breaches(breach) == []


@pytest.mark.parametrize("part", OUTSIDE)
def test_imports_from_outside(part):
    def breach(entry: Import) -> bool:
        name = entry.target.split(".")[0]
        outside = entry.own is None and name not in sys.stdlib_module_names
        return part_of(entry.file) == part and outside and name not in OUTSIDE[part]

    assert breaches(breach) == []


def test_nothing_but_the_edges_imports_the_edges():
    """Nothing flows backwards: solvers know neither estimators nor the command line."""
    edges = {"estimators", "models", "cli", "reporting"}

    def breach(entry: Import) -> bool:
        inside = part_of(entry.file) not in edges | {"__init__", "__main__"}
        return inside and entry.own in edges

    assert breaches(breach) == []


def test_the_command_line_is_imported_by_nobody():
    assert breaches(lambda e: e.own == "cli" and part_of(e.file) not in {"cli", "__main__"}) == []


@pytest.mark.parametrize("name", sorted(LAZY))
def test_slow_imports_are_lazy(name):
    allowed = LAZY_WHERE_ALLOWED.get(name, set())

    def breach(entry: Import) -> bool:
        here = entry.target.split(".")[0] == name
        return here and entry.top_level and part_of(entry.file) not in allowed

    assert breaches(breach) == []


def test_estimators_do_not_know_model_files():
    """Checkpoints and models share the store; models are made of estimators, not the other way."""
    assert breaches(lambda e: e.own == "models" and part_of(e.file) == "estimators") == []


def test_nothing_is_unpickled():
    """Reading a file of ours runs nothing."""
    running = {"pickle", "cloudpickle", "joblib", "marshal", "importlib"}
    parts = {"store", "models", "estimators"}

    def breach(entry: Import) -> bool:
        return entry.target.split(".")[0] in running and part_of(entry.file) in parts

    assert breaches(breach) == []


def test_dask_is_imported_where_workers_are_spoken_to():
    entries = [e for e in IMPORTS if e.target.split(".")[0] in {"dask", "distributed"}]
    assert {part_of(entry.file) for entry in entries} == {"cluster"}
    assert {entry.file.stem for entry in entries if entry.top_level} == {"session"}
    here = [e for e in IMPORTS if e.target.endswith("cluster.session") and e.top_level]
    assert here == []


def test_mathematics_knows_no_cluster():
    knowing = {"__init__", "cluster", "cli", "estimators"}
    assert breaches(lambda e: e.own == "cluster" and part_of(e.file) not in knowing) == []


def test_one_numba_decorator():
    def breach(entry: Import) -> bool:
        own = part_of(entry.file) in {"_jit", "_elementary", "losses"}
        return entry.target.split(".")[0] == "numba" and not own

    assert breaches(breach) == []
    for file in FILES:
        assert "parallel=True" not in file.read_text() or part_of(file) == "_jit", file


def test_only_the_edges_print():
    printing = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in FILES
        if part_of(file) not in PRINTING
        for node, _ in walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
    assert printing == []


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_files_are_documented(file):
    module = ast.parse(file.read_text())
    assert ast.get_docstring(module), "a module opens with what it is about"


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import cutplane", "numba sklearn matplotlib rich dask"),
        (
            "from cutplane import LinearSVC",
            "cutplane.cluster cutplane.structured cutplane.solvers.stochastic cutplane.risks.pairs "
            "cutplane.solvers.cutting_plane cutplane.data.svmlight cutplane.store sklearn.isotonic",
        ),
    ],
    ids=["the package", "LinearSVC"],
)
def test_importing_is_light(statement, unwanted):
    """Nothing is loaded before it is needed, first of all nothing that is slow to load."""
    code = f"import sys; {statement}; print(*set({unwanted.split()!r}) & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT.parent,
    )
    assert done.stdout.strip() == ""
