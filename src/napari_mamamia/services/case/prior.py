"""Read a prior exam with its masks, and transfer positions between exams in mm."""

from collections.abc import Sequence
from dataclasses import dataclass

from napari_mamamia.core.case import Case
from napari_mamamia.core.grid import Grid
from napari_mamamia.services.case.context import CaseContext
from napari_mamamia.services.case.hanging import PhaseRoles, refuse_prior
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.case.show_case import CaseMasks, display_range, open_masks

Offset = tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class PriorExam:
    """A prior exam shown next to a case, with its volumes, masks and window/level.

    `problem` explains why the exam cannot be shown, or is "".
    """

    case: Case
    masks: CaseMasks
    limits: tuple[float, float]
    problem: str = ""


def read_prior(case: Case, context: CaseContext, other: CaseContext) -> PriorExam:
    """Read an exam to be shown next to `case`, with the masks that its reader may see."""
    prior = load_case(other.files, other.record)
    shown = min(prior.n_before, len(prior.phases) - 1)
    limits = display_range(prior.signal[shown])
    problem = refuse_prior(case.grid, context.record, prior.grid, other.record)
    if problem:
        return PriorExam(prior, CaseMasks(()), limits, problem)
    masks = open_masks(prior, other.files, other.workspace, other.reader)
    return PriorExam(prior, masks, limits)


@dataclass(frozen=True, slots=True)
class PriorLink:
    """The offset in RAS mm from a position in an exam to the same position in its prior.

    `is_by_hand` is True if a reader marked a common position. `is_same_frame` is True if both exams
    have the same frame of reference UID (DICOM PS3.3, C.7.4.1), which means that coordinates agree.
    Otherwise an offset of 0 compares scanner coordinates, which depend on the patient's position.
    """

    offset_mm: Offset = (0.0, 0.0, 0.0)
    is_by_hand: bool = False
    is_same_frame: bool = False

    @property
    def is_known(self) -> bool:
        """Whether the exams can be scrolled together."""
        return self.is_by_hand or self.is_same_frame


def link_by_frame(case: Case, prior: Case) -> PriorLink:
    """Return the link of two exams from their frames of reference.

    Exams of two visits seldom have the same frame of reference. An exam without a frame of
    reference UID matches no other exam.
    """
    return PriorLink(is_same_frame=bool(case.frame_uid) and case.frame_uid == prior.frame_uid)


def carry_place(
    grid: Grid, place: Sequence[float], to: Grid, offset_mm: Sequence[float]
) -> tuple[float, float, float]:
    """Transform voxel coordinates (z, y, x) from `grid` to `to`, without rounding.

    Examples
    --------
    >>> import numpy as np
    >>> here, there = Grid((9, 9, 9), np.diag([1, 1, 2, 1.0])), Grid((9, 9, 9), np.eye(4))
    >>> carry_place(here, (2, 3, 4), there, (1.0, 0.0, 0.0))
    (4.0, 3.0, 5.0)
    """
    world = [
        float(mm) + shift for mm, shift in zip(grid.to_world_mm(place), offset_mm, strict=True)
    ]
    z, y, x = (float(i) for i in to.to_voxel(world))
    return (z, y, x)


def link_places(
    grid: Grid, place: Sequence[float], prior: Grid, other: Sequence[float]
) -> PriorLink:
    """Return the link that maps the position `place` in an exam to `other` in its prior."""
    here, there = grid.to_world_mm(place), prior.to_world_mm(other)
    x, y, z = (float(b - a) for a, b in zip(here, there, strict=True))
    return PriorLink((x, y, z), is_by_hand=True)


def is_inside(grid: Grid, place: Sequence[float]) -> bool:
    """Return whether voxel coordinates are in a volume, including the outer half voxels."""
    return all(-0.5 <= i <= n - 0.5 for i, n in zip(place, grid.shape, strict=True))


def match_phase(roles: PhaseRoles, phase: int, prior: PhaseRoles, n_prior: int) -> int:
    """Return the prior's phase with the same role, or else at the same distance from the first.

    Examples
    --------
    >>> match_phase(PhaseRoles(0, 1, 5), 5, PhaseRoles(1, 2, 3), 4)
    3
    >>> match_phase(PhaseRoles(0, 1, 5), 2, PhaseRoles(0, 1, None), 2)
    1
    """
    if phase <= roles.pre or roles.first is None or prior.first is None:
        return prior.pre
    if phase == roles.late and prior.late is not None:
        return prior.late
    return min(prior.first + max(phase - roles.first, 0), n_prior - 1)
