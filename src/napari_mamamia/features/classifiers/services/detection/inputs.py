"""Read the inputs of a detection run, which are tables of boxes or folders of masks."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap, on_common_grid
from napari_mamamia.core.choices import LesionMatching, LesionOverlap
from napari_mamamia.core.errors import FormatError, MamamiaError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import Setting
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.features.classifiers.io import detection_files
from napari_mamamia.features.classifiers.scoring.detection.boxes import (
    Lesions,
    Overlaps,
    PredictedBoxes,
    box_overlaps,
)
from napari_mamamia.features.classifiers.scoring.detection.parts import (
    CaseParts,
    PartRules,
    parts_of_case,
)
from napari_mamamia.features.classifiers.scoring.detection.results import DetectionInput
from napari_mamamia.io.data_set.mask_files import list_masks, no_mask_error
from napari_mamamia.io.data_set.volumes import read_labels
from napari_mamamia.io.files.file_names import case_key


@dataclass(frozen=True, slots=True)
class DetectionTables:
    """Paths of three tables: the cases, the reference lesions, and the predicted boxes."""

    cases: Path
    lesions: Path
    predictions: Path

    @property
    def parameters(self) -> tuple[tuple[str, Setting], ...]:
        """Return the name and value of each input, for ``run.json``."""
        names = ("cases", "lesions", "predictions")
        files = (self.cases, self.lesions, self.predictions)
        return tuple((name, path.name) for name, path in zip(names, files, strict=True))


@dataclass(frozen=True, slots=True)
class DetectionMasks:
    """Folders of masks and, optionally, of probability maps, and an optional list of cases.

    If the matching rule is `any-overlap`, overlap is determined from shared voxels: `rules.overlap`
    is set to `mask-iou`.
    """

    reference: Path
    prediction: Path
    probability: Path | None = None
    cases: Path | None = None
    rules: PartRules = field(default_factory=PartRules)

    @property
    def parameters(self) -> tuple[tuple[str, Setting], ...]:
        """Return the name and value of each input, for ``run.json``."""
        return (
            ("reference", self.reference.name),
            ("prediction", self.prediction.name),
            ("probability", self.probability.name if self.probability else None),
            ("cases", self.cases.name if self.cases else None),
            ("overlap", self.rules.overlap.value),
            ("box", self.rules.box.value),
            ("label", self.rules.label),
        )

    @property
    def folders(self) -> tuple[Path, ...]:
        """Return the input folders."""
        folders = (self.reference, self.prediction, self.probability)
        return tuple(folder for folder in folders if folder is not None)


@dataclass(frozen=True, slots=True, eq=False)
class ReadDetection:
    """All readable cases, failures, and warnings."""

    data: DetectionInput
    failures: tuple[CaseFailure, ...] = ()
    warnings: tuple[str, ...] = ()


def read_tables(tables: DetectionTables) -> ReadDetection:
    """Read the tables of cases, lesions and predicted boxes.

    Raises
    ------
    FormatError
        If a table cannot be read, a case or lesion is invalid, or only one table has risks.
    """
    cases = detection_files.read_detection_cases(tables.cases)
    truth = detection_files.read_lesions(tables.lesions, cases)
    boxes = detection_files.read_predicted_boxes(tables.predictions, cases)
    if truth.has_risks != boxes.has_risks and truth.cases.size and boxes.cases.size:
        has, lacks = tables.lesions, tables.predictions
        if boxes.has_risks:
            has, lacks = lacks, has
        raise FormatError(
            f"expected the column risk in both tables or in neither, but found it in {has} and "
            f"not in {lacks}: add risks to both tables, or remove the column"
        )
    warnings = [*cases.notes, *truth.notes, *boxes.notes]
    if boxes.n_repeated:
        warnings.append(
            f"{boxes.n_repeated} predicted boxes repeat an earlier row, and each counts as a box"
        )
    lesions = Lesions(truth.cases, truth.edges_mm, truth.risks)
    predictions = PredictedBoxes(boxes.cases, boxes.edges_mm, boxes.scores, boxes.risks)
    data = DetectionInput(
        cases.ids,
        lesions,
        predictions,
        box_overlaps(lesions, predictions),
        cases.centres,
        boxes.has_scores or not boxes.cases.size,
    )
    return ReadDetection(data, boxes.failures, tuple(warnings))


def read_masks(masks: DetectionMasks, matching: LesionMatching) -> ReadDetection:
    """Read all masks case by case, and find their components.

    The cases are those in the list or, if there is no list, those with a reference. If a reference
    cannot be read, its case is left out. A prediction that is missing, unreadable or on a different
    grid must not score better than a bad prediction. Its lesions therefore count as missed. At
    every threshold it has at least one false positive, and as many as the largest number of boxes
    in any other case.

    Parameters
    ----------
    masks
        The folders of masks.
    matching
        The matching rule, which determines the kind of overlap.

    Raises
    ------
    FormatError
        If a folder or the list cannot be read, or a case in the list has no reference.
    """
    rules = masks.rules
    if matching is LesionMatching.ANY_OVERLAP and rules.overlap is LesionOverlap.BOX_IOU:
        rules = replace(rules, overlap=LesionOverlap.MASK_IOU)
    ids = detection_files.read_detection_cases(masks.cases).ids if masks.cases is not None else ()
    references = _files_of(masks.reference, ids)
    listed = _list_cases(masks, references)
    predictions = _files_of(masks.prediction, listed.ids)
    maps = _files_of(masks.probability, listed.ids) if masks.probability else None
    listed_keys = {case_key(case_id) for case_id in listed.ids}
    failures = [
        CaseFailure(path[0], "there is no reference for this prediction, so it is not scored")
        for key, path in predictions.items()
        if key not in listed_keys
    ]
    read: list[_ReadCase] = []
    for number, case_id in enumerate(listed.ids):
        report_progress(number, len(listed.ids), f"Searching for lesions in {case_id}")
        centre, key = listed.centres[number] if listed.centres else "", case_key(case_id)
        try:
            reference = _read_mask(references, key)
        except MamamiaError as error:
            failures.append(CaseFailure(case_id, f"left out, without a reference: {error}"))
            continue
        try:
            parts = _parts_of_files(key, reference, predictions, maps, rules)
        except MamamiaError as error:
            failures.append(CaseFailure(case_id, f"counted as the worst prediction: {error}"))
            read.append(_ReadCase(case_id, centre, _without_boxes(reference, rules), False))
        else:
            read.append(_ReadCase(case_id, centre, parts, True))
    if not read:
        raise FormatError(
            f"expected {masks.reference} to contain at least one readable reference, but found "
            f"none ({failures[-1].reason}): copy the files again"
        )
    data = _join_cases(read, rules.overlap, bool(listed.centres), maps is not None)
    turned = [case.case_id for case in read if case.parts.is_reordered]
    warnings = listed.notes
    if turned:
        warnings = (
            *listed.notes,
            (
                "predictions on the reference's grid with their axes stored in a different "
                f"order: {len(turned)} (first {turned[0]}); they were reordered without resampling"
            ),
        )
    return ReadDetection(data, tuple(failures), warnings)


@dataclass(frozen=True, slots=True, eq=False)
class _ReadCase:
    case_id: str
    centre: str
    parts: CaseParts
    is_usable: bool


_Files = dict[str, tuple[str, Path | str]]
"""A case id as spelled in the file name, and the file or the reason why there is none.

The keys of the dict are those of `case_key`.
"""


def _files_of(folder: Path, case_ids: Collection[str]) -> _Files:
    if not folder.is_dir():
        raise FormatError(f"expected a mask folder at {folder}, but found none: correct the path")
    listing = list_masks(folder, case_ids)
    found_at: dict[str, Path | str] = {**listing.others, **listing.problems, **listing.masks}
    return {case_key(case_id): (case_id, where) for case_id, where in found_at.items()}


def _read_mask(files: _Files, key: str) -> LabelMap:
    _, where = files[key]
    if isinstance(where, str):
        raise FormatError(where)
    return read_labels(where)


def _list_cases(masks: DetectionMasks, references: _Files) -> detection_files.DetectionCases:
    if masks.cases is None:
        if not references:
            raise no_mask_error(masks.reference)
        return detection_files.DetectionCases(tuple(case_id for case_id, _ in references.values()))
    listed = detection_files.read_detection_cases(masks.cases)
    missing = [case_id for case_id in listed.ids if case_key(case_id) not in references]
    if missing:
        raise FormatError(
            f"expected {masks.reference} to contain a reference for every case of {masks.cases}, "
            f"but {len(missing)} have none (first {', '.join(missing[:5])}): add the missing "
            "masks, with an empty mask for a case without a lesion"
        )
    return listed


def _parts_of_files(
    key: str, reference: LabelMap, predictions: _Files, maps: _Files | None, rules: PartRules
) -> CaseParts:
    if key not in predictions:
        raise FormatError("there is no prediction: write an empty mask if there is no lesion")
    reference, prediction = on_common_grid(reference, _read_mask(predictions, key))
    if maps is None:
        return parts_of_case(reference, prediction, None, rules)
    if key not in maps:
        raise FormatError("there is no probability map: write a map for every case")
    return parts_of_case(reference, prediction, _read_mask(maps, key), rules)


def _without_boxes(reference: LabelMap, rules: PartRules) -> CaseParts:
    nothing = LabelMap(reference.grid, Box.empty(), np.zeros((0, 0, 0), dtype=np.uint8))
    return parts_of_case(reference, nothing, None, rules)


def _join_cases(
    read: Sequence[_ReadCase], kind: LesionOverlap, has_centres: bool, has_scores: bool
) -> DetectionInput:
    n_worst = max(1, *(len(case.parts.scores) for case in read), 1)
    worst = np.inf if has_scores else np.nan
    lesion_cases, box_cases, scores, edges, boxes, overlaps = [], [], [], [], [], []
    n_lesions = n_boxes = 0
    for index, case in enumerate(read):
        parts = case.parts
        own_scores, own_edges = parts.scores, parts.box_edges_mm
        if not case.is_usable:
            own_scores, own_edges = np.full(n_worst, worst), np.full((n_worst, 6), np.nan)
        lesion_cases.append(np.full(len(parts.lesion_edges_mm), index))
        box_cases.append(np.full(len(own_scores), index))
        scores.append(own_scores)
        edges.append(parts.lesion_edges_mm)
        boxes.append(own_edges)
        overlaps.append((parts.overlaps.predictions + n_boxes, parts.overlaps.lesions + n_lesions,
                         parts.overlaps.values))  # fmt: skip
        n_lesions += len(parts.lesion_edges_mm)
        n_boxes += len(own_scores)
    predictions, lesions, values = (
        np.concatenate(columns) for columns in zip(*overlaps, strict=True)
    )
    return DetectionInput(
        tuple(case.case_id for case in read),
        Lesions(np.concatenate(lesion_cases), np.concatenate(edges), np.full(n_lesions, np.nan)),
        PredictedBoxes(
            np.concatenate(box_cases),
            np.concatenate(boxes),
            np.concatenate(scores),
            np.full(n_boxes, np.nan),
        ),
        Overlaps(predictions, lesions, values, kind),
        tuple(case.centre for case in read) if has_centres else (),
        has_scores,
    )
