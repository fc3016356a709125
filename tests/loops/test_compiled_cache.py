"""The cache of compiled code: what is wrong in it is compiled again."""

from __future__ import annotations

import numba
import pytest

from cutplane._jit import jit


def twice(x):
    return 2.0 * x


def hits() -> int:
    """Call the function as a new process would; how often the cache was good for it."""
    compiled = jit(twice)
    assert compiled(3.0) == 6.0
    return sum(compiled.stats.cache_hits.values())


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize(
    "damage",
    [lambda old: b"", lambda old: old[: len(old) // 2], lambda old: b"\x00junk" * 9],
    ids=["empty", "cut off", "overwritten"],
)
def test_a_damaged_cache_is_built_anew(tmp_path, monkeypatch, suffix, damage):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert hits() == 0
    assert hits() == 1
    files = list(tmp_path.rglob(f"*.{suffix}"))
    assert files
    for file in files:
        file.write_bytes(damage(file.read_bytes()))
    assert hits() == 0
    assert hits() == 1
