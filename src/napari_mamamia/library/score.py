"""`score` compares masks (in memory, in files or folders, or of a data set) with references."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from napari_mamamia.core.case import LabelMap, on_common_grid
from napari_mamamia.core.choices import UnusableRule, UnusableRuleName
from napari_mamamia.core.errors import ArgumentError, FormatError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.mask_arrays import MaskLike, grid_of, label_array, mask_in
from napari_mamamia.io.data_set.case_list import read_case_list
from napari_mamamia.io.data_set.mask_files import MaskListing, list_masks, no_mask_error
from napari_mamamia.io.data_set.score_files import read_score_table
from napari_mamamia.io.data_set.volumes import read_labels, volume_stem
from napari_mamamia.io.layouts.label_names import read_reference, read_tumour
from napari_mamamia.library.argument_words import advising_arguments
from napari_mamamia.library.arguments import (
    PathLike,
    columns_of,
    is_path,
    name_frames,
    path_of,
    place_of,
    segment_of,
    table_file,
)
from napari_mamamia.library.data_set import DataSet
from napari_mamamia.library.progress import drive
from napari_mamamia.library.scores import Scores, ScoreSource
from napari_mamamia.scoring.case.profiles import profile_named
from napari_mamamia.services.score.clinical_table import read_table
from napari_mamamia.services.score.report import Scored
from napari_mamamia.services.score.score import (
    FoundPairs,
    MaskPairs,
    find_cases,
    has_references_as_predictions,
    join_listings,
    keep_listed,
    score_masks_of_cases,
    score_pairs,
)
from napari_mamamia.services.score.settings import ScoreSettings
from napari_mamamia.services.score.table import score_rows, table_parameters

if TYPE_CHECKING:
    import pandas as pd

ProfileName: TypeAlias = Literal["clinical", "official-code", "paper"]
Masks: TypeAlias = "MaskLike | PathLike | Mapping[str, MaskLike]"
"""A mask, a file or folder of masks, or a mapping from case id to mask."""

_TABLES: Final = (".csv", ".xlsx", ".ods", ".tsv", ".parquet")


@advising_arguments
def score(
    reference: "Masks | DataSet",
    prediction: Masks,
    *,
    grid: Grid | None = None,
    clinical: "PathLike | DataSet | pd.DataFrame | None" = None,
    columns: PathLike | Mapping[str, str | None] | None = None,
    profile: ProfileName = "clinical",
    label: float | str | None = None,
    bootstrap: int = 1000,
    seed: int = 42,
    minimum_group: int = 5,
    unusable: UnusableRuleName | None = None,
    cases: PathLike | None = None,
    images: "PathLike | DataSet | None" = None,
    name: str = "",
    case_id: str = "case",
    workers: int = 0,
    progress: bool = True,
) -> Scores:
    """Score predicted masks against reference masks, with the same results as ``mamamia score``.

    Parameters
    ----------
    reference, prediction
        Two folders of masks (``ID.nii.gz``, or another format that `read_mask` accepts), two files,
        two masks in memory (`Mask` or array ``(z, y, x)``), or two mappings from case id to mask.
        The reference may also be a `DataSet`, whose expert masks are then used. The profile defines
        how a case without a prediction counts. If a file cannot be read, only its own case is
        affected.
    grid
        The grid of the arrays; not needed for a `Mask`, which has its own grid.
    clinical
        The clinical table for fairness (``.xlsx``, ``.ods``, ``.csv``, or a DataFrame), or the data
        set that contains it. Without a clinical table, fairness is undefined.
    columns
        The column that holds each field of the clinical table, as in `open_data_set`. ``{"age":
        None}`` declares that the table has no age; fairness over age is then undefined.
    profile
        The set of definitions for all scores: "clinical" (HD95 in mm), "official-code" (the
        challenge's scripts) or "paper".
    label
        The tumour's label value or, for files, the name of its segment; by default any value above
        0. This works only with the profile "clinical".
    bootstrap, seed
        The number of resamples for the 95 % intervals, and the random seed. With 0 resamples, only
        disparities and fairness have intervals, which are computed from group means.
    minimum_group
        The smallest group size (at least 2). Smaller groups are listed and are excluded from tests,
        from sentences, and from the intervals of disparities and fairness, but still count in the
        score.
    unusable
        How a case without a usable prediction counts in the ranking numbers: "reject",
        "least-favourable", "worst-score" or "leave-out". By default, the profile's rule applies.
    cases
        A file that lists the cases to include, with one id per line, or a table with case_id (and
        the sha256 of the reference). Only for files.
    images
        The data set with the images, for finding lesions with low contrast. Only for files.
    name
        The model's name; by default the name of the folder.
    case_id
        The id of the case, if a single case in memory is scored.
    workers
        The number of parallel processes; 0 uses only this process. Only for files.
    progress
        Whether to show a progress bar.

    Returns
    -------
    Scores
        The results. ``.cases``, ``.groups`` and ``.cohort`` are tables, ``.report(path)`` writes an
        HTML page, ``.save(folder)`` writes the same files as the command line, and
        ``.compare(other)`` compares models.

    Raises
    ------
    ArgumentError
        If an argument has the wrong type, an array does not contain a mask, or reference and
        prediction are the same files.
    GridMismatchError
        If an array does not have the shape of `grid`. Masks on different grids do not raise an
        error, but are reported in the ``status`` of the case.
    FormatError
        If a folder is missing or contains no mask, or the clinical table cannot be read or lacks a
        field that fairness needs.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_mamamia as mm
    >>> truth = np.zeros((4, 8, 8), bool)
    >>> truth[1:3, 2:6, 2:6] = True
    >>> guess = np.roll(truth, 1, axis=2)
    >>> found = mm.score(truth, guess, grid=mm.Grid.of_spacing((4, 8, 8), (2.0, 1.0, 1.0)))
    >>> found.cases.loc["case", ["dsc", "hausdorff95_mm"]].tolist()
    [0.75, 1.0]
    """
    with table_file(clinical, "clinical", "clinical") as table:
        settings = _make_settings(table, columns, profile, label, bootstrap, seed, images)
        settings = _with_least(settings, minimum_group)
        settings = _with_policy(settings, unusable, cases)
        cohort = drive(partial(read_table, settings.clinical, settings.columns), progress)
    if _are_files(reference, prediction):
        files, folders = _file_pairs(reference, prediction)
        if settings.cases is not None:
            files = keep_listed(files, settings.cases, folders[0])
        own_name = name or folders[1].resolve().name
        job = partial(score_pairs, own_name, files, settings, cohort, place=place_of(workers))
        names = (("reference", folders[0].name), ("prediction", folders[1].name))
        read = (*_folders_of(reference), *folders)
        source = ScoreSource("score", (*names, *settings.parameters), read)
        scored = drive(job, progress, starts_processes=workers > 0)
        return Scores(scored, settings, source)
    name_of_segment = label if isinstance(label, str) else None
    _require_files_for(images=images, workers=workers, cases=cases, label=name_of_segment)
    masks = _mask_pairs(reference, prediction, grid, case_id, settings)
    scoring = partial(score_masks_of_cases, name or "prediction", masks, settings, cohort)
    source = ScoreSource("score", settings.parameters)
    return Scores(drive(scoring, progress), settings, source)


@advising_arguments
def score_table(
    table: "PathLike | pd.DataFrame",
    *,
    clinical: "PathLike | DataSet | pd.DataFrame | None" = None,
    columns: PathLike | Mapping[str, str | None] | None = None,
    profile: ProfileName = "clinical",
    bootstrap: int = 1000,
    seed: int = 42,
    minimum_group: int = 5,
    unusable: UnusableRuleName | None = None,
    cases: PathLike | None = None,
    metric_definition: str = "",
    name: str = "",
    progress: bool = True,
) -> Scores:
    """Compute cohort results from case scores that other software computed.

    Parameters
    ----------
    table
        A ``.csv`` or ``.xlsx`` file or a DataFrame with the columns case_id (or patient_id), dsc
        and norm_hd. An invalid row becomes a failure with its row number; all other rows count.
    clinical, columns, profile, bootstrap, seed, minimum_group, unusable, progress
        As in `score`.
    cases
        As in `score`; by default the cases of the table.
    metric_definition
        A description of how the scores were computed; by default the table's own description.
    name
        The model's name; by default the name of the file.

    Returns
    -------
    Scores
        The tables ``.cases``, ``.groups`` and ``.cohort``, as in `score`.

    Raises
    ------
    FormatError
        If a table cannot be read or lacks a column.
    ArgumentError
        If an argument has the wrong type.

    Examples
    --------
    >>> mm.score_table("theirs.csv", clinical="clinical.xlsx").cohort  # doctest: +SKIP
    """
    with (
        table_file(clinical, "clinical", "clinical") as clinical_file,
        table_file(table, "scores", "table") as given,
    ):
        settings = _make_settings(clinical_file, columns, profile, None, bootstrap, seed, None)
        settings = _with_least(settings, minimum_group)
        settings = _with_policy(settings, unusable, cases)
        settings = replace(settings, metric_definition=metric_definition)
        path = path_of(given, "a table of scores")
        read = drive(partial(read_score_table, path), progress)
        if given is not table:
            failures, notes = name_frames(read.failures, read.notes, path, "table")
            read = replace(read, failures=failures, notes=notes)
        cohort = drive(partial(read_table, settings.clinical, settings.columns), progress)
    model = drive(partial(score_rows, name or path.stem, read, settings, cohort), progress)
    source = ScoreSource("score-table", table_parameters(path, settings))
    return Scores(Scored(model), settings, source)


def _make_settings(
    clinical: "PathLike | DataSet | None",
    columns: PathLike | Mapping[str, str | None] | None,
    profile: str,
    label: float | str | None,
    bootstrap: int,
    seed: int,
    images: "PathLike | DataSet | None",
) -> ScoreSettings:
    for option, number in (("bootstrap", bootstrap), ("seed", seed)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ArgumentError(
                f"expected {option} to be a whole number of 0 or above, but got {number!r}: pass "
                "one such as 1000"
            )
    choice = columns_of(columns)
    if columns is not None and clinical is None:
        raise ArgumentError(
            "columns can be used only with a clinical table, but there is none: pass clinical "
            "too, or omit columns"
        )
    root = images.root if isinstance(images, DataSet) else images
    try:
        return ScoreSettings(
            profile_named(profile),
            _clinical_table(clinical),
            segment_of(label),
            bootstrap,
            seed,
            images=None if root is None else path_of(root, "images"),
            columns=choice,
        )
    except ValueError as error:
        if isinstance(error, FormatError | ArgumentError):
            raise
        raise ArgumentError(str(error)) from error


def _with_least(settings: ScoreSettings, minimum_group: int) -> ScoreSettings:
    is_number = isinstance(minimum_group, int) and not isinstance(minimum_group, bool)
    if not is_number or minimum_group < 2:
        raise ArgumentError(
            "expected minimum_group to be a whole number of 2 or above, but got "
            f"{minimum_group!r}: pass one such as 5"
        )
    return replace(settings, minimum_group=minimum_group)


def _with_policy(
    settings: ScoreSettings, unusable: str | None, cases: PathLike | None
) -> ScoreSettings:
    rules = [rule.value for rule in UnusableRule]
    if unusable is not None and unusable not in rules:
        raise ArgumentError(
            f"expected unusable to be one of {', '.join(rules)}, but got {unusable!r}: pass one "
            "of them"
        )
    listed = None if cases is None else read_case_list(path_of(cases, "a list of cases"))
    try:
        rule = None if unusable is None else UnusableRule(unusable)
        return replace(settings, unusable=rule, cases=listed)
    except ValueError as error:
        raise ArgumentError(str(error)) from error


def _clinical_table(clinical: "PathLike | DataSet | None") -> Path | None:
    if clinical is None:
        return None
    if not isinstance(clinical, DataSet):
        return path_of(clinical, "the clinical table")
    if clinical.clinical is None:
        raise ArgumentError(
            f"expected the data set {clinical.name} to have a clinical table, but it has none: "
            "pass the path of a table, or omit clinical"
        )
    return clinical.clinical


def _are_files(reference: object, prediction: object) -> bool:
    """Return whether both arguments are files or folders, which can be read case by case."""
    return is_path(prediction) and (is_path(reference) or isinstance(reference, DataSet))


def _file_pairs(reference: Any, prediction: Any) -> tuple[FoundPairs, tuple[Path, Path]]:
    there = _require_place(prediction, "the prediction")
    if isinstance(reference, DataSet):
        return _pairs_of_data_set(reference, there), (reference.root, there)
    here = _require_place(reference, "the reference")
    if here.resolve() == there.resolve():
        raise ArgumentError(
            f"expected references and predictions in different folders, but got {here} for both, "
            "so every score would be perfect: pass the folder of the predictions"
        )
    if here.is_file() != there.is_file():
        raise ArgumentError(
            f"expected two folders or two files, but got {here} and {there}: pass two of the same "
            "kind"
        )
    if here.is_file():
        return FoundPairs({volume_stem(there): (here, there)}), (here, there)
    return find_cases(here, there), (here, there)


def _folders_of(reference: object) -> frozenset[Path]:
    """Return all folders of a data set, in which no results may be saved."""
    return reference.opened.data_set.folders if isinstance(reference, DataSet) else frozenset()


def _pairs_of_data_set(data_set: DataSet, folder: Path) -> FoundPairs:
    if not folder.is_dir():
        raise ArgumentError(
            f"expected a folder of predictions for {data_set.name}, but got the file {folder}: "
            "pass the folder"
        )
    references = {
        files.case_id: files.reference
        for files in data_set.opened.data_set.cases
        if files.reference is not None
    }
    if not references:
        raise ArgumentError(
            f"expected the data set {data_set.name} to have reference masks, but it has none: "
            "pass the folder of the reference masks"
        )
    listing = list_masks(folder, tuple(references))
    if listing.is_empty:
        raise no_mask_error(folder)
    pairs = join_listings(MaskListing(references), listing)
    if has_references_as_predictions(pairs.pairs):
        raise ArgumentError(
            f"expected the masks of a model, but the prediction folder {folder} is the reference "
            "folder, so every score would be perfect: pass the folder of the predictions"
        )
    return pairs


def _require_place(given: Any, what: str) -> Path:
    path = path_of(given, what)
    if path.suffix.lower() in _TABLES and path.is_file():
        raise ArgumentError(
            f"expected {what} to be masks, but got the table {path}: use `score_table(table)` for "
            "case scores"
        )
    if not path.exists():
        raise FormatError(
            f"expected {what} to be a mask file or a folder of masks, but {path} does not exist: "
            "check the path"
        )
    return path


def _require_files_for(**given: object) -> None:
    """Raise an error if arguments were passed that apply only to files."""
    refused = [name for name, value in given.items() if value]
    if refused:
        raise ArgumentError(
            f"{refused[0]} needs masks in files or folders, but got masks in memory: omit "
            f"{refused[0]}"
        )


def _mask_pairs(
    reference: Any, prediction: Any, grid: Grid | None, case_id: str, settings: ScoreSettings
) -> MaskPairs:
    finds_tumour = settings.label is None and settings.profile.chooses_label
    convert = partial(_convert_labels, finds_tumour=finds_tumour)
    if isinstance(reference, DataSet):
        _require_mapping(prediction)
        reference = {case.case_id: case for case in reference if case.files.reference is not None}
    if isinstance(reference, Mapping) or isinstance(prediction, Mapping):
        _require_mapping(prediction, reference)
        ids = sorted({*reference, *prediction})
        return {
            identifier: _on_one_grid(
                convert(reference.get(identifier), f"the reference of {identifier}", grid),
                convert(prediction.get(identifier), f"the prediction of {identifier}", grid),
            )
            for identifier in ids
        }
    common = grid_of(grid, reference, prediction)
    if reference is None or prediction is None:
        raise ArgumentError(
            "expected a reference and a prediction, but one of them is None: pass two masks, or "
            "mappings by case id, which may lack a mask"
        )
    expert = convert(reference, "the reference", common)
    model = convert(prediction, "the prediction", common)
    return {case_id: _on_one_grid(expert, model)}


def _on_one_grid(
    reference: LabelMap | None, prediction: LabelMap | None
) -> tuple[LabelMap | None, LabelMap | None]:
    if reference is None or prediction is None:
        return reference, prediction
    return on_common_grid(reference, prediction)


def _require_mapping(*given: object) -> None:
    for one in given:
        if not isinstance(one, Mapping) or not all(isinstance(key, str) for key in one):
            raise ArgumentError(
                f"expected masks by case id on both sides, but got {type(one).__name__}: pass "
                'mappings such as  {"DUKE_001": mask}'
            )


def _convert_labels(
    given: Any, name: str, grid: Grid | None, *, finds_tumour: bool
) -> LabelMap | None:
    """Convert a mask to labels, cropped to its foreground."""
    from napari_mamamia.library.case import Case

    if given is None:
        return None
    if isinstance(given, Case):
        path = given.files.reference
        if path is None:
            return None
        return read_reference(path, given.files) if finds_tumour else read_labels(path)
    if is_path(given):
        path = _require_place(given, name)
        if path.is_dir():
            raise ArgumentError(
                f"expected {name} to be one mask, but got the folder {path}: pass folders on both "
                "sides, or one file from the folder"
            )
        return read_tumour(path) if finds_tumour else read_labels(path)
    place = grid_of(None if mask_in(given) is not None else grid, given)
    if place is None:
        raise ArgumentError(
            f"expected {name} to have a grid, because distances are in mm, but got only an array: "
            "pass `grid=case.grid` or `grid=Grid.of_spacing(array.shape, (z, y, x) in mm)`"
        )
    return LabelMap.of(label_array(given, name, place), place)
