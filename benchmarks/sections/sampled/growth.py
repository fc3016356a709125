"""Time, iterations and errors against the number of rows (Figures 1 to 3 of the paper)."""

from __future__ import annotations

from ...report import Report, at_most
from ...sampled_problems import NAMES, record, sample_sizes, split_of, warm_up
from ..measures.growth import slope

CASES = (("checkers", "linear", 400), ("checkers", "constant", 1000))
CASES += (("covtype", "linear", 400), ("covtype", "constant", 1000))
MOST_SLOPE = {"linear": 1.1, "constant": 0.15}
SMALLEST = 10_000


def run(report: Report) -> None:
    """Run the section."""
    from cutplane import SampledCutSVC

    for name, method, wanted in CASES:
        whole = split_of(report, name)
        if whole is None:
            continue
        warm_up(whole)
        size = sample_sizes(report, (wanted,))[0]
        label = f"{NAMES[name]} {method} r={size}"
        points = []
        with report.attempt(label):
            for rows in _sizes(len(whole.y)):
                model = SampledCutSVC(
                    C=whole.C,
                    gamma=whole.gamma,
                    method=method,
                    sample_size=size,
                    random_state=0,
                    time_limit=report.settings.tight_seconds * 5,
                )
                points.append({"rows": rows, **record(whole.first(rows), model)})
                report.say(f"{label}, {rows} rows: {points[-1]['seconds']:.2f} s")
            sizes = tuple(point["rows"] for point in points)
            # The number of iterations is the data's: it does not grow with the rows for ever.
            slopes = {
                "seconds": slope(sizes, [p["cpu_seconds"] for p in points]),
                "seconds_per_iteration": slope(
                    sizes, [p["cpu_seconds"] / p["n_iter"] for p in points]
                ),
                "kernel_values": slope(sizes, [p["n_kernel_values"] for p in points]),
            }
            case = {**whole.facts(), "method": method, "sample_size": size}
            claim = f"slope of the time per iteration ≤ {MOST_SLOPE[method]}"
            check = at_most(claim, slopes["seconds_per_iteration"], MOST_SLOPE[method])
            report.add({**case, "points": points, "slopes": slopes}, [check], label)


def _sizes(rows: int) -> list[int]:
    """All rows, a quarter of them, and so on, from the smallest on."""
    sizes = [rows]
    while sizes[0] // 4 >= min(SMALLEST, rows // 4):
        sizes.insert(0, sizes[0] // 4)
    return sizes
