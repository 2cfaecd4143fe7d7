"""The registration of a phase as a flat row, with unit and meaning of every column."""

import math
from dataclasses import dataclass

from napari_mamamia.kinetics.registration.registration import PhaseMotion
from napari_mamamia.services.batch.row_table import OK, number, text
from napari_mamamia.services.register.case import RegisteredCase


@dataclass(frozen=True, slots=True)
class RegistrationRow:
    """One phase of one case; an undefined number is nan, and an empty cell."""

    case_id: str
    status: str = text("ok, or failed with the reason", OK)
    reason: str = text("why the case failed")
    phase: float = number("0 is before contrast")
    verdict: str = text("reference; better: moved; unchanged, worse: not moved")
    applied: str = text("registration applied to the voxels: none, rigid, rigid + B-spline")
    note: str = text("why a step was not taken")
    rotation_z_deg: float = number(
        "about the array's axis z through the centre of the body, degrees"
    )
    rotation_y_deg: float = number("about y, degrees")
    rotation_x_deg: float = number("about x, degrees")
    translation_z_mm: float = number("of the centre of the body along the array's axis z, mm")
    translation_y_mm: float = number("along y, mm")
    translation_x_mm: float = number("along x, mm")
    mesh_z_mm: float = number("distance of the B-spline's control points along z, mm")
    mesh_y_mm: float = number("along y, mm")
    mesh_x_mm: float = number("along x, mm")
    mutual_information_nats: float = number("Mattes metric at the end, more is better")
    displacement_median_mm: float = number("of the body's voxels, of the registration tried, mm")
    displacement_p95_mm: float = number("95th percentile of the same, mm")
    displacement_max_mm: float = number("largest of the same, mm")
    jacobian_min: float = number("minimum local change of volume in the mask, 1 is none")
    jacobian_max: float = number("maximum of the same")
    body_jacobian_min: float = number("minimum in the body; 0 or less is folding")
    residual_before_percent: float = number(
        "mean |phase - a reference - b| where nothing enhances, % of the body's median signal"
    )
    residual_after_percent: float = number("the same of the registration tried")
    nmi_before: float = number("normalised mutual information in the body, 1 to 2")
    nmi_after: float = number("the same of the registration tried")
    outside_voxels: float = number("number of voxels outside the moved phase, filled")
    seconds: float = number("computing time of this phase")
    volume_before_cc: float = number("enhancing volume around the mask, before, cc")
    volume_after_cc: float = number("the same after, cc")
    volume_change_percent: float = number("its change, percent of the volume before")
    volume_variant: str = text("how that volume is measured")
    warning: str = text("a warning to check")


@dataclass(frozen=True, slots=True)
class RegisteredRows:
    """The rows of one case."""

    case_id: str
    rows: tuple[RegistrationRow, ...]


def rows_of(found: RegisteredCase) -> RegisteredRows:
    """Return one row for each phase of a case."""
    case_id = found.case.case_id
    rows = tuple(_make_row(case_id, motion, found) for motion in found.found.motions)
    return RegisteredRows(case_id, rows)


def _make_row(case_id: str, motion: PhaseMotion, found: RegisteredCase) -> RegistrationRow:
    volume = found.volume
    turn, shift = motion.rotation_deg, motion.translation_mm
    mesh = motion.mesh_mm or (math.nan,) * 3
    return RegistrationRow(
        case_id,
        phase=float(motion.phase),
        verdict=str(motion.verdict),
        applied=motion.applied,
        note=motion.note,
        rotation_z_deg=turn[0],
        rotation_y_deg=turn[1],
        rotation_x_deg=turn[2],
        translation_z_mm=shift[0],
        translation_y_mm=shift[1],
        translation_x_mm=shift[2],
        mesh_z_mm=mesh[0],
        mesh_y_mm=mesh[1],
        mesh_x_mm=mesh[2],
        mutual_information_nats=motion.information,
        displacement_median_mm=motion.displacement.median_mm,
        displacement_p95_mm=motion.displacement.p95_mm,
        displacement_max_mm=motion.displacement.max_mm,
        jacobian_min=motion.jacobian_min,
        jacobian_max=motion.jacobian_max,
        body_jacobian_min=motion.body_jacobian_min,
        residual_before_percent=motion.before.residual_percent,
        residual_after_percent=motion.after.residual_percent,
        nmi_before=motion.before.nmi,
        nmi_after=motion.after.nmi,
        outside_voxels=float(motion.outside),
        seconds=motion.seconds,
        volume_before_cc=volume.before_cc,
        volume_after_cc=volume.after_cc,
        volume_change_percent=volume.percent,
        volume_variant=volume.variant,
        warning=volume.warning,
    )
