"""The foundation benchmark: what the first release promises, measured."""

from ..runner import Suite
from ..solvers import PEERS
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

SUITE = Suite("foundation", __doc__, SECTIONS, tuple(PEERS))
