"""The splash screen: at once on the screen, and away with the program's window."""

import time

from qtpy.QtWidgets import QMainWindow

from napari_mamamia.widgets.base.splash import show_splash


def test_it_is_on_the_screen_when_the_call_returns_and_leaves_when_the_window_comes(qtbot, qapp):
    began = time.monotonic()
    splash = show_splash(qapp, "a" * 200)
    qtbot.addWidget(splash)
    # QSplashScreen alone took 1 s without a window manager
    assert time.monotonic() - began < 0.9
    assert splash.isVisible()
    assert splash.width() == 420
    window = QMainWindow()
    qtbot.addWidget(window)
    window.show()
    qtbot.waitUntil(lambda: not splash.isVisible())
