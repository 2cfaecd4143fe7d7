"""Conversion of a `Case` and masks to napari layers, with all metadata keys of this program.

A layer shows its array in display orientation: a numpy view of the ``(z, y, x)`` array with axes
permuted and flipped. Painting on the layer changes the array.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, TypeAlias

import numpy as np
from napari.layers import Labels, Layer
from napari.utils import Colormap, DirectLabelColormap
from numpy.typing import NDArray

from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.counting import phase_name
from napari_mamamia.core.errors import GridMismatchError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.provenance import Provenance
from napari_mamamia.widgets.adapter.outlines import LineStyle
from napari_mamamia.widgets.controls.colours import (
    AGREEMENT_COLOURS,
    MARK_COLOURS,
    MASK_COLOURS,
    MASK_DASHES,
    OTHER_LESION,
    OTHER_LESION_CASING,
    OTHER_LESION_DASHES,
    OTHER_LESION_WIDTH,
    OUTLINE_VOXELS,
)

METADATA_KEY: Final = "napari_mamamia"

AXIS_LABELS: Final = ("slice", "row", "column")
_PHASE_AXES: Final = 4
_IMAGE_BLENDING: Final = "translucent_no_depth"
"""Blending mode that ``viewer.add_image`` sets, but that a layer created without a viewer lacks.

An image that writes depth values would hide the masks above it if equal depths do not pass.
"""
_AGREEMENT_OPACITY: Final = 0.7
_MAP_OPACITY: Final = 0.6
UNITS: Final = ("mm", "mm", "mm")

LayerTuple: TypeAlias = tuple[NDArray[Any], dict[str, Any], str]
"""Data, keyword arguments and layer type, as returned by napari reader plugins."""


class Role(StrEnum):
    """The role of a layer of this program."""

    PHASE = "phase"
    SUBTRACTION = "subtraction"
    MAP = "map"
    PROJECTION = "projection"
    DOUBT = "doubt"
    REFERENCE = "reference"
    PREDICTION = "prediction"
    READING_A = "reading A"
    READING_B = "reading B"
    REFINED = "refined"
    AGREEMENT = "agreement"
    MARKS = "marks"


MASK_ROLES: Final = (
    Role.REFERENCE,
    Role.PREDICTION,
    Role.READING_A,
    Role.READING_B,
    Role.REFINED,
)
"""The roles of masks, ordered from bottom to top of the layer list."""


@dataclass(frozen=True, slots=True, eq=False)
class LayerTag:
    """Identity of a layer: its case and its content.

    `phase` is the phase of a 3-D layer, or None if the layer has all phases or no particular phase.
    `times_s` are the acquisition times of a layer of phases. For a difference, `minus` is the
    subtracted phase, and `note` its projection, such as "MIP". The first `n_before` phases are
    before contrast.
    """

    case_id: str
    role: Role
    grid: Grid
    phase: int | None = None
    provenance: Provenance | None = None
    times_s: tuple[float | None, ...] = ()
    minus: int = 0
    note: str = ""
    n_before: int = 1


def tag_for(
    case: Case, role: Role, provenance: Provenance | None = None, phase: int | None = None
) -> LayerTag:
    """Return the tag for a layer of `case`."""
    tag = LayerTag(case.case_id, role, case.grid, phase, provenance, case.times_s)
    return replace(tag, n_before=case.n_before)


def tag_of(layer: Layer) -> LayerTag | None:
    """Return the tag of a layer of this program, or None for any other layer."""
    tag = layer.metadata.get(METADATA_KEY)
    return tag if isinstance(tag, LayerTag) else None


def find_layers(layers: Iterable[Layer], *roles: Role) -> list[Any]:
    """Return this program's layers with one of `roles` in order, or all without `roles`."""
    pairs = ((layer, tag_of(layer)) for layer in layers)
    ours = [(layer, tag) for layer, tag in pairs if tag and tag.case_id]
    return [layer for layer, tag in ours if not roles or tag.role in roles]


def find_layer(layers: Iterable[Layer], role: Role) -> Any | None:
    """Return this program's topmost layer with `role`, or None if there is none."""
    matches = find_layers(layers, role)
    return matches[-1] if matches else None


def array_of(layer: Layer) -> NDArray[Any]:
    """Return a layer's ``(..., z, y, x)`` array as a view of the same memory.

    Raises
    ------
    GridMismatchError
        If the layer does not belong to this program, or its data were replaced by data of another
        shape.
    """
    tag = tag_of(layer)
    if tag is None:
        raise GridMismatchError(
            f"expected a layer of the open case, but {layer.name!r} does not come from a case: "
            "choose another layer"
        )
    array = tag.grid.display_frame().from_display(np.asarray(layer.data))
    if array.shape[-3:] != tag.grid.shape:
        raise GridMismatchError(
            f"expected layer {layer.name} to have the shape of its case, {tag.grid.shape} (z, y, "
            f"x), but it has {array.shape[-3:]}, because its data were replaced: open the case "
            "again"
        )
    return array


def case_of(layer: Layer) -> Case:
    """Return a case with the phases that a layer shows, which share the layer's memory.

    Raises
    ------
    GridMismatchError
        As in `array_of`.
    """
    signal = array_of(layer)
    tag = tag_of(layer)
    if tag is None or signal.ndim != _PHASE_AXES:
        raise GridMismatchError(
            f"expected a layer with the phases of a case, but {layer.name!r} "
            "has none: choose another layer"
        )
    times = tag.times_s or (None,) * signal.shape[0]
    phases = tuple(Phase(index, time_s) for index, time_s in enumerate(times))
    return Case(tag.case_id, tag.grid, signal, phases)


def case_layer(case: Case, contrast_limits: tuple[float, float]) -> LayerTuple:
    """Return the image layer of all phases of a case, ``(phase, slice, row, column)``.

    Its data share memory with ``case.signal``. `contrast_limits` are in units of the signal.
    """
    tag = tag_for(case, Role.PHASE)
    frame = case.grid.display_frame()
    keywords = {
        "name": f"{case.case_id} phases",
        "scale": (1.0, *frame.per_axis(case.grid.spacing_mm)),
        "units": ("pixel", *UNITS),
        "axis_labels": ("phase", *AXIS_LABELS),
        "contrast_limits": contrast_limits,
        "colormap": "gray",
        "blending": _IMAGE_BLENDING,
        "interpolation2d": "linear",
        # napari guesses omitted values from the shape, so a few columns would be read as colours.
        "multiscale": False,
        "rgb": False,
        "metadata": {METADATA_KEY: tag},
    }
    return frame.to_display(case.signal), keywords, "image"


def subtraction_layer(
    tag: LayerTag, array: NDArray[Any], contrast_limits: tuple[float, float]
) -> LayerTuple:
    """Return the image layer of a ``(z, y, x)`` difference of two phases, or its projection."""
    frame = tag.grid.display_frame()
    kind = f"{tag.note} of " if tag.note else ""
    phase, minus = (phase_name(k, tag.n_before) for k in (tag.phase or 0, tag.minus))
    name = f"{tag.case_id} {kind}{phase} - {minus}"
    keywords = _volume_keywords(tag, name) | {
        "contrast_limits": contrast_limits,
        "colormap": "gray",
        "blending": _IMAGE_BLENDING,
        "interpolation2d": "linear",
        "multiscale": False,
        "rgb": False,
    }
    return frame.to_display(array), keywords, "image"


def uncertainty_layer(
    tag: LayerTag, array: NDArray[Any], said: str = "doubt [bit]", most: float = 1.0
) -> LayerTuple:
    """Return the image layer of an uncertainty map ``(z, y, x)`` from 0 to `most`.

    `said` is the layer's name with its unit. An entropy is in bits, from 0 to 1.
    """
    keywords = _volume_keywords(tag, f"{tag.case_id} {said}") | {
        "contrast_limits": (0.0, most),
        "colormap": "magma",
        "blending": "additive",
        "opacity": _MAP_OPACITY,
        "interpolation2d": "nearest",
        "multiscale": False,
        "rgb": False,
    }
    return tag.grid.display_frame().to_display(array), keywords, "image"


def mask_layer(tag: LayerTag, buffer: NDArray[np.uint8]) -> LayerTuple:
    """Return the labels layer of a mask; painting on the layer changes `buffer`.

    `buffer` is uint8 ``(z, y, x)``; for small integer types napari redraws only the painted box.
    All values above 0 are drawn as an outline in the colour of the tag's role.
    """
    # None represents every other value.
    colours = {0: "transparent", None: MASK_COLOURS[tag.role]}
    keywords = _volume_keywords(tag, f"{tag.case_id} {tag.role}") | {
        "colormap": DirectLabelColormap(color_dict=colours),
        "opacity": 1.0,
        "multiscale": False,
    }
    return tag.grid.display_frame().to_display(buffer), keywords, "labels"


def agreement_layer(tag: LayerTag, array: NDArray[np.uint8]) -> LayerTuple:
    """Return the labels layer of an agreement map ``(z, y, x)``: 1 correct, 2 false, 3 missed."""
    names = ("correct", "false", "missed")
    colours: dict[int | None, str] = {0: "transparent", None: "transparent"}
    colours |= {value: AGREEMENT_COLOURS[name] for value, name in enumerate(names, start=1)}
    keywords = _volume_keywords(tag, f"{tag.case_id} agreement") | {
        "colormap": DirectLabelColormap(color_dict=colours),
        "opacity": _AGREEMENT_OPACITY,
        "multiscale": False,
    }
    return tag.grid.display_frame().to_display(array), keywords, "labels"


def marks_layer(tag: LayerTag, array: NDArray[np.uint8]) -> LayerTuple:
    """Return the labels layer ``(z, y, x)`` of drawings on the Refine page that are not masks.

    The value k stands for the k-th colour of `MARK_COLOURS`, counted from 1.
    """
    colours: dict[int | None, str] = {0: "transparent", None: "transparent"}
    colours |= dict(enumerate(MARK_COLOURS.values(), start=1))
    keywords = _volume_keywords(tag, f"{tag.case_id} refine marks") | {
        "colormap": DirectLabelColormap(color_dict=colours),
        "multiscale": False,
    }
    return tag.grid.display_frame().to_display(array), keywords, "labels"


def map_layer(
    tag: LayerTag,
    array: NDArray[Any],
    limits: tuple[float, float],
    colormap: str,
    colours: Sequence[Sequence[float]],
) -> LayerTuple:
    """Return the image layer of a float map ``(z, y, x)``; NaN is transparent.

    `colours` are RGBA values from 0 to 1, evenly spaced from the lower to the upper limit.
    """
    keywords = _volume_keywords(tag, f"{tag.case_id} kinetic map") | {
        "contrast_limits": limits,
        "colormap": Colormap(colours, name=colormap, bad_color="transparent"),
        "blending": _IMAGE_BLENDING,
        "interpolation2d": "nearest",
        "opacity": _MAP_OPACITY,
        "multiscale": False,
        "rgb": False,
    }
    return tag.grid.display_frame().to_display(array), keywords, "image"


def class_map_layer(
    tag: LayerTag,
    array: NDArray[np.uint8],
    classes: Mapping[int, tuple[str, str, str]],
    title: str,
) -> LayerTuple:
    """Return the labels layer of a class map ``(z, y, x)``; 0 is transparent.

    `classes` maps each value to a letter, a name and a colour; napari's status line shows letter
    and name under `title`.
    """
    colours: dict[int | None, str] = {0: "transparent", None: "transparent"}
    colours |= {value: colour for value, (_, _, colour) in classes.items()}
    texts = ["", *(f"{letter} {name}" for letter, name, _ in classes.values())]
    keywords = _volume_keywords(tag, f"{tag.case_id} kinetic map") | {
        "colormap": DirectLabelColormap(color_dict=colours),
        "features": {"index": [0, *classes], title: texts},
        "opacity": _MAP_OPACITY,
        "multiscale": False,
    }
    return tag.grid.display_frame().to_display(array), keywords, "labels"


def label_file_layer(name: str, grid: Grid, volume: NDArray[Any]) -> LayerTuple:
    """Return a labels layer in napari's colours for a mask file without an open case."""
    # With an empty case id, `find_layers` ignores the layer, so no open case claims it.
    tag = LayerTag("", Role.MAP, grid)
    return grid.display_frame().to_display(volume), _volume_keywords(tag, name), "labels"


def image_file_layer(
    name: str, grid: Grid, volume: NDArray[Any], contrast_limits: tuple[float, float]
) -> LayerTuple:
    """Return an image layer for a 3-D file that does not belong to any case."""
    tag = LayerTag("", Role.MAP, grid)
    keywords = {
        **_volume_keywords(tag, name),
        "contrast_limits": contrast_limits,
        "colormap": "gray",
        "multiscale": False,
        "rgb": False,
    }
    return grid.display_frame().to_display(volume), keywords, "image"


def style_mask(layer: Labels) -> None:
    """Set the layer properties that napari accepts only after creation: outline and editability."""
    tag = tag_of(layer)
    layer.contour = OUTLINE_VOXELS
    layer.editable = tag is not None and tag.role is Role.REFINED
    layer.selected_label = 1


def find_line_style(layer: Layer) -> LineStyle | None:
    """Return the outline style of a mask of this program, or None for any other layer."""
    tag = tag_of(layer)
    if tag is None or tag.role not in MASK_ROLES:
        return None
    stroke, period = MASK_DASHES[tag.role]
    colour = MASK_COLOURS[tag.role]
    painted = _painted_label(layer)
    if not painted:
        return LineStyle(colour, stroke=stroke, period=period)
    other_stroke, other_period = OTHER_LESION_DASHES
    others = LineStyle(
        *(OTHER_LESION, OTHER_LESION_WIDTH, OTHER_LESION_CASING),
        stroke=other_stroke,
        period=other_period,
    )
    return LineStyle(colour, stroke=stroke, period=period, label=painted, others=others)


def mark_painted(layer: Any, label: int) -> None:
    """Draw one lesion of a mask in its role's colour and other lesions in grey; 0 colours all.

    The label is also selected for napari's brush.
    """
    tag = tag_of(layer)
    if tag is None or label == _painted_label(layer):
        return
    colours: dict[int | None, str] = {0: "transparent", None: MASK_COLOURS[tag.role]}
    if label:
        colours |= {label: MASK_COLOURS[tag.role], None: OTHER_LESION}
    # The layer's line follows the colour map, and `find_line_style` returns its style.
    layer.colormap = DirectLabelColormap(color_dict=colours)
    layer.selected_label = label or 1


def _painted_label(layer: Any) -> int:
    colours = getattr(layer.colormap, "color_dict", {})
    return next((value for value in colours if value), 0)


def _volume_keywords(tag: LayerTag, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "scale": tag.grid.display_frame().per_axis(tag.grid.spacing_mm),
        "units": UNITS,
        "axis_labels": AXIS_LABELS,
        "metadata": {METADATA_KEY: tag},
    }
