"""How long one waits: for the import, the first fit ever, a tiny fit. In child processes."""

from __future__ import annotations

from ..measure import child, fresh_cache, spread
from ..report import Report, at_most

IMPORTS = 5


def run(report: Report) -> None:
    """Run the section."""
    with report.attempt("import"):
        _imports(report)
    if report.settings.quick:
        report.skip("the first fit ever, because compiling takes longer than a quick run may")
    else:
        for kind in ("dense", "csr"):
            with report.attempt(f"first fit {kind}"):
                _first_fit(report, kind)
    with report.attempt("tiny fit"):
        _tiny_fit(report)


def _imports(report: Report) -> None:
    answers = [child(["import"]) for _ in range(2 if report.settings.quick else IMPORTS)]
    package = spread([a["package_seconds"] for a in answers])
    name = spread([a["name_seconds"] for a in answers])
    report.say(f"import cutplane: {package['best']:.3f} s; LinearSVC: {name['best']:.3f} s")
    case = {"what": "import", "package": package, "name": name}
    report.add(case, [at_most("import cutplane < 1 s", package["best"], 1.0)], "import")


def _first_fit(report: Report, kind: str) -> None:
    with fresh_cache() as folder:
        cold = child(["first-fit", kind], {"NUMBA_CACHE_DIR": folder})
        warm = child(["first-fit", kind], {"NUMBA_CACHE_DIR": folder})
    report.say(
        f"first fit ever, {kind}: {cold['fit_seconds']:.2f} s; "
        f"in the next process: {warm['fit_seconds']:.2f} s"
    )
    case = {"what": "first fit", "kind": kind, "cold": cold, "cached": warm}
    claim = "first fit ever < 15 s, import included"
    report.add(
        case, [at_most(claim, cold["import_seconds"] + cold["fit_seconds"], 15.0)], "first fit"
    )


def _tiny_fit(report: Report) -> None:
    answer = child(["tiny-fit", "5" if report.settings.quick else "50"])
    seconds = spread(answer["seconds"])
    report.say(f"fit on iris, once compiled: {1000 * seconds['median']:.2f} ms")
    case = {"what": "tiny fit", "rows": 150, "features": 4, "seconds": seconds}
    report.add(case, [at_most("fit on 150×4 < 50 ms", seconds["median"], 0.050)], "tiny fit")
