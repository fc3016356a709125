"""The sections of the foundation benchmark, in the order in which they are run."""

from . import iterations, latency, memory, objectives, position, speed, threads

SECTIONS = {
    "iterations": iterations.run,
    "objectives": objectives.run,
    "speed": speed.run,
    "threads": threads.run,
    "latency": latency.run,
    "memory": memory.run,
    "position": position.run,
}

__all__ = ["SECTIONS"]
