"""A mask that is open for editing (`OpenEditing`), and unsaved steps after a crash."""

from dataclasses import dataclass
from typing import Final

from napari_mamamia.core.blinding import NEVER_BLIND, BlindReading
from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, LabelMap
from napari_mamamia.core.provenance import InputFile
from napari_mamamia.core.texts import tr_n
from napari_mamamia.io.workspace.journal import Journal
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.case.refine import SavedMask
from napari_mamamia.smartpaint.session.session import EditingSession
from napari_mamamia.smartpaint.session.state import LabelMarks

BACK_TO_SAVED: Final = "return to the saved mask"
BACK_TO_SAVED_MARKS: Final = "return to the saved mask's marks"


@dataclass(frozen=True, slots=True)
class RecoveredWork:
    """Steps that were recorded but not saved before the program ended.

    Parameters
    ----------
    n_steps
        The number of steps, undos and redos since the mask was last saved.
    last_at
        The time at which the last step was recorded, ISO 8601 in UTC.
    labels
        The mask with the recovered steps.
    mask_changed_since
        Whether another program wrote or removed the mask file after this program last saved it.
    n_lost
        The number of later records that could not be read from a damaged journal.
    """

    n_steps: int
    last_at: str
    labels: LabelMap
    mask_changed_since: bool = False
    n_lost: int = 0

    @property
    def text(self) -> str:
        """A sentence about the recovered steps, with the warnings."""
        recovered = tr_n(
            "{n} step from {at} was not saved and has been recovered",
            "{n} steps from {at} were not saved and have been recovered",
            self.n_steps,
            at=self.last_at,
        )
        return "; ".join((recovered, *self.warnings))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings to show before the user keeps the recovered mask."""
        n_lost = tr_n(
            "{n} later record in the edit journal was lost",
            "{n} later records in the edit journal were lost",
            self.n_lost,
        )
        changed = "another program has since changed or removed the mask file"
        return (n_lost,) * bool(self.n_lost) + (changed,) * self.mask_changed_since


@dataclass(slots=True, eq=False)
class OpenEditing:
    """A mask open for editing.

    Parameters
    ----------
    session
        The editing session. If `recovered` is set, its labels are the recovered labels.
    journal
        The journal, or None for a case without a workspace. Without a journal, a crash loses all
        steps, and `notes` state this.
    saved
        The version on disk, which `save_editing` replaces.
    on_disk
        The labels of the version on disk, or None.
    recovered
        The unsaved steps after a crash, which the reader can keep or drop (`back_to_saved`).
    saved_marks
        The marks at the time when that version was saved.
    is_as_saved
        Whether the session equalled that version when it was opened.
    notes
        Sentences to show to the reader.
    reading
        The blinding under which the mask was made, including this sitting.
    protocol
        The name of the annotation protocol for the provenance, which can be set at any time.
    """

    case: Case
    reader: str
    workspace: Workspace | None
    session: EditingSession
    journal: Journal | None = None
    saved: SavedMask | None = None
    on_disk: LabelMap | None = None
    recovered: RecoveredWork | None = None
    notes: tuple[str, ...] = ()
    start_files: tuple[InputFile, ...] = ()
    protocol: str = ""
    saved_marks: tuple[LabelMarks, ...] = ()
    is_as_saved: bool = False
    reading: BlindReading = NEVER_BLIND

    @property
    def problem(self) -> str:
        """The reason why steps cannot be recorded at present, or ""."""
        return self.journal.problem if self.journal else ""

    def back_to_saved(self) -> Box:
        """Drop the recovered steps and return to the mask on disk, as a step that can be undone.

        The marks of the strokes are restored first, as one step for each label. Without a mask on
        disk, editing returns to the initial mask. The result is the box to redraw.
        """
        target = self.on_disk or self.session.start_labels
        self.session.restore_marks(BACK_TO_SAVED_MARKS, self.saved_marks)
        step = self.session.apply_labels(BACK_TO_SAVED, target)
        self.recovered = None
        return step.difference.box if step else Box.empty()

    def close(self) -> None:
        """Record a current or released stroke, and release the journal."""
        try:
            self.session.record_pending()
        finally:
            if self.journal is not None:
                self.journal.close()
