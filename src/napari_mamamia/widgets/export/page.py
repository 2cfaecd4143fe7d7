"""The Export page: choose masks, folder and options, and show the verified result."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import QModelIndex, Qt, QUrl, Signal
from qtpy.QtGui import QDesktopServices
from qtpy.QtWidgets import (
    QAbstractItemView,
    QFileDialog,
    QGridLayout,
    QHeaderView,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QTableView,
    QWidget,
)

from napari_mamamia.core.choices import ExportFormat, FuseRule, OrientationProfile, SegmentMaker
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.services.export.export import ExportTarget, TargetState
from napari_mamamia.services.export.format_spec import ExportSelection
from napari_mamamia.services.export.formats import EXPORT_FORMATS, formats_of
from napari_mamamia.services.export.plan import ExportSettings, LabelFile, LabelLine
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    fill_column,
    label,
    named,
    row,
    row_name,
    set_level,
    tool_button,
)
from napari_mamamia.widgets.controls.fields import checkbox, line_edit
from napari_mamamia.widgets.controls.form import Browse, Form, option
from napari_mamamia.widgets.controls.page import Page
from napari_mamamia.widgets.controls.table_fit import TableFit
from napari_mamamia.widgets.controls.targets import ROW_PADDING, CheckBox
from napari_mamamia.widgets.controls.titled_rows import TitledRows
from napari_mamamia.widgets.export.selection import ExportRequest, MaskSet
from napari_mamamia.widgets.export.text import what_is_written

# The choice of a label map on the page Export, with the target of each value.

_COLUMNS: Final = (
    (tr("file value"), tr("Voxel value in the mask file")),
    ("becomes", tr("Label in the exported mask; 0 omits the value")),
    ("name", tr("Name of the label")),
    (tr("masks"), tr("Masks to which the rule applies")),
)
_MOST_LABEL_ROWS: Final = 6
_HINT: Final = tr("Maps values from one or several sources to one set of labels.")


class LabelTable(TitledRows):
    """The rules of a label file, one per row."""

    titles = _COLUMNS

    def show(self, lines: tuple[LabelLine, ...]) -> None:
        """Replace the rows."""
        self.beginResetModel()
        self.rows = lines
        self.endResetModel()

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's text."""
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        line: LabelLine = self.rows[index.row()]
        return (line.source, line.target, line.name, line.masks)[index.column()]


class ExportLabels(QWidget):
    """A widget for choosing a label file.

    The signal `asked` carries a file to check; `changed` reports a new choice.
    """

    asked = Signal(object)
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("export_labels")
        self._path: Path | None = None
        self._found: LabelFile | None = None
        self.choose = button(
            "export_labels_choose", tr("Label names and values…"), _HINT, self._browse_labels
        )
        self.leave_out = button(
            "export_labels_clear",
            "×",
            tr("Removes the label file, so that all mask voxels get the value 1."),
            self.clear,
        )
        self.table = LabelTable()
        self.preview: QTableView = named(
            QTableView(), "export_labels_preview", tr("Label assigned to each mask value")
        )
        self._prepare_preview()
        self.note = label("export_labels_note", tip=tr("Content of the label file"))
        self._below = column(self.note, self.preview)
        self._follow_file()

    def parts(self) -> tuple[QWidget, QWidget]:
        """Return the row of buttons, and the full-width widget below that row."""
        return row(self.choose, self.leave_out, 1), self._below

    @property
    def found(self) -> LabelFile | None:
        """The chosen label file; None if no file is chosen or the check is not complete."""
        return self._found

    @property
    def problem(self) -> str:
        """Why an export cannot start with this choice, or "" if it can."""
        if self._path is None:
            return ""
        if self._found is None:
            return tr("The label file is being read.")
        return (
            tr("Choose another label file, or remove this one (×).") if self._found.problem else ""
        )

    def take(self, path: Path) -> None:
        """Choose a file and request a check of its content."""
        self._path, self._found = path, None
        self._follow_file()
        self.asked.emit(path)

    def clear(self) -> None:
        """Remove the chosen file."""
        self._path = self._found = None
        self._follow_file()

    def show_found(self, found: LabelFile) -> None:
        """Show the content of a file, ignoring a result for any other file."""
        if found.path == self._path:
            self._found = found
            self._follow_file()

    # -------------------------------------------------------------------- inner

    def _follow_file(self) -> None:
        label_file, path = self._found, self._path
        self.leave_out.setVisible(path is not None)
        self._below.setVisible(path is not None)
        if path is not None:
            self.note.setToolTip(str(path))
            set_level(
                self.note, "error" if label_file is not None and label_file.problem else "hint"
            )
            self.note.setText(_describe_labels(path, label_file))
        lines = () if label_file is None else label_file.lines
        self.table.show(lines)
        self.preview.setVisible(bool(lines))
        rows = min(len(lines), _MOST_LABEL_ROWS)
        header = self.preview.horizontalHeader().sizeHint().height()
        self.preview.setFixedHeight(rows * self._rows.row_height + header + 4)
        self.changed.emit()

    def _prepare_preview(self) -> None:
        view = self.preview
        view.setModel(self.table)
        view.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        view.setAlternatingRowColors(True)
        view.verticalHeader().hide()
        self._rows = TableFit(view)
        header = view.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)

    def _browse_labels(self) -> None:
        start = "" if self._path is None else str(self._path.parent)
        kinds = tr("Label rules (*.json);;All files (*)")
        chosen, _ = QFileDialog.getOpenFileName(self, tr("Label names and values"), start, kinds)
        if chosen:
            self.take(Path(chosen))


def _describe_labels(path: Path, found: LabelFile | None) -> str:
    if found is None:
        return tr("Reading {name}…", name=path.name)
    if found.problem:
        return found.problem
    coded = (
        tr("; no DICOM code for {names}", names=", ".join(found.uncoded)) if found.uncoded else ""
    )
    return tr_n(
        "{name}: {n} rule{coded}",
        "{name}: {n} rules{coded}",
        len(found.rules),
        name=path.name,
        coded=coded,
    )


_NAMES: Final = (
    tr("Mask sets"),
    tr("Phases"),
    tr("Study"),
    tr("Origin"),
    tr("Patient"),
    tr("Orientation"),
    tr("Labels"),
)
_PROFILES: Final = (
    (OrientationProfile.AS_IS, tr("unchanged"), tr("Masks have exactly the grid of their images.")),
    (
        OrientationProfile.LAS_PSR,
        tr("+ LAS / PSR"),
        tr("Also writes a copy in LAS (axial) or PSR (sagittal) orientation."),
    ),
    (OrientationProfile.RAS, tr("+ RAS"), tr("Also writes a copy in RAS orientation.")),
    (OrientationProfile.LPS, tr("+ LPS"), tr("Also writes a copy in LPS orientation.")),
)
_FUSES: Final = (
    (FuseRule.NONE, tr("separate"), tr("Each set is written separately.")),
    (
        FuseRule.MAJORITY,
        tr("+ majority"),
        tr("Adds a mask of the voxels that are in more than half of the readers' masks."),
    ),
    (FuseRule.STAPLE, tr("+ STAPLE"), tr("Adds a mask estimated by STAPLE.")),
)
_MAKERS: Final = (
    (
        SegmentMaker.FROM_PROVENANCE,
        tr("from the provenance"),
        tr("Uses the origin stated in the provenance file of each mask."),
    ),
    (SegmentMaker.MANUAL, tr("manual"), tr("Drawn by hand.")),
    (
        SegmentMaker.SEMIAUTOMATIC,
        tr("semiautomatic"),
        tr("Drawn with tools that analyse the image."),
    ),
    (SegmentMaker.AUTOMATIC, tr("automatic"), tr("Made by a model.")),
)


@dataclass(frozen=True, slots=True)
class ExportChoice:
    """The options of an export except formats and label rules."""

    profile: OrientationProfile = option(
        OrientationProfile.AS_IS,
        tr("Orientation"),
        "export_profile",
        tr("Choose the orientation of the masks."),
        choices=_PROFILES,
    )
    with_images: bool = option(
        False, "", "export_images", tr("Also writes the phases."), text=tr("include images")
    )
    fuse: FuseRule = option(
        FuseRule.NONE,
        tr("Mask sets"),
        "export_fuse",
        tr("Choose how several mask sets are combined."),
        choices=_FUSES,
    )
    n_channels: int = option(
        0,
        tr("Phases"),
        "export_channels",
        tr("Number of phases to write for nnU-Net, counted from the first phase."),
        lowest=tr("all"),
    )
    study: Path | None = option(
        None,
        tr("Study"),
        "export_study",
        tr("DICOM folder to which the segmentations refer."),
        placeholder=tr("DICOM folder of the case"),
        browse=Browse("export_study_browse", tr("Choose the DICOM folder"), tr("DICOM study")),
    )
    maker: SegmentMaker = option(
        SegmentMaker.FROM_PROVENANCE,
        tr("Origin"),
        "export_maker",
        tr("States how the masks were made, as DICOM requires."),
        choices=_MAKERS,
    )
    identified: bool = option(
        False,
        tr("Patient"),
        "export_identified_seg",
        tr(
            "Keeps the patient's name and the study's UIDs in the DICOM SEG, so that it can be "
            "sent back to the PACS. Otherwise the case id replaces them."
        ),
        text=tr("keep patient's name"),
    )


class ExportOptions(QWidget):
    """Widget with the options of an export; `changed` is emitted after every change."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("export_options")
        self._is_dicom = False
        self._n_sets = 0
        self._n_masks = 0
        self.formats = {
            name: self._make_format(name, spec.title, spec.tip)
            for name, spec in EXPORT_FORMATS.items()
        }
        self.form = Form(ExportChoice, _NAMES)
        self.fields, rows = self.form.fields, self.form.rows
        self.labels = ExportLabels()
        label_row, label_rows = self.labels.parts()
        fill_column(
            self,
            self._format_grid(),
            row(rows["profile"], rows["with_images"]),
            row(row_name(tr("Labels"), _NAMES), label_row),
            label_rows,
            column(*list(rows.values())[2:]),
            spacing=6,
        )
        self.form.changed.connect(self._follow_choice)
        self.labels.changed.connect(self._follow_choice)
        self._follow_choice()

    def show_kind(self, *, is_dicom: bool) -> None:
        """Set whether the cases are DICOM; if they are, no separate DICOM study is needed."""
        self._is_dicom = is_dicom
        self._follow_choice()

    def show_study(self, folder: Path | None) -> None:
        """Fill in the DICOM study from which the cases were imported, if there is one."""
        if folder is not None:
            self.fields["study"].setText(str(folder))

    def show_sets(self, n_sets: int, n_masks: int) -> None:
        """Set the number of selected mask sets and files; at least two sets can be fused."""
        self._n_sets, self._n_masks = n_sets, n_masks
        self._follow_choice()

    def selection(self) -> ExportSelection:
        """Return the options without masks; hidden options have default values."""
        chosen = self.form.settings()
        label_file = self.labels.found
        settings = ExportSettings(
            masks=(),
            formats=tuple(name for name, box in self.formats.items() if box.isChecked()),
            profile=chosen.profile,
            with_images=chosen.with_images,
            fuse=chosen.fuse,
            study=chosen.study,
            segment_maker=chosen.maker,
            n_channels=chosen.n_channels or None,
            rules=() if label_file is None else label_file.rules,
            identified_seg=chosen.identified,
        )
        return ExportSelection(settings, self._n_masks, self._n_sets, self._is_dicom)

    def problem(self) -> str:
        """Return why masks cannot be written with these options, or "" if they can."""
        selection = self.selection()
        if not selection.settings.formats:
            return tr("Choose a format first.")
        problems = (spec.problem(selection) for spec in formats_of(selection.settings))
        return self.labels.problem or next(filter(None, problems), "")

    # -------------------------------------------------------------------- inner

    def _follow_choice(self) -> None:
        is_seg, rows = self.formats[ExportFormat.DICOM_SEG].isChecked(), self.form.rows
        rows["maker"].setVisible(is_seg)
        rows["identified"].setVisible(is_seg)
        rows["study"].setVisible(is_seg and not self._is_dicom)
        rows["n_channels"].setVisible(self.formats[ExportFormat.NNUNET].isChecked())
        rows["fuse"].setVisible(self._n_sets > 1)
        self.changed.emit()

    def _make_format(self, name: str, title: str, tip: str) -> CheckBox:
        object_name = f"export_format_{name.replace('-', '_')}"
        return checkbox(
            object_name,
            tr(title),
            tr(tip),
            is_on=name == ExportFormat.NIFTI,
            on_toggle=lambda _on: self._follow_choice(),
        )

    def _format_grid(self) -> QWidget:
        holder = QWidget()
        grid = QGridLayout(holder)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(4)
        for k, box in enumerate(self.formats.values()):
            grid.addWidget(box, k // 3, k % 3)
        return holder


_MOST_ROWS = 5
_BLOCKED = frozenset({TargetState.READ_ONLY, TargetState.NO_FOLDER})
_TAKEN = frozenset({TargetState.BUNDLE, TargetState.CUT_OFF, TargetState.TAKEN})


class ExportPage(Page):
    """The Export page.

    The signal `export_wanted` carries an `ExportRequest`; `target_asked` carries a folder to check.
    """

    export_wanted = Signal(object)
    target_asked = Signal(object)

    def __init__(self) -> None:
        super().__init__("export")
        self._done: Path | None = None
        self._target: ExportTarget | None = None
        self._running = False
        self._own_out = False
        self._own_choice = False
        self.sets: QListWidget = named(
            QListWidget(),
            "export_sets",
            tr("Masks to write; several sets are kept separate by name"),
        )
        self.sets.itemChanged.connect(lambda _item: self._take_own_choice())
        self.options = ExportOptions()
        self.options.changed.connect(self._describe_export)
        self.out = line_edit("export_out", tr("Folder to write to"))
        self.out.textEdited.connect(self._take_own_out)
        self.out.textChanged.connect(self._ask_target)
        browse = tool_button(
            "export_browse", "…", tr("Chooses another folder."), self._browse_folder
        )
        browse.setProperty("framed", True)
        self.target = label("export_target", tip=tr("Content of that folder"))
        self.replace = checkbox(
            "export_replace",
            tr("replace files of an earlier export"),
            tr("Replaces files with the same names in that folder, and keeps all other files."),
            on_toggle=lambda _on: self._show_target(),
        )
        self.what = label("export_what", tip=tr("Files to be written, and options"))
        self.start = button(
            "export_start",
            tr("Export masks"),
            tr("Writes and verifies every file."),
            self._request_export,
            primary=True,
        )
        self.result = label("export_result", tip=tr("Result of the last export"))
        self.open_folder = button(
            "export_open", tr("Open the folder"), tr("Shows the exported files."), self._open_folder
        )
        self.add_form(
            QLabel(tr("Masks")),
            self.sets,
            self.options,
            row(QLabel(tr("Folder")), self.out, browse),
            self.what,
        )
        for part in (self.target, self.replace, self.start):
            self.body.addWidget(part)
        self.add_answer(self.open_folder, self.result)
        self.body.addStretch()
        self.open_folder.hide()
        self.replace.hide()

    # ------------------------------------------------------------- for the dock

    @property
    def _row_height(self) -> int:
        return int(self.sets.fontMetrics().height()) + 2 * ROW_PADDING

    def show_sets(self, sets: Sequence[MaskSet], *, is_dicom: bool = False) -> None:
        """List the workspace's mask sets, keeping the user's choices.

        The first set is checked if a reader made it. An unaccepted prediction is exported only if
        the user chooses it.
        """
        before = {one.folder for one in self.chosen()} if self._own_choice else set()
        self.sets.blockSignals(True)
        self.sets.clear()
        for k, mask_set in enumerate(sets):
            item = QListWidgetItem(mask_set.text)
            item.setData(Qt.ItemDataRole.UserRole, mask_set)
            item.setToolTip(str(mask_set.folder))
            is_first = k == 0 and not before and not mask_set.is_prediction
            checked = mask_set.folder in before or is_first
            item.setCheckState(Qt.CheckState.Checked if checked else Qt.CheckState.Unchecked)
            self.sets.addItem(item)
        self.sets.blockSignals(False)
        self._fit_sets()
        self.options.show_kind(is_dicom=is_dicom)
        self._show_choice()

    def chosen(self) -> tuple[MaskSet, ...]:
        """Return the checked sets, in the order shown."""
        items = (self.sets.item(k) for k in range(self.sets.count()))
        return tuple(
            item.data(Qt.ItemDataRole.UserRole)
            for item in items
            if item.checkState() == Qt.CheckState.Checked
        )

    def show_target(self, target: ExportTarget) -> None:
        """Show the state of the folder, ignoring a result for any other folder."""
        if str(target.folder) == self.out.text().strip():
            self._target = target
            self._show_target()

    def show_result(self, text: str, folder: Path | None, level: str = "hint") -> None:
        """Show the result, with a button that opens `folder` if there are files to open."""
        set_level(self.result, level)
        self.result.setText(text)
        self._done = folder
        self.open_folder.setVisible(folder is not None)
        self.show_answer(bool(text))

    def set_running(self, running: bool) -> None:
        """Disable the button while an export runs."""
        self._running = running
        self._show_target()

    def look_again(self) -> None:
        """Check the folder again, for example after an export."""
        self._ask_target()

    # -------------------------------------------------------------------- inner

    def showEvent(self, event: Any) -> None:
        """Fit the list of masks to the current font size."""
        super().showEvent(event)
        self._fit_sets()

    def _fit_sets(self) -> None:
        rows = min(max(self.sets.count(), 1), _MOST_ROWS)
        self.sets.setFixedHeight(rows * self._row_height + 6)

    def _take_own_choice(self) -> None:
        self._own_choice = True
        self._show_choice()

    def _show_choice(self) -> None:
        chosen = self.chosen()
        if chosen and not self._own_out:
            folder = chosen[0].default_out
            self.out.setText(str(folder if len(chosen) == 1 else folder.with_name("masks")))
            self.out.setCursorPosition(len(self.out.text()))
        self.options.show_sets(len(chosen), sum(one.n_cases for one in chosen))
        self._describe_export()

    def _describe_export(self) -> None:
        self.what.setText(what_is_written(self.options.selection()))
        self._show_target()

    def _take_own_out(self, _text: str) -> None:
        self._own_out = True

    def _ask_target(self, _text: str = "") -> None:
        self._target = None
        self._show_target()
        if self.out.text().strip():
            self.target_asked.emit(Path(self.out.text().strip()))

    def _show_target(self) -> None:
        state = TargetState.FREE if self._target is None else self._target.state
        taken = state in _TAKEN
        self.replace.setVisible(taken)
        is_silent = self._target is None or state is TargetState.FREE
        is_own = self._target is not None and self._target.folder == self._done
        text = "" if is_silent or is_own or self._target is None else self._target.text
        problem = self.options.problem() if self.chosen() else tr("Choose the masks first.")
        text = problem or text
        self.target.setText(text)
        self.target.setVisible(bool(text))
        set_level(self.target, "error" if state in _BLOCKED else "warning")
        blocked = state in _BLOCKED or (taken and not self.replace.isChecked())
        ready = bool(self.out.text().strip()) and not problem
        self.start.setEnabled(ready and not blocked and not self._running)

    def _browse_folder(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, tr("Export to"), self.out.text())
        if chosen:
            self._own_out = True
            self.out.setText(chosen)

    def _request_export(self) -> None:
        request = ExportRequest(
            self.chosen(),
            Path(self.out.text().strip()),
            self.replace.isVisible() and self.replace.isChecked(),
            self.options.selection().settings,
        )
        self.export_wanted.emit(request)

    def _open_folder(self) -> None:
        if self._done is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._done)))
