from __future__ import annotations

import time

from cutplane.reporting.text import print_table, waiting

HEAD = ["", "here", "there"]
ROWS = [["objective", "1.5", "123"], ["[bold]", "2", "3 %"]]


def test_plain_in_a_pipe(capsys):
    print_table(HEAD, ROWS)
    assert capsys.readouterr().out == (
        "\n           here  there\nobjective   1.5    123\n[bold]        2    3 %\n\n"
    )


def test_rich_in_a_terminal(terminal):
    terminal.attach("stdout")
    print_table(HEAD, ROWS)
    lines = terminal.screen()
    assert "\x1b[1m" in terminal.getvalue()
    assert [line.split() for line in lines if "─" not in line] == [
        ["here", "there"],
        ["objective", "1.5", "123"],
        ["[bold]", "2", "3", "%"],
    ]


def test_waiting_is_silent_in_a_pipe(capfd):
    with waiting("compiling"):
        pass
    assert capfd.readouterr() == ("", "")


def test_waiting_shows_and_wipes_off(terminal):
    terminal.attach()
    with waiting("compiling"):
        time.sleep(0.2)
        assert "compiling" in terminal.screen()[0]
    assert terminal.screen() == []
    assert not terminal.cursor_hidden
