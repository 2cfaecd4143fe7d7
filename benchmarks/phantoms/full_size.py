"""Full-size cases for benchmarks, made fast: a coarse phantom with repeated voxels."""

from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import listening
from napari_mamamia.phantom.acquisition import field_of_view
from napari_mamamia.phantom.phantom_case import (
    Phantom,
    Scene,
    phantom_of,
    render_scene,
    whole_numbers,
)
from napari_mamamia.phantom.render import draw_anatomy, draw_curves
from napari_mamamia.phantom.spec import PhantomSpec, Side, TumourKind, TumourSpec
from napari_mamamia.phantom.streams import Part, stream

_REPEAT: Final = 2
_NOISE_PLANES: Final = 12
_FIELD_MM: Final = (170.0, 340.0, 340.0)


def benchmark_phantom(
    shape: tuple[int, int, int] = (160, 448, 448), phases: int = 5, seed: int = 0
) -> Phantom:
    """Return an axial case of `shape` (z, y, x) over 170 x 340 x 340 mm within seconds.

    The scene is drawn at half the resolution and each voxel repeated twice along every axis; noise
    comes from a few planes with random shifts. Suitable for timing, not for scores.
    """
    z, y, x = (extent / n for extent, n in zip(_FIELD_MM, shape, strict=True))
    spec = PhantomSpec(
        case_id="PHANTOM_BENCHMARK",
        seed=seed,
        shape=shape,
        spacing_mm=(z, y, x),
        times_s=tuple(float(t) for t in np.linspace(0, 120 * (phases - 1), phases)),
        tumours=(TumourSpec(34.0, TumourKind.RIM), TumourSpec(12.0, side=Side.RIGHT)),
        breast_density="c",
        contrast_to_noise=10.0,
    )
    coarse_shape = tuple(-(-n // _REPEAT) for n in shape)
    coarse = replace(
        spec,
        shape=(coarse_shape[0], coarse_shape[1], coarse_shape[2]),
        spacing_mm=(_REPEAT * z, _REPEAT * y, _REPEAT * x),
    )
    curves, anatomy = draw_curves(spec), draw_anatomy(spec)
    coarse_grid = field_of_view(coarse, anatomy.body)
    with listening(None):
        drawn = render_scene(coarse, anatomy, curves, coarse_grid)
    scene = Scene(
        np.empty((phases, *shape), np.int16),
        _repeat_voxels(drawn.tissue, shape),
        _repeat_voxels(drawn.lesions, shape),
        _repeat_voxels(drawn.breast, shape),
        drawn.sigma,
    )
    _fill_with_noise(scene, drawn.signal, seed)
    return phantom_of(spec, _refine_grid(coarse_grid, shape), curves, scene)


def _refine_grid(coarse: Grid, shape: tuple[int, int, int]) -> Grid:
    """Return the grid of the repeated voxels, which divide the coarse ones exactly."""
    affine = coarse.affine.copy()
    affine[:3, :3] /= _REPEAT
    # The centre of the first fine voxel is off the centre of the coarse voxel that contains it.
    affine[:3, 3] -= affine[:3, :3].sum(axis=1) * (_REPEAT - 1) / 2
    return Grid(shape, affine.astype(np.float32).astype(np.float64))


def _repeat_voxels(array: NDArray[Any], shape: tuple[int, int, int]) -> NDArray[Any]:
    for axis in range(3):
        array = np.repeat(array, _REPEAT, axis=axis)
    z, y, x = shape
    return np.ascontiguousarray(array[:z, :y, :x])


def _fill_with_noise(scene: Scene, clean: NDArray[np.int16], seed: int) -> None:
    """Write every plane of `scene.signal`: the coarse `clean` plus a shifted plane of noise."""
    rng = stream(seed, Part.NOISE)
    _, planes, rows, columns = scene.signal.shape
    size = (_NOISE_PLANES, rows, columns)
    channels = [rng.standard_normal(size, dtype=np.float32) for _ in range(2)]
    for phase in range(len(scene.signal)):
        for plane in range(planes):
            picked = rng.integers(0, (_NOISE_PLANES, rows, columns), (2, 3))
            real, imaginary = (
                np.roll(channel[k], (row, column), (0, 1))
                for channel, (k, row, column) in zip(channels, picked, strict=True)
            )
            coarse = clean[phase, plane // _REPEAT].astype(np.float32)
            fine = coarse.repeat(_REPEAT, axis=0).repeat(_REPEAT, axis=1)[:rows, :columns]
            real = fine + np.float32(scene.sigma) * real
            imaginary = np.float32(scene.sigma) * imaginary
            scene.signal[phase, plane] = whole_numbers(np.sqrt(real * real + imaginary * imaginary))
