"""The recipe of a single-file prompt model, which describes the network's inputs and outputs.

The recipe is stored in ``mamamia_prompt.json`` next to a TorchScript or ONNX file.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import ModelError
from napari_mamamia.features.prompt.segmentation.prompts import Abilities, PromptKind
from napari_mamamia.io.files.foreign import explained, open_plain, reads
from napari_mamamia.io.files.json_text import parsed_json
from napari_mamamia.io.files.record_codec import RecordCodec

RECIPE_NAME: Final = "mamamia_prompt.json"
_FORMAT: Final = "napari-mamamia prompt recipe"
_VERSION: Final = 1
_REPAIR: Final = "correct the recipe"
_MOST_VOXELS: Final = 2**27


class InputKind(StrEnum):
    """What an input of the network contains."""

    CHANNELS = "channels"
    """Volumes, shape ``(1, channel, z, y, x)``."""
    POINTS = "points"
    """Coordinates of points, shape ``(1, n, 3)``."""
    LABELS = "point labels"
    """One number for each point, shape ``(1, n)``."""
    BOXES = "boxes"
    """The two corners of each box, shape ``(1, n, 6)``."""


class ChannelKind(StrEnum):
    """What a volume in a "channels" input contains."""

    IMAGE = "image"
    MASK = "mask"
    INCLUDE = "include"
    EXCLUDE = "exclude"


class NumberType(StrEnum):
    """The data type of an input; an ONNX file states the types itself."""

    FLOAT = "float32"
    INT64 = "int64"
    INT32 = "int32"


class Normalisation(StrEnum):
    """How the image is scaled before it is passed to the network."""

    NONE = "none"
    Z_SCORE = "z-score"
    UNIT = "0 to 1"


class Scope(StrEnum):
    """The voxels from which the statistics for scaling the image are computed."""

    IMAGE = "image"
    NONZERO = "non-zero voxels"
    PATCH = "patch"


class OutputKind(StrEnum):
    """The meaning of the network's output."""

    LOGITS = "logits"
    PROBABILITIES = "probabilities"
    CLASSES = "classes"
    """Several channels; each voxel belongs to the channel with the largest value."""


@dataclass(frozen=True, slots=True)
class NetworkInput:
    """An input of the network; `channels` lists the volumes of a "channels" input, in order."""

    kind: InputKind
    channels: tuple[ChannelKind, ...] = ()
    type: NumberType = NumberType.FLOAT


@dataclass(frozen=True, slots=True)
class PointCode:
    """How points and the corners of boxes are converted to numbers.

    Parameters
    ----------
    axes
        Order of the coordinates: "zyx" or "xyz".
    fractions
        Whether coordinates are fractions of the patch (0 to 1) instead of voxels.
    include, exclude
        Labels of points inside and outside the lesion.
    box
        Labels of the two corners, if the network takes a box as two points; otherwise None.
    count
        Number of points that the network requires; missing points are added with the label
        `padding`. 0 for any number.
    padding
        Label of the added points, whose coordinates are 0.
    """

    axes: str = "zyx"
    fractions: bool = False
    include: int = 1
    exclude: int = 0
    box: tuple[int, int] | None = None
    count: int = 0
    padding: int = -1

    def __post_init__(self) -> None:
        if self.axes not in ("zyx", "xyz") or not 0 <= self.count <= 1000:
            raise ModelError(
                'expected the axes "zyx" or "xyz" and a count of 0 to 1000 points, but found '
                f"{self.axes!r} and {self.count}: {_REPAIR}"
            )


@dataclass(frozen=True, slots=True)
class PromptRecipe:
    """The description of a single-file prompt model: its network's inputs and outputs.

    Parameters
    ----------
    title
        The name shown to users.
    file
        The TorchScript or ONNX file next to the recipe.
    patch
        Size of the network's input in voxels: (z, y, x), or two numbers if it takes single slices.
    inputs
        The network's inputs, in the order of the file.
    licence
        Licence of the weights; if "", the first line of the file LICENSE, if there is one.
    spacing_mm
        Spacing to which image and prompts are resampled; None for no resampling.
    normalise, over, percentiles
        How the image is scaled, the voxels used for the statistics, and the percentiles (low, high)
        to which the image is clipped first.
    points
        How points are converted to numbers.
    point_radius
        Radius, in voxels, of the ball that represents a point in the channels "include" and
        "exclude".
    output, output_index, output_channel, threshold
        Meaning of the output, its index if there are several, the channel of the lesion, and the
        probability above which a voxel belongs to the lesion.

    Raises
    ------
    ModelError
        If values contradict each other.
    """

    title: str
    file: str
    patch: tuple[int, ...]
    inputs: tuple[NetworkInput, ...]
    licence: str = ""
    spacing_mm: tuple[float, float, float] | None = None
    normalise: Normalisation = Normalisation.NONE
    over: Scope = Scope.IMAGE
    percentiles: tuple[float, float] | None = None
    points: PointCode = PointCode()
    point_radius: float = 0.0
    output: OutputKind = OutputKind.LOGITS
    output_index: int = 0
    output_channel: int = 0
    threshold: float = 0.5

    def __post_init__(self) -> None:
        low, high = self.percentiles or (0.0, 100.0)
        channels = self.channels
        kinds = {each.kind for each in self.inputs}
        problems = {
            "a patch of two or three extents": len(self.patch) in (2, 3)
            and min(self.patch) > 0
            and math.prod(self.patch) <= _MOST_VOXELS,
            'one channel "image"': channels.count(ChannelKind.IMAGE) == 1,
            "points together with point labels": (InputKind.POINTS in kinds)
            == (InputKind.LABELS in kinds),
            'a channel "include", points, or boxes': bool(self._include_kinds),
            "a spacing of 0.05 to 50 mm": all(0.05 <= s <= 50 for s in self.spacing_mm or ()),
            "percentiles from 0 to 100": 0 <= low < high <= 100,
            "a threshold between 0 and 1": 0 < self.threshold < 1,
            "numbers from 0": min(self.output_index, self.output_channel) >= 0
            and 0 <= self.point_radius <= 100,
            "a file next to the recipe": Path(self.file).name == self.file != "",
        }
        for expected, is_met in problems.items():
            if not is_met:
                raise ModelError(f"expected {expected}, but found something else: {_REPAIR}")

    @property
    def channels(self) -> tuple[ChannelKind, ...]:
        """Return the volumes of all inputs."""
        return tuple(channel for each in self.inputs for channel in each.channels)

    @property
    def is_flat(self) -> bool:
        """Return whether the network takes single slices."""
        return len(self.patch) == 2

    @property
    def _include_kinds(self) -> frozenset[PromptKind]:
        kinds = {each.kind for each in self.inputs}
        if ChannelKind.INCLUDE in self.channels:
            return frozenset(PromptKind)
        taken = {PromptKind.POINT} if InputKind.POINTS in kinds else set()
        if InputKind.BOXES in kinds or (taken and self.points.box):
            taken.add(PromptKind.BOX)
        return frozenset(taken)

    @property
    def abilities(self) -> Abilities:
        """Return the prompts that the network accepts."""
        excluded: set[PromptKind] = set()
        if ChannelKind.EXCLUDE in self.channels:
            excluded.update(PromptKind)
        if any(each.kind is InputKind.LABELS for each in self.inputs):
            excluded.add(PromptKind.POINT)
        taken = self._include_kinds
        return Abilities(taken, not self.is_flat, excluding=frozenset(excluded & taken))


@reads("a readable recipe of a prompt model", "correct it", ModelError)
def read_prompt_recipe(path: Path) -> PromptRecipe:
    """Read the recipe in a ``mamamia_prompt.json``; raise `ModelError` if it is invalid."""
    with explained(str(path), "a recipe of a prompt model", _REPAIR, ModelError):
        with open_plain(path) as stream:
            content = parsed_json(stream.read().decode("utf-8"))
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise ModelError(
                f'expected "format": "{_FORMAT}" in {path}, but found a different '
                f"format or none: {_REPAIR}"
            )
        if content.get("version") != _VERSION:
            raise ModelError(
                f"expected version {_VERSION} of {path}, but found {content.get('version')!r}: "
                f"update napari-mamamia, or {_REPAIR}"
            )
        rest = {key: value for key, value in content.items() if key not in ("format", "version")}
        return _CODEC.record(rest, str(path))


_CODEC: Final = RecordCodec(PromptRecipe, _REPAIR, kind=ModelError)
