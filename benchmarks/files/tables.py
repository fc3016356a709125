"""Tables of the files benchmark."""

from __future__ import annotations

from ..tables import Content, Tables, markdown, seconds_text


def _gb(value: float | None) -> str:
    return "–" if value is None else f"{value / 1e9:.2f}"


def _out_of_core(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        disk = sum(case["disk_seconds"]) / len(case["disk_seconds"])
        largest = case["largest_bytes"]
        paper = case["paper_seconds"]
        rows.append(
            [
                f"{case['rows']} × {case['features']}",
                _gb(case["bytes"]),
                case["n_iter"],
                case["passes"],
                seconds_text(case["seconds"]) + (f" ({paper[0]}–{paper[1]})" if paper else ""),
                seconds_text(case["cpu_seconds"]),
                seconds_text(case["pass_seconds"]),
                seconds_text(disk),
                _gb(case["from_disk_bytes"]),
                _gb(case["peak_bytes"]),
                _gb(largest["RssAnon"]),
                _gb(case["cached_bytes"]),
            ]
        )
    columns = [
        "rows × columns",
        "GB",
        "iterations",
        "passes",
        "s (paper, 15 million rows)",
        "CPU s",
        "s per pass",
        "s to read the files",
        "GB from disk",
        "peak RSS, GB",
        "of it anonymous",
        "page cache after, GB",
    ]
    return markdown(columns, rows)


def _start(cases: list[Content]) -> str:
    return markdown(
        ["command", "CPU s, least", "CPU s, most"],
        [
            [case["what"], *(seconds_text(end(case["cpu_seconds"])) for end in (min, max))]
            for case in cases
        ],
    )


def _reader(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        for entry in case["readers"]:
            ratio = entry["mb_per_cpu_second"] / case["readers"][0]["mb_per_cpu_second"]
            rows.append(
                [
                    case["what"],
                    entry["name"],
                    f"{entry['megabytes']:.0f}",
                    f"{entry['mb_per_cpu_second']:.1f}",
                    f"{entry['mb_per_second']:.1f}",
                    f"{1.0 / ratio:.1f}",
                ]
            )
    columns = [
        "file",
        "reader",
        "MB read",
        "MB per CPU second",
        "MB per second",
        "our one thread is faster by (CPU)",
    ]
    return markdown(columns, rows)


TABLES: Tables = {
    "reader": ("Reading svmlight text", _reader),
    "out-of-core": ("6.3 GB of data in 2 GB of memory", _out_of_core),
    "start": ("Processor seconds of commands on a9a, from a warm cache", _start),
    "splice": ("As many splice sites as the disk takes", _out_of_core),
}
