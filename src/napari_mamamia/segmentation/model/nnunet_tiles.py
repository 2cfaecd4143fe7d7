"""Run a network tile by tile over a volume, with the same tile positions as nnU-Net.

Tiles overlap. Each output is weighted by a Gaussian and added to half-precision sums in nnU-Net's
order, so that the sums equal those of nnU-Net bit for bit. On a GPU, a thread prepares the next
tile; it ends with the loop, so that nothing keeps running after a cancellation. Source: nnunetv2
2.8.1, inference/sliding_window_prediction.py and predict_from_raw_data.py; padding: acvl_utils
0.2.6, cropping_and_padding/padding.py.
"""

import itertools
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import Progress, forward_progress, report_progress
from napari_mamamia.segmentation.model.device import (
    convolutions_tuned,
    free_bytes,
    lacks_memory,
    release_memory,
)
from napari_mamamia.segmentation.model.nnunet_geometry import (
    model_frame,
    resampled_box,
    tile_starts,
)
from napari_mamamia.segmentation.model.nnunet_plans import Plans
from napari_mamamia.segmentation.model.planner import OutOfMemoryError

Forward = Callable[[Any], Any]
"""A network as a function from a batch of one tile to its outputs.

The batch is float32 ``(1, channel, ...)``; the outputs are float32 of the same size.
"""

Weigh = Callable[[tuple[int, ...], str], Any]
"""A function from a patch size and a device to the weight of each voxel in a tile."""

_SIGMA: Final = 1 / 8
_SCALE: Final = 10
"""Width of the Gaussian as a fraction of the patch (1/10), and its maximum value (10)."""


class TimeIsUp(Exception):  # noqa: N818 - an outcome, not a fault
    """Raised when the time limit is reached during a pass, whose sums are then discarded."""


@dataclass(frozen=True, slots=True)
class TileGrid:
    """The positions of the tiles in a padded volume.

    `shape` is the size of the volume before padding and `padded` its size after padding. `offset`
    is the position of the volume in the padded volume. `places` are the index ranges of the tiles
    to compute, and `skipped` is the number of tiles that are not computed.
    """

    shape: tuple[int, int, int]
    padded: tuple[int, int, int]
    offset: tuple[int, int, int]
    patch: tuple[int, ...]
    places: tuple[tuple[Any, ...], ...]
    skipped: int

    @property
    def inner(self) -> tuple[slice, slice, slice]:
        """Index that selects the original volume in the padded volume."""
        a, b, c = (slice(o, o + n) for o, n in zip(self.offset, self.shape, strict=True))
        return (a, b, c)


def tile_grid(
    shape: Sequence[int], patch: Sequence[int], step: float, region: Box | None = None
) -> TileGrid:
    """Return the tiles of a volume; with `region`, return only tiles that overlap this box.

    The tile positions are the same in both cases, so the result inside the region is the same too.
    A two-dimensional patch is applied to each slice along the first axis.

    Parameters
    ----------
    shape
        Size of the volume in voxels.
    patch
        Size of a tile in voxels.
    step
        Distance between tiles as a fraction of the patch size.
    region
        Box to which the result is limited, or None.
    """
    flat = len(patch) == 2
    whole = (1, *patch) if flat else tuple(patch)
    padded = tuple(max(n, p) for n, p in zip(shape, whole, strict=True))
    offset = tuple((p - n) // 2 for n, p in zip(shape, padded, strict=True))
    starts = tile_starts(padded[1:], patch, step) if flat else tile_starts(padded, patch, step)
    if flat:
        starts = [list(range(padded[0])), *starts]
    every = list(itertools.product(*starts))
    inner_starts = [start for start in every if _is_in_region(start, whole, offset, region)]
    a, b, c = (int(n) for n in shape)
    return TileGrid(
        (a, b, c),
        (padded[0], padded[1], padded[2]),
        (offset[0], offset[1], offset[2]),
        tuple(patch),
        tuple(_index_tile(start, patch) for start in inner_starts),
        len(every) - len(inner_starts),
    )


def region_tiles(
    shape: Sequence[int],
    plans: Plans,
    step: float,
    grid: Grid,
    region: Box | None,
    crop: Box | None = None,
) -> TileGrid:
    """Return the tiles of a case, on the model's grid, that overlap a box of the case.

    Parameters
    ----------
    shape
        Size of the resampled volume in voxels.
    plans
        The plans of the model.
    step
        Distance between tiles as a fraction of the patch size.
    grid
        The grid of the case.
    region
        Box to which the result is limited; None returns all tiles.
    crop
        Box along the model's axes that was cropped from the case and resampled to `shape`; None
        stands for the whole case.
    """
    patch = plans.configuration.patch
    if region is None:
        return tile_grid(shape, patch, step)
    frame = model_frame(grid, plans)
    inside = frame.box_to_model(region, grid)
    return tile_grid(
        shape, patch, step, resampled_box(inside, crop or Box.whole(frame.shape), shape)
    )


def flips_of(axes: Sequence[int], most: int | None = None) -> tuple[tuple[int, ...], ...]:
    """Return, for each mirrored copy, the set of batch axes along which it is flipped.

    If `most` limits the number of copies, the last axes are used.

    Parameters
    ----------
    axes
        Axes along which copies may be mirrored.
    most
        Maximum number of copies, including the original tile; None for all.
    """
    n_axes = len(axes) if most is None else min(most.bit_length() - 1, len(axes))
    moved = [axis + 2 for axis in axes[len(axes) - n_axes :]]
    return tuple(
        chosen for n in range(len(moved)) for chosen in itertools.combinations(moved, n + 1)
    )


def sum_tiles(
    forward: Forward,
    data: Any,
    grid: TileGrid,
    heads: int,
    *,
    flips: Sequence[tuple[int, ...]] = (),
    device: str = "cpu",
    sums_on: str = "cpu",
    deadline: float | None = None,
    text: str = "Predicting",
    weigh: Weigh | None = None,
) -> Any:
    """Return the weighted mean of a network's outputs as a tensor ``(heads, a, b, c)``.

    Parameters
    ----------
    forward
        The network.
    data
        ``(channel, a, b, c)`` float32 tensor on the CPU.
    grid
        The result of `tile_grid` for this size.
    heads
        Number of outputs.
    flips
        Mirrored copies to average in addition to the original tile; see `flips_of`.
    device, sums_on
        The devices of the network and of the sums. If the GPU memory is too small, the sums are
        moved
        to the CPU and the same tile is repeated.
    deadline
        Value of ``time.monotonic()`` after which no tile is started.
    text
        Progress text before the number of the tile.
    weigh
        Function that returns the weight of each voxel of a tile; the sums have the same precision.
        None uses `gaussian` in half precision.

    Raises
    ------
    TimeIsUp
        If the deadline is reached.
    ModelError
        If a sum is NaN or infinite (damaged weights, or outputs too large for half precision).
    OutOfMemoryError
        If a tile does not fit into the GPU memory.
    """
    data = _pad_image(data, grid)
    sums = _Sums(grid, heads, sums_on, weigh or gaussian)
    copies = len(flips) + 1
    total = len(grid.places) * copies
    with convolutions_tuned(device), closing(_cut_tiles(data, grid.places, device)) as tiles:
        for number, (place, tile) in enumerate(zip(grid.places, tiles, strict=True)):
            message = f"{text}: tile {number + 1} of {len(grid.places)}"
            output = None
            while output is None:
                progress = Progress(number * copies, total, message)
                try:
                    given = tile.to(device, non_blocking=True)
                    output = _sum_copies(forward, given, flips, progress, deadline)
                except (RuntimeError, MemoryError) as error:
                    if not lacks_memory(error):
                        raise
                    if not sums.moved_to_processor():
                        raise OutOfMemoryError(_no_memory(device, tile)) from error
                    release_memory(device)
            sums.add(output, place, copies)
            if device == "cuda":  # a GPU computes later: progress and deadline would run ahead
                torch.cuda.synchronize()
            # After the last tile the pass is complete and counts, however late it is.
            _require_time(deadline if number + 1 < len(grid.places) else None)
    report_progress(total, total, text)
    return sums.mean()


def _cut_tiles(
    data: Any, places: Sequence[tuple[Any, ...]], device: str
) -> Generator[Any, None, None]:
    """Yield the tiles; for a GPU, prepare each tile while the previous tile is computed."""

    def cut(place: tuple[Any, ...]) -> Any:
        tile = data[place][None].clone(memory_format=torch.contiguous_format)
        return tile.pin_memory() if device == "cuda" else tile

    if device != "cuda":
        yield from map(cut, places)
        return
    with ThreadPoolExecutor(1) as pool:
        waiting = [pool.submit(cut, place) for place in places[:1]]
        for following in (*places[1:], None):
            tile = waiting.pop().result()
            if following is not None:
                waiting.append(pool.submit(cut, following))
            yield tile


class _Sums:
    """Weighted sums of outputs, and sums of weights, in the precision of the weights."""

    def __init__(self, grid: TileGrid, heads: int, device: str, weigh: Weigh) -> None:
        self._grid, self._weigh = grid, weigh
        try:
            self._allocate(heads, device)
        except (RuntimeError, MemoryError) as error:
            if device == "cpu" or not lacks_memory(error):
                raise
            release_memory(device)
            self._allocate(heads, "cpu")

    def _allocate(self, heads: int, device: str) -> None:
        self._importance = self._weigh(self._grid.patch, device)
        kind = self._importance.dtype
        self._sums = torch.zeros((heads, *self._grid.padded), dtype=kind, device=device)
        self._weights = torch.zeros(self._grid.padded, dtype=kind, device=device)

    def moved_to_processor(self) -> bool:
        """Move the sums from the GPU to the CPU; return False if they were on the CPU already."""
        if self._sums.device.type == "cpu":
            return False
        self._sums, self._weights = self._sums.cpu(), self._weights.cpu()
        self._importance = self._weigh(self._grid.patch, "cpu")
        return True

    def add(self, output: Any, place: tuple[Any, ...], copies: int) -> None:
        """Add the mean output of a tile's `copies` copies at the tile's position."""
        with torch.no_grad():
            if copies > 1:
                output /= copies
            tile = output[0].to(self._sums.device)
            tile *= self._importance
            self._sums[place] += tile
            self._weights[place[1:]] += self._importance

    def mean(self) -> Any:
        """Return the sums divided by the weights, on the CPU and without the padding."""
        if self._grid.skipped:  # voxels that no tile covers become background: every output 0
            self._weights[self._weights == 0] = 1
        for total in self._sums:
            torch.div(total, self._weights, out=total)
            require_finite(total)
        return self._sums[(slice(None), *self._grid.inner)].cpu()


def require_finite(outputs: Any) -> None:
    """Raise `ModelError` if outputs are NaN or infinite, because these define no labels.

    NaN compares as "not above background", so a broken network would seem to find no tumour.
    """
    if bool(torch.isfinite(outputs).all()):
        return
    strange = int((~torch.isfinite(outputs)).sum())
    raise ModelError(
        f"expected all outputs of the network to be below 65504, but {strange} of "
        f"{outputs.numel()} are NaN or infinite; the weights are damaged, the images differ from "
        "the training images, or the model needs its own software"
    )


@lru_cache(maxsize=4)
def gaussian(patch: tuple[int, ...], device: str) -> Any:
    """Return the half-precision weight of each voxel of a tile, above 0 and at most 10.

    Parameters
    ----------
    patch
        Size of a tile in voxels.
    device
        ``"cpu"``, ``"cuda"`` or ``"mps"``.
    """
    half = torch.from_numpy(gaussian_peak(patch)).to(device=device, dtype=torch.half)
    half[half == 0] = torch.min(half[half != 0])
    return half


def gaussian_peak(patch: tuple[int, ...]) -> NDArray[np.float64]:
    """Return a Gaussian centred in a tile, with a maximum of at most 10."""
    peak = np.zeros(patch)
    peak[tuple(n // 2 for n in patch)] = 1
    weight = gaussian_filter(peak, [n * _SIGMA for n in patch], 0, mode="constant", cval=0)
    weight /= np.max(weight) / _SCALE
    values: NDArray[np.float64] = weight
    return values


def _sum_copies(
    forward: Forward,
    tile: Any,
    flips: Sequence[tuple[int, ...]],
    done: Progress,
    deadline: float | None,
) -> Any:
    """Return the sum of the outputs for a tile and its mirrored copies."""
    forward_progress(done)
    output = forward(tile)
    for number, axes in enumerate(flips, start=1):
        report_progress(done.done + number, done.total, done.text)
        _require_time(deadline)
        output += torch.flip(forward(torch.flip(tile, axes)), axes)
    return output


def _no_memory(device: str, tile: Any) -> str:
    free = free_bytes(device)
    left = "an unknown amount" if free is None else f"{free / 1e9:.1f} GB"
    return (
        f"expected a tile of {' x '.join(map(str, tile.shape[2:]))} voxels to fit into the memory "
        f"of {device}, but only {left} is free after the sums were moved to the CPU; close other "
        "programs that use the GPU, or choose the device cpu"
    )


def _pad_image(data: Any, grid: TileGrid) -> Any:
    if grid.padded == grid.shape:
        return data
    ends = [(o, p - n - o) for o, n, p in zip(grid.offset, grid.shape, grid.padded, strict=True)]
    widths = [width for pair in reversed(ends) for width in pair]
    return torch.nn.functional.pad(data, widths, "constant", 0)


def _index_tile(start: Sequence[int], patch: Sequence[int]) -> tuple[Any, ...]:
    cut = [slice(s, s + p) for s, p in zip(start[-len(patch) :], patch, strict=True)]
    return (slice(None), *start[: 3 - len(patch)], *cut)


def _is_in_region(
    start: Sequence[int], patch: Sequence[int], offset: Sequence[int], region: Box | None
) -> bool:
    if region is None:
        return True
    return all(
        s < stop + o and s + p > first + o
        for s, p, o, first, stop in zip(
            start, patch, offset, region.start, region.stop, strict=True
        )
    )


def _require_time(deadline: float | None) -> None:
    if deadline is not None and time.monotonic() >= deadline:
        raise TimeIsUp
