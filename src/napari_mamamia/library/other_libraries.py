"""Convert cases for SimpleITK, TorchIO, MONAI and xarray, which are imported on demand.

Our arrays have axes ``(phase, z, y, x)``. SimpleITK indexes voxels as ``(x, y, z)`` but returns
arrays ``(z, y, x)``. TorchIO and MONAI tensors have axes ``(channel, x, y, z)``. For xarray, the
order of axes does not change.

`case` is a `library.case.Case`.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np

from napari_mamamia.core.case import Mask
from napari_mamamia.core.errors import ArgumentError, MissingExtraError
from napari_mamamia.core.grid import Grid

_RAS_TO_LPS: Final = np.diag([-1.0, -1.0, 1.0])
_RIGHT_ANGLE: Final = 1e-4


def load_package(name: str) -> Any:
    """Import an optional package and return it.

    Raises
    ------
    MissingExtraError
        If the package is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(name.partition(".")[0], "libraries") from error


def make_sitk_image(array: Any, grid: Grid) -> Any:
    """Convert an array ``(z, y, x)`` on a grid to a ``SimpleITK.Image`` in LPS mm.

    Raises
    ------
    ArgumentError
        If the grid is sheared, because ITK supports only perpendicular axes.
    MissingExtraError
        If SimpleITK is not installed.
    """
    sitk = load_package("SimpleITK")
    matrix = _RAS_TO_LPS @ grid.affine[:3, :3]
    spacing = np.linalg.norm(matrix, axis=0)
    directions = matrix / spacing
    if np.abs(directions.T @ directions - np.eye(3)).max() > _RIGHT_ANGLE:
        raise ArgumentError(
            "expected the axes to be perpendicular for SimpleITK, but the grid is sheared: "
            "resample the image first"
        )
    voxels = array.astype(np.uint8) if array.dtype == np.bool_ else np.ascontiguousarray(array)
    image = sitk.GetImageFromArray(voxels)
    image.SetSpacing(spacing.tolist())
    image.SetDirection(directions.ravel().tolist())
    image.SetOrigin((_RAS_TO_LPS @ grid.affine[:3, 3]).tolist())
    return image


def make_torchio_subject(case: Any) -> Any:
    """Return a ``torchio.Subject`` with ``dce`` (phases as channels), ``mask`` and ``case_id``."""
    tio, torch = load_package("torchio"), load_package("torch")
    parts: dict[str, Any] = {
        "dce": tio.ScalarImage(
            tensor=torch.from_numpy(_to_xyz(case.signal)), affine=case.grid.affine
        ),
        "case_id": case.case_id,
        "times_s": list(case.times_s),
    }
    if case.reference is not None:
        voxels = case.reference.array[np.newaxis].astype(np.uint8)
        parts["mask"] = tio.LabelMap(
            tensor=torch.from_numpy(_to_xyz(voxels)), affine=case.grid.affine
        )
    return tio.Subject(**parts)


def make_monai_item(case: Any) -> dict[str, Any]:
    """Return a dict with "image", "label" (MetaTensors, channels first, RAS) and "case_id"."""
    meta, torch = load_package("monai.data").MetaTensor, load_package("torch")
    affine = torch.from_numpy(np.array(case.grid.affine))
    item: dict[str, Any] = {
        "image": meta(torch.from_numpy(_to_xyz(case.signal)), affine=affine),
        "case_id": case.case_id,
    }
    if case.reference is not None:
        voxels = case.reference.array[np.newaxis].astype(np.uint8)
        item["label"] = meta(torch.from_numpy(_to_xyz(voxels)), affine=affine)
    return item


def make_xarray(case: Any) -> Any:
    """Return an ``xarray.DataArray`` ``(phase, z, y, x)``, with mm from the first voxel."""
    xarray = load_package("xarray")
    sizes = dict(zip("zyx", case.grid.shape, strict=True))
    steps = dict(zip("zyx", case.grid.spacing_mm, strict=True))
    coords: dict[str, Any] = {
        axis: (axis, np.arange(size) * steps[axis], {"units": "mm"}) for axis, size in sizes.items()
    }
    if None not in case.times_s:
        coords["time"] = ("phase", np.array(case.times_s, dtype=float), {"units": "s"})
    return xarray.DataArray(
        np.array(case.signal),
        dims=("phase", "z", "y", "x"),
        coords=coords,
        name=case.case_id,
        attrs={"affine": case.grid.affine.ravel().tolist()},
    )


def _to_xyz(array: Any) -> Any:
    """Copy an array to axes ``(channel, x, y, z)`` and a data type that torch supports."""
    turned = np.ascontiguousarray(array.transpose(0, 3, 2, 1))
    wider = {"uint16": np.int32, "uint32": np.int64, "uint64": np.int64}
    turned = turned.astype(turned.dtype.newbyteorder("="))
    return turned.astype(wider.get(turned.dtype.name, turned.dtype))


class TorchDataSet:
    """Cases for ``torch.utils.data.DataLoader``; each case is read on demand.

    Each item is a dict with ``image`` (float32, ``(phase, z, y, x)``), ``mask`` (uint8, ``(z, y,
    x)``, only if the case has a reference), ``spacing_mm`` ``(z, y, x)`` and ``case_id``.
    """

    def __init__(self, cases: Any, phases: Sequence[int] | None = None) -> None:
        self._cases, self._phases = cases, phases
        self._torch = load_package("torch").__name__

    def __len__(self) -> int:
        return len(self._cases)

    def __getitem__(self, place: int) -> dict[str, Any]:
        """Return the case at an index, as a dict of tensors.

        Raises
        ------
        IndexError
            If the index is out of range.
        CaseError
            If one of the requested phases is missing in the case.
        """
        if not -len(self) <= place < len(self):
            raise IndexError(f"expected an index below {len(self)}, but got {place}")
        torch, case = load_package("torch"), self._cases[place]
        signal = case.signal if self._phases is None else case.signal[list(self._phases)]
        item: dict[str, Any] = {
            "image": torch.from_numpy(signal.astype(np.float32)),
            "spacing_mm": torch.tensor(case.grid.spacing_mm),
            "case_id": case.case_id,
        }
        mask: Mask | None = case.reference
        if mask is not None:
            item["mask"] = torch.from_numpy(mask.array.astype(np.uint8))
        return item
