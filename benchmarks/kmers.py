"""Sequences of letters as sparse rows."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

LONGEST_KMER = 3


def positional_kmers(letters: np.ndarray, longest: int = LONGEST_KMER) -> sp.csr_matrix:
    """Indicators of every k-mer at every position, k = 1, …, longest; rows of length 1.

    The features of the weighted degree kernel, all k alike. A k-mer with a letter
    other than A, C, G and T has no feature.

    Parameters
    ----------
    letters : ndarray of uint8, shape (rows, positions)
        ASCII codes.
    """
    codes = np.full(256, -1, np.int32)
    codes[np.frombuffer(b"ACGT", np.uint8)] = np.arange(4)
    number = codes[letters]
    rows, positions = number.shape
    columns, known, first = [], [], 0
    for k in range(1, longest + 1):
        places = positions - k + 1
        kmer, ok = np.zeros((rows, places), np.int32), np.ones((rows, places), bool)
        for j in range(k):
            part = number[:, j : j + places]
            kmer = 4 * kmer + part
            ok &= part >= 0
        columns.append(first + 4**k * np.arange(places, dtype=np.int32) + kmer)
        known.append(ok)
        first += 4**k * places
    column, kept = np.hstack(columns), np.hstack(known)
    sizes = kept.sum(axis=1)
    values = np.repeat(1.0 / np.sqrt(np.maximum(sizes, 1)), sizes).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return sp.csr_matrix((values, column[kept], starts), (rows, first))
