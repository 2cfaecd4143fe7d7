"""The computer's memory in words, for messages."""

from napari_mamamia.core.system import free_memory_bytes, total_memory_bytes


def memory_text(peak_bytes: int | None) -> str:
    """Return what a process had at its peak and what is free, as far as it is known."""
    free, total = free_memory_bytes(), total_memory_bytes()
    parts = []
    if peak_bytes is not None:
        parts.append(f"it had {peak_bytes / 1e9:.1f} GB at its peak")
    if free is not None and total is not None:
        parts.append(f"{free / 1e9:.1f} of {total / 1e9:.1f} GB are free now")
    return ", ".join(parts) or "its memory is not known"
