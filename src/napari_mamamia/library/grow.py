"""`grow` segments a lesion from a click, a box, an outline or a rough mask."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Corners, box_of
from napari_mamamia.core.case import Mask
from napari_mamamia.core.errors import ArgumentError, CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.mask_arrays import MaskLike, mask_array
from napari_mamamia.library.argument_words import advising_arguments
from napari_mamamia.library.case import Case
from napari_mamamia.library.predict import voxel_of
from napari_mamamia.library.progress import drive
from napari_mamamia.smartpaint.brush.features import FeatureImages, measure_features
from napari_mamamia.smartpaint.evidence.outlined import grow_outlines
from napari_mamamia.smartpaint.evidence.regrow import grow_again
from napari_mamamia.smartpaint.grow.click import grow_from_click
from napari_mamamia.smartpaint.grow.grow import Grown
from napari_mamamia.smartpaint.grow.prompts import grow_from_box
from napari_mamamia.smartpaint.grow.start import Outline


@dataclass(frozen=True, slots=True, eq=False)
class Growth:
    """A segmented lesion: `mask` is on the case's grid, and `notes` are sentences to read."""

    mask: Mask
    notes: tuple[str, ...] = ()


@advising_arguments
def grow(
    case: Case,
    *,
    click: tuple[int, int, int] | None = None,
    box: Corners | None = None,
    outline: Outline | Sequence[Outline] | None = None,
    mask: MaskLike | None = None,
    progress: bool = True,
) -> Growth:
    """Segment a lesion in 3-D from a click, a box, an outline or a rough mask.

    Pass exactly one of `click`, `box`, `outline` and `mask`.

    Parameters
    ----------
    case
        The case, such as ``data_set["ID"]``.
    click
        A voxel ``(z, y, x)`` inside the lesion.
    box
        A box around the lesion, as its first voxel and the voxel after its last, each ``(z, y,
        x)``. The mask does not extend outside the box.
    outline
        One or more ``Outline(axis, index, inside)``. `inside` is a boolean plane that is True
        inside the outline, and `index` is the position of the plane along array axis `axis` (0 for
        z, 1 for y, 2 for x). In these planes, the mask follows the outline.
    mask
        A rough mask, such as a prediction, which is grown or shrunk to the nearest edge.
    progress
        Whether to show a progress bar.

    Returns
    -------
    Growth
        The result. ``.mask`` is a `Mask`, which is empty if no lesion is found; ``.notes`` are
        sentences.

    Raises
    ------
    ArgumentError
        If not exactly one of the four arguments is passed, or it has the wrong type.
    CaseError
        If the case cannot be opened, or the outline or mask is empty.

    Examples
    --------
    >>> mm.grow(case, click=(31, 120, 88)).mask.volume_mm3  # doctest: +SKIP
    1934.0
    """
    if not isinstance(case, Case):
        raise ArgumentError(
            f"expected a case, but got {type(case).__name__}: pass one such as  "
            'data_set["DUKE_001"]'
        )
    given = {"click": click, "box": box, "outline": outline, "mask": mask}
    asked = [name for name, value in given.items() if value is not None]
    if len(asked) != 1:
        raise ArgumentError(
            "expected exactly one of click, box, outline and mask, but got "
            f"{', '.join(asked) or 'none'}: pass one of them"
        )
    grid = case.grid
    start = _convert_start(case, asked[0], given[asked[0]])
    images = drive(partial(measure_features, case.read()), progress)
    grown = drive(partial(_run_growth, asked[0], start, images, grid), progress)
    array = np.zeros(grid.shape, np.bool_)
    array[grown.box.slices] = grown.mask
    return Growth(Mask(grid, array), grown.notes)


def _convert_start(case: Case, kind: str, value: Any) -> Any:
    if kind == "click":
        return voxel_of(value, case)
    if kind == "box":
        return box_of(value, case.grid.shape)
    if kind == "mask":
        start = mask_array(value, "the mask", case.grid)
        if not start.any():
            raise CaseError(
                "expected a mask with foreground voxels, but the mask of "
                f"{case.case_id} is empty: pass a click or a box"
            )
        return start
    outlines = (value,) if isinstance(value, Outline) else tuple(value)
    if not outlines or not all(isinstance(outline, Outline) for outline in outlines):
        raise ArgumentError(
            f"expected one or more outlines, but got {value!r}: pass Outline(axis, index, inside) "
            "or a list of them"
        )
    return tuple(
        Outline(outline.axis, outline.index, _convert_outline(outline)) for outline in outlines
    )


def _convert_outline(outline: Outline) -> NDArray[np.bool_]:
    plane: NDArray[np.bool_] = mask_array(np.asarray(outline.mask)[np.newaxis], "the outline")[0]
    return plane


def _run_growth(kind: str, start: Any, images: FeatureImages, grid: Grid) -> Grown:
    if kind == "click":
        return grow_from_click(images, grid, start)
    if kind == "box":
        return grow_from_box(images, grid, start)
    if kind == "mask":
        return grow_again(images, grid, start.view(np.uint8), np.zeros(grid.shape, np.uint16), 1)
    return grow_outlines(images, grid, start)
