"""Where commands write: links, pipes, devices, standard output that is closed, full or ASCII."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

import cutplane
from cutplane.cli import main

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")


def run(*words):
    return main([str(word) for word in words])


def shell(command, tmp_path, **environment):
    """Run a line of bash in a folder; ``cutplane`` is the command."""
    script = f'set -o pipefail; cutplane() {{ "{sys.executable}" -m cutplane "$@"; }}; {command}'
    return subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture(scope="module")
def model(files, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "binary"
    assert run("train", "--quiet", files.binary, path) == 0
    return path


@pytest.fixture(scope="module")
def wanted(files, model):
    return cutplane.load_model(model).decision_function(files.X)


# -- files that are not replaced ------------------------------------------------


def test_a_link_stays_and_the_file_behind_it_is_new(files, model, wanted, tmp_path):
    (tmp_path / "deep").mkdir()
    real = tmp_path / "deep" / "real"
    real.write_text("old")
    real.chmod(0o600)
    (tmp_path / "middle").symlink_to("deep/real")
    (tmp_path / "link").symlink_to("middle")
    assert run("predict", files.binary, model, tmp_path / "link") == 0
    assert os.readlink(tmp_path / "link") == "middle"
    np.testing.assert_allclose(np.loadtxt(real), wanted, rtol=1e-7)
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert os.listdir(tmp_path / "deep") == ["real"]


def test_a_link_to_nothing_gets_its_file(files, tmp_path):
    (tmp_path / "link").symlink_to("new")
    assert run("train", "--quiet", files.binary, tmp_path / "link") == 0
    assert (tmp_path / "link").is_symlink()
    assert cutplane.load_model(tmp_path / "new").n_features_in_ == 6


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_the_mode_of_a_model_is_kept(files, tmp_path, mode):
    path = tmp_path / "m"
    path.write_text("old")
    path.chmod(mode)
    assert run("train", "--quiet", files.binary, path) == 0
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert cutplane.load_model(path).n_features_in_ == 6


def test_a_new_file_has_the_usual_mode(files, tmp_path):
    before = os.umask(0o027)
    try:
        assert run("train", "--quiet", files.binary, tmp_path / "m") == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o640


@pytest.mark.parametrize("product", ["predictions", "model", "data"])
def test_a_pipe_with_a_name(files, model, wanted, tmp_path, product):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = []
    reader = threading.Thread(target=lambda: content.append(pipe.read_bytes()), daemon=True)
    reader.start()
    match product:
        case "predictions":
            assert run("predict", files.binary, model, pipe) == 0
        case "model":
            assert run("train", "--quiet", files.binary, pipe) == 0
        case "data":
            assert run("convert", files.binary, pipe) == 0
    reader.join(timeout=600)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]
    (tmp_path / "content").write_bytes(content[0])
    match product:
        case "predictions":
            np.testing.assert_allclose(np.loadtxt(tmp_path / "content"), wanted, rtol=1e-7)
        case "model":
            assert cutplane.load_model(tmp_path / "content").n_features_in_ == 6
        case "data":
            assert content[0] == files.binary.read_bytes()


def test_a_device_stays_a_device(files, model, tmp_path):
    """In a folder of its own: a mistake here must not cost the machine its /dev/null."""
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.write_bytes(b"")
    except OSError:
        pytest.skip("only root makes devices")
    for words in (["predict", files.binary, model], ["train", "--quiet", files.binary]):
        assert run(*words, device) == 0
        assert stat.S_ISCHR(device.stat().st_mode)


@FULL
def test_a_full_device_is_an_error(files, model, capsys, tmp_path):
    (tmp_path / "full").symlink_to("/dev/full")
    assert run("predict", files.binary, model, tmp_path / "full") == 1
    assert f"cannot write {tmp_path / 'full'}: No space left" in capsys.readouterr().err


def test_open_descriptors(files, model, wanted, tmp_path):
    """A process substitution, /dev/stdout, and a file that is appended to."""
    line = (
        f'cutplane predict "{files.binary}" "{model}" >(cat > one; touch done); '
        f'cutplane predict "{files.binary}" "{model}" /dev/stdout | cat > two; '
        f'echo first > three; cutplane predict "{files.binary}" "{model}" /dev/stdout >> three; '
        "while [ ! -e done ]; do sleep 0.1; done"
    )
    ended = shell(line, tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    for name in ("one", "two"):
        np.testing.assert_allclose(np.loadtxt(tmp_path / name), wanted, rtol=1e-7)
    first, *rest = (tmp_path / "three").read_text().split()
    assert first == "first"
    np.testing.assert_allclose(np.array(rest, dtype=float), wanted, rtol=1e-7)


# -- what is said may get lost, the model may not -------------------------------


@pytest.mark.parametrize(
    ("where", "code", "message"),
    [
        ("| true", 0, ""),
        (">&-", 0, ""),
        pytest.param(
            ">/dev/full", 1, "cutplane: cannot print the report: No space left", marks=FULL
        ),
        pytest.param("2>/dev/full >/dev/null", 0, "", marks=FULL),
        ("<&- >&- 2>&-", 0, ""),
    ],
)
def test_train_without_a_reader(files, tmp_path, where, code, message):
    ended = shell(f'cutplane train "{files.binary}" m {where}', tmp_path)
    assert ended.returncode == code
    assert ended.stderr.startswith(message) and ended.stderr.count("\n") == bool(message)
    assert cutplane.load_model(tmp_path / "m").results_[0].status is cutplane.Status.CONVERGED


def test_other_products_without_a_reader(files, tmp_path):
    path = f'cutplane path --C 0.1,1 --validation "{files.binary}" "{files.binary}" m | true'
    ended = shell(f"cutplane demo >&- && {path}", tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert cutplane.load_model(tmp_path / "m").n_features_in_ == 6
    assert (tmp_path / "cutplane-demo" / "demo.html").exists()


@pytest.mark.parametrize("words", ["predict {data} {model}", "evaluate {data} {model}"])
def test_answers_that_nobody_can_read_are_an_error(files, model, tmp_path, words):
    words = words.format(data=files.binary, model=model)
    ended = shell(f"cutplane {words} >&-", tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.endswith("cannot write to standard output: it is closed\n")


def test_names_beyond_ascii_on_an_ascii_terminal(files, tmp_path):
    ended = shell(f'cutplane train "{files.binary}" mödel', tmp_path, PYTHONIOENCODING="ascii")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "written     m\\xf6del\n" in ended.stdout
    assert cutplane.load_model(tmp_path / "mödel").n_features_in_ == 6


@FULL
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["predict {data} {model}", "train {data} -"])
def test_a_full_standard_output_is_named(files, model, tmp_path, words, unbuffered):
    command = words.format(data=files.binary, model=model)
    ended = shell(f"cutplane {command} > /dev/full", tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert ended.returncode == 1
    assert ended.stderr.endswith("cannot write to standard output: No space left on device\n")
