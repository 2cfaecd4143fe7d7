"""Which masks of an output folder a run may replace when it goes on: those that it wrote."""

from collections.abc import Mapping
from pathlib import Path

from napari_mamamia.core.case import Mask
from napari_mamamia.core.errors import MamamiaError, SaveConflictError
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.io.files.checked_lines import read_checked_lines
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.services.batch.store import STORE_NAME


def own_masks(out: Path) -> Mapping[str, tuple[str, ...]]:
    """Return the SHA-256 of each mask that the runs in `out` noted, also of earlier versions.

    Raises
    ------
    FormatError
        If the store cannot be read.
    """
    store = out / STORE_NAME
    hashes: dict[str, tuple[str, ...]] = {}
    for entry in read_checked_lines(store) if store.exists() else ():
        result = entry.get("result") if isinstance(entry, dict) else None
        if isinstance(result, dict) and "mask_sha256" in result:
            name = str(entry["case_id"])
            hashes[name] = (*hashes.get(name, ()), str(result["mask_sha256"]))
    return hashes


def require_replaceable(mask: Mask, target: Path, own: tuple[str, ...]) -> None:
    """Refuse to replace a mask that a run going on did not write; an equal one is its own too.

    A run that was killed may have written a mask and not noted it yet.

    Raises
    ------
    SaveConflictError
        If another mask is at `target`; it stays.
    """
    if not target.exists() or sha256_of(target) in own or _is_equal(mask, target):
        return
    raise SaveConflictError(
        f"{target} is not the mask that this run wrote: it was made or changed by something else "
        "since, and was kept; move it away, or replace all masks with --overwrite"
    )


def _is_equal(mask: Mask, target: Path) -> bool:
    try:
        there = read_labels(target)
    except (MamamiaError, OSError):
        return False
    return there.grid.is_same_place(mask.grid) and bool((there.dense() == mask.array).all())
