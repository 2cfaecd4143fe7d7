"""Contrast-to-noise ratio of the primary tumour: what it is measured against, and its noise."""

from math import ceil
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import CaseError
from napari_mamamia.phantom.body.shapes import distance_to_mask
from napari_mamamia.phantom.body.tissue import Tissue
from napari_mamamia.phantom.spec import PhantomSpec

__all__ = ["noise_sigma", "surround"]

_RING_MM: Final = (2.0, 12.0)
_FEWEST_VOXELS: Final = 40


def surround(
    tumour: NDArray[np.bool_], tissue: NDArray[np.uint8], spec: PhantomSpec
) -> NDArray[np.bool_]:
    """Return the voxels that a tumour is compared with, for `noise_sigma`.

    They are fibroglandular tissue and suppressed fat more than 2 and at most 12 mm from the
    tumour's voxels. Fat that is not suppressed is left out: it is as bright as an enhanced tumour.
    Where fewer than 40 voxels are found, all such tissue in the image counts.
    """
    kinds = [Tissue.FIBROGLANDULAR] + ([Tissue.FAT] if spec.fat_suppressed else [])
    normal = np.isin(tissue, kinds) & ~tumour
    margin = [ceil(_RING_MM[1] / spacing) + 1 for spacing in spec.spacing_mm]
    part = Box.around(tumour).grown(margin, tumour.shape).slices
    away_mm = distance_to_mask(tumour[part], spec.spacing_mm)
    ring = np.zeros_like(tumour)
    ring[part] = normal[part] & (away_mm > _RING_MM[0]) & (away_mm <= _RING_MM[1])
    return ring if np.count_nonzero(ring) >= _FEWEST_VOXELS else normal


def noise_sigma(
    phase_1: NDArray[Any],
    tumour: NDArray[np.bool_],
    tissue: NDArray[np.uint8],
    spec: PhantomSpec,
) -> float:
    """Return the noise at which the primary tumour has the CNR that `spec` states.

    CNR = (mean of the tumour - mean of its surround) / sigma, on phase 1 without noise, coil
    included. The tumour is the reference mask of the primary tumour, dead core included; `surround`
    says what it is compared with; sigma is the standard deviation of the Gaussian noise in each of
    the two channels from which the magnitude is formed. Without a tumour, the CNR is the
    signal-to-noise ratio of unenhanced fibroglandular tissue.

    Raises
    ------
    CaseError
        If the tumour is not brighter than its surround.
    """
    if not spec.tumours:
        return spec.fibroglandular_signal / spec.contrast_to_noise
    if not tumour.any():
        raise CaseError(
            f"{spec.case_id}: the primary tumour lies outside the field of view or between its "
            "voxels: move field_centre_mm, or make the tumour larger or spacing_mm smaller"
        )
    around = surround(tumour, tissue, spec)
    contrast = float(phase_1[tumour].mean() - phase_1[around].mean())
    if contrast <= 0:
        raise CaseError(
            f"{spec.case_id}: the primary tumour is no brighter than its surround in phase 1 "
            f"(difference {contrast:.1f}), so no noise gives the CNR: raise "
            "early_enhancement_percent or lower background_enhancement_percent"
        )
    return contrast / spec.contrast_to_noise
