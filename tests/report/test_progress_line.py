from __future__ import annotations

import math

import numpy as np
import pytest

from cutplane.reporting.line import (
    FARTHEST_APART,
    SAMPLES,
    Line,
    format_percent,
    format_seconds,
    round_up,
    seconds_left,
)


def gap_records(record, gaps, times):
    return [
        record(k + 1, 1.0, 1.0 - g, t) for k, (g, t) in enumerate(zip(gaps, times, strict=True))
    ]


# -- what the line says -------------------------------------------------------


def test_line_names_all_quantities(record):
    line = Line("class 3", None)
    line.add(record(42, 123.456, 122.345, 3.2))
    line.finished = True
    assert " ".join(line.text().split()) == (
        "class 3 iteration 42 primal 123.456 dual 122.345 gap 0.9 % 42 cuts 3.2 s"
    )


def test_message_reads_like_a_sentence(record):
    line = Line("class 3", 1e-3)
    line.add(record(42, 123.456, 122.345, 3.2))
    line.finished = True
    assert line.message() == (
        "class 3: iteration 42, primal 123.456, dual 122.345, gap 0.9 %, 42 cuts, 3.2 s"
    )
    unnamed = Line("", None)
    unnamed.add(record(1, 1.0, 0.0, 3.2))
    unnamed.finished = True
    assert unnamed.message().startswith("iteration 1, ")


@pytest.mark.parametrize("width", range(8, 130, 3))
def test_line_drops_columns_rather_than_wrapping(record, width):
    line = Line("class 3", 1e-3)
    for k in range(1, 60):
        line.add(record(k, 2.0, 2.0 - math.exp(-0.1 * k), 0.1 * k))
    text = line.text(width)
    assert "class 3" in text
    if width >= 25:  # label and gap alone
        assert len(text) <= width
        assert "gap" in text


def test_gap_outlives_the_other_columns(record):
    line = Line("class 3", None)
    line.add(record(42, 123.456, 122.345, 3.2))
    assert list(line.fitting(25)) == ["label", "gap"]


def test_line_before_the_first_iteration_shows_that_time_passes():
    assert Line("class 3", 1e-3).text() == "class 3  0.00 s"


def test_columns_do_not_move_when_the_estimate_appears(record):
    line = Line("x", 1e-3)
    for k in range(1, 6):
        line.add(record(k, 2.0, 2.0 - math.exp(-0.1 * k), 0.5 * k))
    before = line.fitting(90)
    for k in range(6, 60):
        line.add(record(k, 2.0, 2.0 - math.exp(-0.1 * k), 0.5 * k))
    after = line.fitting(90)
    assert not before["left"].strip() and "left" in after["left"]
    assert list(before) == list(after)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.034, "0.03 s"),
        (3.21, "3.2 s"),
        (5.0, "5.0 s"),
        (5, "5 s"),
        (42.4, "42 s"),
        (119.4, "119 s"),
        (125, "2 min 05 s"),
        (180, "3 min"),
        (3600 + 240, "1 h 04 min"),
    ],
)
def test_format_seconds(seconds, text):
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(1.0, "100 %"), (0.474, "47 %"), (0.00123, "0.12 %"), (1e-9, "1e-07 %"), (0.0, "0 %")],
)
def test_format_percent(fraction, text):
    assert format_percent(fraction) == text


@pytest.mark.parametrize(
    ("seconds", "rounded"), [(0.2, 1), (9.3, 10), (11, 15), (31, 40), (130, 180), (3601, 3660)]
)
def test_round_up(seconds, rounded):
    assert round_up(seconds) == rounded


# -- the remaining time -------------------------------------------------------


@pytest.mark.parametrize("shape", ["exponential", "power"])
def test_remaining_time_of_known_curves(record, shape):
    times = np.linspace(5.0, 10.0, 30)
    gaps, target, truth = (
        (np.exp(-times), math.exp(-13.0), 3.0)
        if shape == "exponential"
        else (times**-2.0, 13.0**-2.0, 3.0)
    )
    left = seconds_left(gap_records(record, gaps, times), target)
    # One of the two trends is exact and the estimate is the mean of both.
    assert left is not None
    assert truth / math.sqrt(FARTHEST_APART) <= left <= truth * math.sqrt(FARTHEST_APART)


def test_a_few_bad_samples_change_little(record):
    times = np.linspace(5.0, 10.0, 30)
    gaps = np.exp(-times)
    clean = seconds_left(gap_records(record, gaps, times), math.exp(-13.0))
    gaps[[3, 14, 29]] *= [20.0, 50.0, 100.0]
    spoilt = seconds_left(gap_records(record, gaps, times), math.exp(-13.0))
    assert spoilt == pytest.approx(clean, rel=0.3)


@pytest.mark.parametrize(
    "gaps",
    [
        np.full(30, 0.5),
        np.linspace(0.1, 0.2, 30),
        np.r_[np.full(29, 0.5), np.nan],
        np.r_[np.full(29, 0.5), 0.0],
        np.exp(-np.linspace(0, 1, 5)),  # too few
        1.0 - 1e-4 * np.arange(30),  # would take ages
    ],
    ids=["flat", "growing", "nan", "zero", "few", "ages"],
)
def test_no_estimate_without_a_trend(record, gaps):
    times = np.linspace(5.0, 10.0, len(gaps))
    assert seconds_left(gap_records(record, gaps, times), 1e-6) is None


def test_no_estimate_when_the_clock_stands_still(record):
    gaps = np.exp(-np.linspace(0, 1, 30))
    assert seconds_left(gap_records(record, gaps, np.full(30, 2.0)), 1e-3) is None
    assert seconds_left(gap_records(record, gaps, np.arange(30.0)), 1e-3) is None  # begins at 0


def test_no_estimate_without_target_or_in_the_first_second(record):
    for target, scale in ((None, 1.0), (1e-3, 1e-3)):
        line = Line("x", target)
        for k in range(1, 60):
            line.add(record(k, 2.0, 2.0 - math.exp(-0.1 * k), scale * k))
        assert line.remaining() is None


def test_long_runs_are_sampled_over_their_whole_length(record):
    line = Line("x", 1e-3)
    for k in range(1, 50_001):
        line.add(record(k, 2.0, 1.0, 0.001 * k))
    numbers = [sample.number for sample in line._samples]
    assert SAMPLES // 2 <= len(numbers) <= SAMPLES
    assert len(set(np.diff(numbers))) == 1
    assert numbers[0] <= 2048 and numbers[-1] >= 50_000 - 2048
