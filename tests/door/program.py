"""Start the real program in a process of its own, on a screen of its own; look, click, type.

`Screen` is an Xvfb of a size. `Program` is a command as a user types it, run with the unmodified
console scripts of a small environment whose only addition is `spy.py`, through which a test finds
widgets by their objectName. Mouse and keys are xdotool's, pictures are what the X server shows.
"""

import contextlib
import ctypes
import ctypes.util
import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from contextlib import suppress
from pathlib import Path

import numpy as np
from PIL import Image, ImageGrab

WAIT_S = 120.0
POLL_S = 0.1
SOURCE = Path(__file__).parents[2] / "src"


def wait_until(true, what: str, seconds: float = WAIT_S):
    """Ask until the answer is true, and return it; fail with the last answer."""
    end = time.monotonic() + seconds
    while True:
        answer = true()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds:g} s, last answer {answer!r}")
        time.sleep(POLL_S)


def wait_still(place, what: str):
    """Ask for a place until it is there and twice the same, and return it.

    A page that has just opened is laid out more than once: a click aimed at the first place lands
    on what moved there.
    """
    seen: list = []

    def same():
        seen.append(place())
        return seen[-1] if len(seen) > 1 and seen[-1] == seen[-2] else None

    return wait_until(same, what)


class Screen:
    """An Xvfb display of a size; `with Screen(1280, 720) as screen`.

    `monitors` stand on it side by side, their tops in line: the width and height of each.
    """

    def __init__(
        self, width: int = 1400, height: int = 900, monitors: tuple[tuple[int, int], ...] = ()
    ):
        self.size = (width, height)
        reading, writing = os.pipe()
        self._server = subprocess.Popen(
            [
                *("Xvfb", "-displayfd", str(writing), "-nolisten", "tcp", "+extension", "GLX"),
                *("-screen", "0", f"{width}x{height}x24", "-noreset"),
            ],
            pass_fds=[writing],
            stderr=subprocess.DEVNULL,
        )
        os.close(writing)
        with os.fdopen(reading) as stream:
            self.display = f":{stream.readline().strip()}"
        left = 0
        for number, (wide, high) in enumerate(monitors):
            # The first has the display's own output; the millimetres are for 96 dots an inch.
            place = f"{wide}/{wide * 254 // 960}x{high}/{high * 254 // 960}+{left}+0"
            output = "none" if number else "screen"
            self._run("xrandr", "--setmonitor", f"M{number}", place, output)
            left += wide

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        """End the server."""
        self._server.terminate()
        self._server.wait(10)

    def picture(self, path: Path | None = None) -> np.ndarray:
        """Return what the screen shows (rows, columns, RGB uint8); a path saves it."""
        image = ImageGrab.grab(xdisplay=self.display).convert("RGB")
        if path is not None:
            image.save(path)
        return np.asarray(image)

    def xdotool(self, *words: object) -> None:
        """Move, click or type, as `xdotool` does."""
        self._run("xdotool", *words)

    def _run(self, *words: object) -> None:
        subprocess.run(
            [*map(str, words)],
            env={**os.environ, "DISPLAY": self.display},
            check=True,
            timeout=60,
            stdout=subprocess.DEVNULL,
        )

    def click(self, x: int, y: int, button: int = 1, times: int = 1) -> None:
        """Click at a place of the screen."""
        self.xdotool("mousemove", x, y, "click", "--repeat", times, "--delay", 60, button)

    def drag(self, places: list[tuple[int, int]], button: int = 1) -> None:
        """Press at the first place, move through the others, let go at the last."""
        words: list[object] = ["mousemove", *places[0], "mousedown", button]
        for place in places[1:]:
            words += ["mousemove", *place, "sleep", 0.05]
        self.xdotool(*words, "mouseup", button)

    def key(self, *names: str) -> None:
        """Press keys by their X names: `period`, `ctrl+z`, `Return`."""
        self.xdotool("key", "--delay", 60, *names)


def count_colour(picture: np.ndarray, colour: str, tolerance: int = 24) -> int:
    """Return how many pixels have a colour ("#56B4E9") to a tolerance in each channel."""
    rgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)])
    return int((np.abs(picture.astype(int) - rgb) <= tolerance).all(axis=2).sum())


def make_environment(folder: Path) -> Path:
    """Make an environment with the console scripts, this source and the spy; return its `bin`."""
    venv.create(folder, with_pip=False, symlinks=True)
    site = next((folder / "lib").glob("python*")) / "site-packages"
    (site / "a_source.pth").write_text(f"{SOURCE}\n")
    (site / "b_base.pth").write_text(
        "\n".join(p for p in sys.path if p.endswith("site-packages")) + "\n"
    )
    (site / "door_spy.py").write_text((Path(__file__).parent / "spy.py").read_text())
    (site / "c_spy.pth").write_text("import door_spy; door_spy.start()\n")
    scripts = folder / "bin"
    for name in ("mamamia", "napari"):
        text = (Path(sysconfig.get_path("scripts")) / name).read_text()
        script = scripts / name
        script.write_text(f"#!{scripts}/python\n" + text.split("\n", 1)[1])
        script.chmod(0o755)
    return scripts


STEPS = {
    "work_list": ("cases", "batch"),
    "read": ("view", "findings", "kinetics", "review"),
    "mask": ("predict", "refine"),
    "check": ("score", "report", "export"),
}
PAGE = """
import napari
from napari_mamamia.widgets.dock.place import dock_of
pages = dock_of(napari.current_viewer()).pages
result = "" if pages.is_importing else pages.page.lower().split()[0]
"""


class Program:
    """A started command: its widgets by name, its output, its end."""

    def __init__(self, command: list[str], screen: Screen, folder: Path, **environment: str):
        self.screen = screen
        self.folder = folder
        # a socket's path may have 107 characters, a test's folder has more
        self._sockets = tempfile.TemporaryDirectory(prefix="door")
        self._socket_path = Path(self._sockets.name) / "s"
        self._output = (folder / "output.txt").open("wb")
        self._socket: socket.socket | None = None
        cleared = {
            key: value
            for key, value in os.environ.items()
            if key not in ("QT_QPA_PLATFORM", "PYTEST_CURRENT_TEST", "WAYLAND_DISPLAY")
        }
        own = {
            "DISPLAY": screen.display,
            "MAMAMIA_DOOR_SOCKET": str(self._socket_path),
            "NAPARI_CONFIG": str(folder / "napari" / "settings.yaml"),
            "MAMAMIA_CONFIG_DIR": str(folder / "config"),
            "MAMAMIA_CACHE_DIR": str(folder / "cache"),
            "MAMAMIA_MODELS_DIR": str(folder / "models"),
            "PYTHONFAULTHANDLER": "1",
            # what is offered as a target lies in the user's home; fonts are not looked for anew
            "HOME": str(folder),
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
        }
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env={**cleared, **own, **environment},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self) -> None:
        """End it with everything that it started."""
        if self._socket is not None:
            self._socket.close()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)
        self._output.close()
        self._sockets.cleanup()

    @property
    def output(self) -> str:
        """What it printed so far."""
        return (self.folder / "output.txt").read_text(errors="replace")

    def ask(self, do: str, **given):
        """Ask the spy in the program's main thread."""
        if self._socket is None:
            wait_until(lambda: self._socket_path.exists() or self._ended(), "the program's window")
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(str(self._socket_path))
            self._stream = self._socket.makefile("rwb")
        self._stream.write(json.dumps({"do": do, "with": given}).encode() + b"\n")
        self._stream.flush()
        line = self._stream.readline()
        if not line:
            raise AssertionError(f"the program ended:\n{self.output[-3000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise AssertionError(answer["error"])
        return answer["result"]

    def _ended(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(
                f"the program ended with {self.process.returncode}:\n{self.output[-3000:]}"
            )
        return False

    def widgets(self, **wanted) -> list[dict]:
        """Return the visible widgets with these properties (name, text, class, part of a text)."""
        return self.ask("widgets", **wanted)

    def widget(self, name: str, seconds: float = WAIT_S) -> dict:
        """Wait for the visible widget of an objectName and return it."""
        return wait_until(lambda: self.widgets(name=name), f"widget {name}", seconds)[0]

    def click(self, name: str, button: int = 1, times: int = 1) -> dict:
        """Wait until the control of an objectName is enabled and stays put; click its middle."""
        found: list[dict] = []

        def place():
            rows = self.widgets(name=name)
            found[:] = [row for row in rows if row["enabled"] and row["visible_rect"]][:1]
            return found and found[0]["visible_rect"]

        wait_still(place, f"control {name}")
        (row,) = found
        self.screen.click(*row["centre"], button=button, times=times)
        return row

    def turn_to(self, page: str) -> None:
        """Open a section of a step, or of the work list, as a user does: its step, its title."""
        word = page.lower().split()[0]
        step = next(name for name, pages in STEPS.items() if word in pages)

        def is_there() -> bool:
            if self.ask("evaluate", code=PAGE) == word:
                return True
            section = f"section_{word}"
            self.click(section if self.widgets(name=section) else f"step_{step}")
            return False

        wait_until(is_there, f"page {page}")

    def wait_for_text(self, part: str, seconds: float = WAIT_S) -> dict:
        """Wait until a visible widget's text holds a part; return the widget."""
        return wait_until(
            lambda: self.widgets(part=part),
            f"text {part!r}",
            seconds,
        )[0]

    def canvas(self) -> tuple[int, int, int, int]:
        """Return the rectangle of napari's canvas on the screen: x, y, width, height."""

        def place():
            rows = self.widgets(**{"class": "CanvasBackendDesktop"})
            return max((row["rect"] for row in rows), key=lambda r: r[2] * r[3], default=None)

        return tuple(wait_still(place, "napari's canvas"))

    def wait_rect(self, name: str) -> list[int]:
        """Return the rectangle of a control once it stays put: x, y, width, height."""
        return wait_still(lambda: self.widget(name)["rect"], f"place of {name}")

    def window_picture(self, path: Path) -> None:
        """Save what the screen shows of the window."""
        x, y, width, height = self.widgets(**{"class": "_QtMainWindow"})[0]["rect"]
        Image.fromarray(self.screen.picture()[y : y + height, x : x + width]).save(path)

    def canvas_picture(self, path: Path | None = None) -> np.ndarray:
        """Return the pixels of the canvas as the screen shows them."""
        x, y, width, height = self.canvas()
        return self.screen.picture(path)[y : y + height, x : x + width]


MENU_PLACE = """
from qtpy.QtCore import QPoint
from qtpy.QtWidgets import QApplication, QMenu, QMenuBar
kind = QMenuBar if {menu!r} == "menubar" else QMenu
result = None
for widget in QApplication.allWidgets():
    if isinstance(widget, kind) and widget.isVisible():
        for action in widget.actions():
            if action.text().replace("&", "") == {text!r}:
                place = widget.mapToGlobal(widget.actionGeometry(action).center())
                result = [place.x(), place.y()]
"""
ACTIVATE = """
from qtpy.QtWidgets import QApplication, QMainWindow
window = [w for w in QApplication.topLevelWidgets() if isinstance(w, QMainWindow)][0]
window.activateWindow()
result = True
"""


QUESTIONS = ("Do you want to close the application", "Confirm to close window")
"""napari's, after its key or menu, and after the window's cross."""


def close_by_keys(program: Program) -> int:
    """Close by napari's key. Return the exit code."""
    program.ask("evaluate", code=ACTIVATE)  # no window manager gives it the keyboard
    program.screen.key("ctrl+q")
    return wait_for_end(program)


def close_by_menu(program: Program) -> int:
    """Close by napari's menu File, which is there outside of reading mode. Return the exit code."""
    for menu, text in (("menubar", "File"), ("file", "Exit")):
        code = MENU_PLACE.format(menu=menu, text=text)
        place = wait_still(lambda code=code: program.ask("evaluate", code=code), f"menu {text}")
        program.screen.click(*place)
    return wait_for_end(program)


def close_by_cross(program: Program) -> int:
    """Close as the cross that a window manager draws: it asks the window. Return the exit code."""
    x = ctypes.CDLL(ctypes.util.find_library("X11"))
    for name in ("XOpenDisplay", "XInternAtom"):
        getattr(x, name).restype = ctypes.c_void_p
    display = ctypes.c_void_p(x.XOpenDisplay(program.screen.display.encode()))
    atoms = [x.XInternAtom(display, one, 0) for one in (b"WM_PROTOCOLS", b"WM_DELETE_WINDOW")]
    target = program.ask("evaluate", code=ACTIVATE + "result = int(window.winId())")
    client_message = 33
    # an XClientMessageEvent of 64 bits: each member stands on 8 bytes of its own
    event = (ctypes.c_long * 24)(client_message, 0, 0, 0, target, atoms[0], 32, atoms[1])
    x.XSendEvent(display, ctypes.c_ulong(target), 0, ctypes.c_long(0), ctypes.byref(event))
    x.XCloseDisplay(display)
    return wait_for_end(program)


def wait_for_end(program: Program) -> int:
    """Say Close where napari asks once more. Return the exit code."""

    def answer():
        if program.process.poll() is None:
            with contextlib.suppress(AssertionError):
                return "asked" if any(program.widgets(part=one) for one in QUESTIONS) else ""
        return "ended"

    if wait_until(answer, "the end, or its question") == "asked":
        # the mouse: nothing gives a dialog the keyboard
        place = wait_still(
            lambda: [w["centre"] for w in program.widgets(text="Close")], "its Close"
        )
        program.screen.click(*place[0])
    return program.process.wait(120)
