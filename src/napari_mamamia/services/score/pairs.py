"""Pair the reference and the prediction of each case."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import ScoreStatus
from napari_mamamia.io.data_set.case_list import CaseList
from napari_mamamia.io.data_set.mask_files import MaskListing, bare_id, list_masks, no_mask_error
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.files.file_names import alike_ids, case_key

Pairs: TypeAlias = dict[str, tuple[Path | None, Path | None]]
"""Reference and prediction by case id, in order; None for a missing file."""


@dataclass(frozen=True, slots=True)
class FoundPairs:
    """The files of each case, and the cases that are known to be unusable before reading.

    `problems` holds the status and the reason of these cases. `outside` holds the ids of files that
    are not in the list of cases and are not scored.
    """

    pairs: Pairs
    problems: Mapping[str, tuple[ScoreStatus, str]] = field(default_factory=dict)
    outside: tuple[str, ...] = ()


def find_pairs(reference: Path, prediction: Path, cases: CaseList | None = None) -> Pairs:
    """Return the reference and the prediction of every case; see `find_cases`."""
    return find_cases(reference, prediction, cases).pairs


def _list_ids(own: MaskListing, other: MaskListing) -> list[str]:
    """Return the other folder's ids, spelled as in this folder if it has the same ids."""
    spelled = {case_key(case_id): case_id for case_id in own.masks}
    ids = (*other.masks, *other.problems, *map(bare_id, other.masks))
    return [spelled.get(case_key(case_id), case_id) for case_id in ids]


def find_cases(reference: Path, prediction: Path, cases: CaseList | None = None) -> FoundPairs:
    """Return the reference and the prediction of every case in either folder, ignoring letter case.

    With a list of `cases`, only these cases count, and each must have its reference.

    Raises
    ------
    FormatError
        If a folder is missing, the reference folder holds no mask, or a listed case has no
        reference
        or a different one.
    """
    if cases is not None:
        folders = [list_masks(folder, cases.case_ids) for folder in (reference, prediction)]
    else:
        folders = [list_masks(reference), list_masks(prediction)]
        if folders[0].masks.keys() != folders[1].masks.keys():
            # Each folder is searched for the ids of the other folder, which may have simpler names.
            folders = [
                list_masks(folder, _list_ids(own, other))
                for folder, own, other in zip(
                    (reference, prediction), folders, reversed(folders), strict=True
                )
            ]
    if folders[0].is_empty:
        raise no_mask_error(reference)
    if folders[1].is_empty and cases is None:
        raise no_mask_error(prediction)
    everything = join_listings(*folders)
    return everything if cases is None else keep_listed(everything, cases, reference)


def join_listings(reference: MaskListing, prediction: MaskListing) -> FoundPairs:
    """Return both files of every case in either listing; ids are spelled as in the reference."""
    ids = {
        case_key(case_id): case_id
        for listing in (prediction, reference)
        for case_id in (*listing.others, *listing.problems, *listing.masks)
    }
    experts, models = reference.by_key(), prediction.by_key()
    reasons = (
        (ScoreStatus.UNREADABLE, models.others),
        (ScoreStatus.SEVERAL_FILES, models.problems),
        (ScoreStatus.REFERENCE_UNREADABLE, {**experts.others, **experts.problems}),
    )
    problems = {
        ids[key]: (status, reason) for status, found in reasons for key, reason in found.items()
    }
    keys = sorted(ids, key=lambda key: ids[key])
    pairs = {ids[key]: (experts.masks.get(key), models.masks.get(key)) for key in keys}
    return FoundPairs(pairs, problems)


def find_lost_zeros(pairs: Pairs) -> dict[str, str]:
    """Explain why a missing prediction may exist under another spelling of the case's id."""
    reasons = {}
    for names in alike_ids(pairs):
        lacking = [name for name in names if pairs[name][0] and not pairs[name][1]]
        others = [name for name in names if pairs[name][1] and not pairs[name][0]]
        for name in (*lacking, *others) if lacking and others else ():
            other = (others if name in lacking else lacking)[0]
            reasons[name] = (
                f"but {other} has a file: the ids may have lost leading zeros, or differ by "
                "blanks; give both files the same name if they belong to one case"
            )
    return reasons


def keep_listed(files: FoundPairs, cases: CaseList, reference: Path) -> FoundPairs:
    """Return the files of listed cases, each of which must have its reference in `reference`.

    Raises
    ------
    FormatError
        If a listed case has no reference, or a different one.
    """
    references = {case_key(name): path for name, (path, _) in files.pairs.items() if path}
    _require_references(cases, references, reference)
    outside = tuple(sorted(name for name in files.pairs if name not in cases))
    pairs = {name: pair for name, pair in files.pairs.items() if name in cases}
    problems = {name: problem for name, problem in files.problems.items() if name in cases}
    return FoundPairs(pairs, problems, outside)


def _require_references(cases: CaseList, references: Mapping[str, Path], folder: Path) -> None:
    """Raise `FormatError` unless every listed case has the reference that the list records."""
    lacking = [case_id for case_id in cases.case_ids if case_key(case_id) not in references]
    if lacking:
        first = ", ".join(lacking[:3]) + ", ..." * (len(lacking) > 3)
        raise FormatError(
            f"expected one reference in {folder} for each case of {cases.name}, but "
            f"{len(lacking)} of {len(cases.case_ids)} have none ({first}): choose the folder that "
            "the list was made from"
        )
    for number, (case_id, digest) in enumerate(zip(cases.case_ids, cases.digests, strict=True)):
        report_progress(number, len(cases.case_ids), "Comparing the references with the list")
        path = references[case_key(case_id)]
        if digest and sha256_of(path) != digest:
            raise FormatError(
                f"expected the reference {path} with the SHA-256 recorded in {cases.name}, but it "
                "differs: choose the folder that the list was made from"
            )
