"""Prompts: the points, boxes, scribbles and outlines that a reader draws on an image."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import ceil, floor, isfinite
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Voxel
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.names import count_of
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.services.refine.outlines import fill_contour

_MOST_POINTS: Final = 100_000
_EXAMPLE: Final = '[{"kind": "point", "points": [[31, 120, 88]], "include": true}]'


class PromptKind(StrEnum):
    """The shape of a prompt."""

    POINT = "point"
    BOX = "box"
    SCRIBBLE = "scribble"
    OUTLINE = "outline"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt, in voxels ``(z, y, x)`` of the case's array.

    Parameters
    ----------
    kind
        "point", "box", "scribble" or "outline".
    points
        For a point, one voxel; for a box, its first voxel and the voxel after its last; for a
        scribble, the path of the pointer; for an outline, the corners of a closed contour on one
        slice.
    include
        Whether the prompt marks the lesion (True) or tissue that does not belong to it (False).

    Raises
    ------
    CaseError
        If the kind is unknown, or the points do not fit the kind.

    Examples
    --------
    >>> Prompt("point", [(31, 120, 88)]).text
    'point +'
    """

    kind: PromptKind
    points: tuple[Voxel, ...]
    include: bool = True

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "kind", PromptKind(self.kind))
            points = tuple((float(z), float(y), float(x)) for z, y, x in self.points)
        except (TypeError, ValueError) as error:
            kinds = ", ".join(PromptKind)
            raise CaseError(
                f"expected one of the prompts {kinds} with voxels (z, y, x), but found "
                f"{self.kind!r} with {str(self.points)[:80]}"
            ) from error
        if not isinstance(self.include, bool):
            raise CaseError(f"expected include to be true or false, but found {self.include!r}")
        object.__setattr__(self, "points", points)
        low, high = _N_POINTS[self.kind]
        if not low <= len(points) <= high or not all(isfinite(c) for p in points for c in p):
            wanted = count_of(low, "voxel") if low == high else f"at least {low} voxels"
            raise CaseError(
                f"expected {wanted} with finite coordinates for a {self.kind}, but found "
                f"{len(points)}"
            )

    @property
    def text(self) -> str:
        """Return the kind and the sign of the prompt, such as "point +"."""
        return f"{self.kind} {'+' if self.include else '-'}"


_N_POINTS: Final = {
    PromptKind.POINT: (1, 1),
    PromptKind.BOX: (2, 2),
    PromptKind.SCRIBBLE: (1, _MOST_POINTS),
    PromptKind.OUTLINE: (3, _MOST_POINTS),
}


@dataclass(frozen=True, slots=True, eq=False)
class PlacedPrompt:
    """A prompt placed on an image.

    `box` is the box of the point, box or crop. For scribbles and outlines, `voxels` is a uint8
    array of 0 and 1 with the shape of the box; otherwise it is None.
    """

    prompt: Prompt
    box: Box
    voxels: NDArray[np.uint8] | None = None


@dataclass(frozen=True, slots=True)
class Abilities:
    """The prompts that an engine accepts.

    `thickness` is the width of scribbles in voxels; `excluding` lists the kinds of prompts that can
    also mark tissue that does not belong to the lesion.
    """

    kinds: frozenset[PromptKind]
    takes_3d_boxes: bool = False
    thickness: tuple[int, int, int] = (2, 2, 2)
    excluding: frozenset[PromptKind] = frozenset(PromptKind)


def place_prompt(prompt: Prompt, shape: Sequence[int], abilities: Abilities) -> PlacedPrompt:
    """Place a prompt on an image of the given shape (z, y, x).

    Raises
    ------
    CaseError
        If the engine does not accept the prompt, or the prompt is outside the image or empty.
        Engines answer such prompts with an empty mask, or with an error that does not name the
        cause.
    """
    if prompt.kind not in abilities.kinds:
        kinds = ", ".join(sorted(abilities.kinds))
        raise CaseError(f"expected one of the model's prompts ({kinds}), but found {prompt.kind}")
    if not prompt.include and prompt.kind not in abilities.excluding:
        raise CaseError(
            f"this model cannot exclude a region by a {prompt.kind}: erase the region with the "
            "brush"
        )
    if prompt.kind is PromptKind.OUTLINE:
        return _place_outline(prompt, shape)
    if prompt.kind is PromptKind.SCRIBBLE:
        return _place_scribble(prompt, shape, abilities.thickness)
    start = _round(prompt.points[0])
    last = _round(prompt.points[-1])
    stop = last if prompt.kind is PromptKind.BOX else (last[0] + 1, last[1] + 1, last[2] + 1)
    if any(a >= b for a, b in zip(start, stop, strict=True)):
        raise CaseError(
            f"expected a box that ends after it starts, but found {start} to {stop} (z, y, x): "
            "draw it again"
        )
    _require_inside(start, stop, shape, prompt.kind)
    box = Box(start, stop)
    is_flat = 1 in box.shape
    if prompt.kind is PromptKind.BOX and not is_flat and not abilities.takes_3d_boxes:
        raise CaseError(
            "expected a box on one slice, because this model does not accept 3-D boxes, but "
            f"found {' x '.join(map(str, box.shape))} voxels: draw it on one slice"
        )
    return PlacedPrompt(prompt, box)


def _round(point: Voxel) -> tuple[int, int, int]:
    """Round to the nearest voxel, halves up; Python's `round` rounds halves to even."""
    z, y, x = (floor(coordinate + 0.5) for coordinate in point)
    return (z, y, x)


def _require_inside(
    start: Sequence[int], stop: Sequence[int], shape: Sequence[int], what: str
) -> None:
    if any(a < 0 for a in start) or any(b > n for b, n in zip(stop, shape, strict=True)):
        raise CaseError(
            f"expected a {what} inside the image, of shape {tuple(shape)} (z, y, x), but found "
            f"voxels {tuple(start)} to {tuple(stop)}: place it on the image"
        )


def _place_outline(prompt: Prompt, shape: Sequence[int]) -> PlacedPrompt:
    rounded = np.array([_round(point) for point in prompt.points])
    flat = [axis for axis in range(3) if len(set(rounded[:, axis])) == 1]
    if not flat:
        raise CaseError(
            "expected an outline whose corners lie on one slice, but found corners on several "
            "slices along every axis: draw it on one slice"
        )
    _require_inside(rounded.min(0).tolist(), (rounded.max(0) + 1).tolist(), shape, "outline")
    drawn = fill_contour(prompt.points, flat[0], shape) if len(flat) == 1 else None
    if drawn is None:
        raise CaseError("expected an outline around at least one voxel, but found an empty one")
    return PlacedPrompt(prompt, drawn.box, drawn.inside.astype(np.uint8))


def _place_scribble(
    prompt: Prompt, shape: Sequence[int], thickness: tuple[int, int, int]
) -> PlacedPrompt:
    """Place a path drawn `thickness` voxels wide; a path on one slice remains on that slice."""
    centres = _follow_path(prompt.points)
    _require_inside(centres.min(0).tolist(), (centres.max(0) + 1).tolist(), shape, "scribble")
    on_slice = [len(set(centres[:, axis])) == 1 for axis in range(3)]
    flat = on_slice.index(True) if any(on_slice) else None
    reach = [
        range(1) if axis == flat else range(-((width - 1) // 2), width // 2 + 1)
        for axis, width in enumerate(thickness)
    ]
    stamps = np.array([(dz, dy, dx) for dz in reach[0] for dy in reach[1] for dx in reach[2]])
    voxels = (centres[:, None, :] + stamps[None, :, :]).reshape(-1, 3)
    voxels = np.clip(voxels, 0, np.array(shape) - 1)
    low, high = voxels.min(0), voxels.max(0) + 1
    crop = np.zeros(high - low, np.uint8)
    crop[tuple((voxels - low).T)] = 1
    start, stop = (tuple(int(n) for n in ends) for ends in (low, high))
    return PlacedPrompt(
        prompt, Box((start[0], start[1], start[2]), (stop[0], stop[1], stop[2])), crop
    )


def _follow_path(points: Sequence[Voxel]) -> NDArray[np.int64]:
    """Return the voxels along the straight lines between points."""
    paths = [np.array(points[:1])]
    for first, second in pairwise(points):
        n_steps = max(1, ceil(2 * max(abs(b - a) for a, b in zip(first, second, strict=True))))
        paths.append(np.linspace(first, second, min(n_steps, _MOST_POINTS) + 1)[1:])
    voxels: NDArray[np.int64] = np.unique(
        np.floor(np.concatenate(paths) + 0.5).astype(np.int64), axis=0
    )
    return voxels


def read_prompts(path: Path) -> tuple[Prompt, ...]:
    """Read prompts from a JSON file: a list of ``{"kind", "points", "include"}``.

    Raises
    ------
    CaseError
        If the file has different content; the message names the invalid prompt.
    """
    try:
        entries = read_json(path)
    except (OSError, ValueError) as error:
        raise CaseError(
            f"expected prompts such as {_EXAMPLE} in {path}, but found {error}"
        ) from error
    if not isinstance(entries, list) or not entries:
        raise CaseError(f"expected a list of prompts such as {_EXAMPLE} in {path}, but found none")
    return tuple(_read_entry(entry, f"{path}, prompt {n}") for n, entry in enumerate(entries, 1))


def _read_entry(entry: Any, where: str) -> Prompt:
    keys = {"kind", "points", "include"}
    if not isinstance(entry, Mapping) or not {"kind", "points"} <= set(entry) <= keys:
        raise CaseError(
            f"expected a prompt such as {_EXAMPLE} in {where}, but found {str(entry)[:80]}"
        )
    points = entry["points"]
    if not isinstance(points, list):
        raise CaseError(f"expected a list of voxels in {where}, but found {str(points)[:80]}")
    try:
        return Prompt(entry["kind"], tuple(points), entry.get("include", True))
    except CaseError as error:
        raise CaseError(f"{where}: {error}") from error


def points_text(points: Iterable[Sequence[float]], digits: int) -> str:
    """Format rounded coordinates as JSON, for a journal."""
    rounded = [[round(float(c), digits) for c in point] for point in points]
    return json.dumps(rounded, separators=(",", ":"))
