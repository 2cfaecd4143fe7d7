"""`OpenEditing`: a mask open for editing, and `RecoveredWork`, what a crash left of it."""

from dataclasses import dataclass
from typing import Final

from napari_mamamia.core.blinding import NEVER_BLIND, BlindReading
from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, LabelMap
from napari_mamamia.core.provenance import InputFile
from napari_mamamia.io.workspace.journal import Journal
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.case.refine import SavedMask
from napari_mamamia.smartpaint.session.session import EditingSession
from napari_mamamia.smartpaint.session.state import LabelMarks

BACK_TO_SAVED: Final = "back to the saved mask"
BACK_TO_SAVED_MARKS: Final = "back to the saved mask's marks"


@dataclass(frozen=True, slots=True)
class RecoveredWork:
    """Steps that were recorded but not saved, because the program ended.

    Parameters
    ----------
    n_steps
        Steps, undos and redos since the mask was last saved.
    last_at
        When the last of them was recorded, ISO 8601 in UTC.
    labels
        The mask with them.
    mask_changed_since
        Whether something else wrote or removed the mask file after it was last saved from here.
    n_lost
        Records after these steps that a damaged journal could not give back.
    """

    n_steps: int
    last_at: str
    labels: LabelMap
    mask_changed_since: bool = False
    n_lost: int = 0

    @property
    def text(self) -> str:
        """What was found, in plain words."""
        return (
            f"{self.n_steps} step(s) of {self.last_at} were not saved and are recovered"
            + "".join(f"; {more}" for more in self.warnings)
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What else there is to know before the recovered mask is kept."""
        lost = f"{self.n_lost} later record(s) of the journal are lost"
        changed = "the mask file was changed or removed by something else since"
        return (lost,) * bool(self.n_lost) + (changed,) * self.mask_changed_since


@dataclass(slots=True, eq=False)
class OpenEditing:
    """A mask open for editing.

    Parameters
    ----------
    session
        Its labels are the recovered ones where `recovered` is set.
    journal
        None for a case that has no workspace: nothing survives a crash then, and `notes` say so.
    saved
        The version on disk; `save_editing` replaces it.
    on_disk
        The labels of that version, None where there is none.
    recovered
        What a crash left, for the reader to keep or to leave (`back_to_saved`).
    saved_marks
        What strokes had said when that version was saved.
    is_as_saved
        Whether the session stands where that version was saved, at opening.
    notes
        Plain sentences to show.
    reading
        How blind the mask was made, this time included.
    protocol
        Name of the annotation protocol in use, for the provenance; may be set at any time.
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
        """Why steps are not recorded at this moment; "" while all is well."""
        return self.journal.problem if self.journal else ""

    def back_to_saved(self) -> Box:
        """Leave what was recovered for the mask on disk, as a step that can be undone.

        The marks of its strokes go too, as a step before it for each label. Without a mask on disk,
        back to what the editing began with. Returns the box to draw anew.
        """
        target = self.on_disk or self.session.start_labels
        self.session.restore_marks(BACK_TO_SAVED_MARKS, self.saved_marks)
        step = self.session.apply_labels(BACK_TO_SAVED, target)
        self.recovered = None
        return step.difference.box if step else Box.empty()

    def close(self) -> None:
        """Record a stroke in hand or lifted, and let go of the journal."""
        try:
            self.session.record_pending()
        finally:
            if self.journal is not None:
                self.journal.close()
