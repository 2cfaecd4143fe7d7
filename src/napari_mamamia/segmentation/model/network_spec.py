"""Input and output of a single-file network, which the file itself does not describe.

`NetworkSpec` holds them. They are in the section ``network`` of a recipe (``mamamia_model.json``).
torch is not needed.
"""

import math
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Final

import numpy as np

from napari_mamamia.core.errors import ModelError
from napari_mamamia.io.files.record_codec import Layout, RecordCodec
from napari_mamamia.segmentation.model.nnunet_plans import Architecture

_REPAIR: Final = 'correct "network" in the recipe'
_PAIRS: Final = ("LR", "PA", "IS")
_MOST_LABELS: Final = 1000
_MOST_EXTENT: Final = 4096


class OutputKind(StrEnum):
    """The meaning of a network's output values at a voxel.

    The first two kinds have background as their first output, and the largest output wins. In the
    other kinds, each label is independent and applies where its value is above the threshold.
    """

    LOGITS = "logits"
    PROBABILITIES = "probabilities"
    LABEL_LOGITS = "label logits"
    LABEL_PROBABILITIES = "label probabilities"


class TileWeight(StrEnum):
    """Weights for averaging overlapping tiles: highest in the centre, or equal."""

    GAUSSIAN = "gaussian"
    CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class NetworkSpec:
    """Description of the input and output of a network.

    Parameters
    ----------
    channels
        The names of the inputs in order. The recipe's ``channels`` define the image for each input.
    labels
        The (name, value) of each label except background, in the order of the outputs; values are 1
        to 65535.
    patch
        The extents of a tile in voxels along the network's three axes, or two for a network that
        processes slices across the first axis. Empty if the file states the extents.
    output
        The meaning of the outputs.
    threshold
        The probability, from 0 to 1, above which a label counts, for independent labels only. If
        labels overlap, the later label wins.
    weight
        The weights for averaging tiles.
    orientation
        The directions of the three axes of the network's volume in nibabel's letters, such as "RAS"
        for arrays (x, y, z) that MONAI loads from files in RAS, or "SAR" for (z, y, x) of such
        files. "" keeps the case's array (z, y, x) as stored.
    mirror_axes
        The axes of a tile, counted from 0, along which mirrored copies are averaged; may be empty.
    architecture
        The network's class and arguments as named in nnU-Net's plans, only for files that contain
        weights without a network (safetensors).

    Raises
    ------
    ModelError
        If a value is missing, out of range, or cannot be applied.
    """

    channels: tuple[str, ...]
    labels: tuple[tuple[str, int], ...]
    patch: tuple[int, ...] = ()
    output: OutputKind = OutputKind.LOGITS
    threshold: float = 0.5
    weight: TileWeight = TileWeight.GAUSSIAN
    orientation: str = ""
    mirror_axes: tuple[int, ...] = ()
    architecture: Architecture | None = None

    def __post_init__(self) -> None:
        if not self.channels or not 0 < len(self.labels) <= _MOST_LABELS:
            raise ModelError(
                f"expected at least one channel and 1 to {_MOST_LABELS} labels besides "
                f"background, but got {len(self.channels)} channels and {len(self.labels)} "
                f"labels; {_REPAIR}"
            )
        values = [value for _, value in self.labels]
        if len(set(values)) < len(values) or not all(0 < value < 2**16 for value in values):
            raise ModelError(
                f"expected labels to have different values from 1 to 65535, but got {values}; "
                f"{_REPAIR}"
            )
        self._require_patch()
        self._require_threshold()
        if self.orientation:
            _require_orientation(self.orientation)

    @property
    def has_background(self) -> bool:
        """Whether the first output is background and the largest output wins."""
        return self.output in (OutputKind.LOGITS, OutputKind.PROBABILITIES)

    @property
    def heads(self) -> int:
        """Number of output values per voxel."""
        return len(self.labels) + self.has_background

    @property
    def dtype(self) -> type[np.uint8] | type[np.uint16]:
        """Data type of a label map that can hold all label values."""
        return np.uint8 if max(value for _, value in self.labels) < 256 else np.uint16

    def _require_patch(self) -> None:
        extents = self.patch
        if extents and (
            len(extents) not in (2, 3) or not all(0 < n <= _MOST_EXTENT for n in extents)
        ):
            raise ModelError(
                f"expected the patch to have 2 or 3 extents of 1 to {_MOST_EXTENT} voxels, but "
                f"got {extents}; {_REPAIR}"
            )
        axes, most = self.mirror_axes, len(extents) or 3
        if len(set(axes)) < len(axes) or not all(0 <= axis < most for axis in axes):
            raise ModelError(
                f"expected mirror_axes to be different axes from 0 to {most - 1}, but got {axes}; "
                f"{_REPAIR}"
            )

    def _require_threshold(self) -> None:
        if not (math.isfinite(self.threshold) and 0 < self.threshold < 1):
            raise ModelError(
                f"expected a threshold between 0 and 1, but got {self.threshold}; {_REPAIR}"
            )
        if self.has_background and self.threshold != 0.5:
            raise ModelError(
                f"a threshold needs independent outputs, but {self.output.value!r} includes "
                "background, and the largest output decides; omit the threshold "
                f"{self.threshold}, or choose a different output"
            )


NETWORK_LAYOUTS: Final = (
    Layout(
        NetworkSpec,
        pairs=frozenset({"labels"}),
        later=frozenset(
            {field.name for field in fields(NetworkSpec)} - {"channels", "labels", "output"}
        ),
    ),
    Layout(
        Architecture,
        keys={
            "class_name": "network_class_name",
            "arguments": "arch_kwargs",
            "imports": "_kw_requires_import",
        },
    ),
)
"""Differences between the JSON section of a recipe and the dataclasses."""

_CODEC: Final = RecordCodec(NetworkSpec, _REPAIR, NETWORK_LAYOUTS, kind=ModelError)


def network_from(content: object, where: object) -> NetworkSpec:
    """Return the network described in a recipe's section.

    Raises
    ------
    ModelError
        If a key is unknown or missing, or a value has the wrong type or cannot be used.
    """
    return _CODEC.record(content, where)


def network_made(spec: NetworkSpec) -> dict[str, Any]:
    """Return the recipe section for a network, which `network_from` can read."""
    content: dict[str, Any] = _CODEC.plain(spec)
    return content


def _require_orientation(letters: str) -> None:
    used = sorted(next((k for k, p in enumerate(_PAIRS) if letter in p), -1) for letter in letters)
    if used != [0, 1, 2]:
        raise ModelError(
            "expected the orientation to have three letters, one of L or R, one of P or A, and "
            f"one of I or S, but got {letters!r}; {_REPAIR}"
        )
