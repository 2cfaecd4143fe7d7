"""Conversion of a library function's mask argument to a Boolean array.

The argument is an array or a `Mask`. No assumptions are made: probabilities are not thresholded,
labels are not merged, and axes are not permuted.
"""

from typing import Any, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Mask
from napari_mamamia.core.errors import ArgumentError, GridMismatchError
from napari_mamamia.core.grid import Grid, require_same_grid
from napari_mamamia.core.names import count_of


class HasMask(Protocol):
    """The result of a prediction or a growth, which has a mask."""

    @property
    def mask(self) -> Mask:
        """The mask of the result."""


MaskLike: TypeAlias = NDArray[Any] | Mask | HasMask
"""A mask: an array ``(z, y, x)`` (bool, or 0 and one other value), a `Mask`, or a result with one.
"""

_MOST_LABELS: Final = 64
"""Largest number of distinct values in a mask; an array with more values is an image."""


def mask_array(given: MaskLike, name: str, grid: Grid | None = None) -> NDArray[np.bool_]:
    """Return the foreground of a mask as a boolean array ``(z, y, x)``.

    Parameters
    ----------
    given
        The mask; see `MaskLike`. Floating-point values are accepted if they are whole numbers, as
        from nibabel.
    name
        The name of the mask in errors, such as "the reference".
    grid
        The grid that the mask must have; None if only its shape is known.

    Raises
    ------
    ArgumentError
        If the mask is not an array, or has NaN, probabilities, an image or several labels.
    GridMismatchError
        If the mask is on a different grid.
    """
    values = label_array(given, name, grid)
    if values.dtype == np.bool_:
        return values
    foreground: NDArray[np.bool_] = values != 0
    labels = np.unique(values[foreground])
    if len(labels) > 1:
        listed = ", ".join(f"{label:g}" for label in labels[:5])
        raise ArgumentError(
            f"expected {name} to have one label, but it has {len(labels)} ({listed}): select one, "
            f"for example `mask == {labels[0]:g}`"
        )
    return foreground


def label_array(given: MaskLike, name: str, grid: Grid | None = None) -> NDArray[Any]:
    """Return the labels of a mask as a Boolean or integer array ``(z, y, x)``."""
    record = mask_in(given)
    if record is not None:
        if grid is not None:
            require_same_grid(record.grid, grid, name, "the grid passed")
        return record.array
    values = _require_array(given, name)
    _require_shape(values, name, grid)
    return values if values.dtype == np.bool_ else _require_whole_labels(values, name)


def grid_of(grid: Grid | None, *masks: MaskLike) -> Grid | None:
    """Return `grid` if it is given, otherwise the grid of the first `Mask`, or None.

    Raises
    ------
    ArgumentError
        If `grid` is not a `Grid`.
    """
    if grid is not None and not isinstance(grid, Grid):
        raise ArgumentError(
            f"expected grid to be a Grid, but got {type(grid).__name__}: create one with  "
            "Grid(array.shape, affine)  or  Grid.of_spacing(array.shape, (z, y, x) in mm)"
        )
    held = (mask_in(mask) for mask in masks)
    return grid or next((mask.grid for mask in held if mask is not None), None)


def mask_in(given: object) -> Mask | None:
    """Return the `Mask` in a prediction or growth, or the `Mask` itself; None for other values."""
    mask = given if isinstance(given, Mask) else getattr(given, "mask", None)
    return mask if isinstance(mask, Mask) else None


def _require_array(given: object, name: str) -> NDArray[Any]:
    if hasattr(given, "get_fdata"):
        raise ArgumentError(
            f"expected {name} to be an array (z, y, x) or a Mask, but got {type(given).__name__}, "
            "whose axes are (x, y, z): convert it with `from_nibabel(image)`"
        )
    if hasattr(given, "GetSpacing") and hasattr(given, "GetDirection"):
        raise ArgumentError(
            f"expected {name} to be an array (z, y, x) or a Mask, but got SimpleITK's "
            f"{type(given).__name__}: write it with `SimpleITK.WriteImage(image, path)` and pass "
            "the path, or pass `SimpleITK.GetArrayFromImage(image)` and a grid"
        )
    if hasattr(given, "signal"):
        raise ArgumentError(
            f"expected {name} to be a mask, but got the case {given!r}: pass `case.reference` or "
            "the result of predict()"
        )
    if given is None or isinstance(given, str | bytes) or hasattr(given, "__fspath__"):
        raise ArgumentError(
            f"expected {name} to be an array (z, y, x) or a Mask, but got {given!r}: read a file "
            "with `read_mask(path)`"
        )
    values: NDArray[Any] = np.asarray(given)
    if values.dtype.kind not in "biuf":
        raise ArgumentError(
            f"expected {name} to have bool or numeric values, but got {type(given).__name__} of "
            f"type {values.dtype}: pass the mask's array"
        )
    return values


def _require_shape(values: NDArray[Any], name: str, grid: Grid | None) -> None:
    if values.ndim != 3:
        raise ArgumentError(
            f"expected {name} to be an array (z, y, x), but got shape {values.shape}: pass one "
            "volume"
        )
    if grid is None or values.shape == grid.shape:
        return
    turned = values.shape == grid.shape[::-1]
    what = "its axes look like (x, y, z): pass mask.T" if turned else "pass the mask of this image"
    raise GridMismatchError(
        f"expected {name} to have the shape {grid.shape} (z, y, x), but it has {values.shape}: "
        f"{what}"
    )


def _require_whole_labels(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Return `values` if they are integer labels; otherwise raise `ArgumentError`."""
    if values.dtype.kind == "f":
        bad = values.size - int(np.count_nonzero(np.isfinite(values)))
        if bad:
            raise ArgumentError(
                f"expected {name} to have only finite values, but found "
                f"{count_of(bad, 'voxel')} with NaN or infinity: replace these values, for example "
                "with `np.nan_to_num(mask)`"
            )
        if np.any(values != np.floor(values)):
            raise ArgumentError(
                f"expected {name} to have whole numbers, but it has values such as "
                f"{_find_fraction(values):.4g} (from {values.min():.4g} to {values.max():.4g}): "
                "apply a threshold to probabilities yourself, such as `probability >= 0.5`"
            )
    if values.size and values.min() < 0:
        raise ArgumentError(
            f"expected {name} to have no labels below 0, but its smallest value is "
            f"{values.min():g}, so it looks like an image: pass the mask"
        )
    labels = np.unique(values)
    if len(labels) > _MOST_LABELS:
        raise ArgumentError(
            f"expected {name} to have few labels, but it has {len(labels):,} different values up "
            f"to {labels[-1]:g} and looks like an image: pass the mask"
        )
    return values


def _find_fraction(values: NDArray[Any]) -> float:
    return float(values[values != np.floor(values)][0])
