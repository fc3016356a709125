"""Tables of the files benchmark."""

from __future__ import annotations

from ..tables import Content, Tables, markdown, seconds_text, titled


def _gb(value: float | None) -> str:
    return "–" if value is None else f"{value / 1e9:.2f}"


def _out_of_core(cases: list[Content]) -> str:
    rows = []
    for case in cases:
        disk = sum(case["disk_seconds"]) / len(case["disk_seconds"])
        largest = case["largest_bytes"]
        paper = case["paper_seconds"]
        rows.append(
            {
                "rows × columns": f"{case['rows']} × {case['features']}",
                "GB": _gb(case["bytes"]),
                "iterations": case["n_iter"],
                "passes": case["passes"],
                "s (paper, 15 million rows)": (
                    seconds_text(case["seconds"]) + (f" ({paper[0]}–{paper[1]})" if paper else "")
                ),
                "CPU s": seconds_text(case["cpu_seconds"]),
                "s per pass": seconds_text(case["pass_seconds"]),
                "s to read the files": seconds_text(disk),
                "GB from disk": _gb(case["from_disk_bytes"]),
                "peak RSS, GB": _gb(case["peak_bytes"]),
                "of it anonymous": _gb(largest["RssAnon"]),
                "page cache after, GB": _gb(case["cached_bytes"]),
            }
        )
    return titled(rows)


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
                {
                    "file": case["what"],
                    "reader": entry["name"],
                    "MB read": f"{entry['megabytes']:.0f}",
                    "MB per CPU second": f"{entry['mb_per_cpu_second']:.1f}",
                    "MB per second": f"{entry['mb_per_second']:.1f}",
                    "our one thread is faster by (CPU)": f"{1.0 / ratio:.1f}",
                }
            )
    return titled(rows)


TABLES: Tables = {
    "reader": ("Reading svmlight text", _reader),
    "out-of-core": ("6.3 GB of data in 2 GB of memory", _out_of_core),
    "start": ("Processor seconds of commands on a9a, from a warm cache", _start),
    "splice": ("As many splice sites as the disk takes", _out_of_core),
}
