"""Estimate the cost of running a MONAI bundle from its configs, without MONAI.

Source of shapes and windows: MONAI 1.6.1, data/utils.py (compute_shape_offset, dense_patch_slices)
and inferers/utils.py.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

from napari_mamamia.core.grid import Grid
from napari_mamamia.segmentation.bundle.allowed import SPATIAL
from napari_mamamia.segmentation.bundle.config import Step, Windows, read_config, read_format
from napari_mamamia.segmentation.bundle.files import read_inference, read_metadata
from napari_mamamia.segmentation.bundle.settings import require_meant
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.engine_settings import EngineSettings, TilePlan
from napari_mamamia.segmentation.model.kinds import ModelKind
from napari_mamamia.segmentation.model.nnunet_files import open_files

_PAIRS: Final = ("LR", "PA", "IS")
_FOLLOWED: Final = frozenset(("Orientationd", "Spacingd", "SpatialPadd"))
_SPACING_ARGUMENTS: Final = frozenset(
    ("keys", "pixdim", "mode", "padding_mode", "align_corners", "dtype", "scale_extent", "diagonal",
     "recompute_affine", "allow_missing_keys", "ensure_same_shape", "lazy")
)  # fmt: skip


def tiles_of_bundle(card: ModelCard, settings: EngineSettings, grid: Grid) -> TilePlan | None:
    """Return an upper limit of the cost for a case on `grid`, or None if it is unknown.

    Cropping of empty borders is not considered. The cost is unknown for a different kind of model,
    for a window as large as the volume (whose time differs from that of a tile), and if only MONAI
    can compute the extents after a preprocessing step.

    Raises
    ------
    ModelError
        If the configs cannot be read, or a setting does not apply to a bundle.
    """
    if card.kind is not ModelKind.MONAI_BUNDLE or card.missing:
        return None
    require_meant(settings, card.name)
    files = open_files(card.path)
    config = read_config(read_inference(files))
    data_format = read_format(read_metadata(files), config.where)
    shape = _follow_shape(config.preprocessing, grid)
    windows = _count_windows(shape, config.windows) if shape else None
    if shape is None or windows is None:
        return None
    count, padded = windows
    x, y, z = shape
    return TilePlan(
        tiles=count,
        skipped=0,
        passes=1,
        folds=1,
        model_shape=(z, y, x),
        bytes_needed=bundle_bytes(
            len(data_format.channels), len(data_format.outputs), padded, grid
        ),
    )


def bundle_bytes(inputs: int, outputs: int, padded: Sequence[int], grid: Grid) -> int:
    """Return an upper limit, in bytes, of the memory that a run on `grid` needs.

    `inputs` and `outputs` are the numbers of channels, and `padded` are the extents of the volume
    padded to at least one window.
    """
    voxels, case_voxels = math.prod(padded), math.prod(grid.shape)
    return 4 * (voxels * (2 * inputs + 2 * outputs + 1) + case_voxels * (inputs + 2 * outputs))


def _follow_shape(steps: Sequence[Step], grid: Grid) -> tuple[int, int, int] | None:
    """Return the extents (x, y, z) of the network's input, or None if a step is unsupported."""
    extents, spacing = list(grid.shape[::-1]), list(grid.spacing_mm[::-1])
    letters = grid.orientation
    for step in steps:
        if step.name not in SPATIAL:
            continue
        if step.name not in _FOLLOWED:
            return None
        if step.name == "Orientationd":
            order = _find_order(letters, str(step.argument("axcodes", "")))
            if order is None or letters == "":
                return None
            extents, spacing = [extents[k] for k in order], [spacing[k] for k in order]
            letters = str(step.argument("axcodes"))
        elif step.name == "Spacingd":
            target = _find_spacing(step, spacing)
            if target is None:
                return None
            whole = bool(step.argument("scale_extent", False))
            extents = [
                round(n * s / t) if whole else round((n - 1) * s / t + 1)
                for n, s, t in zip(extents, spacing, target, strict=True)
            ]
            spacing = target
        else:
            size = _make_triple(step.argument("spatial_size"))
            extents = [max(n, k) for n, k in zip(extents, size, strict=True)]
    a, b, c = (max(int(n), 1) for n in extents)
    return (a, b, c)


def _find_order(letters: str, wanted: str) -> list[int] | None:
    """Return the current axis for each axis in `wanted`, or None if these are not letters."""
    order = [
        next((k for k, now in enumerate(letters) if any({now, one} <= set(p) for p in _PAIRS)), -1)
        for one in wanted
    ]
    return order if sorted(order) == [0, 1, 2] else None


def _find_spacing(step: Step, now: Sequence[float]) -> list[float] | None:
    """Return the spacing (x, y, z) after a transform.

    A value of 0 or below keeps the current spacing, as in MONAI.
    """
    strange = {name for name, _ in step.arguments} - _SPACING_ARGUMENTS
    pixdim = _make_triple(step.argument("pixdim"))
    if strange or not all(isinstance(t, int | float) and math.isfinite(t) for t in pixdim):
        return None
    return [float(t) if t > 0 else s for t, s in zip(pixdim, now, strict=True)]


def _count_windows(shape: Sequence[int], windows: Windows) -> tuple[int, tuple[int, ...]] | None:
    """Return the number of windows, and the extents of the volume padded to at least one window."""
    if windows.roi_size is None or min(windows.roi_size) < 1:
        return None
    count, padded = 1, []
    for full, size, share in zip(shape, windows.roi_size, windows.overlap, strict=True):
        extent = max(full, size)
        step = max(int(size * (1 - share)), 1)
        count *= math.ceil((extent - size) / step) + 1
        padded.append(extent)
    return count, tuple(padded)


def _make_triple(value: Any) -> tuple[Any, ...]:
    """Return a triple with one value for each axis, or NaN values if their number is wrong."""
    values = tuple(value) if isinstance(value, list | tuple) else (value,) * 3
    return values if len(values) == 3 else (math.nan,) * 3
