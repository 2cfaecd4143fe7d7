"""Check the untrusted masks of a submission before they are used or displayed.

A link could point outside the submission's folder, a pipe could block forever, and a small file
could unpack to a huge one. Each of these is rejected.
"""

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from napari_mamamia.core.case import Mask
from napari_mamamia.core.errors import MamamiaError, ModelError
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.core.names import readable_name
from napari_mamamia.io.data_set.volumes import read_header, read_labels
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.segmentation.sandbox.external import printable, require_plain_file

MASKS: Final = "pred_segmentations"

_HEADER_ROOM: Final = 2**20
_BLOCK: Final = 2**20
_GZIP: Final = 16 + zlib.MAX_WBITS
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, eq=False)
class CheckedMask:
    """A mask that satisfies the challenge's contract; `notes` describe unusual properties."""

    mask: Mask
    notes: tuple[str, ...] = ()


@reads("the mask of a submission", "inspect it", ModelError)
def take_mask(output: Path, case_id: str, grid: Grid) -> CheckedMask:
    """Return the mask that a submission wrote for a case, on the case's own grid.

    Parameters
    ----------
    output
        The output folder of the submission; the mask is ``pred_segmentations/ID.nii.gz``.
    case_id
        The id of the case.
    grid
        The grid of the case.

    Raises
    ------
    ModelError
        If the file is missing, a link, too large, damaged, on a different grid, not of an integer
        type,
        or contains values other than 0 and 1.
    """
    path = _mask_file(output, case_id)
    require_plain_file(path)
    with _as_breach(case_id, output):
        header = read_header(path)
        require_same_grid(header.grid, grid, f"the submission's mask of {case_id}", "the case")
    if header.n_volumes != 1:
        raise ModelError(_mask_text(case_id, "one volume", f"{header.n_volumes} volumes"))
    if header.dtype.kind not in "iub":
        raise ModelError(_mask_text(case_id, "uint8 voxels", f"{header.dtype}"))
    _require_bounded(path, int(np.prod(grid.shape)) * header.stored.itemsize + _HEADER_ROOM)
    with _as_breach(case_id, output):
        labels = read_labels(path)
    wrong = [value for value in labels.values if value != 1]
    if wrong:
        listed = ", ".join(f"{value:g}" for value in wrong[:_SHOWN])
        raise ModelError(_mask_text(case_id, "0 and 1 only", f"also {listed}"))
    notes = []
    if header.dtype != np.uint8:
        notes.append(f"stored as {header.dtype}, not uint8: saved as uint8")
    if not labels.values:
        notes.append("the mask is empty")
    dense = labels.mask(1)
    return CheckedMask(Mask(grid, dense.array), tuple(notes))


def _mask_file(output: Path, case_id: str) -> Path:
    folder = output / MASKS
    if folder.is_symlink() or not folder.is_dir():
        raise ModelError(
            f"expected the submission's output folder to contain {MASKS}/{case_id}.nii.gz, but it "
            f"has no folder {MASKS}: create this folder in predict_segmentation"
        )
    path = folder / f"{case_id}.nii.gz"
    if not os.path.lexists(path):
        names = sorted(readable_name(entry.name) for entry in folder.iterdir())
        there = printable(", ".join(names[:_SHOWN])) if names else "nothing"
        raise ModelError(
            f"expected the submission to write {MASKS}/{case_id}.nii.gz, but found {there}: name "
            "each mask exactly like the patient id"
        )
    return path


def _require_bounded(path: Path, most: int) -> None:
    """Raise `ModelError` if a gzip file unpacks to more than `most` bytes."""
    inflater, total = zlib.decompressobj(_GZIP), 0
    with path.open("rb") as stream:
        data = stream.read(_BLOCK)
        if data[:2] != b"\x1f\x8b":
            return
        # A damaged file is reported by the reader afterwards.
        with suppress(zlib.error):
            while data:
                total += len(inflater.decompress(data, _BLOCK))
                if total > most:
                    raise ModelError(
                        f"expected {path.name} to unpack to at most {most} bytes, but it contains "
                        "more: it was not read further; write the mask on the image's own grid"
                    )
                if inflater.eof:
                    data = inflater.unused_data
                    inflater = zlib.decompressobj(_GZIP)
                else:
                    data = inflater.unconsumed_tail
                data = data or stream.read(_BLOCK)


def _mask_text(case_id: str, expected: str, came: str) -> str:
    return (
        f"expected the mask of {case_id} to have {expected}, but found {came}: write uint8 "
        "voxels, 0 for background and 1 for tumour, with the image's geometry"
    )


@contextmanager
def _as_breach(case_id: str, folder: Path) -> Iterator[None]:
    """Convert an error in reading a mask to a contract violation without the folder's path."""
    try:
        yield
    except MamamiaError as error:
        text = str(error).replace(f"{folder}{os.sep}", "")
        raise ModelError(f"the mask of {case_id} is not as required: {text}") from error
