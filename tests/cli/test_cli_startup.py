"""What the commands import: those that people call often start without the heavy libraries."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import cutplane
from cutplane.cli import main
from cutplane.cli.parameters import defaults_of
from cutplane.models.scorer import read_scorer

HEAVY = (
    "sklearn",
    "pandas",
    "scipy.stats",
    "scipy.optimize",
    "matplotlib",
    "dask",
    "rich",
    "joblib",
)


@pytest.fixture(scope="module")
def saved(files):
    """A model file of every linear kind."""
    X, y = files.X, files.y
    models = {
        "binary": cutplane.LinearSVC().fit(X, y["binary"]),
        "classes": cutplane.LinearSVC().fit(X, y["classes"].astype(int)),
        "text": cutplane.LinearSVC().fit(X, np.where(y["binary"] > 0, "yes", "no")),
        "measure": cutplane.MeasureSVC("f1").fit(X, y["binary"]),
        "numbers": cutplane.LinearSVR().fit(X, y["numbers"]),
        "ranking": cutplane.RankSVM().fit(X, y["ranking"], qid=files.qid),
    }
    for name, model in models.items():
        cutplane.save_model(model, files.folder / f"{name}.model")
    return models


def imported(*words, of=HEAVY):
    """The modules among these that a command loads, in a process of its own."""
    script = (
        "import sys; from cutplane.cli import main; code = main()\n"
        f"print(code, *sorted(set({of!r}) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)], capture_output=True, text=True, check=True
    )
    return done.stderr.splitlines()[-1].split()


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("train", "--help"),
        ("info", "{folder}/binary.svm"),
        ("info", "{folder}/binary.model"),
        ("predict", "{folder}/binary.svm", "{folder}/binary.model"),
        ("predict", "{folder}/ranking.svm", "{folder}/ranking.model"),
        ("evaluate", "{folder}/binary.svm", "{folder}/binary.model"),
        ("evaluate", "{folder}/classes.svm", "{folder}/classes.model"),
        ("evaluate", "{folder}/numbers.svm", "{folder}/numbers.model"),
        ("evaluate", "{folder}/ranking.svm", "{folder}/ranking.model"),
    ],
    ids=lambda words: " ".join(words).replace("{folder}/", ""),
)
def test_nothing_heavy_is_loaded(words, files, saved):
    assert imported(*(word.format(folder=files.folder) for word in words)) == ["0"]


def test_a_model_is_described_without_compiled_loops(saved, files):
    assert imported("info", files.folder / "binary.model", of=("numba", "sklearn")) == ["0"]


def test_scipy_does_not_bring_what_nobody_needs(files):
    assert imported("info", files.binary, of=("scipy.sparse", "numpy.f2py")) == [
        "0",
        "scipy.sparse",
    ]


@pytest.mark.parametrize("name", ["binary", "classes", "text", "measure", "numbers", "ranking"])
def test_scores_without_the_estimator_are_the_estimators(name, files, saved, tmp_path):
    """To the last bit, in Python and in the file that predict writes."""
    model, path = saved[name], files.folder / f"{name}.model"
    scorer = read_scorer(path, defaults_of)
    assert scorer is not None and scorer.n_features_in_ == 6
    expected = getattr(model, "decision_function", model.predict)(files.X)
    assert np.array_equal(scorer.decision_function(files.X), expected)
    assert np.array_equal(scorer.predict(files.X), model.predict(files.X))
    assert (
        main(["predict", "--output", "scores", str(files.binary), str(path), str(tmp_path / "o")])
        == 0
    )
    told = np.loadtxt(tmp_path / "o")
    assert told == pytest.approx(expected, rel=1e-7)


def test_unusual_files_are_left_to_the_loader(files, saved, tmp_path, capsys):
    damaged = bytearray((files.folder / "binary.model").read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "damaged").write_bytes(damaged)
    assert read_scorer(tmp_path / "damaged", defaults_of) is None
    assert main(["predict", str(files.binary), str(tmp_path / "damaged")]) == 1
    assert "damaged" in capsys.readouterr().err
    older = {"LinearSVC": {"C": 1.0}}  # as if this version knew no other parameter
    assert read_scorer(files.folder / "binary.model", older.get) is None
    kernel = cutplane.SVC().fit(files.X, files.y["binary"])
    cutplane.save_model(kernel, tmp_path / "kernel")
    assert read_scorer(tmp_path / "kernel", defaults_of) is None
    indicator = np.stack([files.y["binary"] > 0, files.y["binary"] < 0], axis=1).astype(int)
    cutplane.save_model(cutplane.LinearSVC().fit(files.X, indicator), tmp_path / "labels")
    assert read_scorer(tmp_path / "labels", defaults_of) is None
