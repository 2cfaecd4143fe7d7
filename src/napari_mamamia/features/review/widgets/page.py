"""The Review page: a study and a person are chosen first, then tabs show the person's work."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qtpy.QtCore import QSize, Signal
from qtpy.QtGui import QShowEvent
from qtpy.QtWidgets import (
    QFileDialog,
    QLabel,
    QTabBar,
    QWidget,
)

from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.features.review.core.review import JUDGES, Role
from napari_mamamia.features.review.rules.states import CaseState
from napari_mamamia.features.review.services.client import (
    DisputeRow,
    QualityStatus,
    StudySnapshot,
)
from napari_mamamia.features.review.services.signing import SigningStatus
from napari_mamamia.features.review.widgets.judging_view import JudgingView
from napari_mamamia.features.review.widgets.leading_view import ProgressView
from napari_mamamia.features.review.widgets.planning_view import PlanningView
from napari_mamamia.features.review.widgets.reading_view import ReadingView
from napari_mamamia.features.review.widgets.signing_view import SigningView
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    fill_column,
    label,
    named,
    row,
    set_level,
    set_primary,
)
from napari_mamamia.widgets.controls.fields import combo_box, line_edit
from napari_mamamia.widgets.controls.page_area import ALL
from napari_mamamia.widgets.controls.targets import LEAST
from napari_mamamia.widgets.findings.form_view import FormView

_AGREED: Final = (CaseState.READ, CaseState.ACCEPTED)


_TABS: Final = (
    (tr("Read"), tr("The cases assigned to you for reading.")),
    (tr("Judge"), tr("Cases with disagreement, and cases to be accepted or signed.")),
    (tr("Sign"), tr("Your key, and the items that you may sign as author, reviewer or approver.")),
    (tr("Study"), tr("Progress and agreement of the readers, and quality control.")),
)


@dataclass(frozen=True, slots=True)
class ExtraSnapshot:
    """State shown in addition to `StudySnapshot`: signatures, decided cases, quality control."""

    signing: SigningStatus
    ended: tuple[DisputeRow, ...] = ()
    quality: QualityStatus | None = None


class _Tabs(QTabBar):
    """Tab bar that, unlike Qt's, fits texts that changed while it was hidden."""

    def showEvent(self, event: QShowEvent) -> None:
        """Recompute the sizes of all tabs."""
        self.setIconSize(self.iconSize())
        super().showEvent(event)

    def tabSizeHint(self, at: int) -> QSize:
        """Return Qt's size, but at least 24 pixels high."""
        return super().tabSizeHint(at).expandedTo(QSize(0, LEAST))


class ReviewPage(QWidget):
    """The Review page; the signal `leave_wanted` requests that the study be closed.

    `planning_wanted` reports that the form of a new study is about to be shown.

    Attributes
    ----------
    study_chosen, person_chosen
        Signals that carry a folder, and a name with the passphrase of its key ("" without a key).
    form, reading, judging
        The questions, the reader's view that contains the questions, and the adjudicator's view.
    """

    study_chosen = Signal(object)
    person_chosen = Signal(str, str)
    leave_wanted = Signal()
    planning_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("review")
        self.form = FormView()
        self.reading = ReadingView(self.form)
        self.judging = JudgingView()
        self.planning = PlanningView()
        fill_column(self, self._make_entry(), self.planning, (self._make_work(), ALL), 1)
        self._ended: tuple[DisputeRow, ...] = ()
        self.show_entry()

    def _make_entry(self) -> QWidget:
        self.about = label(
            "review_about",
            tr(
                "A study that several people read in one shared folder, optionally blind. It "
                "needs no model, no PyTorch, no GPU and no server; a basic laptop is enough."
            ),
            tr("Purpose of this page"),
        )
        self.study = label("review_study", tip=tr("The chosen study"))
        self.open = button(
            "review_open",
            tr("Open a study…"),
            tr("Selects the folder of a study, which contains study.json."),
            self._choose_folder,
            primary=True,
        )
        self.who = combo_box("review_who", tr("Your name in this study"))
        self.who.setPlaceholderText(tr("your name"))
        self.begin = button(
            "review_begin",
            tr("Begin"),
            tr("Begins as this person in this window."),
            self._choose_person,
        )
        self.secret = line_edit(
            "review_secret",
            tr("Passphrase of your key, which prevents other people from using your name."),
            tr("passphrase of your key"),
            is_secret=True,
            on_return=self._choose_person,
        )
        self.why_key = label("review_why_key", tip=tr("Why a passphrase is needed"))
        self._asking_key = column(self.why_key, self.secret)
        self._asking = row(QLabel(tr("I am")), self.who, self.begin)
        self._asking.layout().setStretch(1, 1)
        self.new = button(
            "review_new",
            tr("New study…"),
            tr(
                "Opens the plan of a study: its cases, readers and blinding. The plan is shown "
                "before it is frozen."
            ),
            self.show_planning,
        )
        self.planning.left.connect(self.show_entry)
        lines = (self.about, self.study, self._asking, self._asking_key)
        self._entry = column(*lines, row(self.open, self.new, 1))
        # Keys belong to one person.
        self.who.currentIndexChanged.connect(lambda _at: self._asking_key.hide())
        self.who.currentIndexChanged.connect(lambda _at: self._mark_next())
        return self._entry

    def _make_work(self) -> QWidget:
        self.person = label("review_person", tip=tr("The study, and your name in it"))
        self.person.setProperty("heading", True)
        self.origin = line_edit("review_origin", tr("SHA-256 of the study file, for copying"))
        self.origin.setReadOnly(True)
        self.origin.setFrame(False)
        self._origin = row(QLabel(tr("study.json SHA-256")), self.origin)
        self.waiting = label("review_waiting", tip=tr("Data not yet saved to the study folder"))
        self.trouble = label("review_trouble", tip=tr("Problems with the study's folder"))
        for line in (self.waiting, self.trouble):
            set_level(line, "warning")
        # Not a QTabWidget, which ignores height-for-width and would cut off lines.
        self.tabs: QTabBar = named(_Tabs(), "review_tabs", tr("Your tasks in this study"))
        self.tabs.setDrawBase(False)
        self.tabs.setExpanding(False)
        self.progress = ProgressView()
        self.signing = SigningView()
        self._views: tuple[QWidget, ...] = (
            *(self.reading, self.judging),
            *(self.signing, self.progress),
        )
        for title, tip in _TABS:
            self.tabs.addTab(title)
            self.tabs.setTabToolTip(self.tabs.count() - 1, tip)
        self.tabs.currentChanged.connect(self._turn_to)
        lines = (self.person, self._origin, self.waiting, self.trouble)
        self._work = column(*lines, self.tabs, *self._views, 1)
        self._work.layout().setStretchFactor(self.judging, ALL)
        self._turn_to(0)  # only after they have a parent: a widget without one is a window
        return self._work

    def _turn_to(self, at: int) -> None:
        for index, view in enumerate(self._views):
            view.setVisible(index == at)

    # ------------------------------------------------------------- for the flow

    def show_entry(self, study: str = "", people: Sequence[str] = (), known: str = "") -> None:
        """Show the controls for choosing a study, or a person in the selected study."""
        self._entry.show()
        self.planning.hide()
        self._work.hide()
        self.study.setText(study)
        self.study.setVisible(bool(study))
        self.who.clear()
        self.who.addItems(list(people))
        self.who.setCurrentText(known)
        self._asking.setVisible(bool(people))
        self._asking_key.hide()
        if not known:
            self.who.setCurrentIndex(-1)
        self._mark_next()

    def ask_key(self, why: str) -> None:
        """Ask for the passphrase of the selected person's key, stating the reason `why`."""
        self.why_key.setText(why)
        self._asking_key.show()
        self.secret.setFocus()

    def show_planning(self) -> None:
        """Show the form for a new study."""
        self.planning_wanted.emit()
        self._entry.hide()
        self.planning.show()

    def show_look(self, look: StudySnapshot, more: ExtraSnapshot | None = None) -> None:
        """Show the study's state for this person; if `more` is None, its last value is kept."""
        self._entry.hide()
        self.planning.hide()
        self._work.show()
        self.person.setText(f"{look.study} · {look.person} ({', '.join(look.roles)})")
        if self.origin.text() != look.origin:  # keep the user's text selection
            self.origin.setText(look.origin)
            self.origin.setCursorPosition(0)
            tip = tr("SHA-256 of the study file: {digits}", digits=look.origin)
            self.origin.setToolTip(tip)
        self.waiting.setText(describe_waiting(look))
        self.waiting.setVisible(bool(self.waiting.text()))
        others = (
            tr(" (and {n_problems} more)", n_problems=len(look.problems) - 1)
            if len(look.problems) > 1
            else ""
        )
        self.trouble.setText(f"{look.problems[0]}{others}" if look.problems else "")
        self.trouble.setVisible(bool(look.problems))
        self.tabs.setTabVisible(0, Role.READER in look.roles)
        self.tabs.setTabVisible(1, is_judge(look))
        n_open = sum(dispute.state not in _AGREED for dispute in look.disputes)
        self.tabs.setTabText(1, tr("Judge ({n_open})", n_open=n_open) if n_open else "Judge")
        self.reading.show_look(look)
        if more is not None:
            self._ended = more.ended
            n_to_sign = len(more.signing.things)
            self.tabs.setTabText(
                2, tr("Sign ({n_to_sign})", n_to_sign=n_to_sign) if n_to_sign else "Sign"
            )
            self.signing.show_look(more.signing)
            self.progress.show_quality(more.quality)
        self.judging.show_look(look, self._ended)
        self.tabs.setTabVisible(3, Role.LEAD in look.roles or self.progress.has_quality)
        self.progress.show_look(look)

    # -------------------------------------------------------------------- inner

    def _mark_next(self) -> None:
        """Highlight the next control: open a study, choose a name, or begin."""
        has_people, has_name = self.who.count() > 0, self.who.currentIndex() >= 0
        self.begin.setEnabled(has_name)
        set_primary(self.open, not has_people)
        set_primary(self.who, has_people and not has_name)
        set_primary(self.begin, has_name)

    def _choose_person(self) -> None:
        secret = self.secret.text() if self._asking_key.isVisibleTo(self) else ""
        self.secret.clear()
        self.person_chosen.emit(self.who.currentText(), secret)

    def _choose_folder(self) -> None:
        name = QFileDialog.getExistingDirectory(self, tr("Folder of a review study"))
        if name:
            self.study_chosen.emit(Path(name))


def describe_waiting(look: StudySnapshot) -> str:
    """Describe unsent content on this computer and the reason; return "" if there is none."""
    if look.n_unsent:
        some = tr_n(
            "{n} event",
            "{n} events",
            look.n_unsent,
        )
        waits = "wait" if look.n_unsent != 1 else "waits"
        return tr(
            "{some} {waits} on this computer, because the study cannot be reached or written to "
            "at the moment. Continue working; everything is sent automatically later.",
            some=some,
            waits=waits,
        )
    if not look.is_seen:
        return tr("The study cannot be reached at the moment.")
    if look.trouble:
        return tr(
            "The study cannot be reached at the moment. Continue working; everything is saved on "
            "this computer."
        )
    return ""


def is_judge(look: StudySnapshot) -> bool:
    """Return whether this person is an adjudicator."""
    return not JUDGES.isdisjoint(look.roles)
