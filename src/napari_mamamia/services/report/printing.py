"""Print a page as PDF with Qt's text engine.

Printing runs in a subprocess, because its offscreen Qt application would interfere with the
application of a window or a notebook. No other module outside the window uses Qt.
"""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import MissingExtraError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.files.save import saving
from napari_mamamia.services.batch.child import Child
from napari_mamamia.services.batch.in_subprocess import run_in_subprocess
from napari_mamamia.services.batch.work import CaseInputs

_MARGIN_MM: Final = 13.0
_DOTS_PER_INCH: Final = 96
"""Resolution of the page layout in dots per inch, which the template's image widths assume."""
_BINDINGS: Final = ("PyQt6", "PySide6")


def require_qt() -> None:
    """Raise an error if Qt, which prints PDFs, is not installed.

    Raises
    ------
    MissingExtraError
        If Qt is not installed.
    """
    if find_spec("qtpy") is None or not any(map(find_spec, _BINDINGS)):
        raise MissingExtraError("PyQt6", "pyqt6")


def write_pdf(child: Child, text: str, title: str, path: Path, *, overwrite: bool = False) -> None:
    """Write simple HTML as a PDF with A4 pages, which is printed in the subprocess `child`.

    Raises
    ------
    SaveConflictError
        If the file exists and `overwrite` is False.
    SaveError
        If printing fails or the file cannot be written.
    """
    report_progress(0, 1, "Writing the PDF")
    content = run_in_subprocess(child, _set_pages, (text, title), bytes, "Writing the PDF")
    with saving(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)


def _set_pages(inputs: CaseInputs, page: tuple[str, str]) -> bytes:
    """Return the PDF of a page with its title; this function runs in the subprocess."""
    del inputs
    text, title = page
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from qtpy.QtCore import QBuffer, QMarginsF, QSizeF
    from qtpy.QtGui import (
        QGuiApplication,
        QPageLayout,
        QPageSize,
        QPdfWriter,
        QTextDocument,
    )

    # This variable keeps the application alive, because Qt ends with its last reference.
    application: Any = QGuiApplication.instance() or QGuiApplication(["napari-mamamia"])
    buffer = QBuffer()
    buffer.open(QBuffer.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setResolution(_DOTS_PER_INCH)
    writer.setPageSize(QPageSize(QPageSize.PageSizeId.A4))
    margins = QMarginsF(_MARGIN_MM, _MARGIN_MM, _MARGIN_MM, _MARGIN_MM)
    writer.setPageMargins(margins, QPageLayout.Unit.Millimeter)
    writer.setTitle(title)
    writer.setCreator("napari-mamamia")
    document = QTextDocument()
    document.setDocumentMargin(0)
    document.setHtml(text)
    document.setPageSize(QSizeF(writer.width(), writer.height()))
    document.print_(writer)
    del document, writer
    content = bytes(buffer.data())
    del application
    if not content.startswith(b"%PDF"):
        raise ValueError("Qt wrote no PDF")
    return content
