"""Interface to SimpleITK volumes and transforms; no other module imports SimpleITK.

Coordinates are in mm along the array axes (z, y, x) from the centre of voxel 0. If the axes are
perpendicular, distances are the same as in the patient, in any orientation.
"""

import ctypes
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.choices import Interpolation
from napari_mamamia.core.errors import MissingExtraError
from napari_mamamia.core.program.system import CAN_LOAD_BESIDE

_ORDER: Final = 3
_LAZY: Final = 1
"""The RTLD_LAZY flag of dlfcn.h on Linux and macOS."""


def require_simpleitk() -> ModuleType:
    """Return the SimpleITK package.

    Raises
    ------
    MissingExtraError
        If the package is not installed.
    """
    try:
        _load_library()
        import SimpleITK
    except ImportError as error:
        raise MissingExtraError("SimpleITK", "register") from error
    module: ModuleType = SimpleITK
    return module


def _load_library() -> None:
    """Load SimpleITK's shared library without holding the GIL, which `import` would hold.

    Loading the library takes most of the first import, 0.1 s, during which the window would freeze.
    On systems where this is not possible (Windows), `import` loads the library.
    """
    if "SimpleITK" in sys.modules or not CAN_LOAD_BESIDE:
        return
    spec = importlib.util.find_spec("SimpleITK")
    places = [] if spec is None else list(spec.submodule_search_locations or ())
    for path in (path for place in places for path in Path(place).glob("_SimpleITK*.so")):
        load = ctypes.CDLL(None).dlopen  # a foreign call releases the GIL
        load.restype = ctypes.c_void_p
        # The handle is not kept: the library remains loaded, and `import` uses it.
        load(bytes(path), _LAZY)


@dataclass(frozen=True, slots=True, eq=False)
class Readable:
    """A volume that can be interpolated; results are clipped to `low` and `high`.

    `image` is the result of `image_of`. `coefficients` are the coefficients of its cubic B-spline,
    or None for linear interpolation.
    """

    image: Any
    coefficients: Any | None
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Warp:
    """A SimpleITK transform from points in the reference phase to points in a second phase.

    `rotation_deg` and `translation_mm` are the rotation about and the translation along the array
    axes (z, y, x); the centre of rotation is `centre_mm`. `metric` is the final mutual information
    in nats; larger is better.
    """

    transform: Any
    rotation_deg: tuple[float, float, float]
    translation_mm: tuple[float, float, float]
    centre_mm: tuple[float, float, float]
    metric: float
    is_spline: bool = False
    mesh_mm: tuple[float, ...] = ()

    def places(self, points_mm: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the positions in the second phase, in mm, of points ``(n, 3)``."""
        positions = [self.transform.TransformPoint(turned(point, float)) for point in points_mm]
        return np.array(positions, np.float64).reshape(-1, 3)[:, ::-1]

    def displacement(
        self, shape: Sequence[int], spacing_mm: Sequence[float], origin_mm: Sequence[float]
    ) -> NDArray[np.float64]:
        """Return the displacement of each voxel of a grid in mm, ``(3, z, y, x)``."""
        itk = require_simpleitk()
        field = itk.TransformToDisplacementField(
            self.transform,
            itk.sitkVectorFloat64,
            turned(shape, int),
            turned(origin_mm, float),
            turned(spacing_mm, float),
        )
        shifts: NDArray[np.float64] = np.moveaxis(itk.GetArrayFromImage(field)[..., ::-1], -1, 0)
        return shifts

    def moved(
        self,
        source: Readable,
        shape: Sequence[int],
        spacing_mm: Sequence[float],
        origin_mm: Sequence[float],
    ) -> tuple[NDArray[np.float32], int]:
        """Return a resampled volume (float32), and the number of voxels outside the source volume.

        Voxels outside have the nearest value at the volume's edge. Values are clipped to the range
        of the volume, because cubic B-splines overshoot at edges.
        """
        itk = require_simpleitk()
        method = itk.ResampleImageFilter()
        method.SetNumberOfWorkUnits(max((os.cpu_count() or 1) - 1, 1))  # one core is left free
        method.SetSize(turned(shape, int))
        method.SetOutputSpacing(turned(spacing_mm, float))
        method.SetOutputOrigin(turned(origin_mm, float))
        method.SetTransform(self.transform)
        is_linear = source.coefficients is None
        method.SetInterpolator(itk.sitkLinear if is_linear else itk.sitkBSplineResamplerOrder3)
        method.SetOutputPixelType(itk.sitkFloat32)
        # Marker of voxels outside the volume, which differs from all values and is not changed by
        # clipping.
        method.SetDefaultPixelValue(float("nan"))
        image = source.image if is_linear else source.coefficients
        values: NDArray[np.float32] = itk.GetArrayFromImage(method.Execute(image))
        np.clip(values, source.low, source.high, out=values)
        outside = np.isnan(values)
        count = int(np.count_nonzero(outside))
        if count:
            # Only the volume has values at its edge, because B-spline coefficients are not
            # values.
            method.SetInterpolator(itk.sitkLinear)
            method.SetUseNearestNeighborExtrapolator(True)
            edge = itk.GetArrayFromImage(method.Execute(source.image))
            values[outside] = edge[outside]
        return values, count


def image_of(
    volume: NDArray[Any], spacing_mm: Sequence[float], origin_mm: Sequence[float] = (0, 0, 0)
) -> Any:
    """Return a volume ``(z, y, x)`` as a SimpleITK image; its voxels are copied.

    Parameters
    ----------
    volume
        The volume ``(z, y, x)`` in any real data type.
    spacing_mm, origin_mm
        The values along (z, y, x) in mm.
    """
    image = require_simpleitk().GetImageFromArray(np.ascontiguousarray(volume))
    image.SetSpacing(turned(spacing_mm, float))
    image.SetOrigin(turned(origin_mm, float))
    return image


def readable(
    volume: NDArray[Any],
    spacing_mm: Sequence[float],
    origin_mm: Sequence[float] = (0, 0, 0),
    interpolation: Interpolation = Interpolation.BSPLINE,
) -> Readable:
    """Return a volume ``(z, y, x)`` in a form prepared for interpolation.

    Coefficients are float32 and computed once, so slabs can be resampled one after the other.

    Parameters
    ----------
    volume
        The volume ``(z, y, x)`` in any real data type.
    spacing_mm, origin_mm
        The values along (z, y, x) in mm.
    interpolation
        The interpolation: linear or cubic B-spline.

    Source: Unser 1999 (IEEE Signal Process. Mag. 16:22), as in Insight Toolkit.
    """
    itk = require_simpleitk()
    image = image_of(volume, spacing_mm, origin_mm)
    ends = float(volume.min()), float(volume.max())
    if interpolation is Interpolation.LINEAR:
        return Readable(image, None, *ends)
    coefficients = itk.BSplineDecomposition(itk.Cast(image, itk.sitkFloat32), _ORDER)
    return Readable(image, coefficients, *ends)


def turned(values: Sequence[Any], kind: Callable[[Any], Any]) -> list[Any]:
    """Return values along (z, y, x) in SimpleITK's order (x, y, z), as plain Python numbers."""
    return [kind(value) for value in reversed(list(values))]
