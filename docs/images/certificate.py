"""Draw certificate.png, the picture of the README and of the first page.

python docs/images/certificate.py
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from cutplane import LinearSVC

BLUE, ORANGE = "#0072B2", "#D55E00"


def main() -> None:
    """Fit, draw, write."""
    X, y = load_breast_cancer(return_X_y=True)
    model = LinearSVC(C=1.0, solver="ocas").fit(StandardScaler().fit_transform(X), y)
    result = model.results_[0]
    iterations, primal, dual = (result.column(name) for name in ("number", "primal", "dual"))
    shown = iterations >= 5
    iterations, primal, dual = iterations[shown], primal[shown], dual[shown]

    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    ax = figure.subplots()
    ax.plot(iterations, primal, color=BLUE, linewidth=2.2)
    ax.plot(iterations, dual, color=ORANGE, linewidth=2.2)
    ax.fill_between(iterations, dual, primal, color="#999999", alpha=0.18, linewidth=0)
    ax.text(7.4, 32.5, "objective of the best model so far", color=BLUE, fontsize=11)
    ax.text(10.4, 13.0, "lower bound: no model gets below it", color=ORANGE, fontsize=11)
    ax.text(5.4, 20.0, "the optimum\nis in between", color="#555555", fontsize=11)
    ax.annotate(
        f"proved: within {100 * model.certificate_.relative_gap:.2f} % of the optimum",
        (iterations[-1], model.certificate_.primal),
        (-4, -46),
        textcoords="offset points",
        ha="right",
        fontsize=11,
        arrowprops={"arrowstyle": "->", "color": "#444444"},
    )
    ax.set_xlabel("iterations")
    ax.set_ylabel("objective")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=150)


if __name__ == "__main__":
    main()
