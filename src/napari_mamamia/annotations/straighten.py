"""Replace a sheared grid with one that has perpendicular axes, and resample volumes onto it."""

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress

_MOST_TIMES: Final = 8
_SLAB_VOXELS: Final = 2_000_000


def straight_grid(grid: Grid) -> Grid:
    """Return the grid with perpendicular axes that is nearest to `grid` and covers it.

    Its directions are the nearest orthogonal matrix, its spacing is unchanged, and its centre is
    the centre of the block that contains every voxel. A grid that is not sheared is returned
    unchanged.

    Source: the orthogonal factor of the polar decomposition is the nearest in the Frobenius norm
    (Higham 1986, SIAM J. Sci. Stat. Comput. 7(4):1160).

    Raises
    ------
    CaseError
        If the shear is so large that the block has more than 8 times as many voxels.
    """
    if not grid.is_sheared:
        return grid
    spacing = np.array(grid.spacing_mm)[::-1]
    u, _, vt = np.linalg.svd(grid.affine[:3, :3] / spacing)
    directions = u @ vt
    sides = [(-0.5, n - 0.5) for n in grid.shape[::-1]]
    corners = np.array(np.meshgrid(*sides, indexing="ij")).reshape(3, -1)
    along = directions.T @ (grid.affine[:3, :3] @ corners + grid.affine[:3, 3:])
    low, high = along.min(axis=1), along.max(axis=1)
    # Rounding must not add a slice.
    counts = np.maximum(1, np.ceil((high - low) / spacing - 1e-6)).astype(int)
    if math.prod(map(int, counts)) > _MOST_TIMES * math.prod(grid.shape):
        raise CaseError(
            "expected only slightly sheared axes, but a perpendicular block around this volume "
            f"would have {' x '.join(map(str, counts[::-1]))} voxels (z, y, x) instead of "
            f"{grid.shape}: check the affine, or export the volume again from the scanner's data"
        )
    first = (low + high - (counts - 1) * spacing) / 2
    affine = np.eye(4)
    affine[:3, :3] = directions * spacing
    affine[:3, 3] = directions @ first
    x, y, z = (int(n) for n in counts)
    # Rounded as NIfTI stores it, so that the file read back has this very grid.
    return Grid((z, y, x), affine.astype(np.float32).astype(np.float64))


def straightened_phase(volume: NDArray[Any], grid: Grid, target: Grid, text: str) -> NDArray[Any]:
    """Return a phase ``(z, y, x)`` resampled onto `target`, in its original data type.

    Interpolation is trilinear, and whole numbers are rounded. Outside `grid`, voxels have the
    smallest value of the phase. `text` is the text of the progress reports.
    """
    least = float(volume.min())
    out = np.empty(target.shape, volume.dtype)
    for start, stop in _list_slabs(target.shape):
        report_progress(start, len(out), text)
        values = _resample_slab(volume, grid, target, (start, stop), order=1, outside=least)
        out[start:stop] = np.rint(values) if volume.dtype.kind in "iu" else values
    return out


def straightened_labels(labels: NDArray[Any], grid: Grid, target: Grid) -> NDArray[Any]:
    """Return labels ``(z, y, x)`` on `target` by nearest neighbour; 0 outside `grid`."""
    out = np.zeros(target.shape, labels.dtype)
    for start, stop in _list_slabs(target.shape):
        out[start:stop] = _resample_slab(labels, grid, target, (start, stop), order=0, outside=0)
    return out


def _resample_slab(
    volume: NDArray[Any],
    grid: Grid,
    target: Grid,
    slab: tuple[int, int],
    *,
    order: int,
    outside: float,
) -> NDArray[Any]:
    start, stop = slab
    steps = np.linalg.inv(grid.matrix_mm) @ target.matrix_mm
    first = grid.to_voxel(target.to_world_mm((start, 0, 0)))
    moved: NDArray[Any] = ndimage.affine_transform(
        volume,
        steps,
        first,
        (stop - start, *target.shape[1:]),
        output=volume.dtype if order == 0 else np.float64,
        order=order,
        mode="constant",
        cval=outside,
    )
    return moved


def _list_slabs(shape: tuple[int, int, int]) -> list[tuple[int, int]]:
    thick = max(1, _SLAB_VOXELS // math.prod(shape[1:]))
    return [(start, min(start + thick, shape[0])) for start in range(0, shape[0], thick)]
