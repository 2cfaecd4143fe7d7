"""Demo of the whole workflow on phantom cases: create a data set, predict, score, export."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.io.files.user_folders import documents_folder
from napari_mamamia.phantom import PhantomMix, write_data_set
from napari_mamamia.services.batch.output_folder import Existing, claim_folder
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.export.export import export_masks
from napari_mamamia.services.predict.cases import predict_data_set
from napari_mamamia.services.predict.predict import segmenter_named
from napari_mamamia.services.score.score import ScoreSummary, score_folders
from napari_mamamia.services.score.settings import ScoreSettings

_CASES: Final = {PhantomMix.MIXED: 12, PhantomMix.ONE_BREAST: 8}
_SEED = 2026
_MODEL = "kinetic"


@dataclass(frozen=True, slots=True)
class DemoSummary:
    """The folders of the demo, with its scores, failures and warnings."""

    data_set: Path
    workspace: Path
    export: Path
    scored: ScoreSummary
    failures: tuple[CaseFailure, ...]
    warnings: tuple[str, ...] = ()


def make_demo(
    out: Path, existing: Existing = Existing.REFUSE, mix: PhantomMix = PhantomMix.MIXED
) -> DemoSummary:
    """Create ``out/dataset``, ``out/workspace`` and ``out/export``.

    Twelve phantom cases of mixed types, or eight sagittal exams of one breast, are segmented by the
    kinetic segmenter, scored against the known truth and exported. The workspace records the
    relative path of its data set, so both can be moved together. With RESUME, an existing data set,
    predictions and masks that a reader refined are kept.

    Raises
    ------
    SaveConflictError
        If `out` has other files.
    """
    n_cases = _CASES[mix]
    parameters = (("cases", n_cases), ("seed", _SEED))
    claim_folder(out, "demo", parameters, existing)
    data_set, workspace, export = out / "dataset", out / "workspace", out / "export"
    if not (data_set / "train_test_splits.csv").exists():
        write_data_set(data_set, n_cases=n_cases, seed=_SEED, mix=mix)
    opened = open_data_set(data_set, workspace)
    predictions = opened.workspace.predictions / _MODEL
    predicted = predict_data_set(
        opened,
        segmenter_named(_MODEL),
        predictions,
        existing=_choose_existing(predictions, existing),
    )
    reference = data_set / "segmentations" / "expert"
    scores = opened.workspace.scores / _MODEL
    scored = score_folders(
        reference,
        predictions,
        scores,
        ScoreSettings(clinical=opened.data_set.clinical),
        name=_MODEL,
        existing=_choose_existing(scores, Existing.OVERWRITE),
    )
    exported = export_masks(
        opened.data_set, predictions, export, existing=_choose_existing(export, Existing.OVERWRITE)
    )
    report_progress(1, 1, "Finished")
    failures = (*predicted.failures, *exported.failures)
    red = tuple(
        f"{mask.case_id} was exported, but its quality is red: see {export / 'quality.html'}"
        for mask in exported.exported
        if mask.light == "red"
    )
    warnings = (*scored.warnings, *red)
    return DemoSummary(data_set, workspace, export, scored, failures, warnings)


def demo_data_set() -> Path:
    """Return the demo data set in the user's documents; create it if it does not exist.

    Raises
    ------
    SaveError
        If the data set cannot be written.
    """
    root = documents_folder() / "demo" / "dataset"
    if not (root / "train_test_splits.csv").exists():
        write_data_set(root, n_cases=_CASES[PhantomMix.MIXED], seed=_SEED)
    return root


def _choose_existing(folder: Path, existing: Existing) -> Existing:
    return existing if folder.exists() else Existing.REFUSE
