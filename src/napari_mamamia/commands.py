"""The file commands of napari.yaml: readers, the mask writer, sample data; see also `menu`.

Qt is imported only when a window needs it. Image readers and slow modules are imported by the
functions that use them, because napari calls `get_reader` in the GUI thread for every path.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import FormatError, MamamiaError
from napari_mamamia.core.features import find_opener
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.data_set.mask_files import is_mask_file
from napari_mamamia.io.dicom.probe import dicom_source
from napari_mamamia.io.files.sources import CaseFiles, LayoutKind
from napari_mamamia.io.layouts.find import find_data_set, recognise
from napari_mamamia.io.volumes.formats import WRITTEN_SUFFIXES

if TYPE_CHECKING:
    from napari_mamamia.core.case import Case
    from napari_mamamia.phantom import PhantomSpec
    from napari_mamamia.widgets.base.layers import LayerTuple


# ------------------------------------------------------------------------ readers


def get_reader(path: str | list[str]) -> Callable[[Any], list[Any]] | None:
    """Return a reader for a data set, case, volume, DICOM or ranking, or None for any other path.

    A list of paths is accepted if all paths are DICOM files in one folder.
    """
    paths = [Path(one) for one in ([path] if isinstance(path, str) else path)]
    if len(paths) == 1 and find_opener(paths[0], is_listed=True) is not None:
        return _read_by_feature
    kind = recognise(paths[0]) if len(paths) == 1 else None
    if kind is None or kind is LayoutKind.DICOM:
        return _read_dicom if dicom_source(paths) is not None else None
    return _read_file if kind is LayoutKind.SINGLE_FILE else _read_folder


def _read_dicom(path: str | list[str]) -> list[Any]:
    """Show the content of DICOM files in the dock; without a window, return the exam's layers."""
    from napari_mamamia.widgets.adapter.adapter import current_viewer
    from napari_mamamia.widgets.dock.entry import show_later

    paths = [Path(one) for one in ([path] if isinstance(path, str) else path)]
    source = dicom_source(paths) or paths[0]
    viewer = current_viewer()
    if viewer is not None:
        show_later(viewer, "Cases", lambda panel: panel.import_dicom(source))
        return [(None,)]
    from napari_mamamia.services.dicom.inspection import read_dicom_case

    return [_case_tuple(read_dicom_case(source))]


def _read_folder(path: str | list[str]) -> list[Any]:
    """Open a data set in the dock; without a window, return the layers of its first case."""
    from napari_mamamia.widgets.adapter.adapter import current_viewer
    from napari_mamamia.widgets.dock.entry import show_later

    root = Path(path[0] if isinstance(path, list) else path)
    viewer = current_viewer()
    if viewer is not None:
        show_later(viewer, "Cases", lambda panel: panel.open_data_set(root))
        return [(None,)]
    return _layers_of(find_data_set(root).cases[0])


def _read_by_feature(path: str | list[str]) -> list[Any]:
    """Open a folder of a feature in the dock; without a window, return no layers."""
    from napari_mamamia.widgets.adapter.adapter import current_viewer
    from napari_mamamia.widgets.dock.entry import show_later

    folder = Path(path[0] if isinstance(path, list) else path)
    opener, viewer = find_opener(folder, is_listed=True), current_viewer()
    if opener is None or viewer is None:
        name = "this" if opener is None else opener.name
        raise MamamiaError(f"{name} requires an open napari window: open one first")
    show_later(viewer, opener.page, lambda panel: opener.open(panel, folder))
    return [(None,)]


def _read_file(path: str | list[str]) -> list[Any]:
    """Return a 3-D file as an image or a mask, or a 4-D file as the phases of a case.

    A whole-number volume with few distinct values is treated as a mask.
    """
    from napari_mamamia.io.data_set.volumes import read_header, read_labels, read_volume
    from napari_mamamia.services.case.show_case import display_range, looks_like_mask
    from napari_mamamia.widgets.base.layers import image_file_layer

    file = Path(path[0] if isinstance(path, list) else path)
    if is_mask_file(file):
        labels = read_labels(file)
        if (grid := _grid_of_open_case()) is not None:
            labels = labels.on_grid(grid)
        return [_mask_tuple(file, labels.grid, labels.dense())]
    header = read_header(file)
    if header.n_volumes == 1:
        _, volume = read_volume(file)
        if header.dtype.kind in "iu" and looks_like_mask(volume):
            return [_mask_tuple(file, header.grid, volume)]
        return [image_file_layer(file.name, header.grid, volume, display_range(volume))]
    return _layers_of(find_data_set(file).cases[0])


def _grid_of_open_case() -> Grid | None:
    """Return the grid of the case that is open in napari's window, or None if no case is open."""
    from napari_mamamia.widgets.adapter.adapter import current_viewer
    from napari_mamamia.widgets.base.layers import tag_of

    viewer = current_viewer()
    tags = map(tag_of, viewer.layers) if viewer is not None else ()
    return next((tag.grid for tag in tags if tag is not None and tag.case_id), None)


def _layers_of(files: CaseFiles) -> "list[LayerTuple]":
    from napari_mamamia.services.case.open_case import load_case, load_reference
    from napari_mamamia.services.case.show_case import uint8_mask

    case = load_case(files)
    layers = [_case_tuple(case)]
    if files.reference is not None:
        labels = load_reference(files.reference, files, case)
        layers.append(_role_tuple(case, "reference", uint8_mask(labels)))
    return layers


def _case_tuple(case: "Case") -> "LayerTuple":
    from napari_mamamia.services.case.show_case import display_range
    from napari_mamamia.widgets.base.layers import case_layer

    return case_layer(case, display_range(case.signal[min(1, len(case.phases) - 1)]))


def _role_tuple(case: "Case", role: str, buffer: NDArray[np.uint8]) -> "LayerTuple":
    from napari_mamamia.widgets.base.layers import Role, mask_layer, tag_for

    return mask_layer(tag_for(case, Role(role)), buffer)


def _mask_tuple(file: Path, grid: Grid, volume: NDArray[Any]) -> "LayerTuple":
    from napari_mamamia.widgets.base.layers import label_file_layer

    return label_file_layer(file.name, grid, volume)


# ------------------------------------------------------------------------- writer


def write_labels(path: str, data: Any, attributes: Mapping[str, Any]) -> list[str]:
    """Write a labels layer as a mask: every value above 0 is 1.

    A layer of a case is written on the case's own grid. Any other 3-D layer gets a grid from its
    scale and affine, with napari's world read as mm towards superior, anterior and right; napari
    asks before it replaces an existing file.

    Raises
    ------
    FormatError
        If the layer is not 3-D, or the suffix is not .nii.gz, .nii or .nrrd.
    SaveError
        If writing fails; an existing file is unchanged.
    """
    from napari_mamamia.core.case import Mask
    from napari_mamamia.io.data_set.volumes import write_mask

    target = Path(path)
    if not target.name.lower().endswith(WRITTEN_SUFFIXES):
        raise FormatError(
            f"expected the file name to end in {', '.join(WRITTEN_SUFFIXES)}, but it is "
            f"{target.name}: "
            "choose a different name"
        )
    array, grid = _array_and_grid(data, attributes)
    write_mask(Mask(grid, np.asarray(array) > 0), target, overwrite=True)
    return [str(target)]


def _array_and_grid(data: Any, attributes: Mapping[str, Any]) -> tuple[NDArray[Any], Grid]:
    from napari.layers import Labels

    from napari_mamamia.widgets.base.layers import array_of, tag_of

    layer = Labels(
        np.asarray(data), metadata=attributes.get("metadata", {}), **_pick_placement(attributes)
    )
    tag = tag_of(layer)
    if tag is not None:
        return array_of(layer), tag.grid
    if layer.ndim != 3:
        raise FormatError(
            f"expected a labels layer with 3 dimensions, but it has {layer.ndim} "
            f"{layer.data.shape}: choose "
            "the mask of one volume"
        )
    return layer.data, Grid(layer.data.shape, _affine_of(layer))


def _pick_placement(attributes: Mapping[str, Any]) -> dict[str, Any]:
    names = ("scale", "translate", "rotate", "shear", "affine")
    return {name: attributes[name] for name in names if name in attributes}


def _affine_of(layer: Any) -> NDArray[np.float64]:
    """Return the matrix from voxel (x, y, z) to world (x, y, z) of a 3-D layer.

    The axes of the layer itself are (z, y, x).
    """
    origin = np.array(layer.data_to_world((0.0, 0.0, 0.0)))
    steps = [np.array(layer.data_to_world(step)) - origin for step in np.eye(3)]
    affine = np.eye(4)
    affine[:3, :3] = np.column_stack(steps)[::-1, ::-1]
    affine[:3, 3] = origin[::-1]
    return affine


# -------------------------------------------------------------------- sample data


def sample_axial() -> "list[LayerTuple]":
    """Return a phantom case in axial slices, with its reference mask."""
    from napari_mamamia.phantom import PhantomSpec

    return _make_sample(PhantomSpec(case_id="PHANTOM_AXIAL", seed=7))


def sample_sagittal() -> "list[LayerTuple]":
    """Return a phantom case in sagittal slices, with its reference mask."""
    from napari_mamamia.phantom import PhantomSpec, TumourSpec

    return _make_sample(
        PhantomSpec(
            case_id="PHANTOM_SAGITTAL",
            seed=11,
            shape=(64, 110, 110),
            spacing_mm=(3.0, 2.0, 2.0),
            orientation="PSR",
            tumours=(TumourSpec(longest_mm=26.0),),
        )
    )


def _make_sample(spec: "PhantomSpec") -> "list[LayerTuple]":
    from napari_mamamia.phantom import make_phantom

    phantom = make_phantom(spec)
    buffer = phantom.reference.array.astype(np.uint8)
    return [_case_tuple(phantom.case), _role_tuple(phantom.case, "reference", buffer)]
