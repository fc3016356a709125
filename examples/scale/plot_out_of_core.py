"""
More data than memory
=====================

A data set on disk is a folder that estimators take in place of ``X``. You write it in chunks. A fit
reads the rows block by block, and keeps a few numbers per row in memory. The model is the same, to
the last bit, as from the same rows in memory.
"""

# %%
# ``write_dataset`` takes an iterator of chunks, so the rows are never in memory all at once. We
# write 400,000 rows of 60 features, which take 96 MB in single precision.

import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from cutplane import LinearSVC, open_dataset, write_dataset

weights = np.random.default_rng(0).normal(size=60)


def chunks():
    """Ten chunks of 40,000 rows with labels."""
    for seed in range(1, 11):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40_000, 60)).astype(np.float32)
        yield X, X @ weights + 4.0 * rng.normal(size=len(X)) > 0


folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "rows.cut"
dataset = write_dataset(path, chunks())
print(f"{dataset.shape[0]:,} rows, {dataset.feature_bytes / 1e6:.0f} MB of features on disk")

# %%
# ``memory_limit`` says how many bytes of the features may stay in memory between two passes. With
# 10 MB nearly everything is read from the disk in every pass.

settings = {"C": 1e-3, "solver": "ocas", "tol": 1e-5}
LinearSVC(**settings).fit(dataset)  # once without the clock: the first fit may compile
fits = {}
for name, limit in {"96 MB": None, "50 MB": 50_000_000, "10 MB": 10_000_000}.items():
    begin = time.perf_counter()
    fits[name] = LinearSVC(**settings).fit(open_dataset(path, memory_limit=limit))
    seconds = time.perf_counter() - begin
    print(f"on disk, {name} may stay: {seconds:.2f} s, {fits[name].certificate_}")

# %%
# The rows in memory give the same model.

X, y = (np.concatenate(parts) for parts in zip(*chunks(), strict=True))
begin = time.perf_counter()
fits["all in memory"] = LinearSVC(**settings).fit(X, y)
print(f"in memory: {time.perf_counter() - begin:.2f} s, {fits['all in memory'].certificate_}")
for name, fit in fits.items():
    same = np.array_equal(fit.coef_, fits["all in memory"].coef_)
    print(f"{name:14s} the same weights to the last bit: {same}")
    assert same
folder.cleanup()

# %%
# The gap falls in the same steps. Only the time of a step may differ. It depends on the disk, and
# on how much of the files the operating system keeps in memory.

fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for (name, fit), style in zip(fits.items(), ("o-", "s-", "^-", "k--"), strict=True):
    result = fit.results_[0]
    ax.plot(result.column("seconds"), 100 * result.column("relative_gap"), style, ms=4, label=name)
ax.axhline(1e-3, color="grey", ls=":", label="tolerance")
ax.set(
    yscale="log",
    xlabel="seconds",
    ylabel="relative gap (%)",
    title=f"On disk or in memory: the same {fits['10 MB'].n_iter_} steps, the same bits",
)
ax.legend(title="features that may stay in memory", fontsize="small")
plt.show()
