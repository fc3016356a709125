"""All that people see of a solver: progress, plots, tables and HTML reports."""

from .calibration_plot import plot_calibration
from .fit_report import report
from .path_plot import plot_path
from .plots import convergence_figure, plot_convergence
from .progress import progress
from .text import print_table, waiting

__all__ = [
    "convergence_figure",
    "plot_calibration",
    "plot_convergence",
    "plot_path",
    "print_table",
    "progress",
    "report",
    "waiting",
]
