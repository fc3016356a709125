"""The sections of the files benchmark, in the order in which they are run."""

from . import out_of_core, reader

SECTIONS = {
    "reader": reader.run,
    "out-of-core": out_of_core.run,
    "splice": out_of_core.run_splice,
}

__all__ = ["SECTIONS"]
