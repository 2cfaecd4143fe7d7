"""The registration of a phase as a flat row, with the unit and meaning of every column."""

import math
from dataclasses import dataclass

from napari_mamamia.kinetics.registration.registration import PhaseMotion
from napari_mamamia.services.batch.row_table import OK, number, text
from napari_mamamia.services.register.case import RegisteredCase


@dataclass(frozen=True, slots=True)
class RegistrationRow:
    """One phase of one case; an undefined number is NaN, which is written as an empty cell."""

    case_id: str
    status: str = text("ok, or failed if the case could not be registered", OK)
    reason: str = text("reason why the case failed")
    phase: float = number("number of the phase; 0 is before contrast")
    phases_before: float = number("number of phases before contrast")
    verdict: str = text("reference; better (moved); unchanged or worse (not moved)")
    applied: str = text("registration applied to the voxels: none, rigid, or rigid + B-spline")
    note: str = text("reason why a step was not applied")
    rotation_z_deg: float = number(
        "rotation about the array axis z through the centre of the body, degrees"
    )
    rotation_y_deg: float = number("about y, degrees")
    rotation_x_deg: float = number("about x, degrees")
    translation_z_mm: float = number("shift of the centre of the body along the array axis z, mm")
    translation_y_mm: float = number("along y, mm")
    translation_x_mm: float = number("along x, mm")
    mesh_z_mm: float = number("distance of the B-spline's control points along z, mm")
    mesh_y_mm: float = number("along y, mm")
    mesh_x_mm: float = number("along x, mm")
    mutual_information_nats: float = number("final value of the Mattes metric; larger is better")
    displacement_median_mm: float = number(
        "mean displacement of the body's voxels in the tried registration, mm"
    )
    displacement_p95_mm: float = number("95th percentile of that displacement, mm")
    displacement_max_mm: float = number("largest displacement, mm")
    jacobian_min: float = number("smallest local volume change in the mask; 1 is no change")
    jacobian_max: float = number("largest local volume change in the mask")
    body_jacobian_min: float = number(
        "smallest local volume change in the body; 0 or less means folding"
    )
    residual_before_percent: float = number(
        "mean |phase - a reference - b| in tissue without enhancement, % of the body's median "
        "signal"
    )
    residual_after_percent: float = number("the same value after the tried registration")
    nmi_before: float = number("normalised mutual information in the body, 1 to 2")
    nmi_after: float = number("the same value after the tried registration")
    outside_voxels: float = number("number of voxels outside the moved phase, which are filled")
    seconds: float = number("computing time of this phase, s")
    volume_before_cc: float = number("enhancing volume around the mask before registration, cc")
    volume_after_cc: float = number("enhancing volume around the mask after registration, cc")
    volume_change_percent: float = number("change of that volume, percent of the volume before")
    volume_variant: str = text("method by which that volume is measured")
    warning: str = text("warning about the result")


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
        phases_before=float(found.case.n_before),
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
