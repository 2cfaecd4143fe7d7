"""Find the mask file of each case in a folder, and report other files named after the case.

The mask of a case is, in this order of preference:

1. ``ID`` and the suffix of a format (`io.volumes.formats`); letter case does not matter;
2. ``ID`` and words for a mask, such as ``ID_seg.nii.gz``; the name of BIDS derivatives,
   ``sub-ID_..._dseg.nii.gz``; a mask in the case's own folder, ``ID/segmentation.seg.nrrd``,
   ``sub-ID/anat/...``, or the only DICOM SEG in it.

Two files of equal rank are ambiguous, so both are reported and neither is used. Only the beginning
of DICOM files is read.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.names import name_some, readable_name
from napari_mamamia.io.dicom.probe import is_seg_file
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.folders import list_names, natural_key
from napari_mamamia.io.volumes.formats import MASKS_EXPECTED, format_of, mask_stem

_WORDS: Final = frozenset(
    {"seg", "dseg", "segmentation", "segmentations", "mask", "masks", "label", "labels"}
    | {"labelmap", "pred", "prediction", "predicted", "tumor", "tumour", "lesion", "gt"}
    | {"trans", "ensemble"}
)
"""Words for a mask that can precede or follow the case id in a file name.

MONAI's SaveImage writes "trans" by default, and Auto3DSeg writes "ensemble".
"""
_FIRST_CHANNEL: Final = "0000"
"""Channel number in the file name of an nnU-Net image, which a mask named after it also has."""
_WORD: Final = re.compile(r"[^\W_]+")
_BIDS: Final = re.compile(r"sub-(?P<subject>[^\W_]+)(?:_[^\W_]+-[^_]+)*(?:_(?:dseg|mask))?", re.A)
_NOT_ALPHANUMERIC: Final = re.compile(r"[^0-9a-z]")
_LEAST_WITHIN: Final = 4
"""Shortest case id that is recognised anywhere in a file name.

A shorter id must be at the start of the name, or next to words for a mask.
"""
_DEEPEST: Final = 3
_MOST_FILES: Final = 500
"""Largest number of files examined in the folder of one case (our choice)."""
_NAMED: Final = 3
_NO_MAPPING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class MaskListing:
    """The mask files in a folder by case id, and the problems of cases without a mask.

    `problems` explain why a case has no mask although files match, for example because several
    match. `others` are files that have a case's name but are not its mask.
    """

    masks: Mapping[str, Path]
    problems: Mapping[str, str] = field(default_factory=lambda: _NO_MAPPING)
    others: Mapping[str, str] = field(default_factory=lambda: _NO_MAPPING)

    def by_key(self) -> "MaskListing":
        """Return a copy keyed by `case_key`, for ids that differ in letter case."""
        masks = {case_key(case_id): path for case_id, path in self.masks.items()}
        problems, others = (
            {case_key(case_id): reason for case_id, reason in reasons.items()}
            for reasons in (self.problems, self.others)
        )
        return MaskListing(masks, problems, others)

    @property
    def is_empty(self) -> bool:
        """Whether the folder contains no file of any case."""
        return not (self.masks or self.problems or self.others)


def find_masks(folder: Path, case_ids: Collection[str] = ()) -> Mapping[str, Path]:
    """Return the mask files in a folder by case id, in natural order; empty if there are none.

    Raises
    ------
    FormatError
        If `folder` is missing, contains two files for one case, or contains a file whose name is
        not UTF-8.
    """
    listing = list_masks(folder, case_ids)
    for problem in listing.problems.values():
        raise FormatError(f"{folder}: {problem}")
    return listing.masks


def list_masks(folder: Path, case_ids: Collection[str] = ()) -> MaskListing:
    """Return the mask of each case in a folder, and the problems of cases without a mask.

    Parameters
    ----------
    folder
        The folder with the masks, as files or in a folder for each case.
    case_ids
        The requested cases. Every file that belongs to none of these cases, or every file if no
        ids are given, counts as a case of its own that is named after the file.

    Raises
    ------
    FormatError
        If `folder` is missing.
    """
    names = sorted(list_names(folder))
    by_key: dict[str, list[str]] = {}
    without: list[str] = []
    for name in names:
        stem = mask_stem(name)
        if stem is not None and os.path.isfile(f"{folder}/{name}"):  # noqa: PTH113 - a third of it
            by_key.setdefault(case_key(stem), []).append(name)
        else:
            without.append(name)
    search = _Search(folder, {case_key(one): one for one in reversed([*case_ids])})
    strangers = [name for key, own in by_key.items() if key not in search.ids for name in own]
    search.look([*strangers, *without], [key for key in search.ids if key not in by_key])
    for key, own in by_key.items():
        if own[0] not in search.taken:
            search.settle(search.ids.get(key) or mask_stem(own[0]) or own[0], own)
    for name in without:
        if name not in search.taken and (folder / name).is_dir():
            search.look_into(name)
    return search.listing()


def bare_id(name: str) -> str:
    """Return a name without the words for a mask at its end.

    Examples
    --------
    >>> bare_id("CASE_1_seg"), bare_id("CASE_1")
    ('CASE_1', 'CASE_1')
    """
    words = list(_WORD.finditer(name))
    while len(words) > 1 and words[-1].group().casefold() in _WORDS:
        words.pop()
    return name[: words[-1].end()] if words else name


def is_mask_file(path: Path) -> bool:
    """Return whether a file has a format that stores only segmentations."""
    known = format_of(path.name)
    if known is not None and not known.is_for_masks:
        return False
    return path.is_file() and (is_seg_file(path) or bool(known and known.open_with))


def holds_masks(folder: Path, *, is_deep: bool = True) -> bool:
    """Return whether a folder contains a file that is named like a mask.

    With `is_deep`, folders one level below are searched too.
    """
    if not is_deep:
        return any(mask_stem(name) for name in list_names(folder))
    return any(mask_stem(path.name) for path in _files_below(folder))


def no_mask_error(folder: Path) -> FormatError:
    """Return the error for a folder without masks; it names subfolders that contain masks."""
    below = {path.parent.relative_to(folder) for path in _files_below(folder)
             if mask_stem(path.name)}  # fmt: skip
    inner = ", ".join(sorted(path.as_posix() for path in below if path.name)[:_NAMED])
    fix = f"masks are in {inner}: use that folder" if inner else "choose a folder with masks"
    return FormatError(
        f"expected masks such as {MASKS_EXPECTED} in {folder}, but found none; {fix}"
    )


class _Search:
    """State of the search for masks in one folder."""

    def __init__(self, folder: Path, ids: dict[str, str]) -> None:
        self.ids = ids
        self.taken: set[str] = set()
        self._folder = folder
        self._settled: set[str] = set()
        self._masks: dict[str, Path] = {}
        self._problems: dict[str, str] = {}
        self._others: dict[str, str] = {}
        subjects: dict[str, list[str]] = {}
        for key in ids:
            subjects.setdefault(_NOT_ALPHANUMERIC.sub("", key), []).append(key)
        self._subjects = {label: keys[0] for label, keys in subjects.items() if len(keys) == 1}

    def look(self, names: list[str], lacking: list[str]) -> None:
        """Find masks for the cases in `lacking`, whose file names contain more than an id."""
        if not lacking:
            return
        carriers: dict[str, list[str]] = {}
        for name in names:
            if (key := self._find_owner(name)) is not None:
                carriers.setdefault(key, []).append(name)
        for key in lacking:
            if key in carriers:
                self.taken.update(carriers[key])
                self._choose(self.ids[key], carriers[key])

    def look_into(self, name: str) -> None:
        """Search a folder named after a case, and use it if it contains the case's mask."""
        label = _BIDS.fullmatch(name)
        case_id = label["subject"] if label else name
        files = [path for path in _files_below(self._folder / name) if _is_mask(path, case_id)]
        if files and case_key(case_id) not in self._settled:
            self.settle(readable_name(case_id), [self._shown(path) for path in files])

    def settle(self, case_id: str, names: list[str]) -> None:
        """Record the only matching file as a case's mask, or several files as a problem."""
        self._settled.add(case_key(case_id))
        shown = " and ".join(readable_name(name) for name in sorted(names))
        if any(name != readable_name(name) for name in (*names, case_id)):
            self._problems[readable_name(case_id)] = (
                f"expected mask names to be valid UTF-8, but {shown} is not: rename the file"
            )
        elif len(names) > 1:
            stems = {mask_stem(name) or name for name in names}
            is_spelling = len(stems) > 1 and len(set(map(case_key, stems))) == 1
            spelling = " (ignoring letter case)" if is_spelling else ""
            self._problems[case_id] = (
                f"case {case_id} has several masks{spelling}: {shown}; keep one mask"
            )
        else:
            self._masks[case_id] = self._folder / names[0]

    def listing(self) -> MaskListing:
        """Return the result of the search, with ids in natural order."""
        masks = sorted(self._masks.items(), key=lambda item: natural_key(item[0]))
        return MaskListing(
            MappingProxyType(dict(masks)),
            MappingProxyType(self._problems),
            MappingProxyType(self._others),
        )

    def _choose(self, case_id: str, carriers: list[str]) -> None:
        paths = [self._folder / name for name in carriers]
        files = [path for path in paths if not path.is_dir()]
        files += [inner for path in paths if path.is_dir() for inner in _files_below(path)]
        masks = [path for path in files if _is_mask(path.relative_to(self._folder), case_id)
                 or _is_lone_seg(path, files)]  # fmt: skip
        if masks:
            self.settle(case_id, [self._shown(path) for path in masks])
        elif files:
            shown = [readable_name(self._shown(path)) for path in files]
            self._others[case_id] = (
                f"expected a mask of {case_id}, but found only {name_some(shown, _NAMED)}, which "
                f"has neither the name nor the format of a mask: rename the mask to {case_id} with "
                f"the suffix of its format, such as {case_id}.nii.gz, or convert it"
            )

    def _shown(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()

    def _find_owner(self, name: str) -> str | None:
        key = case_key(readable_name(name))
        label = _BIDS.match(key)
        if label is not None and label["subject"] in self._subjects:
            return self._subjects[label["subject"]]
        words = list(_WORD.finditer(key))[:24]
        spans = {
            key[first.start() : last.end()]: first.start()
            for n, first in enumerate(words)
            for last in words[n:]
        }
        owners = [
            span
            for span, start in spans.items()
            if span in self.ids
            and (start == 0 or len(span) >= _LEAST_WITHIN or _is_mask(Path(name), span))
        ]
        return max(owners, key=len, default=None)


def _is_mask(path: Path, case_id: str) -> bool:
    stem = mask_stem(path.name)
    if stem is None:
        return False
    stem = readable_name(stem)
    if (label := _BIDS.fullmatch(stem)) is not None:
        return stem.endswith(("_dseg", "_mask")) and label["subject"].casefold() in (
            _NOT_ALPHANUMERIC.sub("", case_key(case_id)),
            case_key(case_id),
        )
    before, carries, after = case_key(stem).partition(case_key(case_id))
    words = _WORD.findall(f"{before} {after}" if carries else case_key(stem))
    is_own = bool(carries) or len(path.parts) > 1
    is_named = [word in _WORDS for word in words if word != _FIRST_CHANNEL]
    return is_own and all(is_named) and (bool(is_named) or not words)


def _is_lone_seg(path: Path, files: list[Path]) -> bool:
    return is_seg_file(path) and sum(is_seg_file(other) for other in files) == 1


def _files_below(folder: Path) -> Iterator[Path]:
    n_files = 0
    for where, folders, names in os.walk(folder):
        depth = len(Path(where).relative_to(folder).parts)
        folders[:] = sorted(f for f in folders if f[:1] != ".") if depth < _DEEPEST else []
        for name in sorted(name for name in names if name[:1] != "."):
            n_files += 1
            if n_files > _MOST_FILES:
                return
            yield Path(where, name)
