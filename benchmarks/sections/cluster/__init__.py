"""The sections of the cluster benchmark, in the order in which they are run."""

from . import delay, faults, model, speed

SECTIONS = {
    "speed": speed.run,
    "faults": faults.run,
    "delay": delay.run,
    "model": model.run,
}

__all__ = ["SECTIONS"]
