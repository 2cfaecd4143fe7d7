"""Export accepted masks, answers, tables for other tools, and events of a study.

All files are written to a temporary folder and verified; the folder is renamed at the end.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import (
    CaseError,
    FormatError,
    MamamiaError,
    Remedy,
    SaveConflictError,
    SaveError,
)
from napari_mamamia.core.form import Form
from napari_mamamia.core.progress import paced, report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.features.review.core.review import FilePrint, ReviewFormat
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.io.study_file import EVENTS, STUDY_NAME
from napari_mamamia.features.review.rules.replay import ReviewState
from napari_mamamia.features.review.services.accepted import (
    AcceptedCases,
    list_accepted,
    write_accepted,
)
from napari_mamamia.features.review.services.agreement.agree import LeftOut, list_waiting
from napari_mamamia.features.review.services.agreement.agreement_output import save_rows
from napari_mamamia.features.review.services.export.answer_tables import (
    GivenAnswers,
    list_answers,
    list_ratings,
    number_lesions,
    save_answers,
    save_grand_challenge,
    save_monai_label,
    save_mrmc,
    use_study_numbers,
)
from napari_mamamia.features.review.services.look import (
    load_study_form,
    read_whole,
    replay_reading,
    require_outside,
)
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.files.own_paths import own_folder, place_folder
from napari_mamamia.io.files.save import saving, write_text_atomically
from napari_mamamia.io.tables.tables import write_json
from napari_mamamia.io.workspace.provenance import read_provenance, sidecar_path
from napari_mamamia.io.workspace.workspace import MASK_SUFFIX

EXPORT: Final = "export.json"
SCHEMA: Final = 1
EXPERT: Final = Path("segmentations", "expert")
"""Location of reference masks in a MAMA-MIA data set."""
_ATTRIBUTES: Final = "* -text\n"
"""Content of .gitattributes that keeps line ends unchanged, because files are hashed."""


@dataclass(frozen=True, slots=True)
class ExportChoice:
    """Options of an export.

    Parameters
    ----------
    formats
        The formats; each is written to a folder with its name.
    rating
        Question of the MRMC tables.
    positives
        Cases with truth 1 in these tables; None if the truth is unknown.
    """

    formats: tuple[ReviewFormat, ...]
    rating: str = ""
    positives: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ReviewExport:
    """Result of an export; `files` lists the files with SHA-256, as in `export.json`.

    `left_out` lists accepted content that could not be written; `others` lists the cases that are
    not accepted.
    """

    folder: Path
    n_accepted: int
    files: tuple[FilePrint, ...]
    left_out: tuple[LeftOut, ...]
    conflicts: tuple[LeftOut, ...]
    others: tuple[LeftOut, ...]

    @property
    def is_complete(self) -> bool:
        """Return whether all accepted content was written and there is no conflict."""
        return not (self.left_out or self.conflicts)


def export_study(store: FolderStore, folder: Path, choice: ExportChoice) -> ReviewExport:
    """Write the chosen content of a study into a new or empty folder.

    Raises
    ------
    CaseError
        If no format is chosen, or no question is chosen for MRMC tables.
    SaveConflictError
        If the folder is not empty, or is inside the study.
    FormatError
        If the study cannot be read to the end.
    SaveError
        If the system refuses to write, or a file differs when read back.
    """
    _require_choice(choice)
    _require_free(store, folder)
    state = replay_reading(store, read_whole(store))
    form = store.read_frozen(load_study_form)
    accepted = list_accepted(state)
    left_out = list_waiting(state)
    with own_folder(folder.parent) as place:
        has_answers = not {*choice.formats} <= {ReviewFormat.MASKS, ReviewFormat.EVENTS}
        numbers = number_lesions(store, state, left_out) if has_answers else {}
        run = _Run(store, state, form, accepted, choice, left_out, numbers)
        for number, format_ in enumerate(choice.formats):
            report_progress(number, len(choice.formats), f"Exporting {format_}")
            (place / format_).mkdir()
            run.write(format_, place / format_)
        left_out = list(
            dict.fromkeys(left_out)
        )  # several formats may report the same missing content
        _save_cases(state, accepted, left_out, place)
        report_progress(len(choice.formats), len(choice.formats), "Verifying files")
        files = _check_files(place)
        content = {
            "mamamia_review_export": SCHEMA,
            "study": store.study.plan.name,
            "study_id": store.study.study_id,
            "origin": store.origin,
            "at": now_utc(),
            "software": software_version(),
            "formats": choice.formats,
            "n_accepted": len(accepted.cases),
            "files": files,
            "left_out": left_out,
            "conflicts": accepted.conflicts,
            "others": accepted.others,
        }
        write_json(content, place / EXPORT)
        place_folder(place, folder)
    return ReviewExport(
        folder,
        len(accepted.cases),
        files,
        tuple(left_out),
        accepted.conflicts,
        accepted.others,
    )


def _require_choice(choice: ExportChoice) -> None:
    if not choice.formats:
        formats = ", ".join(ReviewFormat)
        raise CaseError(f"expected at least one format, but found none: choose from {formats}")
    if ReviewFormat.MRMC in choice.formats and not choice.rating:
        raise CaseError(
            "the MRMC table needs a question whose answers are ratings, but there is none: choose "
            "a question whose answers are numbers, such as assessment",
            remedies=(Remedy("rating", ("QUESTION",)),),
        )


def _require_free(store: FolderStore, folder: Path) -> None:
    require_outside(store, folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SaveConflictError(
            f"expected a new or empty folder, but {folder} is not empty: choose a different "
            "folder, because nothing is overwritten"
        )


@dataclass(frozen=True, slots=True)
class _Run:
    store: FolderStore
    state: ReviewState
    form: Form | None
    accepted: AcceptedCases
    choice: ExportChoice
    left_out: list[LeftOut]
    numbers: Mapping[str, Mapping[str, str]]

    def write(self, format_: ReviewFormat, folder: Path) -> None:
        """Write one format into its folder."""
        writers: dict[ReviewFormat, Callable[[Path], object]] = {
            ReviewFormat.MASKS: self._write_masks,
            ReviewFormat.ANSWERS: lambda at: save_answers(self.state, self.form, at, self.numbers),
            ReviewFormat.MRMC: self._write_ratings,
            ReviewFormat.MONAI_LABEL: lambda at: save_monai_label(
                self.store, self.state, self._list_numbered(), at, self.left_out
            ),
            ReviewFormat.GRAND_CHALLENGE: lambda at: save_grand_challenge(
                self.state, self._list_numbered(), self.form, at
            ),
            ReviewFormat.EVENTS: lambda at: _copy_events(self.store, at),
        }
        writers[format_](folder)

    def _list_numbered(self) -> tuple[GivenAnswers, ...]:
        return use_study_numbers(list_answers(self.state), self.numbers, self.left_out)

    def _write_masks(self, folder: Path) -> None:
        for number, case in enumerate(self.accepted.cases):
            report_progress(number, len(self.accepted.cases), f"Exporting {case.case_id}")
            try:
                write_accepted(self.store, case, folder / EXPERT, self.state)
            except FormatError as error:
                _remove_half(folder / EXPERT, case.stem)
                self.left_out.append(LeftOut(case.case_id, "the accepted mask", str(error)))

    def _write_ratings(self, folder: Path) -> None:
        given, study = self._list_numbered(), self.state.study.plan.name
        rows = list_ratings(given, study, self.choice.rating, self.choice.positives)
        save_mrmc(rows, folder)


def _remove_half(folder: Path, stem: str) -> None:
    for path in folder.glob(f"{stem}.*"):
        path.unlink()


def _copy_events(store: FolderStore, folder: Path) -> None:
    names = [STUDY_NAME, *(file.name for file in store.study.files)]
    store.visit(partial(_copy_files, names, folder))
    write_text_atomically(folder / ".gitattributes", _ATTRIBUTES)


def _copy_files(names: Sequence[str], folder: Path, study: Path) -> None:
    paths = [study / name for name in names]
    paths += sorted((study / EVENTS).rglob("*.jsonl"))
    for path in paced(paths, "Copying events"):
        with open_plain(path) as stream:
            content = stream.read()
        with saving(folder / path.relative_to(study)) as temporary:
            temporary.write_bytes(content)


def _save_cases(
    state: ReviewState, accepted: AcceptedCases, left_out: Sequence[LeftOut], place: Path
) -> None:
    by_id = {case.case_id: case for case in accepted.cases}
    missing = {one.case_id: f"{one.what}: {one.why}" for one in left_out}
    why = {one.case_id: one.why for one in (*accepted.others, *accepted.conflicts)}
    rows = []
    for view in state.cases:
        case = state.study.case(view.key)
        case_id = case.case_id
        one = by_id.get(case_id)
        cells = ("", "", "", "", "")
        if one is not None:
            choice = (one.decision.choice, one.decision.mask, one.decision.at)
            cells = (one.stem, "yes" if one.is_signed else "no", *choice)
        text = missing.get(case_id, why.get(case_id, ""))
        rows.append((case_id, *case.exam, view.key, str(view.state), *cells, text))
    head = (
        *("case_id", "patient", "visit", "side", "key", "state", "file", "signed"),
        *("choice", "mask_sha256", "at", "left_out"),
    )
    save_rows(head, rows, place / "cases.csv")


def _check_files(place: Path) -> tuple[FilePrint, ...]:
    """Read back all written files, and return them with their SHA-256.

    Raises
    ------
    SaveError
        If a file cannot be read back.
    """
    prints = []
    for path in sorted(one for one in place.rglob("*") if one.is_file()):
        try:
            _read_back(path)
        except (MamamiaError, OSError, ValueError) as error:
            name = path.relative_to(place)
            raise SaveError(
                f"expected {name} to contain what was written, but {error}: try a different disk; "
                "nothing was exported"
            ) from error
        prints.append(FilePrint(path.relative_to(place).as_posix(), sha256_of(path)))
    return tuple(prints)


def _read_back(path: Path) -> None:
    if path.suffix == ".json":
        read_json(path)
    if path.name.endswith(MASK_SUFFIX) and sidecar_path(path).exists():
        read_provenance(sidecar_path(path))
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as stream:
            widths = {len(row) for row in csv.reader(stream)}
        if len(widths) > 1:
            raise ValueError("the rows have different lengths")
