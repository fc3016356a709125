"""Fits on the workers of a Dask cluster: everything that knows Dask is here.

A worker holds some of the rows (or sequences, or examples) and does what orders say. A round sends
the same few orders to every worker and gets all answers. Solvers and objectives know nothing of it:
they get a matrix, or a model of structured outputs, whose passes are rounds.

    executor     what a user gives as ``executor``
    orders       what is said to a worker
    session      the worker's side: a plugin of Dask's worker, and what it holds for one fit
    workers      the client's side: connections, rounds, recovery
    rows, chains, examples
                 the orders for linear models, for chains, and for other structured outputs
    partitions   Dask arrays, dataframes and files

Importing this package imports no Dask.
"""
