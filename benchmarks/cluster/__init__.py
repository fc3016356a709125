"""The cluster benchmark: workers against threads, faults, delays, many features, the cost model."""

from ..runner import Suite
from . import delay, faults, model, rounds, speed, wide

SECTIONS = {
    "speed": speed.run,
    "faults": faults.run,
    "delay": delay.run,
    "model": model.run,
    "rounds": rounds.run,
    "wide": wide.run,
}

SUITE = Suite("cluster", __doc__, SECTIONS, ("threads",), defaults={"repeats": 3})
