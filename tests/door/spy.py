"""What stands in the window of a started program, told over a socket: for tests only.

A small environment (see `program.py`) has a `.pth` file that imports this module at the start of
Python, so the program itself runs as a user started it. Once a `QApplication` lives, a thread takes
requests from the socket and has them answered in the main thread.
"""

import json
import os
import socketserver
import sys
import threading
import time
from pathlib import Path

NAME = "door spy"
POLL_S = 0.05
ANSWER_S = 60.0
LAST_S = 5.0
"""A program that takes questions no more has ended by then."""


def start() -> None:
    """Listen on the socket that `MAMAMIA_DOOR_SOCKET` names, once Qt is there."""
    path = os.environ.get("MAMAMIA_DOOR_SOCKET", "")
    # Python may read a .pth file twice, and two servers would meet at one address
    if path and NAME not in {thread.name for thread in threading.enumerate()}:
        threading.Thread(target=_serve, args=(path,), name=NAME, daemon=True).start()


def _serve(path: str) -> None:
    while not _application():
        time.sleep(POLL_S)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            for line in self.rfile:
                answer = _in_main_thread(json.loads(line))
                self.wfile.write(json.dumps(answer).encode() + b"\n")
                self.wfile.flush()

    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
        daemon_threads = True

    waiting = Path(f"{path}.{os.getpid()}")  # of this process alone
    server = Server(str(waiting), Handler)
    waiting.rename(path)  # the path appears when it can be connected to
    try:
        server.serve_forever()
    except Exception:
        time.sleep(LAST_S)  # a program that ends cannot start a thread for one more question
        if threading.main_thread().is_alive():
            raise


def _application():
    if "napari._qt.qt_event_loop" not in sys.modules:  # the splash screen's time
        return None
    qt = sys.modules.get("qtpy.QtWidgets")
    return getattr(qt, "QApplication", None) and qt.QApplication.instance()


def _in_main_thread(request: dict) -> dict:
    from qtpy.QtCore import QMetaObject, QObject, Qt, Slot

    done = threading.Event()
    answer: dict = {}

    class Call(QObject):
        @Slot()
        def run(self):
            began = time.thread_time()
            try:
                answer["result"] = COMMANDS[request["do"]](**request.get("with", {}))
            except Exception as error:  # noqa: BLE001 - told to the test, which fails
                answer["error"] = f"{type(error).__name__}: {error}"
            SPENT[0] += time.thread_time() - began
            done.set()

    call = Call()
    call.moveToThread(_application().thread())
    QMetaObject.invokeMethod(call, "run", Qt.ConnectionType.QueuedConnection)
    if not done.wait(ANSWER_S):
        return {"error": f"the main thread did not answer within {ANSWER_S:g} s"}
    return answer


def list_widgets(**wanted) -> list[dict]:
    """Each visible widget: class, objectName, text, rectangle on the screen, enabled, hit.

    Tests ask again and again, and to describe all takes 0.1 s of the program's main thread: only
    the widgets with the properties that are `wanted` are; of a text `part` it holds a part.
    """
    from qtpy.QtWidgets import QApplication

    part = wanted.pop("part", "")
    cheap = {key: READ[key] for key in wanted if key in READ}
    rows = []
    for widget in QApplication.allWidgets():
        if not widget.isVisible() or any(
            read(widget) != wanted[key] for key, read in cheap.items()
        ):
            continue
        if part in _text_of(widget):
            rows.append(_describe(widget))
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _text_of(widget) -> str:
    text = getattr(widget, "text", None) or getattr(widget, "currentText", None)
    return str(text()) if callable(text) else ""


READ = {
    "class": lambda widget: type(widget).__name__,
    "name": lambda widget: widget.objectName(),
    "text": _text_of,
}
"""What is quickly known of a widget."""


def _describe(widget) -> dict:
    from qtpy.QtCore import QPoint
    from qtpy.QtWidgets import QApplication

    ratio = widget.devicePixelRatioF()  # Qt counts in points, the screen and xdotool in pixels

    def pixels(*points):
        return [round(ratio * value) for value in points]

    corner = widget.mapToGlobal(QPoint(0, 0))
    region = widget.visibleRegion().boundingRect()
    seen = widget.mapToGlobal(region.center())
    hit = None if region.isEmpty() else QApplication.widgetAt(seen)
    hint = widget.sizeHint()
    return {
        **{key: read(widget) for key, read in READ.items()},
        "bases": [base.__name__ for base in type(widget).__mro__ if base.__name__.startswith("Q")],
        "tooltip": widget.toolTip(),
        "rect": pixels(corner.x(), corner.y(), widget.width(), widget.height()),
        "hint": [hint.width(), hint.height()],
        "visible_rect": None
        if region.isEmpty()
        else pixels(*_xy(widget.mapToGlobal(region.topLeft())), region.width(), region.height()),
        "centre": pixels(seen.x(), seen.y()),
        "hit": hit is not None and (hit is widget or widget.isAncestorOf(hit)),
        "visible": widget.isVisible(),
        "enabled": widget.isEnabled(),
        "checked": bool(widget.isChecked()) if hasattr(widget, "isChecked") else None,
    }


def _xy(point) -> tuple[int, int]:
    return point.x(), point.y()


def evaluate(code: str) -> object:
    """Run code in the main thread; what it leaves in `result` comes back (JSON)."""
    space: dict = {"result": None}
    exec(code, space)
    return space["result"]


def drop(name: str, paths: list[str]) -> bool:
    """Drop files on the widget of a name or class; say whether they were taken."""
    from qtpy.QtCore import QMimeData, QPointF, Qt, QUrl
    from qtpy.QtGui import QDragEnterEvent, QDropEvent
    from qtpy.QtWidgets import QApplication

    widget = next(
        w
        for w in QApplication.allWidgets()
        if w.isVisible() and name in (w.objectName(), type(w).__name__)
    )
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(path) for path in paths])
    middle = widget.rect().center()
    how = (
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    enter = QDragEnterEvent(middle, *how)
    QApplication.sendEvent(widget, enter)
    event = QDropEvent(QPointF(middle), *how)
    QApplication.sendEvent(widget, event)
    return event.isAccepted()


SPENT = [0.0]
"""Processor seconds of the main thread that went into answers of the spy's own."""


def seconds() -> float:
    """Return the main thread's processor seconds so far, without what the spy took."""
    return time.thread_time() - SPENT[0]


COMMANDS = {
    "widgets": list_widgets,
    "evaluate": evaluate,
    "drop": drop,
    "seconds": seconds,
}
