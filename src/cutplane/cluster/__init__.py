"""Fits on the workers of a Dask cluster. No other folder knows Dask.

Each worker holds some of the rows (or sequences, or examples). The client sends orders to workers:
a function and its arguments. A round sends the same few orders to every worker and collects all
answers. Solvers and objectives do not know of workers. They get a matrix, or a model of structured
outputs, and each pass over it is a round.

    executor     the values that a user may pass as ``executor``
    orders       the messages between client and workers
    session      the worker's side: a plugin of Dask's worker, and what it holds for one fit
    workers      the client's side: connections, rounds, recovery
    rows, chains, examples
                 the orders for linear models, for chains, and for other structured outputs
    partitions   Dask arrays, dataframes and files

Importing this package imports no Dask.
"""
