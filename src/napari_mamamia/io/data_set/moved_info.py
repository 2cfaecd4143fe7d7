"""Transform the boxes in a MAMA-MIA patient JSON to a reoriented volume."""

from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.reorientation import Reorientation
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.tables.tables import write_json

_SIDES: Final = tuple(f"{axis}_{end}" for axis in "xyz" for end in ("min", "max"))
_KEPT: Final = ("patient_id", "acquisition_times")


@reads("the JSON of a patient", "correct, replace or remove the file")
def write_moved_info(
    source: Path, turn: Reorientation, path: Path, *, overwrite: bool = False
) -> int:
    """Write the boxes and times of a patient JSON for a reoriented volume.

    The function returns the number of boxes. Every object with ``x_min`` to ``z_max`` is a block of
    the (z, y, x) array (in `io.data_set.patient_info`, the file's "x" is our z). It becomes the
    block of the reoriented array that contains the same voxels. Apart from the boxes, only the id
    and the acquisition times are written; age, subtype and other patient data are not exported.

    Raises
    ------
    FormatError
        If `source` cannot be read, or a box lies outside the volume.
    SaveConflictError, SaveError
        If the file exists, or cannot be written.
    """
    try:
        content = read_json(source)
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(
            f"cannot read {source} as JSON ({error}); replace or remove the file"
        ) from error
    moved, n_boxes = _move_value(content, turn, source)
    write_json({} if moved is None else moved, path, overwrite=overwrite)
    return n_boxes


def _move_value(value: Any, turn: Reorientation, source: Path) -> tuple[Any, int]:
    if isinstance(value, list):
        parts = [_move_value(item, turn, source) for item in value]
        entries = [part for part, _ in parts if part is not None]
        return (entries or None), sum(n for _, n in parts)
    if not isinstance(value, dict):
        return None, 0
    if all(isinstance(value.get(side), int | float) for side in _SIDES):
        return _moved_box(value, turn, source), 1
    out: dict[str, Any] = {}
    count = 0
    for key, item in value.items():
        part, n = (item, 0) if key in _KEPT else _move_value(item, turn, source)
        if part is not None:
            out[key] = part
        count += n
    return (out or None), count


def _moved_box(sides: dict[str, Any], turn: Reorientation, source: Path) -> dict[str, int]:
    low, high = ([int(sides[f"{axis}_{end}"]) for axis in "xyz"] for end in ("min", "max"))
    shape = turn.source.shape
    if any(not 0 <= a <= b <= n for a, b, n in zip(low, high, shape, strict=True)):
        raise FormatError(
            f"expected a box inside the volume of shape {shape} (z, y, x) in {source}, but it "
            f"extends from {low} to {high}: correct the box, or export the patient info again"
        )
    box = turn.box(Box((low[0], low[1], low[2]), (high[0], high[1], high[2])))
    return {
        f"{axis}_{end}": value
        for axis, a, b in zip("xyz", box.start, box.stop, strict=True)
        for end, value in (("min", a), ("max", b))
    }
