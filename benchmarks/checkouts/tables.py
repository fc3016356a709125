"""The table of section ``fits``."""

from __future__ import annotations

from ..tables import Content, Tables, markdown, seconds_text


def _fits(cases: list[Content]) -> str:
    rows = [
        [
            case["what"],
            *(seconds_text(case[when]["seconds"]) for when in ("before", "after")),
            f"{case['quotient']:.2f}",
        ]
        for case in cases
        if "before" in case
    ]
    means = [[case["suite"], f"{case['mean']:.2f}"] for case in cases if "mean" in case]
    return "\n\n".join(
        [
            markdown(["suite", "geometric mean of now / before"], means),
            markdown(["fit", "before, s", "now, s", "now / before"], rows),
        ]
    )


TABLES: Tables = {"fits": ("Fits of every kind, now and before", _fits)}
