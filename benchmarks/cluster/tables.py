"""Tables of the cluster benchmark."""

from __future__ import annotations

from ..tables import Content, Tables, markdown, seconds_text, titled


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f}"


def _speed(cases: list[Content]) -> str:
    rows = [
        {
            "problem": case["what"],
            "rows": case["rows"],
            "iterations": case["n_iter"],
            "2 threads, s": seconds_text(case["threads"]["median"]),
            "2 workers, s": seconds_text(case["cluster"]["median"]),
            "ratio": f"**{case['ratio']:.2f}**",
            "of it loading, s": seconds_text(case["load_seconds"]),
            "rounds per iteration": f"{case['rounds_per_iteration']:.1f}",
            "ms per round: worker": _ms(case["work_seconds_per_round"]),
            "network and Dask": _ms(case["network_seconds_per_round"]),
            "client": _ms(case["client_seconds_per_round"]),
            "kB sent per round and worker": f"{case['sent_bytes_per_round'] / 1000:.1f}",
            "kB received": f"{case['received_bytes_per_round'] / 1000:.1f}",
        }
        for case in cases
    ]
    return titled(rows)


def _faults(cases: list[Content]) -> str:
    rows = [
        {
            "fault": case["what"],
            "what happens": case["description"],
            "runs that ended": case["runs"],
            "with the same bits": case["same"],
            "shares lost": case["losses"],
            "s, median": seconds_text(case["seconds"]["median"]),
            "s, longest": seconds_text(max(case["seconds"]["runs"])),
            "of it recovery, median": seconds_text(case["recovery_seconds"]["median"]),
            "s until the error, longest": (
                seconds_text(max(case["error_seconds"]["runs"])) if case["errors"] else "–"
            ),
        }
        for case in cases
    ]
    return titled(rows)


def _delay(cases: list[Content]) -> str:
    rows = [
        {
            "workers, delay one way": case["what"],
            "iterations": case["n_iter"],
            "rounds per iteration": f"{case['rounds_per_iteration']:.1f}",
            "ms per round": _ms(case["round_seconds"]),
            "predicted": _ms(case["predicted_round_seconds"]),
            "of it work": _ms(case["work_seconds_per_round"]),
            "ms per iteration": _ms(case["iteration_seconds"]),
            "loading, s": seconds_text(case["load_seconds"]),
        }
        for case in cases
    ]
    return titled(rows)


def _model(cases: list[Content]) -> str:
    texts = []
    for case in cases:
        if "constants" in case:
            names = list(case["constants"])
            values = [f"{case['constants'][name]:.3g}" for name in names]
            texts.append(markdown(["constant", *names], [["measured", *values]]))
    rows = []
    for case in cases:
        if "predicted" not in case:
            continue
        parts, found = case["predicted"], case.get("measured")
        rows.append(
            [
                case["what"]
                + (" (constants are from it)" if case.get("used_for_constants") else ""),
                f"{case['rounds_per_iteration']:.1f}",
                f"{case['arrays']:.1f}",
                "–" if found is None else seconds_text(found["seconds"]),
                seconds_text(parts["seconds"]),
                *(seconds_text(parts[name]) for name in ("rounds", "network", "work", "client")),
                f"{parts['down_bytes'] / 1e6:.4g}",
                f"{parts['up_bytes'] / 1e6:.4g}",
                "–"
                if found is None
                else f"{found['sent_bytes'] / 1e6:.3g}, {found['received_bytes'] / 1e6:.3g}",
            ]
        )
    columns = [
        "an iteration of",
        "rounds",
        "arrays per answer",
        "measured, s",
        "predicted, s",
        "of it rounds",
        "network",
        "work",
        "client",
        "MB down",
        "MB up",
        "measured MB down, up",
    ]
    return "\n\n".join([*texts, markdown(columns, rows)])


def _rounds(cases: list[Content]) -> str:
    names = ("empty", "0.7 MB", "8 MB")
    rows = [
        [
            case["protocol"],
            case["workers"],
            *(f"{_ms(case[name]['seconds'])} ({_ms(case['actors'][name])})" for name in names),
            f"{case['8 MB']['sent_bytes'] / 1e6:.1f}",
            f"{case['8 MB']['received_bytes'] / 1e6:.1f}",
        ]
        for case in cases
    ]
    columns = ["protocol", "workers", "ms of a round (of actors): empty", "0.7 MB there and back"]
    table = markdown([*columns, "8 MB", "MB that the client sends", "gets"], rows)
    near = [
        [
            case["protocol"],
            case["workers"],
            f"{one['bytes'] / 1e6:.1f}",
            _ms(one["between_workers"]),
            _ms(one["through_client"]),
        ]
        for case in cases
        for one in case.get("near the limit", [])
    ]
    columns = ["protocol", "workers", "MB", "ms from worker to worker", "through the client"]
    return f"{table}\n\n{markdown(columns, near)}"


def _wide(cases: list[Content]) -> str:
    rows = [
        {
            "workers": case["workers"],
            "features": case["features"],
            "MB that the client sends per iteration": (
                f"{case['iteration']['sent_bytes'] / 1e6:.1f}"
            ),
            "gets": f"{case['iteration']['received_bytes'] / 1e6:.1f}",
            "in vectors of the length of w": f"{case['vectors_through_client']:.2f}",
            "rounds": f"{case['iteration']['rounds']:.1f}",
            "s per iteration": seconds_text(case["iteration"]["seconds"]),
            "one thread here": seconds_text(case["iteration_here"]["seconds"]),
        }
        for case in cases
    ]
    return titled(rows)


TABLES: Tables = {
    "speed": ("Two workers against two threads", _speed),
    "faults": ("Faults in the middle of a fit", _faults),
    "delay": ("A network with a delay", _delay),
    "model": ("The cost model", _model),
    "rounds": ("What a round costs", _rounds),
    "wide": ("Many features", _wide),
}
