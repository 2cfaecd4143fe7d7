"""Find the phases of a DICOM study or a 3D Slicer scene when a case is opened."""

import atexit
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path

from napari_mamamia.core.errors import FormatError, MamamiaError
from napari_mamamia.core.names import name_some
from napari_mamamia.io.dicom.zip import unpack
from napari_mamamia.io.files.folders import natural_key
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.io.files.sources import CaseFiles, NamedMask, PhaseSource
from napari_mamamia.io.layouts.case_list import order_phases
from napari_mamamia.io.volumes.formats import file_stem

_FOLDERS = ExitStack()
atexit.register(_FOLDERS.close)


def complete_case(files: CaseFiles) -> CaseFiles:
    """Return a case with the phases of its source, or with a problem if it cannot be read.

    Headers of a DICOM study are read; a scene is unpacked into a temporary folder that is removed
    when the program ends.
    """
    if files.source is None or files.phases or files.problems:
        return files
    try:
        if files.source.is_dir():
            return _with_study(files, files.source)
        return _with_scene(files, _unpack_scene(files.source))
    except MamamiaError as error:
        return replace(files, problems=(*files.problems, str(error)))


def _with_study(files: CaseFiles, folder: Path) -> CaseFiles:
    from napari_mamamia.io.exam.phases import find_phases  # 30 modules that few data sets need

    study = find_phases(folder)
    return replace(files, phases=study.phases, warnings=(*files.warnings, *study.warnings))


@cache
def _unpack_scene(archive: Path) -> Path:
    folder = _FOLDERS.enter_context(own_folder())
    unpack(archive, folder)
    return folder


def _with_scene(files: CaseFiles, folder: Path) -> CaseFiles:
    from napari_mamamia.io.volumes.segments import read_segment_names  # it imports nrrd

    images, segmentations = [], []
    for path in sorted(folder.rglob("*"), key=lambda path: natural_key(path.name)):
        if path.name.lower().endswith(".seg.nrrd"):
            segmentations.append(path)
        elif path.is_file() and file_stem(path.name) is not None:
            images.append(path)
    orders = order_phases([path.name for path in images])
    if not orders:
        raise FormatError(
            f"expected images in {files.source} whose names say which phase they are (pre, post 1, "
            f"DCE_0, ...), but found {name_some([path.name for path in images]) or 'none'}: rename "
            "the volumes in 3D Slicer and save the scene again"
        )
    phases = sorted(zip(orders, images, strict=True))
    masks = [
        NamedMask(name, path, value)
        for path in segmentations
        for value, name in read_segment_names(path)
    ]
    return replace(
        files,
        phases=tuple(PhaseSource((path,)) for _, path in phases),
        masks=tuple(masks),
        reference=segmentations[0] if len(segmentations) == 1 else None,
    )
