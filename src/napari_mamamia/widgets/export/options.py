"""Options of an export: formats, orientation, images, fusion, the DICOM study."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import QModelIndex, Qt, Signal
from qtpy.QtWidgets import (
    QAbstractItemView,
    QFileDialog,
    QGridLayout,
    QHeaderView,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.choices import ExportFormat, FuseRule, OrientationProfile, SegmentMaker
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.services.export.format_spec import ExportSelection
from napari_mamamia.services.export.formats import EXPORT_FORMATS, formats_of
from napari_mamamia.services.export.plan import ExportSettings, LabelFile, LabelLine
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    label,
    named,
    row,
    row_name,
    set_level,
)
from napari_mamamia.widgets.controls.form import Browse, Form, option
from napari_mamamia.widgets.controls.table_fit import TableFit
from napari_mamamia.widgets.controls.targets import CheckBox
from napari_mamamia.widgets.controls.titled_rows import TitledRows

# The choice of a label map on the page Export, with the target of each value.

_COLUMNS: Final = (
    (tr("file value"), tr("Voxel value in the mask file")),
    ("becomes", tr("Label in the exported mask; 0 omits the value")),
    ("name", tr("Name of the label")),
    (tr("masks"), tr("Masks to which the rule applies")),
)
_MOST_ROWS: Final = 6
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
    """Widget for choosing a label file.

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
        rows = min(len(lines), _MOST_ROWS)
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
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        for part in (
            self._format_grid(),
            row(rows["profile"], rows["with_images"]),
            row(row_name(tr("Labels"), _NAMES), label_row),
            label_rows,
            column(*list(rows.values())[2:]),
        ):
            layout.addWidget(part)
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
        box: CheckBox = named(CheckBox(tr(title)), object_name, tr(tip))
        box.setChecked(name == ExportFormat.NIFTI)
        box.toggled.connect(lambda _on: self._follow_choice())
        return box

    def _format_grid(self) -> QWidget:
        holder = QWidget()
        grid = QGridLayout(holder)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(4)
        for k, box in enumerate(self.formats.values()):
            grid.addWidget(box, k // 3, k % 3)
        return holder
