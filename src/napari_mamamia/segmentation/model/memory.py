"""The computer's memory in numbers, for estimates and messages."""

import os
from contextlib import suppress
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")


def free_memory_bytes() -> int | None:
    """Return the memory that programs can still have, None where nothing tells it.

    Source: proc_meminfo(5), MemAvailable in KiB.
    """
    with suppress(OSError, ValueError, IndexError):
        for line in _MEMINFO.read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def total_memory_bytes() -> int | None:
    """Return the computer's memory, None where nothing tells it."""
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def memory_text(peak_bytes: int | None) -> str:
    """Return what a process had at its peak and what is free, as far as it is known."""
    free, total = free_memory_bytes(), total_memory_bytes()
    parts = []
    if peak_bytes is not None:
        parts.append(f"it had {peak_bytes / 1e9:.1f} GB at its peak")
    if free is not None and total is not None:
        parts.append(f"{free / 1e9:.1f} of {total / 1e9:.1f} GB are free now")
    return ", ".join(parts) or "its memory is not known"
