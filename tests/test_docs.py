"""The documentation does what it says.

Every ``python`` block of a page runs, in order and in one namespace. Blocks
written as sessions (``>>>``) are compared with the output they show: the words
must be the same, the numbers close. A comment ``<!-- needs MODULE -->`` before a
block skips it where MODULE is missing.
"""

from __future__ import annotations

import doctest
import importlib.util
import logging
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = sorted({*PAGES, *ROOT.glob("*.md")})
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

BLOCK = re.compile(
    r"^(?:<!-- needs (?P<needs>[\w.]+) -->\n+)?```python\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
CONSOLE = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
# What may differ from run to run: gaps, counts of iterations and cuts, times.
FREE = re.compile(r"gap \S+ \(\S+ %\)|\d+ (?:iterations|cuts)|[\d.]+ s\b")
CLOSE = 2e-3  # two objectives within the default tolerance of the same optimum


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


# -- blocks -------------------------------------------------------------------


class CloseNumbers(doctest.OutputChecker):
    """Accepts other numbers if they are close, and any gap, count or time."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        want, got = (FREE.sub("~", " ".join(text.split())) for text in (want, got))
        if NUMBER.sub("#", want) != NUMBER.sub("#", got):
            return False
        pairs = zip(NUMBER.findall(want), NUMBER.findall(got), strict=True)
        return all(
            abs(float(a) - float(b)) <= CLOSE * max(abs(float(a)), abs(float(b))) for a, b in pairs
        )


def _run_session(code: str, name: str, line: int, namespace: dict[str, object]) -> None:
    test = doctest.DocTestParser().get_doctest(code, namespace, name, name, line)
    runner = doctest.DocTestRunner(
        CloseNumbers(), verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    report: list[str] = []
    runner.run(test, out=report.append, clear_globs=False)
    assert not runner.failures, "".join(report)
    namespace.update(test.globs)  # the parser works on a copy


@pytest.mark.usefixtures("clean_up")
@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_python_blocks(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run in an empty folder, so that what the blocks write goes there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        if block["needs"] and importlib.util.find_spec(block["needs"]) is None:
            continue
        code = block["code"]
        line = text[: block.start("code")].count("\n")
        if code.startswith(">>>"):
            _run_session(code, _name(page), line, namespace)
        else:
            # Blank lines, so that a traceback shows the line of the page.
            exec(compile("\n" * line + code, str(page), "exec"), namespace)


@pytest.mark.usefixtures("clean_up")
def test_console_blocks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands on the page about them print what it shows; ``...`` stands for anything."""
    from cutplane.cli import main

    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    commands = 0
    namespace: dict[str, object] = {}  # of all blocks, as a reader has them
    for language, code in CONSOLE.findall(page):
        if language == "python":
            exec(code, namespace)
            continue
        for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
            command, _, want = part.partition("\n")
            assert main(shlex.split(command)[1:]) == 0, command
            got = capsys.readouterr().out
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            texts = (FREE.sub("~", text) for text in (want, got))
            assert CloseNumbers().check_output(*texts, flags), f"{command}\n{got}"
            commands += 1
    assert commands > 10


@pytest.fixture
def clean_up() -> Iterator[None]:
    """Undo what pages do to the process: log levels, handlers, open figures."""
    root, ours = logging.getLogger(), logging.getLogger("cutplane")
    handlers, level = list(root.handlers), ours.level
    yield
    root.handlers[:] = handlers
    ours.setLevel(level)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


# -- the checker itself -------------------------------------------------------


@pytest.mark.parametrize(
    ("want", "got", "same"),
    [
        ("primal 1.0001, dual 1, gap 1e-4 (0.01 %)", "primal 1, dual 1, gap 0.0 (0 %)", True),
        ("primal 1.01, dual 1, gap 1e-4 (0.01 %)", "primal 1, dual 1, gap 0.0 (0 %)", False),
        ("converged after 41 iterations", "converged after 12 iterations", True),
        ("converged after 41 iterations", "max_iter after 41 iterations", False),
        ("array([0, 1])", "array([0, 2])", False),
    ],
)
def test_numbers_must_be_close(want: str, got: str, same: bool) -> None:
    assert CloseNumbers().check_output(want + "\n", got + "\n", 0) is same


# -- examples -----------------------------------------------------------------


@pytest.mark.parametrize("script", EXAMPLES, ids=_name)
def test_example(script: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", str(script)],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        encoding="utf-8",
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


# -- pages --------------------------------------------------------------------


def test_api_page_is_current() -> None:
    spec = importlib.util.spec_from_file_location("make_api", ROOT / "docs" / "make_api.py")
    assert spec is not None
    assert spec.loader is not None
    make_api = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_api)
    page = make_api.PAGE.read_text(encoding="utf-8")
    assert page == make_api.render(), "run: python docs/make_api.py"


@pytest.mark.parametrize(
    "command", ["pip install . && cutplane demo", "pip install '.[test]' && pytest"]
)
def test_commands_are_on_the_first_screen(command: str) -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert command in lines[:40]


def _anchors(page: Path) -> set[str]:
    """Of the headings, as code hosts make them."""
    titles = HEADING.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", TEXTS, ids=_name)
def test_links_resolve(page: Path) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    broken = []
    for link in LINK.findall(text):
        if re.match(r"https?://|mailto:", link):
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        outside = ROOT not in (target, *target.parents)
        if outside or not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(link)
    assert not broken


def test_every_page_is_reached_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    linked = {link.partition("#")[0] for link in LINK.findall(index)}
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"} <= linked


def test_dependency_table_names_the_dependencies() -> None:
    """The README says why each runtime dependency is there, and lists no other."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {re.split(r"[<>=!~ \[;]", name)[0] for name in project["dependencies"]}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme.partition("## Dependencies")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)) == wanted


def test_licence_is_the_one_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "BSD-3-Clause"
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert licence.startswith("BSD 3-Clause License")
