"""Widgets for missing and contradictory answers, with links to their questions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QListWidgetItem, QWidget

from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.controls.controls import fill_column, label
from napari_mamamia.widgets.controls.line_list import make_line_list
from napari_mamamia.widgets.findings.gaps import Gap, describe_gaps, describe_missing
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_MOST_NAMED: Final = 1
"""Number of missing answers named in a brief list above a button."""


class GapList(QWidget):
    """A list of gaps; `gap_wanted` carries the `Gap` of a clicked or activated line.

    Parameters
    ----------
    name
        The objectName of the list; the title's objectName is this name with `_title` appended.
    is_brief
        Whether to show at most two lines without a title: one for contradictory answers and one for
        missing answers.
    """

    gap_wanted = Signal(object)

    def __init__(self, name: str, *, is_brief: bool = False) -> None:
        super().__init__()
        tip = tr(
            "Missing or contradictory answers. Click a line or press Enter to go to the question."
        )
        self.title = label(f"{name}_title", tip=tip)
        self.title.setProperty("heading", True)
        self.title.setVisible(not is_brief)
        self._is_brief = is_brief
        self.lines = make_line_list(name, tip)
        self.lines.itemClicked.connect(self._want_gap)
        self.lines.itemActivated.connect(self._want_gap)
        self._gaps: tuple[Gap, ...] = ()
        fill_column(self, self.title, self.lines, spacing=2)
        self.hide()

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the lines."""
        return tuple(self.lines.item(index).text() for index in range(self.lines.count()))

    def show_gaps(self, gaps: Sequence[Gap]) -> None:
        """Show these gaps, keeping the selected line; hide the list if there are none."""
        if tuple(gaps) == self._gaps:
            return
        self._gaps = tuple(gaps)
        chosen = self.lines.currentItem()
        text = "" if chosen is None else chosen.text()
        self.lines.clear()
        for line, gap in _list_brief(gaps) if self._is_brief else _list_all(gaps):
            item = QListWidgetItem(line)
            item.setData(Qt.ItemDataRole.UserRole, gap)
            item.setToolTip(tr("{gap}. Click to go to the question.", gap=gap.text))
            self.lines.addItem(item)
            if item.text() == text:
                self.lines.setCurrentItem(item)
        self.title.setText(_count_gaps(self._gaps))
        self.lines.fit()
        self.setVisible(bool(gaps))

    # -------------------------------------------------------------------- inner

    def _want_gap(self, item: QListWidgetItem) -> None:
        self.gap_wanted.emit(item.data(Qt.ItemDataRole.UserRole))


@dataclass(frozen=True, slots=True)
class _Form:
    """A form that is checked for gaps, with its page and functions that list and show the gaps."""

    page: str
    list_gaps: Callable[[], tuple[Gap, ...]]
    show_gap: Callable[[Gap], object]


class AcceptChecks(WindowPart):
    """A component that lists the gaps of the open case's form above the Accept button.

    Each line links to its question. Each case has one form: the study's form, or the form of the
    Findings page if a reader has started to fill in that form.

    Parameters
    ----------
    listed
        The list widget.
    show_page
        Function that shows a page by its name.
    """

    def __init__(
        self, context: WindowContext, listed: GapList, show_page: Callable[[str], object]
    ) -> None:
        super().__init__(context)
        self._listed = listed
        self._show_page = show_page
        self._forms: list[_Form] = []
        listed.gap_wanted.connect(self._go_to)
        self._session.case_changed.connect(self.look)

    def follow(
        self,
        page: str,
        list_gaps: Callable[[], tuple[Gap, ...]],
        show_gap: Callable[[Gap], object],
    ) -> None:
        """List the gaps of this page's form as well; the page calls `look` after each change."""
        self._forms.append(_Form(page, list_gaps, show_gap))
        self.look()

    def look(self) -> None:
        """Update the list of gaps."""
        self._listed.show_gaps(self._list_gaps())

    def accept(self, go_on: Callable[[], object]) -> None:
        """Go to the next case immediately, and report the acceptance with the gaps of the case.

        The last case in the list stays open.
        """
        case_id, gaps = self._session.case_id, describe_gaps(self._list_gaps())
        last = "" if self._session.neighbour(1) else tr("This is the last case in the list.")
        go_on()
        said = tr("{case_id} is accepted.", case_id=case_id)
        self._notifier.hint(" ".join(filter(None, (said, last, gaps))))

    # -------------------------------------------------------------------- inner

    def _list_gaps(self) -> tuple[Gap, ...]:
        return tuple(gap for form in self._forms for gap in form.list_gaps())

    def _go_to(self, gap: Gap) -> None:
        for form in self._forms:
            if gap in form.list_gaps():
                self._show_page(form.page)
                form.show_gap(gap)
                return


def _list_all(gaps: Sequence[Gap]) -> Iterator[tuple[str, Gap]]:
    """Yield a line for each gap; contradictions come first because they are errors more often."""
    for gap in sorted(gaps, key=lambda gap: not gap.contradicts):
        yield (f"⚠ {gap.text}" if gap.contradicts else gap.text), gap


def _list_brief(gaps: Sequence[Gap]) -> Iterator[tuple[str, Gap]]:
    contradictory = [gap for gap in gaps if gap.contradicts]
    missing = [gap for gap in gaps if not gap.contradicts]
    if contradictory:
        first, more = contradictory[0], len(contradictory) - 1
        end = tr(" and {more} more", more=more) if more else ""
        yield f"⚠ {first.text}{end}", first
    if missing:
        yield describe_missing([gap.text for gap in missing], _MOST_NAMED), missing[0]


def _count_gaps(gaps: Sequence[Gap]) -> str:
    n_contradictory = sum(gap.contradicts for gap in gaps)
    n_missing = len(gaps) - n_contradictory
    missing = tr("Missing: {n}", n=n_missing) if n_missing else ""
    contradictory = tr("Contradictory: {n}", n=n_contradictory) if n_contradictory else ""
    return " · ".join(filter(None, (missing, contradictory)))
