"""The pages of the dock behind their tabs, and two without a tab: Import and the table of keys."""

from collections.abc import Mapping, Sequence
from typing import Final

from qtpy.QtCore import QObject, Signal
from qtpy.QtWidgets import QStackedWidget, QTabBar, QWidget

from napari_mamamia.widgets.controls.controls import column, label, named
from napari_mamamia.widgets.controls.page_area import PageArea

PAGES: Final = (
    "Cases",
    "Predict",
    "Refine",
    "Score",
    "Kinetics",
    "Batch scoring",
    "Export",
    "Review",
)
"""The pages in the order of their tabs, called as in the menu."""

_TAB_TEXTS: Final = {"Batch scoring": "Batch"}


class PageTabs(QObject):
    """Turns the pages; `turned` carries the name of the one that a tab now shows.

    Parameters
    ----------
    pages
        One for each name of `PAGES`, in that order.
    import_page
        Stands behind the tab Cases.
    keys_panel
        Stands behind whichever tab is chosen.

    Attributes
    ----------
    tabs, stack
        The row of tabs and the pages, for a layout.
    """

    turned = Signal(str)

    def __init__(self, pages: Sequence[QWidget], import_page: QWidget, keys_panel: QWidget) -> None:
        super().__init__()
        self._import = PageArea(import_page, "import_page_area")
        self._keys = PageArea(keys_panel, "keys_page_area")
        self._reasons: dict[str, str] = {}
        self._why = label("page_shut", tip="Why this page shows nothing")
        self._notice = PageArea(column(self._why, 1), "page_shut_area")
        self.tabs: QTabBar = named(QTabBar(), "mamamia_tabs", "Pages of this dock")
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
        self.tabs.setUsesScrollButtons(True)
        self.stack = QStackedWidget()
        self._areas = [PageArea(page, f"{page.objectName()}_area") for page in pages]
        for name, area in zip(PAGES, self._areas, strict=True):
            self.tabs.addTab(_TAB_TEXTS.get(name, name))
            self.tabs.setTabToolTip(self.tabs.count() - 1, f"Page {name}")
            self.stack.addWidget(area)
        self.stack.addWidget(self._keys)
        self.stack.addWidget(self._import)
        self.stack.addWidget(self._notice)
        self.tabs.currentChanged.connect(self._turn_to)
        # The chosen tab does not change by a click on it, which shall leave Import and the table of
        # keys.
        self.tabs.tabBarClicked.connect(self._turn_to)

    def shut(self, reasons: Mapping[str, str]) -> None:
        """Show why in place of each page that has a reason here, "" opens it; Import is one too."""
        self._reasons = dict(reasons)
        if self.stack.currentWidget() is not self._keys:
            self._show_area(self.page, self._areas[self.tabs.currentIndex()])

    @property
    def page(self) -> str:
        """The name of the page on screen."""
        return PAGES[self.tabs.currentIndex()]

    @property
    def width(self) -> int:
        """The width in pixels at which every tab and every page is seen whole."""
        wide = int(self.tabs.sizeHint().width())
        return max(wide, *(area.whole_width for area in self._areas))

    @property
    def shown(self) -> QWidget:
        """The page, import page or table of keys on screen."""
        area = self.stack.currentWidget()
        return area.widget() if isinstance(area, PageArea) else self.stack

    def show_page(self, name: str) -> None:
        """Show a page by its name in `PAGES`."""
        self.tabs.setCurrentIndex(PAGES.index(name))
        # The tab may be the chosen one already, with Import or the table of keys in front of its
        # page.
        self._show_area(name, self._areas[PAGES.index(name)])

    def show_import(self) -> None:
        """Show the page Import, which stands behind the tab Cases."""
        self.show_page("Cases")
        self._show_area("Import", self._import)

    def toggle_keys(self) -> None:
        """Show the table of keys, or the page before."""
        if self.stack.currentWidget() is self._keys:
            self._show_area(self.page, self._areas[self.tabs.currentIndex()])
        else:
            self.stack.setCurrentWidget(self._keys)

    def _show_area(self, name: str, area: PageArea) -> None:
        """Show a page, or why it is shut."""
        self._why.setText(self._reasons.get(name, ""))
        self.stack.setCurrentWidget(self._notice if self._why.text() else area)

    def _turn_to(self, index: int) -> None:
        if 0 <= index < len(PAGES):
            self._show_area(PAGES[index], self._areas[index])
            self.turned.emit(PAGES[index])
