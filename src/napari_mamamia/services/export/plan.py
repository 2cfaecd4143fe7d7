"""Settings of an export: mask sets, formats, orientation, labels; ambiguous ones are refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.annotations.harmonise import target_names
from napari_mamamia.core.choices import (
    ExportFormat,
    FuseRule,
    OrientationProfile,
    SegmentMaker,
    TieRule,
)
from napari_mamamia.core.errors import CaseError, FormatError, Remedy
from napari_mamamia.core.label_rules import LabelRule
from napari_mamamia.core.provenance import Setting
from napari_mamamia.io.data_set.mask_files import list_masks, no_mask_error
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.sources import DataSet, LayoutKind
from napari_mamamia.io.workspace.workspace import file_name

TUMOUR: Final = ((1, "tumour"),)


@dataclass(frozen=True, slots=True)
class MaskFolder:
    """A folder of masks ``ID.nii.gz`` and the name of the set; "" takes the folder's name."""

    folder: Path
    name: str = ""

    @property
    def title(self) -> str:
        """The name of the set."""
        return self.name or self.folder.resolve().name


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """The settings of an export.

    `label` keeps one value (or segment, by name) of each mask as 1; `rules` map values instead.
    `study` is the DICOM folder that segmentations refer to, with a subfolder ``ID`` for each case
    if there are several. `n_channels` is the number of phases for nnU-Net (None: all, if all cases
    have the same number). `with_images` also writes the phases. `with_quality` reads and checks the
    phases. `identified_seg` keeps the patient's name and the study's own UIDs in DICOM SEG, for
    sending back to the PACS.
    """

    masks: tuple[MaskFolder, ...]
    formats: tuple[str, ...] = (ExportFormat.NIFTI,)
    profile: OrientationProfile = OrientationProfile.AS_IS
    label: float | str | None = None
    rules: tuple[LabelRule, ...] = ()
    case_ids: tuple[str, ...] = ()
    with_images: bool = False
    with_quality: bool = True
    fuse: FuseRule = FuseRule.NONE
    tie: TieRule = TieRule.BACKGROUND
    study: Path | None = None
    segment_maker: SegmentMaker = SegmentMaker.FROM_PROVENANCE
    dataset_number: int = 501
    n_channels: int | None = None
    identified_seg: bool = False


def require_names(settings: ExportSettings) -> tuple[str, ...]:
    """Return the names of the mask sets, the fused set last; refuse names that collide.

    Raises
    ------
    CaseError
        If there is no set, two sets have the same name (ignoring letter case), a name is not a
        valid folder name, or there is nothing to fuse.
    """
    if not settings.masks:
        raise CaseError(
            "expected at least one folder of masks, got none: name one",
            remedies=(Remedy("masks", ("DIR",)),),
        )
    if settings.rules and settings.label is not None:
        raise CaseError("expected one label or a label map, got both: leave one out")
    names = [file_name(masks.title, "the name of a set of masks") for masks in settings.masks]
    if settings.fuse is not FuseRule.NONE:
        if len(names) < 2:
            raise CaseError(
                f"expected two sets of masks or more to fuse, got {len(names)} "
                f"({', '.join(names)}): name another folder",
                remedies=(Remedy("masks", ("NAME=DIR",)),),
            )
        names.append(settings.fuse.value)
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(case_key(name), name)
        if names.count(name) > 1 or other != name:
            raise CaseError(
                f"expected a different name for each set of masks, got {other!r} and {name!r}: "
                "rename one set",
                remedies=(Remedy("masks", ("NAME=DIR",)),),
            )
    return tuple(names)


def label_names(settings: ExportSettings) -> tuple[tuple[int, str], ...]:
    """Return the labels that masks of this export may contain, as (value, name)."""
    return target_names(settings.rules) if settings.rules else TUMOUR


def find_all_masks(
    data_set: DataSet, settings: ExportSettings
) -> tuple[tuple[Mapping[str, Path], ...], Mapping[str, str]]:
    """Return the files of each mask set by case id, and why cases have no mask.

    Reasons are given for cases without a mask in any set although files carry their names.

    Raises
    ------
    FormatError
        If a folder is missing or holds no mask.
    """
    ids_by_key = {case_key(files.case_id): files.case_id for files in data_set.cases}
    sets: list[Mapping[str, Path]] = []
    others: dict[str, str] = {}
    for masks in settings.masks:
        listing = list_masks(masks.folder, tuple(ids_by_key.values()))
        for problem in listing.problems.values():
            raise FormatError(f"{masks.folder}: {problem}")
        if listing.is_empty:
            raise no_mask_error(masks.folder)
        sets.append(
            {ids_by_key.get(case_key(name), name): path for name, path in listing.masks.items()}
        )
        others |= listing.others
    reasons = {
        case_id: reason
        for case_id, reason in others.items()
        if not any(case_id in mask_set for mask_set in sets)
    }
    return tuple(sets), reasons


def chosen_cases(
    settings: ExportSettings, sets: Sequence[Mapping[str, Path]], others: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the requested cases, or all cases for which any set has a file.

    Raises
    ------
    CaseError
        If no set has a mask of a requested case.
    """
    held = dict.fromkeys(case_id for files in (*sets, others) for case_id in files)
    for case_id in settings.case_ids:
        if case_id not in held:
            where = ", ".join(str(masks.folder) for masks in settings.masks)
            raise CaseError(f"no mask of case {case_id!r} in {where}: check the spelling")
    return settings.case_ids or tuple(held)


def require_own_folder(data_set: DataSet, sets: Sequence[Mapping[str, Path]], out: Path) -> None:
    """Refuse to write into a folder that holds the data set or the masks themselves.

    Raises
    ------
    CaseError
        If a phase, a reference or a mask to export is in `out`.
    """
    target = out.resolve()
    inputs = [path for mask_set in sets for path in mask_set.values()]
    for files in data_set.cases:
        inputs += [phase.files[0] for phase in files.phases]
        inputs += [files.reference] if files.reference is not None else []
    folders = {path.parent for path in inputs}
    for folder in folders:
        if folder.resolve().is_relative_to(target):
            raise CaseError(
                f"expected an output folder without the input, but {folder} is in {out}: choose "
                "another folder"
            )


def public_name(data_set: DataSet) -> str:
    """Return a publishable name of the data set; a DICOM folder often has the patient's name."""
    return "DICOM" if data_set.kind is LayoutKind.DICOM else data_set.name


def parameters_of(data_set: DataSet, settings: ExportSettings) -> tuple[tuple[str, Setting], ...]:
    """Return the settings of the export for ``run.json``."""
    return (
        ("data_set", public_name(data_set)),
        ("masks", ", ".join(masks.title for masks in settings.masks)),
        ("formats", ", ".join(settings.formats)),
        ("profile", settings.profile.value),
        ("label", settings.label),
        ("rules", "; ".join(f"{r.source:g}->{r.target} {r.name}" for r in settings.rules)),
        ("fuse", settings.fuse.value),
        ("with_images", settings.with_images),
        ("identified_seg", settings.identified_seg),
    )
