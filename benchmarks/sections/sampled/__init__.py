"""Sections of the sampled-cuts benchmark."""

from . import growth, limits, peers, samples, stabilised, table

SECTIONS = {
    "table": table.run,
    "growth": growth.run,
    "samples": samples.run,
    "stabilised": stabilised.run,
    "peers": peers.run,
    "limits": limits.run,
}
