from __future__ import annotations

import dataclasses
import io
import subprocess
import sys
import types
import warnings

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
from matplotlib.figure import Figure

from cutplane.reporting.plots import convergence_figure, plot_convergence
from cutplane.result import Certificate


@pytest.fixture(autouse=True)
def close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def axes_for_test():
    return Figure().subplots()


def draw(figure):
    """Draw a figure. matplotlib's warnings about glyphs, limits or layout are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.savefig(io.BytesIO(), format="png")


def names(ax):
    """What the legend names."""
    return [text.get_text() for text in ax.get_legend().get_texts()]


# -- one run ------------------------------------------------------------------


def test_upper_panel_holds_objective_and_bound(run):
    result = run(90)
    ax = plot_convergence(result)
    objective, bound = ax.lines
    np.testing.assert_array_equal(objective.get_xdata(), np.arange(1, 91))
    np.testing.assert_array_equal(objective.get_ydata(), result.column("primal"))
    np.testing.assert_array_equal(bound.get_ydata(), result.column("dual"))
    assert names(ax) == ["objective (from 1e+04)", "lower bound"]
    draw(ax.figure)


def test_lower_panel_holds_the_relative_gap_on_a_log_axis(run):
    result = run(90)
    ax = plot_convergence(result).figure.axes[1]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), result.column("relative_gap"))
    assert ax.get_yscale() == "log"
    low, high = ax.get_ylim()
    assert low < result.column("relative_gap").min() and high > result.column("relative_gap").max()


def test_curves_end_with_the_certificate(run):
    """The certificate is proved after the last iteration, and differs from it a little."""
    result = dataclasses.replace(run(90), certificate=Certificate(101.0, 99.0))
    ax = plot_convergence(result)
    assert [line.get_ydata()[-1] for line in ax.lines] == [101.0, 99.0]
    assert ax.figure.axes[1].lines[0].get_ydata()[-1] == result.certificate.relative_gap
    assert ax.get_title(loc="left") == "Gap of 2 % after 90 iterations"
    withheld = dataclasses.replace(result, certificate=Certificate(101.0, -np.inf, "withheld"))
    bound = plot_convergence(withheld).lines[1]
    np.testing.assert_array_equal(bound.get_ydata(), result.column("dual"))


def test_seconds(result):
    seconds = [0.5, 0.75, 2.0]
    ax = plot_convergence(result([3, 2, 1.5], [0, 1, 1.4], seconds), x="seconds")
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), seconds)
    assert ax.figure.axes[1].get_xlabel() == "seconds"
    assert ax.get_title(loc="left") == "Gap of 6.7 % after 2 seconds"


def test_zoom_shows_where_the_curves_meet(run):
    result = run(90, optimum=100.0, start=1e6)
    ax = plot_convergence(result)
    low, high = ax.get_ylim()
    assert low < 100.0 < high < 1000.0  # not squeezed by the start at a million
    later = result.column("primal")[45:]
    assert np.all(later < high)
    assert np.all(result.column("dual")[45:] > low)


def test_gap_is_shaded_between_the_curves(run):
    result = run(30)
    (shade,) = plot_convergence(result).collections
    box = shade.get_paths()[0].get_extents()
    assert box.y0 == pytest.approx(result.column("dual").min())
    assert box.y1 == pytest.approx(result.column("primal").max())


@pytest.mark.parametrize("count", [1, 2, 3, 15, 16])
@pytest.mark.parametrize("x", ["iteration", "seconds"])
def test_short_runs(run, count, x):
    ax = plot_convergence(run(count, start=200.0), x=x)
    left, right = ax.get_xlim()
    low, high = ax.get_ylim()
    assert left < right and low < high
    xs, ys = ax.lines[0].get_data()
    assert left < xs[0] and xs[-1] < right
    assert low < ys[-1] < high
    draw(ax.figure)


def test_one_iteration_shows_two_marks_joined(run):
    ax = plot_convergence(run(1))
    assert all(line.get_marker() == "o" for line in ax.lines)
    assert len(ax.collections) == 2  # shade (empty) and the vertical line
    assert ax.get_title(loc="left") == "Gap of 100 % after 1 iteration"


@pytest.mark.parametrize(
    ("primals", "duals"),
    [
        ([5.0, 2.0, 2.0], [0.0, 1.0, 2.0]),
        ([2.0, 2.0], [2.0, 2.0]),
        ([2.0], [2.0]),
        ([0.0], [0.0]),
        ([1e-300, 1e-300], [0.0, 0.0]),
        ([1e300, 1e299], [0.0, 1e299]),
    ],
)
def test_gap_of_zero_and_extreme_numbers(result, primals, duals):
    ax = plot_convergence(result(primals, duals))
    draw(ax.figure)
    if primals[-1] == duals[-1]:
        assert ax.get_title(loc="left").startswith("Gap of 0 % after")


# -- what can be given --------------------------------------------------------


def estimator(result, classes=()):
    return types.SimpleNamespace(
        results_=result if isinstance(result, list) else [result], classes_=np.array(classes)
    )


def test_estimators(run):
    assert len(plot_convergence(estimator(run(9))).lines) == 2
    several = plot_convergence(estimator([run(9), run(12), run(15)], ["ant", "bee", "cat"]))
    assert names(several) == ["ant", "bee", "cat"]


def test_lists_and_dicts(run):
    assert names(plot_convergence([run(9), run(12)])) == ["1", "2"]
    named = plot_convergence({"OCAS": run(9), "CPA": estimator(run(12))})
    assert names(named) == ["OCAS", "CPA"]
    nested = plot_convergence({"A": [run(9), run(12)], "B": run(15)})
    assert names(nested) == ["A 1", "A 2", "B"]
    relabelled = plot_convergence([run(9), run(12)], labels=["p", "q"])
    assert names(relabelled) == ["p", "q"]


def test_a_real_estimator():
    from cutplane import LinearSVC

    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = np.array(["ant", "bee", "cat"])[np.argmax(X, axis=1)]
    model = LinearSVC().fit(X, y)
    ax = plot_convergence(model)
    for result, line in zip(model.results_, ax.lines[::2], strict=True):
        # The certificate has the best bias, which the last iteration may not.
        drawn = line.get_ydata() * result.certificate.primal
        np.testing.assert_allclose(drawn, result.column("primal"), rtol=1e-3)
    assert sorted(names(ax)) == ["ant", "bee", "cat"]


@pytest.mark.parametrize("nothing", [[], {}, ()])
def test_nothing_to_plot(nothing):
    with pytest.raises(ValueError, match="no result to plot"):
        plot_convergence(nothing)


def test_errors_tell_what_is_wrong(run, result):
    with pytest.raises(ValueError, match="x must be 'iteration' or 'seconds', got 'time'"):
        plot_convergence(run(3), x="time")
    with pytest.raises(TypeError, match=r"takes a fitted estimator.*got int"):
        plot_convergence(3)
    with pytest.raises(TypeError, match="got str"):
        plot_convergence([run(3), "x"])
    with pytest.raises(ValueError, match="one name for each of 1 run"):
        plot_convergence(run(3), labels=["a", "b"])
    with pytest.raises(ValueError, match="the result holds no iterations"):
        plot_convergence(result([], []))
    from cutplane import LinearSVC

    with pytest.raises(ValueError, match="this LinearSVC is not fitted yet"):
        plot_convergence(LinearSVC())


# -- several runs -------------------------------------------------------------


def ten(run):
    return [run(30 + 7 * k % 20, optimum=10.0**k, start=10.0 ** (k + 2)) for k in range(10)]


def test_several_objectives_meet_at_one(run):
    results = ten(run)
    ax = plot_convergence(results)
    assert len(ax.lines) == 20
    for result, objective, bound in zip(results, ax.lines[::2], ax.lines[1::2], strict=True):
        final = result.certificate.primal
        np.testing.assert_allclose(objective.get_ydata(), result.column("primal") / final)
        np.testing.assert_allclose(bound.get_ydata(), result.column("dual") / final)
        np.testing.assert_array_equal(objective.get_color(), bound.get_color())
    low, high = ax.get_ylim()
    assert low < 1.0 < high
    assert ax.get_title(loc="left").endswith("after 30 to 46 iterations")
    draw(ax.figure)


def test_the_legend_stands_beside_the_panels(run):
    labels = [f"a rather long name {k}" for k in range(10)]
    figure = convergence_figure(ten(run), labels=labels)
    draw(figure)
    upper, lower = figure.axes
    assert names(upper) == labels
    assert lower.get_legend() is None
    box = upper.get_legend().get_window_extent()
    assert box.x0 >= upper.get_window_extent().x1 and box.x1 <= figure.bbox.x1 + 1


def test_of_many_runs_the_slowest_are_named(run):
    results = [run(10 + k) for k in range(40)]
    ax = plot_convergence(results)
    assert names(ax) == ["36", "37", "38", "39", "40"]


# -- figures ------------------------------------------------------------------


def test_given_axes_are_used_alone(run):
    ax = axes_for_test()
    assert plot_convergence(run(20), ax=ax) is ax
    assert ax.figure.axes == [ax]
    assert ax.get_xlabel() == "iteration" and ax.get_ylabel() == "objective"
    assert ax.get_title(loc="left") == ""
    several = plot_convergence(ten(run), ax=axes_for_test())
    assert names(several) == [str(k) for k in range(1, 11)]
    draw(several.figure)
    long = plot_convergence([run(20), run(30)], ax=axes_for_test(), labels=["a" * 50, "b" * 50])
    assert long.get_legend() is not None
    draw(long.figure)


def test_return_type_is_the_same_in_both_cases(run):
    own = plot_convergence(run(20))
    assert isinstance(own, matplotlib.axes.Axes)
    assert own is own.figure.axes[0] and len(own.figure.axes) == 2


def test_convergence_figure_leaves_pyplot_alone():
    code = (
        "import sys, io, numpy\n"
        "from cutplane.reporting.plots import convergence_figure\n"
        "from cutplane.result import Certificate, Iteration, SolveResult, Status\n"
        "assert 'matplotlib' not in sys.modules\n"
        "trace = (Iteration(1, 2.0, 1.0, 2.0, 1.0, 1, 0.1),)\n"
        "result = SolveResult(\n"
        "    numpy.zeros(1), 0.0, Status.CONVERGED, Certificate(2.0, 1.0), 1, trace, {})\n"
        "convergence_figure(result).savefig(io.BytesIO(), format='png')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
