"""Page Export at work: the workspace's masks, written and verified."""

from pathlib import Path

from qtpy.QtCore import QObject

from napari_mamamia.io.files.sources import LayoutKind
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.case.data_set import CaseRow, OpenDataSet
from napari_mamamia.services.export.export import ExportSummary
from napari_mamamia.services.export.labels import LabelFile
from napari_mamamia.services.export.plan import ExportSettings, MaskFolder
from napari_mamamia.services.export.target import ExportTarget
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.notify import Failed, Finished, Notifier, Outcome
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.base.session import Session
from napari_mamamia.widgets.export.page import ExportPage
from napari_mamamia.widgets.export.text import summary_text
from napari_mamamia.widgets.export.wish import ExportRequest, MaskSet
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.viewer.opening import Opening


class ExportFlow(QObject):
    """Joins the page, the session and the export job."""

    def __init__(
        self,
        page: ExportPage,
        session: Session,
        opening: Opening,
        editing: Editing,
        jobs: JobRunner,
        services: Services,
        notifier: Notifier,
    ) -> None:
        super().__init__()
        self._page = page
        self._session = session
        self._editing = editing
        self._jobs = jobs
        self._services = services
        self._notifier = notifier
        self._rows: dict[str, CaseRow] = {}
        page.export_wanted.connect(self._save_then_export)
        page.target_asked.connect(self._look_at)
        page.options.labels.asked.connect(self._look_at_labels)
        opening.listed.connect(self._take_rows)
        session.row_changed.connect(self._take_row)
        self._show_sets()

    def _take_rows(self, rows: tuple[CaseRow, ...]) -> None:
        self._rows = {row.case_id: row for row in rows}
        self._page.show_result("", None)
        self._show_sets()

    def _take_row(self, row: CaseRow) -> None:
        self._rows[row.case_id] = row
        self._show_sets()

    def _show_sets(self) -> None:
        opened = self._session.opened
        sets = [] if opened is None else _mask_sets(opened, tuple(self._rows.values()))
        missing = "" if opened else "Open a data set first."
        if opened and not sets:
            missing = "There is nothing to export yet: predict or edit a case first."
        self._page.need(missing)
        is_dicom = opened is not None and opened.data_set.kind is LayoutKind.DICOM
        self._page.show_sets(sets, is_dicom=is_dicom)

    def _look_at(self, folder: Path) -> None:
        def done(outcome: Outcome[ExportTarget]) -> None:
            if isinstance(outcome, Finished):
                self._page.show_target(outcome.result)

        def make_job() -> ExportTarget:
            return self._services.look_at_target(folder)

        self._jobs.start("export target", "Looking at the folder", make_job, done, shown=False)

    def _look_at_labels(self, path: Path) -> None:
        def done(outcome: Outcome[LabelFile]) -> None:
            if isinstance(outcome, Finished):
                self._page.options.labels.show_found(outcome.result)

        def make_job() -> LabelFile:
            return self._services.look_at_labels(path)

        self._jobs.start("export labels", "Reading the labels", make_job, done, shown=False)

    def _save_then_export(self, wanted: ExportRequest) -> None:
        opened = self._session.opened  # whose masks the page names, whatever is listed later
        if opened is not None:
            self._editing.save_if_needed(
                lambda saved: self._export(opened, wanted) if saved else None
            )

    def _export(self, opened: OpenDataSet, wanted: ExportRequest) -> None:
        existing = Existing.OVERWRITE if wanted.replace else Existing.REFUSE
        settings = _settings(wanted)

        def make_job() -> ExportSummary:
            return self._services.export_bundle(opened, settings, wanted.out, existing)

        def done(outcome: Outcome[ExportSummary]) -> None:
            self._page.set_running(False)
            if isinstance(outcome, Finished):
                self._show_summary(outcome.result)
            elif isinstance(outcome, Failed):
                self._page.show_result(
                    "Nothing was exported: see the message above.", None, "error"
                )
                self._notifier.fail("Export", outcome.error)
            else:
                text = "Stopped: finished cases are there, the whole was not checked. Export again."
                self._page.show_result(text, wanted.out, "warning")
            self._page.look_again()

        self._page.set_running(True)
        self._page.show_result("exporting…", None)
        self._jobs.start("export", "Exporting", make_job, done)

    def _show_summary(self, summary: ExportSummary) -> None:
        text, level = summary_text(summary)
        self._page.show_result(text, summary.out, level)
        if summary.failures:
            self._notifier.warn_loudly(
                f"{len(summary.failures)} mask(s) were not exported: see the page Export"
            )
        if summary.problems:
            self._notifier.warn_loudly("The exported bundle is not sound: see the page Export")


def _settings(wanted: ExportRequest) -> ExportSettings:
    wish = wanted.wish
    return ExportSettings(
        masks=tuple(MaskFolder(chosen.folder) for chosen in wanted.sets),
        formats=wish.formats,
        profile=wish.profile,
        with_images=wish.with_images,
        fuse=wish.fuse,
        study=wish.study,
        segment_maker=wish.segment_maker,
        n_channels=wish.n_channels,
        rules=wish.rules,
        identified_seg=wish.identified_seg,
    )


def _mask_sets(opened: OpenDataSet, rows: tuple[CaseRow, ...]) -> list[MaskSet]:
    """Return the folders of masks that the workspace holds, readers first."""
    workspace = opened.workspace
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        for name in row.refined:
            counts["refined", name] = counts.get(("refined", name), 0) + 1
        for name in row.predictions:
            counts["prediction", name] = counts.get(("prediction", name), 0) + 1
    any_case = rows[0].case_id if rows else "case"
    return [
        MaskSet(
            f"{'refined by' if role == 'refined' else 'prediction'} {name}",
            (
                workspace.refined(name, any_case)
                if role == "refined"
                else workspace.prediction(name, any_case)
            ).parent,
            count,
            workspace.exports / f"{role}-{name}",
        )
        for (role, name), count in sorted(counts.items(), key=_readers_first)
    ]


def _readers_first(item: tuple[tuple[str, str], int]) -> tuple[bool, str]:
    (role, name), _ = item
    return role != "refined", name.casefold()
