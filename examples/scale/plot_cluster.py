"""
A cluster of two workers
========================

``executor=`` takes a Dask client. The rows stay with the workers, and each iteration exchanges a
few small messages. The model is the same as on a single machine, to the last bit. On one machine
threads are faster than workers: a cluster is for data that do not fit on one machine.
"""

# %%
# In this example both workers are threads of this process, so that it runs anywhere. On real hosts
# you would start ``dask scheduler`` and ``dask worker``, and give the client the scheduler's
# address. Dask is optional: ``pip install '.[dask]'``.

import time

import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client, LocalCluster
from sklearn.datasets import make_classification

from cutplane import LinearSVC

X, y = make_classification(40_000, 50, n_informative=20, flip_y=0.05, random_state=0)
settings = {"C": 0.01, "solver": "ocas", "tol": 1e-4}

alone = LinearSVC(**settings).fit(X, y)
begin = time.perf_counter()
alone = LinearSVC(**settings).fit(X, y)
seconds = {"threads": time.perf_counter() - begin}

# %%
# One ``with`` statement starts, uses and stops the cluster.

options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
with LocalCluster(**options) as cluster, Client(cluster) as client:
    begin = time.perf_counter()
    shared = LinearSVC(**settings, executor=client).fit(X, y)
    seconds["two workers"] = time.perf_counter() - begin

print(f"threads:     {alone.certificate_}, {seconds['threads']:.2f} s")
print(f"two workers: {shared.certificate_}, {seconds['two workers']:.2f} s")
print(f"the same weights to the last bit: {np.array_equal(alone.coef_, shared.coef_)}")
assert np.array_equal(alone.coef_, shared.coef_)

# %%
# Each iteration adds one cut. The two curves are the same, because every step is the same. Only the
# time of a step is longer on the cluster, because messages travel back and forth.

fig, (left, right) = plt.subplots(
    1, 2, figsize=(6.4, 3.8), width_ratios=[2, 1], layout="constrained"
)
for name, model, style in (("threads", alone, "o-"), ("two workers", shared, "x")):
    gaps = 100 * model.results_[0].column("relative_gap")
    left.plot(np.arange(1, len(gaps) + 1), gaps, style, ms=7, label=name)
left.set(yscale="log", xlabel="iteration", ylabel="relative gap (%)")
left.legend()
bars = right.bar(list(seconds), list(seconds.values()), color=["C0", "C1"])
right.bar_label(bars, fmt="%.2f s")
right.set(ylabel="seconds of the fit")
right.margins(y=0.15)
fig.suptitle("Two workers take the same steps, to the same bits")
plt.show()
