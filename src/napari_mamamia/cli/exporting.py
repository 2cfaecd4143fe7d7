"""The commands `mamamia export`, `mamamia verify` and `mamamia findings`."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from napari_mamamia.cli import options
from napari_mamamia.cli.given import ALWAYS, Where, refuse_idle
from napari_mamamia.cli.opening import open_at
from napari_mamamia.cli.printing import NOT_EVERY_CASE, finish, run
from napari_mamamia.cli.quantities import Quantity
from napari_mamamia.cli.scripting import report_result, reports_result
from napari_mamamia.core.choices import (
    ExportFormat,
    FuseRule,
    OrientationProfile,
    SegmentMaker,
    TieRule,
)
from napari_mamamia.core.names import count_of
from napari_mamamia.core.open_choices import EXPORT_FORMATS

if TYPE_CHECKING:
    from napari_mamamia.services.export.export import ExportSummary


_CHANNELS: Final = Quantity(
    "a number of phases", 1, 999, "", "type the number of phases to write", True
)
_DATA_SET_NUMBER: Final = Quantity(
    "a number", 1, 999, "", "enter three digits at most, as in nnU-Net data sets", True
)


MasksOption = Annotated[
    list[str],
    typer.Option(
        "--masks",
        metavar="[NAME=]DIR",
        help=("Folder of masks ID.nii.gz; repeatable, as NAME=DIR for several."),
    ),
]


FormatOption = Annotated[
    list[str] | None,
    options.open_option(EXPORT_FORMATS, "--format", "Format to write; repeatable."),
]
HarmoniseOption = Annotated[
    OrientationProfile,
    typer.Option(
        "--harmonise", help=("Additional orientation to write (by flips and permutations only).")
    ),
]
LabelMapOption = Annotated[
    Path | None, typer.Option("--label-map", metavar="FILE", help="JSON file of label rules.")
]
StudyOption = Annotated[
    Path | None,
    typer.Option(
        "--study",
        metavar="DICOM_FOLDER",
        help=(
            "Study to which the DICOM SEG of NIfTI cases refers; for several studies, their "
            "parent folder."
        ),
    ),
]


def _build_condition(name: ExportFormat) -> Where:
    return Where(
        f"with --format {name.value}",
        lambda given: name in (given["formats"] or ()),
        lambda given: "without it",
    )


_FUSED: Final = Where(
    "with --fuse majority, where votes can be equal",
    lambda given: given["fuse"] is FuseRule.MAJORITY,
    lambda given: f"with --fuse {given['fuse'].value}",
)
OPTIONS: Final[dict[str, Where]] = dict.fromkeys(
    (
        *("data_set", "masks", "out", "harmonise", "formats", "label_map", "label", "case"),
        *("with_images", "fuse", "study", "quality", "columns", "layout"),
        *("patient", "visit", "overwrite"),
    ),
    ALWAYS,
) | {
    "tie": _FUSED,
    "made_by": _build_condition(ExportFormat.DICOM_SEG),
    "identified_seg": _build_condition(ExportFormat.DICOM_SEG),
    "channels": _build_condition(ExportFormat.NNUNET),
    "dataset_number": _build_condition(ExportFormat.NNUNET),
}
"""The conditions under which each parameter of `export` applies; new ones need an entry."""


@reports_result
def export(
    context: typer.Context,
    data_set: options.DataSetArgument,
    masks: MasksOption,
    out: options.OutOption,
    harmonise: HarmoniseOption = OrientationProfile.AS_IS,
    formats: FormatOption = None,
    label_map: LabelMapOption = None,
    label: options.SegmentOption = None,
    case: options.CaseOption = None,
    with_images: Annotated[
        bool, typer.Option("--with-images", help="Also write the phases.")
    ] = False,
    fuse: Annotated[
        FuseRule, typer.Option("--fuse", help="Add a mask that fuses the masks of several readers.")
    ] = FuseRule.NONE,
    tie: Annotated[
        TieRule, typer.Option("--tie", help="Label of a voxel with a tied vote (majority).")
    ] = TieRule.BACKGROUND,
    study: StudyOption = None,
    made_by: Annotated[
        SegmentMaker, typer.Option("--made-by", help="How the masks were drawn, for DICOM SEG.")
    ] = SegmentMaker.FROM_PROVENANCE,
    identified_seg: Annotated[
        bool,
        typer.Option(
            "--identified-seg",
            help="Write DICOM SEG with the patient's name and the study's UIDs, to send it back to "
            "the PACS; otherwise the case id replaces the patient's name.",
        ),
    ] = False,
    channels: Annotated[
        int | None,
        typer.Option(
            "--channels", parser=_CHANNELS, help="Number of phases for nnU-Net (default: all)."
        ),
    ] = None,
    dataset_number: Annotated[
        int,
        typer.Option(
            "--dataset-number",
            parser=_DATA_SET_NUMBER,
            help="Number of the nnU-Net data set, 1 to 999.",
        ),
    ] = 501,
    quality: Annotated[
        bool,
        typer.Option("--quality/--no-quality", help="Also compare the masks with the images."),
    ] = True,
    columns: options.ColumnsOption = None,
    layout: options.LayoutOption = "",
    patient: options.PatientOption = None,
    visit: options.VisitOption = None,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Write masks as a verified bundle with exact geometry, provenance, checksums and quality.

    Example: mamamia export DATASET --masks MASKS --format nifti --out BUNDLE
    """
    from napari_mamamia.io.data_set.label_map import read_label_rules
    from napari_mamamia.io.files.named_paths import read_named_path
    from napari_mamamia.services.export.export import export_bundle
    from napari_mamamia.services.export.plan import ExportSettings, MaskFolder
    from napari_mamamia.services.export.privacy import require_source

    refuse_idle(context, OPTIONS)
    if study is not None:
        require_source(study)
    settings = ExportSettings(
        masks=tuple(MaskFolder(path, name) for name, path in map(read_named_path, masks)),
        formats=tuple(formats or [ExportFormat.NIFTI]),
        profile=harmonise,
        label=label,
        rules=() if label_map is None else read_label_rules(label_map),
        case_ids=tuple(case or ()),
        with_images=with_images,
        with_quality=quality,
        fuse=fuse,
        tie=tie,
        study=study,
        segment_maker=made_by,
        dataset_number=dataset_number,
        n_channels=channels,
        identified_seg=identified_seg,
    )
    existing = options.existing_policy(False, overwrite)
    opened = open_at(data_set, columns, layout, patient, visit)
    _print_summary(run(partial(export_bundle, opened, settings, out, existing)))


@reports_result
def verify(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="Folder of an export.")],
    images: Annotated[
        Path | None,
        typer.Option(
            "--images", metavar="DATASET", help="Data set whose grids the masks must match."
        ),
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option(
            "--study",
            metavar="DICOM_FOLDER",
            help=(
                "Source DICOM; no byte of the bundle may contain names, numbers or UIDs of its "
                "patients."
            ),
        ),
    ] = None,
) -> None:
    """Check a bundle for missing, changed and extra files, and each mask's grid and labels.

    Example: mamamia verify BUNDLE --images DATASET
    """
    from napari_mamamia.services.export.privacy import require_source
    from napari_mamamia.services.export.verify import verify_bundle

    if study is not None:
        require_source(study)
    check = run(partial(verify_bundle, bundle, images, () if study is None else (study,)))
    report_result(lambda: check)
    for note in check.notes:
        print(f"note: {note}")
    for problem in check.problems:
        print(f"wrong: {problem}")
    if check.problems:
        print(f"{count_of(len(check.problems), 'problem')} in {bundle}")
        raise typer.Exit(NOT_EVERY_CASE)
    print(
        f"{count_of(check.n_files, 'file')}, including {count_of(check.n_masks, 'mask')}: all "
        "match the "
        "manifest"
    )
    _print_search(check.search)


def _print_summary(summary: "ExportSummary") -> None:
    report_result(lambda: summary)
    print(f"{count_of(len(summary.exported), 'mask')} saved and verified in {summary.out}")
    lights = [item.light for item in summary.exported if item.light]
    if lights:
        counts = ", ".join(f"{lights.count(name)} {name}" for name in ("green", "amber", "red"))
        print(f"Quality: {counts} (see quality.html for the reasons)")
    for note in summary.notes:
        print(f"note: {note}")
    for problem in summary.problems:
        print(f"wrong: {problem}")
    if not summary.problems:
        _print_search(summary.search)
    finish(summary.failures)
    if summary.problems:
        raise typer.Exit(NOT_EVERY_CASE)


def _print_search(sentence: str) -> None:
    if sentence:
        print(sentence)


@reports_result
def findings(
    data_set: options.DataSetArgument,
    out: options.OutOption,
    reader: Annotated[
        str | None, typer.Option("--reader", metavar="NAME", help="Only findings of this reader.")
    ] = None,
    columns: options.ColumnsOption = None,
    layout: options.LayoutOption = "",
    patient: options.PatientOption = None,
    visit: options.VisitOption = None,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Write the findings that readers entered to OUT/findings.csv (.parquet).

    Example: mamamia findings DATASET --out FINDINGS
    """
    from napari_mamamia.services.findings.findings_table import write_findings

    opened = open_at(data_set, columns, layout, patient, visit)
    existing = options.existing_policy(False, overwrite)
    table = run(partial(write_findings, opened, out, reader=reader, existing=existing))
    report_result(lambda: table)
    n_cases = len({row[0] for row in table.rows})
    print(
        f"{count_of(len(table.rows), 'row')} of {count_of(n_cases, 'case')}: {out / 'findings.csv'}"
    )
    finish(table.failures)
