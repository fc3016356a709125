"""Decomposition for kernel machines: working set, cache, shrinking, certificate."""
