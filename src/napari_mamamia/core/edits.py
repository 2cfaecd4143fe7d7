"""What a reader did to a mask: `Brush`, `Stroke`, `Edit`, `Step`. A stroke is a row of dabs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Self

from napari_mamamia.core.difference import Difference
from napari_mamamia.core.provenance import Setting

WHOLE_MASK: Final = 0
"""Label of a step that is done to all labels."""

UNDOES_ROW: Final = "undoes row"
"""Parameter of a step that takes an earlier one of its lesion back: which row of the history."""

Voxel = tuple[float, float, float]
"""A place in voxel coordinates (z, y, x) of the case's array; a voxel's centre is its index."""


class Tool(StrEnum):
    """How a brush decides what it paints.

    `EVIDENCE` is the smart brush: its strokes last. `SMARTPAINT` is the smart brush of before,
    dab by dab; journals of its time are played with it.
    """

    EVIDENCE = "evidence"
    SMARTPAINT = "smartpaint"
    SPHERE = "sphere"
    SMOOTH = "smooth"


class Action(StrEnum):
    """Whether a brush adds to the label or takes away from it."""

    ADD = "add"
    ERASE = "erase"


class Features(StrEnum):
    """Which images a brush compares."""

    POST = "post"
    SUBTRACTION = "subtraction"
    ALL = "all"


class Extent(StrEnum):
    """Whether a brush paints a sphere, or its disc in the plane shown."""

    VOLUME = "3-D"
    PLANE = "2-D"


class Sampling(StrEnum):
    """Whether each dab takes its own sample of the image, or all that of the press."""

    FOLLOW = "follow"
    LOCKED = "locked"


@dataclass(frozen=True, slots=True)
class Brush:
    """A brush as the reader set it.

    Parameters
    ----------
    radius_mm
        Above 0. What is painted from a clean start reaches somewhat less far, see
        `smartpaint.brush.brush.painted_radius_mm`.
    tolerance
        In units of the image's noise; above 0. A sphere does not use it.
    plane_axis
        The array axis (0 z, 1 y, 2 x) that stands upright on the plane shown; a brush with
        `Extent.PLANE` paints only in the plane of its centre.
    label
        The value painted, 1 to 255.
    whole
        Whether a stroke of `Tool.EVIDENCE` acts on the whole lesion that it touches.

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
        # Not `<= 0`, which lets nan pass.
        if not (self.radius_mm > 0 and self.tolerance > 0):
            raise ValueError(
                f"a brush needs a radius and a tolerance above 0, got {self.radius_mm} mm and "
                f"{self.tolerance}"
            )
        if self.plane_axis not in (0, 1, 2) or not 1 <= self.label <= 255:
            raise ValueError(
                f"a brush needs a plane axis 0, 1 or 2 and a label of 1 to 255, got "
                f"{self.plane_axis} and {self.label}"
            )

    def inverted(self) -> Self:
        """Return the same brush with the other action."""
        other = Action.ERASE if self.action is Action.ADD else Action.ADD
        return replace(self, action=other)


@dataclass(frozen=True, slots=True)
class Stroke:
    """One press, drag and release: the brush and the places that the pointer gave, in order."""

    brush: Brush
    path: tuple[Voxel, ...]


@dataclass(frozen=True, slots=True)
class Edit:
    """One step of an editing session, as the list of history shows it.

    Parameters
    ----------
    name
        What was done in the field's words: "erase 12 mm", "grow (2 outlines)", "prediction
        kinetic".
    stroke
        The stroke, None for a step that is none; it repeats the step on the same images.
    parameters
        (name, value) pairs of a step that is not a stroke; of a stroke, what else it depended on,
        such as ("locked", "2 3").
    path_mm
        Length of the stroke's path; 0 for a step that is none.
    changed_voxels
        How many voxels of the mask the step changed.
    at_s
        Seconds of editing, idle time excluded, since the session began.
    label
        The label that it was done to, as its difference has it; 0 for one that is done to the whole
        mask. Each lesion's steps are told apart by it.
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
        """What did it: a stroke's tool, or the name up to its bracket: "grow (2 outlines)" is grow.

        Examples
        --------
        >>> Edit("grow (2 outlines)").tool
        'grow'
        """
        return self.stroke.brush.tool.value if self.stroke else self.name.partition(" (")[0]

    @property
    def undone_row(self) -> int | None:
        """The row of the history that the step takes back, counted from 1; else None."""
        row = None if self.stroke else dict(self.parameters).get(UNDOES_ROW)
        return row if isinstance(row, int) else None


def standing_rows(steps: Sequence[Edit], label: int) -> tuple[int, ...]:
    """Return the rows, from 1, of those of some applied steps that make a lesion what it is.

    They are those of `label` and of the whole mask, but for what was taken back, and the taking
    back itself.

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
    """One step of an editing session with what it changed; `number` is unique in its journal."""

    number: int
    edit: Edit
    difference: Difference


class Turn(StrEnum):
    """A move in the history that makes no new step."""

    UNDO = "undo"
    REDO = "redo"


@dataclass(frozen=True, slots=True)
class Jump:
    """Going to a row of the history in one act: how many steps were applied before, and after."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class EditingSummary:
    """What went into a mask so far, as its provenance carries it.

    Parameters
    ----------
    seconds
        Editing time; a pause of 30 s or more between two acts does not count.
    strokes, steps, undos
        Strokes of a brush, steps that are none (growth, islands ...), and undos, each counted
        whether or not it was undone later.
    path_mm
        Length of all strokes together.
    tools
        Names of what was used, in order of first use: "smartpaint", "grow" ...
    started_from
        The mask that the editing began with: "prediction kinetic", "" for an empty one.
    """

    seconds: float = 0.0
    strokes: int = 0
    steps: int = 0
    undos: int = 0
    path_mm: float = 0.0
    tools: tuple[str, ...] = ()
    started_from: str = ""

    def after(self, act: Edit | Turn | Jump) -> Self:
        """Return the summary with one more act counted; `seconds` are the step's.

        A jump back over n steps counts as n undos.
        """
        if isinstance(act, Jump):
            return replace(self, undos=self.undos + max(0, act.start - act.stop))
        if isinstance(act, Turn):
            return replace(self, undos=self.undos + (act is Turn.UNDO))
        if UNDOES_ROW in dict(act.parameters):
            return replace(self, seconds=max(self.seconds, act.at_s), undos=self.undos + 1)
        tool = act.tool
        return replace(
            self,
            seconds=max(self.seconds, act.at_s),
            strokes=self.strokes + (act.stroke is not None),
            steps=self.steps + (act.stroke is None),
            path_mm=self.path_mm + act.path_mm,
            tools=self.tools if tool in self.tools else (*self.tools, tool),
        )
