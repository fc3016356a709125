"""
An output space of your own: intervals in a signal
==================================================

An output need not be a class. Here it is an interval: where in a noisy signal is the event?
``StructuredSVM`` trains a model for any kind of output, if you can find the output with the best
score. You write four short methods, and get the optimum with a certificate.
"""

# %%
# Signals have 60 steps. During the event the mean of the first channel is raised, and a short
# pulse in the second channel marks beginning and end. Five channels are noise.

import matplotlib.pyplot as plt
import numpy as np

from cutplane import StructuredSVM
from cutplane.structured import Problem

STEPS, CHANNELS = 60, 7
rng = np.random.default_rng(0)


def draw():
    """A signal and the interval (first step, step after the last) of its event."""
    begin = int(rng.integers(0, STEPS - 10))
    end = int(rng.integers(begin + 5, min(begin + 25, STEPS) + 1))
    x = rng.normal(size=(STEPS, CHANNELS))
    x[begin:end, 0] += 0.8
    x[[begin, end - 1], 1] += 2.0
    return x, (begin, end)


# %%
# The joint features of a signal and an interval are the sums of the channels inside, the values at
# both ends, and the length. The loss is one minus the overlap (intersection over union). To find
# the best interval we compute the scores of all 1,830 intervals at once, with cumulative sums.

BEGIN, END = np.triu_indices(STEPS)
END = END + 1


class Intervals(Problem):
    """Outputs are pairs (begin, end); the event lies in the steps begin, …, end − 1."""

    def joint_feature(self, x, y):
        begin, end = y
        inside = x[begin:end].sum(axis=0)
        return np.concatenate([inside, x[begin], x[end - 1], [end - begin]])

    def loss(self, y, z):
        return 1.0 - overlaps(y)[np.flatnonzero((z[0] == BEGIN) & (z[1] == END))[0]]

    def most_violated(self, x, y, score):
        return best(scores_of_all(x, score.w) + 1.0 - overlaps(y))

    def predict(self, x, score):
        return best(scores_of_all(x, score.w))


def scores_of_all(x, w):
    """The scores of all intervals."""
    inside, first, last = (x @ part for part in np.split(w[:-1], 3))
    sums = np.concatenate([[0.0], np.cumsum(inside)])
    return sums[END] - sums[BEGIN] + first[BEGIN] + last[END - 1] + w[-1] * (END - BEGIN)


def overlaps(y):
    """Intersection over union of y with all intervals."""
    common = np.minimum(END, y[1]) - np.maximum(BEGIN, y[0])
    union = np.maximum(END, y[1]) - np.minimum(BEGIN, y[0])
    return np.maximum(common, 0) / union


def best(scores):
    """The interval of the largest score."""
    k = int(np.argmax(scores))
    return int(BEGIN[k]), int(END[k])


train, test = [draw() for _ in range(150)], [draw() for _ in range(300)]
X_train, y_train = zip(*train, strict=True)
X_test, y_test = zip(*test, strict=True)

# %%
# ``most_violated`` is exact, so the certificate is exact, too. ``score`` is minus the mean loss.
# The baseline is a threshold on the first channel, smoothed over five steps: it predicts the
# longest run above the threshold.

model = StructuredSVM(Intervals(), C=1.0).fit(list(X_train), list(y_train))
print(f"{model.certificate_}, {model.n_iter_} iterations, kind {model.certificate_.kind}")


def longest_run(x):
    """Where the smoothed first channel is above 0.4 for the longest time."""
    above = np.convolve(x[:, 0], np.full(5, 0.2), mode="same") > 0.4
    edges = np.flatnonzero(np.diff(np.concatenate([[0], above.astype(int), [0]])))
    runs = edges.reshape(-1, 2)
    return tuple(runs[np.argmax(runs[:, 1] - runs[:, 0])]) if len(runs) else (0, 1)


problem = Intervals()
simple = np.mean([1 - problem.loss(y, longest_run(x)) for x, y in test])
learnt = 1.0 + model.score(list(X_test), list(y_test))
print(f"mean overlap on new signals: threshold {simple:.3f}, StructuredSVM {learnt:.3f}")

# %%
# The picture shows three new signals. The true interval is grey, and the predicted one is between
# the blue lines.

fig, axes = plt.subplots(3, 1, figsize=(6.4, 5), sharex=True, layout="constrained")
for ax, x, (begin, end) in zip(axes, X_test, y_test, strict=False):
    found = model.predict([x])[0]
    ax.axvspan(begin, end, color="grey", alpha=0.35, label="true event")
    ax.step(np.arange(STEPS) + 0.5, x[:, 0], where="mid", color="C1", label="first channel")
    ax.step(
        np.arange(STEPS) + 0.5, x[:, 1], where="mid", color="C2", lw=0.8, label="second channel"
    )
    for place in found:
        ax.axvline(place, color="C0", lw=2.5, label="predicted" if place == found[0] else None)
    ax.set_ylabel(f"overlap {1 - problem.loss((begin, end), found):.2f}")
axes[0].legend(ncols=4, fontsize="x-small", loc="upper center")
axes[0].set_ylim(top=7)
axes[-1].set_xlabel("time step")
fig.suptitle(f"Mean overlap {learnt:.2f} on new signals (threshold: {simple:.2f})")
plt.show()
