"""Run napari in an application that was created before napari was imported."""

import sys
from contextlib import suppress

import napari
from napari import __main__ as napari_program
from qtpy.QtWidgets import QApplication


def run_napari(app: QApplication, *arguments: str) -> None:
    """Run napari with these arguments until its window is closed."""
    _complete_application(app)
    sys.argv = ["napari", *arguments]
    napari_program.main()


def _complete_application(app: QApplication) -> None:
    """Give the application the names and the event filter of a napari application.

    Source: napari 0.9.2, napari/_qt/qt_event_loop.py, ``get_qapp``; the program quits with its last
    window only if the application has napari's name.
    """
    app.setApplicationName("napari")
    app.setApplicationVersion(napari.__version__)
    app.setOrganizationName("napari")
    app.setOrganizationDomain("napari.org")
    with suppress(ImportError):
        from napari._qt.qt_event_filters import QtToolTipEventFilter
        from napari._qt.qt_event_loop import NAPARI_APP_ID, set_app_id

        set_app_id(NAPARI_APP_ID)  # type: ignore[no-untyped-call]
        app.installEventFilter(QtToolTipEventFilter(app))
