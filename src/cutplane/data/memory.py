"""How much memory data may take: the free memory of the machine, or less in a container."""

from __future__ import annotations

import os
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_UNLIMITED = 1 << 60
_VECTORS = 4  # as long as the weights, in every fit: w, the best w, the trial, the gradient
_SHARE = 0.5  # of the available memory: other programs use the page cache, too


def available_memory() -> int:
    """Bytes that this process can still take without swapping or exceeding a container's limit."""
    return min(_machine(), _container())


def data_budget() -> int:
    """Bytes of mapped data that may stay in memory between two passes."""
    return int(_SHARE * available_memory())


def check_weights(features: int, outputs: int) -> None:
    """Refuse a model whose weights do not fit into memory; the cause is often a wrong index."""
    need = _VECTORS * 8 * features * outputs
    if need > (there := available_memory()):
        raise ValueError(
            f"numbers for each of {features} features, times {outputs} for the outputs, take at "
            f"least {need / 2**30:.0f} GiB, and {there / 2**30:.1f} GiB of memory are free; is an "
            "index of the data wrong? max_features finds it when the data are read"
        )


def _machine() -> int:
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, OSError, ValueError):
        return 1 << 31


def _container() -> int:
    """The least memory that this process's control group, or one above it, has left."""
    left = _UNLIMITED
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return left
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers == "":
            root, limit, usage = _GROUPS, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root = _GROUPS / "memory"
            limit, usage = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        folder = root / name.lstrip("/")
        for group in (folder, *folder.parents):
            if not group.is_relative_to(root):
                break
            left = min(left, _left_in(group, limit, usage))
    return left


def _left_in(folder: Path, limit: str, usage: str) -> int:
    try:
        most = int((folder / limit).read_text())
        used = int((folder / usage).read_text())
        # The system can free pages of files at any time, so they count as free.
        for line in (folder / "memory.stat").read_text().splitlines():
            name, number = line.split()
            if name in ("inactive_file", "active_file"):
                used -= int(number)
        return max(0, most - max(0, used))
    except (OSError, ValueError):  # "max", or no such group
        return _UNLIMITED
