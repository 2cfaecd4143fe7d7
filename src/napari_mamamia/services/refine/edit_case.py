"""Open a reader's mask of a case for editing, and save it with its provenance."""

from collections.abc import Callable
from functools import partial

from napari_mamamia.core.case import Case, LabelMap
from napari_mamamia.core.edits import EditingSummary
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import Setting
from napari_mamamia.io.workspace.journal import journal_path
from napari_mamamia.io.workspace.journal_records import Saved
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.case.refine import SavedMask, save_refined
from napari_mamamia.services.refine.edit_opening import Opening
from napari_mamamia.services.refine.editing import OpenEditing
from napari_mamamia.services.refine.mask_prints import as_labels, crc_of
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.smartpaint.session.history import DEFAULT_LIMIT_BYTES


def is_begun(workspace: Workspace, reader: str, case_id: str) -> bool:
    """Return whether the reader has a mask of the case, or a journal of one."""
    mask = workspace.refined(reader, case_id)
    return mask.exists() or journal_path(mask).exists()


def open_editing(
    case: Case,
    workspace: Workspace | None,
    reader: str,
    start: LabelMap | None = None,
    images: FeatureImages | None = None,
    *,
    started_from: str = "",
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
) -> OpenEditing:
    """Open a reader's mask of a case for editing.

    Editing continues from steps that the journal recorded but nobody saved, else from the reader's
    saved mask, else from `start`, else from an empty mask. If there is earlier work, `start` is
    applied to it as a step of its own, which can be undone.

    Parameters
    ----------
    start, started_from
        A mask to begin with and its name, such as "prediction kinetic".
    images
        The images that a SmartPaint brush compares; ``session.images`` may be set later.

    Raises
    ------
    SaveConflictError
        If another window edits the same mask.
    FormatError, GridMismatchError
        If the saved mask is damaged or lies on another grid.
    HiddenError
        If the workspace's blinding hides data that was visible when the mask was made.
    """
    report_progress(0, 3, "Opening the mask")
    opening = Opening(case, workspace, reader, started_from, limit_bytes)
    if start is not None:
        opening.start = as_labels(start)
    try:
        opening.read()
        editing = opening.decide()
    # If the user cancels, the journal must be released too, because it is locked.
    except BaseException:
        if opening.journal is not None:
            opening.journal.close()
        raise
    editing.session.images = images
    report_progress(3, 3, "Opened the mask")
    return editing


def save_editing(editing: OpenEditing, *, accepted: bool = False) -> SavedMask:
    """Save the mask with its provenance; a stroke that is being drawn is not included.

    `accepted` records that the reader accepts this version.

    Raises
    ------
    SaveConflictError, SaveError
        As `save_refined`; journal and session are unchanged.
    ValueError
        If there is no workspace to save to.
    """
    return prepare_saving(editing, accepted=accepted)()


def prepare_saving(editing: OpenEditing, *, accepted: bool = False) -> Callable[[], SavedMask]:
    """Copy the current mask; return a function that saves it, in any thread.

    Call it in the thread that edits. Raises as `save_editing`.
    """
    if editing.workspace is None:
        raise ValueError("expected a workspace to save to, but this case has none")
    editing.session.notice_external()
    # Only its box: memory for a whole volume takes the window's thread up to 60 ms at first use.
    mask = LabelMap.of(editing.session.state.recorded_labels, editing.case.grid)
    # The record at the time of the copy: strokes may follow it before the file is written.
    head = editing.journal.mark() if editing.journal else ""
    summary = editing.session.summary
    return partial(_save_labels, editing, editing.workspace, mask, summary, head, accepted)


def _save_labels(
    editing: OpenEditing,
    workspace: Workspace,
    mask: LabelMap,
    summary: EditingSummary,
    head: str,
    accepted: bool,
) -> SavedMask:
    labels = mask.dense()
    crc = crc_of(labels)
    saved = save_refined(
        workspace,
        editing.reader,
        editing.case,
        labels,
        started_from=summary.started_from,
        seconds=round(summary.seconds, 1),
        replaces=editing.saved,
        parameters=(
            *summary_settings(summary),
            *((("protocol", editing.protocol),) if editing.protocol else ()),
            *editing.reading.settings,
        ),
        inputs=editing.start_files,
        accepted=accepted,
    )
    editing.saved, editing.on_disk = saved, mask
    if editing.journal is not None:
        editing.journal.write(Saved(saved.sha256, crc, head))
    return saved


def summary_settings(summary: EditingSummary) -> tuple[tuple[str, Setting], ...]:
    """Return the summary of a mask's editing as settings of its provenance."""
    return (
        ("strokes", summary.strokes),
        ("other steps", summary.steps),
        ("undos", summary.undos),
        ("path_mm", round(summary.path_mm, 1)),
        ("tools", ", ".join(summary.tools)),
    )
