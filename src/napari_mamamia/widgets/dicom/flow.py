"""Controller of the Import page: inspect a source, import studies, open the result."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import Signal

from napari_mamamia.core.texts import tr
from napari_mamamia.io.dicom.slices import Slice
from napari_mamamia.io.exam.table import SeriesRow
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.dicom.check import IdState, ImportCheck
from napari_mamamia.services.dicom.dicom import ImportSummary, WantedStudy
from napari_mamamia.services.dicom.finding import FoundStudy
from napari_mamamia.services.dicom.inspection import InspectedStudies
from napari_mamamia.services.dicom.preview import SlicePicture, StudyPreview
from napari_mamamia.widgets.base.notify import plain_text
from napari_mamamia.widgets.dicom.choice import StudyChoice, first_choice
from napari_mamamia.widgets.dicom.page import ImportPage, ImportState
from napari_mamamia.widgets.dicom.series import SeriesModel
from napari_mamamia.widgets.dicom.text import found_text, kept_text, result_text
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

# Images in the table of a study are read once each, one at a time, in a thread.

_LANE: Final = "import picture"
_NO_IMAGE: Final = tr("no MR image to show")


class PartPictures(WindowPart):
    """A loader that reads the images of the visible rows and stores them until `forget`."""

    def __init__(self, context: WindowContext, model: SeriesModel) -> None:
        super().__init__(context)
        self._model = model
        self._known: dict[tuple[Path, int], SlicePicture | str] = {}
        self._rows: Sequence[SeriesRow] = ()

    def show(self, rows: Sequence[SeriesRow]) -> None:
        """Show the available images of these rows, and read the missing ones in order."""
        self._jobs.cancel(_LANE)
        self._rows = rows
        for index, row in enumerate(rows):
            if row.middle is None:
                self._model.show_picture(index, row.problem or _NO_IMAGE)
            elif _make_picture_key(row.middle) in self._known:
                self._model.show_picture(index, self._known[_make_picture_key(row.middle)])
        self._read_next()

    def forget(self) -> None:
        """Stop reading, and discard all images."""
        self._jobs.cancel(_LANE)
        self._known.clear()
        self._rows = ()

    def _read_next(self) -> None:
        unread = (
            (index, row.middle)
            for index, row in enumerate(self._rows)
            if row.middle is not None and _make_picture_key(row.middle) not in self._known
        )
        at, plane = next(unread, (0, None))
        if plane is None:
            return

        def show(picture: SlicePicture | str) -> None:
            self._known[_make_picture_key(plane)] = picture
            self._model.show_picture(at, picture)
            self._read_next()

        self._jobs.start(
            _LANE,
            tr("Reading an image"),
            lambda: self._services.imports.part_picture(plane),
            show,
            failed=lambda error: show(plain_text(error)),
            shown=False,
        )


def _make_picture_key(piece: Slice) -> tuple[Path, int]:
    return piece.file, piece.frame


_NEUTRAL = tr("The folder's name identifies the patient, so a neutral id was chosen.")
_THERE = tr("A case with this id already exists: see above.")
_LANES = ("import judge", "import preview", "import check")


class Choosing(WindowPart):
    """A component that connects the Import page with the jobs that follow each choice.

    Attributes
    ----------
    looked
        The inspected source, or None before and after an inspection.
    choices
        The current choices for the studies.
    """

    def __init__(self, context: WindowContext, page: ImportPage) -> None:
        super().__init__(context)
        self._page = page
        self.looked: InspectedStudies | None = None
        self.choices: list[StudyChoice] = []
        self._at = 0
        self._unsorted: dict[
            int, StudyChoice
        ] = {}  # Indices of studies; the last one is analysed next.
        self._previews: dict[int, StudyPreview] = {}
        self._pictures = PartPictures(context, page.study.model)
        self._check: ImportCheck | None = None
        page.study_shown.connect(self._show_study)
        page.study_toggled.connect(self._toggle_study)
        page.study.part_toggled.connect(self._toggle_part)
        page.study.phase_toggled.connect(self._toggle_phase)
        page.study.clock_chosen.connect(self._choose_clock)
        page.study.breasts_joined.connect(self._join_breasts)
        page.study.breasts_parted.connect(self._part_breasts)
        page.study.remedy_chosen.connect(
            lambda remedy: self._judge_study(self._current_choice.with_remedy(remedy))
        )
        page.study.remedy_undone.connect(self._undo_remedy)
        page.form.id_edited.connect(self._name_case)
        page.form.changed.connect(self._ask_check)

    # ---------------------------------------------------------- for the flow

    def take(self, looked: InspectedStudies) -> None:
        """Show the studies that were found, and check all studies that can be imported."""
        self.looked = looked
        self.choices = [first_choice(study, index) for index, study in enumerate(looked.studies)]
        self.show()

    def show(self) -> None:
        """Show the table as it was last shown, for example after a failed import."""
        if self.looked is None:
            self._page.show_idle()
            return
        self._show_list()
        self._show_study(self._at)
        self._page.select_study(self._at)
        self._ask_check()

    def wanted(self) -> list[WantedStudy]:
        """Return the studies to import with the user's choices, or [] before they are checked."""
        form, check = self._page.form, self._check
        if check is None:
            return []
        policies = (Existing.OVERWRITE if s.is_there else Existing.REFUSE for s in check.ids)
        return [
            WantedStudy(choice.found, choice.settings(form.wanted_dates, existing))
            for choice, existing in zip(self._list_wanted(), policies, strict=True)
        ]

    def refused(self) -> list[FoundStudy]:
        """Return the studies that cannot be imported."""
        return [choice.found for choice in self.choices if choice.found.exam is None]

    def forget(self) -> None:
        """Stop all jobs for this source, and remove unpacked files."""
        for lane in _LANES:
            self._jobs.cancel(lane)
        if self.looked is not None:
            self.looked.close()
        self.looked, self.choices, self._at, self._check = None, [], 0, None
        self._unsorted.clear()
        self._previews.clear()
        self._pictures.forget()

    # ------------------------------------------------------------ the study shown

    def _show_study(self, at: int) -> None:
        self._at = at
        choice = self.choices[at]
        self._page.study.show_choice(choice)
        self._pictures.show(choice.found.rows)
        self._page.study.show_place(self._describe_place(at))
        self._page.form.show_id(choice.found.case_id)
        self._show_check()
        self._page.form.show_kept("")
        if at in self._previews:
            self._show_preview(at)
        elif choice.found.exam is not None:
            self._ask_preview(at)

    def _describe_place(self, at: int) -> str:
        looked = self.looked
        if looked is None:
            return ""
        origin = self.choices[at].origin
        below = looked.place_of(origin) if len(self.choices) > 1 else ""
        folder = tr("Files in {below}.", below=below) if below else ""
        neutral = _NEUTRAL if origin in looked.renamed else ""
        return " ".join(part for part in (folder, neutral) if part)

    def _ask_preview(self, at: int) -> None:
        study = self.choices[at].found

        def show(preview: StudyPreview) -> None:
            self._previews[at] = preview
            self._show_preview(at)

        self._jobs.start(
            "import preview",
            tr("Reading images"),
            lambda: self._services.imports.preview(study),
            show,
            failed=lambda e: self._notifier.warn(
                tr("Images of the phases: {plain_text}", plain_text=plain_text(e))
            ),
            still=lambda: self._is_of(study, at),
            shown=False,
        )

    def _show_preview(self, at: int) -> None:
        if at == self._at:
            preview = self._previews[at]
            self._page.study.show_preview(self.choices[at], preview)
            self._page.form.show_kept(kept_text(preview.kept))

    def _is_of(self, found: FoundStudy, at: int) -> bool:
        return at < len(self.choices) and self.choices[at].found.exam is found.exam

    # ---------------------------------------------------------------- choices

    def _toggle_study(self, at: int, on: bool) -> None:
        choice = self.choices[at]
        self._set_choice(at, replace(choice, is_wanted=on))
        self._ask_check()

    def _toggle_phase(self, index: int, is_kept: bool) -> None:
        self._set_choice(self._at, self.choices[self._at].with_phase(index, is_kept))
        self._page.study.show_problem(self.choices[self._at])
        self._show_check()

    def _toggle_part(self, part: Any, counts: bool) -> None:
        choice = self.choices[self._at]
        self._judge_study(choice.with_part(part, counts))

    def _choose_clock(self, clock: Any) -> None:
        choice = self.choices[self._at]
        if clock is not choice.clock:
            self._judge_study(replace(choice, clock=clock))

    def _join_breasts(self, joins: bool) -> None:
        self._judge_study(replace(self.choices[self._at], parts=None, joins=joins))

    @property
    def _current_choice(self) -> StudyChoice:
        return self.choices[self._at]

    def _show_list(self) -> None:
        by_origin = {choice.origin: choice.found for choice in self.choices}
        self._page.show_found(self.choices, found_text(list(by_origin.values())))

    def _part_breasts(self) -> None:
        self._replace_choices([self._at], self._current_choice.of_each_breast())

    def _undo_remedy(self) -> None:
        choice = self._current_choice
        if choice.applied or self.looked is None:
            self._judge_study(choice.without_last_remedy())
            return
        places = [
            index for index, other in enumerate(self.choices) if other.origin == choice.origin
        ]
        name = choice.found.case_id.removesuffix(f"_{choice.side}")
        whole = first_choice(self.looked.studies[choice.origin], choice.origin)
        self._replace_choices(places, [whole.with_id(name)])

    def _replace_choices(self, gone: Sequence[int], new: Sequence[StudyChoice]) -> None:
        first, after, moved = gone[0], gone[0] + len(gone), len(new) - len(gone)
        self.choices[first:after] = new
        self._unsorted = {
            index + moved * (index >= after): choice
            for index, choice in self._unsorted.items()
            if not first <= index < after
        } | dict(enumerate(new, first))
        self._previews.clear()
        self._at = first
        self._show_list()
        self._page.select_study(first)
        self._judge_next()

    def _name_case(self, case_id: str) -> None:
        self._set_choice(self._at, self.choices[self._at].with_id(case_id))
        self._ask_check()

    def _judge_study(self, choice: StudyChoice) -> None:
        self._unsorted.pop(self._at, None)
        self._unsorted[self._at] = choice
        self._judge_next()

    def _judge_next(self) -> None:
        if not self._unsorted:
            self._ask_check()
            return
        self._check = None
        at, choice = next(reversed(self._unsorted.items()))
        settings, doing = (
            choice.for_judging(),
            tr("Analysing {case_id}", case_id=choice.found.case_id),
        )

        def take(study: FoundStudy) -> None:
            # Keep an id that was typed in the meantime.
            named = choice.with_id(self.choices[at].found.case_id)
            self._set_choice(at, named.with_found(study))
            self._previews.pop(at, None)
            if at == self._at:
                self._show_study(at)
            go_on()

        def refuse(error: Exception) -> None:
            self._notifier.fail(doing, error)
            go_on()

        def go_on() -> None:
            del self._unsorted[at]
            self._judge_next()

        # A job that a newer job stops stays in `_unsorted` and is repeated afterwards.
        self._jobs.start(
            "import judge",
            doing,
            lambda: self._services.imports.judge(choice.found, settings),
            take,
            failed=refuse,
            still=lambda: at < len(self.choices),
        )
        self._show_check()

    def _set_choice(self, at: int, choice: StudyChoice) -> None:
        self.choices[at] = choice
        self._page.studies_model.set_choice(at, choice)

    # ------------------------------------------------------------------ check

    def _ask_check(self) -> None:
        self._check = None
        self._show_check()
        if self.looked is None or self._page.state is not ImportState.FOUND:
            return
        studies, source = [choice.found for choice in self._list_wanted()], self.looked.source
        out = self._page.form.out

        def take(check: ImportCheck) -> None:
            self._check = check
            self._show_check()

        self._jobs.start(
            "import check",
            tr("Checking the import"),
            lambda: self._services.imports.check(studies, source, out),
            take,
            shown=False,
        )

    def _list_wanted(self) -> list[StudyChoice]:
        return [c for c in self.choices if c.is_wanted and c.found.exam is not None]

    def _show_check(self) -> None:
        choices, check, form = self._list_wanted(), self._check, self._page.form
        states = {} if check is None else dict(zip(map(id, choices), check.ids, strict=False))
        current = self.choices[self._at] if self.choices else None
        any_is_there = any(state.is_there for state in states.values())
        if check is not None or current is None:
            state = states.get(id(current), IdState())
            target = "" if check is None else check.target_problem
            form.show_check(target, state, any_is_there=any_is_there)
        self._page.show_ready(
            self._find_obstacle(choices, any_is_there=any_is_there) if check else "",
            len(choices) if check else 0,
            can_open=self._can_open(),
        )

    def _find_obstacle(self, wanted: list[StudyChoice], *, any_is_there: bool) -> str:
        check = self._check
        if check is None or not wanted:
            return tr("No study that can be imported is selected.") if check else ""
        if check.target_problem:
            return tr("The case cannot be added to the data set: see above.")
        faults = [choice.problem for choice in wanted if choice.problem]
        if faults:
            return faults[0]
        n_wrong = sum(bool(state.problem) for state in check.ids)
        if n_wrong:
            return (
                tr("The id cannot be used: see above.")
                if n_wrong == 1
                else (
                    tr(
                        "{n_wrong} ids cannot be used: click on the studies to see why.",
                        n_wrong=n_wrong,
                    )
                )
            )
        return "" if not any_is_there or self._page.form.replace.isChecked() else _THERE

    def _can_open(self) -> bool:
        looked = self.looked
        if looked is None or looked.folder != looked.source or len(self.choices) != 1:
            return False
        return self.choices[0].found.exam is not None and self.choices[0].is_default


_LOOK: Final = "import look"
_RUN: Final = "import run"
_STOPPED: Final = tr("Stopped: finished cases are kept, and no case is incomplete.")


class ImportFlow(WindowPart):
    """The controller that connects the page, the session and the jobs of an import.

    The signal `shown_wanted` requests this page, and `left` requests the previous page.
    """

    shown_wanted = Signal()
    left = Signal()
    state_changed = Signal()

    def __init__(
        self,
        context: WindowContext,
        page: ImportPage,
        open_data_set: Callable[[Path, str | None], None],
    ) -> None:
        super().__init__(context)
        self.page = page
        self._open = open_data_set
        self._imported: tuple[Path, str] | None = None
        self.choosing = Choosing(context, page)
        page.source_wanted.connect(self.look)
        page.import_wanted.connect(self._import_choices)
        page.open_wanted.connect(self._open_as_it_is)
        page.cancel_wanted.connect(self._stop_jobs)
        page.table_wanted.connect(self.choosing.show)
        page.closed.connect(self._leave_page)

    @property
    def is_begun(self) -> bool:
        """Whether a source is being inspected, shown or imported."""
        return self.page.state is not ImportState.IDLE

    def look(self, source: Path) -> None:
        """Show the contents of a folder or zip file, unless it is already being inspected."""
        self.shown_wanted.emit()
        if self._jobs.is_running(_RUN):
            self._notifier.hint(tr("An import is running: wait for it, or stop it first."))
            return
        if self._jobs.is_running(_LOOK) and self.page.source.text() == str(source):
            return
        self.choosing.forget()

        self._jobs.start(
            _LOOK,
            tr("Reading {name}", name=source.name),
            lambda: self._services.imports.look(source),
            self._take_studies,
            failed=lambda error: self.page.show_idle(plain_text(error), "error"),
            stopped=lambda: self.page.show_idle(tr("Stopped: nothing was imported.")),
            ended=self.state_changed.emit,
            on_progress=self.page.show_progress,
        )
        self.page.show_looking(source)
        self.state_changed.emit()

    def close(self) -> None:
        """Remove unpacked files when the window closes."""
        self._cancel_jobs()
        self.choosing.forget()

    def _take_studies(self, looked: InspectedStudies) -> None:
        opened = self._session.opened
        recent = self._services.load_preferences().recent
        data_set = None if opened is None else opened.data_set
        self.page.form.offer_target(self._services.imports.default_target(data_set, recent))
        self.choosing.take(looked)

    # ----------------------------------------------------------------- import

    def _import_choices(self) -> None:
        out, choices = self.page.form.out, self.choosing.wanted()
        if out is None or not choices:
            return

        self._jobs.start(
            _RUN,
            "Importing",
            lambda: self._services.imports.run(choices, out),
            lambda summary: self._finish_import(summary, out),
            failed=lambda error: self._show_why(
                tr("Nothing was imported: {plain_text}", plain_text=plain_text(error))
            ),
            stopped=lambda: self._show_why(_STOPPED),
            ended=self.state_changed.emit,
            on_progress=self.page.show_progress,
        )
        self.page.show_importing()

    def _show_why(self, text: str) -> None:
        self.choosing.show()
        self.page.show_failed(text)

    def _finish_import(self, summary: ImportSummary, out: Path) -> None:
        text, level = result_text(summary, self.choosing.refused(), out)
        self.page.show_done(text, level)
        if not summary.imported:
            return
        looked = self.choosing.looked
        is_whole = looked is not None and looked.source == looked.folder
        is_one = is_whole and len(self.choosing.choices) == 1
        if looked is not None and is_one:
            self._session.set_dicom_study(looked.source)
        self._imported = (out, summary.imported[0].case_id)
        self._open(*self._imported)
        if level == "hint":
            self._notifier.hint(text)
            self._go_back()

    def _open_as_it_is(self) -> None:
        if self.choosing.choices:
            # Going back discards the choices.
            folder = self.choosing.choices[0].found.folder
            self._go_back()
            self._open(folder, None)

    # ------------------------------------------------------------------ ending

    def _stop_jobs(self) -> None:
        for lane in (_LOOK, _RUN):
            self._jobs.stop(lane)

    def _cancel_jobs(self) -> None:
        for lane in (_LOOK, _RUN):
            self._jobs.cancel(lane)

    def _leave_page(self) -> None:
        self._cancel_jobs()
        self._go_back()
        self._list_imported()

    def _list_imported(self) -> None:
        imported, self._imported = self._imported, None
        if imported is None or self._jobs.is_running("list"):
            return
        (out, case_id), opened = imported, self._session.opened
        is_listed = opened is not None and opened.data_set.root == out
        if not is_listed or case_id not in self._session.rows:
            self._open(out, None)

    def _go_back(self) -> None:
        self.choosing.forget()
        self.page.show_idle()
        self.state_changed.emit()
        self.left.emit()
