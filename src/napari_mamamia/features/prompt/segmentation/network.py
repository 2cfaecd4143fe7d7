"""A session of a single-file prompt model, with the same methods as an nnInteractive session.

The network sees a window around the last prompt, and the prompts in this window. If the network
takes no mask as input, the object it finds is added to the mask from which the session started.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import ModelError
from napari_mamamia.features.prompt.segmentation.prompts import PromptKind
from napari_mamamia.features.prompt.segmentation.recipe import (
    ChannelKind,
    InputKind,
    Normalisation,
    OutputKind,
    PromptRecipe,
    Scope,
)

Ends = list[list[int]]
Forward = Callable[[Sequence[NDArray[Any]]], list[NDArray[Any]]]

_NAMES: Final = {
    PromptKind.POINT: "points",
    PromptKind.BOX: "bbox2d",
    PromptKind.SCRIBBLE: "scribble",
    PromptKind.OUTLINE: "lasso",
}


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """A prompt: its kind, whether it includes or excludes, its box, and its voxels (z, y, x)."""

    kind: PromptKind
    include: bool
    ends: Ends
    voxels: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Window:
    """The region of the image that the network sees; it may extend beyond the image."""

    low: tuple[int, ...]
    size: tuple[int, ...]
    flat_axis: int | None

    @property
    def in_image(self) -> tuple[slice, ...]:
        return tuple(
            slice(max(low, 0), max(low + size, 0))
            for low, size in zip(self.low, self.size, strict=True)
        )

    def cut(self, volume: NDArray[Any], fill: float) -> NDArray[Any]:
        """Return the voxels in the window; voxels outside the image have the value `fill`."""
        inside = volume[self.in_image]
        before = [max(-low, 0) for low in self.low]
        after = [
            size - gap - n for size, gap, n in zip(self.size, before, inside.shape, strict=True)
        ]
        pads = list(zip(before, after, strict=True))
        return np.pad(inside, pads, constant_values=fill) if any(map(any, pads)) else inside

    def cut_back(self, window: NDArray[Any], shape: Sequence[int]) -> NDArray[Any]:
        """Return the part of a window's array that lies inside an image of the given shape."""
        return window[
            tuple(
                slice(max(-low, 0), min(size, n - low))
                for low, size, n in zip(self.low, self.size, shape, strict=True)
            )
        ]


class NetworkSession:
    """A session of a single-file prompt model, with the methods of an nnInteractive session.

    Parameters
    ----------
    recipe
        The inputs and outputs of the network.
    forward
        The network, as a function from inputs to outputs.
    """

    preferred_scribble_thickness: Final = (2, 2, 2)
    supports_undo: Final = True

    def __init__(self, recipe: PromptRecipe, forward: Forward) -> None:
        self.INFERENCE_SESSION_VERSION = recipe.title
        self.license = recipe.licence
        abilities = recipe.abilities
        self.supported_interactions = {name: k in abilities.kinds for k, name in _NAMES.items()}
        self.supported_interactions["bbox3d"] = abilities.takes_3d_boxes
        self.excluding = sorted(abilities.excluding)
        self._recipe = recipe
        self._forward = forward
        self._prompts: list[_Asked] = []
        self._before: list[tuple[tuple[slice, ...], NDArray[np.bool_]]] = []

    def set_image(self, image: NDArray[Any], properties: dict[str, Any] | None = None) -> None:
        """Set the image ``(1, z, y, x)``; `properties` contains its spacing in mm (z, y, x)."""
        own = (properties or {}).get("spacing", (1.0, 1.0, 1.0))
        self._spacing_mm = tuple(float(s) for s in own)
        self._image = image[0].astype(np.float32, copy=False)
        self._statistics = self._measure(self._image)
        self._base = np.zeros(self._image.shape, np.bool_)
        self._object = self._base.copy()

    def set_target_buffer(self, buffer: NDArray[np.uint8]) -> None:
        """Set the array into which the masks are written."""
        self._buffer = buffer

    def reset_interactions(self) -> None:
        """Forget all prompts, and start with an empty mask."""
        self.add_initial_seg_interaction(np.zeros(self._buffer.shape, np.uint8))

    def add_initial_seg_interaction(
        self, mask: NDArray[np.uint8], run_prediction: bool = False
    ) -> None:
        """Forget all prompts, and start from a mask."""
        del run_prediction
        self._prompts, self._before = [], []
        takes_mask = ChannelKind.MASK in self._recipe.channels
        start = mask > 0
        self._object[...] = start if takes_mask else False
        self._base[...] = False if takes_mask else start
        self._buffer[...] = start

    def add_point_interaction(self, point: Sequence[int], include: bool) -> Ends:
        """Run the network for a point; return the box that may have changed."""
        voxels = np.array([point], np.int64)
        radius = self._recipe.point_radius
        reach = np.arange(-math.ceil(radius), math.ceil(radius) + 1)
        steps = np.stack(np.meshgrid(reach, reach, reach, indexing="ij"), -1).reshape(-1, 3)
        ball: NDArray[np.int64] = voxels + steps[(steps**2).sum(1) <= radius**2]
        ends = [[n, n + 1] for n in point]
        return self._ask(_Asked(PromptKind.POINT, include, ends, ball))

    def add_bbox_interaction(self, box: Ends, include: bool) -> Ends:
        """Run the network for a box; return the box that may have changed."""
        return self._ask_filled(PromptKind.BOX, np.ones([b - a for a, b in box]), include, box)

    def add_scribble_interaction(
        self, crop: NDArray[Any], include: bool, interaction_bbox: Ends
    ) -> Ends:
        """Run the network for a scribble, drawn in a crop of the image."""
        return self._ask_filled(PromptKind.SCRIBBLE, crop, include, interaction_bbox)

    def add_lasso_interaction(
        self, crop: NDArray[Any], include: bool, interaction_bbox: Ends
    ) -> Ends:
        """Run the network for a filled outline, drawn in a crop of the image."""
        return self._ask_filled(PromptKind.OUTLINE, crop, include, interaction_bbox)

    def undo(self) -> bool:
        """Undo the last prompt; return False if there was none."""
        if not self._before:
            return False
        where, before = self._before.pop()
        self._prompts.pop()
        self._write(where, before)
        return True

    # -------------------------------------------------------------------- inner

    def _ask_filled(self, kind: PromptKind, crop: NDArray[Any], include: bool, ends: Ends) -> Ends:
        voxels = np.argwhere(crop) + np.array([low for low, _ in ends])
        return self._ask(_Asked(kind, include, ends, voxels))

    def _ask(self, prompt: _Asked) -> Ends:
        prompts = [*self._prompts, prompt]
        window = self._place_window(prompt.ends)
        scores = self._read_scores(self._forward(self._encode(prompts, window)), window)
        where = window.in_image
        before = self._object[where].copy()
        self._write(where, window.cut_back(scores, self._image.shape) > 0)
        self._prompts = prompts
        self._before.append((where, before))
        return [[s.start, min(s.stop, n)] for s, n in zip(where, self._image.shape, strict=True)]

    def _write(self, where: tuple[slice, ...], marked: NDArray[np.bool_]) -> None:
        self._object[where] = marked
        self._buffer[where] = marked | self._base[where]

    def _place_window(self, ends: Ends) -> _Window:
        """Return the window around a prompt, shifted into the image as far as possible."""
        recipe = self._recipe
        shape = self._image.shape
        flat_axis = None
        patch = list(recipe.patch)
        if recipe.is_flat:
            flat_axis = [high - low for low, high in ends].index(1)
            patch.insert(flat_axis, 1)
        low, size = [], []
        for axis, (n, (first, stop)) in enumerate(zip(shape, ends, strict=True)):
            extent = patch[axis]
            if recipe.spacing_mm is not None and axis != flat_axis:
                ratio = recipe.spacing_mm[axis] / self._spacing_mm[axis]
                extent = max(round(extent * ratio), 1)
            start = (first + stop) // 2 - extent // 2
            start = min(max(start, 0), n - extent) if extent <= n else (n - extent) // 2
            low.append(start)
            size.append(extent)
        return _Window(tuple(low), tuple(size), flat_axis)

    def _encode(self, prompts: list[_Asked], window: _Window) -> list[NDArray[Any]]:
        near = [prompt for prompt in prompts if _is_inside(prompt, window)]
        encoders = {
            InputKind.POINTS: lambda: self._encode_points(near, window)[0],
            InputKind.LABELS: lambda: self._encode_points(near, window)[1],
            InputKind.BOXES: lambda: self._encode_boxes(near, window),
        }
        arrays = []
        for each in self._recipe.inputs:
            if each.kind is InputKind.CHANNELS:
                volumes = [self._encode_channel(name, near, window) for name in each.channels]
                values = np.stack(volumes)
            else:
                values = encoders[each.kind]()
            arrays.append(np.ascontiguousarray(values[None], each.type.value))
        return arrays

    def _encode_channel(
        self, channel: ChannelKind, prompts: list[_Asked], window: _Window
    ) -> NDArray[Any]:
        if channel is ChannelKind.IMAGE:
            crop = window.cut(self._image, float(self._image.min()))
            statistics = self._statistics
            if self._recipe.over is Scope.PATCH:
                statistics = self._measure(crop)
            low, high, shift, scale = statistics
            scaled = (np.clip(crop, low, high) - np.float32(shift)) / np.float32(scale)
            return self._to_patch(scaled, window, 1)
        if channel is ChannelKind.MASK:
            return self._to_patch(window.cut(self._object, 0).astype(np.float32), window, 0)
        # The mean of several voxels would lose a thin scribble, so its voxels are placed singly.
        include = channel is ChannelKind.INCLUDE
        drawn = np.zeros(window.size, np.float32)
        for prompt in prompts:
            if prompt.include is include:
                voxels = prompt.voxels - window.low
                inside = ((voxels >= 0) & (voxels < window.size)).all(1)
                drawn[tuple(voxels[inside].T)] = 1
        patch = self._to_patch(drawn, window, 0)
        voxels = np.argwhere(self._flatten(drawn, window))
        extents = np.array(patch.shape) / self._flatten(drawn, window).shape
        patch[tuple(((voxels + 0.5) * extents).astype(np.int64).T)] = 1
        return patch

    def _flatten(self, array: NDArray[Any], window: _Window) -> NDArray[Any]:
        return array if window.flat_axis is None else array.squeeze(window.flat_axis)

    def _to_patch(self, array: NDArray[Any], window: _Window, order: int) -> NDArray[Any]:
        return _resample(self._flatten(array, window), self._recipe.patch, order)

    def _encode_points(
        self, prompts: list[_Asked], window: _Window
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        code = self._recipe.points
        rows: list[tuple[NDArray[Any], int]] = []
        for prompt in prompts:
            if prompt.kind is PromptKind.POINT:
                centre = np.array([low for low, _ in prompt.ends]) + 0.5
                label = code.include if prompt.include else code.exclude
                rows.append((self._to_coordinates(centre, window) - self._half, label))
            elif prompt.kind is PromptKind.BOX and code.box is not None:
                corners = np.array(prompt.ends).T
                rows += [
                    (self._to_coordinates(corner, window), label)
                    for corner, label in zip(corners, code.box, strict=True)
                ]
        rows = rows[-code.count :] if code.count else rows
        n_rows = code.count or len(rows)
        points = np.zeros((n_rows, len(self._recipe.patch)), np.float32)
        labels = np.full(n_rows, code.padding, np.float32)
        for index, (point, label) in enumerate(rows):
            points[index], labels[index] = point, label
        return points, labels

    def _encode_boxes(self, prompts: list[_Asked], window: _Window) -> NDArray[Any]:
        boxes = [
            np.concatenate([self._to_coordinates(corner, window) for corner in np.array(p.ends).T])
            for p in prompts
            if p.kind is PromptKind.BOX
        ]
        return np.array(boxes, np.float32).reshape(len(boxes), 2 * len(self._recipe.patch))

    @property
    def _half(self) -> float:
        """Return the offset between a voxel's index and its centre, in coordinate units."""
        return 0.0 if self._recipe.points.fractions else 0.5

    def _to_coordinates(self, edge: NDArray[Any], window: _Window) -> NDArray[Any]:
        """Convert a position on voxel edges into coordinates of the network's patch."""
        code = self._recipe.points
        shares = (edge - window.low) / window.size
        if window.flat_axis is not None:
            shares = np.delete(shares, window.flat_axis)
        places = shares if code.fractions else shares * self._recipe.patch
        return places[::-1] if code.axes == "xyz" else places

    def _measure(self, image: NDArray[Any]) -> tuple[float, float, float, float]:
        """Return the clipping range, the offset to subtract, and the scale to divide by."""
        recipe = self._recipe
        voxels = image[image != 0] if recipe.over is Scope.NONZERO else image
        voxels = voxels if voxels.size else image
        low, high = float(voxels.min()), float(voxels.max())
        if recipe.percentiles is not None:
            low, high = (float(v) for v in np.percentile(voxels, recipe.percentiles))
        limits = (low, high) if recipe.percentiles is not None else (-np.inf, np.inf)
        if recipe.normalise is Normalisation.UNIT:
            return (*limits, low, (high - low) or 1.0)
        if recipe.normalise is Normalisation.Z_SCORE:
            clipped = np.clip(voxels, low, high)
            deviation = float(clipped.std(dtype=np.float64))
            return (*limits, float(clipped.mean(dtype=np.float64)), deviation or 1.0)
        return (*limits, 0.0, 1.0)

    def _read_scores(self, outputs: list[NDArray[Any]], window: _Window) -> NDArray[Any]:
        """Return one score per voxel of the window, which is above 0 in the lesion."""
        recipe = self._recipe
        index, channel, patch = recipe.output_index, recipe.output_channel, recipe.patch
        shapes = ", ".join(str(output.shape) for output in outputs)
        if index >= len(outputs) or outputs[index].shape[-len(patch) :] != patch:
            raise ModelError(
                f"expected output {index} of {recipe.title} to end with {patch}, but found "
                f'{shapes}: correct "output_index" or "patch" in its recipe'
            )
        scores = outputs[index].astype(np.float32, copy=False).reshape(-1, *patch)
        if channel >= len(scores) or not np.isfinite(scores).all():
            raise ModelError(
                f"expected finite numbers in channel {channel} of {recipe.title}, but found "
                f'{shapes} or NaN: correct "output_channel" or "normalise" in its recipe'
            )
        if recipe.output is OutputKind.CLASSES:
            others = np.delete(scores, channel, 0)
            lesion = scores[channel] - (others.max(0) if len(others) else 0)
        elif recipe.output is OutputKind.LOGITS:
            lesion = scores[channel] - math.log(recipe.threshold / (1 - recipe.threshold))
        else:
            lesion = scores[channel] - recipe.threshold
        size = [n for axis, n in enumerate(window.size) if axis != window.flat_axis]
        return _resample(lesion, size, 1).reshape(window.size)


def _is_inside(prompt: _Asked, window: _Window) -> bool:
    """Return whether a prompt overlaps a window."""
    return all(
        stop > low and first < low + size
        for (first, stop), low, size in zip(prompt.ends, window.low, window.size, strict=True)
    )


def _resample(array: NDArray[Any], shape: Sequence[int], order: int) -> NDArray[Any]:
    """Resample an array to a different number of voxels over the same extent."""
    if array.shape == tuple(shape):
        return array
    from scipy.ndimage import zoom

    factors = [new / old for new, old in zip(shape, array.shape, strict=True)]
    resampled: NDArray[Any] = zoom(array, factors, order=order, mode="nearest", grid_mode=True)
    return resampled
