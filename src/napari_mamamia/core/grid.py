"""The grid of a volume: its shape and its position in the patient (`Grid`).

No other code converts the order of axes or compares grids. Arrays are ``(z, y, x)``; an affine maps
voxel (x, y, z) to RAS mm as in the file. Orientation codes name the direction *towards* which each
axis increases (nibabel's convention): ``"LAS"`` means that x increases towards the patient's left,
y towards anterior, and z towards superior.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_mamamia.core.errors import ArgumentError, GridMismatchError

IDENTITY_WARNING: Final = (
    "the grid is an identity (1 x 1 x 1 mm, origin 0 or in the middle), typical of files that "
    "lost their spacing: values in mm and ml are therefore counts of voxels; write the image's "
    "own affine into the file"
)
IMPOSSIBLE_SPACING: Final = "the spacing is impossible for an image of a body"
_WIDEST_VOXEL_MM: Final = 100.0
_NARROWEST_VOXEL_MM: Final = 0.001
_LONGEST_VOLUME_MM: Final = 2000.0
"""Largest plausible spacing and extent of a patient's volume in mm. Our choice."""
_SINGULAR: Final = 1e-6
"""Volume spanned by three unit steps below which the axes count as linearly dependent."""
SAME_PLACE_VOXELS: Final = 0.05
"""Largest distance between the corners of grids that count as equal.

The distance is a fraction of the smallest spacing. Our choice: far above float32 rounding of qform
and sform (about 0.005 voxel over a 350 mm field of view), and far below a visible or measurable
difference.
"""

_SHEAR_COSINE: Final = 1e-3
_OBLIQUE_COSINE: Final = 1e-3
_THICKER: Final = 1.05
_SAME_SPACING: Final = 1e-4
_SAME_ANGLE: Final = 0.05
"""Smallest relative difference in spacing, and smallest angle in degrees, that is reported."""

_POSITIVE: Final = "RAS"
_NEGATIVE: Final = "LPI"

Plane = str
"""An anatomical plane: ``"axial"``, ``"sagittal"`` or ``"coronal"``."""

# Directions of the displayed (slice, row, column) axes in radiological convention: the patient's
# right is on the screen's left. Rows run down the screen.
_DISPLAY_CODES: Final[dict[Plane, str]] = {"axial": "SPL", "sagittal": "LIP", "coronal": "PIL"}
_PLANE_OF_NORMAL: Final[dict[int, Plane]] = {0: "sagittal", 1: "coronal", 2: "axial"}


@dataclass(frozen=True, slots=True)
class DisplayFrame:
    """A permutation and flip of array axes for display, applied without copying.

    `order` has the array axis of each displayed axis (slice, row, column), and `flips` is True for
    displayed axes that are reversed. Leading axes (phase) are not changed.
    """

    plane: Plane
    order: tuple[int, int, int]
    flips: tuple[bool, bool, bool]

    def to_display(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return an array ``(..., z, y, x)`` as a view ``(..., slice, row, column)``."""
        lead = array.ndim - 3
        moved = array.transpose(*range(lead), *(lead + axis for axis in self.order))
        shown: NDArray[Any] = moved[self._make_slices()]
        return shown

    def from_display(self, shown: NDArray[Any]) -> NDArray[Any]:
        """Return an array ``(..., slice, row, column)`` as a view ``(..., z, y, x)``."""
        lead = shown.ndim - 3
        back = np.argsort(self.order)
        shown = shown[self._make_slices()]
        return shown.transpose(*range(lead), *(lead + int(a) for a in back))

    def point_to_display(
        self, index: Sequence[float], shape: Sequence[int]
    ) -> tuple[float, float, float]:
        """Return the displayed position of voxel `index` in an array of `shape`, both (z, y, x)."""
        s, r, c = (
            shape[axis] - 1 - index[axis] if flip else index[axis]
            for axis, flip in zip(self.order, self.flips, strict=True)
        )
        return (s, r, c)

    def point_from_display(
        self, shown: Sequence[float], shape: Sequence[int]
    ) -> tuple[float, float, float]:
        """Return the voxel (z, y, x) at the displayed position `shown` in an array of `shape`."""
        index = [0.0, 0.0, 0.0]
        for place, axis, flip in zip(shown, self.order, self.flips, strict=True):
            index[axis] = shape[axis] - 1 - place if flip else place
        return (index[0], index[1], index[2])

    def per_axis(self, values: Sequence[float]) -> tuple[float, float, float]:
        """Return `values` along (z, y, x), such as a spacing, reordered to the displayed axes."""
        s, r, c = (values[axis] for axis in self.order)
        return (s, r, c)

    def within(self, shown: "DisplayFrame") -> tuple[tuple[int, int, int], tuple[bool, bool, bool]]:
        """Return how this view's axes map to the axes of the view `shown`, with their flips.

        For each axis (slice, row, column) of this view, the result has the corresponding axis of
        `shown`, from 0 to 2, and whether it has the opposite direction.

        Examples
        --------
        >>> grid = Grid((2, 3, 4), np.diag([-1.0, 1.0, 2.0, 1.0]))
        >>> grid.display_frame("sagittal").within(grid.display_frame("axial"))
        ((2, 0, 1), (False, True, False))
        """
        s, r, c = (shown.order.index(axis) for axis in self.order)
        against = (
            flip != shown.flips[place] for flip, place in zip(self.flips, (s, r, c), strict=True)
        )
        a, b, d = against
        return (s, r, c), (a, b, d)

    def _make_slices(self) -> Any:
        return (..., *(slice(None, None, -1 if flip else 1) for flip in self.flips))


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The shape of a volume and its position in the patient.

    Parameters
    ----------
    shape
        The numbers of voxels along (z, y, x), each at least 1.
    affine
        The 4x4 matrix from voxel (x, y, z) to RAS mm, as in the file. It is stored as read-only
        float64.
    nifti_header
        The header of the NIfTI file from which the grid was read (348 bytes, or 540 for NIfTI-2),
        with which a mask on this grid can be written with identical geometry. It is not compared.
    is_spacing_stated
        Whether a person stated the spacing; if so, a spacing of 1 x 1 x 1 mm is accepted as
        real. It is not compared.

    Raises
    ------
    ValueError
        If the affine is not 4x4, not finite, or does not span space.

    Examples
    --------
    >>> grid = Grid((2, 3, 4), np.diag([-0.7, 0.7, 2.0, 1.0]))
    >>> grid.spacing_mm, grid.orientation
    ((2.0, 0.7, 0.7), 'LAS')
    """

    shape: tuple[int, int, int]
    affine: NDArray[np.float64]
    nifti_header: bytes | None = field(default=None, repr=False)
    is_spacing_stated: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        shape = tuple(int(n) for n in self.shape)
        if len(shape) != 3 or min(shape) < 1:
            raise ValueError(
                "expected the shape of a grid to have three extents of at least 1 (z, y, x), but "
                f"got {shape}"
            )
        affine = np.array(self.affine, dtype=np.float64)
        if affine.shape != (4, 4) or not np.isfinite(affine).all():
            raise ValueError("expected the affine to be a finite 4x4 matrix, but it is not")
        steps = affine[:3, :3]
        lengths = np.linalg.norm(steps, axis=0)
        # The directions decide, not the lengths of the steps.
        if not lengths.all() or abs(np.linalg.det(steps / lengths)) < _SINGULAR:
            raise ValueError(
                "expected the affine to be invertible, but an axis has length 0 or lies in the "
                "plane of the other two"
            )
        affine.setflags(write=False)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "affine", affine)

    @classmethod
    def of_spacing(
        cls, shape: tuple[int, int, int], spacing_mm: tuple[float, float, float]
    ) -> "Grid":
        """Return a grid at the origin with RAS axes (x right, y anterior, z superior).

        Use this for arrays of which only the shape and the spacing are known.

        Parameters
        ----------
        shape
            The numbers of voxels along (z, y, x).
        spacing_mm
            The distance between voxel centres along (z, y, x) in mm.

        Returns
        -------
        Grid
            The grid; its spacing counts as stated by a person.

        Raises
        ------
        ArgumentError
            If `spacing_mm` is not three numbers above 0.

        Examples
        --------
        >>> Grid.of_spacing((2, 3, 4), (2.0, 0.7, 0.7)).spacing_mm
        (2.0, 0.7, 0.7)
        """
        spacing = tuple(float(mm) for mm in spacing_mm)
        if len(spacing) != 3 or not all(mm > 0 for mm in spacing):
            raise ArgumentError(
                "expected the spacing of a grid to be three numbers above 0 mm (z, y, x), but "
                f"got {spacing}: pass, for example, (2.0, 0.7, 0.7)"
            )
        return cls(shape, np.diag([*spacing[::-1], 1.0]), is_spacing_stated=True)

    @property
    def is_identity(self) -> bool:
        """Whether spacing and position appear to have been lost.

        This is assumed for NumPy's ``eye(4)``, also with permuted axes, which ITK writes for an
        array without spacing: each voxel is 1 mm wide and the first voxel is at 0. It is also
        assumed if the middle is at 0, where nibabel places a NIfTI file without qform and sform.
        """
        turned = np.abs(self.affine[:3, :3])
        is_unit = np.array_equal(np.sort(turned, axis=0), [[0] * 3, [0] * 3, [1] * 3])
        if not is_unit or self.is_spacing_stated:
            return False
        origin = self.affine[:3, 3]
        middle = (np.array(self.shape[::-1]) - 1) / 2 * [1, -1, -1]
        is_centred = self.orientation == "LAS" and np.array_equal(origin, middle)
        return is_centred or not origin.any()

    @property
    def spacing_warning(self) -> str:
        """A warning if lengths and volumes on this grid are not plausible, otherwise "".

        The warning is given if the spacing was lost, or is impossible for an image of a patient.

        Examples
        --------
        >>> Grid((2, 3, 4), np.eye(4)).spacing_warning[:23]
        'the grid is an identity'
        >>> Grid.of_spacing((2, 3, 4), (2.0, 0.7, 0.7)).spacing_warning
        ''
        """
        if self.is_identity:
            return IDENTITY_WARNING
        spacing = self.spacing_mm
        longest = max(n * mm for n, mm in zip(self.shape, spacing, strict=True))
        is_possible = (
            max(spacing) < _WIDEST_VOXEL_MM
            and min(spacing) > _NARROWEST_VOXEL_MM * (1 + _SAME_SPACING)
            and longest <= _LONGEST_VOLUME_MM
        )
        if is_possible:
            return ""
        steps = " x ".join(f"{mm:.4g}" for mm in spacing)
        return (
            f"{IMPOSSIBLE_SPACING} (voxels of {steps} mm (z, y, x), a volume of up to "
            f"{longest:.4g} mm): mm and ml are wrong too; write the image's own affine "
            "into the file"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grid):
            return NotImplemented
        return self.shape == other.shape and bool(np.array_equal(self.affine, other.affine))

    def __hash__(self) -> int:
        # The numbers count, not their bytes: 0.0 and -0.0 are equal.
        return hash((self.shape, tuple(self.affine.ravel().tolist())))

    @property
    def matrix_mm(self) -> NDArray[np.float64]:
        """3x3 matrix with the (z, y, x) index steps in RAS mm as columns, including shear."""
        return self.affine[:3, 2::-1]

    @property
    def spacing_mm(self) -> tuple[float, float, float]:
        """Distance in mm between voxel centres along (z, y, x)."""
        z, y, x = np.linalg.norm(self.matrix_mm, axis=0)
        return (float(z), float(y), float(x))

    @property
    def voxel_volume_mm3(self) -> float:
        """Volume of one voxel in mm3, ``|det|`` of the affine's 3x3 part."""
        return float(abs(np.linalg.det(self.affine[:3, :3])))

    @property
    def orientation(self) -> str:
        """Three letters for (x, y, z): the patient direction towards which each axis increases."""
        signs, worlds = self._anatomical_axes()
        return "".join(
            (_POSITIVE if signs[axis] > 0 else _NEGATIVE)[worlds[axis]] for axis in (2, 1, 0)
        )

    @property
    def is_sheared(self) -> bool:
        """Whether the axes are not perpendicular (a cosine between two of them exceeds 0.001)."""
        directions = self.matrix_mm / np.array(self.spacing_mm)
        cosines = np.abs(directions.T @ directions)[np.triu_indices(3, 1)]
        return bool(np.any(cosines > _SHEAR_COSINE))

    @property
    def is_oblique(self) -> bool:
        """Whether an axis deviates from the anatomical axes (a cosine exceeds 0.001)."""
        directions = np.abs(self.matrix_mm / np.array(self.spacing_mm))
        return bool(np.any(np.sort(directions, axis=0)[1] > _OBLIQUE_COSINE))

    @property
    def acquisition_plane(self) -> Plane:
        """Orientation of the acquired slices.

        The slices lie across the axis with clearly the largest spacing, or across the third axis if
        there is none. The slice-thickness rule and the file's order can both be wrong after
        resampling; only the default view then differs, never a measurement.
        """
        _, worlds = self._anatomical_axes()
        return _PLANE_OF_NORMAL[worlds[self._slice_axis()]]

    def display_frame(self, plane: Plane | None = None) -> DisplayFrame:
        """Return the axis order and flips to display `plane` (default: the acquisition plane).

        An axial view has anterior up and the patient's right on the left of the screen, and slices
        increase towards superior. A sagittal view has superior up and anterior on the left, and
        slices increase towards the patient's left. A coronal view has superior up and the patient's
        right on the left of the screen, and slices increase towards posterior.
        """
        plane = self.acquisition_plane if plane is None else plane
        signs, worlds = self._anatomical_axes()
        order, flips = [], []
        for code in _DISPLAY_CODES[plane]:
            positive = code in _POSITIVE
            world = (_POSITIVE if positive else _NEGATIVE).index(code)
            axis = worlds.index(world)
            order.append(axis)
            flips.append((signs[axis] > 0) != positive)
        return DisplayFrame(plane, (order[0], order[1], order[2]), (flips[0], flips[1], flips[2]))

    def to_world_mm(self, index: ArrayLike) -> NDArray[np.float64]:
        """Return the positions in RAS mm of voxel coordinates (..., 3), along (z, y, x)."""
        points = np.asarray(index, dtype=np.float64)
        world: NDArray[np.float64] = points @ self.matrix_mm.T + self.affine[:3, 3]
        return world

    def to_voxel(self, world_mm: ArrayLike) -> NDArray[np.float64]:
        """Return the voxel coordinates (z, y, x) of points (..., 3) in RAS mm."""
        points = np.asarray(world_mm, dtype=np.float64) - self.affine[:3, 3]
        voxel: NDArray[np.float64] = points @ np.linalg.inv(self.matrix_mm).T
        return voxel

    def farthest_corner_mm(self, other: "Grid") -> float:
        """Return the largest distance in mm between this volume's corners under two affines."""
        corners = np.array(list(product(*((0, n - 1) for n in self.shape))))
        apart = self.to_world_mm(corners) - other.to_world_mm(corners)
        return float(np.linalg.norm(apart, axis=1).max())

    def is_same_place(self, other: "Grid") -> bool:
        """Return whether two grids have equal shapes, and affines within `SAME_PLACE_VOXELS`."""
        if self.shape != other.shape:
            return False
        return self.farthest_corner_mm(other) <= SAME_PLACE_VOXELS * min(self.spacing_mm)

    def differences(self, other: "Grid") -> str:
        """Describe how two grids differ in shape, spacing, origin and direction.

        The text is "" if the grids are equal except for rounding.

        Examples
        --------
        >>> a = Grid.of_spacing((2, 3, 4), (2.0, 1.0, 1.0))
        >>> a.differences(Grid.of_spacing((2, 3, 4), (2.5, 1.0, 1.0)))
        'spacing 2 x 1 x 1 and 2.5 x 1 x 1 mm (z, y, x; up to 0.5 mm)'
        """
        parts = []
        if self.shape != other.shape:
            parts.append(f"shape {self.shape} and {other.shape} (z, y, x)")
        mine, theirs = np.array(self.spacing_mm), np.array(other.spacing_mm)
        apart = float(np.abs(mine - theirs).max())
        if apart > _SAME_SPACING * float(mine.min()):
            texts = (" x ".join(f"{step:.5g}" for step in steps) for steps in (mine, theirs))
            parts.append(f"spacing {' and '.join(texts)} mm (z, y, x; up to {apart:.3g} mm)")
        away = float(np.linalg.norm(self.affine[:3, 3] - other.affine[:3, 3]))
        if away > SAME_PLACE_VOXELS * float(mine.min()):
            parts.append(f"origin {away:.2f} mm apart")
        cosines = ((self.matrix_mm / mine) * (other.matrix_mm / theirs)).sum(axis=0)
        angle = float(np.degrees(np.arccos(np.clip(cosines, -1, 1))).max())
        if angle > _SAME_ANGLE:
            codes = f"{self.orientation} and {other.orientation}"
            parts.append(f"direction {codes}, up to {angle:.3g} degrees")
        return "; ".join(parts)

    def _slice_axis(self) -> int:
        spacing = self.spacing_mm
        thickest = int(np.argmax(spacing))
        others = max(s for axis, s in enumerate(spacing) if axis != thickest)
        return thickest if spacing[thickest] > _THICKER * others else 0

    def _anatomical_axes(self) -> tuple[list[int], list[int]]:
        """Return the sign and index of the closest RAS axis for each array axis (z, y, x).

        The last affines are cached, because the window calls this at each movement of the pointer.
        """
        signs, worlds = _axes_of(self.affine.tobytes())
        return list(signs), list(worlds)


@lru_cache(maxsize=64)
def _axes_of(affine: bytes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the signs and indices of the RAS axes closest to the axes of a float64 4x4 affine.

    The axes of the closest orthogonal matrix (polar rotation) are assigned greedily, largest cosine
    first, so each anatomical axis is used once.
    """
    matrix = np.frombuffer(affine).reshape(4, 4)[:3, 2::-1]
    u, _, vt = np.linalg.svd(matrix / np.linalg.norm(matrix, axis=0))
    rotation = u @ vt
    strength = np.abs(rotation)
    signs, worlds = [0, 0, 0], [0, 0, 0]
    for _ in range(3):
        world, axis = np.unravel_index(int(np.argmax(strength)), (3, 3))
        signs[axis] = 1 if rotation[world, axis] > 0 else -1
        worlds[axis] = int(world)
        strength[world, :] = -1.0
        strength[:, axis] = -1.0
    return tuple(signs), tuple(worlds)


def require_same_grid(a: Grid, b: Grid, name_a: str = "a", name_b: str = "b") -> None:
    """Raise `GridMismatchError` unless `a` and `b` are the same grid within `SAME_PLACE_VOXELS`."""
    if a.shape != b.shape:
        raise GridMismatchError(
            f"expected {name_a} and {name_b} to be on the same grid, but {name_a} has shape "
            f"{a.shape} (z, y, x) and {name_b} has shape {b.shape} (differences: "
            f"{a.differences(b)}): export one of them again on the grid of the other"
        )
    if not a.is_same_place(b):
        raise GridMismatchError(
            f"expected {name_a} and {name_b} to be on the same grid, but their voxels are up to "
            f"{a.farthest_corner_mm(b):.2f} mm apart, although both have shape {a.shape} "
            f"({a.orientation} and {b.orientation}; differences: {a.differences(b) or 'affine'}): "
            "one of them has a wrong affine; export it again with the image's own header"
        )
