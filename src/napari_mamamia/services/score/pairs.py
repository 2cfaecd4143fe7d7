"""Which files belong together: the reference and the prediction of each case that counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import ScoreStatus
from napari_mamamia.io.data_set.case_list import CaseList
from napari_mamamia.io.data_set.layout import list_masks
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.file_names import case_key

Pairs: TypeAlias = dict[str, tuple[Path | None, Path | None]]
"""By case id, in order: the reference and the prediction, None where there is no file."""


@dataclass(frozen=True, slots=True)
class FoundPairs:
    """The files of each case, and what cannot be scored before a file is read.

    `problems` are the status and the reason of such cases; `outside` the ids of files that are in
    no list of cases, which are not scored.
    """

    pairs: Pairs
    problems: Mapping[str, tuple[ScoreStatus, str]] = field(default_factory=dict)
    outside: tuple[str, ...] = ()


def find_pairs(reference: Path, prediction: Path, cases: CaseList | None = None) -> Pairs:
    """Return both files of every case that `find_cases` finds."""
    return find_cases(reference, prediction, cases).pairs


def find_cases(reference: Path, prediction: Path, cases: CaseList | None = None) -> FoundPairs:
    """Return both files of every case of either folder; letter case does not part them.

    With a list of `cases` those count alone, each of which must have its reference.

    Raises
    ------
    FormatError
        If a folder is missing, the reference's holds no mask, or a listed case has no reference or
        another one than the list says.
    """
    folders = [list_masks(reference), list_masks(prediction)]
    if not (folders[0].masks or folders[0].problems):
        raise _no_mask(reference)
    if not (folders[1].masks or folders[1].problems) and cases is None:
        raise _no_mask(prediction)
    # The reference comes last, so that ids are spelled as its files.
    ids = {
        case_key(case_id): case_id
        for listing in reversed(folders)
        for case_id in (*listing.masks, *listing.problems)
    }
    by_key = [
        {case_key(case_id): path for case_id, path in listing.masks.items()} for listing in folders
    ]
    problems: dict[str, tuple[ScoreStatus, str]] = {}
    statuses = ScoreStatus.REFERENCE_UNREADABLE, ScoreStatus.SEVERAL_FILES
    for listing, status in reversed(list(zip(folders, statuses, strict=True))):
        problems |= {
            ids[case_key(case_id)]: (status, reason) for case_id, reason in listing.problems.items()
        }
    keys = sorted(ids, key=lambda key: ids[key])
    pairs = {ids[key]: (by_key[0].get(key), by_key[1].get(key)) for key in keys}
    everything = FoundPairs(pairs, problems)
    return everything if cases is None else keep_listed(everything, cases, reference)


def keep_listed(files: FoundPairs, cases: CaseList, reference: Path) -> FoundPairs:
    """Return the files of listed cases, each of which must have its reference in `reference`.

    Raises
    ------
    FormatError
        If a listed case has no reference, or another one than the list says.
    """
    references = {case_key(name): path for name, (path, _) in files.pairs.items() if path}
    _require_references(cases, references, reference)
    outside = tuple(sorted(name for name in files.pairs if name not in cases))
    pairs = {name: pair for name, pair in files.pairs.items() if name in cases}
    problems = {name: problem for name, problem in files.problems.items() if name in cases}
    return FoundPairs(pairs, problems, outside)


def _require_references(cases: CaseList, references: Mapping[str, Path], folder: Path) -> None:
    """Raise `FormatError` unless every listed case has the reference that the list was made of."""
    lacking = [case_id for case_id in cases.case_ids if case_key(case_id) not in references]
    if lacking:
        first = ", ".join(lacking[:3]) + ", ..." * (len(lacking) > 3)
        raise FormatError(
            f"expected one reference in {folder} for each case of {cases.name}, but {len(lacking)} "
            f"of {len(cases.case_ids)} have none ({first}): give the folder that the list is of"
        )
    for number, (case_id, digest) in enumerate(zip(cases.case_ids, cases.digests, strict=True)):
        report_progress(number, len(cases.case_ids), "Comparing the references with the list")
        path = references[case_key(case_id)]
        if digest and sha256_of(path) != digest:
            raise FormatError(
                f"expected the reference {path} that {cases.name} was made of, but its SHA-256 is "
                "another: give the folder that the list is of"
            )


def _no_mask(folder: Path) -> FormatError:
    return FormatError(
        f"{folder} holds no mask: expected files such as ID.nii.gz, ID.nii or ID.nrrd"
    )
