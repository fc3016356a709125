"""The sections of the kernels benchmark, in the order in which they are run."""

from . import memory, optimum, parts, small, speed, svmlight, warm

SECTIONS = {
    "optimum": optimum.run,
    "svmlight": svmlight.run,
    "parts": parts.run,
    "speed": speed.run,
    "small": small.run,
    "memory": memory.run,
    "warm": warm.run,
}

__all__ = ["SECTIONS"]
