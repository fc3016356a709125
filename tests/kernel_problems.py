"""Problems in their kernel forms, written as users write them, and brute force for them."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.pairwise import rbf_kernel

from cutplane.structured import Problem

GAMMA = 0.5


def permutations(x) -> list[np.ndarray]:
    return [np.array(z) for z in itertools.permutations(range(len(x)))]


class Matching(Problem):
    """Bipartite matching: x[i, j] has the features of the edge from i to j, y[i] is i's partner.

    Staying at one's own number has a plain weight.
    """

    def parts(self, x):
        return x.reshape(-1, x.shape[2])

    def part_coefficients(self, x, y):
        coef = np.zeros(x.shape[:2])
        coef[np.arange(len(y)), y] = 1.0
        return coef.reshape(-1, 1)

    def plain_feature(self, x, y):
        return np.array([np.sum(np.asarray(y) == np.arange(len(y)))], dtype=float)

    def joint_feature(self, x, y):
        return np.append(x[np.arange(len(y)), y].sum(axis=0), self.plain_feature(x, y))

    def loss(self, y, z):
        return float(np.mean(np.asarray(y) != z))

    def best(self, x, score, bonus):
        table, own = score.parts.reshape(x.shape[:2]), score.w[0]
        return linear_sum_assignment(table + own * np.eye(len(x)) + bonus, maximize=True)[1]

    def most_violated(self, x, y, score):
        wrong = np.full(x.shape[:2], 1.0 / len(y))
        wrong[np.arange(len(y)), y] = 0.0
        return self.best(x, score, wrong)

    def predict(self, x, score):
        return self.best(x, score, 0.0)


def matchings(seed=0, sizes=(1, 2, 3, 3, 2, 3, 2, 2)):
    """Edges are good if their features are near a circle."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(n, n, 2)) for n in sizes]
    Y = []
    for x in X:
        worth = -np.abs(np.linalg.norm(x, axis=2) - 1.0) + 0.2 * rng.normal(size=x.shape[:2])
        Y.append(linear_sum_assignment(worth, maximize=True)[1])
    return X, Y


def explicit(X):
    """Features of the RBF kernel on the edges of all tables: their products are its values."""
    edges = np.concatenate([x.reshape(-1, x.shape[2]) for x in X])
    factor = np.linalg.cholesky(rbf_kernel(edges, gamma=GAMMA) + 1e-13 * np.eye(len(edges)))
    ends = np.cumsum([len(x) ** 2 for x in X])[:-1]
    return [f.reshape(len(x), len(x), -1) for f, x in zip(np.split(factor, ends), X, strict=True)]
