"""Phases on a coarser grid for registration, the body in them, and where nothing enhances."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError, GridMismatchError, Remedy
from napari_mamamia.core.progress import report_progress
from napari_mamamia.kinetics.background import bright_from
from napari_mamamia.kinetics.registration.search import Level
from napari_mamamia.kinetics.registration.settings import RegistrationSettings

LEAST_VOXELS: Final = 4
"""Fewer along an axis hold no motion that could be measured. Our choice."""

TUMOUR_MARGIN_MM: Final = 5.0
"""Around the mask nothing is sampled and no residual is measured. Our choice."""

QUIET_BELOW_PERCENT: Final = 20.0
"""PE of the first phase after contrast below which a voxel does not enhance. Our choice."""

_SKIN_MM: Final = 5.0  # the body's edge says most about motion: so far outside it is sampled
_SMOOTH_MM: Final = 2.0
_COARSER: Final = (4, 2, 1)
_LEAST_SIDE: Final = 8  # voxels along an axis that a level keeps

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Coarse:
    """A case on voxels of about `settings.finest_mm`.

    `phases` is float32 ``(phase, z, y, x)``, `body` bool ``(z, y, x)``, `near` the tumour's mask
    with its margin (empty without a mask). `origin_mm` is the middle of voxel 0.
    """

    phases: NDArray[np.float32]
    body: Bools
    near: Bools
    spacing_mm: tuple[float, ...]
    origin_mm: tuple[float, ...]

    @property
    def middle_mm(self) -> tuple[float, float, float]:
        """The middle of the body, mm."""
        places = ndimage.center_of_mass(self.body)
        z, y, x = (
            o + i * s for i, s, o in zip(places, self.spacing_mm, self.origin_mm, strict=True)
        )
        return (float(z), float(y), float(x))


def require_registrable(
    case: Case, settings: RegistrationSettings, mask: NDArray[Any] | None
) -> None:
    """Raise unless the phases of a case can be moved onto each other.

    Raises
    ------
    CaseError
        If there are fewer than two phases, the reference phase is not there, the volume is thinner
        than 4 voxels, its axes are not at right angles, or a phase holds one value or NaN.
    GridMismatchError
        If the mask has another shape than the case.
    """
    case.require_phases(2)
    name = case.case_id
    if settings.reference >= len(case.phases):
        raise CaseError(
            f"expected a reference phase of {name} from 0 to {len(case.phases) - 1}, got phase "
            f"{settings.reference}: choose another one"
        )
    if min(case.grid.shape) < LEAST_VOXELS:
        raise CaseError(
            f"registration needs {LEAST_VOXELS} voxels or more along each axis, {name} has "
            f"{case.grid.shape} (z, y, x): use the phases of this case as they are"
        )
    if case.grid.is_sheared:
        raise CaseError(
            f"registration needs axes at right angles, those of {name} are sheared: register a "
            "straightened copy",
            remedies=(Remedy(command="straighten"),),
        )
    if mask is not None and mask.shape != case.grid.shape:
        raise GridMismatchError(
            f"the mask has shape {mask.shape}, the case {name} has {case.grid.shape} (z, y, x): "
            "choose the mask that was made for it"
        )
    for index, volume in enumerate(case.signal):
        _require_values(volume, index, name)


def coarse_case(case: Case, settings: RegistrationSettings, mask: NDArray[Any] | None) -> Coarse:
    """Return the case on coarse voxels: means of blocks; and the body in it.

    The body is what Otsu's threshold of the root of the smoothed reference phase parts from air:
    its largest piece, with holes filled slice by slice. Where that is less than 2 % of the volume,
    the whole volume counts.
    """
    spacing, shape = case.grid.spacing_mm, case.grid.shape
    factors = _choose_factors(settings.finest_mm, spacing, shape)
    phases = []
    for index, volume in enumerate(case.signal):
        report_progress(index, len(case.signal) + 1, "Preparing the phases")
        phases.append(_block_means(volume, factors))
    steps = tuple(s * f for s, f in zip(spacing, factors, strict=True))
    origin = tuple(s * (f - 1) / 2 for s, f in zip(spacing, factors, strict=True))
    report_progress(len(case.signal), len(case.signal) + 1, "Looking for the body")
    body = _find_body(smoothed(phases[settings.reference], steps))
    near = np.zeros_like(body)
    if mask is not None:
        near = _grow_region(_block_means(mask != 0, factors) > 0, TUMOUR_MARGIN_MM, steps)
    return Coarse(np.stack(phases), body, near, steps, origin)


def levels_of(coarse: Coarse, reference: int, moving: int) -> tuple[Level, ...]:
    """Return two phases on voxels of four times, twice and once the finest size, coarse first.

    A level keeps 8 voxels along each axis. Sampled is the body with 5 mm around it, but not the
    tumour with its margin: contrast that comes and goes there would be taken for motion.
    """
    around = _grow_region(coarse.body, _SKIN_MM, coarse.spacing_mm) & ~coarse.near
    if not around.any():
        around = ~coarse.near
    levels = []
    for times in _COARSER:
        mm = times * max(coarse.spacing_mm)
        shape = coarse.body.shape
        # The finest level is the coarse case itself: the choice could merge voxels along a finer
        # axis.
        factors = (1, 1, 1) if times == 1 else _choose_factors(mm, coarse.spacing_mm, shape)
        pairs = list(zip(coarse.spacing_mm, factors, coarse.origin_mm, strict=True))
        levels.append(
            Level(
                _block_means(coarse.phases[reference], factors),
                _block_means(coarse.phases[moving], factors),
                (_block_means(around, factors) >= 0.5).astype(np.uint8),
                tuple(s * f for s, f, _ in pairs),
                tuple(o + s * (f - 1) / 2 for s, f, o in pairs),
            )
        )
    return tuple(levels)


def not_enhancing(
    coarse: Coarse, before: Sequence[NDArray[np.float32]], after: Sequence[NDArray[np.float32]]
) -> Bools:
    """Return the voxels in which a residual is no contrast: the body where nothing enhances.

    PE of the first phase after contrast is below 20 % before the registration and after it, and
    the tumour with 5 mm around it does not count.

    Parameters
    ----------
    before, after
        Phases 0 and 1, smoothed: as they are, and as the registration that was tried moves them.
    """
    quiet = coarse.body & ~coarse.near
    for pre, post in (before, after):
        with np.errstate(invalid="ignore", divide="ignore"):
            quiet &= 100 * (post - pre) < QUIET_BELOW_PERCENT * pre
    return quiet


def smoothed(volume: NDArray[np.float32], spacing_mm: Sequence[float]) -> NDArray[np.float32]:
    """Return a volume after a Gaussian of 2 mm standard deviation.

    Resampling smooths noise, which would pass for a better fit. After this Gaussian, on both
    sides of a comparison, what it adds is small.
    """
    sigma = [_SMOOTH_MM / mm for mm in spacing_mm]
    smooth_volume: NDArray[np.float32] = ndimage.gaussian_filter(volume, sigma, mode="nearest")
    return smooth_volume


def _require_values(volume: NDArray[Any], index: int, name: str) -> None:
    if np.issubdtype(volume.dtype, np.floating) and not np.isfinite(volume).all():
        bad = int(volume.size - np.count_nonzero(np.isfinite(volume)))
        raise CaseError(
            f"registration needs numbers everywhere, phase {index} of {name} has {bad} voxels that "
            "are none: export that phase again"
        )
    if volume.min() == volume.max():
        raise CaseError(
            f"registration needs an image in every phase, phase {index} of {name} holds the value "
            f"{volume.flat[0]} everywhere: export that phase again"
        )


def _choose_factors(
    wanted_mm: float, spacing_mm: Sequence[float], shape: Sequence[int]
) -> tuple[int, int, int]:
    pairs = zip(spacing_mm, shape, strict=True)
    z, y, x = (max(1, min(round(wanted_mm / mm), n // _LEAST_SIDE)) for mm, n in pairs)
    return (z, y, x)


def _block_means(volume: NDArray[Any], factors: tuple[int, int, int]) -> NDArray[np.float32]:
    """Return the means of blocks; what is left over at the far ends is dropped."""
    n = [size // factor for size, factor in zip(volume.shape, factors, strict=True)]
    whole = volume[tuple(slice(k * f) for k, f in zip(n, factors, strict=True))]
    out = np.empty(n, np.float32)
    for place in range(n[0]):
        slab = whole[place * factors[0] : (place + 1) * factors[0]]
        blocks = slab.reshape(factors[0], n[1], factors[1], n[2], factors[2])
        out[place] = blocks.mean(axis=(0, 2, 4), dtype=np.float32)
    return out


def _find_body(volume: NDArray[np.float32]) -> Bools:
    root = np.sqrt(np.maximum(volume, 0))
    tissue = root > bright_from(root)
    labels, count = ndimage.label(tissue)
    if count > 1:
        sizes = np.bincount(labels.ravel())
        sizes[0] = 0
        tissue = labels == int(sizes.argmax())
    filled = np.stack([ndimage.binary_fill_holes(plane) for plane in tissue])
    if np.count_nonzero(filled) < 0.02 * filled.size:
        return np.ones_like(filled)
    return filled


def _grow_region(region: Bools, distance_mm: float, spacing_mm: Sequence[float]) -> Bools:
    """Return the region and all that lies at most `distance_mm` from it."""
    if not region.any():
        return region
    wide_region: Bools = ndimage.distance_transform_edt(~region, sampling=spacing_mm) <= distance_mm
    return wide_region
