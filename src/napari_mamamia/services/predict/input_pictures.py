"""Thumbnails of a model's input channels in one slice."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.case import Case
from napari_mamamia.core.counting import phase_and_time, phase_name
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.kinetics.timing import PhaseChoice
from napari_mamamia.segmentation.model.recipe import Recipe
from napari_mamamia.segmentation.model.recipe_input import (
    channel_image,
    phase_order_warning,
    phases_needed,
)
from napari_mamamia.segmentation.run.planned import PlannedSegmenter

LARGEST_PIXELS: Final = 96
"""Length in pixels of a thumbnail's longer side, so that several fit next to each other."""

_WINDOW: Final = (1.0, 99.0)
"""Percentiles displayed as black and white, which clips bright vessels. Our choice."""


@dataclass(frozen=True, slots=True)
class InputChannel:
    """One input channel: its name in the model, its expression, and a description.

    `expression` is "" if there is no thumbnail; `text` then gives the reason.
    """

    name: str
    expression: str
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class InputPicture:
    """The thumbnail of a channel, uint8 ``(row, column)``, in the display orientation.

    `low` and `high` are the channel values displayed as black and white. `low`, `high` and `pixels`
    are None for a channel without a thumbnail.
    """

    channel: InputChannel
    pixels: NDArray[np.uint8] | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class InputPictures:
    """The thumbnails of one slice, the slice's index along the slice axis, and a warning, or ""."""

    pictures: tuple[InputPicture, ...]
    slice_index: int
    warning: str = ""


def model_channels(segmenter: PlannedSegmenter, n_before: int = 1) -> tuple[InputChannel, ...]:
    """Return the input channels of a trained model, such as "channel 0 DCE_pre: pre".

    `n_before` is the number of phases before contrast.
    """
    return tuple(
        InputChannel(
            name, expression, f"channel {number} {name} ← {_in_words(expression, n_before)}"
        )
        for number, (name, expression) in enumerate(segmenter.channels())
    )


def kinetic_channels(case: Case, choice: PhaseChoice) -> tuple[InputChannel, ...]:
    """Return the input channels of the kinetic segmenter: before contrast, early, late."""
    named: tuple[tuple[str, int | None], ...] = (
        ("before contrast", 0),
        ("early", choice.early),
        ("late", choice.late),
    )
    return tuple(
        InputChannel(name, "", f"no {name} phase")
        if phase is None
        else InputChannel(name, f"p{phase}", f"{name} ← {_phase_text(case, phase)}")
        for name, phase in named
    )


def shared_channels(
    each: Sequence[Sequence[InputChannel]], n_before: int = 1
) -> tuple[InputChannel, ...]:
    """Return the input channels of several models, with each expression once, in order of use.

    `n_before` is the number of phases before contrast.
    """
    used = dict.fromkeys(
        channel.expression for channels in each for channel in channels if channel.expression
    )
    return tuple(
        InputChannel("", expression, _in_words(expression, n_before)) for expression in used
    )


def input_pictures(
    case: Case,
    channels: Sequence[InputChannel],
    *,
    whole_numbers: bool = False,
    slice_index: int | None = None,
) -> InputPictures:
    """Return the thumbnails of one slice of a case.

    Parameters
    ----------
    case
        The case with all its phases.
    channels
        The channels to show; see `model_channels` and `kinetic_channels`.
    whole_numbers
        As in `Recipe`.
    slice_index
        The slice index along the acquisition axis. None, or an index outside the volume, selects
        the central slice. Only this slice is computed.

    Raises
    ------
    CaseError
        If a channel needs a phase that the case does not have or that has not been read yet.
    """
    case.require_phases(phases_needed([channel.expression for channel in channels], Recipe()))
    part, index = _one_slice(case, slice_index)
    pictures = []
    for number, channel in enumerate(channels):
        report_progress(number, len(channels) + 1, f"Picture of {channel.text}")
        if not channel.expression:
            pictures.append(InputPicture(channel, None))
            continue
        image = channel_image(part, channel.expression, whole_numbers)
        pictures.append(_make_picture(channel, image, part.grid))
    report_progress(len(channels), len(channels) + 1, "Comparing phase 1 with phase 0")
    return InputPictures(tuple(pictures), index, phase_order_warning(case))


def _one_slice(case: Case, wanted: int | None) -> tuple[Case, int]:
    """Return the case cropped to one slice, and the slice's index along the slice axis."""
    axis = case.grid.display_frame().order[0]
    count = case.grid.shape[axis]
    index = count // 2 if wanted is None or not 0 <= wanted < count else wanted
    cut: list[slice] = [slice(None)] * 3
    cut[axis] = slice(index, index + 1)
    start = [0, 0, 0]
    start[axis] = index
    affine = case.grid.affine.copy()
    affine[:3, 3] = case.grid.to_world_mm(start)
    signal = case.signal[(slice(None), *cut)]
    z, y, x = signal.shape[1:]
    return replace(case, grid=Grid((z, y, x), affine), signal=signal), index


def _make_picture(channel: InputChannel, made: NDArray[Any], grid: Grid) -> InputPicture:
    shown = _turn_upright(made, grid)
    low, high = (float(value) for value in np.percentile(shown, _WINDOW))
    scale = 255.0 / (high - low) if high > low else 0.0
    pixels = np.clip((shown - low) * scale, 0, 255).round().astype(np.uint8)
    return InputPicture(channel, pixels, low, high)


def _turn_upright(made: NDArray[Any], grid: Grid) -> NDArray[np.float32]:
    """Resample a slice to square pixels in display orientation, up to `LARGEST_PIXELS` per side.

    Each pixel is a mean over its area, so no detail between two pixels is lost.
    """
    frame = grid.display_frame()
    plane = np.nan_to_num(frame.to_display(made)[0].astype(np.float32))
    spacing = frame.per_axis(grid.spacing_mm)[1:]
    extent = [n * mm for n, mm in zip(plane.shape, spacing, strict=True)]
    pixel_mm = max(max(extent) / LARGEST_PIXELS, min(spacing))
    shares = [max(round(pixel_mm / mm), 1) for mm in spacing]
    smooth = ndimage.uniform_filter(plane, size=shares, mode="nearest")
    rows, columns = (
        _find_centres(n, mm / pixel_mm) for n, mm in zip(plane.shape, spacing, strict=True)
    )
    pixels: NDArray[np.float32] = smooth[np.ix_(rows, columns)]
    return pixels


def _find_centres(voxels: int, pixels_per_voxel: float) -> NDArray[np.intp]:
    """Return the index of the voxel that contains the centre of each pixel."""
    pixels = max(round(voxels * pixels_per_voxel), 1)
    places = (np.arange(pixels) + 0.5) * voxels / pixels
    return np.minimum(places.astype(np.intp), voxels - 1)


def _in_words(expression: str, n_before: int) -> str:
    """Return a channel's expression in words, for example "post 1 - pre" for ``p1-p0``."""
    parts = [
        phase_name(int(one[1:]), n_before) if one[1:].isdigit() else one
        for one in expression.split("-")
    ]
    return " - ".join(part.replace("_", " ") for part in parts)


def _phase_text(case: Case, phase: int) -> str:
    return phase_and_time(phase, case.times_s[phase] if phase else None, case.n_before)
