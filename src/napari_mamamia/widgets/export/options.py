"""Options of an export: formats, orientation, images, fusing, the DICOM study."""

from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import QModelIndex, Qt, Signal
from qtpy.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QFileDialog,
    QGridLayout,
    QHeaderView,
    QLineEdit,
    QSizePolicy,
    QSpinBox,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.choices import ExportFormat, FuseRule, OrientationProfile, SegmentMaker
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.services.export.format_spec import ExportSelection
from napari_mamamia.services.export.formats import EXPORT_FORMATS, formats_of
from napari_mamamia.services.export.labels import LabelFile, LabelLine
from napari_mamamia.services.export.plan import ExportSettings
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    label,
    named,
    row,
    row_name,
    set_level,
)
from napari_mamamia.widgets.controls.table_fit import TableFit
from napari_mamamia.widgets.controls.targets import CheckBox
from napari_mamamia.widgets.controls.titled_rows import TitledRows

# The choice of a label map on the page Export, with the target of each value.

_COLUMNS: Final = (
    (tr("in the file"), tr("Value of a voxel in the mask's file")),
    ("becomes", tr("Label in the exported mask; 0 is left out")),
    ("name", tr("Name of the label")),
    (tr("masks of"), tr("Masks that the rule applies to")),
)
_MOST_ROWS: Final = 6
_HINT: Final = tr("Map several values, or the values of several sources, to one set of labels.")


class LabelTable(TitledRows):
    """The rules of a label file, one in each row."""

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
    """The choice of a label file; `asked` carries a file to check, `changed` a new choice."""

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
            tr("Removes the label file: marked voxels become 1."),
            self.clear,
        )
        self.table = LabelTable()
        self.preview: QTableView = named(
            QTableView(), "export_labels_preview", tr("What each value of a mask becomes")
        )
        self._prepare_preview()
        self.note = label("export_labels_note", tip=tr("Content of the label file"))
        self._below = column(self.note, self.preview)
        self._follow_file()

    def parts(self) -> tuple[QWidget, QWidget]:
        """Return the row of buttons, and the widget below it across the page."""
        return row(self.choose, self.leave_out, 1), self._below

    @property
    def found(self) -> LabelFile | None:
        """The chosen label file, None for no file and until it was checked."""
        return self._found

    @property
    def problem(self) -> str:
        """Why an export cannot start with this choice, "" if it can."""
        if self._path is None:
            return ""
        if self._found is None:
            return tr("The label file is being read.")
        return tr("Choose another label file, or none (×).") if self._found.problem else ""

    def take(self, path: Path) -> None:
        """Choose a file and request its content."""
        self._path, self._found = path, None
        self._follow_file()
        self.asked.emit(path)

    def clear(self) -> None:
        """Choose no file."""
        self._path = self._found = None
        self._follow_file()

    def show_found(self, found: LabelFile) -> None:
        """Show the content of a file; an answer about another file is ignored."""
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
        return tr("{name}: being read…", name=path.name)
    if found.problem:
        return found.problem
    coded = (
        tr("; DICOM has no code for {names}", names=", ".join(found.uncoded))
        if found.uncoded
        else ""
    )
    return tr_n(
        "{name}: {n} rule{coded}",
        "{name}: {n} rules{coded}",
        len(found.rules),
        name=path.name,
        coded=coded,
    )


_NAMES: Final = (
    tr("Several"),
    tr("Phases"),
    tr("Study"),
    tr("Made by"),
    tr("Patient"),
    tr("Orientation"),
    tr("Labels"),
)
_MOST_PHASES: Final = 99
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
        tr("Adds a mask of the voxels that most readers marked, without ties."),
    ),
    (FuseRule.STAPLE, tr("+ STAPLE"), tr("Adds a mask estimated by STAPLE.")),
)
_MAKERS: Final = (
    (
        SegmentMaker.FROM_PROVENANCE,
        tr("from the provenance"),
        tr("As stated in the file beside each mask."),
    ),
    (SegmentMaker.MANUAL, "manual", tr("Drawn by hand.")),
    (SegmentMaker.SEMIAUTOMATIC, "semiautomatic", tr("Drawn with tools that analyse the image.")),
    (SegmentMaker.AUTOMATIC, "automatic", tr("Made by a model.")),
)


class ExportOptions(QWidget):
    """The options; `changed` is emitted after every change."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("export_options")
        self._is_dicom = False
        self._n_sets = 0
        self._n_masks = 0
        self.formats = self._make_formats()
        self.profile = self._make_choice(
            "export_profile", tr("Orientation of the masks"), _PROFILES
        )
        self.with_images: CheckBox = self._make_check_box(
            "export_images", tr("images too"), tr("Also writes the phases.")
        )
        self.fuse = self._make_choice(
            "export_fuse", tr("How several sets of masks are combined"), _FUSES
        )
        self.maker = self._make_choice(
            "export_maker", tr("How the masks were made, for DICOM"), _MAKERS
        )
        self.channels: QSpinBox = named(
            QSpinBox(), "export_channels", tr("Number of phases for nnU-Net, from the first on")
        )
        self.channels.setRange(0, _MOST_PHASES)
        self.channels.setSpecialValueText(tr("all"))
        self.study: QLineEdit = named(
            QLineEdit(), "export_study", tr("DICOM folder that the segmentations refer to")
        )
        self.study.setPlaceholderText(tr("DICOM folder of the case"))
        browse = button(
            "export_study_browse", "…", tr("Choose the DICOM folder"), self._browse_study
        )
        self.labels = ExportLabels()
        label_row, label_rows = self.labels.parts()
        self._fuse_row = _named_row(tr("Several"), self.fuse)
        self._channels_row = _named_row(tr("Phases"), self.channels, _make_stretch())
        self._study_row = _named_row(tr("Study"), self.study, browse)
        self.identified: CheckBox = self._make_check_box(
            "export_identified_seg",
            tr("with the patient's name"),
            tr(
                "Keeps the patient's name and the study's UIDs in the DICOM SEG, for sending "
                "it back to the PACS. Otherwise the case id replaces them."
            ),
        )
        self._dicom_rows = column(
            self._study_row,
            _named_row(tr("Made by"), self.maker),
            _named_row(tr("Patient"), self.identified, _make_stretch()),
        )
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        for part in (
            self._format_grid(),
            _named_row(tr("Orientation"), self.profile, self.with_images),
            _named_row(tr("Labels"), label_row),
            label_rows,
            self._fuse_row,
            self._channels_row,
            self._dicom_rows,
        ):
            layout.addWidget(part)
        for box in (*self.formats.values(), self.with_images, self.identified):
            box.toggled.connect(lambda _on: self._follow_choice())
        for choice in (self.profile, self.fuse, self.maker):
            choice.currentIndexChanged.connect(lambda _at: self._follow_choice())
        self.channels.valueChanged.connect(lambda _n: self._follow_choice())
        self.study.textChanged.connect(lambda _text: self._follow_choice())
        self.labels.changed.connect(self._follow_choice)
        self._follow_choice()

    def show_kind(self, *, is_dicom: bool) -> None:
        """Show whether the cases are DICOM, which need no study to refer to."""
        self._is_dicom = is_dicom
        self._follow_choice()

    def show_study(self, folder: Path | None) -> None:
        """Fill in the DICOM study that the cases were imported from, if there is one."""
        if folder is not None:
            self.study.setText(str(folder))

    def show_sets(self, n_sets: int, n_masks: int) -> None:
        """Show how many sets of masks are chosen, and how many files; two sets can be fused."""
        self._n_sets, self._n_masks = n_sets, n_masks
        self._follow_choice()

    def selection(self) -> ExportSelection:
        """Return the choices without the masks; hidden options have their defaults."""
        formats = tuple(name for name, box in self.formats.items() if box.isChecked())
        seg = ExportFormat.DICOM_SEG in formats
        study = self.study.text().strip()
        several = self._n_sets > 1
        label_file = self.labels.found
        settings = ExportSettings(
            masks=(),
            formats=formats,
            profile=OrientationProfile(self.profile.currentData()),
            with_images=self.with_images.isChecked(),
            fuse=FuseRule(self.fuse.currentData()) if several else FuseRule.NONE,
            study=Path(study) if seg and study and not self._is_dicom else None,
            segment_maker=SegmentMaker(self.maker.currentData())
            if seg
            else SegmentMaker.FROM_PROVENANCE,
            n_channels=self.channels.value() or None,
            rules=() if label_file is None else label_file.rules,
            identified_seg=seg and self.identified.isChecked(),
        )
        return ExportSelection(settings, self._n_masks, self._n_sets, self._is_dicom)

    def problem(self) -> str:
        """Return why masks cannot be written with these choices, "" if they can."""
        selection = self.selection()
        if not selection.settings.formats:
            return tr("Choose a format first.")
        problems = (spec.problem(selection) for spec in formats_of(selection.settings))
        return self.labels.problem or next(filter(None, problems), "")

    # -------------------------------------------------------------------- inner

    def _follow_choice(self) -> None:
        seg = self.formats[ExportFormat.DICOM_SEG].isChecked()
        self._dicom_rows.setVisible(seg)
        self._channels_row.setVisible(self.formats[ExportFormat.NNUNET].isChecked())
        self._study_row.setVisible(seg and not self._is_dicom)
        self._fuse_row.setVisible(self._n_sets > 1)
        self.changed.emit()

    def _make_formats(self) -> dict[ExportFormat, CheckBox]:
        boxes = {}
        for name, spec in EXPORT_FORMATS.items():
            box = self._make_check_box(
                f"export_format_{name.replace('-', '_')}", tr(spec.title), tr(spec.tip)
            )
            box.setChecked(name is ExportFormat.NIFTI)
            boxes[name] = box
        return boxes

    def _format_grid(self) -> QWidget:
        holder = QWidget()
        grid = QGridLayout(holder)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(4)
        for k, box in enumerate(self.formats.values()):
            grid.addWidget(box, k // 3, k % 3)
        return holder

    def _make_check_box(self, name: str, text: str, tip: str) -> CheckBox:
        check_box: CheckBox = named(CheckBox(text), name, tip)
        return check_box

    def _make_choice(
        self, name: str, tip: str, items: tuple[tuple[object, str, str], ...]
    ) -> QComboBox:
        combo: QComboBox = named(QComboBox(), name, tip)
        for k, (value, text, hint) in enumerate(items):
            combo.addItem(tr(text), value)
            combo.setItemData(k, hint, Qt.ItemDataRole.ToolTipRole)
        return combo

    def _browse_study(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, tr("DICOM study"), self.study.text())
        if chosen:
            self.study.setText(chosen)


def _make_stretch() -> QWidget:
    spacer = QWidget()
    spacer.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
    return spacer


def _named_row(text: str, *widgets: QWidget) -> QWidget:
    return row(row_name(text, _NAMES), *widgets)
