"""Measurements that need a process of their own. Each prints one line of JSON.

    python -m benchmarks.probes memory DATA C [...]
                                | estimator NAME | fits DATA LOSS BIAS C [...]
                                | dataset FOLDER C [...]
                                | kernel-peer JSON [...] | kernel-memory JSON [...]
                                | checkout JSON [...]

Nothing is imported before it is needed: importing is part of some measurements.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .datasets import Source


def estimator(name: str) -> dict[str, float]:
    """CPU seconds to import scikit-learn and numba, to import an estimator, and to fit it first."""
    begin = time.process_time()
    import numba  # noqa: F401
    import sklearn.linear_model
    import sklearn.svm  # noqa: F401
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    others = time.process_time()
    import cutplane

    kind = getattr(cutplane, name)
    imported = time.process_time()
    if name == "RankSVM":
        kind().fit(X, y.astype(float))
    else:
        kind().fit(X, y if name in ("LinearSVC", "SVC") else y == 1)
    fitted = time.process_time()
    return {"others": others - begin, "import": imported - others, "fit": fitted - imported}


def fits(arguments: argparse.Namespace) -> dict[str, object]:
    """Seconds of fits with default settings, with the imported version of the package."""
    from cutplane import LinearSVC

    from .datasets import Source, data_folder

    source = Source(data_folder(arguments.data), arguments.rows, arguments.generated)
    data = source.load(arguments.name)
    settings = {
        "C": arguments.C,
        "loss": arguments.loss,
        "fit_intercept": arguments.bias == "free",
        "n_jobs": arguments.threads,
        "time_limit": arguments.seconds,
    }
    seconds, cpu = [], []
    for _ in range(1 + arguments.repeats):  # the first one compiles
        begin, cpu_begin = time.perf_counter(), time.process_time()
        model = LinearSVC(**settings).fit(data.X, data.y)
        seconds.append(time.perf_counter() - begin)
        cpu.append(time.process_time() - cpu_begin)
    gap = float(max(r.certificate.relative_gap for r in model.results_))
    return {"seconds": seconds[1:], "cpu_seconds": cpu[1:], "relative_gap": gap}


def memory(arguments: argparse.Namespace) -> dict[str, object]:
    """Peak memory during a fit, less the memory in use before it, in which the data are."""
    from . import measure
    from .datasets import Source, data_folder
    from .solvers import Cutplane, Effort, Problem, run

    source = Source(data_folder(arguments.data), arguments.rows, arguments.generated)
    problem = Problem(source.load(arguments.name), arguments.C)
    X, y = problem.data.X, problem.data.y
    data_bytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes
    ours = Cutplane()
    run(ours, problem.few_rows(), Effort(max_iter=40))
    touched = float(X.data.sum()) + int(X.indices.sum(dtype="i8")) + float(y.sum())
    measure.release_free_memory()
    exact = measure.reset_peak()
    before, peak_before = measure.resident_bytes(), measure.peak_bytes()
    trained = ours.train(problem, problem.data, Effort(tol=1e-3))
    peak = measure.peak_bytes()
    # Without a reset, the peak of loading the data is subtracted, which makes the fit look better.
    base = before if exact else peak_before
    trace = trained.results_[0].trace
    return {
        **problem.facts(),
        "data_bytes": data_bytes,
        "before_bytes": before,
        "peak_bytes": peak,
        "peak_was_reset": exact,
        "extra_bytes": None if peak is None or base is None else peak - base,
        "most_cuts": max(record.cuts for record in trace),
        "n_iter": len(trace),
        "checksum": touched,
    }


def dataset(arguments: argparse.Namespace) -> dict[str, object]:
    """A fit on a data set on disk: memory by kind, passes, and the disk's time for such passes."""
    from pathlib import Path

    import numpy as np

    from cutplane import LinearSVC, open_dataset
    from cutplane.data.dataset.read import MappedBlocks

    from . import measure
    from .files import disk

    data = open_dataset(arguments.folder, memory_limit=arguments.kept)
    files = disk.files_of(Path(arguments.folder))
    few = slice(0, min(1000, data.n_rows))
    labels = np.arange(few.stop) % 2
    LinearSVC(C=1e-3, max_iter=3, tol=0.9).fit(data.rows(0, few.stop), labels)  # compiles
    if arguments.anonymous is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (arguments.anonymous, arguments.anonymous))
    before = disk.sequential_seconds(files)
    passes = 0
    begin_pass = MappedBlocks.begin

    def counted(source: MappedBlocks) -> None:
        nonlocal passes
        passes += 1
        begin_pass(source)

    MappedBlocks.begin = counted  # type: ignore[method-assign]
    measure.release_free_memory()
    exact = measure.reset_peak()
    read, cpu, begin = disk.bytes_from_disk(), time.process_time(), time.perf_counter()
    with disk.MemoryWatch() as watch:
        model = LinearSVC(C=arguments.C).fit(data)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    peak, cached = measure.peak_bytes(), disk.cached_bytes(files)
    after = disk.bytes_from_disk()
    timings = model.results_[0].timings
    certificate = model.certificate_
    return {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "timings": timings,
        "n_iter": model.n_iter_,
        "status": model.results_[0].status.value,
        "primal": certificate.primal,
        "dual": certificate.dual,
        "relative_gap": certificate.relative_gap,
        "passes": passes,
        "pass_seconds": (timings["scores"] + timings["cut"]) / passes,
        "disk_seconds": [before, disk.sequential_seconds(files)],
        "from_disk_bytes": None if read is None or after is None else after - read,
        "kept_bytes": data.memory_limit,
        "peak_bytes": peak,
        "peak_was_reset": exact,
        "largest_bytes": watch.largest,
        "cached_bytes": cached,
        "accuracy": float(model.score(data, data.y)),
    }


def kernel_memory(question: dict, source: Source) -> dict[str, object]:
    """Peak memory during a fit of a kernel machine, less the memory in use before it."""
    from . import measure
    from .kernels.solvers import KernelProblem, fit_ours, sample

    data = sample(source, question["name"], question["rows"])
    problem = KernelProblem(data, question["C"], question["gamma"])
    fit_ours(problem.few_rows(3000))
    X = problem.rows()
    touched = float(X.sum())
    measure.release_free_memory()
    exact = measure.reset_peak()
    before, peak_before = measure.resident_bytes(), measure.peak_bytes()
    options = {"cache_size": question["cache_size"], "time_limit": question["time_limit"]}
    _, record = fit_ours(problem, X, **options)
    peak = measure.peak_bytes()
    base = before if exact else peak_before
    return {
        **problem.facts(),
        "peak_was_reset": exact,
        "extra_bytes": None if peak is None or base is None else peak - base,
        # A fit holds two copies of the rows in float64: as they are, and shifted to their mean.
        "copies_bytes": (8 + 8) * X.shape[0] * X.shape[1],
        "fit": record,
        "checksum": touched,
    }


def _kernel_probe(arguments: argparse.Namespace) -> dict[str, object]:
    from .datasets import Source, data_folder
    from .kernels import solvers, wide

    source = Source(data_folder(arguments.data), arguments.rows, arguments.generated)
    probes = {"kernel-peer": solvers.answer_race, "kernel-wide": wide.answer}
    return probes.get(arguments.probe, kernel_memory)(arguments.question, source)


def main() -> None:
    """Run the probe that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.probes")
    commands = parser.add_subparsers(dest="probe", required=True)
    commands.add_parser("estimator").add_argument("name")
    commands.add_parser("labels").add_argument("question", type=json.loads)
    for name in ("memory", "fits", "kernel-peer", "kernel-wide", "kernel-memory", "checkout"):
        at = commands.add_parser(name)
        if name == "fits":
            at.add_argument("name")
            at.add_argument("loss")
            at.add_argument("bias")
            at.add_argument("C", type=float)
            at.add_argument("--threads", type=int, default=1)
            at.add_argument("--repeats", type=int, default=3)
            at.add_argument("--seconds", type=float, default=60.0)
        elif name == "memory":
            at.add_argument("name")
            at.add_argument("C", type=float)
        else:
            at.add_argument("question", type=json.loads)
        at.add_argument("--data")
        at.add_argument("--rows", type=int)
        at.add_argument("--generated", action="store_true")
    on_disk = commands.add_parser("dataset")
    on_disk.add_argument("folder")
    on_disk.add_argument("C", type=float)
    on_disk.add_argument("--kept", type=int)
    on_disk.add_argument("--anonymous", type=int)
    arguments = parser.parse_args()
    if arguments.probe == "estimator":
        answer: dict = estimator(arguments.name)
    elif arguments.probe == "fits":
        answer = fits(arguments)
    elif arguments.probe == "dataset":
        answer = dataset(arguments)
    elif arguments.probe == "labels":
        from .engine.labels import probe

        answer = probe(arguments.question)
    elif arguments.probe == "memory":
        answer = memory(arguments)
    elif arguments.probe == "checkout":
        from .checkouts import fits as checkouts
        from .datasets import Source, data_folder

        source = Source(data_folder(arguments.data), arguments.rows, arguments.generated)
        answer = checkouts.answer(arguments.question, source)
    else:
        answer = _kernel_probe(arguments)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
