"""The pages of the dock behind their tabs, and two without a tab: Import and the table of keys."""

from collections.abc import Sequence
from typing import Final

from qtpy.QtCore import QObject, Signal
from qtpy.QtWidgets import QStackedWidget, QTabBar, QWidget

from napari_mamamia.widgets.controls import named

__all__ = ["PAGES", "PageTabs"]

PAGES: Final = ("Cases", "Predict", "Refine", "Score", "Kinetics", "Batch scoring", "Export")
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
        self._import = import_page
        self._keys = keys_panel
        self.tabs: QTabBar = named(QTabBar(), "mamamia_tabs", "Pages of this dock")
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
        self.tabs.setUsesScrollButtons(False)
        self.stack = QStackedWidget()
        for name, page in zip(PAGES, pages, strict=True):
            self.tabs.addTab(_TAB_TEXTS.get(name, name))
            self.tabs.setTabToolTip(self.tabs.count() - 1, f"Page {name}")
            self.stack.addWidget(page)
        self.stack.addWidget(keys_panel)
        self.stack.addWidget(import_page)
        self.tabs.currentChanged.connect(self._turn_to)
        self.tabs.tabBarClicked.connect(self._turn_to)

    @property
    def page(self) -> str:
        """The name of the page on screen."""
        return PAGES[self.tabs.currentIndex()]

    def show_page(self, name: str) -> None:
        """Show a page by its name in `PAGES`."""
        self.tabs.setCurrentIndex(PAGES.index(name))
        self.stack.setCurrentIndex(PAGES.index(name))

    def show_import(self) -> None:
        """Show the page Import, which stands behind the tab Cases."""
        self.show_page("Cases")
        self.stack.setCurrentWidget(self._import)

    def toggle_keys(self) -> None:
        """Show the table of keys, or the page before."""
        shown = self.stack.currentWidget() is self._keys
        at = self.tabs.currentIndex() if shown else self.stack.indexOf(self._keys)
        self.stack.setCurrentIndex(at)

    def _turn_to(self, index: int) -> None:
        if 0 <= index < len(PAGES):
            self.stack.setCurrentIndex(index)
            self.turned.emit(PAGES[index])
