"""Search a bundle for data that identify the patients of the source studies."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from napari_mamamia.core.errors import FormatError, MamamiaError
from napari_mamamia.core.names import count_of
from napari_mamamia.io.data_set.bundle import MANIFEST_NAME, bundle_names
from napari_mamamia.io.dicom.persons import find_identifiers, find_volume_identifiers
from napari_mamamia.io.dicom.probe import is_dicom_file
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.privacy.identifier_search import search_file
from napari_mamamia.io.privacy.identifiers import Identifier, folded, signs_of, without_signs
from napari_mamamia.io.volumes.formats import file_stem
from napari_mamamia.services.export.seg import IDENTIFIED_FOLDER

NOT_SEARCHED = (
    "NOT searched for the patient's name, number and dates: no DICOM source was available; "
    "verify the bundle with the DICOM study to search it"
)


@dataclass(frozen=True, slots=True)
class Telling:
    """Identifiers of patients; `notes` state what could not be read or searched for.

    `n_texts` is the number of identifiers found in the headers and JSON files of non-DICOM volumes.
    `n_removed` of the `n_dicom` DICOM files state that the patient's identity was removed.
    """

    identifiers: tuple[Identifier, ...]
    n_dicom: int
    n_removed: int
    n_texts: int
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """A sentence about the search of a bundle in which no identifier was found."""
        n_told = len(self.identifiers) - self.n_texts
        texts = (
            f"{count_of(self.n_texts, 'text')} from the volumes' headers and JSON files: none found"
        )
        if not self.n_dicom:
            rest = f"; searched for {texts}" if self.n_texts else ""
            return f"{NOT_SEARCHED}{rest}"
        names = (
            f"{count_of(n_told, 'identifier')} (names, numbers, dates, UIDs) from the source: "
            "none found"
        )
        several = [names] * bool(n_told) + [texts] * bool(self.n_texts)
        searched = f"Searched for {'; for '.join(several)}" if several else ""
        return ". ".join(filter(None, (self._removal_note, searched or "Nothing to search for")))

    @property
    def _removal_note(self) -> str:
        if not self.n_removed:
            return ""
        others = self.n_dicom - self.n_removed
        rest = (
            (
                f"; the identifiers of {count_of(others, 'other file')} without that statement "
                "are searched for"
            )
            if others
            else ""
        )
        return (
            f"{self.n_removed} of {count_of(self.n_dicom, 'DICOM file')} in the source state that "
            f"the patient's identity was removed, so their identifiers are not searched for{rest}"
        )


def require_source(study: Path) -> None:
    """Raise an error if a source contains no usable file, for example because the path is mistyped.

    Raises
    ------
    FormatError
        If `study` is missing, or contains no DICOM files, volumes or JSON files.
    """
    if not study.exists():
        raise FormatError(f"the source study {study} does not exist: check the path")
    if not any(_may_tell(file) or is_dicom_file(file) for file in _list_files([study])):
        raise FormatError(
            f"expected {study} to be the source study, but it contains no DICOM file: choose the "
            "study's folder, and unpack an archive first"
        )


def _may_tell(file: Path) -> bool:
    return file_stem(file.name) is not None or file.suffix.lower() in (".nrrd", ".json")


def volumes_of(cases: Sequence[CaseFiles]) -> tuple[Path, ...]:
    """Return the non-DICOM files of cases that may identify the patient."""
    paths: list[Path] = []
    for files in cases:
        paths += [file for phase in files.phases for file in phase.files]
        paths += [path for path in (files.reference, files.automatic, files.info) if path]
    return tuple(dict.fromkeys(paths))


def telling_in(
    studies: Sequence[Path],
    volumes: Sequence[Path] = (),
    case_ids: Sequence[str] = (),
    own_day: str = "",
) -> Telling:
    """Return the identifiers of the patients in DICOM `studies` and in `volumes`.

    Parameters
    ----------
    studies
        DICOM files or their folders. JSON files and volumes in these folders are also read.
    volumes
        NIfTI, NRRD and JSON files.
    case_ids
        The ids in the bundle. A number in a JSON file that equals an id is reported in a note,
        because it may be the collection's pseudonym or the hospital's number.
    own_day
        The day on which the bundle was written, as YYYYMMDD. The bundle's files contain this day,
        so it is not searched for, even if it is the date of an exam.
    """
    files = tuple(_list_files(studies))
    persons = find_identifiers(files)
    of_volumes = find_volume_identifiers(chain(files, volumes))
    ids = {case_key(case_id) for case_id in case_ids}
    person_ids = set(persons.identifiers)
    named = [identifier for identifier in of_volumes.identifiers if _is_case(identifier, ids)]
    texts = [identifier for identifier in of_volumes.identifiers if not _is_case(identifier, ids)]
    identifiers = [*persons.identifiers, *(text for text in texts if text not in person_ids)]
    n_others = len(files) - persons.n_files - sum(map(_may_tell, files))
    searched = [
        identifier
        for identifier in identifiers
        if not (identifier.kind == "exam" and _take_day(identifier.text) == own_day)
    ]
    return Telling(
        tuple(searched),
        persons.n_files,
        persons.n_removed,
        len(identifiers) - len(persons.identifiers),
        (
            *_note_unasked(n_others),
            *_list_notes(
                persons.n_unread, of_volumes.n_unread, named, len(identifiers) - len(searched)
            ),
        ),
    )


def _note_unasked(n_others: int) -> Iterator[str]:
    if n_others:
        yield (
            f"{count_of(n_others, 'file')} in the source could not be read, because only DICOM "
            "files and volumes are readable (unpack an archive first)"
        )


def _list_notes(
    n_damaged: int, n_unread: int, named: Sequence[Identifier], n_own_days: int
) -> Iterator[str]:
    if n_damaged:
        yield (
            f"{count_of(n_damaged, 'damaged file')} in the source could not be searched for names"
        )
    if n_unread:
        yield f"volumes whose headers or JSON files could not be searched for names: {n_unread:,}"
    if named:
        elements = ", ".join(dict.fromkeys(one.element for one in named))
        yield (
            f"the case id is also the {elements} in a JSON file next to the images: if it is the "
            "hospital's number, rename the case"
        )
    if n_own_days:
        yield (
            "the exam date is also the date of this export, which its files contain, so it was "
            "not searched for"
        )


def _is_case(one: Identifier, ids: Collection[str]) -> bool:
    return one.kind in ("id", "name") and case_key(one.text) in ids


def _take_day(text: str) -> str:
    return "".join(c for c in text if c.isdigit())[:8]


def search_bundle(root: Path, identifiers: Sequence[Identifier]) -> tuple[str, ...]:
    """Return sentences about each file of a bundle that identifies a patient.

    The names and all bytes of the files are searched, including the manifest. A sentence names the
    element of the source, never its value. Segmentations with the patient's name, if requested,
    are in a separate folder, which is not searched.
    """
    signs = signs_of(identifiers)
    folder_name = folded(root.resolve().name)
    telling_own = dict.fromkeys(sign.element for sign in signs if sign.is_in(folder_name))
    sentences = [
        f"the bundle's own folder: its name contains the source's {element}"
        for element in telling_own
    ]
    for name in (*bundle_names(root), MANIFEST_NAME, *_empty_folders(root)) if signs else ():
        if name.startswith(f"{IDENTIFIED_FOLDER}/"):
            continue
        shown = without_signs(name, signs)
        in_name = {sign.element for sign in signs if sign.is_in(folded(name))}
        sentences += [
            f"{shown}: its name contains the source's {element}" for element in sorted(in_name)
        ]
        if not (root / name).is_file():
            continue
        try:
            inside = search_file(root / name, signs)
        except MamamiaError as error:
            sentences.append(f"{shown}: not searched ({without_signs(str(error), signs)})")
            continue
        sentences += [
            f"{shown}: the file contains the source's {element}" for element in sorted(inside)
        ]
    return tuple(sentences)


def _empty_folders(root: Path) -> Iterator[str]:
    for path in sorted(root.rglob("*")):
        if path.is_dir() and not any(path.iterdir()):
            yield path.relative_to(root).as_posix()


def _list_files(studies: Sequence[Path]) -> Iterator[Path]:
    for study in studies:
        if study.is_dir():
            yield from (path for path in sorted(study.rglob("*")) if path.is_file())
        else:
            yield study


def impersonal(texts: Sequence[str], identifiers: Sequence[Identifier]) -> tuple[str, ...]:
    """Return messages for the user without the identifiers of a patient."""
    signs = signs_of(identifiers)
    return tuple(without_signs(text, signs) for text in texts)
