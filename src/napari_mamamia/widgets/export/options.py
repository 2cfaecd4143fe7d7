"""How masks are exported: formats, orientation, images, fusing, the DICOM study."""

from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import QModelIndex, Qt, Signal
from qtpy.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
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

from napari_mamamia.annotations.harmonise import OrientationProfile
from napari_mamamia.services.export.labels import LabelFile, LabelLine
from napari_mamamia.services.export.plan import ExportFormat, FuseRule, SegmentMaker
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
from napari_mamamia.widgets.controls.titled_rows import TitledRows
from napari_mamamia.widgets.export.wish import ExportWish

# The choice of a label map on the page Export, with what becomes of each value.

_COLUMNS: Final = (
    ("in the file", "Value of a voxel in the mask's file"),
    ("becomes", "Label that it is exported as; 0 is left out"),
    ("name", "Name of the label"),
    ("masks of", "Whose masks the rule is for"),
)
_ROW_HEIGHT: Final = 20
_MOST_ROWS: Final = 6
_HINT: Final = "Several values, or several sources that use other values, become one set of labels"


class LabelTable(TitledRows):
    """The rules of a label file, one in each row."""

    titles = _COLUMNS

    def show(self, lines: tuple[LabelLine, ...]) -> None:
        """Show other rules."""
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
    """`asked` carries a file to look at, `changed` says that the choice is another one."""

    asked = Signal(object)
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("export_labels")
        self._path: Path | None = None
        self._found: LabelFile | None = None
        self.choose = button("export_labels_choose", "Label names and values…", _HINT, self._browse)
        self.leave_out = button(
            "export_labels_clear", "×", "Uses no label file: what is marked becomes 1", self.clear
        )
        self.table = LabelTable()
        self.preview: QTableView = named(
            QTableView(), "export_labels_preview", "What becomes of each value of a mask"
        )
        self._prepare_preview()
        self.note = label("export_labels_note", tip="What the label file says")
        self._below = column(self.note, self.preview)
        self._follow()

    def parts(self) -> tuple[QWidget, QWidget]:
        """Return the row of buttons, and what stands below it across the page."""
        return row(self.choose, self.leave_out, 1), self._below

    @property
    def found(self) -> LabelFile | None:
        """The file that is chosen, None for no file and until it was looked at."""
        return self._found

    @property
    def problem(self) -> str:
        """Why an export cannot start with this choice, "" where it can."""
        if self._path is None:
            return ""
        if self._found is None:
            return "The label file is being read."
        return "Choose another label file, or none (×)." if self._found.problem else ""

    def take(self, path: Path) -> None:
        """Choose a file and ask what it says."""
        self._path, self._found = path, None
        self._follow()
        self.asked.emit(path)

    def clear(self) -> None:
        """Choose no file."""
        self._path = self._found = None
        self._follow()

    def show_found(self, found: LabelFile) -> None:
        """Show what a file says; an answer about another file is dropped."""
        if found.path == self._path:
            self._found = found
            self._follow()

    # -------------------------------------------------------------------- inner

    def _follow(self) -> None:
        found, path = self._found, self._path
        self.leave_out.setVisible(path is not None)
        self._below.setVisible(path is not None)
        if path is not None:
            self.note.setToolTip(str(path))
            set_level(self.note, "error" if found is not None and found.problem else "hint")
            self.note.setText(_said(path, found))
        lines = () if found is None else found.lines
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
        self._rows = TableFit(view, _ROW_HEIGHT)
        header = view.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)

    def _browse(self) -> None:
        start = "" if self._path is None else str(self._path.parent)
        kinds = "Label rules (*.json);;All files (*)"
        chosen, _ = QFileDialog.getOpenFileName(self, "Label names and values", start, kinds)
        if chosen:
            self.take(Path(chosen))


def _said(path: Path, found: LabelFile | None) -> str:
    if found is None:
        return f"{path.name}: being read…"
    if found.problem:
        return found.problem
    coded = f"; DICOM has no code for {', '.join(found.uncoded)}" if found.uncoded else ""
    return f"{path.name}: {len(found.rules)} rule(s){coded}"


_NAMES: Final = ("Several", "Phases", "Study", "Made by", "Patient", "Orientation", "Labels")
_MOST_PHASES: Final = 99
_FORMATS: Final = (
    (ExportFormat.NIFTI, "NIfTI", "One file ID.nii.gz for each mask, on the image's own grid"),
    (ExportFormat.DICOM_SEG, "DICOM SEG", "Coded segmentations that a PACS takes (highdicom)"),
    (ExportFormat.CHALLENGE, "challenge zip", "submission.zip with pred_segmentations/ID.nii.gz"),
    (ExportFormat.NNUNET, "nnU-Net", "Raw training layout: imagesTr, labelsTr, dataset.json"),
    (ExportFormat.BIDS, "BIDS", "Names of BIDS derivatives: sub-ID/anat/…_dseg.nii.gz"),
)
_PROFILES: Final = (
    (OrientationProfile.AS_IS, "as it is", "Masks lie exactly as their images"),
    (OrientationProfile.LAS_PSR, "+ LAS / PSR", "Also turned: axial to LAS, sagittal to PSR"),
    (OrientationProfile.RAS, "+ RAS", "Also turned to right, anterior, superior"),
    (OrientationProfile.LPS, "+ LPS", "Also turned to left, posterior, superior"),
)
_FUSES: Final = (
    (FuseRule.NONE, "kept apart", "Each set stays by itself"),
    (FuseRule.MAJORITY, "+ majority", "One more mask: what most readers marked; ties are left out"),
    (FuseRule.STAPLE, "+ STAPLE", "One more mask: STAPLE's estimate of the truth"),
)
_MAKERS: Final = (
    (SegmentMaker.FROM_PROVENANCE, "as the provenance says", "From the file beside each mask"),
    (SegmentMaker.MANUAL, "manual", "Drawn by hand"),
    (SegmentMaker.SEMIAUTOMATIC, "semiautomatic", "Drawn with tools that look at the image"),
    (SegmentMaker.AUTOMATIC, "automatic", "Made by a model"),
)


class ExportOptions(QWidget):
    """`changed` is emitted after every change; `wish` is what is chosen now."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("export_options")
        self._is_dicom = False
        self._n_sets = 0
        self.formats = self._make_formats()
        self.profile = self._choice("export_profile", "Orientation of the masks", _PROFILES)
        self.with_images: QCheckBox = self._check(
            "export_images", "images too", "Writes the phases beside the masks"
        )
        self.fuse = self._choice("export_fuse", "What becomes of several sets of masks", _FUSES)
        self.maker = self._choice("export_maker", "How the masks were made, for DICOM", _MAKERS)
        self.channels: QSpinBox = named(
            QSpinBox(), "export_channels", "How many phases, from the first on, nnU-Net gets"
        )
        self.channels.setRange(0, _MOST_PHASES)
        self.channels.setSpecialValueText("all")
        self.study: QLineEdit = named(
            QLineEdit(), "export_study", "DICOM folder that the segmentations refer to"
        )
        self.study.setPlaceholderText("DICOM folder of the case")
        browse = button("export_study_browse", "…", "Choose the DICOM folder", self._browse)
        self.labels = ExportLabels()
        label_row, label_rows = self.labels.parts()
        self._fuse_row = _named_row("Several", self.fuse)
        self._channels_row = _named_row("Phases", self.channels, _stretch())
        self._study_row = _named_row("Study", self.study, browse)
        self.identified: QCheckBox = self._check(
            "export_identified_seg",
            "with the patient's name",
            "Keeps the patient's name and the study's UIDs in the DICOM SEG, for sending it back "
            "to the PACS. Otherwise the case id stands for the patient",
        )
        self._dicom_rows = column(
            self._study_row,
            _named_row("Made by", self.maker),
            _named_row("Patient", self.identified, _stretch()),
        )
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        for part in (
            self._format_grid(),
            _named_row("Orientation", self.profile, self.with_images),
            _named_row("Labels", label_row),
            label_rows,
            self._fuse_row,
            self._channels_row,
            self._dicom_rows,
        ):
            layout.addWidget(part)
        for box in (*self.formats.values(), self.with_images, self.identified):
            box.toggled.connect(lambda _on: self._follow())
        for choice in (self.profile, self.fuse, self.maker):
            choice.currentIndexChanged.connect(lambda _at: self._follow())
        self.channels.valueChanged.connect(lambda _n: self._follow())
        self.study.textChanged.connect(lambda _text: self._follow())
        self.labels.changed.connect(self._follow)
        self._follow()

    def show_kind(self, *, is_dicom: bool) -> None:
        """Say whether the cases are DICOM, which needs no study to refer to."""
        self._is_dicom = is_dicom
        self._follow()

    def show_study(self, folder: Path | None) -> None:
        """Fill in the DICOM study that the cases were imported from, where there is one."""
        if folder is not None:
            self.study.setText(str(folder))

    def show_number_of_sets(self, n_sets: int) -> None:
        """Say how many sets of masks are chosen; two or more can be fused."""
        self._n_sets = n_sets
        self._follow()

    def wish(self) -> ExportWish:
        """Return what is chosen; what is not shown is left at its default."""
        formats = tuple(wanted for wanted, box in self.formats.items() if box.isChecked())
        seg = ExportFormat.DICOM_SEG in formats
        study = self.study.text().strip()
        several = self._n_sets > 1
        found = self.labels.found
        return ExportWish(
            formats,
            OrientationProfile(self.profile.currentData()),
            self.with_images.isChecked(),
            FuseRule(self.fuse.currentData()) if several else FuseRule.NONE,
            Path(study) if seg and study and not self._is_dicom else None,
            SegmentMaker(self.maker.currentData()) if seg else SegmentMaker.FROM_PROVENANCE,
            self.channels.value() or None,
            () if found is None else found.rules,
            seg and self.identified.isChecked(),
            self._problem(formats, study),
        )

    # -------------------------------------------------------------------- inner

    def _problem(self, formats: tuple[ExportFormat, ...], study: str) -> str:
        if not formats:
            return "Choose a format first."
        if self.labels.problem:
            return self.labels.problem
        if ExportFormat.DICOM_SEG in formats and not self._is_dicom and not study:
            return "DICOM SEG refers to DICOM images, but these cases are not: choose their study."
        if (
            ExportFormat.NNUNET in formats
            and self._n_sets > 1
            and self.fuse.currentData() == FuseRule.NONE
        ):
            return "nnU-Net takes one mask of each case: choose one set, or fuse them."
        return ""

    def _follow(self) -> None:
        seg = self.formats[ExportFormat.DICOM_SEG].isChecked()
        self._dicom_rows.setVisible(seg)
        self._channels_row.setVisible(self.formats[ExportFormat.NNUNET].isChecked())
        self._study_row.setVisible(seg and not self._is_dicom)
        self._fuse_row.setVisible(self._n_sets > 1)
        self.changed.emit()

    def _make_formats(self) -> dict[ExportFormat, QCheckBox]:
        made = {}
        for wanted, text, tip in _FORMATS:
            box = self._check(f"export_format_{wanted.name.lower()}", text, tip)
            box.setChecked(wanted is ExportFormat.NIFTI)
            made[wanted] = box
        return made

    def _format_grid(self) -> QWidget:
        holder = QWidget()
        grid = QGridLayout(holder)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(4)
        for k, box in enumerate(self.formats.values()):
            grid.addWidget(box, k // 3, k % 3)
        return holder

    def _check(self, name: str, text: str, tip: str) -> QCheckBox:
        made: QCheckBox = named(QCheckBox(text), name, tip)
        return made

    def _choice(self, name: str, tip: str, items: tuple[tuple[object, str, str], ...]) -> QComboBox:
        made: QComboBox = named(QComboBox(), name, tip)
        for k, (value, text, hint) in enumerate(items):
            made.addItem(text, value)
            made.setItemData(k, hint, Qt.ItemDataRole.ToolTipRole)
        return made

    def _browse(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, "DICOM study", self.study.text())
        if chosen:
            self.study.setText(chosen)


def _stretch() -> QWidget:
    made = QWidget()
    made.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
    return made


def _named_row(text: str, *widgets: QWidget) -> QWidget:
    return row(row_name(text, _NAMES), *widgets)
