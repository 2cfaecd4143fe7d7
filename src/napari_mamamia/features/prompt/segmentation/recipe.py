"""The recipe of a prompt model in one file: the inputs and outputs of its network.

It is the file ``mamamia_prompt.json`` next to a TorchScript or ONNX file.
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
    """The content of one input of the network."""

    CHANNELS = "channels"
    """Volumes ``(1, channel, z, y, x)``."""
    POINTS = "points"
    """Coordinates ``(1, n, 3)``."""
    LABELS = "point labels"
    """One number for each point, ``(1, n)``."""
    BOXES = "boxes"
    """Both corners of each box, ``(1, n, 6)``."""


class ChannelKind(StrEnum):
    """The content of one volume."""

    IMAGE = "image"
    MASK = "mask"
    INCLUDE = "include"
    EXCLUDE = "exclude"


class NumberType(StrEnum):
    """Type of an input; an ONNX file states its own."""

    FLOAT = "float32"
    INT64 = "int64"
    INT32 = "int32"


class Normalisation(StrEnum):
    """The scaling of the image before the network."""

    NONE = "none"
    Z_SCORE = "z-score"
    UNIT = "0 to 1"


class Scope(StrEnum):
    """The voxels whose statistics scale the image."""

    IMAGE = "image"
    NONZERO = "non-zero voxels"
    PATCH = "patch"


class OutputKind(StrEnum):
    """Meaning of the network's output."""

    LOGITS = "logits"
    PROBABILITIES = "probabilities"
    CLASSES = "classes"
    """Several channels, of which the largest wins."""


@dataclass(frozen=True, slots=True)
class NetworkInput:
    """One input of the network; `channels` are the volumes of a "channels" input, in order."""

    kind: InputKind
    channels: tuple[ChannelKind, ...] = ()
    type: NumberType = NumberType.FLOAT


@dataclass(frozen=True, slots=True)
class PointCode:
    """How points, and the corners of boxes, become numbers.

    Parameters
    ----------
    axes
        Order of the coordinates: "zyx" or "xyz".
    fractions
        Whether coordinates are shares of the patch (0 to 1) and not voxels of it.
    include, exclude
        Labels of points inside and outside the lesion.
    box
        Labels of the two corners, for a network that takes boxes as two points; None if not.
    count
        Number of points that the network takes, filled up with `padding`; 0 for any number.
    padding
        Label of the points that fill up; their coordinates are 0.
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
    """The inputs and outputs of a prompt model.

    Parameters
    ----------
    title
        The name shown to users.
    file
        The TorchScript or ONNX file next to the recipe.
    patch
        Voxels that the network takes: three (z, y, x), or two for a network of single slices.
    inputs
        The network's inputs, in the order of the file.
    licence
        Licence of the weights; "" takes the first line of the file LICENSE, if there is one.
    spacing_mm
        Spacing of the patch, to which image and prompts are resampled; None keeps the voxels.
    normalise, over, percentiles
        Scaling of the image, the voxels of its statistics, and percentiles (low, high) to which
        it is clipped before.
    points
        How points become numbers.
    point_radius
        Radius in voxels of the ball that a point marks in the channels "include" and "exclude".
    output, output_index, output_channel, threshold
        Meaning of the output, its number if there are several, the channel of the lesion, and the
        probability above which a voxel belongs to it.

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
        """The volumes of all inputs."""
        return tuple(channel for each in self.inputs for channel in each.channels)

    @property
    def is_flat(self) -> bool:
        """Whether the network takes single slices."""
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
        """The prompts that the network takes."""
        excluded: set[PromptKind] = set()
        if ChannelKind.EXCLUDE in self.channels:
            excluded.update(PromptKind)
        if any(each.kind is InputKind.LABELS for each in self.inputs):
            excluded.add(PromptKind.POINT)
        taken = self._include_kinds
        return Abilities(taken, not self.is_flat, excluding=frozenset(excluded & taken))


@reads("a readable recipe of a prompt model", "correct it", ModelError)
def read_prompt_recipe(path: Path) -> PromptRecipe:
    """Return the recipe in a ``mamamia_prompt.json``, or raise `ModelError`."""
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
