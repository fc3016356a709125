"""Compiled kernels on flat arrays. They import numpy and numba only."""
