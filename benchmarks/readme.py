"""What the README and the page on benchmarks show, from the JSON files of the suites.

python -m benchmarks.readme benchmarks/results

What is between the two comments of MARKS in README.md is written anew, and the image
docs/images/benchmarks.png is drawn. With ``--check`` nothing is written; the status is 1 if the
README is not that of the JSON files. The tables are for the documentation, which calls ``tables``
whenever it is built.
"""

from __future__ import annotations

import argparse
import math
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from .engine.figures import MIDDLE, times
from .engine.objective import best_peer, ratio_of
from .figures import save
from .measure import ROOT
from .measures.tables import NAMES
from .tables import Content, load, markdown, seconds_text

MARKS = ("<!-- benchmarks: begin -->", "<!-- benchmarks: end -->")
FIGURE = Path("docs/images/benchmarks.png")
ENGINE = ("covtype", "mnist8", "aclimdb", "a9a", "w8a", "celegans")
WORDS = {
    "covtype": "covtype",
    "mnist8": "MNIST, 8 against the rest",
    "aclimdb": "IMDB reviews, words",
    "a9a": "Adult (a9a)",
    "w8a": "Web (w8a)",
    "celegans": "splice sites, k-mers",
    "ijcnn1": "ijcnn1",
    "usps3": "USPS (3 against the rest)",
    "mq2008": "MQ2008",
}


def engine_cases(folder: Path) -> tuple[list[Content], list[Content]]:
    """Contents of the engine's data sets that are there, and their cases in the same order."""
    files = [folder / "engine" / f"{name}.json" for name in ENGINE]
    contents = [load(file) for file in files if file.is_file()]
    if not contents:
        raise ValueError(f"no data set of the engine has been run into {folder / 'engine'}")
    return contents, [case for content in contents for case in content["cases"]]


def region(folder: Path) -> str:
    """What belongs between the marks of the README: the figure, and what it shows."""
    contents, cases = engine_cases(folder)
    text = (
        f"The figure shows the seconds until the objective is within 0.1 % of the optimum, for the "
        f"hinge loss without a bias, compilation excluded ({_origin(contents)}). {_means(cases)}"
    )
    figure = f"![Seconds to within 0.1 % of the optimum, cutplane and others]({FIGURE.as_posix()})"
    return f"{figure}\n\n{_wrapped(text)}"


def tables(folder: Path) -> str:
    """The tables of the documentation's page, with the sentences about them."""
    contents, cases = engine_cases(folder)
    parts = [
        "The table shows the seconds until the objective is within 1e-3 of the best one that is "
        f"known, for the hinge loss without a bias ({_origin(contents)}; compilation excluded). "
        f"Our times are medians. The other solvers are {_listed(_peers(cases))}; the best run of "
        'the best of them counts. "> s" means that none of them was good enough in the time it was '
        "given. *Certified* is when our run could prove that it was that good.",
        _engine_table(cases),
        _means(cases),
    ]
    parts += _more(folder / "engine")
    speed = folder / "measures" / "speed.json"
    if speed.is_file():
        content = load(speed)
        parts += [
            "The next table is about ROC area and rankings, to a certified relative gap of 1e-3 "
            f"({_origin([content])}). C multiplies the mean over pairs. The best peer is the "
            "better one of dlib and SVM-rank, in CPU seconds on the same kind of machine.",
            _pairs_table(content["cases"]),
        ]
    return "\n\n".join(part if part[0] in "|!" else _wrapped(part) for part in parts)


def draw_figure(cases: Sequence[Content], file: Path) -> None:
    """Draw the figure of both into a file, whose ending is the format."""
    file.parent.mkdir(parents=True, exist_ok=True)
    save(times(cases), file.with_suffix(""), (file.suffix,))


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _origin(contents: Sequence[Content]) -> str:
    """Days, cores and processor."""
    days = sorted({content["date"][:10] for content in contents})
    machine = contents[0]["machine"]
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return f"{when}, {machine['cores']} cores of an {machine['processor']}"


def _peers(cases: Sequence[Content]) -> list[str]:
    return list(dict.fromkeys(p["solver"] for case in cases for p in case["peers"]))


def _listed(words: Sequence[str]) -> str:
    # A name with a comma in it would fall apart in a list.
    words = [w.replace(", 2 threads", " (one thread and two)") for w in words]
    kept = [w for w in words if f"{w} (one thread and two)" not in words]
    return ", ".join(kept[:-1]) + " and " + kept[-1] if len(kept) > 1 else "".join(kept)


def _engine_table(cases: Sequence[Content]) -> str:
    rows, named = [], set()
    for case in cases:
        name = WORDS[case["data"]]
        size = f" ({case['rows']:,} × {case['features']:,})" if name not in named else ""
        named.add(name)
        ours = {entry["threads"]: entry for entry in case["ours"]}
        two = ours[max(ours)]
        rows.append(
            [
                f"{name}{size}, C={case['C']:g}",
                _median(two["within"][MIDDLE]),
                _median(ours[1]["within"][MIDDLE]),
                _median(two["certified"][MIDDLE]),
                *_best_peer(case, max(ours)),
                _ratio(case, max(ours)),
                "–" if two["reads"] is None else f"{two['reads']:.0f}",
            ]
        )
    columns = ["problem", "2 threads", "1 thread", "certified", "best peer", "its name"]
    return markdown([*columns, "peer / ours", "reads of the data"], rows)


def _median(found: Content | None) -> str:
    return "–" if found is None else seconds_text(found["median"])


def _best_peer(case: Content, threads: int) -> tuple[str, str]:
    seconds, name = best_peer(case, threads, MIDDLE)
    return (seconds_text(seconds), name) if name else (f"> {seconds_text(seconds)}", "none")


def _ratio(case: Content, threads: int) -> str:
    ratio = ratio_of(case, threads)
    more = "" if best_peer(case, threads, MIDDLE)[1] else "> "
    return "–" if ratio is None else f"{more}{ratio:.1f}"


def _means(cases: Sequence[Content]) -> str:
    """Geometric means and where a peer is ahead, in a sentence."""
    parts = []
    for threads, word in ((2, "two threads"), (1, "one thread")):
        found = {f"{WORDS[c['data']]} C={c['C']:g}": ratio_of(c, threads) for c in cases}
        ratios = {name: ratio for name, ratio in found.items() if ratio is not None}
        if not ratios:
            continue
        mean = math.exp(sum(math.log(r) for r in ratios.values()) / len(ratios))
        behind = [name for name, r in ratios.items() if r < 1.0]
        known = all(best_peer(c, threads, MIDDLE)[1] for c in cases)
        least = "" if known else "at least "
        text = (
            f"with {word} cutplane is {least}{mean:.2f} times as fast as the best other solver "
            f"(geometric mean) and ahead in {len(ratios) - len(behind)} of {len(ratios)} problems"
        )
        if behind:
            text += f" (not in {', '.join(behind)})"
        parts.append(text)
    sentence = "; ".join(parts)
    return sentence[:1].upper() + sentence[1:] + "." if sentence else ""


def _more(folder: Path) -> list[str]:
    """Other data, paths and growth, if they have been run."""
    words = []
    if (folder / "others.json").is_file():
        cases = load(folder / "others.json")["cases"]
        found = [r for r in (ratio_of(case, 2) for case in cases) if r is not None]
        if found:
            words.append(
                f"On {_listed(list(dict.fromkeys(WORDS[case['data']] for case in cases)))}, on "
                f"which no constant was chosen, it is {min(found):.1f} to {max(found):.0f} times "
                f"as fast as the best peer, ahead in {sum(r >= 1.0 for r in found)} of "
                f"{len(found)} problems."
            )
    if (folder / "paths.json").is_file():
        ratios = [case["ratio"] for case in load(folder / "paths.json")["cases"]]
        if ratios:
            words.append(
                f"A path over ten values of C costs {min(ratios):.1f} to {max(ratios):.1f} times "
                "its dearest fit."
            )
    if (folder / "growth.json").is_file():
        cases = load(folder / "growth.json")["cases"]
        sizes = [c for c in cases if "by_threads" in c]
        for case in (c for c in cases if "slope" in c):
            last = min(t["median"] for t in sizes[-1]["by_threads"].values())
            words.append(
                f"From {sizes[0]['rows']:,} to {sizes[-1]['rows']:,} generated rows the time grows "
                f"with the power {case['slope']:.2f} of their number, to {seconds_text(last)} s."
            )
    return [" ".join(words)] if words else []


def _pairs_table(cases: Sequence[Content]) -> str:
    rows = []
    for case in cases:
        mine = {e["threads"]: e for e in case["solvers"] if "threads" in e}
        plain = next(e["runs"][0] for e in case["solvers"] if e["solver"].endswith("cpa"))
        first = next(iter(mine.values()))["runs"][0]
        more = "" if plain["status"] == "converged" else "> "
        published = case["published"]
        rows.append(
            [
                f"{NAMES[case['loss']]}, {WORDS[case['data']]}, C={_power(case['C'])}",
                first["n_iter"],
                f"{more}{plain['n_iter']}",
                *(_median(mine[k]["seconds"]) if k in mine else "–" for k in (2, 1)),
                f"{published['cpu_seconds']:g} ({published['solver']})",
            ]
        )
    columns = ["problem", "OCAS iterations", "plain CPA iterations", "seconds, 2 threads"]
    return markdown([*columns, "1 thread", "best peer"], rows)


def _power(value: float) -> str:
    return f"{value:.0e}".replace("e+0", "e")


def renewed(readme: str, text: str) -> str:
    """The README with the text between its marks."""
    if any(readme.count(mark) != 1 for mark in MARKS):
        raise ValueError(f"README.md must have {MARKS[0]} and {MARKS[1]} once each")
    head, rest = readme.split(MARKS[0])
    tail = rest.split(MARKS[1])[1]
    return f"{head}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{tail}"


def main(argv: Sequence[str] | None = None) -> int:
    """Write README.md and the figure, or check the first."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.readme", description=__doc__.splitlines()[0]
    )
    parser.add_argument("folder", type=Path, help="of suites: folders with JSON files")
    parser.add_argument("--check", action="store_true", help="only look whether it is up to date")
    parser.add_argument("--root", type=Path, default=ROOT, help="of the project")
    args = parser.parse_args(argv)
    file = args.root / "README.md"
    try:
        before = file.read_text("utf-8")
        after = renewed(before, region(args.folder))
        cases = engine_cases(args.folder)[1]
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    if args.check:
        print("up to date" if before == after else "run python -m benchmarks.readme again")
        return 0 if before == after else 1
    draw_figure(cases, args.root / FIGURE)
    file.write_text(after, "utf-8")
    print(f"written: {file.name}, {FIGURE.as_posix()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
