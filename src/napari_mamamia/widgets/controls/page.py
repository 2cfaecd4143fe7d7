"""A page of the dock, which may require something first, such as an open case."""

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.controls.controls import button, column, fill_column, label
from napari_mamamia.widgets.controls.page_area import ALL, PageArea


class Page(QWidget):
    """A page that shows its content, or a missing requirement and a button that leads to it.

    The signal `cases_wanted` requests the Cases page. Subclasses fill `body` (a vertical layout).
    """

    cases_wanted = Signal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self.missing = label(
            f"{name}_missing", tip=tr("What must be done before this page can be used.")
        )
        self.to_cases = button(
            f"{name}_to_cases",
            tr("Choose a case…"),
            tr("Goes to the Cases page."),
            self.cases_wanted.emit,
            primary=True,
        )
        self._content = QWidget()
        self.body = QVBoxLayout(self._content)
        self.body.setContentsMargins(0, 0, 0, 0)
        fill_column(self, self.missing, self.to_cases, (self._content, ALL), 1)
        self.need(tr("Open a case first."))

    def need(self, what: str) -> None:
        """Show a missing requirement; "" shows the content of the page."""
        self.missing.setText(what)
        self.missing.setVisible(bool(what))
        self.to_cases.setVisible(bool(what))
        self._content.setVisible(not what)

    def add_form(self, *parts: QWidget) -> None:
        """Add widgets that scroll if they do not fit; widgets added later remain visible.

        Call `body.addStretch()` after the last widget, so that nothing scrolls if there is enough
        space.
        """
        self._add_area("form", *parts)

    def add_answer(self, *parts: QWidget) -> None:
        """Add the widgets that show a result, which use at most half of the page's height."""
        self._answer = self._add_area("answer", *parts)
        self._answer.hide()

    def show_answer(self, shown: bool) -> None:
        """Show the result from its beginning, or hide it."""
        self._answer.setVisible(shown)
        self._answer.verticalScrollBar().setValue(0)

    def _add_area(self, name: str, *parts: QWidget) -> PageArea:
        own_name = f"{self.objectName()}_{name}"
        area = PageArea(column(*parts), own_name, is_part=True, is_fitted=True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.body.addWidget(area, stretch=ALL)
        return area
