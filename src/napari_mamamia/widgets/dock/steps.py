"""The work list and the three steps of a case; their sections are pages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from qtpy.QtCore import QObject, Qt, Signal
from qtpy.QtWidgets import (
    QAbstractButton,
    QButtonGroup,
    QLayout,
    QPushButton,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.base.header import Header
from napari_mamamia.widgets.base.keys import KEYS, Key, with_key
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.base.pages import find_page, list_pages, list_sections
from napari_mamamia.widgets.controls.call_later import call_later
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    label,
    row,
    set_primary,
    tool_button,
)
from napari_mamamia.widgets.controls.page import Page
from napari_mamamia.widgets.controls.page_area import PageArea
from napari_mamamia.widgets.measure.section import MeasureSection
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.opening import Opening
from napari_mamamia.widgets.viewer.view_panel import ViewPanel


@dataclass(frozen=True, slots=True)
class Step:
    """A step of reading: its name, purpose, shortcut action and sections."""

    name: str
    tip: str
    action: str
    sections: tuple[str, ...]

    @property
    def short(self) -> str:
        """The name of the step in an objectName."""
        return self.name.lower().partition(" &")[0].replace(" ", "_")


WORK_LIST: Final = Step(
    tr("Work list"),
    tr("Work on many cases: open, import, score, leaderboard"),
    "work_list",
    list_sections("Work list"),
)
STEPS: Final = (
    Step(
        "Read",
        tr("Look at the case: view, findings, kinetics"),
        "read",
        list_sections("Read"),
    ),
    Step("Mask", tr("Make the mask: predict, paint, grow"), "mask", list_sections("Mask")),
    Step(
        tr("Check & export"),
        tr("Compare with the reference, write reports and export masks"),
        "check",
        list_sections("Check & export"),
    ),
)
"""The steps of a case, in order."""

SECTIONS: Final = tuple(page for step in (WORK_LIST, *STEPS) for page in step.sections)
PAGES: Final = tuple(page for page in SECTIONS if find_page(page).menu)
"""The sections that have an entry in napari's menu, by name."""


class StepPanel(QWidget):
    """A panel with the sections of a step, one of which is open, and a button for the next step.

    The signal `turned` carries the name of a section that was opened by a click.

    Parameters
    ----------
    step
        The step that the panel shows.
    pages
        The pages of the step's sections, in order; an empty widget stands for a page that is
        created later.
    next_step
        The button that leads to the next step; None for the work list.
    head, foot
        Rows above and below the sections that belong to the step itself, or None.
    """

    turned = Signal(str)

    def __init__(
        self,
        step: Step,
        pages: Sequence[QWidget],
        next_step: QPushButton | None = None,
        head: QWidget | None = None,
        foot: QWidget | None = None,
    ) -> None:
        super().__init__()
        self.setObjectName(f"{step.short}_step")
        self.step = step
        self.section = step.sections[0]
        self._next, self._rows = next_step, [line for line in (head, foot) if line is not None]
        self.may_lead = True
        self.areas = {
            name: PageArea(page, f"{page.objectName()}_area")
            for name, page in zip(step.sections, pages, strict=True)
        }
        self._heads = {name: self._make_head(name) for name in step.sections}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(3)
        if head is not None:
            self._column.addWidget(head)
        for name, area in self.areas.items():
            self._column.addWidget(self._heads[name])
            self._column.addWidget(area, stretch=1)
        if foot is not None:
            self._column.addWidget(foot)
        if next_step is not None:
            next_step.setProperty("onward", True)
            # Where the step has a button of its own, that one is the widest.
            right = Qt.AlignmentFlag.AlignRight
            self._column.addWidget(next_step, 0, right if foot else Qt.AlignmentFlag(0))
        self.open(self.section)

    def open(self, section: str, instead: QWidget | None = None) -> None:
        """Open a section, or show the widget `instead` in place of its page."""
        self.section = section
        for name, area in self.areas.items():
            is_open = name == section
            area.setVisible(is_open and instead is None)
            head = self._heads[name]
            head.setChecked(is_open)
            head.setText(f"{'▾' if is_open else '▸'}  {tr(find_page(name).title or name)}")
        if instead is not None:
            self._column.insertWidget(self._column.indexOf(self._heads[section]) + 1, instead, 1)
            instead.show()
        self.mark_next()

    def mark_next(self) -> None:
        """Highlight the button for the next step, unless something else must be done first."""
        if self._next is None:
            return
        before = any(
            control.property("primary") and control.isVisibleTo(self)
            for area in (self.areas[self.section], *self._rows)
            for control in area.findChildren(QAbstractButton)
        )
        set_primary(self._next, self.may_lead and not before)

    # -------------------------------------------------------------------- inner

    def _make_head(self, name: str) -> QPushButton:
        word = name.lower().partition(" ")[0]
        head = button(
            f"section_{word}",
            tr(name),
            tr(tip) if (tip := find_page(name).tip) else tr("Opens {section}", section=tr(name)),
            lambda: self.turned.emit(name),
        )
        head.setCheckable(True)
        head.setProperty("section", True)
        return head


class Steps(QObject):
    """An object that switches between pages; `turned` carries the name of the displayed page.

    The signal `clicked` reports that the user switched the page, and `go_on_wanted` that the last
    step is finished. `filled` carries the width in pixels that a new page needs.

    Parameters
    ----------
    late
        Functions that create the pages by their names in `SECTIONS`, and also Import and Keys, when
        they are first shown. Each function calls `fill`. Import replaces Cases in the work list,
        and
        Keys covers any displayed page.
    view
        The panel with the display settings, which is placed in its section or elsewhere.
    accept_row, accepted_line
        The row below the Mask step, and the line above the Check step.

    Attributes
    ----------
    view, measure, view_home
        The panel with the display settings, the measuring section, and the section for both.
    bar, stack
        The bar with the buttons of the work list and the steps, and the stack of their panels.
    """

    turned = Signal(str)
    clicked = Signal()
    go_on_wanted = Signal()
    filled = Signal(int)

    def __init__(
        self,
        late: Mapping[str, Callable[[], object]],
        view: ViewPanel,
        accept_row: QWidget,
        accepted_line: QWidget,
    ) -> None:
        super().__init__()
        self.view, self.measure = view, MeasureSection()
        self.view_home = column(self.measure, 1)
        self.view_home.setObjectName("view")
        self._late = dict(late)
        by_name = {name: QWidget() for name in late} | {"View": self.view_home}
        self._import = PageArea(by_name["Import"], "import_page_area")
        self._keys = PageArea(by_name["Keys"], "keys_page_area")
        self._reasons: dict[str, str] = {}
        self._why = label("page_shut", tip=tr("Why this page is empty"))
        self._notice = PageArea(column(self._why, 1), "page_shut_area")
        self._page = SECTIONS[0]
        self.stack = QStackedWidget()
        self._next_buttons = [self._make_next(index) for index in range(len(STEPS))]
        self.work_list = StepPanel(WORK_LIST, [by_name[name] for name in WORK_LIST.sections])
        rows = ((None, None), (None, accept_row), (accepted_line, None))
        self._accept_row = accept_row
        self.panels = [
            StepPanel(step, [by_name[name] for name in step.sections], after, *lines)
            for step, after, lines in zip(STEPS, self._next_buttons, rows, strict=True)
        ]
        for panel in (self.work_list, *self.panels):
            panel.turned.connect(self._click_section)
            self.stack.addWidget(panel)
        self.stack.addWidget(self._keys)
        for spare in (self._import, self._notice):
            spare.setParent(self.stack)
            spare.hide()
        self._buttons = {
            panel.step.name: self._make_button(panel) for panel in (self.work_list, *self.panels)
        }
        self._group = QButtonGroup(self)
        for control in self._buttons.values():
            self._group.addButton(control)
        self.bar: QWidget = row(*self._buttons.values(), 1)
        self.bar.setObjectName("step_bar")
        self.set_case(is_open=False)
        self.set_keys(KEYS)

    @property
    def page(self) -> str:
        """The name of the displayed page."""
        return self._page

    @property
    def is_importing(self) -> bool:
        """Whether the Import page is displayed."""
        return bool(self._import.isVisibleTo(self.stack))

    @property
    def step(self) -> str:
        """The name of the displayed step, or of the work list."""
        return self._panel_of(self._page).step.name

    @property
    def width(self) -> int:
        """The width in pixels at which the steps and all pages are fully visible."""
        wide = int(self.bar.sizeHint().width())
        areas = [area for panel in (self.work_list, *self.panels) for area in panel.areas.values()]
        return max(wide, *(area.whole_width for area in (*areas, self._import)))

    @property
    def shown(self) -> QWidget:
        """The displayed page or table of shortcuts."""
        page = self._panel_of(self._page).areas[self._page]
        areas = (self._keys, self._import, self._notice, page)
        return next((a.widget() for a in areas if a.isVisibleTo(self.stack)), self.stack)

    def find_area(self, name: str) -> PageArea:
        """Return the scroll area for a page."""
        special = {"Import": self._import, "Keys": self._keys}
        return special.get(name) or self._panel_of(name).areas[name]

    def fill(self, name: str, page: QWidget) -> None:
        """Insert a new page into its scroll area."""
        self._late.pop(name)
        area = self.find_area(name)
        area.setWidget(page)
        area.setObjectName(f"{page.objectName()}_area")
        if isinstance(page, Page):
            page.cases_wanted.connect(lambda: self.show_page("Cases"))
        self.filled.emit(area.whole_width)

    def make_pages(self, *names: str) -> None:
        """Create pages that do not exist yet; without names, create all of them."""
        for name in names or tuple(self._late):
            if name in self._late:
                self._late[name]()

    @property
    def still_to_come(self) -> tuple[str, ...]:
        """The names of the pages that `make_pages` would create."""
        return tuple(self._late)

    def shut(self, reasons: Mapping[str, str]) -> None:
        """Show a reason instead of each page in `reasons`, including Import; "" unlocks a page."""
        self._reasons = dict(reasons)
        if self.stack.currentWidget() is not self._keys:
            self._show_section(self._page)

    def show_page(self, name: str) -> None:
        """Show a page by its name in `SECTIONS`."""
        is_new = name != self._page or self.is_importing
        self._page = name
        self._show_section(name)
        if is_new:
            self.turned.emit(name)

    def show_step(self, name: str) -> None:
        """Show a step, or the work list, with the section that was last open.

        If that section is locked, show the first section that is not.
        """
        panel = next(p for p in (self.work_list, *self.panels) if p.step.name == name)
        sections = (panel.section, *panel.step.sections)
        usable = (section for section in sections if not self._reasons.get(section))
        self.show_page(next(usable, panel.section))

    def show_import(self) -> None:
        """Show the Import page, which replaces the case list in the work list."""
        self._page = "Cases"
        self._show_section("Cases", "Import")
        self.turned.emit("Cases")

    @property
    def shows_keys(self) -> bool:
        """Whether the table of shortcuts is shown."""
        return self.stack.currentWidget() is self._keys

    def toggle_keys(self) -> None:
        """Show the table of shortcuts, or the previous page."""
        if self.shows_keys:
            self._show_section(self._page)
        else:
            self.make_pages("Keys")
            self.stack.setCurrentWidget(self._keys)

    def set_case(self, *, is_open: bool, has_mask: bool = False) -> None:
        """Show the next-step buttons for an open case; with a mask, Mask opens on Refine."""
        self._is_open = is_open
        for control in (*self._next_buttons, self._accept_row):
            control.setVisible(is_open)
        self._next_buttons[-1].setVisible(is_open and self.panels[-1].may_lead)
        mask = next(panel for panel in self.panels if "Refine" in panel.areas)
        begins_with = "Refine" if has_mask else "Predict"
        if self.step != mask.step.name and mask.section != begins_with:
            mask.open(begins_with)
        # Later, because pages highlight their own buttons on the same signals.
        call_later(self, lambda: self._panel_of(self._page).mark_next())

    def set_accepted(self, *, is_accepted: bool, has_mask: bool) -> None:
        """Hide the way from the Mask step, and to the next case, while the mask is not accepted.

        The header and the shortcuts still open the next case.
        """
        _read, mask, check = self.panels
        mask.may_lead = is_accepted
        check.may_lead = is_accepted or not has_mask
        self._next_buttons[-1].setVisible(self._is_open and check.may_lead)
        self._panel_of(self._page).mark_next()

    def set_keys(self, keys: Sequence[Key]) -> None:
        """Show the shortcuts for the next steps on the buttons."""
        shown = {key.action: key.shown for key in keys}
        for control, after in zip(self._next_buttons, (*STEPS[1:], None), strict=True):
            words = tr("Next step: {step}", step=tr(after.name)) if after else tr("Next case")
            text = f"{words}   {shown.get(after.action if after else 'next_case', '')}"
            control.setText(text.replace("&", "&&").rstrip())

    # -------------------------------------------------------------------- inner

    def _make_button(self, panel: StepPanel) -> QToolButton:
        step = panel.step
        tip = with_key(step.tip, step.action)
        text = tr(step.name).replace("&", "&&")
        control = tool_button(f"step_{step.short}", text, tip, lambda: self._click_step(step))
        control.setCheckable(True)
        control.setProperty("framed", True)
        return control

    def _make_next(self, at: int) -> QPushButton:
        if at + 1 == len(STEPS):
            control = button(
                "step_next_case", "", tr("Opens the next case."), self.go_on_wanted.emit
            )
        else:
            after = STEPS[at + 1]
            tip = with_key(after.tip, after.action)
            control = button(f"step_next_{after.short}", "", tip, lambda: self._click_step(after))
        policy = control.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # the rows above it stay where they are
        control.setSizePolicy(policy)
        return control

    def _click_step(self, step: Step) -> None:
        self.clicked.emit()
        self.show_step(step.name)

    def _click_section(self, name: str) -> None:
        self.clicked.emit()
        self.show_page(name)

    def _panel_of(self, page: str) -> StepPanel:
        panels = (self.work_list, *self.panels)
        return next(panel for panel in panels if page in panel.areas)

    def _show_section(self, page: str, what: str = "") -> None:
        """Show a page, Import, or the reason why it is locked."""
        panel = self._panel_of(page)
        self._why.setText(self._reasons.get(what or page, ""))
        instead: QWidget | None = self._import if what == "Import" else None
        if self._why.text():
            instead = self._notice
        else:
            self.make_pages(what or page)
        for spare in (self._import, self._notice):
            spare.setVisible(spare is instead)
        panel.open(page, instead)
        self.stack.setCurrentWidget(panel)
        self._buttons[panel.step.name].setChecked(True)


class StepFlow(WindowPart):
    """A component that leads from the work list to a step after a case was opened.

    Parameters
    ----------
    top
        The layout at the top of the dock, in which the View strip is placed below the header.
    """

    def __init__(
        self, context: WindowContext, header: Header, pages: Steps, opening: Opening, top: QLayout
    ) -> None:
        super().__init__(context)
        self._header = header
        self._pages = pages
        self._top = top
        self._has_picture = True
        self._last_step = STEPS[0].name
        self._strip: ViewPanel = pages.view
        self._strip.setParent(pages.view_home)
        header.view_wanted.connect(self._place_strip)
        pages.turned.connect(self._follow_page)
        pages.clicked.connect(header.drop_hint)
        opening.case_shown.connect(self.begin_case)
        self._session.case_changed.connect(self._follow_case)
        self._session.masks_changed.connect(self._follow_case)
        self._place_strip()

    def actions(self) -> dict[str, Callable[..., object]]:
        """Return the actions of the steps' shortcuts, by their names in the table."""
        actions: dict[str, Callable[..., object]] = {WORK_LIST.action: self._toggle_work_list}
        actions |= {step.action: partial(self._pages.show_step, step.name) for step in STEPS}
        return actions | {
            f"page_{page.short}": partial(self._pages.show_page, page.name)
            for page in list_pages()
            if page.key and page.name in SECTIONS
        }

    def follow_picture(self, is_there: bool) -> None:
        """Hide the View strip while the image is not visible."""
        self._has_picture = is_there
        self._place_strip()

    def begin_case(self) -> None:
        """Leave the work list for the last used step, unless the Import page is displayed."""
        if self._pages.step == WORK_LIST.name and not self._pages.is_importing:
            self._pages.show_step(self._last_step)

    # -------------------------------------------------------------------- inner

    def _toggle_work_list(self) -> None:
        is_there = self._pages.step == WORK_LIST.name and self._session.case is not None
        self._pages.show_step(self._last_step if is_there else WORK_LIST.name)

    def _follow_case(self) -> None:
        masks = (self._session.mask(role) for role in (Role.PREDICTION, Role.REFINED))
        has_mask = any(mask is not None for mask in masks)
        self._pages.set_case(is_open=self._session.case is not None, has_mask=has_mask)

    def _follow_page(self, _page: str) -> None:
        if self._pages.step != WORK_LIST.name:
            self._last_step = self._pages.step
        self._place_strip()

    def _place_strip(self) -> None:
        at_home = self._pages.page == "View"
        self._header.view.setEnabled(not at_home)
        is_shown = at_home or (self._header.view.isChecked() and self._has_picture)
        # Moved only where it is to be seen: Qt takes 20 ms to style it anew.
        layout: Any = self._pages.view_home.layout() if at_home else self._top
        if is_shown and layout.indexOf(self._strip) < 0:
            layout.insertWidget(0 if at_home else layout.indexOf(self._pages.bar), self._strip)
        self._strip.setVisible(is_shown)
