"""Controller of the Findings page: save a reader's answers and landmarks for the open case."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from qtpy.QtCore import QTimer, Signal

from napari_mamamia.core.answers import (
    NOTHING_KNOWN,
    WHOLE_CASE,
    Answer,
    Answers,
    CaseFacts,
    Landmark,
    MarkedPoint,
    Place,
    Side,
)
from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.form import FieldScope
from napari_mamamia.core.measurement import PointMm
from napari_mamamia.core.texts import tr
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.segmentation.model.segmenter import Click
from napari_mamamia.services.findings.case_findings import CaseFindings
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.base.session import SessionMask
from napari_mamamia.widgets.findings.gaps import Gap
from napari_mamamia.widgets.findings.page import (
    MARK_KEYS,
    FindingsPage,
    describe_mask_owner,
    list_marks,
)
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.prompts import PromptTool

PAGE: Final = "Findings"
ACCEPTING: Final = "Refine"
"""The page with the button that accepts a case."""
ASSESSMENT: Final = "assessment"
_KEEP_AFTER_MS: Final = 600
_MEASURE_AFTER_MS: Final = 800
_MEASURED: Final = (Role.REFINED, Role.PREDICTION, Role.REFERENCE)
_OF_STUDY: Final = tr("The form for this reader study is on the Review page.")
_NO_FOLDER: Final = tr("Findings are stored in a data set: open its folder first.")
_NO_MASK: Final = tr("There is no mask yet, so nothing is filled in.")
_NO_BREAST: Final = tr(
    "No breast chosen: choose Right, Left or a lesion on the Findings page first."
)

_Place: TypeAlias = tuple[Workspace, str, str | None]
"""The workspace, the case id and the reader's name, which is None if no reader is set."""


class FindingsFlow(WindowPart):
    """A controller that connects the page, the findings, the displayed mask and mouse clicks.

    `with_reader` runs a callback once a reader name is set, because every answer needs a reader.
    The signal `marks_changed` carries the landmarks for the image; `gaps_changed` reports that the
    missing answers may have changed.
    """

    marks_changed = Signal(object)
    gaps_changed = Signal()

    def __init__(
        self,
        context: WindowContext,
        page: FindingsPage,
        tool: PromptTool,
        with_reader: Callable[[Callable[[], None]], None],
    ) -> None:
        super().__init__(context)
        self._page = page
        self._tool = tool
        self._with_reader = with_reader
        self._form = self._services.findings.load_form()
        self._of: _Place | None = None
        self._findings, self._stored = CaseFindings(), Answers()
        self._measured: CaseFacts = NOTHING_KNOWN
        self._facts: CaseFacts = NOTHING_KNOWN
        self._is_loaded = self._is_stale = False
        self._page_on_screen = ""
        self._whose = ""
        self._armed: tuple[Landmark, Side] | None = None
        self._after: list[Callable[[], object]] = []
        self._keep, self._measure = QTimer(self), QTimer(self)
        for timer, wait, work in (
            (self._keep, _KEEP_AFTER_MS, self.keep),
            (self._measure, _MEASURE_AFTER_MS, self._measure_lesions),
        ):
            timer.setSingleShot(True)
            timer.setInterval(wait)
            timer.timeout.connect(work)
        page.form.set_form(self._form)
        page.form.answered.connect(self._take_answers)
        page.mark_wanted.connect(self._arm_click)
        page.forget_wanted.connect(self._forget_marks)
        page.lesion_wanted.connect(self._add_lesion)
        page.show_wanted.connect(self._go_to_lesion)
        tool.given.connect(self._take_click)
        tool.mode_changed.connect(self._follow_tool)
        session = self._session
        for signal in (session.case_changed, session.reader_changed, session.blinding_changed):
            signal.connect(self._follow_case)
        for signal in (session.masks_changed, session.mask_edited):
            signal.connect(self._ask_lesions)
        self._follow_case()

    def want(self, page: str) -> None:
        """Measure lesions while the displayed page shows measurements, otherwise stop."""
        self._page_on_screen = page
        if self._is_stale and self._is_wanted:
            self._measure.start(0)

    @property
    def _is_wanted(self) -> bool:
        is_accepting = self._page_on_screen == ACCEPTING and self._is_described
        return self._page_on_screen == PAGE or is_accepting

    def actions(self) -> dict[str, Callable[..., object]]:
        """Return the actions of this page's shortcuts by action name."""
        return {f"assess_{category}": partial(self.assess, category) for category in range(7)}

    # ------------------------------------------------------------------ the case

    def _follow_case(self) -> None:
        workspace, case_id = self._session.workspace, self._session.case_id
        self._page.need(self._why_not())
        of = None if workspace is None else (workspace, case_id, self._session.reader)
        if self._page.missing.text():
            of = None
        if of == self._of:
            return
        before, self._of = self._of, of
        same_case = before is not None and of is not None and _is_same_case(before, of)
        if same_case and before is not None and before[2] is None:
            unsaid = self._page.form.current  # a reader answered first and then set the name
        else:
            self._write_rest(before)
            unsaid = Answers()
        self._keep.stop()
        self._is_loaded = False
        with self._page.form.drawn_once():
            if not same_case:
                self._measured = NOTHING_KNOWN
                self._page.choose(WHOLE_CASE)
            self._take_findings(unsaid, CaseFindings(), is_loaded=of is None or of[2] is None)
        self._ask_lesions()
        if of is not None and of[2] is not None:
            self._load_findings(of, of[2], unsaid)

    def _why_not(self) -> str:
        if self._session.study:
            return _OF_STUDY
        if self._session.case is None:
            return tr("Open a case first.")
        return _NO_FOLDER if self._session.workspace is None else ""

    def _load_findings(self, of: _Place, reader: str, unsaid: Answers) -> None:
        workspace, case_id, _ = of
        open_findings = self._services.findings.open
        self._jobs.start(
            "findings",
            tr("Reading the findings"),
            lambda: open_findings(workspace, reader, case_id),
            partial(self._take_findings, unsaid),
            failed=self._refuse_record,
            still=lambda: self._of == of,
            shown=False,
        )

    def _refuse_record(self, error: Exception) -> None:
        """Disable the page, because new answers could overwrite an unreadable record."""
        self._of = None
        self._page.need(tr("The findings of this case cannot be read: {error}", error=error))

    def _take_findings(
        self, unsaid: Answers, findings: CaseFindings, *, is_loaded: bool = True
    ) -> None:
        self._stored = findings.answers
        answers = findings.answers
        for item in unsaid.items:
            answers = answers if item.is_computed else answers.put(item)
        self._findings = replace(findings, answers=answers)
        self._is_loaded = is_loaded
        self._page.form.setEnabled(is_loaded)
        self._show_findings(anew=True)
        if unsaid.items and is_loaded:
            self._keep.start()

    # ---------------------------------------------------------------- measuring

    def _ask_lesions(self) -> None:
        self._is_stale = True
        self._measure_later()

    def _measure_later(self) -> None:
        if self._is_stale and self._is_wanted and self._of is not None:
            self._measure.start()

    def _find_mask(self) -> SessionMask | None:
        masks = (self._session.mask(role) for role in _MEASURED)
        return next((mask for mask in masks if mask is not None), None)

    def _measure_lesions(self) -> None:
        case, mask, record = self._session.case, self._find_mask(), self._session.record
        if case is None or self._of is None:
            return
        self._is_stale = False
        if mask is None:
            self._take_facts(_NO_MASK, self._services.findings.find_breasts(case.grid, record))
            return
        with_numbers = not self._session.blinding.hides(Hidden.NUMBERS)
        whose = describe_mask_owner(mask.role, mask.name, with_numbers=with_numbers)
        measure_lesions = self._services.findings.measure_lesions
        self._jobs.start(
            "findings lesions",
            tr("Measuring the lesions"),
            lambda: measure_lesions(case, mask.buffer, with_numbers=with_numbers, record=record),
            partial(self._take_facts, whose),
            still=lambda: self._session.shows(case) and self._find_mask() is mask,
            shown=False,
        )

    def _take_facts(self, whose: str, facts: CaseFacts) -> None:
        self._whose, self._measured = whose, facts
        self._show_findings()
        if self._is_described:
            self._keep.start()

    # ------------------------------------------------------------------- showing

    @property
    def _is_described(self) -> bool:
        answers = self._findings.answers.items
        return bool(self._findings.landmarks.points) or any(
            not answer.is_computed for answer in answers
        )

    def _show_findings(self, *, anew: bool = False) -> None:
        fill_in = self._services.findings.fill_in
        self._findings, self._facts = fill_in(self._form, self._findings, self._measured)
        page = self._page
        show = page.form.show_answers if anew else page.form.show_findings
        show(self._findings.answers, self._facts)
        names = [lesion.name for lesion in self._facts.lesions or ()]
        lesions = {
            item.place.name
            for item in self._findings.answers.items
            if item.place.scope is FieldScope.LESION and item.place.name not in names
        }
        page.show_lesions(self._facts, sorted(lesions, key=lambda name: (len(name), name)))
        page.show_marks(self._findings.landmarks, self._armed)
        self.marks_changed.emit(list_marks(self._findings.landmarks))
        self._show_texts()

    def _show_texts(self) -> None:
        self._page.show_texts(
            whose=self._whose if self._of is not None else "",
            remarks=self._facts.remarks,
            gaps=self.list_gaps(),
            problem=self._findings.problem,
        )
        self.gaps_changed.emit()
        self._measure_later()  # check a form that was just begun against the mask

    def list_gaps(self) -> tuple[Gap, ...]:
        """Return missing or contradictory answers, which are shown before the case is accepted.

        A case without any answer has no gaps, because the form is optional outside a study.
        """
        is_begun = self._of is not None and self._is_described
        return self._page.form.list_gaps() if is_begun else ()

    # ----------------------------------------------------------------- answering

    def _take_answers(self) -> None:
        self._findings = replace(self._findings, answers=self._page.form.current)
        self._show_texts()
        self._with_reader(self._keep.start)

    def assess(self, category: int) -> None:
        """Assign a category to the selected breast, or to the breast of the selected lesion."""
        why = self._why_not()
        side = self._find_breast()
        if why or side is None:
            self._notifier.hint(why or _NO_BREAST)
            return
        place = Place(FieldScope.BREAST, side)
        self._page.form.give(Answer(ASSESSMENT, (str(category),), place))
        field = self._form.field(ASSESSMENT)
        term = None if field is None else field.term(str(category))
        self._notifier.hint(
            tr(
                "{side} breast: {category}",
                side=tr(side.title()),
                category=category if term is None else tr(term.text),
            )
        )

    def _find_breast(self) -> str | None:
        place = self._page.place
        if place.scope is FieldScope.BREAST:
            return place.name
        side = self._findings.answers.find("side", place)
        value = "" if side is None else next(iter(side.values), "")
        return value if value in (Side.RIGHT, Side.LEFT) else None

    def _add_lesion(self) -> None:
        places = {item.place.name for item in self._findings.answers.items}
        names = places | {lesion.name for lesion in self._facts.lesions or ()}
        number = next(n for n in range(1, len(names) + 2) if str(n) not in names)
        place = Place(FieldScope.LESION, str(number))
        self._page.form.give(Answer("finding", (), place))
        asked = [lesion.name for lesion in self._facts.lesions or ()]
        lesions = [one for one in {*places, place.name} if one.isdigit() and one not in asked]
        self._page.show_lesions(
            self._facts, sorted(lesions, key=lambda lesion: (len(lesion), lesion))
        )
        self._page.choose(place)

    def _go_to_lesion(self) -> None:
        lesion = self._facts.lesion(self._page.place.name)
        if lesion is not None and lesion.voxel is not None:
            self._scene.view.reveal(lesion.voxel)

    # -------------------------------------------------------------------- marking

    def _arm_click(self, landmark: Landmark, side: Side, is_on: bool) -> None:
        if not is_on:
            self._tool.set_mode("")
            return
        what = "nipple" if landmark is Landmark.NIPPLE else tr("chest wall behind the nipple")
        self._tool.set_mode("click", tr("click on the {side} {what}", side=side, what=what))
        self._armed = (landmark, side)
        self._page.show_marks(self._findings.landmarks, self._armed)

    def _follow_tool(self, mode: str) -> None:
        if not mode:
            self._page.show_marks(self._findings.landmarks)

    def _take_click(self, click: Click) -> None:
        case, armed = self._session.case, self._armed
        self._armed = None
        if case is None or armed is None:
            return
        point_mm = self._services.findings.find_point_mm(case.grid, click.voxel)
        self._with_reader(lambda: self._keep_mark(MarkedPoint(*armed, point_mm)))

    def move_mark(self, key: str, point_mm: PointMm | None) -> None:
        """Move a landmark that was dragged on the image; with None, remove the landmark."""
        for landmark, side in (names for names, name in MARK_KEYS.items() if name == key):
            self._keep_mark(MarkedPoint(landmark, side, point_mm))

    def find_lesion(self) -> str:
        """Return the number of the selected lesion, or "" if none is selected."""
        place = self._page.place
        return place.name if place.scope is FieldScope.LESION else ""

    def list_lesions(self) -> tuple[str, ...]:
        """Return the numbers of all lesions, with and without a mask."""
        return self._page.lesions

    def _forget_marks(self) -> None:
        for point in self._findings.landmarks.points:
            self._keep_mark(replace(point, point_mm=None))

    def _keep_mark(self, point: MarkedPoint) -> None:
        of = self._of
        if of is None or of[2] is None:
            return
        self._findings = replace(self._findings, landmarks=self._findings.landmarks.put(point))
        workspace, case_id, reader = of
        mark_landmark = self._services.findings.mark
        # One queue per landmark, so that a second click does not cancel the first write.
        self._jobs.start(
            f"findings {case_id} {point.landmark} {point.side}",
            tr("Saving the landmark"),
            lambda: mark_landmark(workspace, str(reader), case_id, point),
            lambda _done: None,
            shown=False,
        )
        self._show_findings()
        self._keep.start()

    # -------------------------------------------------------------------- keeping

    def keep_then(self, then: Callable[[], object]) -> None:
        """Call `then` after all changes are written, or show the error if writing fails."""
        self._after.append(then)
        self._keep.stop()
        self.keep()

    def keep(self) -> None:
        """Save changes, and ask for a reader name if none is set."""
        of, findings, stored = self._of, self._findings, self._stored
        if of is None or of[2] is None or not self._is_loaded or not self._is_described:
            self._go_on()
            return
        workspace, case_id, reader = of
        keep_findings, form = self._services.findings.keep, self._form

        def note_stored(_done: object) -> None:
            if self._of == of:
                self._stored = findings.answers
            self._go_on()

        def refuse(error: Exception) -> None:
            self._after.clear()
            self._notifier.fail(tr("Saving the findings"), error)

        self._jobs.start(
            f"findings {case_id}",
            tr("Saving the findings"),
            lambda: keep_findings(workspace, str(reader), case_id, form, stored, findings),
            note_stored,
            failed=refuse,
            shown=False,
        )

    def _go_on(self) -> None:
        waiting, self._after = self._after, []
        for then in waiting:
            then()

    def _write_rest(self, of: _Place | None) -> None:
        """Write pending changes immediately, because another case is being opened."""
        if self._keep.isActive():
            now, self._of = self._of, of
            self.keep()
            self._of = now

    def close(self) -> None:
        """Write pending changes immediately when the window closes."""
        of = self._of
        self._keep.stop()
        if of is None or of[2] is None or not self._is_loaded or not self._is_described:
            return
        try:
            self._services.findings.keep(
                of[0], of[2], of[1], self._form, self._stored, self._findings
            )
        except MamamiaError as error:
            self._notifier.fail(tr("Saving the findings"), error)


def _is_same_case(one: _Place, other: _Place) -> bool:
    return one[0].root == other[0].root and one[1] == other[1]
