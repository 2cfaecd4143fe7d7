"""The reader's view: progress, the current case with its form, and earlier cases."""

from collections.abc import Sequence

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.features.review.core.review import Task
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.client import StudySnapshot, StudyTask, TaskRow
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    heading,
    label,
    named,
    row,
    set_level,
    set_primary,
)
from napari_mamamia.widgets.controls.fields import line_edit
from napari_mamamia.widgets.controls.line_list import make_line_list
from napari_mamamia.widgets.controls.progress_bar import ProgressBar
from napari_mamamia.widgets.controls.revealing import reveal
from napari_mamamia.widgets.findings.gap_views import GapList


class ReadingView(QWidget):
    """The reader's view.

    The signal `earlier_wanted` carries the `Task` of a case to open again, and `reopen_wanted` a
    reason. `images_wanted` requests that the user choose the images' folder; `first_wanted`
    requests that a second look start from the first reading. `rest` is the reason why there is
    currently no next case, or "" if there is one.
    """

    next_wanted = Signal()
    accept_wanted = Signal()
    empty_wanted = Signal()
    put_back_wanted = Signal()
    earlier_wanted = Signal(object)
    reopen_wanted = Signal(str)
    images_wanted = Signal()
    first_wanted = Signal()

    def __init__(self, form: QWidget) -> None:
        super().__init__()
        self.setObjectName("review_reading")
        self.left = label("review_left", tip=tr("Number of your finished readings"))
        self.progress: ProgressBar = named(
            ProgressBar(), "review_progress", tr("Number of your finished readings")
        )
        self.progress.setFixedHeight(8)
        self.case = label("review_case", tip=tr("The current case"))
        self.case.setProperty("heading", True)
        self.advice = label("review_advice", tip=tr("The next step"))
        self.next = button(
            "review_next",
            tr("Next case"),
            tr("Opens your next case to read."),
            self.next_wanted.emit,
            primary=True,
        )
        self.accept = button(
            "review_accept",
            tr("Accept and next"),
            with_key(tr("Submits the mask and the answers, then opens the next case."), "accept"),
            self.accept_wanted.emit,
        )
        self.put_back = button(
            "review_put_back",
            tr("Return to queue"),
            tr(
                "Releases this case. Your drawing is kept and restored when you open the case "
                "again."
            ),
            self.put_back_wanted.emit,
        )
        self.first = label("review_first_look", tip=tr("The first reading of this case"))
        self.take_first = button(
            "review_take_first_look",
            tr("Start from first reading"),
            tr("Copies the first reading into your mask. Undo reverts this."),
            self.first_wanted.emit,
        )
        self._first_look = row(self.first, self.take_first)
        self._first_look.layout().setStretch(0, 1)
        self.missing = label(
            "review_missing", tip=tr("Remaining steps before the case can be submitted")
        )
        set_level(self.missing, "warning")
        self.empty = button(
            "review_empty",
            tr("Submit without mask"),
            tr("Submits the case without a mask, because there is no lesion."),
            self.empty_wanted.emit,
        )
        self.form = form
        self.gaps = GapList("review_gaps")
        self.rest, self._is_busy, self._is_drawn = "", False, False
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        for part in (
            self.left,
            self.progress,
            self.case,
            self.advice,
            self._first_look,
            # Above the form, which may be long, so that the next step stays visible.
            row(self.next, self.accept, self.put_back, 1),
            self.missing,
            self.empty,
            self.form,
            self.gaps,
            self._make_reopening(),
            self._make_earlier(),
        ):
            layout.addWidget(part)
        layout.addStretch(1)
        self.show_task(None)

    def _make_reopening(self) -> QWidget:
        self.reason = line_edit(
            "review_reason",
            tr("Reason for reading the case again. It is stored with the case."),
            tr("reason for reading again"),
            on_return=self._want_reopening,
        )
        self.reopen = button(
            "review_reopen",
            tr("Reopen"),
            tr("Reopens your reading with this reason. The submitted reading is kept."),
            self._want_reopening,
        )
        self._reopening = row(self.reason, self.reopen)
        return self._reopening

    def _make_earlier(self) -> QWidget:
        self.earlier = make_line_list(
            "review_earlier",
            tr("Cases that you have read or opened. Double-click a line to open the case."),
        )
        self.earlier.itemActivated.connect(self._open_earlier)
        self.look = button(
            "review_look",
            tr("Open case"),
            tr("Opens the selected case. The submitted reading stays unchanged."),
            lambda: self._open_earlier(self.earlier.currentItem()),
        )
        self.images = button(
            "review_images",
            tr("Images…"),
            tr("Selects the folder with this study's images on this computer."),
            self.images_wanted.emit,
        )
        self._earlier_title = heading(tr("Your cases so far"))
        return column(self._earlier_title, self.earlier, row(self.look, 1, self.images))

    # ------------------------------------------------------------- for the flow

    def show_look(self, look: StudySnapshot) -> None:
        """Show progress and readings; the selection is kept."""
        count = tr(
            "{n_read} of {n_tasks} read, {n_left} left",
            n_read=look.n_read,
            n_tasks=look.n_tasks,
            n_left=look.n_left,
        )
        self.left.setText(count)
        for part in (self.left, self.progress):
            part.setVisible(look.is_seen)
        self.progress.setRange(0, max(look.n_tasks, 1))
        self.progress.setValue(look.n_read)
        self._show_rows(look.rows)
        before, self.rest = self.rest, describe_rest(look)
        set_primary(self.next, primary=not self.rest)
        self.next.setEnabled(not self.rest and not self._is_busy)
        if self.case.isHidden() and self.rest != before:
            self.say(self.rest)

    def show_task(self, taken: StudyTask | None, *, is_busy: bool = False, note: str = "") -> None:
        """Show the current case; if `taken` is None, show `note` instead."""
        is_open = taken is not None and taken.state is not CaseState.READ
        is_looked_at = taken is not None and not is_open
        self.case.setText("" if taken is None else taken.case_id)
        self.case.setVisible(taken is not None)
        self.form.setEnabled(is_open and not is_busy)
        self.accept.setVisible(is_open)
        self.put_back.setVisible(is_open)
        self.next.setVisible(not is_open)
        for control in (self.accept, self.put_back, self.look, self.reopen):
            control.setEnabled(not is_busy)
        self._is_busy = is_busy
        self.next.setEnabled(not is_busy and not self.rest)
        set_primary(self.accept, self._is_drawn)
        self._reopening.setVisible(is_looked_at)
        self.show_missing(())
        if taken is None:
            self.show_first("")
        if is_looked_at:
            self.advice.setText(
                tr("You have submitted this case. To change it, give a reason and reopen it.")
            )
        elif taken is not None:
            self.advice.setText(tr("Draw on the Refine page (F3), answer here, then accept."))
        else:
            self.advice.setText(self.rest or note)
        self.advice.setVisible(bool(self.advice.text()))
        reveal(self.accept if is_open else self.next)  # the page scrolls on a low screen

    def set_drawn(self, is_drawn: bool) -> None:
        """Highlight the submit button only if there is a mask to submit."""
        self._is_drawn = is_drawn
        set_primary(self.accept, is_drawn)

    def show_first(self, text: str) -> None:
        """Show the name of the first reader; if `text` is "", hide the label."""
        self.first.setText(text)
        self._first_look.setVisible(bool(text))

    def say(self, text: str) -> None:
        """Show the next step, or why there is none."""
        self.advice.setText(text)
        self.advice.setVisible(bool(text))

    def show_missing(self, missing: Sequence[str], *, offers_empty: bool = False) -> None:
        """List what the reader must do before submitting; an empty list hides the text."""
        self.missing.setText(tr("Missing: {names}", names=", ".join(missing)) if missing else "")
        self.missing.setVisible(bool(missing))
        self.empty.setVisible(offers_empty)

    # -------------------------------------------------------------------- inner

    def _show_rows(self, rows: Sequence[TaskRow]) -> None:
        before = [self._task_of(self.earlier.item(k)) for k in range(self.earlier.count())]
        if before != [row.task for row in rows] or self._list_texts() != [
            *map(_describe_row, rows)
        ]:
            chosen = self._task_of(self.earlier.currentItem())
            self.earlier.clear()
            for row in rows:
                item = QListWidgetItem(_describe_row(row))
                item.setData(Qt.ItemDataRole.UserRole, row.task)
                item.setToolTip(tr("{row}. Double-click to open it.", row=_describe_row(row)))
                self.earlier.addItem(item)
                if row.task == chosen:
                    self.earlier.setCurrentItem(item)
        self.earlier.fit()
        for part in (self._earlier_title, self.earlier, self.look):
            part.setVisible(bool(rows))

    def _list_texts(self) -> list[str]:
        return [self.earlier.item(k).text() for k in range(self.earlier.count())]

    @staticmethod
    def _task_of(item: QListWidgetItem | None) -> Task | None:
        return None if item is None else item.data(Qt.ItemDataRole.UserRole)

    def _open_earlier(self, item: QListWidgetItem | None) -> None:
        task = self._task_of(item)
        if task is not None:
            self.earlier_wanted.emit(task)

    def _want_reopening(self) -> None:
        self.reopen_wanted.emit(self.reason.text())


def describe_rest(look: StudySnapshot) -> str:
    """Return why this person has no next case and what to do, or "" if there is a case."""
    if look.n_ready:
        return ""
    if not look.is_seen:
        return tr(
            "This study has not been read on this computer yet, so its state is unknown. Your "
            "cases appear automatically, because this page refreshes every few seconds."
        )
    if not look.n_tasks:
        return tr("No case of this study is assigned to you.")
    if look.n_left:
        return tr_n(
            "{n} of your cases cannot be read at the moment, because it is waiting for the first "
            "reading or is in adjudication. It will appear automatically.",
            "{n} of your cases cannot be read at the moment, because they are waiting for the "
            "first reading or are in adjudication. They will appear automatically.",
            look.n_left,
        )
    return tr(
        "All {n_tasks} read and submitted. Next: sign them (Sign, above), read one "
        "again (below), or close the window. Cases reopened by an adjudicator appear here again.",
        n_tasks=look.n_tasks,
    )


def _describe_row(row: TaskRow) -> str:
    visit = tr(" · visit {visit}", visit=row.visit) if row.visit else ""
    return f"{row.case_id}{visit} · {row.state}"
