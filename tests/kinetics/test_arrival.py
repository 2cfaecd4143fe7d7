"""Where contrast came, by the pixels: by hand, moved, with a gain, on real exams."""

import json
import zipfile

import nibabel as nib
import numpy as np
import pytest

from napari_mamamia.kinetics.arrival import find_arrival


def phases(*shares, seed=3):
    """Return phases of 12 x 40 x 40 voxels: so large a share of the body rises by 60 %."""
    rng = np.random.default_rng(seed)
    still = rng.integers(80, 120, (12, 40, 40)).astype(np.float32)
    columns = np.arange(40) // 4 * 4  # whole blocks of 4
    made = []
    for share in shares:
        phase = still + rng.normal(0, 2, still.shape)
        phase[:, :, columns < 40 * share] *= 1.6
        made.append(phase)
    return np.stack(made).astype(np.int16)


@pytest.mark.parametrize(
    ("shares", "n_before"),
    [
        ((0, 0.3, 0.4, 0.4), 1),
        ((0, 0, 0.3, 0.4), 2),
        ((0, 0, 0, 0.3), 3),
        ((0, 0.1, 0.3, 0.4), 1),  # slow: contrast is there at phase 1
        ((0, 0, 0, 0), 1),  # none is seen: phase 0 alone is before
        ((0.3, 0, 0, 0), 1),  # reversed: nothing is taken away
        ((0, 0.3), 1),
        ((0,), 1),
    ],
)
def test_phases_before_contrast_are_counted_by_where_the_body_rises(shares, n_before):
    found = find_arrival(phases(*shares))
    assert found.n_before == n_before
    assert found.is_repeated == (n_before > 1)


def test_the_evidence_says_between_which_phases_contrast_came_and_in_how_much_of_the_body():
    assert find_arrival(phases(0, 0.3, 0.4)).evidence == (
        "contrast arrived between pre and post 1 (phase 1 from 0): "
        "the signal rises in 30% of the body"
    )
    assert "between pre 2 and post 1 (phase 2 from 0)" in find_arrival(phases(0, 0, 0.3)).evidence
    assert "not visible" in find_arrival(phases(0, 0, 0)).evidence


def test_a_second_pre_that_moved_or_has_another_gain_is_still_before_contrast():
    signal = phases(0, 0, 0.3, 0.4)
    moved = signal.copy()
    moved[1] = np.roll(moved[1], 2, axis=2)
    louder = signal.astype(np.float32)
    louder[1] *= 1.1
    assert find_arrival(moved).n_before == find_arrival(louder).n_before == 2


def test_values_that_are_not_numbers_and_empty_phases_hide_nothing():
    signal = phases(0, 0.3, 0.4).astype(np.float32)
    signal[:, 0, 0, 0] = np.nan
    signal[:, 1, 0, 0] = np.inf
    assert find_arrival(signal).n_before == 1
    assert find_arrival(np.zeros((3, 4, 5, 6))).n_before == 1


@pytest.mark.real
def test_a_real_pre_taken_twice_is_found_in_two_real_exams(real_data, tmp_path):
    """The second pre is the first one moved by two voxels, with its own noise."""
    folder = real_data("dce_slice")
    assert json.loads((folder / "times.json").read_text())["times_s"][0] == 0
    files = sorted((folder / "images" / "REAL_001").glob("*.nii.gz"))
    breast = np.stack([np.asarray(nib.load(file).dataobj).transpose() for file in files])
    pydicom = pytest.importorskip("pydicom")
    with zipfile.ZipFile(real_data("ispy1_1002.zip")) as archive:
        names = [name for name in archive.namelist() if "/3.000000-" in name and name[-1] != "/"]
        archive.extractall(tmp_path, names)
    images = [pydicom.dcmread(tmp_path / name) for name in names]
    images.sort(key=lambda image: int(image.InstanceNumber))
    exam = np.stack([image.pixel_array for image in images]).reshape(3, 60, 256, 256)
    rng = np.random.default_rng(1)
    for signal in (breast, exam):
        assert find_arrival(signal).n_before == 1
        again = np.roll(signal[0], 2, axis=-2) + rng.integers(-3, 4, signal[0].shape)
        twice = np.stack([signal[0], again, *signal[1:]])
        assert find_arrival(twice).n_before == 2


def test_a_little_contrast_at_phase_1_is_not_called_a_second_pre_but_said_to_be_unclear():
    signal = phases(0, 0, 0.3, 0.4)
    signal[1, :, :4, :16] = signal[0, :, :4, :16] * 1.6  # 4 of 100 blocks: neither none nor 5 %
    found = find_arrival(signal)
    assert found.n_before == 1
    assert "signal rises in 4.0%, 30" in found.evidence
