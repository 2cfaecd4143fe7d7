"""Scenes: a lesion, its surroundings and what is taken for true, as `refine_scenes.json` has them.

A scene is made once (`make_scene`) and then read from a folder of .npz files, `MAMAMIA_REFINE` or
``--folder``. Without that folder all are made anew, and those that are fetched are left out.
"""

import json
import os
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.data_set.volumes import read_labels, read_volume
from napari_mamamia.phantom import PhantomSpec, TumourKind, TumourSpec, make_phantom
from napari_mamamia.smartpaint.brush.features import Channel, FeatureImages, measure_features
from refining import exams, phantoms

REAL_DATA = Path(os.environ.get("MAMAMIA_REAL_DATA", Path(__file__).parents[3] / "shared/data"))
LIST = Path(__file__).parents[1] / "refine_scenes.json"
MARGIN_MM = 35.0
"""How far around its lesion a real scene reaches, where the image does."""
OWN_SHAPE, OWN_SPACING = (28, 64, 64), (2.0, 0.8, 0.8)

Bools = NDArray[np.bool_]
Spacing = tuple[float, float, float]


class SceneError(Exception):
    """A scene that cannot be made here, with why."""


@dataclass(frozen=True)
class SceneSpec:
    """A line of the list: where a scene comes from, and in which set and groups it counts."""

    name: str
    set: str
    groups: tuple[str, ...]
    source: dict[str, Any]
    reference: str
    shape: tuple[int, int, int]
    voxels: int

    @property
    def is_fetched(self) -> bool:
        """Whether its files come from a public repository."""
        return "repository" in self.source or self.source.get("exam") in exams.EXAMS


@dataclass(frozen=True)
class Scene:
    """A case, its features and its reference; `groups` are lines of the table it counts for."""

    name: str
    groups: tuple[str, ...]
    case: Case
    reference: Bools
    images: FeatureImages
    notes: tuple[str, ...] = field(default=())

    @property
    def spacing_mm(self) -> Spacing:
        """Spacing of the crop along (z, y, x)."""
        return self.case.grid.spacing_mm

    @property
    def volume_ml(self) -> float:
        """Volume of the reference, ml."""
        return np.count_nonzero(self.reference) * self.case.grid.voxel_volume_mm3 / 1000


def read_list() -> list[SceneSpec]:
    """Return the scenes as they were fixed, in the order of the file."""
    rows = json.loads(LIST.read_text(encoding="utf-8"))["scenes"]
    return [
        SceneSpec(
            row["name"],
            row["set"],
            tuple(row["groups"]),
            row["source"],
            row["reference"],
            tuple(row["shape"]),
            row["voxels"],
        )
        for row in rows
    ]


def load_scene(
    spec: SceneSpec, folder: Path | None, mirror: Path | None = None, *, fetches: bool = True
) -> Scene:
    """Return a scene from the folder; where it is not there, make it and leave it there.

    Raises
    ------
    SceneError
        If its files are absent, or would have to be fetched and there is no folder to keep them.
    """
    path = folder / f"{spec.name}.npz" if folder else None
    if path is not None and path.exists():
        return _read_scene(spec, path)
    if spec.is_fetched and not (fetches and folder):
        raise SceneError("its files are fetched: name a folder (--folder or MAMAMIA_REFINE)")
    scene = make_scene(spec, mirror)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_scene(scene, path)
    return scene


def make_scene(spec: SceneSpec, mirror: Path | None = None) -> Scene:
    """Make a scene of what it comes from."""
    source = dict(spec.source)
    case, reference = MAKERS[source.pop("kind")](mirror=mirror, **source)
    # The noise is that of the whole image, as the program has it; the scene is a part of it.
    images = measure_features(case)
    grown = [int(np.ceil(MARGIN_MM / step)) for step in case.grid.spacing_mm]
    box = Box.around(reference).grown(grown, reference.shape)
    grid = Grid(box.shape, np.diag([*case.grid.spacing_mm[::-1], 1.0]))
    signal = np.ascontiguousarray(case.signal[(slice(None), *box.slices)])
    part = Case(spec.name, grid, signal, tuple(Phase(p.index, p.time_s) for p in case.phases))
    images = FeatureImages(part, images.channels, images.missing)
    return Scene(spec.name, spec.groups, part, reference[box.slices].copy(), images)


# ------------------------------------------------------------ where they come from

Made = tuple[Case, Bools]


def make_own(
    tumour: str, cnr: float, seed: int, *, fat_suppressed: bool = True, mirror: Path | None = None
) -> Made:
    """Return a crop of 56 x 51 x 51 mm around a phantom's tumour of 30 mm."""
    given = PhantomSpec(
        seed=seed,
        tumours=(TumourSpec(30.0, TumourKind(tumour)),),
        fat_suppressed=fat_suppressed,
    )
    coarse = make_phantom(given)
    z, y, x = Box.around(coarse.reference.array).centre
    centre = coarse.case.grid.affine @ (x, y, z, 1.0)
    fine = make_phantom(
        PhantomSpec(
            seed=seed,
            tumours=given.tumours,
            fat_suppressed=fat_suppressed,
            shape=OWN_SHAPE,
            spacing_mm=OWN_SPACING,
            field_centre_mm=(float(centre[0]), float(centre[1]), float(centre[2])),
            contrast_to_noise=cnr,
        )
    )
    return fine.case, fine.reference.array


def make_second(form: str, seed: int, mirror: Path | None = None, **given: Any) -> Made:
    """Return a phantom of the second family, which shares no code with the project's own."""
    drawn = phantoms.draw_lesion(phantoms.Form(form), seed, **given)
    shape = drawn.reference.shape
    grid = Grid(shape, np.diag([*drawn.spacing_mm[::-1], 1.0]))
    phases = tuple(Phase(k, t) for k, t in enumerate(phantoms.TIMES_S))
    return Case("second", grid, drawn.signal, phases), drawn.reference


def read_pair(image: str, mask: str, part: str = "all", mirror: Path | None = None) -> Made:
    """Return an image with its mask, of which all counts or the largest part."""
    return _read_files(_real(image), _real(mask), part)


def read_slice(folder: str, times_s: Sequence[float], mirror: Path | None = None) -> Made:
    """Return a case of one slice; true is what rises most where the tumour is said to be."""
    volumes = [read_volume(path) for path in sorted(_real(folder).glob("*.nii.gz"))]
    grid = Grid(volumes[0][1].shape, np.diag([*volumes[0][0].grid.spacing_mm[::-1], 1.0]))
    phases = tuple(Phase(k, t) for k, t in enumerate(times_s))
    case = Case("slice", grid, np.stack([values for _, values in volumes]), phases)
    return case, exams.half_of_the_most(case, exams.SLICE_BOX)


def read_exam(exam: str, mirror: Path | None = None) -> Made:
    """Return a whole breast exam, imported by `mamamia import`, and its reference."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        if exam == "ISPY1_1002":
            with zipfile.ZipFile(_real("ispy1_1002.zip")) as files:
                files.extractall(place / "dicom")
        else:
            fetch_into(exams.EXAMS[exam], place / "dicom", mirror)
        return exams.read_exam(exam, place)


def read_fetched(
    repository: str, image: str, mask: str, part: str = "all", mirror: Path | None = None
) -> Made:
    """Return an image and a mask that lie in a public repository."""
    with tempfile.TemporaryDirectory() as scratch:
        for name in (image, mask):
            fetch_into((repository, name), Path(scratch), mirror)
        return _read_files(Path(scratch) / image, Path(scratch) / mask, part)


def fetch_into(place: tuple[str, str], folder: Path, mirror: Path | None) -> None:
    """Fetch a public folder; `SceneError` where that fails."""
    try:
        exams.fetch(*place, folder, mirror)
    except exams.FetchError as error:
        raise SceneError(str(error)) from error


MAKERS = {
    "own phantom": make_own,
    "second phantom": make_second,
    "files": read_pair,
    "slice": read_slice,
    "exam": read_exam,
    "fetched files": read_fetched,
}


def _real(name: str) -> Path:
    path = REAL_DATA / name
    if not path.exists():
        raise SceneError(f"{path} is absent (set MAMAMIA_REAL_DATA)")
    return path


def _read_files(image: Path, mask: Path, part: str) -> Made:
    header, values = read_volume(image)
    inside = read_labels(mask).dense() > 0
    if part == "largest":
        parts, _ = label(inside, np.ones((3, 3, 3)))
        sizes = np.bincount(parts.ravel())
        sizes[0] = 0
        inside = parts == int(sizes.argmax())
    grid = Grid(values.shape, np.diag([*header.grid.spacing_mm[::-1], 1.0]))
    return Case(image.name, grid, values[np.newaxis], (Phase(0),)), inside


# ------------------------------------------------------------------ the folder


def _write_scene(scene: Scene, path: Path) -> None:
    channels = [[c.name, c.plus, c.minus, c.noise] for c in scene.images.channels]
    text = {
        "channels": channels,
        "missing": scene.images.missing,
        "times_s": scene.case.times_s,
        "spacing_mm": scene.spacing_mm,
    }
    part = path.with_suffix(f".{os.getpid()}.part")
    with part.open("wb") as file:
        np.savez_compressed(
            file, signal=scene.case.signal, reference=scene.reference, text=json.dumps(text)
        )
    part.replace(path)


def _read_scene(spec: SceneSpec, path: Path) -> Scene:
    with np.load(path) as file:
        signal, reference = file["signal"], file["reference"]
        text = json.loads(str(file["text"]))
    grid = Grid(signal.shape[1:], np.diag([*text["spacing_mm"][::-1], 1.0]))
    phases = tuple(Phase(k, t) for k, t in enumerate(text["times_s"]))
    case = Case(spec.name, grid, signal, phases)
    channels = tuple(Channel(*row) for row in text["channels"])
    images = FeatureImages(case, channels, tuple(text["missing"]))
    return Scene(spec.name, spec.groups, case, reference, images)
