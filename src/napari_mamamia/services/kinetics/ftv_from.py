"""Compute FTV with the VOI, thresholds and phases of a UCSF SEG, and compare both results."""

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core import errors
from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.core.reorientation import Reorientation, reorientation_to
from napari_mamamia.io.data_set.patient_info import read_patient_info
from napari_mamamia.io.data_set.volumes import read_phase_header
from napari_mamamia.io.dicom.facts import remapped_uid, user_secret
from napari_mamamia.io.dicom.files import dicom_files
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.seg import ucsf
from napari_mamamia.io.tables.flat_tables import write_flat_table
from napari_mamamia.kinetics.time_axis import Timing, TimingRule, rule_of
from napari_mamamia.kinetics.timing import PhaseChoice, choose_phases
from napari_mamamia.kinetics.tumour_volume import (
    FtvImages,
    FtvSettings,
    background_signal,
    functional_tumour_volume,
    prepare_ftv,
)
from napari_mamamia.services.batch.output_folder import Existing, claim_folder
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.kinetics.row import phases_text

_SHIFT_PIXELS: Final = 0.75
"""Tolerated shift in pixels; UCSF's frames are shifted by half a pixel within the slice."""

_SLICE_SHARE: Final = 0.1
_PARALLEL: Final = 0.999
_HALF_WAY: Final = 1e-3
_LETTERS: Final = ("RL", "AP", "SI")  # directions of the RAS axes, positive and negative
_REMEDY: Final = "choose the SEG of this exam, and the exam as it was acquired"
TABLE: Final = "ftv_from.csv"
_ROUNDED: Final = 1.0
"""Tolerance for UCSF's pre-contrast threshold, which is rounded to an integer."""
_NEIGHBOURS_SEEN: Final = (9, 4, 0)
"""Smallest numbers of neighbours in UCSF's programs: I-SPY 1, the later extension, and no rule."""


@dataclass(frozen=True, slots=True, eq=False)
class PlacedSeg:
    """A UCSF SEG placed in a case that was reoriented to the SEG's (slice, row, column) axes.

    `boxes` and `omitted` are in voxels of the reoriented case; `mask` is the SEG's mask on its
    grid.
    """

    turn: Reorientation
    boxes: tuple[Box, ...]
    omitted: tuple[Box, ...]
    mask: NDArray[np.bool_]


def place_seg(found: ucsf.UcsfAnalysis, grid: Grid) -> PlacedSeg:
    """Return the regions and the mask of a SEG in the voxels of a case.

    Nothing is resampled.

    Parameters
    ----------
    found
        The content of the SEG.
    grid
        The grid of the case.

    Raises
    ------
    GridMismatchError
        If the SEG and the case differ in pixels, direction or position, or the SEG has rotated
        regions.
    """
    frames = found.frames
    axes = _find_axes(frames)
    turn = reorientation_to(grid, _name_orientation(axes))
    _require_same_pixels(frames, axes, turn.target)
    first = _flip_to_lps(turn.target.to_world_mm((0, 0, 0)))
    step = _flip_to_lps(turn.target.to_world_mm((1, 0, 0))) - first
    slices = [_slice_of(np.array(place), first, step, turn.target) for place in frames.places_mm]
    _require_same_place(frames, axes, first, step, slices)
    mask = np.zeros(turn.target.shape, np.bool_)
    mask[slices] = frames.mask
    boxes = [
        (region.is_inside, _find_region_box(region, frames, axes, turn.target))
        for region in found.regions
    ]
    return PlacedSeg(
        turn,
        tuple(box for is_inside, box in boxes if is_inside),
        tuple(box for is_inside, box in boxes if not is_inside and not box.is_empty),
        mask,
    )


def _find_axes(frames: ucsf.UcsfFrames) -> NDArray[np.float64]:
    """Return the LPS directions of slices, rows and columns."""
    row, column = np.array(frames.along_row), np.array(frames.along_column)
    return np.array([np.cross(row, column), column, row])


def _name_orientation(axes: NDArray[np.float64]) -> str:
    """Return the orientation letters of (x, y, z) for columns, rows, slices."""
    ras = axes * (-1, -1, 1)
    letters = []
    for axis in ras[::-1]:
        main = int(np.abs(axis).argmax())
        letters.append(_LETTERS[main][int(axis[main] < 0)])
    if len(set(np.abs(ras).argmax(axis=1))) != 3:
        raise errors.GridMismatchError(
            "expected the SEG to be aligned with the image axes, but its "
            f"axes are {axes}; {_REMEDY}"
        )
    return "".join(letters)


def _flip_to_lps(world_mm: NDArray[np.float64]) -> NDArray[np.float64]:
    turned: NDArray[np.float64] = world_mm * (-1, -1, 1)
    return turned


def _require_same_pixels(frames: ucsf.UcsfFrames, axes: NDArray[Any], target: Grid) -> None:
    rows, columns = frames.mask.shape[1:]
    spacing = target.spacing_mm[1:]
    steps = [
        _flip_to_lps(target.to_world_mm(index) - target.to_world_mm((0, 0, 0)))
        for index in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    ]
    along = [
        float(axis @ step / np.linalg.norm(step)) for axis, step in zip(axes, steps, strict=True)
    ]
    if target.shape[1:] != (rows, columns) or not np.allclose(spacing, frames.spacing_mm, 1e-3):
        raise errors.GridMismatchError(
            f"expected the SEG to have {target.shape[1]} x {target.shape[2]} pixels of "
            f"{spacing[0]:g} x {spacing[1]:g} mm, but it has {rows} x {columns} of "
            f"{frames.spacing_mm[0]:g} x {frames.spacing_mm[1]:g} mm; {_REMEDY}"
        )
    if min(along) < _PARALLEL:
        raise errors.GridMismatchError(
            "expected the SEG to be aligned with the image axes, but it is rotated (cosines "
            f"{', '.join(f'{cosine:.3f}' for cosine in along)}); {_REMEDY}"
        )


def _slice_of(
    place: NDArray[np.float64], first: NDArray[np.float64], step: NDArray[np.float64], target: Grid
) -> int:
    number = float((place - first) @ step / (step @ step))
    if abs(number - round(number)) > _SLICE_SHARE or not 0 <= round(number) < target.shape[0]:
        raise errors.GridMismatchError(
            f"expected the SEG's slices to be among the {target.shape[0]} image slices, but one "
            f"is at slice {number:.2f}; {_REMEDY}"
        )
    return round(number)


def _require_same_place(
    frames: ucsf.UcsfFrames,
    axes: NDArray[np.float64],
    first: NDArray[np.float64],
    step: NDArray[np.float64],
    slices: list[int],
) -> None:
    off = np.array(frames.places_mm[0]) - (first + slices[0] * step)
    pixels = [float(off @ axis) / mm for axis, mm in zip(axes[1:], frames.spacing_mm, strict=True)]
    if max(map(abs, pixels)) > _SHIFT_PIXELS:
        raise errors.GridMismatchError(
            "expected the SEG's pixels to coincide with the image pixels, but they are "
            f"{pixels[0]:.1f} rows and {pixels[1]:.1f} columns away; {_REMEDY}"
        )
    if len(set(slices)) != len(slices):
        raise errors.GridMismatchError(
            f"expected the SEG to have one frame for each slice, but a slice has two; {_REMEDY}"
        )


def _find_region_box(
    region: ucsf.UcsfRegion, frames: ucsf.UcsfFrames, axes: NDArray[np.float64], target: Grid
) -> Box:
    """Return the box of voxels whose centres are in a region, in the frames' pixel coordinates."""
    halves = np.abs(axes @ np.array(region.half_axes_mm).T)
    lengths = np.linalg.norm(region.half_axes_mm, axis=1)
    if (halves.max(axis=0) < _PARALLEL * lengths).any() or sorted(halves.argmax(axis=0)) != [
        0,
        1,
        2,
    ]:
        raise errors.GridMismatchError(
            "expected the regions to be aligned with the image axes, but one has the half-axes "
            f"{region.half_axes_mm} mm; {_REMEDY}"
        )
    first = _flip_to_lps(target.to_world_mm((0, 0, 0)))
    within = np.array(frames.places_mm[0])
    away = np.array(region.centre_mm)
    centre = np.array([(away - first) @ axes[0], *((away - within) @ axis for axis in axes[1:])])
    spacing = np.array(target.spacing_mm)
    middle, half = centre / spacing, halves.max(axis=1) / spacing
    start = np.ceil(middle - half - _HALF_WAY).astype(int)
    stop = np.floor(middle + half + _HALF_WAY).astype(int) + 1
    if (stop <= 0).any() or (start >= target.shape).any() or (stop <= start).any():
        if region.is_inside:
            raise errors.GridMismatchError(
                f"expected the VOI to be inside the image, but it covers voxels {start.tolist()} "
                f"to {stop.tolist()} (slice, row, column); {_REMEDY}"
            )
        return Box.empty()
    z0, y0, x0 = (int(max(a, 0)) for a in start)
    z1, y1, x1 = (int(min(b, n)) for b, n in zip(stop, target.shape, strict=True))
    return Box((z0, y0, x0), (z1, y1, x1))


@dataclass(frozen=True, slots=True)
class FtvFromRow:
    """A result of UCSF and our own result; volumes are in cc, and undefined results are NaN.

    `different_voxels` is the number of voxels in which our mask and the SEG's mask differ. It is
    NaN if the SEG's mask is not the mask in which UCSF counted PE.
    """

    case_id: str
    seg: str
    measure: str
    ours_voxels: float
    ours_cc: float
    theirs_voxels: float
    theirs_cc: float
    different_voxels: float
    timing: str
    phases: str
    ftv_variant: str
    ftv_thresholds: str
    background_signal: float
    remark: str


@dataclass(frozen=True, slots=True)
class FtvFromSummary:
    """The rows, the failures by file name, and the path of the table."""

    rows: tuple[FtvFromRow, ...]
    failures: tuple[CaseFailure, ...]
    table: Path


@dataclass(frozen=True, slots=True)
class FtvUnderSeg:
    """FTV of a case with a SEG's settings: the rows, and the SEG's regions and thresholds.

    `boxes` (VOI) and `omitted` are in voxels of the case.
    """

    rows: tuple[FtvFromRow, ...]
    boxes: tuple[Box, ...]
    omitted: tuple[Box, ...]
    limits: FtvSettings


def ftv_under_seg(case: Case, path: Path) -> FtvUnderSeg:
    """Return the FTV of a case with the settings of a UCSF SEG.

    Parameters
    ----------
    case
        The case with all phases read.

    Raises
    ------
    FormatError
        If the file is not a SEG of UCSF's program, or is damaged.
    GridMismatchError, CaseError
        If the SEG belongs to a different exam, or to phases that the case lacks.
    """
    report_progress(0, 2, f"Reading {path.name}")
    analysis = ucsf.read_ucsf_seg(path)
    report_progress(1, 2, f"FTV under {path.name}")
    return _count_under(case, analysis, path.name)


def ftv_from_segs(
    opened: OpenDataSet,
    source: Path,
    out: Path,
    *,
    case_ids: Sequence[str] = (),
    existing: Existing = Existing.REFUSE,
) -> FtvFromSummary:
    """Compute the FTV with the settings of each UCSF SEG and write ``out/ftv_from.csv``.

    Parameters
    ----------
    source
        The path of a SEG, or of a folder with SEGs.
    case_ids
        The ids of the cases to use; if empty, all cases are used.

    Raises
    ------
    CaseError
        If `case_ids` names a case that does not exist.
    FormatError
        If `source` is missing.
    SaveConflictError
        If `out` has other results, or contains the input.
    """
    if not source.exists():
        raise errors.FormatError(
            f"expected {source} to be a SEG or a folder of SEGs, but found none; "
            "choose the folder that contains the SEGs"
        )
    data_set = opened.data_set
    cases = [data_set.case(case_id) for case_id in case_ids] or list(data_set.cases)
    parameters = (("data_set", data_set.name), ("segs", source.name), ("cases", " ".join(case_ids)))
    claim_folder(out, "ftv-from", parameters, existing, data_set.folders | {source})
    paths, failures = _find_segs(source)
    rows: list[FtvFromRow] = []
    reader = _CaseReader(opened, cases)
    for index, path in enumerate(paths):
        name = path.name if path == source else str(path.relative_to(source))
        report_progress(index, len(paths) + 1, f"FTV under {name}")
        try:
            analysis = ucsf.read_ucsf_seg(path)
            case = reader.case_of(analysis)
            rows.extend(_count_under(case, analysis, name).rows)
        except errors.MamamiaError as error:
            failures.append(CaseFailure(name, str(error), remedies=errors.list_remedies(error)))
    columns = [column.name for column in fields(FtvFromRow)]
    overwrite = existing is not Existing.REFUSE
    cells = [astuple(row) for row in rows]
    write_flat_table(columns, cells, len(cells), out / TABLE, overwrite=overwrite)
    return FtvFromSummary(tuple(rows), tuple(failures), out / TABLE)


def _find_segs(source: Path) -> tuple[list[Path], list[CaseFailure]]:
    """Return the SEGs in a folder, and a failure that reports its other files.

    If the source is a file, only this file is returned.
    """
    if source.is_file():
        report_progress(0, 1, "One SEG")
        return [source], []
    files, n_foreign = dicom_files(source)
    segs, failures = [], []
    n_others = n_foreign
    for index, path in enumerate(files):
        report_progress(index, len(files), "Searching for SEGs")
        try:
            if ucsf.is_segmentation(path):
                segs.append(path)
            else:
                n_others += 1
        except errors.MamamiaError as error:
            name = str(path.relative_to(source))
            failures.append(CaseFailure(name, str(error), remedies=errors.list_remedies(error)))
    if n_others:
        reason = (
            f"{n_others} files are not DICOM SEG and were skipped; choose a folder with only "
            "UCSF's SEGs"
        )
        failures.append(CaseFailure(source.name, reason))
    return segs, failures


class _CaseReader:
    """A reader that finds and opens the case of a SEG.

    The last case is cached, because SEGs of the same exam are usually consecutive.
    """

    def __init__(self, opened: OpenDataSet, cases: Sequence[CaseFiles]) -> None:
        self._opened = opened
        self._cases = cases
        self._last: Case | None = None

    def case_of(self, found: ucsf.UcsfAnalysis) -> Case:
        files = self._files_of(found)
        if self._last is None or self._last.case_id != files.case_id:
            # The previous case is released first, because two cases may not fit in memory.
            self._last = None
            self._last = load_case(files, self._opened.record(files.case_id))
        return self._last

    def _files_of(self, found: ucsf.UcsfAnalysis) -> CaseFiles:
        """Return the case that matches the SEG's patient or study name, or else its geometry."""
        named = [files for files in self._cases if _is_named(files, found)]
        if len(named) == 1:
            return named[0]
        fitting, reasons = [], []
        for files in named or self._cases:
            try:
                place_seg(found, read_phase_header(files.phases[0]).grid)
            except (errors.GridMismatchError, errors.FormatError) as error:
                reasons.append(f"{files.case_id}: {error}")
            else:
                fitting.append(files)
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            listed = ", ".join(files.case_id for files in fitting)
            raise errors.CaseError(
                "expected one case to match the SEG of patient "
                f"{found.patient_id or '(unnamed)'}, but {len(fitting)} have the same pixels and "
                f"position ({listed}); choose one",
                remedies=(errors.Remedy("case", ("ID",)),),
            )
        raise errors.CaseError(
            (
                "expected a case to match the pixels and position of the SEG of patient "
                f"{found.patient_id or '(unnamed)'}, but none of {len(reasons)} cases matches "
                f"({reasons[0]})"
            )
            if reasons
            else "expected a case for the SEG, but the data set is empty; check the folder"
        )


def _is_named(files: CaseFiles, found: ucsf.UcsfAnalysis) -> bool:
    if found.patient_id and _strip_separators(files.case_id) == _strip_separators(found.patient_id):
        return True
    if files.info is None or not found.study_uid:
        return False
    try:
        study_uid = read_patient_info(files.info).study_uid
    except errors.FormatError:
        return False
    return bool(study_uid) and study_uid == remapped_uid(found.study_uid, user_secret())


def _strip_separators(name: str) -> str:
    """Return a name without separators, because an import replaces _ by -."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _count_under(case: Case, found: ucsf.UcsfAnalysis, seg: str) -> FtvUnderSeg:
    placed = place_seg(found, case.grid)
    choice = _choose_phases(case, found)
    images = prepare_ftv(placed.turn.array(case.signal), choice, placed.boxes, placed.omitted)
    limits = FtvSettings(found.background, found.enhancement)
    background = background_signal(images, limits)
    remark = _compare_thresholds(background, found.least_signal)
    limits = replace(limits, least_signal=found.least_signal)
    if found.neighbours is None:
        limits = _fit_neighbours(images, found, limits)
        fit = (
            f"the SEG does not state minimum_neighbor_count; {limits.neighbours} of 26 neighbours "
            f"give the same {found.measures[0].voxels} voxels as the SEG"
        )
        remark = f"{remark}; {fit}" if remark else fit
    else:
        limits = replace(limits, neighbours=found.neighbours)
    volume = functional_tumour_volume(images, case.grid.voxel_volume_mm3, limits)
    cc = case.grid.voxel_volume_mm3 / 1000.0
    rows = []
    for measure in found.measures:
        inside = volume.enhancing
        if measure.kind == "ser":
            with np.errstate(invalid="ignore"):
                inside = inside & (images.ser > np.float32(measure.above))
        count = int(np.count_nonzero(inside))
        rows.append(
            FtvFromRow(
                case_id=case.case_id,
                seg=seg,
                measure=measure.kind,
                ours_voxels=float(count),
                ours_cc=count * cc,
                theirs_voxels=float(measure.voxels),
                theirs_cc=measure.volume_cc,
                different_voxels=_count_different(inside, images, placed, measure.voxels),
                timing=str(choice.timing),
                phases=phases_text(choice, case.n_before),
                ftv_variant=str(limits.variant),
                ftv_thresholds=limits.name,
                background_signal=volume.background_signal,
                remark=remark,
            )
        )
    back = reorientation_to(placed.turn.target, case.grid.orientation)
    boxes, omitted = (tuple(map(back.box, some)) for some in (placed.boxes, placed.omitted))
    return FtvUnderSeg(tuple(rows), boxes, omitted, limits)


def _fit_neighbours(
    images: FtvImages, found: ucsf.UcsfAnalysis, limits: FtvSettings
) -> FtvSettings:
    """Return the thresholds with the number of neighbours that reproduces UCSF's voxel count."""
    theirs = found.measures[0].voxels
    counts: list[str] = []
    for neighbours in _NEIGHBOURS_SEEN:
        tried = replace(limits, neighbours=neighbours)
        volume = functional_tumour_volume(images, 1.0, tried)
        count = int(np.count_nonzero(volume.enhancing))
        if count == theirs:
            return tried
        counts.append(f"{count} voxels with {neighbours}")
    raise errors.CaseError(
        "expected UCSF's block to have minimum_neighbor_count, or one of UCSF's numbers of "
        f"neighbours to give {theirs} voxels, but got {', '.join(counts)}; {ucsf.OTHER_WAY}"
    )


def _choose_phases(case: Case, found: ucsf.UcsfAnalysis) -> PhaseChoice:
    """Return the SEG's phases, under UCSF's rule if that rule selects the same phases."""
    pre, early, late = found.phases
    if pre != 0 or late >= len(case.phases):
        raise errors.CaseError(
            f"expected the case to have the phases {pre}, {early} and {late} of the SEG, but it "
            f"has {len(case.phases)} phases, of which phase 0 is before contrast; use the whole "
            "exam"
        )
    ruled = choose_phases(case.times_s, rule_of(case, TimingRule(resolution_s=found.resolution_s)))
    if ruled.timing is Timing.UCSF_FTV and (ruled.early, ruled.late) == (early, late):
        return ruled
    rule = TimingRule(Timing.MANUAL, phases=(early, late), resolution_s=found.resolution_s)
    return choose_phases(case.times_s, rule)


def _compare_thresholds(own: float, theirs: float | None) -> str:
    """Raise an error if a SEG has the pre-contrast threshold of a different exam.

    Otherwise, return a note on a small difference, or "".
    """
    if theirs is None:
        return (
            "the SEG does not state its pre-contrast threshold, so it cannot be verified that the "
            "SEG is from this exam"
        )
    if abs(own - theirs) > _ROUNDED:
        raise errors.CaseError(
            f"expected the pre-contrast threshold in the VOI to be {theirs:g}, as in the SEG, but "
            f"it is {own:g}; the SEG belongs to a different exam, or the images were changed; use "
            "the exam as acquired"
        )
    return (
        ""
        if own == theirs
        else (f"the pre-contrast threshold is {theirs:g}, as in the SEG, instead of {own:g}")
    )


def _count_different(
    inside: NDArray[np.bool_], images: FtvImages, placed: PlacedSeg, theirs: int
) -> float:
    """Return the number of voxels in which our mask and the SEG's differ, or NaN if undefined."""
    if int(np.count_nonzero(placed.mask)) != theirs:
        return math.nan
    mine = np.zeros(placed.mask.shape, np.bool_)
    mine[images.box.slices] = inside
    return float(np.count_nonzero(mine != placed.mask))
