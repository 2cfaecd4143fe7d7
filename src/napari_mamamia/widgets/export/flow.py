"""Controller of the Export page: writes and verifies the workspace's masks."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Final

from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.io.files.sources import LayoutKind
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.case.data_set import CaseRow, OpenDataSet
from napari_mamamia.services.export.export import ExportSummary
from napari_mamamia.services.export.plan import MaskFolder
from napari_mamamia.widgets.export.page import ExportPage
from napari_mamamia.widgets.export.selection import ExportRequest, MaskSet
from napari_mamamia.widgets.export.text import summary_text
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_LANE: Final = "export"
_STOPPED: Final = tr("Stopped: nothing was exported, and no files remain.")
_STOPPED_OVER: Final = tr(
    "Stopped: some files of the earlier export were replaced, and the bundle was not verified. "
    "Export again."
)


class ExportFlow(WindowPart):
    """A controller that connects the page, the session and the export job."""

    def __init__(self, context: WindowContext, page: ExportPage, editing: Editing) -> None:
        super().__init__(context)
        self.page = page
        self._editing = editing
        page.export_wanted.connect(self._save_then_export)
        page.target_asked.connect(self._look_at)
        page.options.labels.asked.connect(self._look_at_labels)
        session = self._session
        session.rows_changed.connect(self._follow_rows)
        session.row_changed.connect(self._show_sets)
        session.study_imported.connect(page.options.show_study)
        page.options.show_study(session.dicom_study)
        self._show_sets()

    def _follow_rows(self) -> None:
        self.page.show_result("", None)
        self._show_sets()

    def _show_sets(self, _changed: object = None) -> None:
        opened = self._session.opened
        sets = [] if opened is None else _mask_sets(opened, tuple(self._session.rows.values()))
        missing = "" if opened else tr("Open a data set first.")
        if opened and not sets:
            missing = tr("There is nothing to export yet: predict or edit a case first.")
        self.page.need(missing)
        is_dicom = opened is not None and opened.data_set.kind is LayoutKind.DICOM
        self.page.show_sets(sets, is_dicom=is_dicom)

    def _look_at(self, folder: Path) -> None:
        look, show = self._services.look_at_target, self.page.show_target
        doing = tr("Checking {name}", name=folder.name or folder)
        # a cancelled export may still be removing its files
        after = "" if self._jobs.is_running(_LANE) else _LANE
        self._jobs.start(
            "export target", doing, lambda: look(folder), show, shown=False, in_turn_of=after
        )

    def _look_at_labels(self, path: Path) -> None:
        look, show = self._services.look_at_labels, self.page.options.labels.show_found
        self._jobs.start(
            "export labels",
            tr("Reading {name}", name=path.name),
            lambda: look(path),
            show,
            shown=False,
        )

    def _save_then_export(self, wanted: ExportRequest) -> None:
        opened = (
            self._session.opened
        )  # the data set whose masks the page names, whatever is listed later
        if opened is not None:
            self._editing.save_if_needed(
                lambda saved: self._export_masks(opened, wanted) if saved else None
            )

    def _export_masks(self, opened: OpenDataSet, wanted: ExportRequest) -> None:
        page, export = self.page, self._services.export_bundle
        existing = Existing.OVERWRITE if wanted.replace else Existing.REFUSE
        masks = tuple(MaskFolder(chosen.folder) for chosen in wanted.sets)
        settings = replace(wanted.settings, masks=masks)

        def refuse(error: Exception) -> None:
            page.show_result(tr("Nothing was exported: see the message above."), None, "error")
            self._notifier.fail("Export", error)

        def be_ready() -> None:
            page.set_running(False)
            page.look_again()

        def say_stopped() -> None:
            if wanted.replace:
                page.show_result(_STOPPED_OVER, wanted.out, "warning")
            else:
                page.show_result(_STOPPED, None, "warning")

        page.set_running(True)
        page.show_result("exporting…", None)
        self._jobs.start(
            _LANE,
            "Exporting",
            lambda: export(opened, settings, wanted.out, existing),
            self._show_summary,
            failed=refuse,
            stopped=say_stopped,
            ended=be_ready,
            in_turn_of=_LANE,
        )

    def _show_summary(self, summary: ExportSummary) -> None:
        text, level = summary_text(summary)
        self.page.show_result(text, summary.out, level)
        if summary.failures:
            self._notifier.warn_loudly(
                tr_n(
                    "{n} mask was not exported: see the Export page",
                    "{n} masks were not exported: see the Export page",
                    len(summary.failures),
                )
            )
        if summary.problems:
            self._notifier.warn_loudly(tr("The exported bundle has problems: see the Export page"))


def _mask_sets(opened: OpenDataSet, rows: tuple[CaseRow, ...]) -> list[MaskSet]:
    """Return the mask folders of the workspace, readers first."""
    workspace = opened.workspace
    counts = Counter(("refined", name) for row in rows for name in row.refined)
    counts.update(("prediction", name) for row in rows for name in row.predictions)
    accepted = Counter(name for row in rows for name in row.accepted)
    any_case = rows[0].case_id if rows else "case"
    return [
        MaskSet(
            tr("refined by {name}", name=name) if role == "refined" else f"prediction {name}",
            (
                workspace.refined(name, any_case)
                if role == "refined"
                else workspace.prediction(name, any_case)
            ).parent,
            count,
            workspace.exports / f"{role}-{name}",
            accepted[name] if role == "refined" else 0,
            is_prediction=role == "prediction",
        )
        for (role, name), count in sorted(counts.items(), key=_readers_first)
    ]


def _readers_first(item: tuple[tuple[str, str], int]) -> tuple[bool, str]:
    (role, name), _ = item
    return role != "refined", name.casefold()
