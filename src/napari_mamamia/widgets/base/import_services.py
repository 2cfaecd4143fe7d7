"""`ImportServices`: the calls that the page Import makes, so that tests can pass fakes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.core.progress import Job
from napari_mamamia.io.dicom.probe import dicom_source
from napari_mamamia.services.dicom.check import ImportCheck, check_import, default_target
from napari_mamamia.services.dicom.dicom import ImportSummary
from napari_mamamia.services.dicom.finding import FoundStudy
from napari_mamamia.services.dicom.look import LookedInto, judge_again, look_at_source
from napari_mamamia.services.dicom.preview import (
    SlicePicture,
    StudyPreview,
    part_picture,
    preview_study,
)
from napari_mamamia.services.dicom.studies import import_studies

__all__ = ["ImportServices"]


@dataclass(frozen=True, slots=True)
class ImportServices:
    """The services of the page Import; a field left out is the real one."""

    source_of: Callable[..., Path | None] = dicom_source
    look: Callable[[Path], Job[LookedInto]] = look_at_source
    judge: Callable[..., Job[FoundStudy]] = judge_again
    preview: Callable[[FoundStudy], Job[StudyPreview]] = preview_study
    part_picture: Callable[..., Job[SlicePicture]] = part_picture
    check: Callable[..., Job[ImportCheck]] = check_import
    run: Callable[..., Job[ImportSummary]] = import_studies
    default_target: Callable[..., Path] = default_target
