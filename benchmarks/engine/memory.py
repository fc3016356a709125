"""Peak memory of a fit above the data, against 25 doubles per row and the cuts."""

from __future__ import annotations

from ..measure import child
from ..report import Report, at_most

CASES: tuple[tuple[str, float], ...] = (("covtype", 1.0), ("covtype", 10.0))
DOUBLES_PER_ROW = 25


def run(report: Report) -> None:
    """Run the section."""
    arguments = report.settings.source.arguments()
    for name, C in CASES:
        if report.load(name) is None:
            continue
        label = f"{name} C={C:g}"
        with report.attempt(label):
            answer = child(["memory", name, repr(C), *arguments])
            _case(report, answer, label)


def _case(report: Report, answer: dict, label: str) -> None:
    if answer["extra_bytes"] is None:
        report.skip("the section: this system does not tell the peak memory of a process")
        return
    cuts = 8 * answer["features"] * answer["most_cuts"]
    allowed = 8 * DOUBLES_PER_ROW * answer["rows"] + cuts
    extra = answer["extra_bytes"]
    case = {
        **answer,
        "cuts_bytes": cuts,
        "allowed_bytes": allowed,
        "doubles_per_row": (extra - cuts) / (8 * answer["rows"]),
    }
    report.say(f"{label}: {extra / 1e6:.1f} MB above the data, {allowed / 1e6:.1f} MB allowed")
    claim = f"peak ≤ data + {DOUBLES_PER_ROW} m doubles + the cuts"
    report.add(case, [at_most(claim, extra, allowed)], label)
