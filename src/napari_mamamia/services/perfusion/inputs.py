"""The cases of a perfusion run with all that each depends on, as workers can be sent them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.errors import CaseError
from napari_mamamia.io.files.file_names import VOLUME_SUFFIXES, case_key
from napari_mamamia.services.batch.masked_inputs import MaskedInputs, masked_inputs, masks_of_cases
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.perfusion.settings import FlipAngles, PerfusionSettings


@dataclass(frozen=True, slots=True)
class PerfusionInputs(MaskedInputs):
    """One case: phases and mask as in `MaskedInputs`, and what T1 and the echo come from.

    Parameters
    ----------
    t1_files
        Its T1 map, or its volume of each flip angle; None where one is missing.
    repetition_ms, flip_degrees
        What its clinical row says of the dynamic series.
    may_replace
        Whether any map at its place is replaced; else only one that is equal, or in `own_maps`.
    own_maps
        SHA-256 of the maps that earlier runs in the folder wrote. Where any may be replaced they
        are taken away first: a run of another model would leave some of them.
    """

    t1_files: tuple[Path | None, ...] = ()
    repetition_ms: float | None = None
    flip_degrees: float | None = None
    may_replace: bool = False
    own_maps: tuple[str, ...] = ()


def perfusion_inputs(
    opened: OpenDataSet,
    masks: Path | None,
    case_ids: Sequence[str],
    settings: PerfusionSettings,
    own_maps: Mapping[str, tuple[str, ...]],
    *,
    may_replace: bool,
) -> tuple[PerfusionInputs, ...]:
    """Return each case with its mask, its T1 and its scan.

    Raises
    ------
    CaseError
        If `case_ids` names a case that is not there, or one T1 map stands for several cases.
    FormatError
        If `masks` is missing or holds no mask.
    """
    cases = masked_inputs(opened, masks, case_ids, (settings.vessels,))
    if settings.t10_map and Path(settings.t10_map).is_file() and len(cases) > 1:
        raise CaseError(
            f"expected a T1 map for each of {len(cases)} cases, got the one file "
            f"{settings.t10_map}: name a folder of maps ID.nii.gz, or one case with --case"
        )
    inputs = []
    for one in cases:
        record = opened.record(one.case_id)
        t1_files = _t1_files(one.case_id, settings)
        inputs.append(
            PerfusionInputs(
                one.case_id,
                (*t1_files, *one.files),
                sources=one.sources,
                record=one.record,
                t1_files=t1_files,
                repetition_ms=_read_number(record, "repetition_time"),
                flip_degrees=_read_number(record, "flip_angle"),
                may_replace=may_replace,
                own_maps=own_maps.get(one.case_id, ()),
            )
        )
    return tuple(inputs)


def _t1_files(case_id: str, settings: PerfusionSettings) -> tuple[Path | None, ...]:
    if settings.flip_angles is not None:
        return _flip_files(case_id, settings.flip_angles)
    if not settings.t10_map:
        return ()
    path = Path(settings.t10_map)
    if path.is_file():
        return (path.resolve(),)
    return (_of_case(case_id, path),)


def _of_case(case_id: str, folder: Path) -> Path | None:
    path_of_case = masks_of_cases(folder).get(case_key(case_id))
    return path_of_case and path_of_case.absolute()


def _flip_files(case_id: str, flips: FlipAngles) -> tuple[Path | None, ...]:
    folder = Path(flips.folder)
    case_folder = folder / case_id if (folder / case_id).is_dir() else folder
    stems = [f"{case_id}_{number:04d}" for number in range(len(flips.degrees))]
    return tuple(
        next(
            (p.absolute() for s in VOLUME_SUFFIXES if (p := case_folder / f"{stem}{s}").is_file()),
            None,
        )
        for stem in stems
    )


def _read_number(record: CaseRecord | None, column: str) -> float | None:
    value = None if record is None else record.other.get(column)
    if value is None or isinstance(value, bool):
        return None
    try:
        return float(value)
    except ValueError:
        return None
