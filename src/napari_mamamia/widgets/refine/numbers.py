"""Live measurements on the Refine page: initial mask and current mask against a reference."""

from dataclasses import dataclass
from math import isnan
from typing import Final

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QGridLayout, QLabel, QWidget

from napari_mamamia.core.texts import tr
from napari_mamamia.services.refine.numbers import MaskNumbers
from napari_mamamia.widgets.controls.controls import FittedLabel, named
from napari_mamamia.widgets.controls.wrapped import WrappedLabel

_UNKNOWN: Final = "–"
_WIDEST: Final = "130.4 mm"
_MM3_PER_ML: Final = 1000.0


@dataclass(frozen=True, slots=True)
class ShownNumbers:
    """Measurements of the initial mask, the current mask and the reference; None if unknown.

    `grid_warning` is the reason why mm and ml are invalid, or "" if they are valid.
    """

    start: MaskNumbers | None
    now: MaskNumbers | None
    reference: MaskNumbers | None = None
    grid_warning: str = ""


_ROWS: Final = (
    ("dice", tr("Dice"), tr("Dice against the reference, 0 to 1 (clinical profile).")),
    ("hausdorff95_mm", "HD95", tr("95th percentile Hausdorff distance in mm (clinical profile).")),
    (
        "volume_mm3",
        tr("Volume"),
        tr("Number of voxels times the volume of one voxel, in millilitres."),
    ),
    (
        "longest_mm",
        tr("Longest"),
        tr("Longest diameter in 3-D: the largest distance between two voxel centres, in mm."),
    ),
)


def number_text(name: str, value: float) -> str:
    """Return a measurement with its unit, or "–" if it is undefined.

    Examples
    --------
    >>> number_text("volume_mm3", 4412.0), number_text("dice", 0.8666), number_text("dice", 0 / 1)
    ('4.41 ml', '0.87', '0.00')
    """
    if isnan(value):
        return _UNKNOWN
    if name == "dice":
        return f"{value:.2f}"
    return (
        tr("{value:.2f} ml", value=value / _MM3_PER_ML)
        if name == "volume_mm3"
        else tr("{value:.1f} mm", value=value)
    )


class RefineNumbers(QWidget):
    """Table with a row for each measurement, and columns for start, current mask and reference."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("refine_numbers")
        self._blind = ""
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(1)
        # The title wraps, so that a long one does not make the page wider than the dock.
        self.title: WrappedLabel = named(
            WrappedLabel(), "refine_numbers_title", tr("Reference to which your mask is compared.")
        )
        self.title.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom)
        grid.addWidget(self.title, 0, 0)
        for column, text in enumerate((tr("start"), tr("now"), tr("reference")), start=1):
            head = QLabel(text)
            head.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignBottom)
            grid.addWidget(head, 0, column)
        self.cells: dict[tuple[str, str], QLabel] = {}
        for index, (name, text, tip) in enumerate(_ROWS, start=1):
            grid.addWidget(named(QLabel(text), f"refine_{name}_name", tip), index, 0)
            for column, whose in enumerate(("start", "now", "reference"), start=1):
                cell: QLabel = named(
                    FittedLabel(_UNKNOWN, (_WIDEST,)), f"refine_{name}_{whose}", tip
                )
                cell.setAlignment(Qt.AlignmentFlag.AlignRight)
                grid.addWidget(cell, index, column)
                self.cells[name, whose] = cell
        grid.setColumnStretch(0, 1)
        self.show_numbers(ShownNumbers(None, None))

    def set_blind(self, text: str) -> None:
        """Show what is hidden in this reading; "" means that nothing is hidden."""
        self._blind = text
        self.show_numbers(ShownNumbers(None, None))

    def show_numbers(self, numbers: ShownNumbers) -> None:
        """Show the measurements; an unknown value is a dash with the reason as its tooltip."""
        against = "" if numbers.now is None else numbers.now.against
        title = tr("Against {against}", against=against) if against else "Numbers"
        title = self._blind or (title if numbers.reference else tr("No reference"))
        if numbers.grid_warning and not self._blind:
            title = tr("{title} (in voxels, not mm)", title=title)
        self.title.setText(title)
        self.title.setToolTip(
            numbers.grid_warning or tr("Reference to which your mask is compared.")
        )
        for name, _, tip in _ROWS:
            for whose, of in (
                ("start", numbers.start),
                ("now", numbers.now),
                ("reference", numbers.reference),
            ):
                self._show_number(name, whose, tip, of)

    def _show_number(self, name: str, whose: str, tip: str, of: MaskNumbers | None) -> None:
        cell = self.cells[name, whose]
        against = name in ("dice", "hausdorff95_mm")
        if whose == "reference" and (against or of is None):
            cell.setText("")
            return
        value = float("nan") if of is None else float(getattr(of, name))
        cell.setText(number_text(name, value))
        why = tr("not measured yet") if of is None else of.reason or tr("the mask is empty")
        cell.setToolTip(f"{tip}: {why}" if isnan(value) else tip)
