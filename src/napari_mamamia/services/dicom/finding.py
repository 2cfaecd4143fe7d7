"""Find the studies in a DICOM folder or zip, each with its exam or the reason for its rejection."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Final

from napari_mamamia.core.choices import Clock, Dates, Sides
from napari_mamamia.core.errors import (
    CaseError,
    FormatError,
    MamamiaError,
    Remedy,
    list_remedies,
)
from napari_mamamia.core.names import readable_name
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import CaseWarning
from napari_mamamia.io.clinical.columns import BY_NAME, ColumnChoice
from napari_mamamia.io.dicom.elements import require_pydicom
from napari_mamamia.io.dicom.facts import names_a_person
from napari_mamamia.io.dicom.files import Study, read_studies, require_readable
from napari_mamamia.io.dicom.pixels import require_decoders
from napari_mamamia.io.dicom.probe import is_dicom_file
from napari_mamamia.io.dicom.roles import Role
from napari_mamamia.io.dicom.slices import Slice
from napari_mamamia.io.dicom.zip import unpack
from napari_mamamia.io.exam.enhancement import enhancement_warnings
from napari_mamamia.io.exam.exam import Exam, find_exam, idle_selectors, list_series
from napari_mamamia.io.exam.looks import Contrast, contrast_between
from napari_mamamia.io.exam.selectors import Group, Selection
from napari_mamamia.io.exam.sides import SIDES, find_joined, is_split, shows_both
from napari_mamamia.io.exam.table import SeriesRow, unreadable_rows
from napari_mamamia.io.files.foreign import explained
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.io.files.zip_files import is_zip
from napari_mamamia.kinetics.arrival import Arrival, arrival_in_blocks
from napari_mamamia.services.batch.output_folder import Existing

_ID: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_DAY_S: Final = 86400
_PHASE_END: Final = re.compile(r".*_0\d{3}")
"""Pattern of ids that end like the file name of a phase; ISPY1_1002 does not match."""


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """Settings of an import.

    If `clock` is None, the clock is chosen automatically. `phases` are the numbers of the phases to
    keep, in order of time; if empty, all are kept. `use` and `leave_out` are groups of selectors of
    the parts to use and to leave out; if empty, all parts are used. `allow_thin` accepts exams with
    one or two slices. `sides` defines how two breasts in two sagittal stacks are imported.
    `columns` are the columns of the data set's clinical table that the user specified.
    """

    clock: Clock | None = None
    phases: tuple[int, ...] = ()
    use: tuple[Group, ...] = ()
    leave_out: tuple[Group, ...] = ()
    dates: Dates = Dates.DROP
    existing: Existing = Existing.REFUSE
    allow_thin: bool = False
    sides: Sides = Sides.ASK
    columns: ColumnChoice = BY_NAME

    @property
    def selection(self) -> Selection:
        """The user's selection of parts of a study."""
        return Selection(self.use, self.leave_out)


@dataclass(frozen=True, slots=True)
class FoundStudy:
    """A study in the source, with its exam or the `problem` that prevents the import.

    `remedies` are settings that may solve the problem. `archives` are the paths, relative to the
    source, of zip files next to the study that are not opened. `place` is the study's folder below
    the source, even in a zip archive; `folder` is then the unpacked folder. `rows` are the study's
    series with their use, even if the study cannot be imported. `study` has the headers, with which
    the study can be checked again. `n_before` is the number of phases before contrast, or None if
    the voxels do not show it.
    """

    case_id: str
    folder: Path
    place: Path
    n_images: int
    n_foreign: int
    exam: Exam | None
    problem: str = ""
    rows: tuple[SeriesRow, ...] = ()
    study: Study | None = field(default=None, repr=False, compare=False)
    archives: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    n_before: int | None = None

    @property
    def day(self) -> str:
        """Date of the study's first image, such as 2020-03-10, or "" if unknown."""
        taken = [p.clocks.get(Clock.ACQUISITION_TIME, 0.0) for p in self._first_slices]
        day = int(min(taken, default=0.0) // _DAY_S)
        return date.fromordinal(day).isoformat() if day > 0 else ""

    @property
    def origin(self) -> str:
        """The study's date and first file, which distinguish studies in the same folder."""
        first = (
            f"first file {readable_name(self._first_slices[0].file.name)}"
            if self._first_slices
            else ""
        )
        return ", ".join(filter(None, (f"of {self.day}" * bool(self.day), first)))

    @property
    def _first_slices(self) -> list[Slice]:
        images = () if self.study is None else self.study.images
        return [image[0] for image in images if isinstance(image, tuple) and image]


def look_into(
    source: Path, case_id: str = "", settings: ImportSettings | None = None
) -> tuple[FoundStudy, ...]:
    """Return the studies in a DICOM folder or zip archive without writing any file.

    Raises
    ------
    FormatError
        If the source cannot be read, contains no DICOM file, or is an unsafe archive.
    CaseError
        If `case_id` is not a valid id.
    """
    with unpacked(source) as folder:
        return find_studies(source, folder, case_id, settings or ImportSettings())


def require_folder(source: Path) -> None:
    """Raise `FormatError` if a source is neither a zip archive nor a folder."""
    if source.is_dir():
        return
    expected = f"expected a folder or a zip archive of DICOM files, but got {source}"
    if not source.exists():
        raise FormatError(f"{expected}, which does not exist: check the path")
    if source.suffix.lower() == ".zip":
        raise FormatError(
            f"{expected}, a damaged or incomplete zip archive (it has no central directory): copy "
            "or export it again"
        )
    if is_dicom_file(source):
        raise FormatError(f"{expected}, a single DICOM file: choose its folder")
    raise FormatError(f"{expected}, a different kind of file: choose a folder or a zip archive")


@contextmanager
def unpacked(source: Path) -> Iterator[Path]:
    """Yield the folder with the files: the source, or a temporary folder with a zip's contents."""
    if not is_zip(source):
        require_folder(source)
        yield source
        return
    with own_folder() as folder, naming(source, folder):
        yield folder


@contextmanager
def naming(source: Path, folder: Path) -> Iterator[None]:
    """Replace the temporary folder by the name of the archive in errors raised in this context."""
    try:
        yield
    except (FormatError, CaseError) as error:
        raise type(error)(str(error).replace(str(folder), str(source))) from error


def find_studies(
    source: Path, folder: Path, case_id: str, settings: ImportSettings
) -> tuple[FoundStudy, ...]:
    """Return the studies in `source`, whose files are below `folder`.

    Errors are the same as in `look_into`.
    """
    require_pydicom()
    if folder != source:
        unpack(source, folder)
    usable = usable_studies(folder)
    if settings.selection.leaves_out_role(Role.UNREADABLE):
        usable = [study for study in usable if study.images] or usable
    ids = study_ids(usable, folder, source, case_id)
    studies = []
    for index, (name, study) in enumerate(zip(ids, usable, strict=True)):
        report_progress(index, len(usable), f"Sorting {name}")
        place = place_of(study, folder, source)
        sides = SIDES if _is_of_two(study, settings) else ("",)
        studies += [
            _find_study(f"{name}_{side}" if side else name, study, place, settings,
                   is_named=bool(case_id), side=side)
            for side in sides
        ]  # fmt: skip
    return _require_that_selectors_fit(_with_kin(studies), settings)


def _with_kin(found: Sequence[FoundStudy]) -> list[FoundStudy]:
    """Return the studies with a warning if several of them seem to belong to the same exam."""
    return [
        study if study.exam is None else replace(study, exam=replace(study.exam, warnings=(
            *study.exam.warnings,
            *(CaseWarning(_kin_warning(other)) for other in found if _are_kin(study, other)),
        )))
        for study in found
    ]  # fmt: skip


def _are_kin(a: FoundStudy, b: FoundStudy) -> bool:
    """Return whether two studies have the same patient, day and slice positions."""
    if a.study is b.study or a.exam is None or b.exam is None or not a.day or a.day != b.day:
        return False
    first, other = (study.exam.stacks[0][0] for study in (a, b) if study.exam is not None)
    is_one_patient = any(first.header.patient) and first.header.patient == other.header.patient
    return is_one_patient and a.exam.grid.is_same_place(b.exam.grid)


def _kin_warning(other: FoundStudy) -> str:
    return (
        f"{other.case_id} has the same patient, day and position, but a different "
        "StudyInstanceUID: if both are one exam that was split, neither case is complete, so "
        "export the exam again as one study; if they are two exams, no action is needed"
    )


def _require_that_selectors_fit(
    found: Sequence[FoundStudy], settings: ImportSettings
) -> tuple[FoundStudy, ...]:
    """Return the studies, or reject all of them if a selector matches nothing in any study."""
    idle_by_study = [
        set(idle_selectors(study.study.images, settings.selection, allow_thin=settings.allow_thin))
        for study in found
        if study.study is not None
    ]
    idle = (
        set.intersection(*idle_by_study) if idle_by_study and settings.selection.groups else set()
    )
    if not idle:
        return tuple(found)
    problem = (
        f"expected every selector to match an image, but {' and '.join(sorted(idle))} "
        f"{'matches' if len(idle) == 1 else 'match'} nothing in "
        f"{'the study' if len(found) == 1 else 'the studies'}: check the series of the source, "
        "and correct or remove the selector"
    )
    remedies = (Remedy("dry_run"),)
    return tuple(replace(study, exam=None, problem=problem, remedies=remedies) for study in found)


def _is_of_two(study: Study, settings: ImportSettings) -> bool:
    """Return whether a study becomes two cases, one for each breast."""
    if settings.sides is not Sides.TWO:
        return False
    try:
        with explained(study.folder, "the parts of a study", "export the study again"):
            return is_split(
                study.images, clock=settings.clock, selection=settings.selection,
                allow_thin=settings.allow_thin,
            )  # fmt: skip
    except FormatError:
        return False


def usable_studies(folder: Path) -> list[Study]:
    """Return the studies below a folder that have images, or all studies if none has images."""
    studies = read_studies(folder)
    return [s for s in studies if s.damaged or any(True for _ in s.headers)] or list(studies)


def place_of(study: Study, folder: Path, source: Path) -> Path:
    """Return the folder of a study below `source`, which may be unpacked to `folder`."""
    below = study.folder.is_relative_to(folder)
    return source / study.folder.relative_to(folder) if below else study.folder


def judged(
    name: str, study: Study, place: Path, settings: ImportSettings, side: str = ""
) -> FoundStudy:
    """Return a study with its exam or problem under `settings`, using headers already read.

    Parameters
    ----------
    name
        The id of the case.
    study
        The study with its headers.
    place
        The folder of the study as shown to the user.
    settings
        The settings of the import.
    side
        "left" or "right" for one of two breasts, or "" for the whole study.
    """

    def told(text: str) -> str:
        return text.replace(str(study.folder), str(place))

    exam, problem = None, ""
    remedies: tuple[Remedy, ...] = ()
    try:
        with explained(study.folder, "one DCE exam", "export the study again"):
            exam = _exam_of(study, settings, side)
    except MamamiaError as error:
        problem, remedies = told(str(error)), list_remedies(error)
    rows = _list_refused_series(study, settings) if exam is None else exam.rows
    rows = (*rows, *unreadable_rows([told(file.reason) for file in study.damaged]))
    exam = None if exam is None else replace(exam, rows=rows)
    arrival = Arrival() if exam is None else arrival_in_blocks(exam.blocks)
    n_images = sum(len(i) if isinstance(i, tuple) else 1 for i in study.images)
    return FoundStudy(
        name, study.folder, place, n_images, study.n_foreign, exam, problem, rows, study=study,
        archives=tuple(told(str(path)) for path in study.archives), remedies=remedies,
        n_before=arrival.n_before if arrival.is_clear else None,
    )  # fmt: skip


def _exam_of(study: Study, settings: ImportSettings, side: str) -> Exam:
    leaves_out = settings.selection.leaves_out_role(Role.UNREADABLE)
    if not leaves_out:
        require_readable(study)
    find = find_joined if settings.sides is Sides.JOIN else find_exam
    exam = find(
        study.images,
        str(study.folder),
        clock=settings.clock,
        selection=replace(settings.selection, side=side),
        allow_thin=settings.allow_thin,
    )
    notes = []
    if study.damaged:
        files = "1 file" if len(study.damaged) == 1 else f"{len(study.damaged)} files"
        notes.append(f"{files} that cannot be read were left out, as requested")
    if settings.sides is not Sides.ASK and not side and not shows_both(exam):
        notes.append(
            "the phases are not two sagittal stacks with one breast each, so the study is one "
            f"case, although a different treatment of two breasts was requested ({settings.sides})"
        )
    phases = chosen_phases(exam, settings.phases)
    notes += _without_pre(exam, phases[0])
    notes += enhancement_warnings([exam.blocks[index] for index in phases])
    exam = replace(exam, warnings=(*exam.warnings, *map(CaseWarning, notes)))
    require_decoders(plane for stack in exam.stacks for plane in stack)
    return exam


def _without_pre(exam: Exam, first: int) -> list[str]:
    if all(
        contrast_between(exam.blocks[0], exam.blocks[k]) is Contrast.NONE
        for k in range(1, first + 1)
    ):
        return []
    return [
        (
            f"the kept phases begin with phase {first}, which was acquired after contrast arrival, "
            "so it is not pre-contrast, and all enhancement is measured against an enhanced phase"
        )
    ]


def _list_refused_series(study: Study, settings: ImportSettings) -> tuple[SeriesRow, ...]:
    """Return the series of a rejected study, or () if the headers do not identify them."""
    try:
        with explained(study.folder, "a table of series", "export the study again"):
            return list_series(study.images, settings.selection, allow_thin=settings.allow_thin)
    except FormatError:
        return ()


def _find_study(
    name: str, study: Study, place: Path, settings: ImportSettings, *, is_named: bool, side: str
) -> FoundStudy:
    verdict = judged(name, study, place, settings, side)
    if verdict.problem:
        return verdict
    try:
        _require_impersonal(name, study, place, is_named)
    except MamamiaError as error:
        return replace(verdict, exam=None, problem=str(error), remedies=list_remedies(error))
    return verdict


def require_id(case_id: str) -> None:
    """Raise `CaseError` if a string is not a valid case id."""
    if not _ID.fullmatch(case_id) or _PHASE_END.fullmatch(case_id):
        raise CaseError(
            "expected a case id with only letters, digits, dots, dashes and underscores that "
            f"does not end like a phase number (_0000), but got {case_id!r}: choose a different id"
        )


def study_ids(studies: Sequence[Study], folder: Path, source: Path, case_id: str) -> list[str]:
    """Return an id for each study: the user's id, or the name of the study's folder."""
    if case_id:
        require_id(case_id)
    if len(studies) == 1:
        return [case_id or _as_id(source.stem if folder != source else source.name)]
    if case_id:
        return [f"{case_id}_{number:03d}" for number in range(1, len(studies) + 1)]
    names = [_as_id("_".join(study.folder.relative_to(folder).parts)) for study in studies]
    return [
        name if names.count(name) == 1 and name != _as_id("") else f"{name}-{index + 1}"
        for index, name in enumerate(names)
    ]


def _as_id(text: str) -> str:
    cleaned = re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip("._-") or "case"
    return f"{cleaned}-case" if _PHASE_END.fullmatch(cleaned) else cleaned


def tells_the_patient(study: Study, case_id: str) -> bool:
    """Return whether an id contains a word from the patient elements in any file of the study."""
    return names_a_person(dict.fromkeys(header.file for header in study.headers), case_id)


def _require_impersonal(name: str, study: Study, place: Path, is_named: bool) -> None:
    """Reject a folder name that identifies the patient; accept any id that the user chose."""
    if is_named or not tells_the_patient(study, name):
        return
    raise CaseError(
        "the folder name cannot be used as the case id, because it contains a word from the "
        f"patient's DICOM elements ({place}) and may identify the patient: enter a case id",
        remedies=[Remedy("case", ("ID",))],
    )


def chosen_phases(exam: Exam, phases: Sequence[int]) -> list[int]:
    """Return the phases to keep, by default all; raise `CaseError` if a phase does not exist."""
    n_phases = len(exam.stacks)
    if not phases:
        return list(range(n_phases))
    if sorted(set(phases)) != list(phases) or not 0 <= phases[0] <= phases[-1] < n_phases:
        raise CaseError(
            f"expected increasing phase numbers from 0 to {n_phases - 1}, but got "
            f"{', '.join(map(str, phases))}: check the phases of the study",
            remedies=[Remedy("dry_run")],
        )
    return list(phases)
