"""Inputs of a batch over cases with one mask each, in a form that workers can receive."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.io.data_set.mask_files import find_masks, list_masks, no_mask_error
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.services.batch.work import CaseInputs
from napari_mamamia.services.case.data_set import OpenDataSet


@dataclass(frozen=True, slots=True)
class MaskedInputs(CaseInputs):
    """One case with its mask; `files` are all files that its numbers depend on, the mask last.

    For a case without a mask, `no_mask` lists the files whose names resemble the case's; "" if
    there are none.
    """

    sources: CaseFiles | None = None
    record: CaseRecord | None = None
    no_mask: str = ""


def masked_inputs(
    opened: OpenDataSet,
    masks: Path | None,
    case_ids: Sequence[str],
    further: Sequence[str] = (),
) -> tuple[MaskedInputs, ...]:
    """Return each case with its mask: its reference, or the mask in a folder.

    `further` are folders of other masks that its numbers depend on, such as of a vessel; "" is
    none.

    Raises
    ------
    CaseError
        If `case_ids` names an unknown case.
    FormatError
        If `masks` is missing or holds no mask.
    """
    data_set = opened.data_set
    cases = [data_set.case(case_id) for case_id in case_ids] or list(data_set.cases)
    ids = [files.case_id for files in cases]
    by_key: Mapping[str, Path] | None = None
    reasons: Mapping[str, str] = {}
    if masks is not None:
        by_key = masks_of_cases(masks, ids)
        reasons = list_masks(masks, ids).by_key().others
        if not by_key and not reasons:
            raise no_mask_error(masks)
    others = [masks_of_cases(Path(folder), ids) for folder in dict.fromkeys(further) if folder]
    inputs = []
    for files in cases:
        mask = files.reference if by_key is None else by_key.get(case_key(files.case_id))
        record = opened.record(files.case_id)
        phases = dict.fromkeys(path for source in files.phases for path in source.files)
        own_others = (other.get(case_key(files.case_id)) for other in others)
        beside = (*own_others, data_set.clinical if record else None, files.info)
        paths = tuple(path and path.absolute() for path in (*phases, *beside, mask))
        no_mask = reasons.get(case_key(files.case_id), "")
        sources = _make_absolute(files)
        sources = replace(sources, warnings=(*sources.warnings, *filter(None, (no_mask,))))
        inputs.append(
            MaskedInputs(
                files.case_id, paths, sources=sources, record=_times_only(record), no_mask=no_mask
            )
        )
    return tuple(inputs)


def masks_of_cases(folder: Path, case_ids: Collection[str] = ()) -> Mapping[str, Path]:
    """Return the masks of a folder for the given case ids, by `case_key` of their case."""
    return {case_key(case_id): path for case_id, path in find_masks(folder, case_ids).items()}


def _make_absolute(files: CaseFiles) -> CaseFiles:
    """Return the files with absolute paths, valid in another process."""
    phases = tuple(
        replace(source, files=tuple(path.absolute() for path in source.files))
        for source in files.phases
    )
    return replace(files, phases=phases, info=files.info and files.info.absolute())


def _times_only(record: CaseRecord | None) -> CaseRecord | None:
    """Return the part of a clinical row that a worker needs and that can be pickled."""
    if record is None:
        return None
    return CaseRecord(record.case_id, acquisition_times_s=record.acquisition_times_s, other={})
