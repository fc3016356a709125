"""The demo, run for real; what it claims is computed again from its data and read from its page."""

from __future__ import annotations

import contextlib
import html.parser
import io
import os
import re
import subprocess
import sys
import types
import warnings
from dataclasses import replace

import numpy as np
import pytest

import cutplane
from cutplane.cli import demo, main
from cutplane.result import Status

SEED = 3


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")  # scikit-learn's warning must not get through
        code = main(["demo", "--output", str(folder), "--seed", str(SEED)])
    return types.SimpleNamespace(code=code, out=out.getvalue(), err=err.getvalue(), folder=folder)


def row(out, name, part=0):
    """The cells of a row of a table, by the name of the row and the number of the table."""
    lines = [line for line in out.splitlines() if re.match(rf"{re.escape(name)}  ", line)]
    return re.split(r"\s{2,}", lines[part])[1:]


def number(text):
    return float(text.split()[0].replace(",", ""))


def test_ends_well_and_quietly(done):
    assert done.code == 0
    assert done.err == ""
    assert "\x1b" not in done.out
    assert done.out.isascii()  # prints on any console
    assert max(map(len, done.out.splitlines()[:-4])) <= 110  # the last ones hold a path


def test_an_interrupt_ends_it_and_writes_nothing(tmp_path, monkeypatch, capsys):
    """A fit that Ctrl-C ends keeps its model. The demo must not continue with this model."""
    plain = cutplane.LinearSVC.fit

    def interrupted(self, X, y=None):
        plain(self, X, y)
        self.results_ = [replace(result, status=Status.INTERRUPTED) for result in self.results_]
        return self

    monkeypatch.setattr(cutplane.LinearSVC, "fit", interrupted)
    assert main(["demo", "--output", str(tmp_path)]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_one_page_that_needs_nothing_else(done):
    assert os.listdir(done.folder) == ["demo.html"]
    assert str(done.folder / "demo.html") in done.out
    assert (done.folder / "demo.html").resolve().as_uri() in done.out
    page = (done.folder / "demo.html").read_text(encoding="utf-8")
    assert not re.search(r'(?:src|href)="(?!#)', page.replace("xlink:href", "href"))
    assert "<script" not in page and page.count("<svg") == 2
    text = []
    parser = html.parser.HTMLParser()
    parser.handle_data = text.append
    parser.feed(page)
    shown = " ".join(" ".join(text).split())
    for name in ("gap to cutplane's bound", "F1", "ROC area"):
        assert all(cell in shown for cell in row(done.out, name))


def test_bound_is_below_a_much_better_solution_and_judges_both(done):
    """The optimum lies between bound and objective; scikit-learn's answer is far above it."""
    from cutplane import LinearSVC

    data = demo.units_rows(SEED)
    best = LinearSVC(C=1.0, intercept_scaling=1.0, tol=1e-8, solver="ocas").fit(
        data.train, data.train_labels
    )
    w, b = best.coef_[0], best.intercept_[0]
    hinges = np.maximum(0.0, 1.0 - data.train_labels * (data.train @ w + b))
    optimum = 0.5 * w @ w + 0.5 * b * b + hinges.sum()
    ours, theirs = map(number, row(done.out, "objective"))
    bound = number(row(done.out, "lower bound")[0])
    assert bound <= optimum * (1 + 1e-5) and optimum <= ours * (1 + 1e-5)
    assert ours - bound <= 1.01e-3 * ours
    assert theirs > 1.05 * optimum
    told = [number(cell) / 100.0 for cell in row(done.out, "gap to cutplane's bound")]
    assert told == pytest.approx([1 - bound / ours, 1 - bound / theirs], rel=0.1, abs=1e-5)
    assert "Liblinear failed to converge" in done.out


def test_measures_are_those_of_the_rows_held_out(done):
    """The measures are computed here by their definitions, from models that are fitted again."""
    from cutplane import LinearSVC, MeasureSVC

    data = demo.rare_rows(SEED)
    positive = data.test_labels > 0

    def f1(guess):
        return 2 * np.sum(guess & positive) / (guess.sum() + positive.sum())

    def area(scores):
        return np.mean(scores[positive][:, None] > scores[~positive])

    models = {"hinge loss": LinearSVC(), "F1": MeasureSVC("f1")}
    models["ROC area"] = MeasureSVC("roc_auc", C=0.01)
    found = {}
    for name, model in models.items():
        scores = model.fit(data.train, data.train_labels).decision_function(data.test)
        found[name] = f1(scores > 0), area(scores)
        told = row(done.out, name)
        assert number(told[0]) == pytest.approx(100 * found[name][0], abs=0.06)
        assert number(told[1]) == pytest.approx(found[name][1], abs=6e-4)
    assert found["F1"][0] > found["hinge loss"][0] + 0.05
    assert found["ROC area"][1] > found["hinge loss"][1] + 0.05


def test_on_disk_as_in_memory(done):
    memory, disk = map(number, row(done.out, "objective", 1))
    assert disk == pytest.approx(memory, rel=1e-3)
    assert (
        "Both agree on 100.0 % of the rows held out." in done.out or "Both agree on 99" in done.out
    )


def test_compiling_is_told_apart():
    assert demo.compiling_told(0, 0.0) == "Nothing had to be compiled."
    assert demo.compiling_told(33, 12.3).startswith("Compiling 33 loops took 12 s, this time only")


def test_no_folder_no_work(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(demo, "units_rows", lambda seed: pytest.fail("trained before looking"))
    (tmp_path / "file").touch()
    assert main(["demo", "--output", str(tmp_path / "file")]) == 1
    assert "is a file; the output goes into a folder" in capsys.readouterr().err
    assert main(["demo", "--output", str(tmp_path / "file" / "x")]) == 1
    assert "cannot write to" in capsys.readouterr().err


@pytest.fixture
def small(monkeypatch):
    """A demo of few rows."""
    monkeypatch.setattr(demo, "ROWS", 200)
    monkeypatch.setattr(demo, "RARE_ROWS", 600)


def test_disk_full_leaves_the_old_page(small, monkeypatch, capsys, tmp_path):
    (tmp_path / "demo.html").write_bytes(b"old")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(demo.Demo, "render", full)
    assert main(["demo", "--output", str(tmp_path)]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert (tmp_path / "demo.html").read_bytes() == b"old"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a pseudo-terminal")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_in_a_terminal(tmp_path):
    import pty

    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "110"}
    script = (
        "import sys; from cutplane.cli import demo, main; demo.ROWS = 200; demo.RARE_ROWS = 600; "
        f"sys.exit(main(['demo', '--output', {str(tmp_path)!r}]))"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=slave, stderr=slave, env=environment) as process:
        os.close(slave)
        shown = b""
        with contextlib.suppress(OSError):  # Linux's way to say that the other end is closed
            while chunk := os.read(master, 4096):
                shown += chunk
    os.close(master)
    assert process.returncode == 0
    text = re.sub(r"\x1b\[[?\d;]*[a-zA-Z]", "", shown.decode())
    assert "fitting cutplane; the first time this compiles" in text
    assert "cutplane: compiling for first use" not in text  # the demo has its own words for it
    assert "────" in text  # rich's table
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l")  # the cursor is back
