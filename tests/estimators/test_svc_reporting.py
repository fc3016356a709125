"""Output: the library logs, and prints nothing by itself."""

from __future__ import annotations

import importlib
import logging

import numpy as np
import pytest
from svc_reference import quiet_fit, results, run_script

from cutplane import LinearSVC


def test_output_where_nobody_watches():
    """Nothing is printed; records appear where logging is configured."""
    script = """
        import logging, sys
        import numpy as np
        from cutplane import LinearSVC
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(100, 3)), rng.integers(0, 3, 100)
        for verbose in (0, 1):
            LinearSVC(verbose=verbose).fit(X, y).predict(X)
        print("now with logging", flush=True)
        logging.basicConfig(level=logging.INFO, stream=sys.stdout)
        LinearSVC(verbose=1).fit(X, y)
    """
    done = run_script(script)
    assert done.stderr == ""
    first, *lines = done.stdout.splitlines()
    assert first == "now with logging"
    assert all(line.startswith("INFO:cutplane:") for line in lines)
    for k in range(3):
        assert any(f"class {k}" in line for line in lines)


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_nothing_is_printed(iris, capfd, verbose):
    LinearSVC(verbose=verbose).fit(*iris).predict(iris[0])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("verbose", [0, 1])
def test_one_record_at_the_end_of_each_problem(iris, caplog, verbose):
    with caplog.at_level(logging.INFO, logger="cutplane"):
        model = LinearSVC(verbose=verbose).fit(*iris)
    records = [r for r in caplog.records if r.levelno >= logging.INFO]
    assert {r.name.split(".")[0] for r in records} == {"cutplane"}
    ends = [r.getMessage() for r in records if "converged" in r.getMessage()]
    assert len(ends) == 3
    for k, (message, result) in enumerate(zip(ends, results(model), strict=True)):
        assert f"class {k}" in message
        assert f"{result.n_iter} iterations" in message
        assert f"{result.certificate.primal:.8g}" in message
        assert f"{result.certificate.dual:.8g}" in message


def test_the_record_tells_how_it_ended(cancer, caplog):
    with caplog.at_level(logging.INFO, logger="cutplane"):
        quiet_fit(LinearSVC(max_iter=2), *cancer)
    assert "max_iter" in caplog.records[-1].getMessage()


def test_debug_records_for_every_iteration(cancer, caplog):
    with caplog.at_level(logging.DEBUG, logger="cutplane"):
        model = LinearSVC().fit(*cancer)
    numbers = [r for r in caplog.records if r.levelno == logging.DEBUG]
    assert len(numbers) == model.n_iter_


def test_records_during_a_long_fit(cancer, caplog, monkeypatch):
    """verbose=1 tells of progress before the end, verbose=0 does not."""
    progress = importlib.import_module("cutplane.reporting.progress")
    monkeypatch.setattr(progress, "FIRST_RECORD", 0.0)

    def messages(verbose: int) -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="cutplane"):
            LinearSVC(verbose=verbose, tol=1e-9).fit(*cancer)
        return [record.getMessage() for record in caplog.records]

    assert len(messages(0)) == 1
    assert len(messages(1)) >= 2


def test_verbose_does_not_change_the_answer(iris):
    loud, silent = LinearSVC(verbose=1).fit(*iris), LinearSVC().fit(*iris)
    np.testing.assert_array_equal(loud.coef_, silent.coef_)


def test_class_names_with_percent_signs_do_not_break_the_log(cancer, caplog):
    X, y = cancer
    with caplog.at_level(logging.INFO, logger="cutplane"):
        LinearSVC(verbose=1).fit(X, np.array(["50 %s", "[red]100 %d"])[y])
    assert "[red]100 %d" in caplog.text
