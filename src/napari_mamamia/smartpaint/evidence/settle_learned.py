"""The mask after a stroke of the learned brush: the network proposes changes, and marks decide."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import Voxel
from napari_mamamia.smartpaint.evidence.scene import Scene
from napari_mamamia.smartpaint.evidence.settle import (
    Settled,
    accept_changes,
    find_core,
    find_unheard,
    hold_core,
)
from napari_mamamia.smartpaint.learned.network import Network
from napari_mamamia.smartpaint.learned.patch import Surroundings, make_patch, place_cube

SAMPLED: Final = 1.9
"""Distance around a press, in radii, that the network's input covers."""

_WINDOW: Final = 1.5  # radii around a press within which the network changes the mask
_MOST_PRESSES: Final = 24  # along a path; a longer path has them farther apart

Bools = NDArray[np.bool_]


def settle_learned(
    scene: Scene, path: tuple[Voxel, ...], network: Network, most_presses: int | None = None
) -> Settled:
    """Return the mask that results from a stroke whose `path` is in voxels of the scene's box.

    A drag counts as a sequence of presses at every radius along its path.
    """
    window = scene.window & ~scene.closed
    core = find_core(scene) & ~scene.closed
    hold = hold_core(scene, core)
    if not core.any() or not window.any():
        return Settled(scene.mask.copy(), hold, window, 1.0)
    sign = 1 if scene.is_adding else -1
    may_change = window & (hold != -sign)
    mask = scene.mask.copy()
    for press in _list_presses(path, scene, most_presses or _MOST_PRESSES):
        _answer_press(scene, press, network, mask, may_change)
    unheard = find_unheard(scene, mask, 1.0)
    core |= unheard
    hold[unheard] = sign
    inner = Box.around(window).grown((1, 1, 1), window.shape)
    return Settled(accept_changes(scene, mask, core, hold, window, inner), hold, window, 1.0)


def _answer_press(
    scene: Scene, press: Voxel, network: Network, mask: Bools, may_change: Bools
) -> None:
    """Change the mask around a press in place, as the network proposes."""
    marks, radius = scene.marks, scene.radius_mm
    around = Surroundings(
        scene.features, scene.noise, mask, marks.pull, marks.hold, scene.spacing_mm
    )
    n_z, n_y, n_x = mask.shape
    cube = place_cube((n_z, n_y, n_x), press, radius, scene.spacing_mm)
    patch = make_patch(around, cube, radius, is_adding=scene.is_adding)
    inside = cube.spread(network.predict(patch)) > 0
    squares = [
        ((np.arange(rows.start, rows.stop) - centre) * step) ** 2
        for rows, centre, step in zip(cube.near, press, scene.spacing_mm, strict=True)
    ]
    if n_z == 1:
        squares[0][:] = 0
    z, y, x = squares
    is_near = z[:, None, None] + y[:, None] + x <= (_WINDOW * radius) ** 2
    proposed = inside if scene.is_adding else ~inside
    mask[cube.near][proposed & is_near & may_change[cube.near]] = scene.is_adding


def _list_presses(path: tuple[Voxel, ...], scene: Scene, most: int) -> list[Voxel]:
    """Return points of a path that are one radius apart, including both ends of the path."""
    corners = np.array(path)
    lengths = np.linalg.norm(np.diff(corners, axis=0) * scene.spacing_mm, axis=1)
    along = np.concatenate([[0.0], np.cumsum(lengths)])
    n_steps = min(int(np.ceil(along[-1] / scene.radius_mm)), most - 1)
    places = np.linspace(0.0, along[-1], n_steps + 1)
    points = [np.interp(places, along, corners[:, axis]).tolist() for axis in range(3)]
    return list(zip(*points, strict=True))
