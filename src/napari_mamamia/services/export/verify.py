"""Check a bundle against its manifest, file by file (`verify_bundle`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import FormatError, MamamiaError, MissingExtraError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.data_set.bundle import BundleFile, Manifest, bundle_names, read_manifest
from napari_mamamia.io.data_set.volumes import read_header, read_labels, read_phase_header
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.io.files.sources import DataSet
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.services.export.format_spec import FormatSpec
from napari_mamamia.services.export.formats import EXPORT_FORMATS
from napari_mamamia.services.export.privacy import impersonal, search_bundle, telling_in, volumes_of

_LISTED: Final = 6


@cache
def _formats_by_folder() -> Mapping[str, FormatSpec]:
    return {folder: spec for spec in EXPORT_FORMATS.values() for folder in spec.folders}


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification; `notes` state what could not be checked.

    `search` states for which patient data the files were searched and for which they were not.
    """

    root: Path
    n_files: int
    n_masks: int
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    search: str = ""

    @property
    def is_sound(self) -> bool:
        """Whether the bundle has no problems."""
        return not self.problems


@reads("a bundle", "get another copy of the bundle")
def verify_bundle(
    root: Path,
    images: Path | None = None,
    studies: Sequence[Path] = (),
    volumes: Sequence[Path] = (),
) -> Verification:
    """Check a bundle against its ``manifest.json``.

    Every file must exist with the SHA-256 in the manifest, and the folder must not contain any
    other file. Every mask and image must be readable, on the grid of its image in the manifest
    (within `SAME_PLACE_VOXELS`). Masks must be on the grid of their case's images in the bundle,
    and every label must have a name. No file may contain identifiers of the patients in the
    available sources (`services/export/privacy.py`).

    Parameters
    ----------
    root
        The folder of the bundle.
    images
        A data set; masks on the native grid must also have the grid of the first phase of its
        cases.
    studies
        DICOM files or folders whose patients the bundle must not identify.
    volumes
        NIfTI and NRRD files with their headers, and JSON files, whose patients the bundle must not
        identify. The files of `images` are added.

    Raises
    ------
    FormatError
        If `root` is not a folder, its manifest names a path outside the folder, or `images` has no
        case.
    """
    if not root.is_dir():
        raise FormatError(f"the bundle folder {root} does not exist: check the path")
    report_progress(0, 1, "Reading the manifest")
    try:
        manifest = read_manifest(root)
    except FormatError as error:
        return Verification(root, 0, 0, (str(error),))
    data_set = None if images is None else find_data_set(images)
    files = tuple(manifest.all_files())
    problems = list(_check_names(root, files))
    if not manifest.cases:
        problems.append(
            "the manifest lists no case, because no mask could be exported: export the masks again"
        )
    notes: dict[str, None] = {}
    places = _image_places(root, files)
    n_masks = 0
    for index, file in enumerate(files):
        report_progress(index, len(files), f"Verifying {file.name}")
        if not _find_path(root, file).is_file():
            continue
        try:
            file_problems = list(_check_file(root, file, manifest, places, data_set))
        except MissingExtraError as error:
            spec = _format_of(file)
            what = file.name if spec is None else spec.title
            notes[f"{what} could not be checked: {error}"] = None
            file_problems = list(_check_content(root, file))
        problems += file_problems
        n_masks += file.kind in ("mask", "segmentation")
    if data_set is not None:
        by_id = data_set.by_id()
        volumes = (*volumes, *volumes_of([by_id[c] for c in _case_ids(manifest) if c in by_id]))
    own_day = manifest.created[:10].replace("-", "")
    telling = telling_in(studies, volumes, _case_ids(manifest), own_day)
    problems += search_bundle(root, telling.identifiers)
    report_progress(len(files), len(files), "Verified")
    return Verification(
        root,
        len(files),
        n_masks,
        tuple(dict.fromkeys(impersonal(problems, telling.identifiers))),
        (*notes, *telling.notes),
        telling.sentence,
    )


def _case_ids(manifest: Manifest) -> tuple[str, ...]:
    return tuple(entry.case_id for entry in manifest.cases)


def _find_path(root: Path, file: BundleFile) -> Path:
    """Return the path of a file in the manifest; raise if it is outside the bundle."""
    path = root / file.name
    if not path.resolve().is_relative_to(root.resolve()):
        raise FormatError(
            f"expected the manifest of {root} to list only files inside the bundle, but it lists "
            f"{file.name!r}: do not trust this bundle"
        )
    return path


def _check_names(root: Path, files: tuple[BundleFile, ...]) -> Iterator[str]:
    listed = [file.name for file in files]
    for name in sorted({name for name in listed if listed.count(name) > 1}):
        yield f"{name}: the file is listed twice in the manifest"
    for file in files:
        if not _find_path(root, file).is_file():
            yield f"{file.name}: missing"
    names = set(listed)
    yield from (
        f"{name}: the file is not in the manifest"
        for name in bundle_names(root)
        if name not in names
    )


def _image_places(root: Path, files: tuple[BundleFile, ...]) -> Mapping[tuple[str, str], Grid]:
    grids: dict[tuple[str, str], Grid] = {}
    for file in files:
        key = (_find_part(file.name), file.case_id)
        path = _find_path(root, file)
        if file.kind == "image" and key not in grids and path.is_file():
            try:
                grids[key] = read_header(path).grid
            except FormatError:
                continue  # The problem is reported when the image itself is checked.
    return grids


def _format_of(file: BundleFile) -> FormatSpec | None:
    return _formats_by_folder().get(file.name.split("/")[0])


def _find_part(name: str) -> str:
    """Return the reoriented folder that contains a file, or "native" for all other files.

    The files of a case in one such part of the bundle have the same grid.
    """
    first = name.split("/")[0]
    spec = _formats_by_folder().get(first)
    return first if spec is not None and first in spec.turned else "native"


def _check_content(root: Path, file: BundleFile) -> Iterator[str]:
    digest = sha256_of(_find_path(root, file))
    if digest != file.sha256:
        yield (
            f"{file.name}: the file has changed (SHA-256 {digest[:12]}…, but "
            f"{file.sha256[:12]}… in the manifest)"
        )


def _check_file(
    root: Path,
    file: BundleFile,
    manifest: Manifest,
    places: Mapping[tuple[str, str], Grid],
    data_set: DataSet | None,
) -> Iterator[str]:
    yield from _check_content(root, file)
    try:
        if file.kind in ("mask", "image"):
            yield from _check_volume(_find_path(root, file), file, manifest, places, data_set)
        spec = _format_of(file)
        if spec is not None and spec.verify is not None and file.kind in spec.verified:
            yield from spec.verify(_find_path(root, file), file, manifest)
    except MissingExtraError:
        raise
    except MamamiaError as error:
        yield f"{file.name}: the file cannot be read ({error})"


def _check_volume(
    path: Path,
    file: BundleFile,
    manifest: Manifest,
    places: Mapping[tuple[str, str], Grid],
    data_set: DataSet | None,
) -> Iterator[str]:
    is_mask = file.kind == "mask"
    labels = read_labels(path) if is_mask else None
    grid = read_header(path).grid if labels is None else labels.grid
    if file.place is not None:
        yield from _check_same_place(
            file.name, grid, file.place.grid(), "the image's grid in the manifest"
        )
    key = (_find_part(file.name), file.case_id)
    if is_mask and key in places:
        yield from _check_same_place(
            file.name, grid, places[key], f"the image of {file.case_id} next to it"
        )
    if is_mask and data_set is not None and key[0] == "native":
        yield from _on_data_set(file, grid, data_set)
    names = dict(manifest.labels)
    unnamed = [v for v in (() if labels is None else labels.values) if v not in names]
    if unnamed:
        listed = ", ".join(f"{v:g}" for v in unnamed[:_LISTED])
        yield f"{file.name}: the label {listed} has no name in the manifest"


def _on_data_set(file: BundleFile, grid: Grid, data_set: DataSet) -> Iterator[str]:
    try:
        image = read_phase_header(data_set.case(file.case_id).phases[0]).grid
    except MamamiaError as error:
        yield f"{file.name}: the image of the mask cannot be read ({error})"
        return
    yield from _check_same_place(
        file.name, grid, image, f"phase 0 of {file.case_id} in {data_set.name}"
    )


def _check_same_place(name: str, grid: Grid, other: Grid, what: str) -> Iterator[str]:
    if grid.shape != other.shape:
        yield (
            f"{name}: the shape is {grid.shape} (z, y, x), but the shape of {what} is {other.shape}"
        )
    elif not grid.is_same_place(other):
        apart = grid.farthest_corner_mm(other)
        yield f"{name}: the grid is up to {apart:.2f} mm away from {what}"
