"""Coarse volumes for registration: the phases, the body, and the non-enhancing tissue."""

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
"""Least number of voxels along an axis in which motion can be measured. Our choice."""

TUMOUR_MARGIN_MM: Final = 5.0
"""Margin around the mask in which nothing is sampled and no residual is measured. Our choice."""

QUIET_BELOW_PERCENT: Final = 20.0
"""PE of the first phase after contrast below which a voxel does not enhance. Our choice."""

_SKIN_MM: Final = 5.0  # samples reach this far beyond the body's edge, which shows motion best
_SMOOTH_MM: Final = 2.0
_COARSER: Final = (4, 2, 1)
_LEAST_SIDE: Final = 8  # least number of voxels along an axis of a level

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Coarse:
    """A case resampled to voxels of about `settings.finest_mm`.

    `phases` is float32 ``(phase, z, y, x)``, `body` bool ``(z, y, x)``, `near` the tumour's mask
    with its margin (empty without a mask). `origin_mm` is the centre of voxel 0.
    """

    phases: NDArray[np.float32]
    body: Bools
    near: Bools
    spacing_mm: tuple[float, ...]
    origin_mm: tuple[float, ...]

    @property
    def middle_mm(self) -> tuple[float, float, float]:
        """The centre of the body, mm."""
        places = ndimage.center_of_mass(self.body)
        z, y, x = (
            o + i * s for i, s, o in zip(places, self.spacing_mm, self.origin_mm, strict=True)
        )
        return (float(z), float(y), float(x))


def require_registrable(
    case: Case, settings: RegistrationSettings, mask: NDArray[Any] | None
) -> None:
    """Raise unless the phases of a case can be registered.

    Parameters
    ----------
    case
        The case with its phases.
    settings
        Settings of the registration.
    mask
        The tumour ``(z, y, x)``, or None.

    Raises
    ------
    CaseError
        If there are fewer than two phases, the reference phase does not exist, the volume is
        thinner than 4 voxels, its axes are not at right angles, or a phase is constant or holds
        NaN.
    GridMismatchError
        If the mask has another shape than the case.
    """
    case.require_phases(2)
    name = case.case_id
    if settings.reference >= len(case.phases):
        raise CaseError(
            f"expected a reference phase of {name} from 0 to {len(case.phases) - 1}, but got "
            f"phase {settings.reference}; choose another one"
        )
    if min(case.grid.shape) < LEAST_VOXELS:
        raise CaseError(
            f"registration needs {LEAST_VOXELS} voxels or more along each axis, but {name} has "
            f"{case.grid.shape} (z, y, x); use the phases of this case without registration"
        )
    if case.grid.is_sheared:
        raise CaseError(
            f"registration needs axes at right angles, but those of {name} are sheared; register "
            "a straightened copy",
            remedies=(Remedy(command="straighten"),),
        )
    if mask is not None and mask.shape != case.grid.shape:
        raise GridMismatchError(
            f"expected a mask of the shape {case.grid.shape} (z, y, x) of case {name}, but got "
            f"{mask.shape}; choose the mask of this case"
        )
    for index, volume in enumerate(case.signal):
        _require_values(volume, index, name)


def coarse_case(case: Case, settings: RegistrationSettings, mask: NDArray[Any] | None) -> Coarse:
    """Return the case on coarse voxels (means of blocks), with its body.

    The body is separated from air by Otsu's threshold on the square root of the smoothed reference
    phase: its largest component, with holes filled slice by slice. If that is less than 2 % of the
    volume, the whole volume counts.

    Parameters
    ----------
    case
        The case with its phases.
    settings
        Settings of the registration.
    mask
        The tumour ``(z, y, x)``, or None.
    """
    spacing, shape = case.grid.spacing_mm, case.grid.shape
    factors = _choose_factors(settings.finest_mm, spacing, shape)
    phases = []
    for index, volume in enumerate(case.signal):
        report_progress(index, len(case.signal) + 1, "Preparing the phases")
        phases.append(_block_means(volume, factors))
    steps = tuple(s * f for s, f in zip(spacing, factors, strict=True))
    origin = tuple(s * (f - 1) / 2 for s, f in zip(spacing, factors, strict=True))
    report_progress(len(case.signal), len(case.signal) + 1, "Searching for the body")
    body = _find_body(smoothed(phases[settings.reference], steps))
    near = np.zeros_like(body)
    if mask is not None:
        near = _grow_region(_block_means(mask != 0, factors) > 0, TUMOUR_MARGIN_MM, steps)
    return Coarse(np.stack(phases), body, near, steps, origin)


def levels_of(coarse: Coarse, reference: int, moving: int) -> tuple[Level, ...]:
    """Return two phases at three resolutions, coarse first: 4, 2 and 1 times the finest size.

    A level keeps at least 8 voxels along each axis. The sampled region is the body with 5 mm around
    it without the tumour and its margin, where changing contrast would be mistaken for motion.

    Parameters
    ----------
    coarse
        The case on coarse voxels.
    reference, moving
        Indices of the two phases.
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
    """Return the voxels of the body that do not enhance, so that residuals are not contrast.

    PE of the first phase after contrast is below 20 % before the registration and after it, and the
    tumour with 5 mm around it does not count.

    Parameters
    ----------
    before, after
        Phases 0 and 1, smoothed: unregistered, and moved by the registration that was tried.
    """
    quiet = coarse.body & ~coarse.near
    for pre, post in (before, after):
        with np.errstate(invalid="ignore", divide="ignore"):
            quiet &= 100 * (post - pre) < QUIET_BELOW_PERCENT * pre
    return quiet


def smoothed(volume: NDArray[np.float32], spacing_mm: Sequence[float]) -> NDArray[np.float32]:
    """Return a volume after a Gaussian of 2 mm standard deviation.

    Resampling smooths noise, which would look like a better fit. After this Gaussian on both sides
    of a comparison, that effect is small.

    Parameters
    ----------
    volume
        float32 ``(z, y, x)``.
    spacing_mm
        Along (z, y, x), mm.
    """
    sigma = [_SMOOTH_MM / mm for mm in spacing_mm]
    smooth_volume: NDArray[np.float32] = ndimage.gaussian_filter(volume, sigma, mode="nearest")
    return smooth_volume


def _require_values(volume: NDArray[Any], index: int, name: str) -> None:
    if np.issubdtype(volume.dtype, np.floating) and not np.isfinite(volume).all():
        bad = int(volume.size - np.count_nonzero(np.isfinite(volume)))
        raise CaseError(
            f"phase {index} of {name} has {bad} voxels that are not finite, so it cannot be "
            "registered; export that phase again"
        )
    if volume.min() == volume.max():
        raise CaseError(
            f"phase {index} of {name} has the value {volume.flat[0]} everywhere, so it cannot be "
            "registered; export that phase again"
        )


def _choose_factors(
    wanted_mm: float, spacing_mm: Sequence[float], shape: Sequence[int]
) -> tuple[int, int, int]:
    pairs = zip(spacing_mm, shape, strict=True)
    z, y, x = (max(1, min(round(wanted_mm / mm), n // _LEAST_SIDE)) for mm, n in pairs)
    return (z, y, x)


def _block_means(volume: NDArray[Any], factors: tuple[int, int, int]) -> NDArray[np.float32]:
    """Return the means of blocks; incomplete blocks at the far ends are dropped."""
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
    """Return the region and everything at most `distance_mm` from it."""
    if not region.any():
        return region
    wide_region: Bools = ndimage.distance_transform_edt(~region, sampling=spacing_mm) <= distance_mm
    return wide_region
