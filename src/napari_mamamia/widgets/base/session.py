"""The open data of one window: data set, case, masks and reader.

Pages follow the signals of the session. `opened` is the listed data set. The open case may belong
to a data set that was listed earlier, so its files are read and written through the case's
`context`, never through `opened`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject, Signal

from napari_mamamia.core.blinding import NOT_BLIND, Blinding
from napari_mamamia.core.case import Case, LabelMap
from napari_mamamia.core.cohort import CaseRecord
from napari_mamamia.core.errors import CaseError, HiddenError
from napari_mamamia.core.provenance import Provenance
from napari_mamamia.core.texts import tr
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.workspace.workspace import FileState, Workspace
from napari_mamamia.services.case.context import CaseContext, CaseKey
from napari_mamamia.services.case.data_set import CaseRow, OpenDataSet
from napari_mamamia.services.case.refine import SavedMask
from napari_mamamia.services.case.show_case import AS_CLINICAL, MaskValues
from napari_mamamia.widgets.base.blinding import ROLES, why_hidden
from napari_mamamia.widgets.base.layers import Role


@dataclass(slots=True, eq=False)
class SessionMask:
    """A mask of the open case; `buffer` is the uint8 ``(z, y, x)`` array of its layer.

    `labels` are the values of the mask's file, if it exists. `started_from` names the origin of a
    refined mask before its first edit, and `saved` is the version on disk. `file` is the workspace
    file of a prediction, otherwise None.
    """

    role: Role
    name: str
    buffer: NDArray[np.uint8]
    labels: LabelMap | None = None
    values: tuple[float, ...] = ()
    provenance: Provenance | None = None
    started_from: str = ""
    file: FileState | None = None
    saved: SavedMask | None = None

    @property
    def raw_values(self) -> MaskValues:
        """The values to score, from the mask's file or the edited array."""
        return self.buffer if self.labels is None else self.labels


class Session(QObject):
    """The state of a window and its signals.

    `blinding` lists the data that are hidden from the reader. Blinding is fixed before the first
    data set is opened, and only `Unblinding` ends it. A mask with a hidden role is never accepted.
    `counting` defines which mask values are tumour: the clinical rule applies until the masks of a
    scoring run are shown. `phases_changed` reports that the case switched between registered and
    original phases. `masks_changed` reports a new, replaced or removed mask, and `mask_edited`
    reports changed voxels of the refined mask. `names` are the names of the cases if their ids are
    hidden, otherwise None. `study` is the name of the review study in this window, or ""; the cases
    of a study are opened only on the Review page. `rows` are the cases of the listed data set, by
    id; `rows_changed` reports new rows, and `row_changed` carries a changed row. `dicom_study` is
    the folder of the DICOM files from which a case was last imported, or None. `is_coming` is True
    while a case is being read or is about to be shown; `coming_changed` reports a change.
    """

    data_set_changed = Signal()
    case_changed = Signal()
    phases_changed = Signal()
    masks_changed = Signal()
    mask_edited = Signal()
    reader_changed = Signal()
    rows_changed = Signal()
    row_changed = Signal(object)
    study_imported = Signal(object)
    queue_changed = Signal()
    blinding_changed = Signal()
    coming_changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.blinding = NOT_BLIND
        self.study = ""
        self.names: Mapping[str, str] | None = None
        self.opened: OpenDataSet | None = None
        self.context: CaseContext | None = None
        self.case: Case | None = None
        self.registered: Case | None = None
        self.masks: dict[Role, SessionMask] = {}
        self.counting = AS_CLINICAL
        self.reader: str | None = None
        self.queue: list[str] = []
        self._listed: list[str] = []
        self.rows: dict[str, CaseRow] = {}
        self.dicom_study: Path | None = None
        self.is_coming = False

    @property
    def workspace(self) -> Workspace | None:
        """The workspace of the open case, or None for a case without a data set."""
        return None if self.context is None else self.context.workspace

    @property
    def files(self) -> CaseFiles | None:
        """The files of the open case, or None if there is no data set."""
        return None if self.context is None else self.context.files

    @property
    def case_id(self) -> str:
        """The id of the open case, or "" if there is none."""
        return "" if self.case is None else self.case.case_id

    @property
    def case_key(self) -> CaseKey:
        """The key of the open case, which differs between data sets even if case ids are equal."""
        return (None, self.case_id) if self.context is None else self.context.key

    @property
    def record(self) -> CaseRecord | None:
        """The clinical row of the open case, or None if there is none."""
        return None if self.context is None else self.context.record

    @property
    def listed_id(self) -> str:
        """The id of the open case if it belongs to the listed data set, otherwise ""."""
        return self.case_id if self.context and self.lists(self.context.opened) else ""

    @property
    def shown_case(self) -> Case | None:
        """The displayed case, with registered phases if these are in use."""
        return self.case if self.registered is None else self.registered

    @property
    def position(self) -> str:
        """The position of the open case in the list, such as "3 / 12", or "" if not in the list.

        The number is the same if the case is opened from results, which order the queue
        differently. A study has its own order, so its cases have no position.
        """
        if self.study or self.listed_id not in self._listed:
            return ""
        return f"{self._listed.index(self.listed_id) + 1} / {len(self._listed)}"

    def neighbour(self, by: int) -> str | None:
        """Return the case that is `by` positions away in the queue, or None beyond its ends."""
        if self.listed_id not in self.queue:
            return self.queue[0] if self.queue else None
        index = self.queue.index(self.listed_id) + by
        return self.queue[index] if 0 <= index < len(self.queue) else None

    def lists(self, opened: OpenDataSet) -> bool:
        """Return whether a data set, with the same workspace, is the listed one."""
        return self.opened is not None and self.opened.place == opened.place

    def shows(self, case: Case) -> bool:
        """Return whether a case is still the open case; an equal id is not enough."""
        return self.case is not None and self.case.signal is case.signal

    def mask(self, role: Role) -> SessionMask | None:
        """Return the mask with a role, or None if there is none."""
        return self.masks.get(role)

    def set_blinding(self, blinding: Blinding) -> None:
        """Set which data are hidden from now on."""
        self.blinding = blinding
        self.blinding_changed.emit()

    def _require_shown(self, mask: SessionMask) -> None:
        why = why_hidden(self.blinding, ROLES[mask.role])
        if why:
            raise HiddenError(why)

    def hides_as(self, opened: OpenDataSet) -> bool:
        """Return whether a data set was opened with the current blinding."""
        return opened.workspace.blinding == self.blinding

    def set_coming(self, is_coming: bool) -> None:
        """Set whether a case is about to be shown."""
        self.is_coming = is_coming
        self.coming_changed.emit()

    def set_data_set(self, opened: OpenDataSet) -> None:
        """Set the listed data set; the open case remains until the user chooses another case."""
        self.opened = opened
        self.data_set_changed.emit()

    def set_rows(self, rows: Sequence[CaseRow]) -> None:
        """Set the cases of the listed data set."""
        self.rows = {row.case_id: row for row in rows}
        self.rows_changed.emit()

    def set_case(
        self, case: Case, context: CaseContext | None, masks: Sequence[SessionMask]
    ) -> None:
        """Set the open case, its context and its masks.

        Raises
        ------
        CaseError
            If `context` belongs to another case.
        """
        if context is not None and context.case_id != case.case_id:
            raise CaseError(
                tr(
                    "Internal error: the data of case {case_id_2} were opened for case {case_id}; "
                    "nothing was written. Please report this error",
                    case_id=case.case_id,
                    case_id_2=context.case_id,
                )
            )
        for mask in masks:
            self._require_shown(mask)
        self.case, self.registered = case, None
        self.context = None if context is None else context.read_by(self.reader)
        self.counting = AS_CLINICAL
        self.masks = {mask.role: mask for mask in masks}
        self.case_changed.emit()
        self.masks_changed.emit()

    def close_case(self) -> None:
        """Close the case; its files are kept."""
        self.case, self.context, self.masks, self.registered = None, None, {}, None
        self.case_changed.emit()
        self.masks_changed.emit()

    def set_loaded(self, case: Case) -> None:
        """Set the open case after all its phases were read into the same array."""
        if self.shows(case):
            self.case = case
            self.case_changed.emit()

    def use_registered(self, case: Case | None) -> None:
        """Show registered phases of the open case, or its original phases if `case` is None."""
        if case is not self.registered:
            self.registered = case
            self.phases_changed.emit()

    def set_mask(self, mask: SessionMask) -> None:
        """Add or replace a mask."""
        self._require_shown(mask)
        self.masks[mask.role] = mask
        self.masks_changed.emit()

    def drop_mask(self, role: Role) -> None:
        """Remove a mask; its file is kept."""
        if self.masks.pop(role, None) is not None:
            self.masks_changed.emit()

    def set_reader(self, name: str | None) -> None:
        """Set the reader's name for the open case and for later cases."""
        self.reader = name
        if self.opened is not None:
            self.opened = self.opened.read_by(name)
        if self.context is not None:
            self.context = self.context.read_by(name)
        self.reader_changed.emit()

    def set_queue(self, queue: list[str], *, is_list: bool = True) -> None:
        """Set the order of the next cases, as in the list or, if not `is_list`, the results."""
        self.queue = queue
        if is_list:
            self._listed = queue
        self.queue_changed.emit()

    def set_row(self, opened: OpenDataSet, row: CaseRow) -> None:
        """Update the row of a saved case; only rows of the listed data set are shown."""
        if self.lists(opened):
            self.rows[row.case_id] = row
            self.row_changed.emit(row)

    def set_dicom_study(self, folder: Path) -> None:
        """Set the folder of the DICOM files from which a case was imported."""
        self.dicom_study = folder
        self.study_imported.emit(folder)
