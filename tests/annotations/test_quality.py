"""Quality findings on made-up cases whose faults are known."""

import numpy as np
import pytest

from napari_mamamia.annotations.quality import (
    Check,
    Light,
    check_grids,
    check_mask,
    check_phases,
    worst_light,
)
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.grid import Grid

GRID = Grid((12, 60, 60), np.diag([1.0, 1.0, 2.0, 1.0]))


def body(shape=GRID.shape):
    """Return a bright block in air: rows 20 to 59, columns 5 to 54."""
    volume = np.random.default_rng(0).normal(10, 2, shape)
    volume[:, 20:, 5:55] += 200
    return volume


def case_of(*volumes):
    signal = np.stack(volumes)
    return Case("A", GRID, signal, tuple(Phase(k) for k in range(len(volumes))))


def checks(findings):
    return {finding.check: finding.light for finding in findings}


def mask_at(*where):
    mask = np.zeros(GRID.shape, bool)
    mask[where] = True
    return mask


def test_a_sound_case_and_mask_have_no_findings():
    sound = case_of(np.abs(body()), np.abs(body()) + 5)
    assert check_phases(sound) == ()
    mask = mask_at(slice(4, 8), slice(30, 40), slice(20, 30))
    assert check_mask(mask, GRID, sound.signal[0]) == ()
    assert worst_light(()) is Light.GREEN


def test_negative_and_unknown_values_are_counted():
    volume = np.abs(body())
    volume[3, 4, 5] = np.nan
    volume[0, 0, :7] = -1
    texts = [f.text for f in check_phases(case_of(np.abs(body()) + 1, volume))]
    assert texts == [
        "phase 1 has 1 of 43200 values that are not finite",
        "phase 1 has 7 of 43200 values below 0",
    ]


def test_a_phase_that_is_the_copy_of_another_is_red():
    volume = np.abs(body())
    found = check_phases(case_of(volume, volume + 1, volume.copy()))
    assert [f.text for f in found] == ["phases 0 and 2 are identical"]
    assert worst_light(found) is Light.RED


def test_copies_with_nan_in_the_same_places_are_found_too():
    volume = np.abs(body())
    volume[1, 1, 1] = np.nan
    assert Check.DUPLICATES in checks(check_phases(case_of(volume, volume.copy())))


def test_phases_with_equal_sums_but_other_voxels_are_not_duplicates():
    volume = np.round(np.abs(body()))
    turned = volume[:, :, ::-1].copy()
    assert check_phases(case_of(volume, turned)) == ()


def test_a_phase_of_one_value_is_red():
    found = check_phases(case_of(np.abs(body()), np.zeros(GRID.shape)))
    assert checks(found) == {Check.VALUES: Light.RED}


def test_an_empty_mask_is_red():
    assert checks(check_mask(mask_at(()) & False, GRID, body())) == {Check.EMPTY: Light.RED}


def test_a_mask_in_the_air_is_red_and_one_with_a_rim_of_skin_is_not():
    air = mask_at(slice(4, 8), slice(2, 8), slice(20, 30))
    assert checks(check_mask(air, GRID, body())) == {Check.OUTSIDE_BODY: Light.RED}
    skin = mask_at(slice(4, 8), slice(19, 40), slice(20, 30))  # one row of 21 in the air
    assert check_mask(skin, GRID, body()) == ()


@pytest.mark.parametrize("where", [slice(0, 3), slice(9, 12)])
def test_a_mask_in_the_first_or_last_slice_touches_the_border(where):
    mask = mask_at(where, slice(30, 40), slice(20, 30))
    assert checks(check_mask(mask, GRID, body())) == {Check.BORDER: Light.AMBER}


def test_the_only_slice_of_a_volume_is_no_border():
    grid = Grid((1, 60, 60), np.eye(4))
    mask = np.zeros(grid.shape, bool)
    mask[0, 30:40, 20:30] = True
    assert check_mask(mask, grid, body(grid.shape)) == ()


def test_islands_below_10_mm3_are_counted_and_larger_parts_are_not():
    mask = mask_at(slice(4, 8), slice(30, 40), slice(20, 30))
    mask[5, 50, 40:44] = True  # 4 voxels of 2 mm3
    assert [f.text for f in check_mask(mask, GRID, body())] == [
        "1 island of less than 10 mm3 besides the largest component"
    ]
    mask[5, 50, 44] = True  # 10 mm3
    assert check_mask(mask, GRID, body()) == ()


def moved(grid, mm):
    affine = grid.affine.copy()
    affine[0, 3] += mm
    return Grid(grid.shape, affine)


def test_phases_on_one_grid_have_no_geometry_finding():
    assert check_grids([GRID, moved(GRID, 0.0), moved(GRID, 5e-5)]) == ()


@pytest.mark.parametrize(("mm", "light"), [(0.02, Light.AMBER), (0.2, Light.RED)])
def test_a_phase_of_another_place_is_named_with_its_distance(mm, light):
    """The spacing is 1 mm: up to 0.05 mm is one place, but more than rounding is worth a look."""
    (found,) = check_grids([GRID, GRID, moved(GRID, mm)])
    assert found.light is light
    assert found.text == f"phase 2 is up to {mm:g} mm away from phase 0 (different affine)"


def test_a_phase_of_another_shape_is_red():
    (found,) = check_grids([GRID, Grid((11, 60, 60), GRID.affine)])
    assert (found.light, found.check) == (Light.RED, Check.GEOMETRY)
    assert "phase 1 has shape (11, 60, 60)" in found.text
