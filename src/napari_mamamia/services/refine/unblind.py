"""Record the end of a blinded reading in the journal of the reader's mask."""

from dataclasses import replace

from napari_mamamia.core.blinding import NOT_BLIND, Blinding
from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import SaveError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.refine.edit_case import is_begun, open_editing


def record_unblinding(case: Case, workspace: Workspace, reader: str) -> None:
    """Record in the reader's journal of a case that the blinded reading has ended.

    Hidden data may be shown only after this function returns. If the reader has not drawn anything
    yet, the journal begins with this event, so later drawing does not count as a blinded reading.

    Raises
    ------
    SaveConflictError
        If the mask is being edited in another window.
    SaveError
        If the event cannot be written.
    """
    report_progress(0, 1, "Recording the end of the blind reading")
    if not is_begun(workspace, reader, case.case_id):
        _note_opening(case, workspace, reader, workspace.blinding)
    _note_opening(case, workspace, reader, NOT_BLIND)
    report_progress(1, 1, "Recorded the end of the blind reading")


def _note_opening(case: Case, workspace: Workspace, reader: str, blinding: Blinding) -> None:
    editing = open_editing(case, replace(workspace, blinding=blinding, reader=reader), reader)
    try:
        if editing.journal is not None:
            editing.journal.mark()
        if editing.problem:
            raise SaveError(
                f"the end of the blind reading could not be recorded, because {editing.problem}"
            )
    finally:
        editing.close()
