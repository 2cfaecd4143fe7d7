"""The manifest of an export, which lists every file with its SHA-256 and each mask's grid."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import listening
from napari_mamamia.io.files.checksums import sha256_of_large
from napari_mamamia.io.files.foreign import explained, reads
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.record_codec import Form, Layout, NotFinite, RecordCodec
from napari_mamamia.io.tables.tables import write_json

MANIFEST_NAME: Final = "manifest.json"
FORMAT_VERSION: Final = 1
_REMEDY: Final = "get another copy of the bundle, or export again"


@dataclass(frozen=True, slots=True)
class Place:
    """The grid of a volume as stored in the manifest, in plain numbers.

    `shape` is (z, y, x). `affine` holds the 4x4 rows from the file, which map voxel (x, y, z) to
    RAS mm.
    """

    shape: tuple[int, int, int]
    affine: tuple[tuple[float, ...], ...]
    orientation: str

    @classmethod
    def of(cls, grid: Grid) -> "Place":
        """Return a grid in the form stored in the manifest."""
        rows = tuple(tuple(float(v) for v in row) for row in grid.affine)
        return cls(grid.shape, rows, grid.orientation)

    def grid(self) -> Grid:
        """Return the stored grid as a `Grid`."""
        return Grid(self.shape, np.array(self.affine))


@dataclass(frozen=True, slots=True)
class BundleFile:
    """A file in an export bundle.

    `name` is the path in the bundle, separated by ``/``. `kind` is "mask", "segmentation", "image",
    "provenance", "coordinates", "table", "quality", "archive" or "other". A mask or an image has a
    case and a grid.
    """

    name: str
    kind: str
    sha256: str
    n_bytes: int
    case_id: str = ""
    masks: str = ""
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class CaseEntry:
    """An exported case with its volume in mm3 (of the first set of masks), quality and files."""

    case_id: str
    volume_mm3: float
    quality: str
    files: tuple[BundleFile, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a bundle, and how it was made.

    `labels` are (value, name) pairs, `notes` are sentences, and `files` are the files that do not
    belong to a single case.
    """

    software: str
    created: str
    data_set: str
    profile: str
    formats: tuple[str, ...]
    masks: tuple[str, ...]
    labels: tuple[tuple[int, str], ...]
    cases: tuple[CaseEntry, ...]
    files: tuple[BundleFile, ...]
    notes: tuple[str, ...] = ()

    def all_files(self) -> Iterator[BundleFile]:
        """Yield every file of the bundle, starting with the files of cases."""
        for case in self.cases:
            yield from case.files
        yield from self.files


def describe_file(
    root: Path,
    path: Path,
    kind: str,
    *,
    case_id: str = "",
    masks: str = "",
    grid: Grid | None = None,
) -> BundleFile:
    """Return the manifest entry for a file in the bundle `root`."""
    with listening(None):
        return describe_large_file(root, path, kind, case_id=case_id, masks=masks, grid=grid)


def describe_large_file(
    root: Path,
    path: Path,
    kind: str,
    *,
    case_id: str = "",
    masks: str = "",
    grid: Grid | None = None,
) -> BundleFile:
    """Return the manifest entry for a large file; report progress while computing its checksum."""
    place = None if grid is None else Place.of(grid)
    name = path.relative_to(root).as_posix()
    digest = sha256_of_large(path)
    return BundleFile(name, kind, digest, path.stat().st_size, case_id, masks, place)


def bundle_names(root: Path) -> tuple[str, ...]:
    """Return the sorted paths of all files below `root` except the manifest, separated by ``/``.

    Raises
    ------
    FormatError
        If the folder cannot be read.
    """
    try:
        paths = [path for path in root.rglob("*") if not path.is_dir() or path.is_symlink()]
    except OSError as error:
        raise FormatError(
            f"cannot read the folder {root}: {error.strerror}; check the path"
        ) from error
    names = (path.relative_to(root).as_posix() for path in paths)
    return tuple(sorted(name for name in names if name != MANIFEST_NAME))


def write_manifest(manifest: Manifest, root: Path) -> None:
    """Write ``manifest.json``, replacing an existing file.

    Raises
    ------
    SaveError
        If the file cannot be written.
    """
    content = {**_CODEC.plain(manifest), "manifest_version": FORMAT_VERSION}
    write_json(content, root / MANIFEST_NAME, overwrite=True)


@reads("the manifest of an export", _REMEDY)
def read_manifest(root: Path) -> Manifest:
    """Return the manifest of a bundle.

    Raises
    ------
    FormatError
        If the manifest is missing or damaged, or was written by a later version.
    """
    path = root / MANIFEST_NAME
    if not path.is_file():
        raise FormatError(
            f"expected {MANIFEST_NAME} in {root}, but it is missing: this is not a bundle, or the "
            "export did not finish; export again"
        )
    with explained(path, "the manifest of an export", _REMEDY):
        content = read_json(path)
        version = content.pop("manifest_version")
        if version != FORMAT_VERSION:
            raise ValueError(
                f"manifest_version is {version}, but this software reads version {FORMAT_VERSION}"
            )
        manifest = _CODEC.record(content, path)
        for file in manifest.all_files():
            if file.place is not None:
                file.place.grid()  # Raises an error if the grid is invalid.
        return manifest


def _plain_labels(labels: tuple[tuple[int, str], ...]) -> list[dict[str, Any]]:
    return [{"value": value, "name": name} for value, name in labels]


def _parse_labels(content: list[dict[str, Any]]) -> tuple[tuple[int, str], ...]:
    return tuple((int(item["value"]), str(item["name"])) for item in content)


_CODEC: Final = RecordCodec(
    Manifest,
    _REMEDY,
    [Layout(Manifest, {"labels": Form(_plain_labels, _parse_labels)})],
    not_finite=NotFinite.AS_IT_IS,
)
