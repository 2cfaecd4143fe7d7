"""Controller of the Cases page: opens data sets and cases, and updates the table after saving."""

from pathlib import Path
from typing import Final

from qtpy.QtCore import Signal

from napari_mamamia.core.features import find_opener
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.widgets.cases.listing import Listing
from napari_mamamia.widgets.cases.page import CasesPage
from napari_mamamia.widgets.controls.controls import set_primary
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.opening import Opening

_OF_STUDY: Final = tr(
    "This window reads the study {}, so cases are opened on the Review page. To open other data, "
    "start another window."
)


class CasesFlow(WindowPart):
    """The controller that connects the page and the session to listing, opening and saving.

    The signal `folder_recognised` carries a folder that contains a ranking but no data set.
    """

    folder_recognised = Signal(object, object)

    def __init__(
        self,
        context: WindowContext,
        page: CasesPage,
        listing: Listing,
        opening: Opening,
        editing: Editing,
    ) -> None:
        super().__init__(context)
        self._page = page
        self._listing = listing
        self._opening = opening
        self._editing = editing
        page.case_chosen.connect(self.open_case)
        page.start.demo_wanted.connect(self._open_demo)
        page.workspace_chosen.connect(self._change_workspace)
        page.queue_changed.connect(lambda: self._session.set_queue(page.queue()))
        self._session.rows_changed.connect(self._show_rows)
        self._session.case_changed.connect(lambda: page.set_current(self._session.listed_id))
        self._session.row_changed.connect(page.set_row)
        listing.opening_changed.connect(page.show_opening)
        self._session.coming_changed.connect(
            lambda: set_primary(page.open, not self._session.is_coming)
        )
        self._show_recent()

    def open_data_set(self, path: Path, case_id: str | None = None) -> None:
        """Open a data set and one of its cases after the current mask is saved."""
        if self._reads_study():
            return
        opener = find_opener(path, is_listed=True)
        if opener is not None:
            self.folder_recognised.emit(opener, path)
            if self._session.opened is not None:
                self._page.folder.setText(str(self._session.opened.data_set.root))
            return
        self._leave_case(lambda: self._listing.open_data_set(path, case_id))

    def _open_demo(self) -> None:
        self._jobs.start(
            "list",
            tr("Making the demo"),
            self._services.demo_data_set,
            self.open_data_set,
        )

    def open_case(self, case_id: str) -> None:
        """Open a case after the current mask is saved."""
        opened = self._session.opened
        if self._reads_study():
            return

        # Another data set may be listed when the mask has been saved.
        def still_listed() -> None:
            if opened is self._session.opened:
                self._opening.open_case(case_id)

        self._leave_case(still_listed)

    def open_neighbour(self, by: int) -> None:
        """Open the case `by` rows further down the displayed list."""
        case_id = self._session.neighbour(by)
        if case_id is not None:
            self.open_case(case_id)
        elif self._session.queue:
            end = "last" if by > 0 else "first"
            self._notifier.hint(tr("This is the {end} case of the list.", end=end))

    def _reads_study(self) -> bool:
        if self._session.study:
            self._notifier.hint(_OF_STUDY.format(self._session.study))
        return bool(self._session.study)

    def _change_workspace(self, folder: Path) -> None:
        if self._reads_study():
            return
        self._leave_case(lambda: self._listing.change_workspace(folder))

    def _leave_case(self, then: object) -> None:
        def saved(all_saved: bool) -> None:
            if all_saved and callable(then):
                then()

        self._editing.save_if_needed(saved)

    def _show_rows(self) -> None:
        opened, rows = self._session.opened, tuple(self._session.rows.values())
        if opened is None:
            return
        problems = sum(bool(row.problems) for row in rows)
        troubled = tr(", {problems} with a problem", problems=problems) if problems else ""
        summary = tr_n(
            "{n} case{troubled} · {kind}",
            "{n} cases{troubled} · {kind}",
            len(rows),
            troubled=troubled,
            kind=opened.data_set.layout or opened.data_set.kind,
        )
        summary += "".join(
            tr("\nClinical table: {note}", note=note) for note in opened.clinical_notes
        )
        self._page.show_data_set(opened.data_set.root, summary, rows)
        self._page.show_workspace(opened.workspace.root, opened.workspace_why)
        self._page.set_current(self._session.listed_id)
        if not self._session.listed_id:
            self._page.choose_next()
            self._page.take_keyboard()
        self._show_recent()

    def _show_recent(self) -> None:
        recent = self._services.load_preferences().recent
        self._page.set_recent(recent)
