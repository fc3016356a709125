"""The sections of the cluster benchmark, in the order in which they are run."""

from . import delay, faults, model, rounds, speed

SECTIONS = {
    "speed": speed.run,
    "faults": faults.run,
    "delay": delay.run,
    "model": model.run,
    "rounds": rounds.run,
}

__all__ = ["SECTIONS"]
