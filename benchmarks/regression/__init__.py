"""The regression benchmark: support vector regression, quantiles, Huber's loss."""

from ..runner import Suite
from . import speed
from .peers import PEERS
from .problems import DATA

SECTIONS = {name: speed.section(name) for name in DATA}

SUITE = Suite(
    "regression",
    __doc__,
    SECTIONS,
    tuple(PEERS),
    usual_peers=tuple(PEERS),
    defaults={"repeats": 3, "tight_seconds": 30.0, "peer_seconds": 20.0},
    resumable=tuple(SECTIONS),
)
