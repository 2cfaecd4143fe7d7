"""`export` writes masks as a bundle (folder with manifest); `verify` checks a bundle."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from napari_mamamia.core.choices import FormatName, FuseRule, OrientationProfile, SegmentMaker
from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.core.mask_arrays import MaskLike, mask_in
from napari_mamamia.core.names import count_of
from napari_mamamia.core.open_choices import EXPORT_FORMATS
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.data_set.label_map import read_label_rules
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.library.argument_words import advise_failures, advising_arguments
from napari_mamamia.library.arguments import (
    PathLike,
    case_ids_of,
    existing_of,
    is_path,
    named,
    path_of,
    segment_of,
    texts_of,
)
from napari_mamamia.library.data_set import DataSet
from napari_mamamia.library.masks import write_mask
from napari_mamamia.library.page import html_of
from napari_mamamia.library.progress import drive
from napari_mamamia.services.export.export import ExportSummary, export_bundle
from napari_mamamia.services.export.plan import ExportSettings, MaskFolder
from napari_mamamia.services.export.privacy import require_source
from napari_mamamia.services.export.verify import Verification, verify_bundle

if TYPE_CHECKING:
    import pandas as pd

_MOST: Final = 999


class Exported:
    """The result of a verified export: ``.cases`` is a table, and ``.folder`` is the bundle."""

    def __init__(self, summary: ExportSummary) -> None:
        self._summary = summary

    def __fspath__(self) -> str:
        return str(self.folder)

    def __repr__(self) -> str:
        wrong = f", {count_of(len(self.problems), 'problem')}" if self.problems else ", verified"
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"Exported({len(self._summary.exported)} masks{failed}{wrong}, {str(self.folder)!r})"

    def _repr_html_(self) -> str:
        wrong = [*self.problems, *(f"{f.case_id}: {f.reason}" for f in self.failures)]
        lines = [*(f"⚠ {text}" for text in wrong), *self.notes]
        notes = "".join(f"<p>{escape(text)}</p>" for text in lines)
        table = html_of(self.cases)
        return f"<p><b>{escape(repr(self))}</b></p>{notes}{table}"

    @property
    def folder(self) -> Path:
        """The folder of the bundle, with ``manifest.json``."""
        return self._summary.out

    @property
    def failures(self) -> tuple[CaseFailure, ...]:
        """The cases that could not be written, each with its reason."""
        return advise_failures(self._summary.failures, export)

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems found when the bundle was verified; empty if there are none."""
        return self._summary.problems

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user, for example that a reader has no mask for a case."""
        return tuple(filter(None, (*self._summary.notes, self._summary.search)))

    @property
    def cases(self) -> "pd.DataFrame":
        """A table of masks, by case id: ``volume_ml``, ``quality`` (a colour), ``files``."""
        import pandas as pd

        rows = [
            {
                "volume_ml": one.volume_mm3 / 1000,
                "quality": one.light,
                "files": ", ".join(file.name for file in one.files),
            }
            for one in self._summary.exported
        ]
        ids = pd.Index(
            [one.case_id for one in self._summary.exported], name="case_id", dtype=object
        )
        return pd.DataFrame(rows, index=ids, columns=["volume_ml", "quality", "files"])


@advising_arguments
def export(
    data_set: DataSet,
    masks: "PathLike | Mapping[str, PathLike | MaskLike]",
    out: PathLike,
    *,
    formats: FormatName | Iterable[FormatName] = ("nifti",),
    harmonise: Literal["as-is", "las-psr", "ras", "lps"] = "as-is",
    label: float | str | None = None,
    label_map: PathLike | None = None,
    case_ids: str | Iterable[str] | None = None,
    with_images: bool = False,
    fuse: Literal["none", "majority", "staple"] = "none",
    study: PathLike | None = None,
    made_by: Literal["from-provenance", "manual", "semiautomatic", "automatic"] = "from-provenance",
    channels: int | None = None,
    dataset_number: int = 501,
    quality: bool = True,
    existing: Literal["refuse", "overwrite"] = "refuse",
    progress: bool = True,
) -> Exported:
    """Write masks as a bundle with geometry, provenance, checksums and quality; verify it.

    Parameters
    ----------
    data_set
        The data set with the images for which the masks were made.
    masks
        The masks: a folder with ``ID.nii.gz`` or files in another format that `read_mask` accepts,
        the result of `predict`, a mapping from name to folder, or a mapping from case id to a mask
        in memory.
    out
        The folder to write the bundle to.
    formats
        One or more formats; the guide "Export and verify" explains when to use each.
    harmonise
        An additional orientation in which the masks are written, by flipping and permuting axes
        only.
    label, label_map
        `label` is the only label value to keep, or the name of its segment. `label_map` is a JSON
        file with a rule for each label value.
    case_ids
        The ids of the cases to export; by default all.
    with_images
        Whether to write the phases too.
    fuse
        The method by which the masks of several readers are combined into an additional mask:
        majority vote or STAPLE.
    study
        The DICOM study to which the segmentations refer, or a folder that contains several studies.
    made_by
        For "dicom-seg": how the masks were made. By default, this is read from the provenance file
        next to each mask. It is required for masks in memory.
    channels, dataset_number
        For "nnunet": the number of phases, and the number of the nnU-Net data set. By default, all
        phases are used, provided that every case has the same number.
    quality
        Whether to read the images and check each mask against them.
    existing
        What to do if `out` is not empty: "refuse" or "overwrite".
    progress
        Whether to show a progress bar.

    Returns
    -------
    Exported
        The result, with ``.cases`` (a table), ``.failures``, ``.problems`` and ``.folder``.

    Raises
    ------
    CaseError, FormatError
        If a folder is missing or contains no mask, an id is unknown, or a format cannot be written.
    SaveConflictError
        If `out` contains other results.
    ArgumentError
        If an argument has the wrong type.

    Examples
    --------
    >>> mm.export(data_set, predictions, "bundle", formats="bids")  # doctest: +SKIP
    Exported(12 masks, verified, 'bundle')
    """
    if not isinstance(data_set, DataSet):
        raise ArgumentError(
            f"expected a data set, but got {type(data_set).__name__}: pass the result of "
            "`open_data_set(path)`"
        )
    source = None if study is None else path_of(study, "study")
    if source is not None:
        require_source(source)
    for what, number, most in (
        ("channels", channels, _MOST),
        ("dataset_number", dataset_number, _MOST),
    ):
        if number is not None and not (isinstance(number, int) and 1 <= number <= most):
            raise ArgumentError(
                f"expected {what} to be a whole number from 1 to {most}, but got {number!r}: "
                "correct the number"
            )
    chosen = texts_of(formats, "formats")
    settings = ExportSettings(
        masks=(),
        formats=tuple(map(_find_format, chosen)),
        profile=named(OrientationProfile, harmonise, "harmonise"),
        label=segment_of(label),
        rules=() if label_map is None else read_label_rules(path_of(label_map, "label_map")),
        case_ids=case_ids_of(case_ids),
        with_images=with_images,
        with_quality=quality,
        fuse=named(FuseRule, fuse, "fuse"),
        study=source,
        segment_maker=named(SegmentMaker, made_by, "made_by"),
        n_channels=channels,
        dataset_number=dataset_number,
    )
    how = existing_of(existing, can_resume=False)
    with _mask_folders(data_set, masks) as folders:
        chosen_masks = replace(settings, masks=folders)
        job = partial(export_bundle, data_set.opened, chosen_masks, path_of(out, "out"), how)
        return Exported(drive(job, progress))


@advising_arguments
def verify(
    bundle: PathLike,
    *,
    images: "DataSet | PathLike | None" = None,
    study: PathLike | None = None,
    progress: bool = True,
) -> Verification:
    """Check a bundle against its manifest, file by file.

    Parameters
    ----------
    bundle
        The folder of the bundle, or the result of `export`.
    images
        The data set whose grids the masks must match.
    study
        The DICOM study from which the masks come. The bundle is searched for the patient
        identifiers in this study.
    progress
        Whether to show a progress bar.

    Returns
    -------
    Verification
        The result, with ``.is_sound``, ``.problems`` (sentences), ``.n_files``, ``.n_masks`` and
        ``.search``.

    Raises
    ------
    FormatError
        If `images` or `study` cannot be read. Problems with the bundle, even a missing manifest,
        are listed in ``.problems`` instead.

    Examples
    --------
    >>> mm.verify("bundle").is_sound  # doctest: +SKIP
    True
    """
    root = images.root if isinstance(images, DataSet) else images
    source = None if study is None else path_of(study, "study")
    if source is not None:
        require_source(source)
    place = None if root is None else path_of(root, "images")
    studies = () if source is None else (source,)
    return drive(partial(verify_bundle, path_of(bundle, "a bundle"), place, studies), progress)


@contextmanager
def _mask_folders(
    data_set: DataSet, masks: "PathLike | Mapping[str, PathLike | MaskLike]"
) -> Iterator[tuple[MaskFolder, ...]]:
    if not isinstance(masks, Mapping):
        yield (MaskFolder(path_of(masks, "masks")),)
        return
    in_memory: dict[str, Any] = {name: mask for name, mask in masks.items() if not is_path(mask)}
    if not in_memory:
        folders = {name: path_of(mask, f"the masks {name}") for name, mask in masks.items()}
        yield tuple(MaskFolder(folder, name) for name, folder in folders.items())
        return
    if len(in_memory) < len(masks):
        raise ArgumentError(
            "expected either folders by name or masks by case id, but got both: write the masks "
            "with write_mask and pass their folder"
        )
    with own_folder() as folder:
        for case_id, mask in in_memory.items():
            # The array has the grid of its case; the export raises an error for a `Mask` on a
            # different grid.
            grid = None if mask_in(mask) is not None else data_set[case_id].grid
            write_mask(mask, folder / f"{case_id}.nii.gz", grid=grid)
        yield (MaskFolder(folder, "masks"),)


def _find_format(name: str) -> str:
    try:
        return EXPORT_FORMATS.find(name)
    except ValueError:
        names = ", ".join(f'"{known}"' for known in EXPORT_FORMATS.names)
        raise ArgumentError(
            f"expected formats to be among {names}, but got {name!r}: pass one of these"
        ) from None
