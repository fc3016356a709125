"""Executors: who runs a function over the blocks. Knows no mathematics."""

from .executors import Executor, SerialExecutor, ThreadExecutor, available_threads, make_executor

__all__ = ["Executor", "SerialExecutor", "ThreadExecutor", "available_threads", "make_executor"]
