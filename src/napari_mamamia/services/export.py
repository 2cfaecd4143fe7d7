"""Export: masks under one naming, with the input's exact geometry, checked after writing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from napari_mamamia.core.case import LabelMap, Mask
from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.core.grid import require_same_grid
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.core.provenance import InputFile, Maker, Provenance, now_utc, software_version
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.checksums import sha256_of
from napari_mamamia.io.layout import find_masks
from napari_mamamia.io.phase_files import case_key
from napari_mamamia.io.provenance import read_provenance, sidecar_path, write_provenance
from napari_mamamia.io.sources import DataSet
from napari_mamamia.io.tables import write_json
from napari_mamamia.io.volumes import read_labels, read_phase_header, write_mask
from napari_mamamia.services.batch import for_each_case
from napari_mamamia.services.output_folder import Existing, claim_folder

__all__ = ["ExportSummary", "ExportedMask", "export_masks"]

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class ExportedMask:
    """One mask that was written, read back and found equal; `files` with their SHA-256."""

    case_id: str
    volume_mm3: float
    files: tuple[InputFile, ...]


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """What an export wrote; every file in it was read back before it counted as saved."""

    out: Path
    exported: tuple[ExportedMask, ...]
    failures: tuple[CaseFailure, ...]


def export_masks(
    data_set: DataSet,
    masks: Path,
    out: Path,
    *,
    label: float | None = None,
    case_ids: Sequence[str] = (),
    existing: Existing = Existing.REFUSE,
) -> Job[ExportSummary]:
    """Return a job that writes ``out/ID.nii.gz``, ``out/ID.json`` and ``out/manifest.json``.

    Each mask of the folder `masks` must lie on its case's grid; it is written as uint8 (0 and 1)
    with the geometry fields of the case's own header. A mask with several labels is refused unless
    `label` chooses one. One mask's failure does not stop the others.

    Raises
    ------
    FormatError
        If `masks` is missing or holds no mask.
    CaseError
        If a case of `case_ids` has no mask there.
    SaveConflictError
        If `out` holds other results.
    """
    known = {case_key(files.case_id): files.case_id for files in data_set.cases}
    found = {known.get(case_key(name), name): path for name, path in find_masks(masks).items()}
    if not found:
        raise FormatError(f"{masks} holds no mask: expected files such as ID.nii.gz")
    chosen = list(case_ids) or list(found)
    for case_id in chosen:
        if case_id not in found:
            raise CaseError(f"no mask of case {case_id!r} in {masks}: check the spelling")
    parameters = (("data_set", data_set.name), ("masks", masks.name), ("label", label))
    claim_folder(out, "export", parameters, existing)
    replacing = existing is not Existing.REFUSE

    def work(case_id: str) -> Job[ExportedMask]:
        yield Progress(0, 1, "Exporting")
        grid = read_phase_header(data_set.case(case_id).phases[0]).grid
        labels = read_labels(found[case_id])
        require_same_grid(labels.grid, grid, str(found[case_id]), f"case {case_id}")
        mask = _one_label(replace(labels, grid=grid), label)
        return _write(case_id, mask, found[case_id], out, replacing)

    batch = yield from for_each_case(chosen, work)
    write_json(_manifest(data_set, batch.results), out / MANIFEST, overwrite=replacing)
    return ExportSummary(out, batch.results, batch.failures)


def _one_label(labels: LabelMap, label: float | None) -> Mask:
    if label is not None and label not in labels.values:
        raise CaseError(
            f"{labels.source} does not hold label {label:g}: it holds {_listed(labels.values)}"
        )
    if label is None and len(labels.values) > 1 and labels.crop.dtype.kind in "iu":
        raise CaseError(
            f"{labels.source} holds {len(labels.values)} labels ({_listed(labels.values)}): "
            "choose one with --label"
        )
    return labels.mask(label)


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values[:10]) or "no label"


def _write(case_id: str, mask: Mask, source: Path, out: Path, overwrite: bool) -> ExportedMask:
    target = out / f"{case_id}.nii.gz"
    write_mask(mask, target, overwrite=overwrite)
    write_provenance(_provenance(case_id, source), sidecar_path(target), overwrite=overwrite)
    files = (target, sidecar_path(target))
    sums = tuple(InputFile(path.name, sha256_of(path)) for path in files)
    return ExportedMask(case_id, mask.volume_mm3, sums)


def _provenance(case_id: str, source: Path) -> Provenance:
    """Return the mask's history; without a sidecar its file is all we know."""
    if sidecar_path(source).exists():
        return read_provenance(sidecar_path(source))
    return Provenance(
        case_id=case_id,
        maker=Maker.UNKNOWN,
        name=source.parent.name,
        inputs=(InputFile(source.name, sha256_of(source)),),
        note="no provenance was found beside this mask",
    )


def _manifest(data_set: DataSet, exported: Sequence[ExportedMask]) -> dict[str, object]:
    return {
        "software": software_version(),
        "created": now_utc(),
        "data_set": data_set.name,
        "cases": [
            {
                "case_id": item.case_id,
                "volume_mm3": item.volume_mm3,
                "files": [{"name": file.name, "sha256": file.sha256} for file in item.files],
            }
            for item in exported
        ],
    }
