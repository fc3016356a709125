"""The kernels benchmark: SVC against libsvm and others, and SVM-light's tables."""

from ..runner import Suite
from . import memory, optimum, parts, small, speed, svmlight, warm, wide
from .solvers import PEERS

SECTIONS = {
    "optimum": optimum.run,
    "svmlight": svmlight.run,
    "parts": parts.run,
    "speed": speed.run,
    "wide": wide.run,
    "small": small.run,
    "memory": memory.run,
    "warm": warm.run,
}

SUITE = Suite(
    "kernels",
    __doc__,
    SECTIONS,
    tuple(PEERS),
    usual_peers=tuple(PEERS),
    resumable=("wide",),
    defaults={"repeats": 3, "peer_seconds": 30.0, "tight_seconds": 30.0},
)
