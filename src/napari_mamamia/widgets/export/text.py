"""The sentences of the page Export: what will be written, and what was."""

from collections.abc import Sequence

from napari_mamamia.annotations.harmonise import OrientationProfile, target_names
from napari_mamamia.core.label_rules import LabelRule
from napari_mamamia.services.export.export import ExportSummary
from napari_mamamia.services.export.plan import ExportFormat, FuseRule
from napari_mamamia.widgets.export.wish import ExportWish, MaskSet

_MOST_LINES = 6
_LETTERS = {
    OrientationProfile.LAS_PSR: "LAS (axial) or PSR (sagittal)",
    OrientationProfile.RAS: "RAS",
    OrientationProfile.LPS: "LPS",
}


def what_is_written(sets: Sequence[MaskSet], wish: ExportWish) -> str:
    """Return what an export will write, one line for each part; "" for nothing."""
    if not sets or not wish.formats:
        return ""
    several = len(sets) > 1 or wish.fuse is not FuseRule.NONE
    folder = "masks/NAME/" if several else ""
    n_masks = sum(found.n_cases for found in sets)
    lines = []
    if ExportFormat.NIFTI in wish.formats:
        lines.append(f"{n_masks} mask(s) as {folder}ID.nii.gz, exactly on each case's image")
        if wish.profile is not OrientationProfile.AS_IS:
            lines.append(f"harmonised/: the same turned to {_LETTERS[wish.profile]}, with boxes")
        if wish.with_images:
            lines.append("the images of these cases as ID_0000.nii.gz, ID_0001.nii.gz, …")
    if wish.rules:
        lines.append(_labels_text(wish.rules))
    if ExportFormat.DICOM_SEG in wish.formats:
        lines.append(_SEG_IDENTIFIED if wish.identified_seg else _SEG)
    lines += [text for wanted, text in _FOLDERS if wanted in wish.formats]
    if wish.fuse is not FuseRule.NONE:
        lines.append(f"one more mask of each case: {wish.fuse.value} of the {len(sets)} chosen")
    lines.append("quality.html, the workspace's tables, and manifest.json (SHA-256 of every file)")
    return "\n".join(f"• {line}" for line in lines)


_SEG = "dicom_seg/ID.dcm: the case id stands for the patient, UIDs are replaced"
_SEG_IDENTIFIED = "dicom_seg_identified/ID.dcm WITH the patient's name: for your PACS only"
_FOLDERS = (
    (ExportFormat.CHALLENGE, "challenge/submission.zip"),
    (ExportFormat.NNUNET, "nnunet/Dataset501_…: images, labels, dataset.json"),
    (ExportFormat.BIDS, "bids/sub-ID/anat/…_dseg.nii.gz"),
)


def _labels_text(rules: Sequence[LabelRule]) -> str:
    named = ", ".join(f"{value} {name}" for value, name in target_names(rules))
    left_out = sum(not rule.target for rule in rules)
    rest = f"; {left_out} value(s) left out" if left_out else ""
    return f"labels: {named or 'none'}{rest}; a mask with any other value is refused"


def summary_text(summary: ExportSummary) -> tuple[str, str]:
    """Return what an export wrote, and how it is drawn: "hint", "warning" or "error"."""
    sound = "verified" if not summary.problems else "NOT sound"
    lines = [f"{len(summary.exported)} case(s) {sound} in {summary.out}"]
    lights = [item.light for item in summary.exported if item.light]
    if lights:
        counts = (f"{lights.count(name)} {name}" for name in ("green", "amber", "red"))
        lines.append(f"Quality: {', '.join(counts)}; quality.html says why")
    if summary.search and not summary.problems:
        lines.append(summary.search)
    wrong = [f"{failure.case_id}: {failure.reason}" for failure in summary.failures]
    told = [*wrong, *summary.problems, *summary.notes]
    lines += told[:_MOST_LINES]
    if len(told) > _MOST_LINES:
        lines.append(f"… and {len(told) - _MOST_LINES} more")
    level = "error" if summary.problems else "warning" if wrong else "hint"
    return "\n".join(lines), level
