"""What the README and the page on benchmarks show, from the JSON files of the suites.

python -m benchmarks.readme benchmarks/results

What is between the two comments of MARKS in README.md is written anew, and the image
docs/images/benchmarks.png is drawn. With ``--check`` nothing is written; the status is 1 if the
README is not that of the JSON files. The documentation calls ``linear`` and ``larger_than_memory``
whenever it is built.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .engine.figures import times
from .engine.tables import regrets, worst
from .figures import save
from .measure import ROOT
from .tables import Content, load, seconds_text

MARKS = ("<!-- benchmarks: begin -->", "<!-- benchmarks: end -->")
FIGURE = Path("docs/images/benchmarks.png")
PICTURED = "The default fit of cutplane against the best other solver, a point per problem"


def record(folder: Path) -> Content:
    """The section ``linear`` of the suite engine, which is the main benchmark."""
    file = folder / "engine" / "linear.json"
    if not file.is_file():
        raise ValueError(f"the section linear of the engine has not been run into {file.parent}")
    return load(file)


def region(folder: Path) -> str:
    """The text between the marks of the README: the figure and what it shows."""
    return f"![{PICTURED}]({FIGURE.as_posix()})\n\n{_wrapped(_compared(record(folder)))}"


def linear(folder: Path) -> str:
    """Sentences and tables about the default fit, for the documentation."""
    content = record(folder)
    parts = [
        _compared(content),
        _measured(content),
        regrets(content["cases"]),
        worst(content["cases"]),
        _grown(folder / "engine"),
    ]
    return "\n\n".join(part if part[:1] == "|" else _wrapped(part) for part in parts)


def larger_than_memory(folder: Path) -> str:
    """Sentences about fits from data sets on disk, for the documentation."""
    files = [folder / "files" / f"{name}.json" for name in ("splice", "out-of-core")]
    contents = [load(file) for file in files if file.is_file()]
    return _wrapped(" ".join(_from_disk(c, case) for c in contents for case in c["cases"]))


def draw_figure(folder: Path, file: Path) -> None:
    """Draw the README's figure into a file, whose ending gives the format."""
    file.parent.mkdir(parents=True, exist_ok=True)
    save(times(record(folder)["cases"]), file.with_suffix(""), (file.suffix,))


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _origin(content: Content) -> str:
    """Day, cores and processor."""
    machine = content["machine"]
    return f"{content['date'][:10]}, {machine['cores']} cores of an {machine['processor']}"


def _compared(content: Content) -> str:
    """Sentences about what was compared, and the outcome."""
    fits = [case for case in content["cases"] if "regret" in case]
    found = np.array([case["regret"] for case in fits])
    peers = list(dict.fromkeys(peer["solver"] for case in fits for peer in case["peers"]))
    penalties = [case["C"] for case in fits]
    slowest = fits[int(np.argmax(found))]["what"].replace("none bias", "no bias")
    text = (
        f"Each of the {len(fits)} points is a problem: `LinearSVC(C=…)` with its default settings "
        f"on one of {len({case['data'] for case in fits})} data sets, up to three losses, with a "
        f"bias and without, and C from {min(penalties):g} to {max(penalties):,g}. The others are "
        f"{_listed(peers)}; the fastest of them counts ({_origin(content)}; compilation excluded). "
        f"cutplane is faster in {100 * np.mean(found < 1.0):.0f} % of the problems and "
        f"{1.0 / np.exp(np.log(found).mean()):.1f} times as fast in the geometric mean. At worst "
        f"it takes {found.max():.1f} times as long ({slowest})."
    )
    return text if content["complete"] else f"{text} **The run was not finished.**"


def _measured(content: Content) -> str:
    """Sentences about how times were measured, and about what the figure does not show."""
    fits = [case for case in content["cases"] if "regret" in case]
    certified = sum(case["relative_gap"] <= 1e-3 for case in fits)
    return (
        "Our time ends when the certificate proves that the objective is within 0.1 % of the "
        f"optimum, which {certified} of the {len(fits)} fits did in 60 s. The time of another "
        "solver is that of its fastest run that gets as close to the best objective that is known; "
        f"in {sum(case['best_peer'] is None for case in fits)} problems none did in ten times "
        "our time. **Regret** is our time divided by that of the fastest other solver: below 1 we "
        "are ahead. Where none was good enough it counts as 0.1."
    )


def _listed(words: Sequence[str]) -> str:
    # A comma within a name would look like two names in a list.
    words = [w.replace(", 2 threads", " (one thread and two)") for w in words]
    kept = [w for w in words if f"{w} (one thread and two)" not in words]
    return ", ".join(kept[:-1]) + " and " + kept[-1] if len(kept) > 1 else "".join(kept)


def _grown(folder: Path) -> str:
    """Sentences about paths and growth, if these sections have been run."""
    words = []
    if (folder / "paths.json").is_file():
        ratios = [case["ratio"] for case in load(folder / "paths.json")["cases"]]
        words.append(
            f"A path over ten values of C costs {min(ratios):.1f} to {max(ratios):.1f} times "
            "its most expensive fit."
        )
    if (folder / "growth.json").is_file():
        cases = load(folder / "growth.json")["cases"]
        sizes = [c for c in cases if "by_threads" in c]
        last = min(t["median"] for t in sizes[-1]["by_threads"].values())
        slope = next(c["slope"] for c in cases if "slope" in c)
        words.append(
            f"From {sizes[0]['rows']:,} to {sizes[-1]['rows']:,} generated rows the time grows "
            f"with the power {slope:.2f} of their number, to {seconds_text(last)} s."
        )
    return " ".join(words)


def _from_disk(content: Content, case: Content) -> str:
    paper, memory = case["paper_seconds"], case["memory_bytes"]
    text = (
        f"{case['rows']:,} generated splice sites with {case['features']} indicators each, "
        f"{case['bytes'] / 1e9:.1f} GB of {case.get('dtype', 'float32')} values "
        f"on disk, take {case['seconds']:.0f} s to a certified relative gap of "
        f"{case['relative_gap']:.0e} ({_origin(content)})"
    )
    if memory is not None:
        peak = case["peak_bytes"] / 1e9
        text += f", with a limit of {memory / 1e9:g} GB of memory, of which they need {peak:.1f}"
    if paper is not None:
        text += (
            ". This is the size of the largest problem of the OCAS paper, where it took "
            f"{paper[0]:,} to {paper[1]:,} s"
        )
    return f"{text}."


def renewed(readme: str, text: str) -> str:
    """The README with the text between its marks."""
    if any(readme.count(mark) != 1 for mark in MARKS):
        raise ValueError(f"README.md must have {MARKS[0]} and {MARKS[1]} once each")
    head, rest = readme.split(MARKS[0])
    tail = rest.split(MARKS[1])[1]
    return f"{head}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{tail}"


def main(argv: Sequence[str] | None = None) -> int:
    """Write README.md and the figure, or check README.md."""
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
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    if args.check:
        print("up to date" if before == after else "run python -m benchmarks.readme again")
        return 0 if before == after else 1
    draw_figure(args.folder, args.root / FIGURE)
    file.write_text(after, "utf-8")
    print(f"written: {file.name}, {FIGURE.as_posix()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
