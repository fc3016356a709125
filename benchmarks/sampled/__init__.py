"""The sampled-cuts benchmark: kernels on many rows."""

from ..runner import Suite
from . import crossing, growth, limits, peers, samples, stabilised, table

SECTIONS = {
    "table": table.run,
    "growth": growth.run,
    "samples": samples.run,
    "stabilised": stabilised.run,
    "peers": peers.run,
    "limits": limits.run,
    "crossing": crossing.run,
}

SUITE = Suite(
    "sampled",
    __doc__,
    SECTIONS,
    ("scikit-learn",),
    resumable=("table", "limits", "crossing"),
    defaults={"peer_seconds": 120.0, "tight_seconds": 180.0},
)
