"""The files benchmark: text that is read, data that are larger than memory."""

from ..runner import Suite
from . import out_of_core, reader, start
from .readers import PEERS

SECTIONS = {
    "reader": reader.run,
    "out-of-core": out_of_core.run,
    "splice": out_of_core.run_splice,
    "start": start.run,
}

SUITE = Suite("files", __doc__, SECTIONS, tuple(PEERS))
