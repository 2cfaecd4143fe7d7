"""Whole studies as scanners leave them, of a phantom that looks like a patient: for the stories.

Each function writes one study into a folder and returns the volumes ``(phase, z, y, x)`` that an
import must make of it, as they lie in the files. Nothing in them is of a patient.
"""

from functools import cache

import numpy as np
from scipy import ndimage
from tests.dicom_protocols import DIFFUSION, series

from napari_mamamia.phantom import PhantomSpec, TumourSpec, make_phantom

SPACING_MM = (4.0, 2.2, 2.2)
TIMES_S = (0.0, 90.0, 180.0, 270.0, 360.0)
_PLACE = {
    "PixelSpacing": list(SPACING_MM[1:]),
    "SliceThickness": SPACING_MM[0],
    "gap": SPACING_MM[0],
    "PatientName": "Muster^Erika",
    "PatientID": "4711",
}
SIEMENS = {"Manufacturer": "SIEMENS", **_PLACE}
PHILIPS = {"Manufacturer": "Philips Medical Systems", **_PLACE}


@cache
def volumes():
    """Return phases of one phantom, int16 as DICOM stores planes; phase 0 is before contrast."""
    spec = PhantomSpec(
        shape=(20, 128, 160),
        spacing_mm=SPACING_MM,
        seed=7,
        times_s=TIMES_S,
        tumours=(TumourSpec(longest_mm=26.0),),
    )
    made = np.clip(make_phantom(spec).case.signal, 0, 30_000).astype(np.int16)[:, :, ::-1]
    made.flags.writeable = False
    return made


def noisy(volume, seed):
    """Return the same anatomy scanned again: other noise, nothing else."""
    noise = np.random.default_rng(seed).normal(0, 8, volume.shape)
    return np.clip(volume + noise, 0, 30_000).astype(np.int16)


def _other_contrast(volume, seed):
    """Return the same anatomy in another contrast: dark tissue bright, bright tissue dark."""
    smooth = ndimage.uniform_filter(volume.astype(float), 3)
    top, air = np.percentile(smooth, 99), smooth[:, :6, :6].mean()
    body = ndimage.binary_opening(smooth > 2 * air, iterations=2)
    return noisy(np.where(body, np.clip(1.1 * top - smooth, top / 10, None), 0), seed)


def messy_siemens(folder):
    """Localiser, T2, dynamic, subtractions, MoCo copies, a MIP, DWI and ADC: as a day leaves it."""
    phases = volumes()
    series(folder, 1, 0, phases[0][::4], -900, MRAcquisitionType="2D", RepetitionTime=8,
           SeriesDescription="localizer_3-plane", ImageType=["ORIGINAL", "PRIMARY", "LOCALIZER"],
           **{**SIEMENS, "gap": 16.0})  # fmt: skip
    series(folder, 2, 0, _other_contrast(phases[0], 2), -600, **SIEMENS,
           **{"ScanningSequence": "SE", "MRAcquisitionType": "2D", "RepetitionTime": 5200,
              "EchoTime": 92, "FlipAngle": 150, "SeriesDescription": "t2_tse_tra_fs"})  # fmt: skip
    for k, at in enumerate(TIMES_S):
        told = {**SIEMENS, "SequenceName": "*fl3d1"}
        series(folder, 5 + k, k, phases[k], at, **told,
               SeriesDescription=f"t1_fl3d_tra_dyn_{k}",
               ImageType=["ORIGINAL", "PRIMARY", "M", "ND"])  # fmt: skip
        series(folder, 20 + k, k, np.roll(phases[k], 1, 2), at, **told, ContentTime="103000",
               SeriesDescription=f"t1_fl3d_tra_dyn_{k}_MoCo",
               ImageType=["DERIVED", "PRIMARY", "M", "ND", "MOCO"])  # fmt: skip
        if k:
            series(folder, 30 + k, k, np.clip(phases[k] - phases[0], 0, None), at, **told,
                   SeriesDescription=f"t1_fl3d_tra_dyn_{k}_SUB",
                   ImageType=["DERIVED", "PRIMARY", "M", "SUB"])  # fmt: skip
    thickest = np.broadcast_to((phases[2] - phases[0]).max(axis=0), phases[0].shape)
    series(folder, 40, 2, np.ascontiguousarray(thickest[:3]), 180, **SIEMENS,
           SeriesDescription="dyn_SUB_MIP_TRA",
           ImageType=["DERIVED", "SECONDARY", "M", "MIP_TRA"])  # fmt: skip
    blurred = phases[0][:, ::2, ::2].repeat(2, 1).repeat(2, 2)
    for number, name, values in ((50, "ep2d_diff_b50_800", blurred), (51, "ADC", blurred // 2)):
        kind = "ADC" if name == "ADC" else "DIFFUSION"
        series(folder, number, 0, noisy(values, number), 900, **SIEMENS, **{
            **DIFFUSION, "SeriesDescription": f"ep2d_diff_{name}" if kind == "ADC" else name,
            "ImageType": ["DERIVED" if kind == "ADC" else "ORIGINAL", "PRIMARY", kind],
        })  # fmt: skip
    return phases


def philips_mdixon(folder):
    """Water, fat, in-phase and opposed images of each dynamic in one series."""
    phases = volumes()
    fat = _other_contrast(phases[0], 2)
    parts = {
        "W": lambda k: phases[k],
        "F": lambda k: noisy(fat, k),
        "IP": lambda k: noisy(phases[k] // 2 + fat // 2, 20 + k),
        "OP": lambda k: noisy(np.abs(phases[k] - fat), 40 + k),
    }
    n_phases = len(TIMES_S)
    for place, (name, values) in enumerate(parts.items()):
        for k, at in enumerate(TIMES_S):
            series(folder, 501, n_phases * place + k, values(k), at, **PHILIPS,
                   SeriesDescription="dyn_mDIXON_ax",
                   ImageType=["ORIGINAL", "PRIMARY", name, name, "DERIVED"])  # fmt: skip
    return phases


def ultrafast_and_standard(folder):
    """A pre-contrast phase, an ultrafast series of 12 frames, four standard phases, one protocol.

    Nothing in the headers but the times tells the two series apart, so the user is asked.
    """
    phases = volumes()
    series(folder, 4, 0, phases[0], 0, **SIEMENS, SeriesDescription="t1_fl3d_tra_pre")
    for k in range(12):
        share = min(max(k - 4, 0) / 7, 1.0)
        values = phases[0] + share * (phases[1] - phases[0].astype(float))
        series(folder, 5, k, noisy(values, k), 30 + 4 * k, **SIEMENS,
               SeriesDescription="t1_fl3d_tra_fast")  # fmt: skip
    for k, at in enumerate(TIMES_S[1:], start=1):
        series(folder, 6, k, phases[k], at, **SIEMENS, SeriesDescription="t1_fl3d_tra_post")
    return phases


def repeated_pre(folder):
    """The phase before contrast was taken twice, in the dynamic's own series."""
    phases = volumes()
    taken = (noisy(phases[0], 3), *phases)
    for k, at in enumerate((0.0, 120.0, 210.0, 300.0, 390.0, 480.0)):
        series(folder, 5, k, taken[k], at, **SIEMENS, SeriesDescription="t1_fl3d_tra_dyn")
    return phases


def failed_last_phase(folder):
    """A sixth phase of the dynamic's own series failed: it is noise."""
    phases = volumes()
    for k, at in enumerate(TIMES_S):
        series(folder, 5, k, phases[k], at, **SIEMENS, SeriesDescription="t1_fl3d_tra_dyn")
    noise = noisy(np.zeros_like(phases[0]), 8) + noisy(np.zeros_like(phases[0]), 9)
    series(folder, 5, 5, noise.astype(np.int16), 450, **SIEMENS,
           SeriesDescription="t1_fl3d_tra_dyn")  # fmt: skip
    return phases


def two_sagittal_breasts(folder):
    """The left and the right breast as two sagittal series."""
    phases = volumes()
    turned = np.ascontiguousarray(np.moveaxis(phases, 3, 1)[:, 5:155])
    halves = (turned[:, :75], turned[:, 75:])
    place = {**SIEMENS, "gap": 2.2, "SliceThickness": 2.2, "PixelSpacing": [4.0, 2.2]}
    sagittal = {"ImageOrientationPatient": [0, 1, 0, 0, 0, -1], "SeriesDescription": "sag_vibrant"}
    for number, half, x0 in zip((7, 8), halves, (-190.0, 25.0), strict=True):
        for k, at in enumerate(TIMES_S):
            series(
                folder, number, k, half[k], at, **place, **sagittal,
                ImagePositionPatient=lambda _, z, x0=x0: [x0 + 2.2 * z, -140.0, 40.0],
            )  # fmt: skip
    return halves
