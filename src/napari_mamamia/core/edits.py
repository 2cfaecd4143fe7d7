"""Classes for a reader's edits of a mask: `Brush`, `Stroke`, `Edit` and `Step`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Self

from napari_mamamia.core.difference import Difference
from napari_mamamia.core.provenance import Setting

WHOLE_MASK: Final = 0
"""Label value of a step that changes all labels."""

UNDOES_ROW: Final = "undoes row"
"""Name of the parameter of an undo step; its value is the undone step's row in the history."""

MODEL: Final = "model"
"""Name of the parameter of a step made by a model; its value identifies the model."""

Voxel = tuple[float, float, float]
"""Voxel coordinates (z, y, x) in the case's array; a voxel's centre is its index."""


class Tool(StrEnum):
    """The rule by which a brush selects voxels to paint.

    `EVIDENCE` is the current smart brush, whose strokes have a lasting effect. `LEARNED` is the
    same brush, with a small network in place of rules about the image. `SMARTPAINT` is the previous
    smart brush, which works stamp by stamp; it is used to replay older journals.
    """

    EVIDENCE = "evidence"
    LEARNED = "learned"
    SMARTPAINT = "smartpaint"
    SPHERE = "sphere"
    SMOOTH = "smooth"

    @property
    def is_smart(self) -> bool:
        """Whether strokes store evidence, from which the mask is computed."""
        return self in (Tool.EVIDENCE, Tool.LEARNED)


class Action(StrEnum):
    """Whether a brush adds to the label or erases from it."""

    ADD = "add"
    ERASE = "erase"


class Features(StrEnum):
    """The image features that a brush compares."""

    POST = "post"
    SUBTRACTION = "subtraction"
    ALL = "all"


class Extent(StrEnum):
    """Whether a brush paints a sphere, or a disc in the displayed plane."""

    VOLUME = "3-D"
    PLANE = "2-D"


class Sampling(StrEnum):
    """Whether a brush samples the image at each stamp, or only when the button is pressed."""

    FOLLOW = "follow"
    LOCKED = "locked"


@dataclass(frozen=True, slots=True)
class Brush:
    """A brush with its settings.

    Parameters
    ----------
    radius_mm
        The radius in mm, which must be above 0. A first stroke paints a slightly smaller radius;
        see `smartpaint.brush.brush.painted_radius_mm`.
    tolerance
        The tolerance in units of the image noise, above 0; a sphere ignores it.
    plane_axis
        The array axis (0 z, 1 y, 2 x) perpendicular to the displayed plane; a brush with
        `Extent.PLANE` paints only in the plane of its centre.
    label
        The painted value, from 1 to 255.
    whole
        Whether a stroke of a smart brush acts on the whole lesion that it touches.

    Raises
    ------
    ValueError
        If a value is outside its range.
    """

    tool: Tool = Tool.EVIDENCE
    action: Action = Action.ADD
    radius_mm: float = 6.0
    tolerance: float = 2.5
    features: Features = Features.ALL
    extent: Extent = Extent.VOLUME
    plane_axis: int = 0
    sampling: Sampling = Sampling.FOLLOW
    label: int = 1
    whole: bool = False

    def __post_init__(self) -> None:
        # `<= 0` would accept NaN.
        if not (self.radius_mm > 0 and self.tolerance > 0):
            raise ValueError(
                "expected the radius and the tolerance to be above 0, but got a radius of "
                f"{self.radius_mm} mm and a tolerance of {self.tolerance}"
            )
        if self.plane_axis not in (0, 1, 2) or not 1 <= self.label <= 255:
            raise ValueError(
                "expected the plane axis to be 0, 1 or 2 and the label to be from 1 to 255, but "
                f"got plane axis {self.plane_axis} and label {self.label}"
            )

    def inverted(self) -> Self:
        """Return the same brush with the opposite action."""
        other = Action.ERASE if self.action is Action.ADD else Action.ADD
        return replace(self, action=other)


@dataclass(frozen=True, slots=True)
class Stroke:
    """One press, drag and release of the pointer: the brush, and the positions in order."""

    brush: Brush
    path: tuple[Voxel, ...]


@dataclass(frozen=True, slots=True)
class Edit:
    """One step of an editing session, as the history lists it.

    Parameters
    ----------
    name
        The name of the action, such as "erase 12 mm", "grow (2 outlines)" or "prediction kinetic".
    stroke
        The stroke, from which the step can be replayed on the same images; None for other
        steps.
    parameters
        The parameters of the step as (name, value) pairs; for a stroke, its additional inputs, such
        as ("locked", "2 3").
    path_mm
        The length of the stroke's path in mm; 0 for other steps.
    changed_voxels
        The number of voxels of the mask that the step changed.
    at_s
        The editing time since the session began in s, without idle time.
    label
        The label that the step changed, or 0 for the whole mask, by which the steps of each lesion
        are distinguished.
    """

    name: str
    stroke: Stroke | None = None
    parameters: tuple[tuple[str, Setting], ...] = ()
    path_mm: float = 0.0
    changed_voxels: int = 0
    at_s: float = 0.0
    label: int = 1

    @property
    def tool(self) -> str:
        """Name of the tool of a stroke, or the name of the step up to a parenthesis.

        Examples
        --------
        >>> Edit("grow (2 outlines)").tool
        'grow'
        """
        return self.stroke.brush.tool.value if self.stroke else self.name.partition(" (")[0]

    @property
    def undone_row(self) -> int | None:
        """History row (from 1) of the step that this step undoes, or None if it is not an undo."""
        row = None if self.stroke else dict(self.parameters).get(UNDOES_ROW)
        return row if isinstance(row, int) else None


def standing_rows(steps: Sequence[Edit], label: int) -> tuple[int, ...]:
    """Return the history rows of the steps that determine a lesion's current state.

    These are the steps of `label` and of the whole mask, without undone steps and undoing steps.
    Rows are counted from 1.

    Examples
    --------
    >>> first, other, third = Edit("a"), Edit("b", label=2), Edit("c")
    >>> standing_rows([first, other, third], 1)
    (1, 3)
    >>> standing_rows([first, other, third, Edit("undo", parameters=((UNDOES_ROW, 3),))], 1)
    (1,)
    """
    undone = {step.undone_row for step in steps if step.label == label}
    return tuple(
        row
        for row, step in enumerate(steps, 1)
        if step.label in (label, WHOLE_MASK) and step.undone_row is None and row not in undone
    )


@dataclass(frozen=True, slots=True)
class Step:
    """An editing step with its change; `number` is unique in its journal."""

    number: int
    edit: Edit
    difference: Difference


class Turn(StrEnum):
    """A move in the history, such as an undo or a redo, that adds no step."""

    UNDO = "undo"
    REDO = "redo"


@dataclass(frozen=True, slots=True)
class Jump:
    """A move to a row of the history, with the numbers of applied steps before and after it."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class EditingSummary:
    """Editing statistics stored in the provenance of a mask.

    Parameters
    ----------
    seconds
        The editing time in s; a pause of 30 s or more between two actions does not count.
    strokes, steps, undos
        The numbers of brush strokes, of other steps (such as growth), and of undos, including steps
        that were undone later.
    path_mm
        The total length of all strokes in mm.
    tools
        The names of the tools, such as "smartpaint" or "grow", in order of first use.
    started_from
        The initial mask, such as "prediction kinetic", or "" for an empty mask.
    models
        The models that made steps, with their licences, in order of first use.
    """

    seconds: float = 0.0
    strokes: int = 0
    steps: int = 0
    undos: int = 0
    path_mm: float = 0.0
    tools: tuple[str, ...] = ()
    started_from: str = ""
    models: tuple[str, ...] = ()

    def after(self, act: Edit | Turn | Jump) -> Self:
        """Return the summary with one more action counted and its editing time added.

        A jump back over n steps counts as n undos.
        """
        if isinstance(act, Jump):
            return replace(self, undos=self.undos + max(0, act.start - act.stop))
        if isinstance(act, Turn):
            return replace(self, undos=self.undos + (act is Turn.UNDO))
        if UNDOES_ROW in dict(act.parameters):
            return replace(self, seconds=max(self.seconds, act.at_s), undos=self.undos + 1)
        tool, model = act.tool, dict(act.parameters).get(MODEL)
        is_new = isinstance(model, str) and model not in self.models
        return replace(
            self,
            seconds=max(self.seconds, act.at_s),
            strokes=self.strokes + (act.stroke is not None),
            steps=self.steps + (act.stroke is None),
            path_mm=self.path_mm + act.path_mm,
            tools=self.tools if tool in self.tools else (*self.tools, tool),
            models=(*self.models, str(model)) if is_new else self.models,
        )
