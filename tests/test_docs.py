"""The documentation does what it says.

The blocks of a page run in order, in one namespace and one folder: ``python`` blocks, and the
commands of ``console`` and ``sh`` blocks. Sessions (``>>>``) and ``console`` blocks are compared
with the output that they show: the words must be the same, the numbers close, and ``...`` stands
for anything. A comment ``<!-- needs MODULE -->`` before a block skips it where MODULE is missing.
"""

from __future__ import annotations

import doctest
import importlib
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

import cutplane
from cutplane.losses import LOSSES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
TEXTS = sorted({*PAGES, *ROOT.glob("*.md")})
EXAMPLES = sorted(p for p in (ROOT / "examples").glob("*.py") if not p.name.startswith("plot_"))

BLOCK = re.compile(
    r"^(?:<!-- needs (?P<needs>[\w.]+) -->\n+)?"
    r"```(?P<language>python|console|sh)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
SHOWN = re.compile(r"^ *```text\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
# What may differ from run to run: gaps, counts of iterations and cuts, times.
FREE = re.compile(r"gap \S+ \(\S+ %\)|\d+ (?:iterations|cuts)|[\d.]+ m?s\b")
CLOSE = 2e-3  # two objectives within the default tolerance of the same optimum

# Commands of the pages that no test runs, and why. Expressions for the whole command.
NOT_RUN = {
    r"pip install .*": ".ci/run installs and runs the demo and the tests in a fresh environment",
    r"python -m sphinx .*": "test_site_builds does",
    r"pytest.*|ruff .*|mypy|python -m venv .*|\. \.venv.*": ".ci/run does",
    r"python -m benchmarks .*": "tests/test_benchmarks.py runs the sections on small data",
    r"cutplane completion \w+ > .*": "it writes to the home folder; tests/cli tests what it prints",
    r"dask .*|cutplane train --scheduler .*": "hosts; tests/estimators/test_cluster.py does it",
    r"cutplane .*(fold1|covtype|chunker).*": "on public data; a slow test runs them",
}
# Where the pages link to. Nobody asks these hosts when the tests run.
HOSTS = {
    "distributed.dask.org",
    "github.com",
    "keepachangelog.com",
    "semver.org",
    "www.contributor-covenant.org",
}


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


# -- blocks -------------------------------------------------------------------


class CloseNumbers(doctest.OutputChecker):
    """Accepts outputs with other numbers if they are close, and with any gap, count or time."""

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


def _commands(language: str, code: str) -> Iterator[tuple[str, str]]:
    """Commands of a block, each with the output that is shown."""
    if language == "console":
        for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
            command, _, want = part.partition("\n")
            yield command, want
    else:
        for line in code.splitlines():
            yield line.partition("  #")[0].rstrip(), ""


def _run_command(command: str, want: str, capsys: pytest.CaptureFixture[str]) -> None:
    from cutplane.cli import main

    words = shlex.split(command)
    assert words[0] == "cutplane", f"add to NOT_RUN, with the reason: {command}"
    try:
        code = main(words[1:])
    except SystemExit as end:  # --version
        code = end.code
    captured = capsys.readouterr()
    assert code == 0, f"{command}\n{captured.err}"
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    texts = (FREE.sub("~", text) for text in (want, captured.out))
    assert not want or CloseNumbers().check_output(*texts, flags), f"{command}\n{captured.out}"


def _reason(command: str) -> str | None:
    return next((why for what, why in NOT_RUN.items() if re.fullmatch(what, command)), None)


@pytest.mark.usefixtures("clean_up")
@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_blocks(
    page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
        if block["language"] != "python":
            for command, want in _commands(block["language"], code):
                if command and _reason(command) is None:
                    _run_command(command, want, capsys)
        elif code.startswith(">>>"):
            _run_session(code, _name(page), line, namespace)
            capsys.readouterr()
        else:
            # Blank lines, so that a traceback shows the line of the page.
            exec(compile("\n" * line + code, str(page), "exec"), namespace)
            capsys.readouterr()


@pytest.mark.parametrize("page", TEXTS, ids=_name)
def test_commands_that_are_only_shown_have_a_reason(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    shown = [line for block in SHOWN.findall(text) for line in block.splitlines()]
    commands = [line.partition("$ ")[2].lstrip() for line in shown if re.match(r"\w*\$ ", line)]
    if page not in PAGES:  # its blocks are not run either
        blocks = [b for b in BLOCK.finditer(text) if b["language"] != "python"]
        commands += [c for b in blocks for c, _ in _commands(b["language"], b["code"]) if c]
    assert not [c for c in commands if _reason(c.partition("  ")[0]) is None]


DATA = os.environ.get("CUTPLANE_DATA", "")  # as for the benchmarks
PUBLIC = {
    "fold1.train.svm.gz": "mq2008", "fold1.vali.svm.gz": "mq2008", "fold1.test.svm.gz": "mq2008",
    "covtype.npz": "covtype", "train.txt.gz": "conll2000", "test.txt.gz": "conll2000",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(not DATA, reason="needs the data folder of the benchmarks")
def test_commands_on_public_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, folder in PUBLIC.items():
        Path(name).symlink_to(Path(DATA) / folder / name)
    page = (DOCS / "command-line.md").read_text(encoding="utf-8")
    section = page.partition("\n## On public data\n")[2].partition("\n## ")[0]
    run = 0
    for block in SHOWN.findall(section):
        if block.startswith("U00:"):
            Path("chunking.template").write_text(block, encoding="utf-8")
        for command, want in _commands("console", block):
            _run_command(command, want.replace("…", "..."), capsys)
            run += 1
    assert run == 7


# -- docstrings ---------------------------------------------------------------

MODULES = ("cutplane", "cutplane.structured", "cutplane.metrics", "cutplane.models")


def _public() -> dict[str, object]:
    """Every public name with its module."""
    found = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            if name != "__version__" and not (module is not cutplane and name in cutplane.__all__):
                found[f"{module.__name__}.{name}"] = getattr(module, name)
    return found


@pytest.mark.usefixtures("clean_up")
@pytest.mark.parametrize("name", _public())
def test_examples_of_docstrings(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(CloseNumbers(), verbose=False, optionflags=flags)
    report: list[str] = []
    for test in doctest.DocTestFinder().find(_public()[name], name, globs={}):
        runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


def test_every_public_name_is_in_the_reference() -> None:
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    module, listed = "", set()
    for line in page.splitlines():
        if found := re.match(r"\.\. (?:module|currentmodule):: (\S+)", line):
            module = found[1]
        elif found := re.match(r"   ([\w.]+)$", line):
            listed.add(f"{module}.{found[1]}")
    assert listed == set(_public())


@pytest.fixture
def clean_up() -> Iterator[None]:
    """Undo what pages do to the process: log levels, handlers, open figures, losses."""
    root, ours = logging.getLogger(), logging.getLogger("cutplane")
    handlers, level, losses = list(root.handlers), ours.level, set(LOSSES)
    yield
    for name in set(LOSSES) - losses:
        del LOSSES[name]
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
        if found := re.match(r"https?://([^/]+)", link):
            assert found[1] in HOSTS, f"add the host to HOSTS: {link}"
            continue
        place, _, anchor = link.partition("#")
        if link.startswith(("mailto:", "generated/")):  # written when the site is built
            continue
        target = (page.parent / place).resolve() if place else page
        outside = ROOT not in (target, *target.parents)
        if outside or not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(link)
    assert not broken


def test_the_readme_is_one_screen_before_its_first_table() -> None:
    """What it is for, a picture, the commands, an example, a figure, where to go next."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    screen = readme.partition("\n| ")[0]
    assert screen.count("![") == 2
    assert re.search(r"^>>> print\(model.certificate_\)\nprimal", screen, re.MULTILINE)
    assert "## Where to go next" in screen
    assert len(screen.splitlines()) < 90


# -- the site -----------------------------------------------------------------


def test_every_page_is_in_a_table_of_contents() -> None:
    """Reached from the first page, each once."""
    reached, left = [], ["index"]
    while left:
        page = left.pop()
        reached.append(page)
        if page.startswith(("generated/", "gallery/")):  # written when the site is built
            continue
        for entries in TOCTREE.findall((DOCS / f"{page}.md").read_text(encoding="utf-8")):
            left += [e for e in entries.splitlines() if e and not e.startswith(":")]
    assert len(reached) == len(set(reached))
    assert {page.stem for page in DOCS.glob("*.md")} <= set(reached)


def test_tables_of_flags_are_those_of_the_programs() -> None:
    """Flags on the page for people who know other programs: theirs exist, and so do ours."""
    from cutplane.cli.kinds import KINDS
    from cutplane.cli.known import LEARNERS
    from cutplane.cli.parameters import PARAMETERS

    programs = {
        "liblinear": "liblinear-train", "SVM-light": "svm_learn", "SVM-perf": "svm_perf_learn",
        "SVM-rank": "svm_rank_learn", "SVM-hmm": "svm_hmm_learn",
    }  # fmt: skip
    assert set(programs.values()) == set(LEARNERS)
    ours = {flag for parameter in PARAMETERS for flag in parameter.flags}
    ours |= {f"--no-{flag.removeprefix('--')}" for flag in ours}
    ours |= {flag for kind in KINDS for flag in kind.flags}
    ours |= {"--cv", "--quiet", "--validation", "--output"}  # of the commands themselves
    page = (DOCS / "coming-from.md").read_text(encoding="utf-8")
    for title, program in programs.items():
        section = page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        known = {*LEARNERS[program].flags, "-w", "-C"}
        for row in re.findall(r"^\| (`-.*) \|$", section, re.MULTILINE):
            cells = row.split(" | ")
            theirs = re.findall(r"(?:^|`|\s)(--?[a-zA-Z#])", cells[0])
            assert theirs and set(theirs) <= known, row
            for flag in re.findall(r"(--[a-z][\w-]+)", cells[1]):
                assert flag in ours, row


def test_formulas_become_mathml() -> None:
    pytest.importorskip("docutils")
    sys.path.insert(0, str(DOCS / "_ext"))
    try:
        mathml = importlib.import_module("mathml").mathml
    finally:
        sys.path.remove(str(DOCS / "_ext"))
    assert mathml(r"\tfrac{1}{2}|w|^2", block=False).startswith("<math")
    aligned = mathml(r"a &= b \\ c &= d", block=True)
    assert 'display="block"' in aligned and aligned.count("<mtr>") == 2


@pytest.mark.slow
def test_site_builds(tmp_path: Path) -> None:
    """Without a warning, the gallery included; nothing on a page is fetched from elsewhere."""
    for module in ("sphinx", "myst_parser", "numpydoc", "sphinx_gallery", "pydata_sphinx_theme"):
        pytest.importorskip(module)
    out = tmp_path / "site"
    options = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(tmp_path / "doctrees")]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(DOCS), str(out)],
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        encoding="utf-8",
        timeout=3600,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    pages = list(out.rglob("*.html"))
    assert len(pages) > 80
    loaded = re.compile(r"<(?:script|link|img)[^>]*(?:src|href)=\"https?://")
    assert not [p.name for p in pages if loaded.search(p.read_text(encoding="utf-8"))]
    assert "<math" in (out / "method.html").read_text(encoding="utf-8")


# -- facts --------------------------------------------------------------------


def test_dependency_table_names_the_dependencies() -> None:
    """The page on installation says why each runtime dependency is there, and lists no other."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {re.split(r"[<>=!~ \[;]", name)[0] for name in project["dependencies"]}
    page = (DOCS / "install.md").read_text(encoding="utf-8")
    table = page.partition("## What it depends on")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)) == wanted
    extras = set(re.findall(r"pip install '\.\[(\w+)\]'", page))
    assert extras == set(project["optional-dependencies"])


def test_licence_is_the_one_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "BSD-3-Clause"
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert licence.startswith("BSD 3-Clause License")
