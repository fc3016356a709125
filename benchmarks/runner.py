"""The command line of a suite: choose sections, run them, print their tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .datasets import DATA_VARIABLE, Source, data_folder
from .report import Report, Settings

RESULTS = Path(__file__).resolve().parent / "results"
QUICK_ROWS = 1000
QUICK = {  # instead of the defaults of Settings
    "repeats": 2,
    "tight_seconds": 0.5,
    "cpa_iterations": 300,
    "cpa_seconds": 0.5,
    "peer_seconds": 1.0,
}


@dataclass(frozen=True)
class Suite:
    """Sections that are run by one command.

    Attributes
    ----------
    name : str
        Of the module, the command and the folder of the results.
    peers : tuple of str
        Known peers of section ``speed``.
    usual_peers : tuple of str
        Those that are run unless others are chosen; empty for the first.
    defaults : mapping
        Settings of this suite that differ from those of ``Settings``.
    resumable : tuple of str
        Sections that can go on where an earlier run ended.
    """

    name: str
    description: str
    sections: Mapping[str, Callable[[Report], None]]
    peers: tuple[str, ...]
    usual_peers: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    resumable: tuple[str, ...] = ()

    def main(self, argv: Sequence[str] | None = None) -> int:
        """Run sections; 0 if every check held, 1 if one was violated or a case failed."""
        parser = self._parser()
        arguments = parser.parse_args(argv)
        settings = self._settings(arguments)
        if settings.source.folder is not None and not settings.source.folder.is_dir():
            parser.error("the data folder does not exist")
        if settings.source.file is not None and not settings.source.file.is_file():
            parser.error(f"--file: there is no file {settings.source.file}")
        if settings.before is not None and not (settings.before / "src" / "cutplane").is_dir():
            parser.error(f"--before: {settings.before} has no src/cutplane")
        if settings.repeats < 1:
            parser.error("--repeats must be at least 1")
        out = arguments.out or RESULTS / ("quick" if settings.quick else self.name)
        names = list(self.sections) if "all" in arguments.section else list(arguments.section)
        held = True
        resumes = bool(self.resumable) and arguments.resume
        for name in names if resumes else ():
            if name not in self.resumable:
                parser.error(f"--resume: section {name} cannot be resumed; leave it out")
        for name in names:
            report = Report(self.name, name, settings, out)
            refusal = report.resume() if resumes else None
            if refusal is not None:
                parser.error(f"--resume: {refusal}; give the same ones, or another --out")
            self.sections[name](report)
            held &= report.finish()
        from .tables import table  # drawn from the JSON, like any later table

        for name in names:
            print()
            print(table(out / f"{name}.json"))
        return 0 if held else 1

    def _parser(self) -> argparse.ArgumentParser:
        defaults = Settings(Source(), **self.defaults)
        usual = ", ".join(self._usual())
        parser = argparse.ArgumentParser(
            prog=f"python -m benchmarks {self.name}", description=self.description
        )
        parser.add_argument(
            "--section",
            action="append",
            choices=[*self.sections, "all"],
            required=True,
            help="may be given several times",
        )
        parser.add_argument("--data", help=f"data folder (default: environment {DATA_VARIABLE})")
        parser.add_argument(
            "--file",
            type=Path,
            help="an svmlight file of yours with two classes: one more data set of the sections "
            "of papers, and that of section file of engine",
        )
        parser.add_argument("--out", type=Path, help="folder for the JSON files")
        parser.add_argument(
            "--quick", action="store_true", help="subsamples and low limits: does it run at all?"
        )
        parser.add_argument(
            "--generated",
            action="store_true",
            help="generated data, no data folder; implies --quick",
        )
        parser.add_argument("--rows", type=int, help="at most this many rows of each data set")
        parser.add_argument("--repeats", type=int, help=f"runs per time ({defaults.repeats})")
        parser.add_argument(
            "--tight-seconds",
            type=float,
            help=f"limit of each of our runs ({defaults.tight_seconds:g})",
        )
        parser.add_argument(
            "--cpa-iterations", type=int, help=f"limit of CPA ({defaults.cpa_iterations})"
        )
        parser.add_argument(
            "--cpa-seconds", type=float, help=f"limit of CPA ({defaults.cpa_seconds:g})"
        )
        parser.add_argument(
            "--peer-seconds",
            type=float,
            help=f"all runs of a peer on a case of section speed ({defaults.peer_seconds:g})",
        )
        parser.add_argument(
            "--peer",
            action="append",
            choices=list(self.peers),
            help=f"peers of section speed ({usual}); may be given several times",
        )
        parser.add_argument(
            "--before",
            type=Path,
            help="the folder of another checkout of this project: suite checkouts and section "
            "linear of engine time it too, in processes of its own, and compare",
        )
        if self.resumable:
            parser.add_argument(
                "--resume",
                action="store_true",
                help="measure only what the JSON file does not have yet; for "
                f"{', '.join(self.resumable)}",
            )
        return parser

    def _usual(self) -> tuple[str, ...]:
        return self.usual_peers or self.peers[:1]

    def _settings(self, arguments: argparse.Namespace) -> Settings:
        quick = arguments.quick or arguments.generated
        rows = arguments.rows or (QUICK_ROWS if quick else None)
        folder = None if arguments.generated else data_folder(arguments.data)
        chosen = dict(QUICK) if quick else dict(self.defaults)
        for name in QUICK:
            if getattr(arguments, name) is not None:
                chosen[name] = getattr(arguments, name)
        peers = tuple(arguments.peer or self._usual())
        source = Source(folder, rows, arguments.generated, arguments.file)
        return Settings(source, quick, peers=peers, before=arguments.before, **chosen)
