"""What can go wrong around a command: files, disks, names, signals. The codes say what did."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest
import scipy.sparse

import cutplane
from cutplane.cli import main

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


def run(*words):
    return main([str(word) for word in words])


def process(*words, **options):
    command = [sys.executable, "-m", "cutplane", *map(str, words)]
    return subprocess.run(command, capture_output=True, **options)


@pytest.fixture(scope="module")
def model(files, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "binary"
    assert run("train", "--quiet", files.binary, path) == 0
    return path


# -- stopped early ------------------------------------------------------------


@pytest.mark.parametrize(("flag", "value"), [("--max-iter", 1), ("--time-limit", 1e-6)])
def test_stopped_early_a_usable_model_and_its_gap(files, tmp_path, capsys, flag, value):
    assert run("train", flag, value, files.binary, tmp_path / "m") == 3
    out, err = capsys.readouterr()
    reason = "max_iter" if flag == "--max-iter" else "time_limit"
    assert re.search(rf"the solver reached {reason} at a gap of \d+ %, above the 0.1 %", err)
    assert "certificate primal" in out
    model = cutplane.load_model(tmp_path / "m")
    assert model.certificate_.relative_gap > 1e-3
    assert np.mean(model.predict(files.X) == files.y["binary"]) > 0.5


@POSIX
def test_ctrl_c_keeps_the_best_model(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 120))
    y = np.sign(X @ rng.normal(size=120) + 8 * rng.normal(size=20_000))
    np.savez(tmp_path / "hard.npz", X=X, y=y)
    state = tmp_path / "state"
    command = [sys.executable, "-m", "cutplane", "train", "--C", "1e5", "--tol", "1e-12"]
    command += ["--checkpoint", state, "--checkpoint-every", "0.1"]
    command += [tmp_path / "hard.npz", tmp_path / "model"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as fit:
        while not state.exists():  # the fit has begun
            assert fit.poll() is None
            time.sleep(0.05)
        time.sleep(0.5)
        fit.send_signal(signal.SIGINT)
        _, err = fit.communicate(timeout=600)  # to its tolerance the fit takes far longer
    assert fit.returncode == 130
    assert "the solver was interrupted at a gap of" in err
    model = cutplane.load_model(tmp_path / "model")
    assert model.results_[0].status is cutplane.Status.INTERRUPTED
    assert cutplane.models.describe(state)["n_iter"] >= 1  # the checkpoint is whole


def test_a_checkpoint_is_told_as_a_model_is(files, tmp_path, capsys):
    words = ["--loss", "logistic", "--checkpoint", tmp_path / "state"]
    assert run("train", "--quiet", *words, files.binary, tmp_path / "m") == 0
    capsys.readouterr()
    told = []
    for name in ("state", "m"):
        assert run("info", tmp_path / name) == 0
        out = capsys.readouterr().out
        told.append(next(line for line in out.splitlines() if line.startswith("parameters")))
        assert "loss=logistic" in told[-1] and "None" not in told[-1]
    assert told[0].replace("C=1.0", "C=1") == told[1]


@POSIX
def test_ctrl_c_while_reading(tmp_path):
    os.mkfifo(tmp_path / "slow.svm")
    command = [sys.executable, "-m", "cutplane", "train", tmp_path / "slow.svm", tmp_path / "m"]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as fit,
        open(tmp_path / "slow.svm", "wb") as pipe,  # waits until the command reads
    ):
        pipe.write(b"1 1:1\n")
        pipe.flush()
        time.sleep(0.3)
        fit.send_signal(signal.SIGINT)
        _, err = fit.communicate(timeout=600)
    assert fit.returncode == 130 and err == "cutplane train: interrupted\n"
    assert not (tmp_path / "m").exists()


# -- what is written ----------------------------------------------------------


@POSIX
def test_a_full_disk_leaves_the_old_files(files, tmp_path):
    """A limit on the size of files simulates the full disk: writing fails in the middle."""
    import resource

    old = {}
    for name in ("model", "out", "text.svm"):
        (tmp_path / name).write_bytes(b"old")
        old[name] = b"old"
    run("train", "--quiet", files.classes, tmp_path / "good")
    old["good"] = (tmp_path / "good").read_bytes()

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))

    big = tmp_path / "big.svm"
    X = scipy.sparse.csr_matrix(np.random.default_rng(0).normal(size=(200, 30)))
    cutplane.dump_svmlight(X, np.arange(200) % 3 + 1.0, big)
    for words in (
        ["train", big, tmp_path / "model"],
        ["predict", "--output", "scores", files.classes, tmp_path / "good", tmp_path / "out"],
        ["convert", big, tmp_path / "text.svm"],
    ):
        done = process(*words, preexec_fn=limit, text=True)
        assert done.returncode == 1, done.stderr
        assert f"cannot write {words[-1]}: File too large" in done.stderr
    left = {name: (tmp_path / name).read_bytes() for name in old}
    assert left == old
    assert sorted(os.listdir(tmp_path)) == sorted([*old, "big.svm"])


def test_where_nothing_can_be_written_no_work_is_done(files, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cutplane.LinearSVC, "fit", lambda *a, **k: pytest.fail("trained first"))
    (tmp_path / "file").touch()
    assert run("train", files.binary, tmp_path / "file" / "model") == 1
    assert "cannot write" in capsys.readouterr().err
    assert run("train", files.binary, tmp_path / "no" / "model") == 1
    assert "No such file or directory" in capsys.readouterr().err
    assert run("train", files.binary, tmp_path) == 1
    assert "is a folder; give the name of a file" in capsys.readouterr().err
    assert run("train", files.binary, files.binary) == 1
    assert "is the input; the output needs another name" in capsys.readouterr().err


def test_a_mistake_in_the_data_leaves_no_output(files, model, tmp_path, capsys):
    (tmp_path / "bad.svm").write_text("1 1:1\n-1 1:x\n")
    (tmp_path / "out").write_text("old")
    for words in (
        ["train", tmp_path / "bad.svm", tmp_path / "out"],
        ["predict", tmp_path / "bad.svm", model, tmp_path / "out"],
        ["convert", tmp_path / "bad.svm", tmp_path / "out"],
    ):
        assert run(*words) == 1
        assert "bad.svm:2:6: value 'x' is not a number" in capsys.readouterr().err
    assert (tmp_path / "out").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["bad.svm", "out"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no examples"),
        ("1 0:1\n", "index 0 in a file with indices from 1; pass --zero-based"),
        ("1 2:1 1:1\n", "indices must increase (or pass --sort)"),
        ("1 9:1\n-1 1:1\n", "beyond --max-features 5"),
        ("1 1:1\n1 2:1\n", "one class only (1);"),
    ],
)
def test_messages_speak_of_flags(tmp_path, capsys, text, message):
    (tmp_path / "d.svm").write_text(text)
    assert run("train", "--max-features", 5, tmp_path / "d.svm", tmp_path / "m") == 1
    assert message in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["d.svm"]


def test_reader_flags(tmp_path):
    (tmp_path / "d.svm").write_text("1 2:1 0:1\n-1 1:1\n")
    assert (
        run("train", "--quiet", "--zero-based", "--sort", tmp_path / "d.svm", tmp_path / "m") == 0
    )
    assert cutplane.load_model(tmp_path / "m").n_features_in_ == 3


def test_an_input_that_fails_is_not_blamed_on_the_output(files, model, tmp_path, capsys):
    missing, out = tmp_path / "none.svm", tmp_path / "out"
    for words in (["predict", missing, model, out], ["convert", missing, out]):
        assert run(*words) == 1
        assert (
            capsys.readouterr().err
            == f"cutplane {words[0]}: {missing}: No such file or directory\n"
        )
    (tmp_path / "nan").write_text("1\nnan\n" * 60)
    assert run("evaluate", files.binary, "--predictions", tmp_path / "nan") == 1
    assert "nan:2:1: 'nan' is not a prediction" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x80\x04\x95pickle", b"\x89CUT\r\n"])
def test_what_is_no_model(files, tmp_path, capsys, content):
    (tmp_path / "m").write_bytes(content)
    assert run("predict", files.binary, tmp_path / "m") == 1
    out, err = capsys.readouterr()
    assert out == "" and str(tmp_path / "m") in err and "Traceback" not in err


def test_a_model_in_the_place_of_the_data(files, model, capsys):
    for command in ("predict", "evaluate"):
        assert run(command, model, files.binary) == 2
        assert f"{model} is a model, and {files.binary} is not: the data come" in (
            capsys.readouterr().err
        )


def test_what_is_no_archive(tmp_path, capsys):
    (tmp_path / "a.npz").write_bytes(b"neither zip nor npy")
    assert run("info", tmp_path / "a.npz") == 1
    err = capsys.readouterr().err
    assert "a.npz is not a NumPy archive: it begins like none" in err and "pickle" not in err


def test_a_figure_of_an_unknown_format_is_refused_before_the_work(files, tmp_path, capsys):
    words = ["path", "--C", "1", "--validation", files.binary, "--plot", tmp_path / "a.doc"]
    assert run(*words, files.binary, tmp_path / "m") == 2
    assert "a.doc: the name must end in .png, .pdf, .svg" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("flags", "rows"), [([], 4), (["--kernel", "rbf"], 4)])
def test_too_few_rows_to_calibrate(tmp_path, capsys, flags, rows):
    (tmp_path / "d.svm").write_text("1 1:1\n-1 1:-1\n" * rows)
    words = ["train", *flags, "--calibrate", "sigmoid", tmp_path / "d.svm", tmp_path / "m"]
    assert run(*words) == 1
    assert "the largest has 4, and needs 5" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["d.svm"]


def test_files_besides_the_model_are_their_own(files, tmp_path, capsys):
    target = tmp_path / "deep" / ".." / "m"
    (tmp_path / "deep").mkdir()
    for flag in ("--checkpoint", "--report"):
        assert run("train", flag, target, files.binary, tmp_path / "m") == 1
        assert f"{flag} {target}: this needs a file of its own" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["deep"]


def test_flags_of_readers_are_not_for_columns_of_words(tmp_path, capsys):
    (tmp_path / "t").write_text("U00:%x[0,0]\n")
    (tmp_path / "d").write_text("a X\nb Y\n")
    words = ["train", "--chain", "--template", tmp_path / "t", "--zero-based"]
    assert run(*words, tmp_path / "d", tmp_path / "m") == 2
    assert "--zero-based is for svmlight text" in capsys.readouterr().err


def test_remedies_are_flags_of_the_command(tmp_path, capsys):
    (tmp_path / "d.svm").write_text("1 1:1\n-1 2:1\n")
    assert run("train", "--n-features", 1, tmp_path / "d.svm", tmp_path / "m") == 1
    assert capsys.readouterr().err.endswith("is beyond --n-features 1; raise it\n")


def test_labels_alone(tmp_path, capsys):
    """Nothing to train on, but enough to measure predictions."""
    (tmp_path / "d.svm").write_text("1\n-1\n")
    (tmp_path / "p").write_text("0.5\n-2\n")
    assert run("train", tmp_path / "d.svm", tmp_path / "m") == 1
    assert "d.svm: no row has a feature" in capsys.readouterr().err
    assert run("evaluate", tmp_path / "d.svm", "--predictions", tmp_path / "p") == 0
    assert "accuracy    100.00 % (2 correct" in capsys.readouterr().out


def test_a_factor_of_no_class(files, tmp_path, capsys):
    assert run("train", "--class-weight", "7:2", files.binary, tmp_path / "m") == 1
    err = capsys.readouterr().err
    assert "has a factor for 7.0, which is no class of y; the classes are -1, 1" in err


# -- features -----------------------------------------------------------------


def test_unseen_features_are_left_out_and_counted(files, model, tmp_path, capsys):
    wide = scipy.sparse.hstack([files.X, np.ones((120, 2))], "csr")
    cutplane.dump_svmlight(wide, files.y["binary"], tmp_path / "wide.svm")
    assert run("predict", files.binary, model) == 0
    plain = capsys.readouterr().out
    assert run("predict", tmp_path / "wide.svm", model) == 0
    out, err = capsys.readouterr()
    assert out == plain
    assert "wide.svm: 240 values of features beyond the model's 6 are left out" in err
    np.savez(tmp_path / "wide.npz", X=wide.toarray(), y=files.y["binary"])
    assert run("predict", tmp_path / "wide.npz", model) == 0
    out, err = capsys.readouterr()
    assert out == plain and "240 values" in err
    assert run("evaluate", "--json", tmp_path / "wide.svm", model) == 0
    assert '"values_left_out": 240' in capsys.readouterr().out


def test_one_value_is_told_as_one(model, tmp_path, capsys):
    (tmp_path / "d.svm").write_text("1 1:1 9:1\n")
    assert run("predict", tmp_path / "d.svm", model) == 0
    assert "d.svm: 1 value of features beyond the model's 6 is left out" in capsys.readouterr().err


def test_missing_features_are_zero(files, model, tmp_path, capsys):
    narrow = files.X[:, :3]
    cutplane.dump_svmlight(narrow, files.y["binary"], tmp_path / "narrow.svm")
    np.savez(tmp_path / "narrow.npz", X=narrow.toarray(), y=files.y["binary"])
    padded = scipy.sparse.hstack([narrow, np.zeros((120, 3))], "csr")
    wanted = cutplane.load_model(model).decision_function(padded)
    for name in ("narrow.svm", "narrow.npz"):
        assert run("predict", tmp_path / name, model) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert np.array(out.split(), dtype=float) == pytest.approx(wanted, rel=1e-7)


# -- names and pipes ----------------------------------------------------------


@pytest.mark.parametrize("name", ["with blanks in it", "ünïcødé-模型", "x" * 220, "-starts"])
def test_names(files, tmp_path, capsys, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = f"{name}.svm"
    cutplane.dump_svmlight(files.X, files.y["binary"], tmp_path / data)
    before = ["--"] if name.startswith("-") else []
    assert run("train", "--quiet", *before, data, name) == 0
    assert run("predict", *before, data, name, f"{name}.txt") == 0
    assert len(np.loadtxt(tmp_path / f"{name}.txt")) == 120
    assert sorted(os.listdir(tmp_path)) == sorted([data, name, f"{name}.txt"])


def test_pipes(files, tmp_path, monkeypatch):
    text = files.binary.read_bytes()
    trained = process("train", "-", "-", input=text)
    assert trained.returncode == 0
    assert trained.stderr.splitlines()[-1].startswith(b"certificate primal")  # not among the model
    (tmp_path / "m").write_bytes(trained.stdout)
    scored = process("predict", "-", tmp_path / "m", input=text)
    assert scored.returncode == 0 and scored.stderr == b""
    expected = cutplane.LinearSVC().fit(files.X, files.y["binary"]).decision_function(files.X)
    assert np.array(scored.stdout.split(), dtype=float) == pytest.approx(expected, rel=1e-7)
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(trained.stdout)))
    assert run("predict", files.binary, "-", tmp_path / "out") == 0
    assert (tmp_path / "out").read_bytes() == scored.stdout
    assert run("predict", "-", "-") == 2


def test_a_model_does_not_spoil_the_terminal(files, capsys, monkeypatch):
    monkeypatch.setattr(cutplane.LinearSVC, "fit", lambda *a, **k: pytest.fail("trained first"))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run("train", files.binary, "-") == 1
    assert run("convert", files.binary, "-", "--to", "npz") == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("would spoil the terminal") == 2
