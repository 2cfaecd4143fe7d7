"""The end of a blind reading of a case, as an event in the journal of the reader's mask."""

from dataclasses import replace

from napari_mamamia.core.blinding import NOT_BLIND, Blinding
from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import SaveError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.refine.edit_case import is_begun, open_editing


def record_unblinding(case: Case, workspace: Workspace, reader: str) -> None:
    """Note in the reader's journal of a case that it was read blind, and is not any more.

    Nothing may be shown before this returns. Where the reader has drawn nothing yet the journal
    begins with it: what is drawn later is no blind reading.

    Raises
    ------
    SaveConflictError
        If another window edits the mask.
    SaveError
        If the note cannot be written.
    """
    report_progress(0, 1, "Noting the end of the blind reading")
    if not is_begun(workspace, reader, case.case_id):
        _note_opening(case, workspace, reader, workspace.blinding)
    _note_opening(case, workspace, reader, NOT_BLIND)
    report_progress(1, 1, "Noted the end of the blind reading")


def _note_opening(case: Case, workspace: Workspace, reader: str, blinding: Blinding) -> None:
    editing = open_editing(case, replace(workspace, blinding=blinding, reader=reader), reader)
    try:
        if editing.journal is not None:
            editing.journal.mark()
        if editing.problem:
            raise SaveError(f"expected to note the end of the blind reading, but {editing.problem}")
    finally:
        editing.close()
