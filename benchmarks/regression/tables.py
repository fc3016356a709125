"""The tables of the regression benchmark; ``tables`` writes them."""

from __future__ import annotations

from ..tables import Content, Tables, seconds_text, titled

NAMES = {
    "epsilon_insensitive": "ε-insensitive",
    "squared_epsilon_insensitive": "squared ε-insensitive",
    "quantile": "quantile",
    "huber": "Huber",
}
NOTE = (
    "Seconds to within 1e-3 of the best known objective ½|w|² + ½b² + C Σ loss, C = 1, features "
    "and targets of variance 1; ours to a certified gap of 1e-3, median, two threads. "
    "QuantileRegressor and QuantReg have no regulariser: they minimise the sum of the losses "
    "alone, the limit C → ∞, and that sum is what counts for them. scikit-learn's HuberRegressor "
    "is not among the peers: it fits the noise's scale, too. '>': not reached by a run of this "
    "time, with the distance of its best answer; memory: it took more than 60 % of the machine's. "
    "MB: memory above the data."
)


def _megabytes(value: int | None) -> str:
    return "–" if value is None else f"{value / 1e6:.0f}"


def _peer(peer: Content, best: float) -> str:
    text = f"{peer['solver']} {'' if peer['reached'] else '> '}{seconds_text(peer['seconds'])}"
    if not peer["reached"]:
        closest = min((r["judged"] / best - 1.0 for r in peer["runs"]), default=None)
        ended = "no answer" if closest is None else f"{closest:+.0e}"
        text += f" ({ended}{', memory' if peer['ended'] == 'memory' else ''})"
    return f"{text}, {peer['ratio']:.1f}×, {_megabytes(peer['extra_bytes'])} MB"


def _speed(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        first = case["runs"][0]
        best = case["best_known"]
        rows.append(
            {
                "loss": f"{NAMES[case['loss']]} {case['parameter']:g}",
                "objective (above the best known)": (
                    f"{first['objective']:.6g} ({first['objective'] / best - 1.0:.0e})"
                ),
                "certified gap": f"{first['relative_gap']:.0e}",
                "ours, s": seconds_text(case["seconds"]["median"]),
                "to 1e-6, s": seconds_text(case["runs"][-1]["seconds"]),
                "with a free bias, s": seconds_text(case["free_bias"]["seconds"]),
                "MB": _megabytes(case["extra_bytes"]),
                "peers: s, times ours, MB": (
                    "; ".join(_peer(peer, best) for peer in case["peers"]) or "–"
                ),
            }
        )
    return titled(rows) + "\n\n" + NOTE


TABLES: Tables = {
    "cpu_act": ("Regression on cpu_act, 8,192 × 21", _speed),
    "california": ("Regression on California housing, 20,640 × 8", _speed),
    "million": ("Regression on generated rows, 1,000,000 × 50", _speed),
}
