import numpy as np

from napari_mamamia.core.grid import Grid
from napari_mamamia.metrics.volume import volume_mm3


def test_volume_is_voxels_times_the_size_of_one():
    mask = np.zeros((3, 3, 3), dtype=bool)
    mask[0, 0, :2] = True
    # 2 voxels of 0.5 x 0.8 x 2 = 0.8 mm3
    assert volume_mm3(mask, np.diag([2.0, 0.8, 0.5])) == 2 * 0.8


def test_volume_of_an_empty_mask_is_zero():
    assert volume_mm3(np.zeros((2, 2, 2), dtype=bool), np.eye(3)) == 0


def test_volume_on_a_sheared_grid_is_that_of_the_parallelepiped():
    # base 2 x 3 mm, height 4 mm; the shear of 1.5 mm does not change it
    affine = np.array([[2, 0, 1.5, 0], [0, 3, 0, 0], [0, 0, 4, 0], [0, 0, 0, 1]], dtype=float)
    grid = Grid((1, 1, 1), affine)
    assert np.isclose(volume_mm3(np.ones((1, 1, 1), dtype=bool), grid.matrix_mm), 24, rtol=1e-12)


def test_volume_is_positive_on_a_mirrored_grid():
    grid = Grid((1, 1, 1), np.diag([-1.0, 1.0, 2.0, 1.0]))
    assert volume_mm3(np.ones((1, 1, 1), dtype=bool), grid.matrix_mm) == 2
