"""MONAI's sliding window with progress after every step, cancellation and a time limit.

Windows, weights, batches and the order of sums are MONAI's, so that the result is bit-identical.
Source: MONAI 1.6.1, inferers/utils.py, sliding_window_inference.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from monai.data.utils import compute_importance_map, dense_patch_slices
from torch.nn.functional import pad

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.segmentation.bundle.config import Windows
from napari_mamamia.segmentation.model.nnunet_tiles import require_finite

Slices = tuple[slice, slice, slice]
Forward = Callable[[Any], Any]

_WHOLE: Final = (-1, -1, -1)


class WindowTimeIsUp(Exception):  # noqa: N818 - an outcome, not a fault
    """The time limit was reached; the result is incomplete and is not used."""


@dataclass(frozen=True, slots=True)
class WindowGrid:
    """The positions of windows in a padded volume, all extents along (x, y, z).

    `groups` are the windows that go through the network together, `every` all windows of the
    volume; `skipped` windows are not computed. `offset` is the position of the volume in the padded
    one.
    """

    shape: tuple[int, int, int]
    padded: tuple[int, int, int]
    offset: tuple[int, int, int]
    size: tuple[int, int, int]
    groups: tuple[tuple[Slices, ...], ...]
    every: tuple[Slices, ...]

    @property
    def count(self) -> int:
        """Number of computed windows."""
        return sum(len(group) for group in self.groups)

    @property
    def skipped(self) -> int:
        """Number of windows that are not computed."""
        return len(self.every) - self.count


def window_grid(shape: Sequence[int], windows: Windows, region: Box | None = None) -> WindowGrid:
    """Return the windows of a volume; with `region`, only the groups that overlap it.

    Windows and groups are those of the whole volume in both cases, so that sums inside the region
    are the same.

    Examples
    --------
    >>> window_grid((10, 10, 25), Windows((10, 10, 10), overlap=(0.5, 0.5, 0.5))).count
    4
    """
    asked = windows.roi_size or _WHOLE
    size = _make_triple(n if n > 0 else full for n, full in zip(asked, shape, strict=True))
    padded = _make_triple(max(n, full) for n, full in zip(size, shape, strict=True))
    offset = _make_triple((p - full) // 2 for p, full in zip(padded, shape, strict=True))
    steps = [
        n if n == full else max(int(n * (1 - share)), 1)
        for n, full, share in zip(size, padded, windows.overlap, strict=True)
    ]
    every = tuple(tuple(patch_image) for patch_image in dense_patch_slices(padded, size, steps))
    groups = [every[k : k + windows.batch] for k in range(0, len(every), windows.batch)]
    inner_groups = [
        group for group in groups if any(_is_in_region(place, offset, region) for place in group)
    ]
    inner_groups = (
        inner_groups or groups[:1]
    )  # a region between windows needs outputs too, if only to be cropped
    return WindowGrid(_make_triple(shape), padded, offset, size, tuple(inner_groups), every)


def blend_windows(
    forward: Forward,
    image: Any,
    grid: WindowGrid,
    windows: Windows,
    *,
    device: str = "cpu",
    sums_on: str = "cpu",
    deadline: float | None = None,
) -> Any:
    """Return the blended outputs ``(output, x, y, z)`` on the CPU.

    Parameters
    ----------
    forward
        The network, from ``(windows, channel, x, y, z)`` to outputs of the same extents.
    image
        ``(channel, x, y, z)`` tensor on the CPU.
    grid
        The result of `window_grid` for the image's shape and `windows`.
    device, sums_on
        The device of the network, and the device of the sums.
    deadline
        Value of ``time.monotonic()`` after which no group is begun.

    Raises
    ------
    WindowTimeIsUp
        At the deadline.
    ModelError
        If the network's output is not a tensor with the windows' extents.
    """
    image = _pad_image(image, grid, windows)
    weight = compute_importance_map(
        grid.size, windows.mode, windows.sigma_scale, device=device, dtype=image.dtype
    )[None, None]
    sums: Any = None
    index = 0
    for group in grid.groups:
        if deadline is not None and time.monotonic() >= deadline:
            raise WindowTimeIsUp
        report_progress(index, grid.count, f"Predicting: window {index + 1} of {grid.count}")
        parts = torch.stack([image[(slice(None), *place)] for place in group]).to(device)
        output = _check_output(forward(parts), parts)
        if sums is None:
            sums = torch.zeros((output.shape[1], *grid.padded), dtype=image.dtype, device=sums_on)
        blended = (output * weight).to(sums_on)
        for place, part in zip(group, blended, strict=True):
            sums[(slice(None), *place)] += part
        index += len(group)
    report_progress(index, grid.count, "Predicting")
    return _average_sums(sums, grid, weight[0, 0].to(sums_on))


def _average_sums(sums: Any, grid: WindowGrid, weight: Any) -> Any:
    """Return sums over weights without the padding; weights include skipped windows."""
    weights = torch.zeros(grid.padded, dtype=sums.dtype, device=sums.device)
    for place in grid.every:
        weights[place] += weight
    sums /= weights
    inner = (slice(o, o + n) for o, n in zip(grid.offset, grid.shape, strict=True))
    return sums[(slice(None), *inner)].cpu()


def _check_output(output: Any, parts: Any) -> Any:
    if not torch.is_tensor(output) or output.shape[2:] != parts.shape[2:]:
        got = tuple(output.shape) if torch.is_tensor(output) else type(output).__name__
        raise ModelError(
            f"expected the network to make one output of {tuple(parts.shape[2:])} voxels for a "
            f"window, but it makes {got}; such a network needs MONAI's own software"
        )
    require_finite(output)
    return output


def _pad_image(image: Any, grid: WindowGrid, windows: Windows) -> Any:
    if grid.padded == grid.shape:
        return image
    widths: list[int] = []
    for n, p, o in reversed(list(zip(grid.shape, grid.padded, grid.offset, strict=True))):
        widths += [o, p - n - o]
    value = windows.cval if windows.padding_mode == "constant" else None
    return pad(image[None], widths, mode=windows.padding_mode, value=value)[0]


def _is_in_region(place: Slices, offset: Sequence[int], region: Box | None) -> bool:
    if region is None:
        return True
    return all(
        cut.start < stop + o and cut.stop > start + o
        for cut, o, start, stop in zip(place, offset, region.start, region.stop, strict=True)
    )


def _make_triple(values: Any) -> tuple[int, int, int]:
    a, b, c = (int(n) for n in values)
    return (a, b, c)
