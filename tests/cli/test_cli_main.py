from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cutplane
from cutplane.cli import demo, main, make_parser


def cutplane_process(*args, **options):
    return subprocess.run(
        [sys.executable, "-m", "cutplane", *args], capture_output=True, text=True, **options
    )


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"cutplane {cutplane.__version__}\n"


def test_help_teaches_with_examples_that_parse(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("words.template").write_text("U00:%x[0,0]\n")  # read with the flags
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert "exit codes:" in text and "130  interrupted" in text
    for command in ("demo", "train", "path", "predict", "evaluate", "info", "convert"):
        assert main([command, "--help"]) == 0
        text += capsys.readouterr().out
    examples = [
        re.split(r"   | \|", line)[0].split()[1:]
        for line in text.splitlines()
        if line.startswith("  cutplane ")
    ]
    assert len(examples) >= 30
    for example in examples:
        if "--help" not in example:
            make_parser(example).parse_args(example)


def test_no_command_shows_the_help_and_is_wrong_usage(capsys):
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "examples:" in err


@pytest.mark.parametrize(
    "arguments",
    [["train-it"], ["demo", "--seed", "-1"], ["demo", "--seed", "x"], ["demo", "extra"]],
)
def test_wrong_usage(arguments, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and "error:" in err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ValueError("X has NaN"), 1, "cutplane demo: X has NaN\n"),
        (OSError(28, "No space left on device"), 1, "cutplane demo: No space left on device\n"),
        (FileNotFoundError(2, "No such file", "x.txt"), 1, "cutplane demo: x.txt: No such file\n"),
        (MemoryError(), 1, "cutplane demo: out of memory\n"),
        (KeyboardInterrupt(), 130, "cutplane demo: interrupted\n"),
    ],
)
def test_errors_become_messages_and_codes(monkeypatch, capsys, error, code, message):
    def fail(args):
        raise error

    monkeypatch.setattr(demo, "run", fail)
    assert main(["demo"]) == code
    out, err = capsys.readouterr()
    assert out == "" and message in err and "Traceback" not in err


def test_bugs_are_not_hidden(monkeypatch):
    def fail(args):
        raise AttributeError("a bug")

    monkeypatch.setattr(demo, "run", fail)
    with pytest.raises(AttributeError):
        main(["demo"])


def test_verbose_shows_log_records_and_tidies_up(monkeypatch, capsys):
    logger = logging.getLogger("cutplane")
    before = logger.level, list(logger.handlers)

    def log(args):
        logger.info("two iterations done")
        return 0

    monkeypatch.setattr(demo, "run", log)
    assert main(["demo"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["demo", "-v"]) == 0
    assert capsys.readouterr().err == "two iterations done\n"
    assert (logger.level, logger.handlers) == before


def test_verbose_shows_where_an_error_came_from(monkeypatch, capsys):
    def fail(args):
        raise ValueError("X has NaN")

    monkeypatch.setattr(demo, "run", fail)
    assert main(["demo", "-v"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_as_a_process():
    done = cutplane_process("--version")
    assert (done.returncode, done.stdout) == (0, f"cutplane {cutplane.__version__}\n")
    done = cutplane_process("train", "--C", "none", "d", "m")
    assert done.returncode == 2 and "must be a number above 0, got 'none'" in done.stderr


def test_help_loads_nothing_heavy():
    code = (
        "import sys\n"
        "from cutplane.cli import main\n"
        "assert main(['--help']) == 0\n"
        "assert not {'numba', 'sklearn', 'matplotlib', 'rich'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_reader_that_leaves_early_is_no_error_message(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "cutplane", "demo", "--output", str(tmp_path)],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "demo.html").exists()
