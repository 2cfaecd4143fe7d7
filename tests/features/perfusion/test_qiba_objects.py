"""QIBA's digital reference objects v6 (Tofts) and v4 (extended Tofts), as DICOM of one slice each.

They lie in `qiba/q6/DICOM` and `qiba/q4/DICOM` of the real data: davidssmith/DCEMRI.jl at cb37abc3,
test/. Their licence is for education and research, so that no number of them is copied here.
"""

import re

import numpy as np
import pytest

from napari_mamamia.core.choices import TissueModel
from napari_mamamia.features.perfusion.kinetics.arterial_input import PlasmaCurve
from napari_mamamia.features.perfusion.kinetics.fit import LinearFit, RefinedFit
from napari_mamamia.features.perfusion.kinetics.spoiled_echo import SpoiledEcho, concentration_mm

pytestmark = pytest.mark.real
STEP_MIN = 0.5 / 60


def frames(folder, pattern):
    pydicom = pytest.importorskip("pydicom")
    paths = sorted(
        folder.glob(pattern), key=lambda path: int(re.findall(r"_(\d+)\.dcm", path.name)[0])
    )
    return np.stack([pydicom.dcmread(path).pixel_array for path in paths]).astype(np.float64)


def mean_of(images, rows, columns):
    return images[:, rows, columns].reshape(len(images), -1).mean(axis=1)


def test_the_tofts_object_gives_its_ktrans_and_ve_back(real_data):
    images = frames(real_data("qiba") / "q6" / "DICOM", "QIBA*.dcm")
    echo = SpoiledEcho(0.005, 30.0, 4.5)
    vessel = mean_of(images, slice(70, 80), slice(None))
    start = 120  # injection at 60 s
    blood = concentration_mm(vessel[:, None], vessel[:1], 1.44, echo)[:, 0]
    plasma = PlasmaCurve(blood[start:] / 0.55, STEP_MIN)
    assert plasma.values.max() == pytest.approx(9.653, abs=1e-3)
    ktrans, ve = np.meshgrid((0.01, 0.02, 0.05, 0.1, 0.2, 0.35), (0.01, 0.05, 0.1, 0.2, 0.5))
    patches = [
        mean_of(images, slice(10 + 10 * row, 20 + 10 * row), slice(10 * column, 10 * column + 10))
        for column in range(5)
        for row in range(6)
    ]
    for step, linear, refined in ((1, 0.005, 0.002), (7, 0.005, 0.003), (30, 0.04, 0.004)):
        minutes = (np.arange(len(images)) - start)[::step] * STEP_MIN
        signal = np.stack(patches, axis=1)[::step]
        curves = concentration_mm(signal, signal[minutes < 0].mean(axis=0), 1.0, echo)
        resolved = ve.ravel() >= 0.05
        found = RefinedFit(TissueModel.TOFTS, plasma, minutes).fit(curves)
        assert found.ktrans_per_min == pytest.approx(ktrans.ravel(), rel=2 * refined)
        assert found.ve[resolved] == pytest.approx(ve.ravel()[resolved], rel=0.015)
        quick = LinearFit(TissueModel.TOFTS, plasma, minutes).fit(curves)
        assert quick.ktrans_per_min[resolved] == pytest.approx(ktrans.ravel()[resolved], rel=linear)


def test_the_extended_object_gives_its_ktrans_and_vp_back_within_osipis_tolerance(real_data):
    images = frames(real_data("qiba") / "q4" / "DICOM", "dcemri*.dcm")
    echo = SpoiledEcho(0.005, 25.0, 4.5)
    vessel = mean_of(images, slice(180, 200), slice(None))
    start = 6  # its bolus comes after some seconds
    blood = concentration_mm(vessel[:, None], vessel[:1], 1.44, echo)[:, 0]
    plasma = PlasmaCurve(np.maximum(blood[start:], 0) / 0.55, STEP_MIN)
    minutes = (np.arange(len(images)) - start) * STEP_MIN
    truth, patches = [], []
    for column, ktrans in enumerate((0.01, 0.02, 0.05, 0.1, 0.2), start=1):
        for block, vp in enumerate((0.001, 0.005, 0.01, 0.02, 0.05, 0.1)):
            for number, ve in enumerate((0.1, 0.2, 0.5)):
                row = 10 * (3 * block + number)
                own = slice(10 * column, 10 * column + 10)
                patches.append(mean_of(images, slice(row, row + 10), own))
                truth.append((ktrans, ve, vp))
    ktrans, _, vp = np.array(truth).T
    signal = np.stack(patches, axis=1)
    curves = concentration_mm(signal, signal[minutes <= 0].mean(axis=0), 1.0, echo)
    found = RefinedFit(TissueModel.EXTENDED, plasma, minutes).fit(curves)
    within = np.abs(found.ktrans_per_min - ktrans) <= 0.005 + 0.1 * ktrans
    assert within.mean() > 0.98  # signals of 15 are rounded to whole numbers: one patch is lost
    assert np.nanmax(np.abs(found.vp - vp)) < 0.025
