"""The demo, run for real; its claims are recomputed from the files it leaves."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import types
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from cutplane.cli import demo, main
from cutplane.result import Status

C = 0.5
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
        code = main(["demo", "--output", str(folder), "--C", str(C), "--seed", str(SEED)])
    return types.SimpleNamespace(code=code, out=out.getvalue(), err=err.getvalue(), folder=folder)


@pytest.fixture(scope="module")
def digits():
    """The held-out split, made again from its description."""
    data = load_digits()
    eight = data.target == 8
    return train_test_split(
        data.data,
        eight,
        test_size=0.3,
        stratify=np.where(eight, "eight", "another"),
        random_state=SEED,
    )


def row(out, name):
    line = next(line for line in out.splitlines() if line.startswith(name))
    return re.split(r"\s{2,}", line)[1:]


def test_ends_well_and_quietly(done):
    assert done.code == 0
    assert done.err == ""
    assert "\x1b" not in done.out
    assert done.out.isascii()  # prints on any console
    assert max(map(len, done.out.splitlines())) <= 110


def test_writes_its_files_and_nothing_else(done):
    assert sorted(os.listdir(done.folder)) == ["certificate.json", "convergence.png", "model.npz"]
    assert str(done.folder) in done.out
    assert (done.folder / "convergence.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_certificate_holds_for_the_model_in_the_file(done, digits):
    X, _, eight, _ = digits
    certificate = json.loads((done.folder / "certificate.json").read_text())
    with np.load(done.folder / "model.npz", allow_pickle=False) as model:
        w, b = model["coef"][0], model["intercept"][0]
        assert model["classes"].tolist() == ["another", "eight"]
        assert model["n_features"] == 64 and model["coef"].shape == (1, 64)
    margins = np.where(eight, 1.0, -1.0) * (X / 16 @ w + b)
    objective = 0.5 * w @ w + 0.5 * b**2 + C * np.maximum(0.0, 1.0 - margins).sum()
    assert certificate["primal"] == pytest.approx(objective, rel=1e-9)
    assert certificate["dual"] <= objective
    assert certificate["relative_gap"] <= certificate["tol"]
    assert certificate["status"] == "converged"
    assert certificate["C"] == C and certificate["seed"] == SEED


def test_bound_is_below_a_much_better_solution(done, digits):
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    X, _, eight, _ = digits
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(C=C, loss="hinge", tol=1e-8, max_iter=200_000).fit(X / 16, eight)
    w, b = model.coef_[0], model.intercept_[0]
    margins = np.where(eight, 1.0, -1.0) * (X / 16 @ w + b)
    best = 0.5 * w @ w + 0.5 * b**2 + C * np.maximum(0.0, 1.0 - margins).sum()
    certificate = json.loads((done.folder / "certificate.json").read_text())
    assert certificate["dual"] <= best * (1 + 1e-9)
    assert best <= certificate["primal"] <= best * (1 + 1.01e-3)


def test_prints_what_the_files_say(done, digits):
    certificate = json.loads((done.folder / "certificate.json").read_text())
    ours, theirs = map(float, row(done.out, "objective (primal)"))
    assert ours == pytest.approx(certificate["primal"], rel=1e-5)
    assert theirs >= certificate["dual"]
    assert float(row(done.out, "lower bound")[0]) == pytest.approx(certificate["dual"], rel=1e-5)
    gap = float(row(done.out, "gap to")[0])
    assert gap == pytest.approx(certificate["gap"], rel=0.01)
    assert int(row(done.out, "iterations")[0]) == certificate["n_iter"]
    assert re.search(r"Compiling [\d.]+ s, .* not part of the times", done.out)
    _, X, _, eight = digits
    # The recipe that the demo prints, run as it stands.
    recipe = done.out[done.out.index("  import numpy") :]
    names = {"pixels": X}
    exec("\n".join(line.strip() for line in recipe.splitlines()), names)
    accuracy = np.mean((names["labels"] == "eight") == eight)
    assert row(done.out, "accuracy")[0] == f"{100 * accuracy:.1f} %"


def stop_early(C, verbose):
    from cutplane import LinearSVC

    return LinearSVC(C=C, intercept_scaling=1.0, max_iter=3, verbose=verbose)


def test_above_tolerance_is_said_and_coded(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(demo, "_our_model", stop_early)
    assert main(["demo", "--output", str(tmp_path)]) == 3
    out, err = capsys.readouterr()
    assert re.fullmatch(
        r"cutplane demo: the solver reached max_iter at a gap of \d+ %, above the 0.1 % asked "
        r"for; the files hold its best model\n",
        err,
    )
    assert json.loads((tmp_path / "certificate.json").read_text())["status"] == "max_iter"
    assert "iterations" in out


def test_interrupted_fit_keeps_its_model_and_is_coded(monkeypatch, capsys, tmp_path):
    from cutplane import LinearSVC

    def interrupt(record):
        if record.number == 5:
            raise KeyboardInterrupt

    def model(C, verbose):
        callback = interrupt if verbose else None
        return LinearSVC(C=C, intercept_scaling=1.0, callback=callback, verbose=verbose)

    monkeypatch.setattr(demo, "_our_model", model)
    assert main(["demo", "--output", str(tmp_path)]) == 130
    assert "was interrupted at a gap of" in capsys.readouterr().err
    certificate = json.loads((tmp_path / "certificate.json").read_text())
    assert certificate["status"] == Status.INTERRUPTED.value


def test_no_folder_no_work(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(demo, "_load", lambda seed: pytest.fail("trained before looking"))
    (tmp_path / "file").touch()
    assert main(["demo", "--output", str(tmp_path / "file")]) == 1
    assert "is a file; the output goes into a folder" in capsys.readouterr().err
    assert main(["demo", "--output", str(tmp_path / "file" / "x")]) == 1
    assert "cannot write to" in capsys.readouterr().err


def test_disk_full_leaves_the_old_files(monkeypatch, capsys, tmp_path):
    (tmp_path / "model.npz").write_bytes(b"old")

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    assert main(["demo", "--output", str(tmp_path)]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["model.npz"]
    assert (tmp_path / "model.npz").read_bytes() == b"old"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a pseudo-terminal")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_in_a_terminal(tmp_path):
    import pty

    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "110"}
    command = [sys.executable, "-m", "cutplane", "demo", "--output", str(tmp_path)]
    with subprocess.Popen(command, stdout=slave, stderr=slave, env=environment) as process:
        os.close(slave)
        shown = b""
        with contextlib.suppress(OSError):  # Linux's way to say that the other end is closed
            while chunk := os.read(master, 4096):
                shown += chunk
    os.close(master)
    assert process.returncode == 0
    text = re.sub(r"\x1b\[[?\d;]*[a-zA-Z]", "", shown.decode())
    assert re.search(r"class eight  iteration +\d+  primal", text)  # progress
    assert "────" in text  # rich's table
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l")  # the cursor is back


def test_one_gap_is_stated(tmp_path, capsys):
    """Also where it is large, and its share of the objective not that of the bound."""
    assert main(["demo", "--C", "100", "--output", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    ours, theirs = row(out, "relative gap")
    assert f"is at most {ours} below its own, and at most {theirs} below scikit-learn's" in out
    objective, bound = float(row(out, "objective")[1]), float(row(out, "lower bound")[0])
    share = 100 * (1 - bound / objective)
    assert share > 5 and float(theirs.split()[0]) == pytest.approx(share, rel=0.05)
