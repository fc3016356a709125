"""Bounds on weights from the command line: in the model, from a file, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from cutplane import LinearSVC, load_model
from cutplane.cli import main


@pytest.mark.parametrize(
    ("flags", "bounds"),
    [
        (["--positive"], (0.0, np.inf)),
        (["--bounds", "0:inf"], (0.0, np.inf)),
        (["--bounds=-0.1:0.2"], (-0.1, 0.2)),
    ],
)
def test_train_with_bounds(files, tmp_path, flags, bounds):
    assert main(["train", str(files.binary), str(tmp_path / "m"), "--quiet", *flags]) == 0
    model = load_model(tmp_path / "m")
    same = LinearSVC(bounds=bounds).fit(files.X, files.y["binary"])
    np.testing.assert_array_equal(model.coef_, same.coef_)
    assert np.all((model.coef_ >= bounds[0]) & (model.coef_ <= bounds[1]))


@pytest.mark.parametrize("kind", ["--ranking", "--ordinal", "--regression", "--measure=f1"])
def test_every_linear_kind(files, tmp_path, kind):
    data = {"--ranking": files.ranking, "--ordinal": files.grades, "--regression": files.numbers}
    path = str(data.get(kind, files.binary))
    assert main(["train", path, str(tmp_path / "m"), "--quiet", "--positive", kind]) == 0
    assert np.all(load_model(tmp_path / "m").coef_ >= 0.0)


def test_bounds_from_a_file(files, tmp_path, capsys):
    lines = ["0 inf", "-inf 0", "0.1,0.1", "-1 1", "-inf inf", "0 0"]
    (tmp_path / "b").write_text("\n".join(lines) + "\n")
    arguments = [str(files.binary), str(tmp_path / "m"), "--bounds", str(tmp_path / "b")]
    assert main(["train", *arguments]) == 0
    told = capsys.readouterr()
    assert "bounds=([0.0, -inf, 0.1" in told.out + told.err
    coef = load_model(tmp_path / "m").coef_[0]
    assert coef[0] >= 0.0 and coef[1] <= 0.0 and coef[2] == 0.1 and coef[5] == 0.0
    assert main(["info", str(tmp_path / "m")]) == 0
    assert "bounds=[0, -inf, 0.1, -1, -inf, 0], [inf, 0," in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "content", "message"),
    [
        ("1:0", None, "bounds of feature 0 are (1, 0): low must not be above high"),
        ("nan:1", None, "must be LOW:HIGH, such as 0:inf"),
        ("no-such-file", None, "No such file"),
        (None, "0 1\n0 x\n", "line 2: expected two numbers LOW HIGH, inf for no bound; got '0 x'"),
        (None, "0 1\n0\n", "line 2: expected two numbers"),
        (None, "", "is empty: expected a line 'LOW HIGH' per feature"),
        (None, "0 1\n0 1\n", "low has 2 numbers, but X has 6 features"),
    ],
)
def test_bad_bounds(files, tmp_path, capsys, value, content, message):
    if content is not None:
        (tmp_path / "b").write_text(content)
        value = str(tmp_path / "b")
    try:
        code = main(["train", str(files.binary), str(tmp_path / "m"), "--bounds", value])
    except SystemExit as stop:
        code = stop.code
    assert code != 0
    assert message in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


def test_solvers_that_take_none(files, tmp_path, capsys):
    arguments = [str(files.binary), str(tmp_path / "m"), "--positive", "--solver", "dcd"]
    assert main(["train", *arguments]) != 0
    assert "--solver dcd takes no bounds on the coefficients" in capsys.readouterr().err
