"""Choose the best warp of a phase, and decide whether it is better than no warp."""

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from napari_mamamia.core.progress import report_progress
from napari_mamamia.kinetics.registration.quality import Displacement, Fit, fit_of, verdict_of
from napari_mamamia.kinetics.registration.settings import RegistrationSettings, Verdict
from napari_mamamia.kinetics.registration.tries import Try
from napari_mamamia.kinetics.registration.volumes import Coarse, not_enhancing, smoothed

_SPLINE_GAIN: Final = 0.98
"""A B-spline is used if its residual is at most this share of the rigid one's. Our choice."""

_NAN3: Final = (math.nan, math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class PhaseMotion:
    """Motion of one phase; values named "after" belong to the tried registration.

    Parameters
    ----------
    applied
        The registration applied to its voxels: "none", "rigid" or "rigid + B-spline".
    rotation_deg, translation_mm
        Rotation about and translation along the array's axes (z, y, x), from the reference phase to
        this one, about the centre of the body. A positive rotation about z goes from x towards y.
    information
        Mattes mutual information at the end of the optimisation, nats; more is better.
    displacement
        Displacements of the voxels of the body.
    jacobian_min, jacobian_max
        Local change of volume in the tumour mask, nan without one; 0 or less is folding.
    body_jacobian_min
        The minimum in the body.
    before, after
        The fit onto the reference phase, before and after registration.
    outside
        Number of voxels outside the moved phase; they take the nearest value.
    """

    phase: int
    verdict: Verdict
    applied: str = "none"
    note: str = ""
    rotation_deg: tuple[float, float, float] = _NAN3
    translation_mm: tuple[float, float, float] = _NAN3
    mesh_mm: tuple[float, ...] = ()
    information: float = math.nan
    displacement: Displacement = field(default_factory=Displacement)
    jacobian_min: float = math.nan
    jacobian_max: float = math.nan
    body_jacobian_min: float = math.nan
    before: Fit = field(default_factory=lambda: Fit(math.nan, math.nan))
    after: Fit = field(default_factory=lambda: Fit(math.nan, math.nan))
    outside: int = 0
    seconds: float = 0.0


def judge(
    coarse: Coarse, tries: dict[int, list[Try]], settings: RegistrationSettings
) -> tuple[dict[int, list[Fit]], int]:
    """Return each phase's fits before and after each warp, over the same voxels."""
    steps = coarse.spacing_mm
    plain = {
        index: smoothed(coarse.phases[index], steps) for index in {0, 1, settings.reference, *tries}
    }
    last = {index: phase_tries[-1].moved for index, phase_tries in tries.items()}
    before = (plain[0], plain[1])
    after = (last.get(0, plain[0]), last.get(1, plain[1]))
    quiet = not_enhancing(coarse, before, after)
    if not quiet.any():
        quiet = coarse.body
    reference = plain[settings.reference]
    fits = {}
    for index, phase_tries in tries.items():
        report_progress(1, 1, f"Phase {index}: quality")
        volumes = [plain[index], *(phase_try.moved for phase_try in phase_tries)]
        fits[index] = [fit_of(volume, reference, quiet, coarse.body) for volume in volumes]
    return fits, int(np.count_nonzero(quiet))


def choose(index: int, found: list[Try], fits: list[Fit]) -> tuple[Try, PhaseMotion]:
    """Return the best warp, and the phase's motion under it."""
    chosen, fit, note = found[0], fits[1], ""
    if len(found) > 1:
        finer, finer_fit = found[1], fits[2]
        # In this order: `min` keeps its first value if the other is nan, as it is without a mask.
        folds = min(finer.body_jacobian_min, finer.jacobian[0]) <= 0
        if folds:
            note = "the B-spline folds: the rigid registration is used"
        elif finer_fit.residual_percent > _SPLINE_GAIN * fit.residual_percent:
            note = "the B-spline is no better than the rigid registration"
        else:
            chosen, fit = finer, finer_fit
    verdict = verdict_of(fits[0], fit)
    name = "rigid + B-spline" if chosen.warp.is_spline else "rigid"
    if verdict is not Verdict.BETTER:
        note = "; ".join(filter(None, (note, "left unchanged")))
    return chosen, PhaseMotion(
        index,
        verdict,
        name if verdict is Verdict.BETTER else "none",
        note,
        chosen.warp.rotation_deg,
        chosen.warp.translation_mm,
        chosen.warp.mesh_mm,
        chosen.warp.metric,
        chosen.displacement,
        *chosen.jacobian,
        chosen.body_jacobian_min,
        fits[0],
        fit,
        seconds=found[-1].seconds,
    )
