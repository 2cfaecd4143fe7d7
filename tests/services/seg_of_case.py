"""A SEG of UCSF for a case of the small data set, with its FTV counted voxel by voxel."""

import itertools
import math

import nibabel as nib
import numpy as np
from tests.conftest import AFFINE, SHAPE
from tests.io.made_ucsf_seg import THRESHOLDS, measure, region, write_ucsf_seg

# the VOI in voxels (slice, row, column) of a stack whose rows count against the array's y
VOI = ((1, 8), (8, 22), (16, 30))


def phases_of(data_set, case_id="A_1"):
    """Return phases (phase, slice, row, column), rows counting towards posterior, by nibabel."""
    files = sorted((data_set / "images" / case_id).glob("*.nii.gz"))
    arrays = [np.asarray(nib.load(file).dataobj).transpose() for file in files]
    return np.stack(arrays)[:, :, ::-1].astype(int)


def slow_ftv(signal, early, late, neighbours=9):
    """Return voxels of pe and ser of the VOI, and the mask of pe, voxel by voxel."""
    pre, first, last = signal[0], signal[early], signal[late]
    inside = set(itertools.product(*(range(*ends) for ends in VOI)))
    values = sorted(int(pre[place]) for place in inside)
    at = 0.95 * (len(values) - 1)
    low = values[int(at)]
    bright = low + (at - int(at)) * (values[min(int(at) + 1, len(values) - 1)] - low)
    least = math.floor(0.6 * bright + 0.5)
    passed = {
        place
        for place in itertools.product(*map(range, pre.shape))
        if pre[place] >= least and 100 * (first[place] - pre[place]) >= 70 * pre[place]
    }
    steps = [step for step in itertools.product((-1, 0, 1), repeat=3) if any(step)]
    mask = np.zeros(pre.shape, bool)
    ser = 0
    for place in passed & inside:
        near = sum(
            tuple(a + b for a, b in zip(place, step, strict=True)) in passed for step in steps
        )
        if near >= neighbours:
            mask[place] = True
            rise, end = first[place] - pre[place], last[place] - pre[place]
            ser += end > 0 and rise / end > 0.9
    return int(mask.sum()), ser, mask, least


def lps_of(slice_, row, column):
    """Return the place of a voxel of the stack, from the affine of the small data set."""
    y = SHAPE[1] - 1 - row
    x_ras, y_ras, z_ras = (AFFINE @ (column, y, slice_, 1))[:3]
    return (-x_ras, -y_ras, z_ras)


def make_seg(data_set, path, shift=0.5, thresholds=None, case_id="A_1", neighbours=9, **more):
    """Write the SEG of a case; UCSF's frames are half a pixel off within the slice."""
    pe, ser, mask, least = slow_ftv(phases_of(data_set, case_id), 1, 3, neighbours)
    off = np.array((0.8 * shift, 0.8 * shift, 0.0))
    frames = [k for k in range(SHAPE[0]) if mask[k].any()]
    places = [np.array(lps_of(k, 0, 0)) + off for k in frames]
    ends = [np.array(lps_of(*[axis[k] - k for axis in VOI])) for k in (0, 1)]
    centre = (ends[0] + ends[1]) / 2 + off
    halves = [0.8 * 14 / 2, 0.8 * 14 / 2, 2.0 * 7 / 2]
    said = {**THRESHOLDS, "pre_contrast_threshold": least} if thresholds is None else thresholds
    cc = 0.8 * 0.8 * 2 / 1000
    given = {
        "regions": [region(centre, halves)],
        "measures": [
            measure(0.9, ser, ser * cc, "FTVser(PEearly>70%, SER>0.9)"),
            measure(0, pe, pe * cc, "FTVpe(PEearly>70%)"),
        ],
        "thresholds": said,
        "places": places,
        "mask": mask[frames],
        "patient": case_id,
        **more,
    }
    write_ucsf_seg(path, **given)
    return pe, ser, least
