"""Svmlight files: ``label [qid:n] [cost:x] index:value … # comment``, one example per line.

The format of SVM-light, libsvm, liblinear and most public data sets. ``load_svmlight`` reads a
file, ``iter_svmlight`` reads a file in chunks and ``dump_svmlight`` writes a file. Numbers are
exact: each decimal number becomes the float64 nearest to it, and a number that is written and read
again has the same bits.

A mistake is a ``ValueError`` that says where it is and what to do about it, for instance
``data.svm:17:23: index 5 follows 7; indices must increase (or pass sort=True)``.
"""

from .read import iter_svmlight, load_svmlight
from .write import dump_svmlight

__all__ = ["dump_svmlight", "iter_svmlight", "load_svmlight"]
