"""The cluster benchmark: workers against threads, faults, delays, the cost model."""

from ..runner import Suite
from . import delay, faults, model, rounds, speed

SECTIONS = {
    "speed": speed.run,
    "faults": faults.run,
    "delay": delay.run,
    "model": model.run,
    "rounds": rounds.run,
}

SUITE = Suite("cluster", __doc__, SECTIONS, ("threads",), defaults={"repeats": 3})
