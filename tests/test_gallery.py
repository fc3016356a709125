"""The examples of the gallery run, draw, and say what they are about.

A few of the quick ones run in every test run, all of them with ``-m slow``.
"""

from __future__ import annotations

import ast
import runpy
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import sklearn

from cutplane.losses import LOSSES

ROOT = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(ROOT.glob("*/plot_*.py"))
QUICK = {"plot_convergence", "plot_path", "plot_export"}
SECONDS = 30.0  # that an example may take once its loops are compiled
NEEDS = {"plot_cluster": "distributed"}


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def test_there_are_at_least_twenty() -> None:
    assert len(EXAMPLES) >= 20
    assert {script.stem for script in EXAMPLES} >= QUICK
    assert len({script.stem for script in EXAMPLES}) == len(EXAMPLES)  # names of pictures, too


@pytest.mark.parametrize("folder", [ROOT, *sorted({script.parent for script in EXAMPLES})])
def test_section_has_a_header(folder: Path) -> None:
    """Without it sphinx-gallery leaves the folder out."""
    title, underline, empty, *text = (folder / "GALLERY_HEADER.rst").read_text().splitlines()
    assert underline == ("=" if folder == ROOT else "-") * len(title)
    assert not empty
    assert text


@pytest.mark.parametrize("script", EXAMPLES, ids=_name)
def test_example_has_title_sections_and_a_figure(script: Path) -> None:
    source = script.read_text(encoding="utf-8")
    title, underline, empty, *text = (ast.get_docstring(ast.parse(source)) or "").splitlines()
    assert underline == "=" * len(title)
    assert not empty
    assert text
    assert source.count("\n# %%\n# ") >= 2  # blocks that begin with words
    assert "plt.show()" in source
    assert "title" in source or "plot_convergence(" in source  # which has a title of its own


@pytest.fixture
def clean_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """An empty folder, no window, and nothing of an example is left behind."""
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("Agg")
    plt.close("all")
    known = dict(LOSSES)
    with sklearn.config_context(), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings(
            "ignore", message=".*non-interactive"
        )  # plt.show() without a window
        yield
    plt.close("all")
    LOSSES.clear()
    LOSSES.update(known)


def _run(script: Path) -> float:
    """Seconds that it took."""
    plt.close("all")
    begin = time.perf_counter()
    runpy.run_path(str(script), run_name="__main__")
    return time.perf_counter() - begin


@pytest.mark.usefixtures("clean_up")
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, marks=() if script.stem in QUICK else pytest.mark.slow)
        for script in EXAMPLES
    ],
    ids=_name,
)
def test_example_runs(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a warning; if the first run had to compile, the second one has the limit."""
    if script.stem in NEEDS:
        pytest.importorskip(NEEDS[script.stem])
    seconds = _run(script)
    assert capsys.readouterr().out.strip()
    assert plt.get_fignums()
    for number in plt.get_fignums():
        width, _ = plt.figure(number).get_size_inches()
        assert width <= 7.0  # legible where a page shows it at 640 pixels
    if seconds > SECONDS and script.stem not in QUICK:
        assert _run(script) < SECONDS
