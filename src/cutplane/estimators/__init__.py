"""Estimators in the scikit-learn API: validate, assemble, call, store.

The package imports none of them: a program loads the modules of those that it uses.
"""
