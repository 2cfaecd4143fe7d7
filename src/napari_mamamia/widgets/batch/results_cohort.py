"""The Cohort tab: summary statistics with intervals and definitions, and figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from qtpy.QtCore import QEvent, QObject, Qt, Signal
from qtpy.QtGui import QImage, QPixmap, QResizeEvent, QTextOption
from qtpy.QtWidgets import (
    QComboBox,
    QLabel,
    QSizePolicy,
    QSplitter,
    QTextBrowser,
    QWidget,
)

from napari_mamamia.core.texts import tr
from napari_mamamia.scoring.report.text import ReportTable
from napari_mamamia.widgets.controls.controls import button, fill_column, named, row
from napari_mamamia.widgets.controls.fields import combo_box

_LEAST_FIGURE: Final = 240
_SHARES: Final = (300, 200)
"""Relative sizes of the text and the figure, which exceed the minimum sizes of both."""
_NOTHING: Final = tr("<p>Nothing has been scored yet: the Batch page scores folders of masks.</p>")


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A figure of the run with its title and image."""

    title: str
    image: QImage


class CohortTab(QWidget):
    """The Cohort tab; `report_wanted` requests that the report be opened in the browser."""

    report_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._figures: tuple[Figure, ...] = ()
        self.page: QTextBrowser = named(
            QTextBrowser(),
            "cohort_page",
            tr("Summary statistics of the cohort with intervals and definitions."),
        )
        self.page.setOpenLinks(False)
        self.page.setWordWrapMode(
            QTextOption.WrapMode.WordWrap
        )  # Without this, Qt breaks lines inside numbers.
        self.figure = combo_box("cohort_figure", tr("Figure to show."))
        self.figure.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        self.figure.setSizeAdjustPolicy(policy)
        self.figure.currentIndexChanged.connect(lambda _at: self._draw_figure())
        self.report = button(
            "cohort_report",
            tr("Open report"),
            tr("Opens report.html in the browser, with the same numbers, figures and case images."),
            self.report_wanted.emit,
        )
        self.picture: QLabel = named(QLabel(), "cohort_picture", tr("The figure."))
        self.picture.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.picture.setMinimumSize(_LEAST_FIGURE, 60)
        self.picture.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self.picture.installEventFilter(self)
        self._lay_out()
        self.show_page("", has_report=False)
        self.show_figures(())

    def show_page(self, html: str, *, has_report: bool) -> None:
        """Show the summary as rich text; `html` is "" if there is no summary."""
        self.page.setHtml(html or _NOTHING)
        self.report.setEnabled(has_report)

    def show_figures(self, figures: Sequence[Figure]) -> None:
        """Offer the figures of the run."""
        self._figures = tuple(figures)
        self.figure.blockSignals(True)
        self.figure.clear()
        self.figure.addItems([figure.title for figure in figures] or [tr("no figure")])
        self.figure.setEnabled(bool(figures))
        self.figure.blockSignals(False)
        self._draw_figure()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the figure below the text if the tab is higher than wide."""
        super().resizeEvent(event)
        is_high = self.height() > self.width()
        orientation = Qt.Orientation.Vertical if is_high else Qt.Orientation.Horizontal
        if self.parts.orientation() != orientation:
            self.parts.setOrientation(orientation)
            self.parts.setSizes(_SHARES)

    def eventFilter(self, _picture: QObject | None, event: QEvent | None) -> bool:
        """Scale the figure to the available space."""
        if event is not None and event.type() == QEvent.Type.Resize:
            self._draw_figure()
        return False

    # -------------------------------------------------------------------- inner

    def _lay_out(self) -> None:
        side = QWidget()
        fill_column(side, row(self.figure, self.report), (self.picture, 1))
        self.parts = QSplitter(Qt.Orientation.Horizontal)
        self.parts.addWidget(self.page)
        self.parts.addWidget(side)
        for at, share in enumerate(_SHARES):
            self.parts.setStretchFactor(at, share)
        fill_column(self, self.parts, margins=(0, 4, 0, 0))

    def _draw_figure(self) -> None:
        index = self.figure.currentIndex()
        if not 0 <= index < len(self._figures):
            self.picture.clear()
            return
        ratio = self.picture.devicePixelRatioF()
        scaled = QPixmap.fromImage(
            self._figures[index].image.scaled(
                self.picture.size() * ratio,
                Qt.AspectRatioMode.KeepAspectRatio,
                Qt.TransformationMode.SmoothTransformation,
            )
        )
        scaled.setDevicePixelRatio(ratio)
        self.picture.setPixmap(scaled)


def page_of(heads: Sequence[str], tables: Sequence[ReportTable]) -> str:
    """Return headlines and tables as rich text, with rows of small groups in italics.

    Examples
    --------
    >>> page_of(["net: n 3"], [])
    '<p><b>net: n 3</b></p>'
    """
    first = f"<p><b>{escape(heads[0])}</b>" if heads else "<p>"
    rest = "".join(f"<br>{escape(text)}" for text in heads[1:])
    return f"{first}{rest}</p>" + "".join(_format_table(table) for table in tables)


def _format_table(table: ReportTable) -> str:
    sides = ["right" if column.is_number else "left" for column in table.columns]
    head = "".join(
        f'<th align="{side}">{escape(column.label)}</th>'
        for side, column in zip(sides, table.columns, strict=True)
    )
    lines = [f"<tr>{head}</tr>"]
    for one in table.rows:
        style = ' style="font-style:italic"' if one.is_small else ""
        cells = "".join(
            f'<td align="{side}"{style}>{escape(cell)}</td>'
            for side, cell in zip(sides, one.cells, strict=True)
        )
        lines.append(f"<tr>{cells}</tr>")
    notes = [escape(note) for note in table.notes]
    notes += [f"{escape(what)}: {escape(', '.join(ids))}" for what, ids in table.listed]
    below = "".join(f"<br>{note}" for note in notes)
    rows = "".join(lines)
    return (
        f"<p><b>{escape(table.title)}</b></p>"
        f'<table cellspacing="0" cellpadding="4">{rows}</table><p>{below.removeprefix("<br>")}</p>'
    )
