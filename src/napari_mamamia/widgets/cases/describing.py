"""The dialog in which a user describes the unknown layout of a folder."""

from pathlib import Path

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.texts import tr
from napari_mamamia.io.layouts.known import PROPOSED
from napari_mamamia.services.case.layout_choice import (
    keep_layout_text,
    preview_layout,
    propose_for,
)
from napari_mamamia.widgets.cases.layout_dialog import LayoutDialog
from napari_mamamia.widgets.cases.listing import Listing
from napari_mamamia.widgets.cases.page import CasesPage
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart


class LayoutQuestion(WindowPart):
    """A controller of the dialog, which stores the user's description in the folder."""

    def __init__(self, context: WindowContext, page: CasesPage, listing: Listing) -> None:
        super().__init__(context)
        self._page = page
        self._listing = listing
        self.dialog: LayoutDialog | None = None
        listing.layout_unknown.connect(self._propose)

    def _propose(self, path: Path, error: MamamiaError) -> None:
        candidates = tuple(
            remedy.values[0]
            for remedy in error.remedies
            if remedy.option == "layout" and remedy.values not in (("FILE",), (PROPOSED,))
        )
        self._jobs.start(
            "layout",
            tr("Reading the names in {name}", name=path.name),
            lambda: propose_for(path, candidates),
            lambda text: self._open_dialog(path, text, candidates),
            failed=lambda _: self._notifier.fail(tr("Opening {name}", name=path.name), error),
        )

    def _open_dialog(self, path: Path, text: str, candidates: tuple[str, ...]) -> None:
        dialog = LayoutDialog(
            path, text, candidates, lambda name: propose_for(path, (name,)), self._page
        )
        dialog.text_changed.connect(lambda changed: self._preview(dialog, path, changed))
        dialog.layout_wanted.connect(lambda wanted: self._use(dialog, path, wanted))
        self.dialog = dialog
        self._preview(dialog, path, text)
        dialog.show()

    def _preview(self, dialog: LayoutDialog, path: Path, text: str) -> None:
        self._jobs.start(
            "layout",
            tr("Trying the description"),
            lambda: preview_layout(path, text),
            dialog.show_preview,
            still=lambda: self.dialog is dialog,
            shown=False,
        )

    def _use(self, dialog: LayoutDialog, path: Path, text: str) -> None:
        try:
            keep_layout_text(path, text, overwrite=True)
        except MamamiaError as error:
            self._notifier.fail(tr("Saving the layout"), error)
            return
        dialog.accept()
        self.dialog = None
        self._listing.open_data_set(path)
