from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import threading
import time
import types
from itertools import pairwise

import pytest

from cutplane.reporting.line import Line
from cutplane.reporting.progress import _TERMINAL, LONGEST_PAUSE, showing


def progress(verbose, label="", *, target=None, note=None):
    return showing(verbose, Line(label, target, note))


def show(observer, record, count=5, pause=0.0):
    for k in range(1, count + 1):
        observer(record(k, 10.0 + 1.0 / k, 10.0 - 1.0 / k, 0.1 * k))
        time.sleep(pause)


@pytest.fixture(autouse=True)
def streams_are_given_back():
    threads = threading.active_count()
    yield
    assert not any("rich" in type(stream).__module__ for stream in (sys.stdout, sys.stderr))
    assert _TERMINAL._live is None and _TERMINAL._lines == ()
    deadline = time.monotonic() + 30.0  # rich's thread ends by itself, soon
    while threading.active_count() > threads and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= threads


# -- nobody watches -----------------------------------------------------------


def test_verbose_0_shows_nothing_anywhere(record, terminal, caplog):
    terminal.attach()
    caplog.set_level(logging.DEBUG)
    with progress(0, "x") as observer:
        for k in range(1, 100):
            observer(record(k, 2.0, 1.0, float(k)))
    assert terminal.getvalue() == "" and not caplog.records


def test_no_terminal_no_output(record, capfd):
    with progress(1, "x") as observer:
        for k in range(1, 100):
            observer(record(k, 2.0, 1.0, float(k)))
    assert capfd.readouterr() == ("", "")


def test_no_terminal_logs_at_growing_intervals(record, caplog):
    caplog.set_level(logging.INFO, logger="cutplane")
    with progress(1, "class 3", target=1e-3) as observer:
        for k in range(1, 20_001):
            observer(record(k, 2.0, 1.0, 0.1 * k))
    assert {(r.name, r.levelno) for r in caplog.records} == {("cutplane", logging.INFO)}
    messages = [r.getMessage() for r in caplog.records]
    assert messages[0] == "class 3: iteration 20, primal 2, dual 1, gap 50 %, 20 cuts, 2.0 s"
    seconds = [0.1 * int(m.split("iteration ")[1].split(",")[0]) for m in messages]
    pauses = [b - a for a, b in pairwise(seconds)]
    assert seconds[:5] == pytest.approx([2.0, 4.0, 8.0, 16.0, 32.0])
    assert max(pauses) <= LONGEST_PAUSE + 0.2
    assert pauses == sorted(pauses) or pauses[-1] == pytest.approx(LONGEST_PAUSE)


def test_short_fits_log_nothing(record, caplog):
    caplog.set_level(logging.INFO, logger="cutplane")
    with progress(1, "x") as observer:
        for k in range(1, 100):
            observer(record(k, 2.0, 1.0, 0.01 * k))
    assert not caplog.records


def test_dumb_terminals_worker_processes_and_missing_streams_count_as_none(
    record, terminal, monkeypatch
):
    terminal.attach()
    with monkeypatch.context() as patch:
        patch.setenv("TERM", "dumb")
        with progress(1, "x") as observer:
            show(observer, record)
    with monkeypatch.context() as patch:
        import multiprocessing

        patch.setattr(multiprocessing.process.current_process(), "_name", "LokyProcess-1")
        with progress(1, "x") as observer:
            show(observer, record)
    assert terminal.getvalue() == ""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", None)
        with progress(1, "x") as observer:
            show(observer, record)


def test_nothing_heavy_is_loaded_without_a_terminal():
    code = (
        "import sys\n"
        "from cutplane.reporting.line import Line\n"
        "from cutplane.reporting.progress import showing\n"
        "with showing(1, Line('x', None)): pass\n"
        "assert not {'rich', 'matplotlib', 'IPython', 'sklearn'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.PIPE)


# -- a terminal ---------------------------------------------------------------


def test_last_state_is_left_standing(record, terminal):
    terminal.attach()
    with progress(1, "class 3", target=1e-3) as observer:
        show(observer, record, pause=0.05)
        assert terminal.cursor_hidden
    assert [" ".join(line.split()) for line in terminal.screen()] == [
        "class 3 iteration 5 primal 10.2 dual 9.8 gap 3.9 % 5 cuts 0.50 s"
    ]
    assert not terminal.cursor_hidden


def test_drawing_is_limited_whatever_the_solver_does(record, terminal):
    terminal.attach()
    begin = time.monotonic()
    with progress(1, "x") as observer:
        while time.monotonic() < begin + 0.6:
            observer(record(1, 2.0, 1.0, 0.1))
    assert 2 <= terminal.frames() <= 8 * (time.monotonic() - begin) + 5


def test_clock_runs_on_between_iterations(record, terminal):
    terminal.attach()
    with progress(1, "x") as observer:
        observer(record(1, 2.0, 1.0, 7.0))
        time.sleep(0.4)
        assert re.search(r"7\.[1-9] s|8\.\d s", terminal.getvalue())
    assert terminal.screen()[0].endswith(" 7.0 s")


def test_a_fit_without_iterations_leaves_nothing(terminal):
    terminal.attach()
    with progress(1, "class 3"):
        pass
    assert terminal.screen() == []
    assert not terminal.cursor_hidden


def test_consecutive_fits_leave_a_line_each(record, terminal):
    terminal.attach()
    for k in range(4):
        with progress(1, f"class {k}") as observer:
            show(observer, record)
    assert [line[:7] for line in terminal.screen()] == [f"class {k}" for k in range(4)]


def test_nested_fits_share_the_terminal(record, terminal):
    terminal.attach()
    with progress(1, "outer") as outer:
        for k in range(3):
            with progress(1, f"class {k}") as inner:
                show(inner, record, pause=0.05)
            outer(record(k + 1, 2.0, 1.0, 1.0))
    screen = terminal.screen()
    assert [line.split("  ")[0] for line in screen] == ["class 0", "class 1", "class 2", "outer"]
    assert not terminal.cursor_hidden


def test_fits_in_threads_share_the_terminal(record, terminal):
    terminal.attach()

    def fit(k):
        with progress(1, f"class {k}") as observer:
            show(observer, record, count=10 + 5 * k, pause=0.01)

    threads = [threading.Thread(target=fit, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    screen = terminal.screen()
    assert sorted(line.split("  ")[0] for line in screen) == [f"class {k}" for k in range(4)]
    for line in screen:  # each in its own last state
        k = int(line.split()[1])
        assert f"iteration   {10 + 5 * k}" in line


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_errors_give_the_terminal_back(record, terminal, error):
    terminal.attach()
    with pytest.raises(error), progress(1, "class 3") as observer:
        show(observer, record)
        raise error
    assert not terminal.cursor_hidden
    assert [line.split("  ")[0] for line in terminal.screen()] == ["class 3"]


def test_error_in_a_nested_fit(record, terminal):
    terminal.attach()
    with pytest.raises(ValueError), progress(1, "outer"), progress(1, "inner") as observer:
        show(observer, record)
        raise ValueError
    assert not terminal.cursor_hidden
    assert [line.split("  ")[0] for line in terminal.screen()] == ["inner"]


def test_other_output_appears_above_the_line(record, terminal):
    terminal.attach()
    with progress(1, "class 3") as observer:
        show(observer, record)
        print("a warning", file=sys.stderr)
        time.sleep(0.2)
    assert [line.split("  ")[0] for line in terminal.screen()] == ["a warning", "class 3"]


def test_stdout_to_a_file_stays_there(record, terminal, capsys):
    terminal.attach()
    with progress(1, "class 3") as observer:
        show(observer, record)
        print("data")
    assert capsys.readouterr().out == "data\n"
    assert "data" not in terminal.getvalue()


def test_narrow_terminal_keeps_to_one_line(record, terminal, monkeypatch):
    terminal.attach()
    monkeypatch.setenv("COLUMNS", "40")
    with progress(1, "a label that is much too long for this terminal") as observer:
        show(observer, record, pause=0.1)
    (line,) = terminal.screen()
    assert len(line) <= 40


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a pseudo-terminal")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_real_pseudo_terminal():
    import pty

    code = (
        "from cutplane.reporting.line import Line\n"
        "from cutplane.reporting.progress import showing\n"
        "from cutplane.result import Iteration\n"
        "with showing(1, Line('class 3', None)) as observer:\n"
        "    observer(Iteration(7, 2.0, 1.0, 2.0, 1.0, 7, 0.5))\n"
        "print('after')\n"
    )
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen([sys.executable, "-c", code], stderr=slave, env=environment) as process:
        os.close(slave)
        shown = b""
        try:
            while chunk := os.read(master, 4096):
                shown += chunk
        except OSError:  # Linux's way to say that the other end is closed
            pass
    os.close(master)
    assert process.returncode == 0
    assert b"class 3" in shown and b"iteration    7" in shown
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l")


# -- a notebook ---------------------------------------------------------------


class _Handle:
    def __init__(self, content):
        self.shown = [content]

    def update(self, content, raw):
        assert raw
        self.shown.append(content)


@pytest.fixture
def notebook(monkeypatch):
    """IPython, as far as it is used; gives the handles of all displays."""
    handles = []

    class ZMQInteractiveShell:
        pass

    def display(content, raw, display_id):
        assert raw and display_id
        handles.append(_Handle(content))
        return handles[-1]

    ipython = types.ModuleType("IPython")
    ipython.get_ipython = ZMQInteractiveShell
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    return handles


def test_notebook_updates_one_display(record, notebook, capfd):
    with progress(1, "class 3", target=1e-3) as observer:
        for k in range(1, 2001):
            observer(record(k, 2.0, 1.0, 0.001 * k))
    (handle,) = notebook
    assert 2 <= len(handle.shown) < 100
    last = handle.shown[-1]["text/plain"]
    assert last.startswith("class 3  iteration 2000") and last.endswith("2.0 s")
    assert capfd.readouterr() == ("", "")


def test_notebook_shows_the_last_state_after_an_error(record, notebook):
    with pytest.raises(KeyboardInterrupt), progress(1, "class 3") as observer:
        show(observer, record)
        raise KeyboardInterrupt
    assert "iteration    5" in notebook[0].shown[-1]["text/plain"]


def test_ipython_in_a_terminal_is_no_notebook(record, notebook, terminal, monkeypatch):
    terminal.attach()

    class TerminalInteractiveShell:
        pass

    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", TerminalInteractiveShell)
    with progress(1, "class 3") as observer:
        show(observer, record)
    assert not notebook and terminal.screen()
