"""Section of the page Kinetics: FTV under a DICOM SEG of UCSF, ours and theirs side by side."""

from html import escape
from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import Qt, QTimer, Signal
from qtpy.QtWidgets import QFileDialog, QScrollArea, QVBoxLayout, QWidget

from napari_mamamia.services.kinetics.ftv_from import FtvFromRow, FtvUnderSeg
from napari_mamamia.widgets.controls.controls import breakable, button, label, row, set_level
from napari_mamamia.widgets.controls.drops import dropped_paths

__all__ = ["FtvSegControls"]

_NAMES: Final = {"pe": "PE", "ser": "PE and SER"}


class FtvSegControls(QWidget):
    """`seg_wanted` carries the path of a SEG that was chosen, or dropped here."""

    seg_wanted = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("kinetics_ftv_seg_part")
        self.setAcceptDrops(True)
        self.choose = button(
            "kinetics_ftv_seg",
            "VOI from SEG…",
            "Counts under a DICOM SEG that UCSF's FTV program wrote: its VOI, omitted regions, "
            "thresholds and phases; ours stands beside theirs. A SEG can be dropped here too",
            self._browse,
        )
        self.numbers = label("kinetics_ftv_seg_numbers", "", "FTV under the SEG, ours and UCSF's")
        self.numbers.setTextFormat(Qt.TextFormat.RichText)
        self.basis = label(
            "kinetics_ftv_seg_basis", "", "Phases, timing and mask that both numbers rest on"
        )
        self.remark = label("kinetics_ftv_seg_remark", "", "What is unusual about this SEG")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(row(self.choose, 1))
        for made in (self.numbers, self.basis, self.remark):
            layout.addWidget(made)
        self.show_comparison(None)

    def show_comparison(self, found: FtvUnderSeg | None) -> None:
        """Show both numbers, what they rest on, and what is unusual; None for nothing."""
        first = None if found is None else found.rows[0]
        self.numbers.setText("" if found is None else _table(found.rows))
        self.basis.setText("" if first is None else f"{first.phases} · {first.ftv_variant}")
        self.basis.setToolTip("" if first is None else first.ftv_thresholds)
        self._say("" if first is None else first.remark, "warning")
        for made in (self.numbers, self.basis):
            made.setVisible(found is not None)
        if found is not None:
            QTimer.singleShot(0, self._come_into_view)  # once the new height is laid out

    def show_failed(self, reason: str) -> None:
        """Say why a SEG was not taken; what was shown of another one goes."""
        self.show_comparison(None)
        self._say(reason, "error")
        QTimer.singleShot(0, self._come_into_view)

    def dragEnterEvent(self, event: Any) -> None:
        """Take a single file."""
        if len(dropped_paths(event)) == 1:
            event.acceptProposedAction()

    def dropEvent(self, event: Any) -> None:
        """Count under the file."""
        event.acceptProposedAction()
        self.seg_wanted.emit(dropped_paths(event)[0])

    def _come_into_view(self) -> None:
        area = self.parentWidget()
        while area is not None and not isinstance(area, QScrollArea):
            area = area.parentWidget()
        if isinstance(area, QScrollArea):
            area.ensureWidgetVisible(self)

    def _say(self, text: str, level: str) -> None:
        self.remark.setText(text)
        set_level(self.remark, level)
        self.remark.setVisible(bool(text))

    def _browse(self) -> None:
        chosen, _ = QFileDialog.getOpenFileName(
            self, "DICOM SEG of UCSF", str(Path.home()), "DICOM (*.dcm);;All files (*)"
        )
        if chosen:
            self.seg_wanted.emit(Path(chosen))


def _table(rows: tuple[FtvFromRow, ...]) -> str:
    head = "".join(f"<td align='right'>&nbsp;&nbsp;{name}</td>" for name in ("ours", "UCSF"))
    lines = [f"<tr><td></td>{head}</tr>"]
    for one in rows:
        name = _NAMES.get(one.measure, escape(one.measure))
        for unit, cells in (
            ("voxels", (f"{one.ours_voxels:,.0f}", f"{one.theirs_voxels:,.0f}")),
            ("cc", (f"{one.ours_cc:.3f}", f"{one.theirs_cc:.3f}")),
        ):
            numbers = "".join(f"<td align='right'>&nbsp;&nbsp;{cell}</td>" for cell in cells)
            lines.append(f"<tr><td>{name}, {unit}</td>{numbers}</tr>")
        if one.different_voxels == one.different_voxels:
            differ = f"<td align='right' colspan='2'>{one.different_voxels:,.0f}</td>"
            lines.append(f"<tr><td>voxels that differ</td>{differ}</tr>")
    title = f"<b>Under {breakable(escape(rows[0].seg))}</b>"
    return f"{title}<table cellspacing='0'>{''.join(lines)}</table>"
