"""Landmarks: exports lie at the same place in the patient for every reader of files."""

import itertools
import os

import nibabel as nib
import numpy as np
import pytest
from tests.halves import half_by_day

from napari_mamamia.annotations.harmonise import harmonised
from napari_mamamia.core.choices import OrientationProfile
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.data_set.volumes import read_labels, write_volume

sitk = pytest.importorskip("SimpleITK")

CODES = [
    "".join(pair[side] for pair, side in zip(order, sides, strict=True))
    for order in itertools.permutations(("RL", "AP", "SI"))
    for sides in itertools.product((0, 1), repeat=3)
]
SHAPE = (4, 5, 6)
LANDMARKS = [(0, 0, 0), (3, 4, 5), (1, 3, 2)]  # (z, y, x): two corners and one inside


def grid_of(code, tilted):
    """Return a grid whose x, y, z run towards the letters of `code`; tilted by 0.2 and 0.1 rad."""
    affine = np.eye(4)
    for axis, (letter, mm) in enumerate(zip(code, (0.7, 0.9, 2.0), strict=True)):
        affine[:3, axis] = 0
        affine["RLAPSI".index(letter) // 2, axis] = mm if letter in "RAS" else -mm
    if tilted:
        a, b = 0.2, 0.1
        about_s = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
        about_r = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
        affine[:3, :3] = about_s @ about_r @ affine[:3, :3]
    affine[:3, 3] = (-61.5, 40.25, 17.0)
    return Grid(SHAPE, affine)


def places_by_nibabel(path):
    """Return {label: RAS mm} of a file's marked voxels."""
    image = nib.load(path)
    values = np.asanyarray(image.dataobj)
    return {int(values[tuple(v)]): image.affine[:3] @ [*v, 1] for v in np.argwhere(values)}


def places_by_itk(path):
    """Return the same by ITK's own NIfTI reader, whose millimetres are LPS."""
    image = sitk.ReadImage(str(path))
    values = sitk.GetArrayViewFromImage(image)
    found = {}
    for z, y, x in np.argwhere(values):
        lps = image.TransformIndexToPhysicalPoint((int(x), int(y), int(z)))
        found[int(values[z, y, x])] = np.array(lps) * (-1, -1, 1)
    return found


@pytest.mark.parity
@pytest.mark.parametrize("profile", half_by_day(sorted(OrientationProfile)))
@pytest.mark.parametrize("tilted", [False, True], ids=["straight", "oblique"])
def test_landmarks_keep_their_place_in_48_orientations(tmp_path, monkeypatch, profile, tilted):
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # nothing here is to survive
    for code in CODES:
        grid = grid_of(code, tilted)
        labels = np.zeros(SHAPE, np.uint8)
        expected = {}
        for label, voxel in enumerate(LANDMARKS, start=1):
            labels[voxel] = label
            z, y, x = voxel
            expected[label] = grid.affine[:3] @ [x, y, z, 1]
        turn = harmonised(grid, profile)
        path = tmp_path / f"{code}.nii"
        write_volume(turn.array(labels), turn.target, path)
        for places in (places_by_nibabel(path), places_by_itk(path)):
            assert places.keys() == expected.keys()
            for label, mm in expected.items():
                np.testing.assert_allclose(places[label], mm, atol=2e-4, err_msg=code)
        back = turn.array_back(read_labels(path).dense())
        assert back.tobytes() == labels.tobytes(), code
        again = harmonised(read_labels(path).grid, OrientationProfile.AS_IS).target
        np.testing.assert_allclose(again.affine, turn.target.affine, atol=8e-6)
