"""Convert a case to the input of a recipe's model, and labels back to the case."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError, ModelError, Remedy
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import report_progress
from napari_mamamia.kinetics.map_blocks import percent_enhancement, ratio_recipe
from napari_mamamia.kinetics.timing import choose_image_phases
from napari_mamamia.segmentation.model.nnunet_geometry import header_spacing
from napari_mamamia.segmentation.model.postprocess import BreastArea
from napari_mamamia.segmentation.model.recipe import Normalise, Recipe, RegionKind, Scope

_LOOKED_AT: Final = 1_000_000  # voxels used to check the order of phases
_SLAB: Final = 8
_SPLINE: Final = 3
_EXTENT_TOLERANCE_MM: Final = 1e-5
"""Tolerance in mm per voxel that is added to the volume's size before rounding.

Source: VICTORIA-project/MAMA-MIA_Challenge 7f3619f, preprocessing/src/preprocessing.py,
resample_sitk (`tol`), which is taken from the data set's repository.
"""
_AXIS_OF: Final = dict(zip("LRPAIS", (0, 0, 1, 1, 2, 2), strict=True))

Volumes = tuple[NDArray[Any], ...]
Respacing = tuple[tuple[float, ...], tuple[float, ...]]
"""Spacing in mm along (z, y, x) before and after resampling."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelInput:
    """The input of a network for one case.

    `arrays` are on `grid`, and `crop` is the box cropped from the case. `region` is the box of
    `grid` that the network uses; None stands for the whole grid. `notes` are shown to the user. If
    the recipe resamples, `spacing_mm` is the spacing of the case and of `grid` along (z, y, x), as
    in the files.
    """

    arrays: Volumes
    grid: Grid
    crop: Box
    region: Box | None = None
    notes: tuple[str, ...] = ()
    spacing_mm: "Respacing | None" = None


def channel_names(recipe: Recipe, channels: int) -> tuple[str, ...]:
    """Return the expression for each channel; by default, channel k is phase k.

    Parameters
    ----------
    recipe
        The recipe of the model.
    channels
        Number of channels of the model.

    Raises
    ------
    ModelError
        If the recipe and the model have different numbers of channels.
    """
    if not recipe.channels:
        return tuple(f"p{k}" for k in range(channels))
    if len(recipe.channels) != channels:
        raise ModelError(
            f"expected the recipe to make {count_of(channels, 'channel')}, as the model has, but "
            f"it makes {len(recipe.channels)} ({', '.join(recipe.channels)}); correct the recipe"
        )
    return recipe.channels


def model_input(
    case: Case,
    recipe: Recipe,
    channels: int,
    breast: BreastArea | None = None,
    look_in: Box | None = None,
) -> ModelInput:
    """Return the input of a model for a case.

    Parameters
    ----------
    case
        The case with all its phases.
    recipe
        The recipe of the model.
    channels
        Number of channels of the network.
    breast
        The breast; needed if the recipe uses only the breast.
    look_in
        A box of the case to which the result is limited; replaces the breast.

    Raises
    ------
    CaseError
        If the case has too few phases.
    ModelError
        If the recipe does not fit the model, the breast is missing, or it is not specified which of
        several phases a single-channel model needs.
    """
    names = channel_names(recipe, channels)
    _require_channel(case, recipe, channels)
    case.require_phases(phases_needed(names, recipe))
    arrays = []
    for index, name in enumerate(names):
        report_progress(index, len(names), f"Channel {index}: {name}")
        arrays.append(channel_image(case, name, recipe.whole_numbers))
    box = Box.whole(case.grid.shape)
    region = look_in
    if recipe.region is not RegionKind.WHOLE:
        if breast is None:
            raise ModelError(
                "the recipe uses only the breast, but the position of the breast is missing; "
                "provide the mask or box of the breast"
            )
        reach = [round(recipe.margin_mm / s) for s in case.grid.spacing_mm]
        around = breast.box.grown(reach, case.grid.shape)
        if recipe.region is RegionKind.CROP:
            box, region, arrays = around, None, [array[around.slices] for array in arrays]
        else:
            region = around if look_in is None else look_in
    if recipe.normalise is not None:
        report_progress(0, 1, "Normalising over the phases")
        arrays = list(_normalise_arrays(arrays, case, box, recipe.normalise))
    grid = _part_of(case.grid, box)
    spacing_mm = _find_respacing(case.grid, recipe)
    if spacing_mm is not None:
        fine = _respace_grid(grid, spacing_mm)
        for place, array in enumerate(arrays):
            arrays[place] = _resample_array(array, fine.shape, spacing_mm)
        region = None if region is None else _box_on(region, spacing_mm, fine)
        grid = fine
    warning = phase_order_warning(case)
    notes = (warning,) if warning else ()
    return ModelInput(tuple(arrays), grid, box, region, notes, spacing_mm)


def input_grid(grid: Grid, recipe: Recipe, breast: Box | None = None) -> tuple[Grid, Box | None]:
    """Return the grid of a model's input for a case, and the box that the network uses.

    `model_input` returns the same grid and box. Without `breast`, the whole volume is used.

    Parameters
    ----------
    grid
        The grid of the case.
    recipe
        The recipe of the model.
    breast
        Bounding box of the breast, or None.
    """
    box, region = Box.whole(grid.shape), None
    if breast is not None and recipe.region is not RegionKind.WHOLE:
        reach = [round(recipe.margin_mm / s) for s in grid.spacing_mm]
        around = breast.grown(reach, grid.shape)
        if recipe.region is RegionKind.CROP:
            box = around
        else:
            region = around
    spacing_mm = _find_respacing(grid, recipe)
    crop_grid = _part_of(grid, box)
    if spacing_mm is None:
        return crop_grid, region
    fine = _respace_grid(crop_grid, spacing_mm)
    return fine, None if region is None else _box_on(region, spacing_mm, fine)


def labels_on_case(labels: NDArray[Any], made: ModelInput, grid: Grid) -> NDArray[Any]:
    """Return labels ``(z, y, x)`` on the case's `grid` by nearest-neighbour interpolation.

    Voxels outside the label volume become background. Source: ITK's nearest-neighbour
    interpolation, which rounds halves up and extends an image by half a voxel beyond its outermost
    voxel centres.
    """
    if made.spacing_mm is not None:
        crop_labels = np.zeros(made.crop.shape, dtype=labels.dtype)
        places = [
            _places_within(n, m, case_mm, model)
            for n, m, case_mm, model in zip(
                made.crop.shape, labels.shape, *made.spacing_mm, strict=True
            )
        ]
        near = [np.floor(place + 0.5).astype(np.intp) for place in places]
        crop_labels[tuple(slice(len(place)) for place in places)] = labels[np.ix_(*near)]
        labels = crop_labels
    if made.crop.shape == grid.shape:
        return labels
    whole: NDArray[Any] = np.zeros(grid.shape, dtype=labels.dtype)
    whole[made.crop.slices] = labels
    return whole


def _require_channel(case: Case, recipe: Recipe, channels: int) -> None:
    """Raise `ModelError` if a single-channel model does not state which phase it needs."""
    if not recipe.channels and channels == 1 and len(case.phases) > 1:
        # Phase 0 is without contrast: a tumour model that received it would silently find nothing.
        raise ModelError(
            f"expected the model or its recipe to state which of the {len(case.phases)} phases, "
            "or which subtraction, is the model's only channel, but neither does",
            remedies=(
                Remedy("recipe", ("first_post",)),
                Remedy("recipe", ("p1-p0",)),
                Remedy("recipe", ("p0",)),
            ),
        )


def phase_order_warning(case: Case) -> str:
    """Return a warning if phase 1 is not brighter than phase 0 on average, otherwise "".

    Contrast agent makes tissue brighter. If the phases are in reverse order, a trained model finds
    no tumour and gives no warning.
    """
    if len(case.phases) < 2:
        return ""
    step = max(round((case.signal[0].size / _LOOKED_AT) ** (1 / 3)), 1)
    before, after = (float(case.signal[k, ::step, ::step, ::step].mean()) for k in (0, 1))
    if after > before:
        return ""
    return (
        f"phase 1 is not brighter than phase 0 (mean {after:.4g} and {before:.4g}): the phases "
        "may be in the wrong order, in which case a trained model finds no tumour"
    )


def phases_needed(names: Sequence[str], recipe: Recipe) -> int:
    """Return the number of phases that a case needs for the given channel expressions.

    Parameters
    ----------
    names
        The channel expressions.
    recipe
        The recipe of the model.
    """
    needed = 1 if recipe.normalise is None else 2
    for name in names:
        for number in re.findall(r"p(\d+)", name):
            needed = max(needed, int(number) + 1)
        if "post" in name or name.startswith("pe"):
            needed = max(needed, 2)
        if name == "ser":
            needed = max(needed, 3)
    return needed


def _find_phase(case: Case, name: str) -> int:
    if name == "first_post":
        return 1
    return len(case.phases) - 1 if name == "last_post" else int(name[1:])


def channel_image(case: Case, name: str, whole_numbers: bool = False) -> NDArray[Any]:
    """Return one channel ``(z, y, x)`` before normalisation.

    Parameters
    ----------
    case
        The case, or a crop of the case; each voxel depends only on the same voxel of the phases.
    name
        An expression as in `Recipe.channels`. PE is in percent; phases and differences are in the
        signal's own unit. Undefined PE and SER values become 0.
    whole_numbers
        As in `Recipe`.
    """
    if name == "ser":
        choice = choose_image_phases(case)
        ratio: NDArray[np.float32] = ratio_recipe(choice).fill(case.signal)
        return np.nan_to_num(ratio, nan=0.0, posinf=0.0, neginf=0.0)
    if name.startswith("pe"):
        phase = _find_phase(case, name[3:-1]) if "(" in name else 1
        return np.nan_to_num(percent_enhancement(case.signal, phase), nan=0.0)
    parts = [case.signal[_find_phase(case, one)] for one in name.split("-")]
    if len(parts) == 1:
        phase_as_it_is: NDArray[Any] = parts[0]
        return phase_as_it_is
    kind = np.int16 if whole_numbers else np.float32
    difference: NDArray[Any] = parts[0].astype(kind) - parts[1].astype(kind)
    return difference


def _normalise_arrays(
    arrays: Sequence[NDArray[Any]], case: Case, box: Box, how: Normalise
) -> Iterator[NDArray[np.float32]]:
    shared = None
    if how.scope is Scope.ALL:
        shared = _compute_statistics(case.signal[(slice(None), *box.slices)])
    elif how.scope is Scope.PRE:
        shared = _compute_statistics(case.signal[0][box.slices])
    for array in arrays:
        clipped = _clip_percentiles(array, how)
        mean, std = _compute_statistics(clipped) if shared is None else shared
        yield (clipped - np.float32(mean)) / np.float32(std)


def _compute_statistics(values: NDArray[Any]) -> tuple[float, float]:
    mean = float(values.mean(dtype=np.float64))
    std = float(values.std(dtype=np.float64))
    if not std > 0:
        raise CaseError(
            f"every voxel of the images has the value {mean:g}; choose the images of the case"
        )
    return mean, std


def _clip_percentiles(array: NDArray[Any], how: Normalise) -> NDArray[np.float32]:
    out: NDArray[np.float32] = array.astype(np.float32)
    if how.percentiles is not None:
        looked_at = out[out != 0] if how.nonzero else out
        if looked_at.size:
            low, high = np.percentile(looked_at, how.percentiles)
            np.clip(out, low, high, out=out)
    return out


def _part_of(grid: Grid, box: Box) -> Grid:
    if box.shape == grid.shape:
        return grid
    affine = grid.affine.copy()
    affine[:3, 3] = grid.to_world_mm(box.start)
    return Grid(box.shape, affine)


def _find_respacing(grid: Grid, recipe: Recipe) -> Respacing | None:
    """Return the spacings of the case and the recipe along the case's axes, or None."""
    spacing = recipe.spacing_mm
    axes = "" if recipe.network is None else recipe.network.orientation
    if spacing is None:
        return None
    case_mm = header_spacing(grid)
    if not axes:
        return case_mm, spacing
    along = {_AXIS_OF[letter]: s for letter, s in zip(axes, spacing, strict=True)}
    return case_mm, tuple(along[_AXIS_OF[letter]] for letter in grid.orientation[::-1])


def _respace_grid(grid: Grid, spacing_mm: Respacing) -> Grid:
    """Return a grid with a different spacing but the same first voxel centre.

    The size is rounded after a hundredth of a micrometre is added to each voxel, as in the
    preprocessing of the MAMA-MIA data set.
    """
    shape = [
        max(round(n * (s + _EXTENT_TOLERANCE_MM) / t), 1)
        for n, s, t in zip(grid.shape, *spacing_mm, strict=True)
    ]
    factors = [t / s for s, t in zip(grid.spacing_mm, spacing_mm[1], strict=True)]
    affine = grid.affine.copy()
    affine[:3, :3] *= factors[::-1]
    return Grid((shape[0], shape[1], shape[2]), affine)


def _resample_array(
    array: NDArray[Any], shape: Sequence[int], spacing_mm: Respacing
) -> NDArray[np.float32]:
    """Return an array resampled at new voxel centres by cubic B-splines with mirrored edges.

    Voxel centres half a voxel or more outside the volume become 0, as in ITK's resampling.
    """
    report_progress(0, shape[0], "Resampling to the recipe's spacing")
    knots = ndimage.spline_filter(array.astype(np.float32), _SPLINE, np.float32, mode="mirror")
    steps = [b / a for a, b in zip(*spacing_mm, strict=True)]
    out = np.zeros(tuple(shape), dtype=np.float32)
    depth, height, width = (
        len(_places_within(m, n, b, a))
        for m, n, a, b in zip(shape, array.shape, *spacing_mm, strict=True)
    )
    for first in range(0, depth, _SLAB):
        slab = out[first : min(first + _SLAB, depth), :height, :width]
        ndimage.affine_transform(
            knots,
            steps,
            offset=(first * steps[0], 0.0, 0.0),
            output_shape=slab.shape,
            output=slab,
            order=_SPLINE,
            mode="mirror",
            prefilter=False,
        )
        report_progress(first, shape[0], "Resampling to the recipe's spacing")
    return out


def _places_within(n: int, among: int, step_mm: float, spacing_mm: float) -> NDArray[np.float64]:
    """Return the positions of up to `n` centres `step_mm` apart, in voxels of `spacing_mm`.

    The first position is the centre of the first voxel, and all positions are inside a volume of
    `among` voxels.
    """
    places: NDArray[np.float64] = np.arange(n, dtype=np.float64) * step_mm / spacing_mm
    return places[places < among - 0.5]


def _box_on(box: Box, spacing_mm: Respacing, fine: Grid) -> Box:
    scale = [a / b for a, b in zip(*spacing_mm, strict=True)]
    start = [min(int(a * f), n) for a, f, n in zip(box.start, scale, fine.shape, strict=True)]
    stop = [min(int(b * f) + 1, n) for b, f, n in zip(box.stop, scale, fine.shape, strict=True)]
    return Box((start[0], start[1], start[2]), (stop[0], stop[1], stop[2]))
